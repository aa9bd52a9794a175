//! `claimant local` where no one reads what it prints, and where it may open few files.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::cli::{TEMPLATE, claimant, comes, stage, terminate, text};

/// Ends with its test, whatever comes.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A pager, a terminal that was stopped, a supervisor: the reader takes nothing more, and stays.
#[test]
fn who_reads_no_line_keeps_neither_queues_nor_signals_waiting() {
    let stage = stage("unread");
    let (template, printed) = (stage.join("template.yaml"), stage.join("printed"));
    drop(std::fs::remove_file(&printed));
    let event = "Timeout: 30, Events: {All: {Type: SQS, Properties: {Queue: !GetAtt Greetings.Arn}}}";
    std::fs::write(&template, TEMPLATE.replace("Timeout: 3", event)).unwrap();
    // More than any pipe holds, and than is kept for it.
    let script =
        format!("#!/bin/sh\nyes 0123456789012345678 | head -n 120000\n: >'{}'\nexec sleep 1000\n", printed.display());
    std::fs::write(stage.join("greeter"), script).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut local = Command::new(env!("CARGO_BIN_EXE_claimant"));
    local.arg("local").arg("--binaries").arg(&stage).arg("--template").arg(&template).stdin(Stdio::null());
    let mut local = Running(local.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap());
    let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
    let control = lines.find_map(|line| line.strip_prefix("control   ").map(str::to_owned)).unwrap();
    lines.find(|line| line.starts_with("Ready")).unwrap();

    let control = format!("--local={}", control.split(' ').next().unwrap());
    let send = || claimant(&["send", "Greetings", "--body", "x", &control]);
    assert!(send().status.success());
    assert!(comes(|| printed.exists()), "the function waits for the reader of its lines");
    let sent = send();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    terminate(&local.0);
    assert!(comes(|| local.0.try_wait().unwrap().is_some()), "it goes on");
    assert_eq!(local.0.wait().unwrap().code(), Some(0));
    drop(lines);
}

/// The soft limit of macOS is 256, and a workload has more files open.
#[test]
fn the_limit_of_open_files_is_raised_and_one_that_stays_low_is_said() {
    let stage = stage("files");
    let run = |limit: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{limit}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_claimant"), "local", "--quiet"]);
        shell.arg("--template").arg(stage.join("template.yaml")).arg("--binaries").arg(&stage);
        let output = shell.args(["--", "sh", "-c", "ulimit -n"]).stdin(Stdio::null()).output().unwrap();
        (text(&output.stdout).trim().parse().unwrap_or(0), text(&output.stderr))
    };
    let (limit, said) = run("ulimit -S -n 64");
    assert!(limit >= 1_024, "{limit}: {said}");
    assert_eq!(said, "");
    let (limit, said) = run("ulimit -n 128");
    assert!(limit == 128 && said.starts_with("At most 128 files can be open here"), "{limit}: {said}");
    for limit in [12, 14, 16, 18, 20] {
        let (shown, said) = run(&format!("ulimit -n {limit}"));
        assert!(shown == limit || said.contains("Too many open files"), "{limit}: {said}");
        assert!(!said.contains("stop the process"), "{limit}: {said}");
    }
}

#[test]
fn a_directory_for_logs_that_is_not_there_is_named() {
    let stage = stage("no-tmp");
    let mut local = Command::new(env!("CARGO_BIN_EXE_claimant"));
    local.args(["local", "--workload", "1", "--template"]).arg(stage.join("template.yaml"));
    let output = local.env("TMPDIR", "/nowhere/at all").output().unwrap();
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("in /nowhere/at all, the directory for temporary files (TMPDIR): "), "{errors}");
}
