//! Real processes behind the local Lambda runtime API.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{Logs, build, function, until};
use claimant_local::lambda::{EVENT_BYTES_MAX, Function, FunctionCounters, Invocation};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(3);

struct Bench {
    dir: tempfile::TempDir,
    logs: Logs,
    function: Function,
}

fn bench(timeout: Duration, concurrency: usize, variables: &[(&str, &str)]) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let logs = Logs::default();
    let function = function(dir.path(), &logs, timeout, concurrency, variables);
    Bench { dir, logs, function }
}

async fn invoke(function: &Function, event: Value) -> Invocation {
    function.invoke(event.to_string().into_bytes()).await
}

async fn answer(function: &Function, event: Value) -> Value {
    match invoke(function, event).await {
        Invocation::Response(body) => serde_json::from_slice(&body).unwrap(),
        other => panic!("no response but {other:?}"),
    }
}

async fn works(function: &Function) {
    let event = json!({"do": "echo", "text": "ö"});
    assert_eq!(answer(function, event.clone()).await, event);
}

/// Sends a signal; a process that is gone already needs none.
fn signal(pid: u32, signal: Signal) {
    let _ = kill_process(id(pid), signal);
}

fn id(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

/// Whether a child of this process has ended with all its threads. Its state in `/proc` says so too early: it is the first
/// thread's, and the others can still be on their way out, with its sockets open.
fn has_ended(pid: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(id(pid)), options), Ok(None))
}

/// The state of a process or thread, as `ps` shows it; nothing if there is none.
fn state(proc_dir: &Path) -> Option<char> {
    let stat = std::fs::read_to_string(proc_dir.join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether the process still runs; one that its parent has not reaped yet does not.
fn lives(pid: u32) -> bool {
    state(&Path::new("/proc").join(pid.to_string())).is_some_and(|state| state != 'Z')
}

/// A signal stops the threads of a process one by one, each at its own moment.
fn is_paused(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.into_iter().all(|thread| state(&thread.unwrap().path()) == Some('T'))
}

fn error(kind: &str, message: &str) -> Invocation {
    Invocation::FunctionError { kind: kind.to_owned(), message: message.to_owned() }
}

#[allow(clippy::disallowed_methods, reason = "the clock: deadlines are wall-clock headers")]
fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

#[tokio::test]
async fn an_event_arrives_with_lambdas_headers_and_variables() {
    let bench =
        bench(LONG, 1, &[("TABLE", "locks"), ("AWS_LAMBDA_FUNCTION_NAME", "forged"), ("AWS_REGION", "eu-west-1")]);
    let before_ms = now_ms();
    let context = answer(&bench.function, json!({"do": "context"})).await;
    let headers = &context["headers"];
    let deadline_ms: u128 = headers["lambda-runtime-deadline-ms"].as_str().unwrap().parse().unwrap();
    assert!((before_ms + LONG.as_millis()..=now_ms() + LONG.as_millis()).contains(&deadline_ms));
    let arn = "arn:aws:lambda:us-east-1:000000000000:function:confirm";
    assert_eq!(headers["lambda-runtime-invoked-function-arn"], arn);
    assert!(headers["lambda-runtime-trace-id"].as_str().unwrap().starts_with("Root=1-"));

    let env = &context["env"];
    let root = bench.dir.path().canonicalize().unwrap();
    for (name, value) in [
        ("TABLE", "locks"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_LAMBDA_FUNCTION_NAME", "confirm"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/confirm"),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
        ("TZ", ":UTC"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ("LAMBDA_TASK_ROOT", root.to_str().unwrap()),
        ("PATH", std::env::var("PATH").unwrap().as_str()),
    ] {
        assert_eq!(env[name], value, "{name}");
    }
    assert!(env.get("AWS_EXECUTION_ENV").is_none(), "Lambda does not set it for provided runtimes");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO")) {
        assert!(env.get(&name).is_none(), "{name} must not be inherited");
    }
}

#[tokio::test]
async fn a_process_is_used_again_also_after_an_error() {
    let Bench { logs, function, .. } = &bench(LONG, 4, &[]);
    let first = answer(function, json!({"do": "pid"})).await;
    assert_eq!(invoke(function, json!({"do": "error"})).await, error("Boom", "it broke"));
    assert_eq!(answer(function, json!({"do": "pid"})).await, first);
    assert_eq!(function.pids(), [u32::try_from(first.as_u64().unwrap()).unwrap()]);
    let expected = FunctionCounters { invocations: 3, errors: 1, cold_starts: 1, ..FunctionCounters::default() };
    assert_eq!(function.counters(), expected);
    logs.until("done \"error\"", 1).await;
    assert_eq!(logs.until("status ", 3).await, ["202", "202", "202"]);
}

#[tokio::test]
async fn a_timeout_kills_the_process_and_what_it_started() {
    let Bench { logs, function, .. } = &bench(SHORT, 1, &[]);
    assert_eq!(invoke(function, json!({"do": "spawn"})).await, Invocation::TimedOut);
    let grandchild: u32 = logs.until("spawned ", 1).await[0].parse().unwrap();
    assert_eq!(function.pids(), [0; 0]);
    until("the grandchild dies", || !lives(grandchild)).await;
    works(function).await;
    let expected = FunctionCounters { invocations: 2, timeouts: 1, cold_starts: 2, ..FunctionCounters::default() };
    assert_eq!(function.counters(), expected);
}

#[tokio::test]
async fn a_paused_process_times_out_in_mid_invocation_and_idle() {
    let Bench { logs, function, .. } = &bench(SHORT, 1, &[]);
    let (result, ()) = tokio::join!(invoke(function, json!({"do": "hang"})), async {
        let pid: u32 = logs.until("hanging ", 1).await[0].parse().unwrap();
        signal(pid, Signal::STOP);
    });
    assert_eq!(result, Invocation::TimedOut);
    works(function).await;
    let pid = function.pids()[0];
    signal(pid, Signal::STOP);
    until("every thread is paused", || is_paused(pid)).await;
    assert_eq!(invoke(function, json!({"do": "echo"})).await, Invocation::TimedOut);
    assert!(!lives(pid));
    works(function).await;
}

#[tokio::test]
async fn a_process_that_dies_in_mid_invocation_is_a_crash() {
    let Bench { logs, function, .. } = &bench(LONG, 1, &[]);
    let (result, ()) = tokio::join!(invoke(function, json!({"do": "hang"})), async {
        logs.until("hanging ", 1).await;
        signal(function.pids()[0], Signal::KILL);
    });
    assert_eq!(result, Invocation::Crashed { status: "signal: 9 (SIGKILL)".to_owned() });
    let result = invoke(function, json!({"do": "exit"})).await;
    assert_eq!(result, Invocation::Crashed { status: "exit status: 3".to_owned() });
    works(function).await;
    let expected = FunctionCounters { invocations: 3, crashes: 2, cold_starts: 3, ..FunctionCounters::default() };
    assert_eq!(function.counters(), expected);
}

#[tokio::test]
async fn a_process_that_dies_idle_costs_no_invocation() {
    let Bench { function, .. } = &bench(LONG, 1, &[]);
    works(function).await;
    let pid = function.pids()[0];
    signal(pid, Signal::KILL);
    until("it has ended", || has_ended(pid)).await;
    works(function).await;
    assert_eq!(function.counters().crashes, 0);
}

#[tokio::test]
async fn a_failed_init_is_a_function_error() {
    let Bench { dir: _dir, function: exits, .. } = bench(LONG, 1, &[("INIT", "exit")]);
    let expected = "the process ended before it asked for an event: exit status: 7";
    assert_eq!(invoke(&exits, json!({"do": "echo"})).await, error("Runtime.ExitError", expected));
    assert_eq!(invoke(&exits, json!({"do": "echo"})).await, error("Runtime.ExitError", expected));
    let Bench { dir: _dir, function: reports, .. } = bench(LONG, 1, &[("INIT", "error")]);
    assert_eq!(invoke(&reports, json!({"do": "echo"})).await, error("Config", "TABLE is not set"));
}

/// With paused time the seconds pass as soon as everything waits. A start has ten, or the function's timeout where that is longer.
#[tokio::test(start_paused = true)]
async fn an_init_without_end_is_cut() {
    for (timeout, expected) in [(Duration::from_secs(3), "within 10 s"), (LONG, "within 60 s")] {
        let Bench { dir: _dir, function: hangs, .. } = bench(timeout, 1, &[("INIT", "hang")]);
        let expected = format!("the process did not ask for an event {expected}");
        assert_eq!(invoke(&hangs, json!({"do": "echo"})).await, error("Runtime.InitTimeout", &expected));
        assert_eq!(hangs.pids(), [0; 0]);
    }
}

#[tokio::test]
async fn a_response_to_another_request_is_refused() {
    let Bench { function, .. } = &bench(LONG, 1, &[]);
    assert_eq!(answer(function, json!({"do": "stale"})).await, json!({"stale": 400}));
}

#[tokio::test]
async fn sizes_are_bounded_both_ways() {
    let Bench { logs, function, .. } = &bench(LONG, 1, &[]);
    let max = 6 * 1024 * 1024 + 100;
    let large = |bytes: usize| invoke(function, json!({"do": "large", "bytes": bytes}));
    assert_eq!(large(max).await, Invocation::Response(vec![b' '; max]));
    let Invocation::FunctionError { kind, .. } = large(max + 1).await else { panic!("refused") };
    assert_eq!(kind, "Function.ResponseSizeTooLarge");
    assert_eq!(logs.until("status ", 2).await, ["202", "413"]);
    let Invocation::FunctionError { kind, .. } = function.invoke(vec![b' '; EVENT_BYTES_MAX + 1]).await else {
        panic!("refused")
    };
    assert_eq!(kind, "RequestTooLargeException");
    works(function).await;
    assert_eq!(function.counters().cold_starts, 1);
}

#[tokio::test]
async fn invocations_beyond_the_concurrency_wait() {
    let Bench { dir, logs, function } = &bench(LONG, 2, &[]);
    let file = dir.path().join("go");
    let wait = || invoke(function, json!({"do": "wait", "file": &file}));
    let (results, ()) = tokio::join!(async { tokio::join!(wait(), wait(), wait()) }, async {
        logs.until("waiting ", 2).await;
        assert_eq!(function.pids().len(), 2);
        std::fs::write(&file, "").unwrap();
    });
    for result in [results.0, results.1, results.2] {
        assert!(matches!(result, Invocation::Response(_)));
    }
    assert_eq!(function.counters().cold_starts, 2);
}

#[tokio::test]
async fn stopping_cuts_invocations_and_leaves_no_process() {
    let Bench { logs, function, .. } = &bench(LONG, 2, &[]);
    let hang = || invoke(function, json!({"do": "hang"}));
    let (results, ()) = tokio::join!(async { tokio::join!(hang(), hang(), hang()) }, async {
        let pids = logs.until("hanging ", 2).await;
        function.stop().await;
        for pid in pids {
            assert!(!Path::new("/proc").join(pid).exists(), "killed and reaped");
        }
    });
    let stopped = error("Function.Stopped", "the function was stopped");
    assert_eq!([results.0, results.1, results.2], [stopped.clone(), stopped.clone(), stopped.clone()]);
    assert_eq!(function.pids(), [0; 0]);
    assert_eq!(invoke(function, json!({"do": "echo"})).await, stopped);
    function.stop().await;
}

#[tokio::test]
async fn dropping_leaves_no_process() {
    let Bench { dir: _dir, logs, function } = bench(LONG, 2, &[]);
    works(&function).await;
    let idle = function.pids()[0];
    let waiter = tokio::spawn({
        let function = function.clone();
        async move { tokio::join!(invoke(&function, json!({"do": "hang"})), invoke(&function, json!({"do": "hang"}))) }
    });
    let busy: Vec<u32> = logs.until("hanging ", 2).await.iter().map(|pid| pid.parse().unwrap()).collect();
    waiter.abort();
    until("cut invocations die", || busy.iter().all(|pid| !lives(*pid))).await;
    works(&function).await;
    let last = function.pids();
    drop(function);
    until("idle processes die", || !lives(idle) && last.iter().all(|pid| !lives(*pid))).await;
}

#[tokio::test]
async fn a_new_build_is_used_and_running_invocations_of_the_old_one_end() {
    let Bench { dir, logs, function } = &bench(LONG, 2, &[]);
    let (program, go) = (dir.path().join("bootstrap"), dir.path().join("go"));
    works(function).await;
    let (result, ()) = tokio::join!(invoke(function, json!({"do": "wait", "file": &go})), async {
        logs.until("waiting ", 1).await;
        let old = function.pids();
        build(&program, 2);
        function.renew().await;
        assert_eq!(answer(function, json!({"do": "context"})).await["env"]["BUILD"], "2");
        assert!(old.iter().all(|pid| function.pids().contains(pid)), "the old one has an event yet");
        std::fs::write(&go, "").unwrap();
    });
    assert!(matches!(result, Invocation::Response(_)), "{result:?}");
    assert_eq!(answer(function, json!({"do": "context"})).await["env"]["BUILD"], "2");
    assert_eq!(function.pids().len(), 1, "the old process has ended");
    assert_eq!(logs.until("claimant: runs the new build ", 1).await.len(), 1, "said once");
    let FunctionCounters { errors, crashes, timeouts, .. } = function.counters();
    assert_eq!((errors, crashes, timeouts), (0, 0, 0));
}

#[tokio::test]
async fn an_idle_process_of_an_old_build_ends_at_once() {
    let Bench { dir, function, .. } = &bench(LONG, 1, &[]);
    works(function).await;
    let old = function.pids()[0];
    build(&dir.path().join("bootstrap"), 2);
    function.renew().await;
    assert_eq!((function.pids(), lives(old)), (vec![], false));
    assert_eq!(answer(function, json!({"do": "context"})).await["env"]["BUILD"], "2");
}

#[tokio::test]
async fn half_a_build_is_not_run() {
    let Bench { dir, logs, function } = &bench(LONG, 1, &[]);
    let program = dir.path().join("bootstrap");
    let pid = answer(function, json!({"do": "pid"})).await;
    // As a linker does, which writes into the file.
    std::fs::write(&program, "").unwrap();
    function.renew().await;
    function.renew().await;
    assert_eq!(logs.until("claimant: does not run a new build: ", 1).await.len(), 1, "said once");
    assert_eq!(answer(function, json!({"do": "pid"})).await, pid, "the old process goes on");

    signal(function.pids()[0], Signal::KILL);
    until("it has ended", || has_ended(u32::try_from(pid.as_u64().unwrap()).unwrap())).await;
    let (context, ()) = tokio::join!(answer(function, json!({"do": "context"})), async { build(&program, 2) });
    assert_eq!(context["env"]["BUILD"], "2", "the start has waited for the whole file");
    assert_eq!(function.counters().errors, 0);
}

#[tokio::test]
async fn a_build_that_fails_at_its_start_is_said_and_the_next_one_starts_afresh() {
    let Bench { dir, logs, function } = &bench(LONG, 1, &[("INIT", "exit")]);
    for _ in 0..2 {
        invoke(function, json!({"do": "echo"})).await;
    }
    let said = logs.until("claimant: its process ended, ", 2).await;
    assert!(
        said[0].starts_with("1 times in a row now: Runtime.ExitError; the next one starts after 50 ms"),
        "{said:?}"
    );
    assert!(said[1].starts_with("2 times in a row now: ") && said[1].contains("100 ms"), "{said:?}");
    build(&dir.path().join("bootstrap"), 2);
    function.renew().await;
    invoke(function, json!({"do": "echo"})).await;
    assert!(logs.until("claimant: its process ended, ", 3).await[2].starts_with("1 times in a row"));
}
