//! What several of the tests need.
//!
//! A function to run under the local Lambda is this test binary itself, started again by a small script.

pub(crate) mod http;
pub(crate) mod process;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_local::journal::Journal;
use claimant_local::lambda::{Function, FunctionConfig, LogSink};

/// The longest that any test waits for anything.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Lines that functions wrote.
#[derive(Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<String>>>);

impl Logs {
    /// The rest of each line that starts with `prefix`.
    fn after(&self, prefix: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter_map(|line| line.strip_prefix(prefix)).map(str::to_owned).collect()
    }

    /// Takes the lines of the function of this name, and of no other.
    pub(crate) fn sink(&self, expected: &'static str) -> LogSink {
        let lines = Arc::clone(&self.0);
        Arc::new(move |name, line| {
            assert_eq!(name, expected);
            lines.lock().unwrap().push(line.to_owned());
        })
    }

    /// Takes every line.
    pub(crate) fn sink_of_all(&self) -> LogSink {
        let lines = Arc::clone(&self.0);
        Arc::new(move |_, line| lines.lock().unwrap().push(line.to_owned()))
    }

    pub(crate) async fn until(&self, prefix: &str, count: usize) -> Vec<String> {
        until(prefix, || self.after(prefix).len() >= count).await;
        self.after(prefix)
    }
}

/// Waits until the condition holds; fails the test when it takes too long.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(WAIT_MAX, wait).await.is_ok(), "waited in vain for: {what}");
}

/// Writes a program that runs [`process::run`], from the test `function_process` of the calling test binary, and says first
/// which build it is. It takes the old one's place at once, as cargo's links do.
pub(crate) fn build(path: &Path, number: u32) {
    let test_binary = std::env::current_exe().unwrap();
    let text = format!(
        "#!/bin/sh\necho build {number}\nBUILD={number} exec '{}' function_process --exact --ignored --nocapture --test-threads=1\n",
        test_binary.display()
    );
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// A function whose process is [`build`] number 1, unless there is one in `dir` already.
pub(crate) fn function(
    dir: &Path,
    logs: &Logs,
    timeout: Duration,
    concurrency: usize,
    variables: &[(&str, &str)],
) -> Function {
    let script = dir.join("bootstrap");
    if !script.exists() {
        build(&script, 1);
    }
    Function::new(config(dir, logs, timeout, concurrency, variables)).unwrap()
}

/// What a function of `bootstrap` in `dir` is made of.
pub(crate) fn config(
    dir: &Path,
    logs: &Logs,
    timeout: Duration,
    concurrency: usize,
    variables: &[(&str, &str)],
) -> FunctionConfig {
    FunctionConfig {
        name: "confirm".to_owned(),
        program: dir.join("bootstrap").into(),
        timeout,
        memory_mb: 256,
        environment: variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        concurrency,
        logs: logs.sink("confirm"),
        journal: Journal::new(),
    }
}
