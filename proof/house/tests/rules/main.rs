//! The house rules, held to the crates that users depend on; files are short everywhere.

mod facade;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use claimant_house::dependencies::{self, Graphed, Rules};
use claimant_house::sizes::{self, Sized};
use claimant_house::source::Crate;
use claimant_house::{
    FIELDS_MAX, FILE_LINES_MAX, FUNCTION_LINES_MAX, PARAMETERS_MAX, circles, contents, source, words,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Types with more fields, each with its file and its reason.
const WIDE: [(&str, &str, &str); 2] = [
    ("crates/claimant-dynamodb/src/names.rs", "AttributeNames", "one name for each attribute of a record"),
    ("crates/claimant-core/src/record.rs", "Record", "one field for each attribute that is stored"),
];

/// Whether this, `path:line name`, is a type that may have more fields.
fn is_wide(what: &str) -> bool {
    WIDE.iter().any(|(file, name, _)| {
        what.strip_prefix(file).is_some_and(|rest| rest.starts_with(':') && rest.ends_with(&format!(" {name}")))
    })
}

fn crates() -> Vec<Crate> {
    let root = source::repository();
    let crates = source::street(&root, "crates");
    assert!(crates.len() > 10, "the crates are there");
    crates
}

fn too_large(all: impl IntoIterator<Item = Sized>, most: usize) -> Vec<String> {
    let over = all.into_iter().filter(|one| one.size > most);
    over.map(|one| format!("{} has {}, and {most} are the most", one.what, one.size)).collect()
}

/// In one test: to read the crates takes longer than to check them.
#[test]
fn the_crates_keep_the_rules() {
    let (crates, proofs) = (crates(), source::street(&source::repository(), "proof"));
    let rules = [
        no_files_of_a_crate_import_each_other(&crates),
        tables_of_contents_are_whole(crates.iter().chain(&proofs)),
        files_functions_and_types_are_small(&crates, &proofs),
        the_core_names_no_other_system(&crates),
        facade::examples_import_what_claimant_has(&crates),
        facade::texts_name_what_claimant_has(&crates),
        facade::examples_name_no_crate_beneath_claimant(&crates),
        facade::what_opens_messages_is_in_claimant_and_its_chapter(&crates),
    ];
    let broken = rules.concat();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn no_files_of_a_crate_import_each_other(crates: &[Crate]) -> Vec<String> {
    let circles = crates.iter().flat_map(|krate| circles::of(krate).into_iter().map(move |circle| (krate, circle)));
    circles.map(|(krate, circle)| format!("{}: {} import each other", krate.name, circle.join(", "))).collect()
}

fn tables_of_contents_are_whole<'a>(crates: impl Iterator<Item = &'a Crate>) -> Vec<String> {
    let libraries = crates.filter(|krate| krate.files[0].path.ends_with("lib.rs"));
    let missing = libraries.flat_map(|krate| contents::missing(krate).into_iter().map(move |module| (krate, module)));
    missing.map(|(krate, module)| format!("{}: its lib.rs has no row for the module {module}", krate.name)).collect()
}

fn files_functions_and_types_are_small(crates: &[Crate], proofs: &[Crate]) -> Vec<String> {
    let mut found = Vec::new();
    for file in crates.iter().flat_map(|krate| &krate.files) {
        let of = sizes::of(file);
        found.extend(too_large([Sized { what: file.path.display().to_string(), size: file.lines }], FILE_LINES_MAX));
        found.extend(too_large(of.functions, FUNCTION_LINES_MAX));
        found.extend(too_large(of.parameters, PARAMETERS_MAX));
        found.extend(too_large(of.fields.into_iter().filter(|one| !is_wide(&one.what)), FIELDS_MAX));
    }
    for (what, wide) in [
        ("crates/claimant-core/src/record.rs:12 Record", true),
        ("crates/claimant-core/src/record.rs:12 OtherRecord", false),
        ("crates/claimant-local/src/mapping/event.rs:12 Record", false),
    ] {
        assert_eq!(is_wide(what), wide, "{what}");
    }
    // What checks the product, and the functions, has to be as easy to read.
    let functions = source::street(&source::repository(), "functions");
    let files: Vec<_> = proofs.iter().chain(&functions).flat_map(|krate| &krate.files).collect();
    assert!(files.len() > 100, "the files are there");
    let lines = files.iter().map(|file| Sized { what: file.path.display().to_string(), size: file.lines });
    found.extend(too_large(lines, FILE_LINES_MAX));
    found
}

fn the_core_names_no_other_system(crates: &[Crate]) -> Vec<String> {
    let named = |name: &str| crates.iter().find(|krate| krate.name == name).expect("the crate is there");
    assert!(!words::of(named("claimant-dynamodb"), words::SYSTEMS).is_empty(), "the check finds words");
    words::of(named("claimant-core"), words::SYSTEMS)
}

/// docs.rs builds what is on unless switched off, and users look there for the rest.
#[test]
fn features_are_shown_where_the_documentation_is_built() {
    let metadata: Value = metadata(&["--no-deps"]);
    let is_off = |package: &&Value| {
        let features = package["features"].as_object().expect("they have features");
        let on = package["features"]["default"].as_array().map_or(&[][..], Vec::as_slice);
        package["publish"].is_null() && features.keys().any(|name| name != "default" && !on.contains(&json!(name)))
    };
    let packages: Vec<_> = metadata["packages"].as_array().expect("there are packages").iter().filter(is_off).collect();
    assert!(packages.len() > 5, "the check finds features");
    for package in packages {
        assert_eq!(package["metadata"]["docs"]["rs"]["all-features"], true, "{}", package["name"]);
    }
}

/// `cargo metadata` with these options, offline.
fn metadata<T: DeserializeOwned>(options: &[&str]) -> T {
    let mut metadata = Command::new(std::env::var_os("CARGO").expect("cargo runs this"));
    metadata.args(["metadata", "--format-version", "1", "--locked", "--offline"]).args(options);
    let output = metadata.current_dir(source::repository()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is metadata")
}

/// The last column of the table of crates, by the crates' short names: what is in code there is of others.
#[test]
fn the_architecture_says_which_crate_uses_which() {
    let page = std::fs::read_to_string(source::repository().join("ARCHITECTURE.md")).expect("it is readable");
    let metadata: Value = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().expect("there are packages");
    let short = |name: &str| name.strip_prefix("claimant-").unwrap_or(name).to_owned();
    let published: Vec<_> = packages.iter().filter(|package| package["publish"].is_null()).collect();
    let all: BTreeSet<_> = published.iter().filter_map(|package| package["name"].as_str().map(short)).collect();
    assert!(all.contains("core") && all.contains("claimant"), "{all:?}");
    let mut faults = Vec::new();
    for package in published {
        let name = package["name"].as_str().expect("it has a name");
        let row = page.lines().find_map(|line| line.strip_prefix(&format!("| `{name}` | ")));
        let Some(cell) = row.and_then(|row| row.trim_end_matches(" |").rsplit(" | ").next()) else {
            faults.push(format!("{name} has no row"));
            continue;
        };
        let prose: String = cell.split('`').step_by(2).collect();
        let words = prose.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned);
        let said: BTreeSet<_> = words.filter(|word| all.contains(word)).collect();
        let uses = package["dependencies"].as_array().expect("there is a list").iter();
        let uses = uses.filter(|used| used["kind"].is_null() && !used["path"].is_null());
        let uses: BTreeSet<_> = uses.filter_map(|used| used["name"].as_str().map(short)).collect();
        if said != uses {
            faults.push(format!("{name} may use {said:?}, and uses {uses:?}"));
        }
    }
    assert!(faults.is_empty(), "ARCHITECTURE.md, the crates: {}", faults.join("\n"));
}

fn rules() -> Rules {
    let text = std::fs::read_to_string(source::repository().join("deny.toml")).expect("deny.toml is there");
    toml::from_str(&text).unwrap_or_else(|e| panic!("deny.toml: {e}"))
}

#[test]
#[ignore = "needs the crates of every platform (cargo fetch): make test"]
fn dependencies_are_those_that_are_allowed() {
    let graph: Graphed = metadata(&["--all-features"]);
    let found = dependencies::faults(&rules(), &graph);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn dependencies_that_are_not_allowed_are_found() {
    let registry = "registry+https://github.com/rust-lang/crates.io-index";
    let package = |name: &str, license: Option<&str>, source: Option<&str>, uses: Value| json!({"id": name, "name": name, "license": license, "source": source, "dependencies": uses});
    let both = Some("MIT OR Apache-2.0");
    let any =
        json!([{"name": "redis", "req": "*", "path": null}, {"name": "claimant-core", "req": "*", "path": "/core"}]);
    let graph = json!({
        "packages": [
            package("claimant-decode", both, None, json!([])),
            package("claimant-lambda", both, None, any),
            package("claimant-otel", both, None, json!([])),
            package("apache-avro", Some("MIT/Apache-2.0"), Some(registry), json!([])),
            package("openssl-sys", Some("MIT"), Some(registry), json!([])),
            package("copyleft", Some("MIT AND GPL-3.0-only"), Some(registry), json!([])),
            package("either", Some("GPL-3.0-only OR (MIT AND Unicode-3.0)"), Some(registry), json!([])),
            package("secret", None, Some("git+https://git.example/secret"), json!([])),
        ],
        "resolve": {"nodes": [
            {"id": "claimant-decode", "dependencies": ["apache-avro", "either"]},
            {"id": "claimant-lambda", "dependencies": ["apache-avro", "openssl-sys"]},
        ]},
    });
    let found = dependencies::faults(&rules(), &serde_json::from_value(graph).expect("it is metadata"));
    let wanted = [
        "claimant-lambda takes any version of redis",
        "copyleft: the licence MIT AND GPL-3.0-only is not among those of deny.toml",
        "secret comes from git+https://git.example/secret: all dependencies come from crates.io",
        "secret: it names no licence",
        "claimant-lambda uses apache-avro, which only [\"claimant-decode\"] may",
        "claimant-lambda uses openssl-sys, which only [] may",
        "claimant may use claimant-otel, and does not: take it off deny.toml",
    ];
    assert_eq!(found, wanted);
}

/// What is written into `deny.toml` and held by nothing would only look safe.
#[test]
fn a_rule_that_is_not_held_is_refused() {
    let text = std::fs::read_to_string(source::repository().join("deny.toml")).expect("deny.toml is there");
    for (held, other) in [
        ("wildcards = \"deny\"", "wildcards = \"allow\""),
        ("all-features = true", "all-features = false"),
        ("[sources]", "[sources]\nallow-git = []"),
    ] {
        assert!(text.contains(held) && toml::from_str::<Rules>(&text.replace(held, other)).is_err(), "{other}");
    }
}

/// Crates that no function links, each with its reason: a function's size is paid at every cold start.
const HEAVY: [(&str, &str); 12] = [
    ("aws-lc-sys", "a second TLS stack"),
    ("aws-smithy-http-client", "the SDK's HTTP client, with HTTP/2: functions have one of their own"),
    ("aws-sdk-sso", "profiles of people, of aws-config's default features"),
    ("aws-sdk-ssooidc", "the same"),
    ("clap", "what parses arguments of commands"),
    ("dynoxide-rs", "the embedded DynamoDB, for tests and the local cloud"),
    ("h2", "HTTP/2, which none of the services speaks that claimant calls"),
    ("openssl-sys", "a second TLS stack"),
    ("opentelemetry", "only of those who ask for the feature `otel`"),
    ("regex-automata", "a compiler of regular expressions: log filters are levels and targets"),
    ("regex-syntax", "the same"),
    ("reqwest", "a second HTTP client"),
];

/// What functions link, by what cargo builds them from.
#[test]
fn functions_link_nothing_heavy() {
    let root = source::repository();
    let functions = std::fs::read_dir(root.join("functions")).expect("there are functions");
    let names = functions.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let chosen: Vec<_> = names.flat_map(|name| ["--package".to_owned(), name]).collect();
    assert!(chosen.len() > 10, "the check finds functions");
    let mut tree = Command::new(std::env::var_os("CARGO").expect("cargo runs this"));
    tree.args(["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(chosen);
    let output = tree.current_dir(&root).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let linked = String::from_utf8(output.stdout).expect("names are text");
    let linked: BTreeSet<_> = linked.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(
        ["claimant-core", "aws-config", "ring"].iter().all(|name| linked.contains(name)),
        "the check finds what is linked"
    );
    let heavy: Vec<_> = HEAVY.iter().filter(|(name, _)| linked.contains(name)).collect();
    assert!(heavy.is_empty(), "functions link {heavy:?}");
}

/// What is deployed: a project that `claimant new` writes is built as the functions here are.
#[test]
fn new_projects_are_built_as_the_functions_here() {
    let profiles = |path: &str| {
        let text = std::fs::read_to_string(source::repository().join(path)).expect("it is readable");
        let begin = text.find("# What is deployed.").unwrap_or_else(|| panic!("{path} says what is deployed"));
        text[begin..].to_owned()
    };
    let here = profiles("Cargo.toml");
    let (here, rest) = here.split_once("# A function of another workspace").expect("the rest is of this one");
    assert!(here.contains("[profile.release]") && here.contains("panic = \"unwind\""), "{here}");
    assert_eq!(profiles("crates/claimant-cli/templates/project/Cargo.toml.in"), here);
    // There these have what dependencies have that nothing is said of.
    let members = rest.split_once("# What tests and measures.").expect("it ends").0.lines().skip(1);
    let others: Vec<_> = members.filter(|line| !line.ends_with(" = { opt-level = \"s\" }")).collect();
    assert!(here.contains("\n\"*\" = { opt-level = \"s\" }\n") && others.is_empty(), "{others:?}");
}

/// What cargo builds of the packages of the workspace, as `cargo metadata` has it.
fn targets() -> Vec<Value> {
    let metadata: Value = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().expect("there are packages");
    packages.iter().flat_map(|package| package["targets"].as_array().expect("they have targets")).cloned().collect()
}

/// Whether a line of the file begins with one of these, after blanks.
fn has_line(file: &Path, beginnings: [&str; 2]) -> bool {
    let text = std::fs::read_to_string(file).expect("it is readable");
    text.lines().any(|line| beginnings.iter().any(|beginning| line.trim().starts_with(beginning)))
}

/// `test = false` saves the build of an empty test program. A test in such a target would never run.
#[test]
fn targets_without_a_test_program_have_no_tests() {
    let targets = targets();
    let untested = targets.iter().filter(|target| target["test"] == false && target["kind"] != json!(["custom-build"]));
    let mut count = 0;
    for target in untested {
        count += 1;
        let root = Path::new(target["src_path"].as_str().expect("a target has a file"));
        let files = if root.ends_with("lib.rs") {
            files(root.parent().expect("it is in a folder"), "rs")
        } else {
            vec![root.to_owned()]
        };
        for file in files {
            let has_tests = has_line(&file, ["#[test]", "#[tokio::test"]);
            assert!(!has_tests, "{} has tests, and `test = false` keeps them from being run", file.display());
        }
    }
    assert!(count > 5, "the check finds targets");
}

/// `doctest = false` saves reading the crate for examples in its doc comments. An example there would never run.
#[test]
fn libraries_without_doc_tests_have_no_examples_in_comments() {
    let targets = targets();
    let libraries = targets.iter().filter(|target| target["kind"] == json!(["lib"]) && target["doctest"] == false);
    let roots: Vec<_> = libraries.map(|target| target["src_path"].as_str().expect("a target has a file")).collect();
    assert!(roots.len() > 10, "{roots:?}");
    for file in roots.iter().flat_map(|root| files(Path::new(root).parent().expect("it is in a folder"), "rs")) {
        let has_example = has_line(&file, ["/// ```", "//! ```"]);
        assert!(!has_example, "{} has an example, and `doctest = false` keeps it from being run", file.display());
    }
}

/// One seed is one run, the same each time: the seeds of last night have nothing more to find.
#[test]
fn each_night_simulates_seeds_of_its_own() {
    let workflow = std::fs::read_to_string(source::repository().join(".github/workflows/ci.yml")).expect("it is there");
    let runs: Vec<_> = workflow.split("make simulate SEEDS=").skip(1).collect();
    assert!(!runs.is_empty() && workflow.matches("make simulate").count() == runs.len(), "{runs:?}");
    for run in runs {
        let (seeds, from) = run.split_once(' ').expect("seeds of its own");
        assert!(from.starts_with(&format!("FROM=$((GITHUB_RUN_NUMBER * {seeds}))")), "{seeds} {from}");
    }
}

/// The path of a checkout says nothing of what a program tests.
#[test]
fn the_integration_tests_are_passed_over_by_the_names_of_programs_alone() {
    for (left_out, argument, runs) in [
        ("it", "/tmp/it-shop/claimant/deps/engine-1a", true),
        ("it", "/tmp/claimant/deps/it-1a", false),
        ("programs", "/tmp/it-shop/rustdoctest/rust_out", true),
        ("programs", "/tmp/claimant/deps/engine-1a", false),
    ] {
        // What would run is not there, and the shell says so.
        let mut command = Command::new(source::repository().join("scripts/all-but"));
        let status = command.args([left_out, argument]).output().expect("the script can be run").status;
        assert_eq!(!status.success(), runs, "{left_out} {argument}");
    }
}

/// Every file below a folder that has this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("a folder can be listed").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let found = files.into_iter().filter(|file| file.extension().is_some_and(|of| of == extension));
    found.chain(folders.iter().flat_map(|folder| self::files(folder, extension))).collect()
}
