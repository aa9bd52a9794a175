//! A test once more, in a process of its own: of what holds for a whole process.

use std::process::{Command, Output};

/// Is set in that process.
const CHILD: &str = "IN_CHILD_OF_A_TEST";

/// Returns how the process ended in which the test of this path ran; `None` in that process.
pub(crate) fn ended(test: &str) -> Option<Output> {
    ended_with(test, &[])
}

/// As [`ended`], in a process with these variables.
pub(crate) fn ended_with(test: &str, variables: &[(&str, &str)]) -> Option<Output> {
    if std::env::var_os(CHILD).is_some() {
        return None;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
    // What it logs is what is looked at.
    again.env_remove("RUST_LOG").env_remove("AWS_LAMBDA_LOG_LEVEL").envs(variables.iter().copied());
    Some(again.output().unwrap())
}
