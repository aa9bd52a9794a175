//! A function to run under the local Lambda: this test binary itself, started again by a small script.

pub(crate) mod process;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_local::lambda::{Function, FunctionConfig};

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

/// A function whose process runs [`process::run`], from the test `function_process` of the calling test binary.
pub(crate) fn function(
    dir: &Path,
    logs: &Logs,
    timeout: Duration,
    concurrency: usize,
    variables: &[(&str, &str)],
) -> Function {
    let script = dir.join("bootstrap");
    if !script.exists() {
        let test_binary = std::env::current_exe().unwrap();
        let text = format!(
            "#!/bin/sh\nexec '{}' function_process --exact --ignored --nocapture --test-threads=1\n",
            test_binary.display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let lines = Arc::clone(&logs.0);
    Function::new(FunctionConfig {
        name: "confirm".to_owned(),
        executable: script,
        timeout,
        memory_mb: 256,
        environment: variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        concurrency,
        logs: Arc::new(move |name, line| {
            assert_eq!(name, "confirm");
            lines.lock().unwrap().push(line.to_owned());
        }),
    })
    .unwrap()
}
