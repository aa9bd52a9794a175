//! The command as people call it: help, usage errors, and what is missing.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub(crate) fn claimant(args: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_claimant")).args(args).output();
    command.expect("the command runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory with a small template and a file in place of its function's binary.
pub(crate) fn stage(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).expect("the target directory can be written");
    std::fs::write(directory.join("template.yaml"), TEMPLATE).expect("its directory is there");
    let binary = directory.join("greeter");
    std::fs::write(&binary, "").expect("its directory is there");
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
    directory
}

pub(crate) const TEMPLATE: &str = "
Transform: AWS::Serverless-2016-10-31
Resources:
  Greetings: {Type: AWS::SQS::Queue}
  Greeter:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: greeter}}
    Properties: {Handler: bootstrap, Runtime: provided.al2023, Timeout: 3, Environment: {Variables: {GREETING: hello, TONE: warm}}}
";

/// An n in braces is a line break in clap's texts, unless they say otherwise.
#[test]
fn help_shows_the_placeholder_of_messages() {
    let help = text(&claimant(&["send", "--help"]).stdout);
    assert!(help.contains("{n} becomes a number") && help.contains("\"ord-{n}\""), "{help}");
}

#[test]
fn help_tells_everything() {
    let help = claimant(&["local", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    let help = text(&help.stdout);
    let options = [
        "--template",
        "--parameter",
        "--binaries",
        "--data",
        "--dynamodb-port",
        "--sqs-port",
        "--ses-port",
        "--scheduler-port",
        "--gateway-port",
        "--s3-port",
        "--control-port",
        "--function",
        "--function-variables",
        "--quiet",
        "--workload",
        "--seed",
        "--timeout",
        "--logs",
        "<COMMAND>",
        "Exit codes:",
    ];
    for option in options {
        assert!(help.contains(option), "{option} is not in:\n{help}");
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    let table: [(&[&str], &str); 7] = [
        (&[], "Usage: claimant"),
        (&["remote"], "unrecognized subcommand"),
        (&["local", "--sqs-port", "70000"], "--sqs-port"),
        (&["local", "--parameter", "Stage"], "NAME=VALUE"),
        (&["local", "--workload", "0"], "--workload"),
        (&["local", "--seed", "2"], "--workload"),
        (&["local", "--workload", "--timeout", "0"], "whole seconds"),
    ];
    for (args, expected) in table {
        let output = claimant(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(expected), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn what_is_missing_is_named_with_its_fix() {
    let stage = stage("missing");
    let template = stage.join("template.yaml");
    let template = template.to_str().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let here = stage.to_str().unwrap();
    let table: [(&[&str], &[&str]); 6] = [
        (&["--template", "nowhere/template.yaml"], &["nowhere/template.yaml"]),
        (&["--template", template, "--binaries", "nowhere"], &["nowhere/greeter", "cargo build -p greeter"]),
        (&["--template", template, "--function", "Nobody"], &["no function Nobody", "Greeter"]),
        (&["--template", template, "--binaries", here, "--sqs-port", &port], &[&port, "--sqs-port"]),
        (&["--template", template, "--binaries", here, "--workload"], &["order-confirmation", "greeter"]),
        (&["--template", template, "--binaries", here, "--", "./nobody"], &["./nobody cannot be started"]),
    ];
    for (options, expected) in table {
        let output = claimant(&[&["local"], options].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {errors}");
        for part in expected {
            assert!(errors.contains(part), "{options:?}: {part} is not in: {errors}");
        }
    }
}

/// What is read may be a stranger's: a pull request, for one.
#[test]
fn a_template_steers_no_terminal_and_hides_nothing() {
    let stage = stage("hostile");
    let template = stage.join("hostile.yaml");
    let hostile = TEMPLATE.replace("GREETING: hello", r#"CLAIMANT_TABLE: "T\e[31m\u202e\n  - x""#);
    // What counts for nothing there is not looked at.
    let queue = r#"  "O\e[31m\u202e\n  - x": {Type: AWS::SQS::Queue, Metadata: {claimant-doctor: x}}
  Orders: {Type: AWS::SQS::Queue, Properties: {QueueName: "q\e[31m\u202e\n  - x"}}"#;
    std::fs::write(&template, format!("{hostile}{queue}\n")).unwrap();
    let template = template.to_str().unwrap();
    let table: [&[&str]; 5] = [
        &["doctor", "--level", "note"],
        &["doctor", "--level", "note", "--json"],
        &["doctor", "--level", "note", "--format", "sarif"],
        &["cost", "--per-day", "1"],
        &["local"],
    ];
    for args in table {
        let output = claimant(&[args, &["--template", template]].concat());
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')), "{args:?}: {said:?}");
        assert!(!said.lines().any(|line| line.trim_start().starts_with("- x")), "{args:?}: {said}");
        assert!(said.contains("[31m") && said.contains("202e"), "{args:?}: {said}");
    }
}

/// As SAM CLI takes them.
#[test]
fn a_template_that_is_not_named_has_the_first_of_sams_names() {
    let stage = Path::new(env!("CARGO_TARGET_TMPDIR")).join("names");
    // An earlier run may have left it.
    let _ = std::fs::remove_dir_all(&stage);
    std::fs::create_dir_all(&stage).expect("the target directory can be written");
    for name in ["template.json", "template.yml", "template.yaml"] {
        std::fs::write(stage.join(name), TEMPLATE).expect("its directory is there");
        for command in [&["doctor"][..], &["cost", "--per-day", "1"], &["local"]] {
            let mut run = Command::new(env!("CARGO_BIN_EXE_claimant"));
            let output = run.args(command).args(["--parameter", "No=x"]).current_dir(&stage).output();
            let errors = text(&output.expect("the command runs").stderr);
            assert!(errors.starts_with(&format!("error: {name} ")), "{command:?}: {errors}");
        }
    }
}

/// As a person sees a template of another project: what runs, what waits, and what is not run, each before `Ready`.
#[test]
fn what_is_not_run_and_what_is_waited_for_is_told() {
    let stage = Path::new(env!("CARGO_TARGET_TMPDIR")).join("told");
    std::fs::create_dir_all(&stage).expect("the target directory can be written");
    let template = TEMPLATE.to_owned()
        + "  Web: {Type: AWS::Serverless::Function, Properties: {Runtime: nodejs22.x}}\n  Topic: {Type: AWS::SNS::Topic}\n";
    std::fs::write(stage.join("template.yaml"), template.replace("Binary: greeter", "Binary: nobody-builds-this"))
        .unwrap();
    let mut cloud = Command::new(env!("CARGO_BIN_EXE_claimant"))
        .args(["local", "--template", "template.yaml"])
        .current_dir(&stage)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    for line in BufReader::new(cloud.stdout.take().unwrap()).lines() {
        told += &(line.unwrap() + "\n");
        if told.ends_with("Ready. Ctrl-C stops everything.\n") {
            break;
        }
    }
    cloud.kill().unwrap();
    cloud.wait().unwrap();
    for expected in [
        "waiting   function Greeter has no binary at ",
        "`cargo build -p nobody-builds-this`; it starts as soon as the binary is there",
        "not run here: AWS::Serverless::Function Web (template.yaml:9): its runtime is nodejs22.x; ",
        "not run here: AWS::SNS::Topic Topic (template.yaml:10): ",
        "\nunset AWS_PROFILE AWS_DEFAULT_PROFILE AWS_SESSION_TOKEN\nexport ",
        "Ready.",
    ] {
        assert!(told.contains(expected), "`{expected}` is not in:\n{told}");
    }
}

/// As in the project's own directory, from wherever the command is typed; what cargo is told by the environment counts from there.
#[test]
fn programs_are_where_cargo_puts_those_of_the_project() {
    let stage = tempfile::tempdir().unwrap();
    let root = stage.path().canonicalize().unwrap();
    let write = |file: &str, text: &str| {
        std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        std::fs::write(root.join(file), text).unwrap();
    };
    write("template.yaml", &TEMPLATE.replace("Properties: {Handler", "Properties: {CodeUri: code, Handler"));
    let local = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
        command.args(["local", "--function", "greeter", "--template"]).arg(root.join("template.yaml"));
        command.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_BUILD_TARGET_DIR").envs(variables.iter().copied());
        let output = command.current_dir(root.join("here")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    std::fs::create_dir(root.join("here")).unwrap();
    let said = local(&[]);
    assert!(said.contains(": its code code is not there: correct its path, or build it there"), "{said}");

    write("code/Cargo.toml", "[package]\nname = \"greetings\"\nedition = \"2024\"\n[workspace]\n");
    write("code/src/bin/welcome.rs", "fn main() {}\n");
    write("code/src/bin/farewell.rs", "fn main() {}\n");
    let said = local(&[]);
    let names = "cargo knows no binary greeter in code, but farewell, welcome: name the function's as `Binary` of its";
    assert!(said.contains(names), "{said}");

    write("code/src/bin/greeter.rs", "fn main() {}\n");
    write("code/.cargo/config.toml", "[build]\ntarget-dir = \"built\"\n");
    for (variables, target) in [
        (&[][..], "code/built"),
        (&[("CARGO_TARGET_DIR", "near")], "here/near"),
        (&[("CARGO_BUILD_TARGET_DIR", "near")], "here/near"),
        (&[("CARGO_TARGET_DIR", "/far")], "/far"),
    ] {
        let said = local(variables);
        let target = root.join(target).display().to_string();
        let expected =
            format!("no binary at {target}/debug/greeter: build it with `cargo build -p greetings`, or give");
        assert!(said.contains(&expected), "{expected} is not in: {said}");
    }
    // As `build.target` has it.
    write("code/built/riscv64gc-unknown-linux-gnu/debug/greeter", "");
    let foreign = root.join("code/built/riscv64gc-unknown-linux-gnu/debug/greeter");
    std::fs::write(&foreign, [&b"\x7fELF"[..], &[0xee; 60]].concat()).unwrap();
    std::fs::set_permissions(&foreign, std::fs::Permissions::from_mode(0o755)).unwrap();
    let said = local(&[]);
    let expected = format!(
        "({} is for another architecture or system): build it with `cargo build -p greetings --target ",
        foreign.display()
    );
    assert!(said.contains(&expected), "{expected} is not in: {said}");
}

#[test]
fn what_could_not_be_printed_is_not_taken_for_printed() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let command = || Command::new(env!("CARGO_BIN_EXE_claimant"));
    for args in [&["--version"][..], &["local", "--help"]] {
        let output = command().args(args).stdout(full()).output().unwrap();
        let errors = text(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains("error: output could not be written"), "{errors}");
        // A reader that has read enough, as `head` does.
        let (reader, left) = std::io::pipe().unwrap();
        drop(reader);
        let output = command().args(args).stdout(left).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{args:?}");
    }
    let stage = stage("full");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut local = command();
    local.arg("local").args(["--sqs-port", &port.to_string()]).arg("--binaries").arg(&stage);
    local.arg("--template").arg(stage.join("template.yaml"));
    let child = local.stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    terminate(&child);
    let output = child.wait_with_output().unwrap();
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("could not be written to standard output"), "{errors}");
}

/// A template that is long in coming, here from a pipe that stays empty, does not keep the command from stopping.
#[test]
fn a_slow_template_does_not_delay_the_stop() {
    let pipe = stage("pipe").join("pipe.yaml");
    drop(std::fs::remove_file(&pipe));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo can be run").success());
    for (options, expected) in [(&[][..], 0), (&["--workload"], 1)] {
        let mut local = Command::new(env!("CARGO_BIN_EXE_claimant"));
        let local = local.arg("local").arg("--template").arg(&pipe).args(options);
        let child = local.stdout(Stdio::piped()).spawn().unwrap();
        // Opening the other end waits until the command has opened this one: its signals are handled by then.
        let writer = File::options().write(true).open(&pipe).unwrap();
        terminate(&child);
        let output = child.wait_with_output().unwrap();
        drop(writer);
        assert_eq!(output.status.code(), Some(expected), "{options:?}");
        assert!(text(&output.stdout).contains("Stopped before the cloud was ready."), "{options:?}");
    }
}

pub(crate) fn terminate(child: &Child) {
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(sent.expect("kill can be run").success());
}

/// `claimant local OPTIONS -- sh -c SCRIPT`, with the template of `stage`.
fn beside(name: &str, options: &[&str], script: &str) -> Command {
    let stage = stage(name);
    let mut local = Command::new(env!("CARGO_BIN_EXE_claimant"));
    local.args(["local", "--quiet", "--template"]).arg(stage.join("template.yaml")).arg("--binaries").arg(&stage);
    local
        .args(options)
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    local.env("TONE", "cold").env("AWS_ENDPOINT_URL_SQS", "https://sqs.example").env_remove("GREETING");
    local.env("CLAIMANT_LOCAL_URL", "http://127.0.0.1:1");
    // Of a real account, which some SDKs prefer to the access key.
    local.envs(["AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"].map(|name| (name, "prod")));
    local.envs(["AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"].map(|name| (name, "true")));
    local
}

/// Each reads the output to its end, which is when no process of the command holds it open any more.
#[test]
fn a_command_has_the_clouds_variables_and_its_end_is_the_clouds() {
    let table: [(&[&str], &str, i32, &str); 8] = [
        (
            &[],
            "echo \"$AWS_USE_FIPS_ENDPOINT $AWS_USE_DUALSTACK_ENDPOINT $AWS_IGNORE_CONFIGURED_ENDPOINT_URLS\"",
            0,
            "false false false\n",
        ),
        (
            &[],
            "echo \"$AWS_ACCESS_KEY_ID ${AWS_PROFILE-} ${AWS_DEFAULT_PROFILE-} ${AWS_SESSION_TOKEN-}\"",
            0,
            "local   \n",
        ),
        // So that `claimant` works on this cloud, whichever others run here: its control endpoint is Lambda's, too.
        (&[], "test \"$CLAIMANT_LOCAL_URL\" = \"$AWS_ENDPOINT_URL_LAMBDA\"", 0, ""),
        (&[], "test -n \"$AWS_ENDPOINT_URL_SQS\"; exit 7", 7, ""),
        (&[], "echo \"${AWS_ENDPOINT_URL_SQS%:*} $TONE$GREETING\"", 0, "http://127.0.0.1 cold\n"),
        (&["--function-variables"], "echo \"$TONE $GREETING\"", 0, "cold hello\n"),
        (&[], "kill -KILL $$", 137, ""),
        (&[], "sleep 1000 & exit 3", 3, ""),
    ];
    for (options, script, code, printed) in table {
        let output = beside("beside", options, script).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(code), printed), "{script}: {errors}");
    }
}

#[test]
fn sigterm_ends_the_command_and_what_it_started() {
    let script = "trap 'echo told; exit 5' TERM; (trap '' TERM; echo up; exec sleep 1000) & while :; do wait; done";
    let mut local = beside("terminated", &[], script).spawn().unwrap();
    let mut lines = BufReader::new(local.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "up");
    terminate(&local);
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    let output = local.wait_with_output().unwrap();
    assert_eq!((rest, output.status.code()), (vec!["told".to_owned()], Some(5)), "{}", text(&output.stderr));
}

fn signal(signal: &str, process: &str) {
    assert!(Command::new("kill").args(["-s", signal, process]).status().unwrap().success());
}

/// Waits until this holds; returns whether it did before long.
pub(crate) fn comes(mut condition: impl FnMut() -> bool) -> bool {
    (0..1_500).any(|look| {
        std::thread::sleep(std::time::Duration::from_millis(if look == 0 { 0 } else { 20 }));
        condition()
    })
}

/// Whether a process is gone; that no one reaps one that was killed is another matter.
fn is_dead(process: &str) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", process]).output().unwrap().stdout;
    state.first().is_none_or(|state| *state == b'Z')
}

/// Functions are groups of processes of their own, which no terminal tells that it is closed. What `nohup` starts goes on.
#[test]
fn a_closed_terminal_ends_functions_that_are_at_work() {
    let stage = stage("closed");
    let (template, began) = (stage.join("template.yaml"), stage.join("began"));
    let event = "Timeout: 30, Events: {All: {Type: SQS, Properties: {Queue: !GetAtt Greetings.Arn}}}";
    std::fs::write(&template, TEMPLATE.replace("Timeout: 3", event)).unwrap();
    let script = format!("#!/bin/sh\necho $$ >'{0}.new' && mv '{0}.new' '{0}'\nexec sleep 1000\n", began.display());
    std::fs::write(stage.join("greeter"), script).unwrap();
    // This test, too, may have been started by `nohup`.
    for (hangup, ends) in [("DEFAULT", "HUP"), ("IGNORE", "TERM")] {
        drop(std::fs::remove_file(&began));
        let mut cloud = Command::new("perl");
        cloud.args(["-e", "$SIG{HUP} = shift; exec @ARGV", hangup, env!("CARGO_BIN_EXE_claimant"), "local"]);
        cloud.arg("--binaries").arg(&stage);
        let mut cloud = cloud.arg("--template").arg(&template).stdout(Stdio::piped()).spawn().unwrap();
        let id = cloud.id().to_string();
        let mut lines = BufReader::new(cloud.stdout.take().unwrap()).lines().map(Result::unwrap);
        let control = lines.find_map(|line| line.strip_prefix("control   ").map(str::to_owned)).unwrap();
        lines.find(|line| line.starts_with("Ready")).unwrap();
        if hangup == "IGNORE" {
            signal("HUP", &id);
        }
        let local = format!("--local={}", control.split(' ').next().unwrap());
        let sent = claimant(&["send", "Greetings", "--body", "x", &local]);
        assert!(sent.status.success(), "{ends}: {}", text(&sent.stderr));
        assert!(comes(|| began.exists()), "{ends}: the function has not begun");
        let function = std::fs::read_to_string(&began).unwrap();
        assert!(!is_dead(function.trim()));
        signal(ends, &id);
        let ended = cloud.wait().unwrap();
        assert_eq!(ended.code(), Some(0), "{ends}: {ended}");
        assert!(comes(|| is_dead(function.trim())), "{ends}: the function goes on");
    }
}

/// A terminal that is there no more takes no last words.
#[test]
fn a_terminal_that_is_gone_is_no_failure() {
    let stage = stage("gone");
    let status = stage.join("status");
    drop(std::fs::remove_file(&status));
    let (command, directory) = (env!("CARGO_BIN_EXE_claimant"), stage.display());
    // As a shell of a terminal does, it passes the signal on; this one keeps the status, too. The first wait ends at the signal.
    let line = format!(
        "'{command}' local --template '{directory}/template.yaml' --binaries '{directory}' & \
         trap \"kill -s HUP $!\" HUP; wait $!; wait $!; echo $? >'{0}.new' && mv '{0}.new' '{0}'",
        status.display()
    );
    let mut script = Command::new("perl");
    script.args(["-e", "$SIG{HUP} = 'DEFAULT'; exec @ARGV", "script", "--quiet", "--command", &line, "/dev/null"]);
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let shown = BufReader::new(script.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
    assert!(shown.into_iter().any(|line| line.starts_with("Ready")), "it ended before it was ready");
    script.kill().unwrap();
    script.wait().unwrap();
    assert!(comes(|| status.exists()), "it goes on");
    assert_eq!(std::fs::read_to_string(&status).unwrap(), "0\n");
}

#[test]
fn a_data_directory_is_held_by_one_process_and_let_go_by_its_death() {
    let stage = stage("held");
    let data = stage.join("data");
    let local = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
        command.arg("local").arg("--binaries").arg(&stage).arg("--template").arg(stage.join("template.yaml"));
        command.arg("--data").arg(&data);
        command
    };
    let ready = || {
        let mut child = local().stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
        assert!(lines.into_iter().any(|line| line.starts_with("Ready")), "it ended before it was ready");
        child
    };
    let mut first = ready();
    let output = local().output().unwrap();
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains(&format!("in use by process {}", first.id())) && errors.contains("--data"), "{errors}");
    first.kill().unwrap();
    first.wait().unwrap();
    let mut next = ready();
    next.kill().unwrap();
    next.wait().unwrap();
}

/// The command in a world without a local cloud, an account or an operator.
fn operator(args: &[&str]) -> Output {
    let nothing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nothing");
    std::fs::create_dir_all(&nothing).expect("the target directory can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
    command.args(args).env_clear().stdin(Stdio::null());
    // No cloud is announced there.
    command.env("XDG_RUNTIME_DIR", &nothing).env("TMPDIR", &nothing).env("HOME", &nothing);
    command.output().expect("the command runs")
}

/// A process has the number of one whose cloud was killed, and left its file.
#[test]
fn a_cloud_that_is_gone_is_not_found_though_another_process_has_its_number() {
    use std::os::unix::fs::DirBuilderExt as _;
    let runtime = Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime");
    let stage = stage("runtime-stage");
    std::fs::DirBuilder::new().mode(0o700).recursive(true).create(runtime.join("claimant")).unwrap();
    let left = runtime.join("claimant").join(std::process::id().to_string());
    std::fs::write(&left, "http://127.0.0.1:1").unwrap();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
        command.env_clear().env("XDG_RUNTIME_DIR", &runtime).env("TMPDIR", &runtime).env("HOME", &runtime);
        command.stdin(Stdio::null());
        command
    };
    let list = || {
        let output = command().arg("list").output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, errors) = list();
    assert!(code == Some(2) && errors.contains("no local cloud runs here"), "{code:?} {errors}");
    let places = format!("looked for in {0}/claimant and {0}/claimant-", runtime.display());
    assert!(errors.contains(&places), "{errors}");
    assert!(!left.exists());
    let mut local = command();
    local.args(["local", "--template"]).arg(stage.join("template.yaml")).arg("--binaries").arg(&stage);
    let mut local = local.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(local.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("Ready.")));
    let file = runtime.join("claimant").join(local.id().to_string());
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("http://127.0.0.1:"), "{:?}", list());
    let (code, errors) = list();
    assert!(file.exists() && !errors.contains("no local cloud runs here"), "{code:?} {errors}");
    local.kill().unwrap();
    local.wait().unwrap();
    assert!(list().1.contains("no local cloud runs here") && !file.exists());
}

/// As after `su`, in containers and under WSL.
#[test]
fn a_cloud_is_found_where_the_session_has_no_directory() {
    let stage = stage("no-session");
    let (gone, temporary, file) = (stage.join("gone/9999"), stage.join("tmp"), stage.join("greeter"));
    let session = stage.join("session");
    for directory in [&temporary, &session] {
        std::fs::create_dir_all(directory).unwrap();
    }
    // The terminal that looks for it has a directory in the second case, and the cloud's had none.
    for (temporary, looks, found) in [(&temporary, &gone, true), (&temporary, &session, true), (&file, &gone, false)] {
        let command = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
            command.env_clear().env("XDG_RUNTIME_DIR", &gone).env("TMPDIR", temporary).env("HOME", &stage);
            command.stdin(Stdio::null());
            command
        };
        let mut local = command();
        local.args(["local", "--template"]).arg(stage.join("template.yaml")).arg("--binaries").arg(&stage);
        let mut local = local.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(local.stdout.take().unwrap()).lines().map(Result::unwrap);
        let said: Vec<_> = lines.take_while(|line| !line.starts_with("Ready.")).collect();
        let errors = text(&command().env("XDG_RUNTIME_DIR", looks).arg("list").output().unwrap().stderr);
        local.kill().unwrap();
        local.wait().unwrap();
        let hidden =
            said.iter().any(|line| line.starts_with("Commands find this cloud with --local=http://127.0.0.1:"));
        assert_eq!((hidden, errors.contains("no local cloud runs here")), (!found, !found), "{said:?} {errors}");
    }
}

#[test]
fn what_there_is_to_work_on_must_be_said() {
    let table: [(&[&str], &str); 21] = [
        (&["list"], "there is nothing to work on"),
        (&["inspect", "order#1"], "there is nothing to work on"),
        (&["release", "order#1", "--yes"], "there is nothing to work on"),
        (&["tail"], "there is nothing to work on"),
        (&["list", "--queue", "orders"], "there is nothing to work on"),
        (&["list", "--local=http://127.0.0.1:1"], "there is no local cloud at this address"),
        (&["list", "--local=nowhere here"], "is no address"),
        // Whoever forgets --stack means no local cloud.
        (&["list", "--profile", "prod"], "of an AWS account, and a local cloud takes neither"),
        (
            &["pause", "F", "--yes", "--region", "eu-west-1", "--local=http://127.0.0.1:1"],
            "of an AWS account, and a local",
        ),
        (&["pause", "F", "--yes", "--why", "nobody would see it"], "unexpected argument '--why'"),
        (&["dead", "redrive", "--all", "--why", "nor this"], "unexpected argument '--why'"),
        (&["dead", "discard", "--all", "--save", "-"], "write ./-"),
        (&["resolve", "order#1", "--yes", "--why", "the record keeps it"], "there is nothing to work on"),
        (&["list", "--store", "ftp://user:secret@host/"], "begins with none of postgres://"),
        (&["list", "--store", "postgres://u:p@h/d?sslPassword=secret"], "its parameter 1 is none of sslmode"),
        (&["inspect", "c#k", "--store", "valkey://u:secret@127.0.0.1:1"], "Redis gave no answer"),
        (&["list", "--store", "env:NOT_SET"], "the variable NOT_SET is not set"),
        (&["list", "--local", "--store", "redis://host"], "cannot be used with"),
        (&["list", "PARKED"], "[possible values: running, stuck, completed"),
        (&["list", "--older-than", "soon"], "90s or 15m"),
        (&["tail", "--outcome", "timed_out"], "[possible values: completed, duplicate"),
    ];
    for (args, expected) in table {
        let output = operator(args);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
        assert!(errors.contains(expected) && !errors.contains("secret"), "{args:?}: {errors}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
    }
}

#[test]
fn shells_and_manuals_know_every_command() {
    const COMMANDS: [&str; 8] = ["inspect", "list", "release", "reset", "forget", "resolve", "tail", "local"];
    for shell in ["bash", "zsh", "fish"] {
        let output = operator(&["completions", shell]);
        let completions = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0));
        assert!(COMMANDS.iter().all(|command| completions.contains(command)), "{shell}: {completions}");
        // Where the shell is here, it can read them.
        let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("completions.{shell}"));
        std::fs::write(&script, &completions).expect("the target directory can be written");
        if let Ok(read) = Command::new(shell).arg("-n").arg(&script).output() {
            assert!(read.status.success(), "{shell}: {}", text(&read.stderr));
        }
    }
    // What each of them would leave out by itself.
    let fish = text(&operator(&["completions", "fish"]).stdout);
    let offers = |command: &str, values: &str| {
        let begins = format!("complete -c claimant -n \"__fish_claimant_using_subcommand {command}");
        fish.lines().any(|line| line.starts_with(&begins) && line.contains(&format!("-f -a \"{values}")))
    };
    assert!(
        offers("list\"", "running stuck")
            && offers("completions\"", "bash")
            && fish.contains(" completions man\" -f -a \"console cost"),
        "{fish}"
    );
    for (words, expected) in [
        ("list st", "stuck"),
        ("list --local st", "stuck"),
        ("dead list --local --outc", "--outcome"),
        ("doctor --level n", "note"),
        ("doctor --level = n", "note"),
        ("dead redrive --outcome = p", "parked"),
    ] {
        let complete = "source \"$0\"; COMP_WORDS=(claimant \"$@\"); COMP_CWORD=$#; \
                        _claimant claimant \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; echo \"${COMPREPLY[@]}\"";
        let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("completions.bash");
        let output = Command::new("bash").args(["--norc", "-c", complete]).arg(script).args(words.split(' ')).output();
        assert_eq!(text(&output.expect("bash is here").stdout).trim(), expected, "{words}");
    }
    let manuals = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manuals");
    let output = operator(&["man", manuals.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for command in COMMANDS {
        let page = manuals.join(format!("claimant-{command}.1"));
        let page = std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(page.contains(".SH"), "{page}");
    }
}

/// What a template is not, whichever command reads it, is said with the same words: where, what, and how to fix it.
#[test]
fn what_is_no_template_is_refused_in_the_same_words() {
    let stage = stage("no-template");
    let there = |name: &str| stage.join(name).to_str().unwrap().to_owned();
    std::fs::create_dir_all(stage.join("directory")).unwrap();
    for (name, content, says) in [
        ("nowhere.yaml", None, "check that it exists and may be read"),
        ("directory", None, "give the path of an AWS SAM or CloudFormation template"),
        ("empty.yaml", Some(&b""[..]), "has no `Resources`: give the path of"),
        ("text.yaml", Some(b"Buy milk"), "has no `Resources`: give the path of"),
        ("latin.yaml", Some(b"Resources: {} # caf\xe9"), "save it as UTF-8"),
        ("open.yaml", Some(b"\nResources: ["), "open.yaml:2: this cannot be read: unclosed bracket"),
    ] {
        let path = there(name);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let said = [&["doctor"][..], &["cost", "--per-day", "1"], &["local"]].map(|command| {
            let output = claimant(&[command, &["--template", &path]].concat());
            assert_eq!(output.status.code(), Some(2), "{command:?} {name}");
            text(&output.stderr)
        });
        assert!(said[0].contains(&path) && said[0].contains(says), "{name}: {}", said[0]);
        assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
    }
}
