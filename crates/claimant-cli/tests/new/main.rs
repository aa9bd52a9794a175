//! `claimant new`: what it writes is what a person would have written, and nothing is written half.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod around;
mod built;
mod own;
mod scripts;
mod shape;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use claimant_local::stack::Stack;
use tempfile::TempDir;

/// Each variant that can be asked for: a consumer's name and the options.
const VARIANTS: [(&str, &[&str]); 5] = [
    ("welcome", &[]),
    ("gift-wrap", &["--transactional"]),
    ("refund", &["--at-most-once"]),
    // YAML 1.1 has it for true.
    ("on", &["--fifo"]),
    ("a-name-that-is-forty-characters-long-abc", &["--transactional", "--fifo"]),
];

/// What YAML 1.1, which CloudFormation reads, takes for something else than a text; true and false are written where they are meant.
const YAML_WORDS: [&str; 7] = ["on", "off", "yes", "no", "y", "n", "null"];

fn root() -> PathBuf {
    Path::new("../..").canonicalize().unwrap()
}

fn claimant_new(directory: &Path, name: &str, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
    command.arg("new").arg(name).args(options).arg("--directory").arg(directory).output().unwrap()
}

/// Writes a consumer, and returns what was said.
fn written(directory: &Path, name: &str, options: &[&str]) -> String {
    let output = claimant_new(directory, name, options);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {options:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A directory with the files of this repository that a new consumer changes.
fn workspace() -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("infra")).unwrap();
    for file in ["Cargo.toml", "deny.toml", "template.yaml", "infra/alarms.yaml", "infra/dashboard.yaml"] {
        fs::copy(root().join(file), directory.path().join(file)).unwrap();
    }
    directory
}

/// Every file under a directory, and its text.
fn files(directory: &Path) -> BTreeMap<PathBuf, String> {
    let (mut files, mut left) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                files.insert(path.strip_prefix(directory).unwrap().to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn a_consumer_is_written_with_all_that_belongs_to_it() {
    for (name, options) in VARIANTS {
        let workspace = workspace();
        let before = files(workspace.path());
        let said = written(workspace.path(), name, options);
        let after = files(workspace.path());
        let new: Vec<_> =
            after.keys().filter(|path| !before.contains_key(*path)).map(|path| path.to_str().unwrap()).collect();
        let function = |file: &str| format!("functions/{name}/{file}");
        let wanted = [
            function("Cargo.toml"),
            function("src/handler.rs"),
            function("src/main.rs"),
            function("src/scenarios.rs"),
            function("tests/function.rs"),
            format!("tests/events/{name}.json"),
        ];
        assert_eq!(new, wanted);
        assert!(wanted.iter().all(|path| said.contains(path)), "{said}");
        // Nothing that was there has changed, and the local cloud reads what has come.
        for (path, text) in &before {
            let mut left = after[path].lines();
            let kept = text.lines().all(|line| left.any(|new| new == line || path.ends_with("deny.toml")));
            assert!(kept, "{name}: {} has lost lines", path.display());
        }
        let transactional = options.contains(&"--transactional");
        assert_eq!(after[Path::new("deny.toml")].contains(&format!("\"{name}\"]")), transactional);
        let stack = Stack::load(&workspace.path().join("template.yaml"), &BTreeMap::new()).unwrap();
        let function = stack.functions.iter().find(|function| function.binary == name).unwrap();
        for line in after[Path::new("template.yaml")].lines() {
            let value = line.split_once(": ").map(|(_, value)| value.trim());
            assert!(
                !value.is_some_and(|value| YAML_WORDS.contains(&value)),
                "{name}: YAML 1.1 reads no text in {line:?}"
            );
        }
        assert!(function.mappings[0].report_batch_item_failures && function.environment.contains_key("CLAIMANT_TABLE"));
        let queue = stack.queues.iter().find(|queue| queue.name == function.mappings[0].queue).unwrap();
        let fifo = options.contains(&"--fifo");
        assert_eq!(queue.settings.fifo, fifo);
        let text: String = after
            .iter()
            .filter(|(path, _)| new.contains(&path.to_str().unwrap()))
            .map(|(_, text)| text.as_str())
            .collect();
        assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
        // One error names every fault of the environment, and of what is read later by the same reader.
        let main = &after[Path::new(&format!("functions/{name}/src/main.rs"))];
        assert!(main.contains("claimant::variables()") && main.contains("from_variables(variables)"), "{main}");
        // What always fails in a group is dead-lettered with a receive to spare for those behind it.
        let receives = queue.settings.redrive.as_ref().unwrap().max_receive_count;
        assert_eq!(function.environment["CLAIMANT_MAX_RECEIVE_COUNT"], receives.to_string());
        let limited = main.contains(".attempts_max(ATTEMPTS_MAX)")
            && main.contains(&format!("const ATTEMPTS_MAX: u32 = {};", receives - 2));
        assert_eq!(limited, fifo, "{name}: {receives} receives, {main}");
        // Parked work may be done.
        let (_, section) = after[Path::new("template.yaml")].split_once(&format!("# ---- {name}: ")).unwrap();
        let may_be_done = section.matches("not known to be done").count();
        assert_eq!(may_be_done, if options.contains(&"--at-most-once") { 2 } else { 0 }, "{section}");
    }
}

#[test]
fn what_is_in_the_way_is_said_and_nothing_is_written() {
    let workspace = workspace();
    written(workspace.path(), "welcome", &[]);
    let before = files(workspace.path());
    let table: [(&str, &[&str], &[&str]); 7] = [
        (
            "welcome",
            &[],
            &[
                "functions/welcome/Cargo.toml already exists",
                "tests/events/welcome.json already exists",
                "WelcomeQueue",
            ],
        ),
        ("lock", &["--transactional"], &["LockTable already"]),
        ("order", &[], &["OrderQueue already"]),
        ("Welcome", &[], &["lower-case", "for example welcome-mail"]),
        ("claimant-extra", &["--transactional"], &["begin with claimant"]),
        ("other", &["--transactional", "--at-most-once"], &["cannot be used with"]),
        ("other", &["--claimant-git", "https://git.example/claimant"], &["for new projects"]),
    ];
    for (name, options, wanted) in table {
        let output = claimant_new(workspace.path(), name, options);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
        assert!(wanted.iter().all(|wanted| errors.contains(wanted)), "{name} {options:?}: {errors}");
        assert_eq!(files(workspace.path()), before, "{name}");
    }
    // Names that are no beginning of a line, and those of outputs.
    let template = workspace.path().join("template.yaml");
    let text = fs::read_to_string(&template).unwrap();
    for (section, entry, wanted) in [
        ("Resources", "\"SecondQueue\": {Type: AWS::SQS::Queue}", "template.yaml has SecondQueue already"),
        ("Parameters", "SecondLogs: {Type: String}", "template.yaml has SecondLogs already"),
        (
            "Outputs",
            "SecondQueueUrl: {Value: a}\n  SecondFunctionName: {Value: a}",
            "template.yaml has SecondQueueUrl already: choose another name\n  - template.yaml has SecondFunctionName already",
        ),
        // Lines cannot be added to it.
        ("Outputs", "{A: {Value: a}}\nMore:", "template.yaml could not be read with second: "),
    ] {
        let taken = text.replacen(&format!("\n{section}:\n"), &format!("\n{section}:\n  {entry}\n"), 1);
        fs::write(&template, taken).unwrap();
        let before = files(workspace.path());
        let output = claimant_new(workspace.path(), "second", &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(wanted), "{entry}: {errors}");
        assert_eq!(files(workspace.path()), before, "{entry}");
    }
    fs::write(&template, text).unwrap();
    fs::copy(root().join("Cargo.lock"), workspace.path().join("Cargo.lock")).unwrap();
    let before = files(workspace.path());
    let said = written(workspace.path(), "another", &["--dry-run", "--transactional"]);
    for wanted in [
        "Nothing is written",
        "functions/another/src/main.rs",
        "changed  template.yaml",
        "changed  deny.toml",
        "changed  Cargo.lock",
    ] {
        assert!(said.contains(wanted), "{wanted} in {said}");
    }
    assert_eq!(files(workspace.path()), before);
}

/// However it depends on claimant, and whether it does: nobody wants a project within a project, with a lock table of its own.
#[test]
fn a_workspace_is_one_by_its_template() {
    let workspace = workspace();
    let manifest = workspace.path().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let line = text.lines().find(|line| line.starts_with("claimant = ")).unwrap();
    let without = text.replace(line, "");
    fs::write(&manifest, format!("{without}\n[workspace.dependencies.claimant]\npath = \"..\"\n")).unwrap();
    let said = written(workspace.path(), "second", &["--dry-run"]);
    assert!(said.contains("changed  template.yaml"), "{said}");
    fs::write(&manifest, without).unwrap();
    let before = files(workspace.path());
    let output = claimant_new(workspace.path(), "second", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("has no `claimant` for the members: add it, or give --project"), "{errors}");
    assert_eq!(files(workspace.path()), before);
    // SAM takes any of these names, and the first where several are there.
    fs::write(&manifest, text).unwrap();
    let [first, second] = ["template.yaml", "template.yml"].map(|name| workspace.path().join(name));
    fs::rename(&first, &second).unwrap();
    let said = written(workspace.path(), "second", &["--dry-run"]);
    assert!(said.contains("changed  template.yml") && !said.contains("template.yaml"), "{said}");
    let output = claimant_new(workspace.path(), "order", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("template.yml has OrderQueue already"), "{errors}");
    fs::copy(&second, &first).unwrap();
    let said = written(workspace.path(), "second", &["--dry-run"]);
    assert!(said.contains("changed  template.yaml"), "{said}");
    fs::remove_file(&first).unwrap();
    fs::rename(&second, workspace.path().join("template.json")).unwrap();
    let output = claimant_new(workspace.path(), "second", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("template.json is JSON, to which no lines can be added"), "{errors}");
}

#[test]
fn a_template_that_cannot_be_read_is_said_with_its_reason() {
    let workspace = workspace();
    let template = workspace.path().join("template.yaml");
    for (content, says) in [
        (&b"Resources: {} # caf\xe9"[..], "save it as UTF-8"),
        (b"\nResources: [", "template.yaml:2: this cannot be read: unclosed bracket"),
    ] {
        fs::write(&template, content).unwrap();
        let output = claimant_new(workspace.path(), "second", &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(says), "{says}: {errors}");
    }
}

#[test]
fn a_workspace_that_lacks_something_is_told_what() {
    let workspace = workspace();
    let template = workspace.path().join("template.yaml");
    let replace = |file: &Path, what: &str, by: &str| {
        let text = fs::read_to_string(file).unwrap();
        fs::write(file, text.replace(what, by)).unwrap();
    };
    replace(&template, "  ConsumerPolicy:\n", "  Policy:\n");
    let manifest = workspace.path().join("Cargo.toml");
    let line = fs::read_to_string(&manifest).unwrap();
    let line = line.lines().find(|line| line.starts_with("claimant = ")).unwrap();
    for (what, by) in [
        (line, ""),
        ("tracing = \"0.1.41\"\n", ""),
        (", \"functions/*\"", ""),
        ("panic = \"unwind\"", "panic = \"abort\""),
        ("rust-version = \"1.94.1\"", "rust-version = \"1.80\""),
    ] {
        replace(&manifest, what, by);
    }
    fs::write(workspace.path().join("Cargo.lock"), "[[package]]\nname = \"serde\"\n").unwrap();
    let output = claimant_new(workspace.path(), "serde", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    for wanted in [
        "no ConsumerPolicy",
        "[workspace.dependencies] has no `claimant` for the members: add it, or give --project",
        "[workspace.dependencies] has no `tracing` for the members: add it\n",
        "[profile.release] has no `panic = \"unwind\"`",
        "the `rust-version` 1.80, and claimant needs 1.94.1",
        "no \"functions/*\"",
        "a package serde already",
    ] {
        assert!(errors.contains(wanted), "{wanted} in {errors}");
    }
}

/// Each name that consumers share is also a key elsewhere: of a nested stack's parameters, of a mapping.
#[test]
fn what_consumers_share_is_asked_for_where_it_has_to_be() {
    let ours = fs::read_to_string(root().join("template.yaml")).unwrap();
    let of_another_stack = ours.replace("\n  LockTable:\n", "\n  Locks:\n");
    let of_another_stack = of_another_stack.replace("\nParameters:\n", "\nParameters:\n  LockTable: {Type: String}\n");
    for (text, lacks) in [
        (ours.replace("\n  MaximumConcurrency:\n", "\n  Other:\n"), "MaximumConcurrency under Parameters"),
        (ours.replace("\n  AlarmTopicArn:\n", "\n  Other:\n"), "AlarmTopicArn under Parameters"),
        (of_another_stack, "LockTable under Resources"),
        (ours.replace("\nTransform: AWS::Serverless-2016-10-31\n", "\n"), "`Transform: AWS::Serverless-2016-10-31`"),
    ] {
        let workspace = workspace();
        fs::write(workspace.path().join("template.yaml"), text).unwrap();
        let output = claimant_new(workspace.path(), "welcome", &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(&format!("has no {lacks},")), "{lacks} in {errors}");
        let is_taken = errors.contains("give the one under Parameters another name, and copy it from");
        assert_eq!(is_taken, lacks.starts_with("LockTable"), "{errors}");
    }
    let lock_table = "\n  LockTable:\n    Type: AWS::DynamoDB::Table\n";
    let simple = lock_table.replace("DynamoDB::", "Serverless::Simple");
    // A table that the template's Globals name may have any name, and be a table by any resource.
    for (before, after) in [("LockTable", "Locks"), (lock_table, &*simple)] {
        let workspace = workspace();
        let template = workspace.path().join("template.yaml");
        fs::write(&template, ours.replace(before, after)).unwrap();
        let said = written(workspace.path(), "welcome", &[]);
        let text = fs::read_to_string(&template).unwrap();
        assert!(text.contains(after) && !text.contains(before) && !said.contains("a store of its own"), "{said}");
    }
}

#[test]
fn what_cargo_says_of_a_lock_that_stays_as_it_is_is_shown() {
    let workspace = workspace();
    let said = written(workspace.path(), "welcome", &[]);
    assert!(said.contains("which was not possible yet: error: "), "{said}");
    // A new project's is there, and of more than it depends on.
    let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
    command.args(["new", "alone", "--project", "--directory"]).arg(workspace.path()).env("CARGO", "/none/cargo");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("new      Cargo.lock"), "{said}");
    let hint =
        "cargo build -p alone    # without --locked once: cargo could not trim Cargo.lock: cargo cannot be run: ";
    assert!(said.contains(hint) && !said.contains("not possible yet"), "{said}");
}

#[test]
fn members_may_have_quotes_of_either_kind() {
    let workspace = workspace();
    let manifest = workspace.path().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"functions/*\"", "'functions/*'")).unwrap();
    written(workspace.path(), "welcome", &[]);
}

#[test]
fn outside_a_workspace_it_is_a_whole_project() {
    let here = TempDir::new().unwrap();
    for (name, options) in VARIANTS {
        let said = written(here.path(), name, options);
        assert!(said.contains("makes a new one") && said.contains(root().to_str().unwrap()), "{said}");
        let project = here.path().join(name);
        let files = files(&project);
        for wanted in ["Cargo.toml", "Cargo.lock", "README.md", "template.yaml", ".gitignore"] {
            assert!(files.contains_key(Path::new(wanted)), "{name}: {wanted}");
        }
        for ours in ["infra/alarms.yaml", "infra/dashboard.yaml"] {
            assert_eq!(files[Path::new(ours)], fs::read_to_string(root().join(ours)).unwrap());
        }
        assert!(files.iter().all(|(path, text)| path.ends_with("Cargo.lock") || !text.contains("{{")));
        let stack = Stack::load(&project.join("template.yaml"), &BTreeMap::new()).unwrap();
        assert_eq!(stack.functions.len(), 1);
        // Whether the order of a group matters, only the user knows.
        let (system, _) = claimant_doctor::read(&project.join("template.yaml"), &Default::default()).unwrap();
        let found = claimant_doctor::run(&system).findings;
        let found: Vec<_> = found.iter().map(|finding| finding.check.name).collect();
        let expected: &[_] = if options.contains(&"--fifo") { &["fifo-dead-letters"] } else { &[] };
        assert_eq!(found, expected, "{name}");
        // A second one goes into the same project, also under the name of one of the samples.
        let said = written(&project.join("functions"), "payment", &["--fifo", "--dry-run"]);
        assert!(said.contains("changed  template.yaml"), "{said}");
        fs::remove_file(project.join("Cargo.lock")).unwrap();
        written(&project.join("functions"), "second", &["--fifo"]);
        assert_eq!(Stack::load(&project.join("template.yaml"), &BTreeMap::new()).unwrap().functions.len(), 2);
        let output = claimant_new(here.path(), name, options);
        assert!(String::from_utf8_lossy(&output.stderr).contains("already exists, and nothing was written"));
    }
    for name in ["tokio", "hyper"] {
        let output = claimant_new(here.path(), name, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
        assert!(errors.contains("a package that the project depends on"), "{errors}");
        assert!(!here.path().join(name).exists());
    }
    let git = written(here.path(), "by-git", &["--project", "--claimant-git", "https://git.example/claimant"]);
    assert!(git.contains("by git: https://git.example/claimant"), "{git}");
    let manifest = fs::read_to_string(here.path().join("by-git/Cargo.toml")).unwrap();
    assert!(manifest.contains("claimant = { git = \"https://git.example/claimant\" }"), "{manifest}");
}
