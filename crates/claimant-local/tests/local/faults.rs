//! Faults on purpose: processes, the table, mails and charges, and the endpoint that switches them.

use std::time::Duration;

use claimant_local::faults::{Act, FaultSpec, Faults, Target, When};
use claimant_local::journal::{InvocationEnd, Journal, ProcessEnd, What};
use claimant_local::lambda::{Function, Invocation};
use serde_json::{Value, json};

use crate::support::{Logs, function, until};

const LONG: Duration = Duration::from_secs(60);

/// A function, and the faults and the journal of its cloud.
struct Bench {
    dir: tempfile::TempDir,
    logs: Logs,
    function: Function,
    faults: Faults,
}

impl Bench {
    fn new() -> Self {
        Self::with(&[("CLAIMANT_LOG_MESSAGES", "on")])
    }

    fn with(variables: &[(&str, &str)]) -> Self {
        let (dir, logs) = (tempfile::tempdir().unwrap(), Logs::default());
        let function = function(dir.path(), &logs, LONG, 1, variables);
        let faults = Faults::new(function.journal());
        faults.set_functions(vec![function.clone()]);
        Self { dir, logs, function, faults }
    }

    fn journal(&self) -> &Journal {
        self.function.journal()
    }

    async fn invoke(&self, event: &Value) -> Invocation {
        self.function.invoke(event.to_string().into_bytes()).await
    }

    fn words(&self) -> Vec<String> {
        let events = self.journal().after(0, 1_000).into_iter();
        let json = events.map(|event| serde_json::to_value(event).unwrap());
        json.map(|json| json["what"].as_str().unwrap().to_owned()).filter(|word| word != "line").collect()
    }
}

fn of_process(act: Act, when: When) -> FaultSpec {
    FaultSpec { function: Some("confirm".to_owned()), when: Some(when), ..FaultSpec::new(act) }
}

#[tokio::test]
async fn a_process_is_killed_once_it_has_a_batch_and_the_next_is_not() {
    let bench = Bench::new();
    let fault = bench.faults.begin(of_process(Act::Kill, When::Batch)).unwrap();
    let Invocation::Crashed { status } = bench.invoke(&json!({"do": "hang"})).await else { panic!("it was killed") };
    assert!(status.contains("signal: 9"), "{status}");
    assert_eq!(bench.invoke(&json!({"do": "echo"})).await, Invocation::Response(br#"{"do":"echo"}"#.to_vec()));
    let ended = bench.faults.all().remove(0);
    assert_eq!((ended.id, ended.acted, ended.is_over()), (fault.id, 1, true));

    let events = bench.journal().after(0, 1_000);
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.what {
            What::InvocationEnded { how, .. } => Some(Err(*how)),
            What::ProcessEnded { why, .. } => Some(Ok(*why)),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [Err(InvocationEnd::Crashed), Ok(ProcessEnd::Killed), Err(InvocationEnd::Returned)]);
    let words = bench.words();
    for word in ["fault_began", "fault_acted", "fault_ended"] {
        assert_eq!(words.iter().filter(|found| *found == word).count(), 1, "{words:?}");
    }
}

#[tokio::test]
async fn a_frozen_process_goes_on_when_the_fault_is_ended() {
    let bench = Bench::new();
    let go = bench.dir.path().join("go");
    let event = json!({"do": "wait", "file": go});
    let act = async {
        let pid: u32 = bench.logs.until("waiting ", 1).await[0].parse().unwrap();
        let spec = FaultSpec { process: Some(pid), frozen_s: Some(900), ..of_process(Act::Freeze, When::Now) };
        let fault = bench.faults.begin(spec).unwrap();
        until("the process is stopped", || is_stopped(pid)).await;
        std::fs::write(&go, "").unwrap();
        assert!(is_stopped(pid), "it does nothing");
        assert!(fault.is_over(), "it has acted, and the process is frozen");
        bench.faults.end(fault.id).unwrap();
    };
    let (answer, ()) = tokio::join!(bench.invoke(&event), act);
    assert!(matches!(answer, Invocation::Response(_)), "{answer:?}");
    let words = bench.words();
    assert!(words.iter().any(|word| word == "process_frozen") && words.iter().any(|word| word == "process_resumed"));
}

fn is_stopped(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ")
}

#[tokio::test]
async fn a_process_stays_frozen_for_its_time_though_its_fault_is_over_before() {
    let bench = Bench::new();
    let spec = FaultSpec { seconds: Some(1), frozen_s: Some(900), ..of_process(Act::Freeze, When::Batch) };
    bench.faults.begin(spec).unwrap();
    let act = async {
        until("a process is stopped", || bench.function.pids().into_iter().any(is_stopped)).await;
        until("its fault is over", || bench.faults.all()[0].is_over()).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(bench.function.pids().into_iter().all(is_stopped), "{:?}", bench.words());
        assert!(bench.faults.end_all().is_empty(), "it is over, and what it froze goes on");
    };
    let event = json!({"do": "echo"});
    let (answer, ()) = tokio::join!(bench.invoke(&event), act);
    assert!(matches!(answer, Invocation::Response(_)), "{answer:?}");
}

#[tokio::test]
async fn a_process_that_is_frozen_again_is_the_later_faults() {
    let bench = Bench::new();
    bench.invoke(&json!({"do": "echo"})).await;
    let pid = bench.function.pids()[0];
    let freeze = |seconds| {
        let spec = FaultSpec { process: Some(pid), frozen_s: Some(seconds), ..of_process(Act::Freeze, When::Now) };
        bench.faults.begin(spec).unwrap().id
    };
    let first = freeze(1);
    bench.faults.end(first).unwrap();
    let second = freeze(900);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    bench.faults.end(first).unwrap();
    until("it is stopped", || is_stopped(pid)).await;
    assert_eq!(bench.words().iter().filter(|word| *word == "process_resumed").count(), 1);
    bench.faults.end(second).unwrap();
    until("it goes on", || !is_stopped(pid)).await;
}

#[tokio::test]
async fn what_is_not_there_cannot_be_met() {
    let bench = Bench::new();
    for (spec, wanted) in [
        (of_process(Act::Kill, When::Now), "confirm has no such process now: it has none"),
        (FaultSpec { function: Some("other".to_owned()), ..FaultSpec::new(Act::Kill) }, "there is confirm"),
        (FaultSpec::new(Act::Refuse), "give mail or gateway"),
    ] {
        let error = bench.faults.begin(spec).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(bench.faults.end(1).is_err() && bench.faults.all().is_empty());
}

#[tokio::test]
async fn a_fault_at_a_claim_is_refused_where_no_line_tells_of_claims() {
    let bench = Bench::with(&[("CLAIMANT_LOG_MESSAGES", "on"), ("RUST_LOG", "warn")]);
    for act in [Act::Kill, Act::Freeze] {
        let error = bench.faults.begin(of_process(act, When::Claim)).unwrap_err().to_string();
        let wanted =
            "confirm writes no line for a claim, which this fault waits for: RUST_LOG=warn. Give batch for when";
        assert!(error.starts_with(wanted), "{error}");
    }
    assert!(bench.faults.all().is_empty());
    bench.faults.begin(of_process(Act::Kill, When::Batch)).unwrap();
}

#[tokio::test]
async fn faults_are_ended_by_hand_all_at_once() {
    let bench = Bench::new();
    let spec = |act, of| FaultSpec { of: Some(of), seconds: Some(3_600), ..FaultSpec::new(act) };
    bench.faults.begin(spec(Act::Refuse, Target::Mail)).unwrap();
    bench.faults.begin(spec(Act::Cut, Target::Table)).unwrap();
    bench.faults.begin(of_process(Act::Kill, When::Claim)).unwrap();
    assert_eq!(bench.faults.end_all().len(), 3);
    assert!(bench.faults.all().iter().all(|fault| fault.is_over() && fault.acted == 0));
    assert!(bench.faults.end_all().is_empty());
}
