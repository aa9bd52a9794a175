//! A test once more, in a process of its own: of what holds for a whole process.

use std::io::{self, BufRead as _, BufReader};
use std::process::{Command, ExitStatus, Output, Stdio};

/// Is set in that process.
const CHILD: &str = "IN_CHILD_OF_A_TEST";

/// Returns how the process ended in which the test of this path ran; `None` in that process.
pub(crate) fn ended(test: &str) -> Option<Output> {
    ended_with(test, &[])
}

/// As [`ended`], in a process with these variables.
pub(crate) fn ended_with(test: &str, variables: &[(&str, &str)]) -> Option<Output> {
    Some(again(test)?.envs(variables.iter().copied()).output().unwrap())
}

/// As [`ended`], in a process whose outputs nobody reads any more by the time that this returns there: it writes in vain. The test has to
/// end it, since its harness cannot write either.
pub(crate) fn ended_unheard(test: &str) -> Option<ExitStatus> {
    const BEGUN: &str = "from here on nobody reads this";
    let Some(mut again) = again(test) else {
        println!("{BEGUN}");
        // Until the parent has closed all.
        io::read_to_string(io::stdin()).unwrap();
        return None;
    };
    let mut child = again.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains(BEGUN)), "it ended before it began");
    drop((child.stderr.take(), child.stdin.take()));
    Some(child.wait().unwrap())
}

/// Returns the command that runs this test in another process; `None` in that process.
fn again(test: &str) -> Option<Command> {
    if std::env::var_os(CHILD).is_some() {
        return None;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
    // What it logs is what is looked at.
    again.env_remove("RUST_LOG").env_remove("AWS_LAMBDA_LOG_LEVEL");
    Some(again)
}
