//! What is written builds, passes the project's own checks and its own tests, and runs in the local cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::sqs::NewMessage;
use serde_json::Value;
use tempfile::TempDir;

use crate::{VARIANTS, root, workspace, written};

/// How long anything may take that a test waits for; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(60);

/// What of the repository is no part of it.
const NOT_COPIED: [&str; 5] = ["target", ".git", ".tools", ".aws-sam", ".local"];

fn run(directory: &Path, target: &Path, command: &[&str]) {
    let mut run = Command::new(command[0]);
    run.args(&command[1..])
        .current_dir(directory)
        .env("CARGO_TARGET_DIR", target)
        .env("RUSTC_WORKSPACE_WRAPPER", root().join("scripts/clippy-rustc"))
        .env("CLIPPY_ARGS", "-Dwarnings")
        .env("AWS_DEFAULT_REGION", "us-east-1");
    // What cargo tells this test of its package would have build scripts run again, and all that depends on them be built again.
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    {
        run.env_remove(name);
    }
    let output = run.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}:\n{}\n{}", text(&output.stdout), text(&output.stderr));
}

fn copy(options: &str, from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(options).arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "cp {options} {} {}", from.display(), to.display());
}

/// Returns what users depend on or install: each folder in `crates/` is a package of that name.
fn packages(repository: &Path) -> Vec<String> {
    let folders = fs::read_dir(repository.join("crates")).unwrap();
    folders.map(|folder| folder.unwrap().file_name().into_string().unwrap()).collect()
}

/// A copy of the repository, without what is built of it.
fn repository(at: &Path) -> PathBuf {
    let copied = at.join("repository");
    fs::create_dir(&copied).unwrap();
    for entry in fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if !NOT_COPIED.iter().any(|not| name.to_string_lossy().starts_with(not)) {
            copy("-a", &entry.path(), &copied.join(name));
        }
    }
    copied
}

/// A directory to build the copy in that begins with what is built of this repository, so that only what is new is built. Hard
/// links take no space, and cargo replaces files instead of changing them; its fingerprints it changes.
fn begun_target(at: &Path) -> PathBuf {
    let target = at.join("target");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("debug");
    let debug = target.join("debug");
    fs::create_dir_all(&debug).unwrap();
    for (options, part) in [("-al", "deps"), ("-al", "build"), ("-a", ".fingerprint")] {
        copy(options, &built.join(part), &debug.join(part));
    }
    target
}

/// Selects the new functions, and beside them the package whose dependencies have every feature that the workspace gives
/// them: alone, the functions would have the SDKs built again for fewer. Its own binaries and tests are left out.
fn packages_with_every_feature(repository: &Path) -> Vec<&'static str> {
    let manifest = repository.join("tests/Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let (library, rest) = text.split_once("[[bin]]").unwrap();
    let (_binaries_and_tests, dependencies) = rest.split_once("[dependencies]").unwrap();
    fs::write(&manifest, format!("{library}[dependencies]{dependencies}")).unwrap();
    VARIANTS.iter().map(|(name, _)| *name).chain(["claimant-tests"]).flat_map(|name| ["-p", name]).collect()
}

/// Returns what the tests of these packages depend on, and the sets of features that each is built with.
fn dependencies(of: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let tree = ["tree", "--locked", "--offline", "--prefix=none", "--edges=normal,build,dev", "--format={p}|{f}|"];
    let output = Command::new("cargo").args(tree).args(of).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = BTreeMap::<_, BTreeSet<_>>::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let mut parts = line.split('|').map(str::to_owned);
        if let (Some(package), Some(features)) = (parts.next(), parts.next()) {
            found.entry(package).or_default().insert(features);
        }
    }
    found
}

#[test]
#[ignore = "needs cargo's registry"]
fn what_functions_need_is_built_once() {
    let all = dependencies(&["--workspace"]);
    let functions = dependencies(&["-p", "claimant-tests", "-p", "loyalty"]);
    assert!(functions.len() > 200, "{functions:?}");
    for (package, features) in functions {
        let built = &all[&package];
        assert!(
            features.is_subset(built),
            "{package} is built again: with {features:?} here, with {built:?} for the workspace; tests/Cargo.toml has what is missing"
        );
    }
}

/// Checks the format of these packages. With `--all`, those that they depend on here would be read each time, too.
fn check_format(workspace: &Path, packages: &[&str]) {
    let packages = packages.iter().flat_map(|name| ["-p", name]);
    let command: Vec<_> = ["cargo", "fmt", "--check"].into_iter().chain(packages).collect();
    run(workspace, &workspace.join("target"), &command);
}

/// Checks these templates by what `sam validate --lint` runs, where it is there.
fn check_templates(templates: impl Iterator<Item = PathBuf>) {
    let linter = root().join(".tools/bin/cfn-lint");
    if linter.exists() {
        let output = Command::new(linter).args(["--regions", "us-east-1", "--"]).args(templates).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "builds five functions"]
async fn each_variant_passes_the_checks_and_runs_in_the_local_cloud() {
    // Beside the directory that is linked to: hard links do not cross file systems.
    let at = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (repository, target) = (repository(at.path()), begun_target(at.path()));
    for (name, options) in VARIANTS {
        let said = written(&repository, name, options);
        assert!(said.contains("changed  Cargo.lock"), "{said}");
    }
    check_format(&repository, VARIANTS.map(|(name, _)| name).as_slice());
    // Lints and tests, as make test does both in one build.
    let tests = ["cargo", "test", "--bins", "--test", "function", "--locked"];
    run(&repository, &target, &[&tests[..], &packages_with_every_feature(&repository)].concat());
    runs_in_the_local_cloud(&repository, &target.join("debug")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs cargo's registry and, where it is there, cfn-lint"]
async fn a_project_outside_is_sound() {
    let here = TempDir::new().unwrap();
    for (name, options) in VARIANTS {
        written(here.path(), name, &[&["--project"], options].concat());
        let (project, target) = (here.path().join(name), here.path().join("target"));
        check_format(&project, &[name]);
        // Every dependency and feature is there, and what is written is what cargo would lock.
        run(&project, &target, &["cargo", "tree", "--workspace", "--offline", "--locked", "--quiet"]);
    }
    for (_, options) in VARIANTS {
        let name = VARIANTS[4].0;
        let here = TempDir::new().unwrap();
        written(here.path(), name, &[&["--project"], options].concat());
        check_format(&here.path().join(name), &[name]);
    }
    // The template of this repository with the same functions is beside them: to start the linter takes longer than to check one.
    let workspace = workspace();
    for (name, options) in VARIANTS {
        written(workspace.path(), name, options);
    }
    let projects = VARIANTS.iter().map(|(name, _)| here.path().join(name));
    check_templates(projects.chain([workspace.path().to_owned()]).map(|project| project.join("template.yaml")));
}

#[test]
#[ignore = "needs cargo's registry"]
fn what_users_depend_on_can_be_packed() {
    let at = TempDir::new().unwrap();
    let repository = repository(at.path());
    // Packages depend on each other, and cargo looks only among those that may be published.
    let manifest = fs::read_to_string(repository.join("Cargo.toml")).unwrap();
    fs::write(repository.join("Cargo.toml"), manifest.replace("publish = false", "publish = true")).unwrap();
    let packages = packages(&repository);
    assert!(packages.len() > 20, "{packages:?}");
    let packages = packages.iter().flat_map(|package| ["-p", package]);
    let command = ["cargo", "package", "--no-verify", "--offline", "--allow-dirty"].into_iter().chain(packages);
    run(&repository, &at.path().join("target"), &command.collect::<Vec<_>>());
}

/// Sends each of the new functions its sample twice, one after the other, and sees that it is done once.
async fn runs_in_the_local_cloud(repository: &Path, binaries: &Path) {
    let logs = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&logs);
    let cloud = Cloud::start(CloudConfig {
        only: VARIANTS.iter().map(|(name, _)| (*name).to_owned()).collect(),
        logs: Arc::new(move |name, line| sink.lock().unwrap().push(format!("{name}: {line}"))),
        ..CloudConfig::new(repository.join("template.yaml"), binaries)
    });
    let cloud = cloud.await.unwrap();
    for copy in ["1", "2"] {
        for (name, _) in VARIANTS {
            send(&cloud, repository, name, copy);
        }
        let start = Instant::now();
        let done = || {
            let records = cloud.dynamodb().items("LockTable").unwrap();
            records.iter().filter(|record| record.text("status") == Some("COMPLETED")).count() == VARIANTS.len()
        };
        // A second copy that came while the first is worked on would come back only after its lease.
        while !done() || !cloud.drained().unwrap() {
            assert!(start.elapsed() < PATIENCE, "not done:\n{}", logs.lock().unwrap().join("\n"));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    for table in ["GiftWrapTable", "ANameThatIsFortyCharactersLongAbcTable"] {
        assert_eq!(cloud.dynamodb().items(table).unwrap().len(), 1, "{table}");
    }
    let attempts: i64 = cloud.dynamodb().items("LockTable").unwrap().iter().filter_map(|r| r.number("attempts")).sum();
    assert_eq!(attempts, 5, "each was done once");
    cloud.stop().await;
}

/// Sends a function its sample event's message.
fn send(cloud: &Cloud, repository: &Path, name: &str, copy: &str) {
    let sample = fs::read_to_string(repository.join(format!("tests/events/{name}.json"))).unwrap();
    let sample: Value = serde_json::from_str(&sample).unwrap();
    let record = &sample["Records"][0];
    let spec = cloud.stack().functions.iter().find(|spec| spec.binary == name).unwrap();
    let queue = &spec.mappings[0].queue;
    assert_eq!(record["eventSourceARN"].as_str().unwrap().rsplit(':').next(), Some(queue.as_str()));
    let group_id = record["attributes"]["MessageGroupId"].as_str().map(str::to_owned);
    let deduplication_id = group_id.as_ref().map(|_| copy.to_owned());
    let message = NewMessage { group_id, deduplication_id, ..NewMessage::new(record["body"].as_str().unwrap()) };
    cloud.sqs().send(queue, message).unwrap();
}
