//! Messages from a local queue through an event source mapping to a real process.

use std::collections::HashSet;
use std::time::Duration;

use crate::support::{Logs, build, config, function, until};
use claimant_local::journal::{Event, InvocationEnd, ProcessEnd, What};
use claimant_local::lambda::Function;
use claimant_local::mapping::{Filter, Mapping, MappingCounters, MappingState};
use claimant_local::sqs::{Deduplication, NewMessage, QueueSettings, Sqs};
use claimant_local::stack::MappingSpec;
use serde_json::json;

const LONG: Duration = Duration::from_secs(60);

struct Bench {
    dir: tempfile::TempDir,
    logs: Logs,
    function: Function,
    sqs: Sqs,
    spec: MappingSpec,
}

/// A queue with these bodies, a function with these variables, and a mapping with defaults that reports failures.
fn bench(queue: &str, bodies: &[&str], variables: &[(&str, &str)]) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let logs = Logs::default();
    let function = function(dir.path(), &logs, LONG, 3, variables);
    let sqs = Sqs::with_journal(function.journal().clone());
    let fifo = queue.ends_with(".fifo");
    let settings = QueueSettings {
        fifo,
        deduplication: Deduplication { content_based: fifo, ..Deduplication::default() },
        visibility_timeout: Duration::from_secs(600),
        ..QueueSettings::default()
    };
    sqs.create_queue(queue, settings).unwrap();
    let spec = MappingSpec::new("ConfirmOrders", queue);
    let bench = Bench { dir, logs, function, sqs, spec };
    bodies.iter().for_each(|body| bench.send(body));
    bench
}

impl Bench {
    fn send(&self, body: &str) {
        let mut message = NewMessage::new(body);
        message.group_id = self.spec.queue.ends_with(".fifo").then(|| "group".to_owned());
        self.sqs.send(&self.spec.queue, message).unwrap();
    }

    fn start(&self) -> Mapping {
        Mapping::start(self.spec.clone(), self.sqs.clone(), self.function.clone())
    }

    /// Runs the mapping until it has settled this many deliveries.
    async fn settle(&self, deliveries: u64) -> MappingCounters {
        let mapping = self.start();
        let settled = |counters: MappingCounters| counters.succeeded + counters.failed;
        until("deliveries are settled", || settled(mapping.counters()) >= deliveries).await;
        let counters = mapping.counters();
        mapping.stop().await;
        counters
    }

    fn bodies_left(&self) -> Vec<String> {
        let messages = self.sqs.messages(&self.spec.queue).unwrap();
        messages.into_iter().map(|message| message.body).collect()
    }
}

fn counters(invocations: u64, succeeded: u64, failed: u64, whole_batch_failures: u64) -> MappingCounters {
    MappingCounters { invocations, succeeded, filtered: 0, failed, whole_batch_failures }
}

#[tokio::test]
async fn what_is_reported_stays_and_the_rest_is_deleted() {
    let bench = bench("orders", &["one", "fail two", "three", "fail four"], &[]);
    assert_eq!(bench.settle(4).await, counters(1, 2, 2, 0));
    assert_eq!(bench.bodies_left(), ["fail two", "fail four"]);
    assert_eq!(bench.sqs.depth("orders").unwrap().in_flight, 2, "their visibility is left alone");
}

#[tokio::test]
async fn a_message_is_held_until_its_invocation_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let bench = bench("orders", &["fail one", &format!("wait {}", go.display())], &[]);
    let mapping = bench.start();
    until("the batch is held", || mapping.held().len() == 2).await;
    let in_flight = || bench.sqs.in_flight("orders").unwrap();
    assert_eq!(in_flight().into_iter().map(|seen| seen.message_id).collect::<HashSet<_>>(), mapping.held());
    std::fs::write(go, "").unwrap();
    until("nothing is held", || mapping.held().is_empty()).await;
    let left = in_flight();
    // The queue's visibility timeout, less what the test took.
    assert!(left.len() == 1 && (LONG..=LONG * 10).contains(&left[0].visible_in), "{left:?}");
    mapping.stop().await;
}

#[tokio::test]
async fn without_reporting_everything_is_deleted_on_success_only() {
    let mut bench = bench("orders", &["one", "fail two"], &[]);
    bench.spec.report_batch_item_failures = false;
    assert_eq!(bench.settle(2).await, counters(1, 2, 0, 0));
    assert_eq!(bench.bodies_left(), [""; 0]);
    bench.send("exit");
    bench.send("four");
    assert_eq!(bench.settle(2).await, counters(1, 0, 2, 1));
    assert_eq!(bench.bodies_left(), ["exit", "four"]);
}

#[tokio::test]
async fn an_invalid_response_or_a_crash_leaves_the_whole_batch() {
    let invalid = bench("orders", &["one", "two"], &[("REPLY", r#"{"batchItemFailures": [{"itemIdentifier": ""}]}"#)]);
    assert_eq!(invalid.settle(2).await, counters(1, 0, 2, 1));
    assert_eq!(invalid.bodies_left(), ["one", "two"]);
    let crash = bench("orders", &["one", "exit"], &[]);
    assert_eq!(crash.settle(2).await, counters(1, 0, 2, 1));
    assert_eq!(crash.bodies_left(), ["one", "exit"]);
    assert_eq!(crash.function.counters().crashes, 1);
}

#[tokio::test]
async fn the_journal_tells_what_became_of_a_message_that_killed_its_process() {
    let bench = bench("orders", &["one", "exit"], &[]);
    bench.settle(2).await;
    bench.function.stop().await;
    let journal = bench.function.journal();
    let id = &bench.sqs.messages("orders").unwrap()[1].message_id;
    let events = journal.of_message(id);
    let words = |events: &[Event]| -> Vec<String> {
        let json = events.iter().map(|event| serde_json::to_value(event).unwrap());
        json.map(|json| json["what"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(words(&events), ["sent", "received", "invocation_began", "invocation_ended", "reported"]);
    let What::InvocationEnded { messages, how, detail } = &events[3].what else { panic!("{events:?}") };
    assert_eq!((messages.len(), *how), (2, InvocationEnd::Crashed));
    assert!(detail.as_deref().is_some_and(|detail| detail.contains("exit status")), "{detail:?}");
    assert!(matches!(&events[4].what, What::Reported { failed, why: Some(_), .. } if failed.len() == 2));
    assert!(events[2].process.is_some() && events[2].process == events[3].process);
    assert_eq!(events[2].invocation, events[4].invocation);
    let ends = journal.after(0, 100).into_iter().filter_map(|event| match event.what {
        What::ProcessEnded { why, .. } => Some((why, event.process)),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(ProcessEnd::Died, events[2].process)]);
}

#[tokio::test]
async fn batches_over_ten_are_gathered_until_full_or_until_the_window_ends() {
    let bodies: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let mut bench = bench("orders", &bodies, &[]);
    bench.spec.batch_size = 23;
    bench.spec.window = Duration::from_secs(2);
    assert_eq!(bench.settle(25).await, counters(2, 25, 0, 0));
    assert_eq!(bench.logs.until("batch ", 2).await, ["23", "2"]);
}

#[tokio::test]
async fn what_does_not_fit_one_event_goes_into_the_next() {
    let large = "x".repeat(1024 * 1024);
    let bench = bench("orders", &[large.as_str(); 8], &[("REPLY", "null")]);
    assert_eq!(bench.settle(8).await, counters(2, 8, 0, 0));
    assert_eq!(bench.logs.until("batch ", 2).await, ["5", "3"]);
}

/// Of many small messages, what is beside their bodies is most of an event. What would wait for a second one loses its visibility.
#[tokio::test]
async fn no_more_small_messages_are_gathered_than_fit_one_event() {
    let mut bench = bench("orders", &[], &[("REPLY", "null")]);
    (bench.spec.batch_size, bench.spec.window) = (10_000, Duration::from_secs(10));
    bench.spec.maximum_concurrency = Some(1);
    let (go, body) = (bench.dir.path().join("go"), "x".repeat(200));
    bench.send(&format!("wait {}", go.display()));
    (0..10_000).for_each(|_| bench.send(&body));
    let mapping = bench.start();
    let handed_out = bench.logs.until("batch ", 1).await;
    let held = mapping.held().len();
    assert!(held > 5_000 && handed_out == [held.to_string()], "{held} {handed_out:?}");
    std::fs::write(&go, "").unwrap();
    bench.function.stop().await;
    mapping.stop().await;
}

#[tokio::test]
async fn a_fifo_group_keeps_its_order() {
    let bodies = ["1", "2", "3", "4", "5", "6"];
    let mut bench = bench("orders.fifo", &bodies, &[]);
    bench.spec.batch_size = 2;
    bench.spec.maximum_concurrency = Some(3);
    assert_eq!(bench.settle(6).await, counters(3, 6, 0, 0));
    assert_eq!(bench.logs.until("got ", 6).await, bodies);
}

#[tokio::test]
async fn as_many_batches_are_in_flight_as_allowed_and_stopping_waits_for_them() {
    let mut bench = bench("orders", &[], &[]);
    bench.spec.batch_size = 1;
    let file = bench.dir.path().join("go");
    for _ in 0..3 {
        bench.send(&format!("wait {}", file.display()));
    }
    let mapping = bench.start();
    bench.logs.until("got wait", 2).await;
    assert_eq!(bench.sqs.counters("orders").unwrap().received, 2, "no message waits without an environment");
    let (sqs, stop) = (bench.sqs.clone(), mapping.stop());
    tokio::join!(stop, async {
        std::fs::write(&file, "").unwrap();
    });
    assert_eq!(sqs.counters("orders").unwrap().deleted, 2, "those in flight and no more");
    assert_eq!(sqs.depth("orders").unwrap().in_flight, 0);
}

#[tokio::test]
async fn a_batch_of_one_mapping_is_not_received_while_those_of_another_have_all_processes() {
    let mut bench = bench("orders", &[], &[]);
    (bench.spec.batch_size, bench.spec.maximum_concurrency) = (1, Some(2));
    let other = MappingSpec { queue: "returns".to_owned(), ..bench.spec.clone() };
    bench.sqs.create_queue("returns", QueueSettings::default()).unwrap();
    let (file, queues) = (bench.dir.path().join("go"), ["orders", "returns"]);
    for queue in queues.into_iter().cycle().take(4) {
        bench.sqs.send(queue, NewMessage::new(format!("wait {}", file.display()))).unwrap();
    }
    let mappings = [bench.start(), Mapping::start(other, bench.sqs.clone(), bench.function.clone())];
    bench.logs.until("got wait", bench.function.concurrency()).await;
    let received: u64 = queues.iter().map(|queue| bench.sqs.counters(queue).unwrap().received).sum();
    assert_eq!((received, bench.function.concurrency()), (3, 3), "no message waits without a process");
    std::fs::write(&file, "").unwrap();
    let succeeded = || mappings.iter().map(|mapping| mapping.counters().succeeded).sum::<u64>();
    until("all are done", || succeeded() == 4).await;
    let [first, second] = mappings;
    tokio::join!(first.stop(), second.stop());
}

#[tokio::test]
async fn stopping_the_function_cuts_what_the_mapping_waits_for() {
    let bench = bench("orders", &["hang"], &[]);
    let mapping = bench.start();
    bench.logs.until("got hang", 1).await;
    bench.function.stop().await;
    mapping.stop().await;
    assert_eq!(bench.bodies_left(), ["hang"]);
    assert_eq!(bench.function.pids(), [0; 0]);
}

#[tokio::test]
async fn dropping_cuts_what_is_in_flight() {
    let bench = bench("orders", &["hang"], &[]);
    let mapping = bench.start();
    bench.logs.until("got hang", 1).await;
    drop(mapping);
    until("the process is gone", || bench.function.pids().is_empty()).await;
}

#[tokio::test]
async fn a_disabled_mapping_receives_nothing() {
    let mut bench = bench("orders", &["one"], &[]);
    bench.spec.enabled = false;
    bench.start().stop().await;
    assert_eq!(bench.sqs.counters("orders").unwrap().received, 0);
}

#[tokio::test]
async fn what_fits_no_filter_is_deleted_and_never_reaches_the_function() {
    let bodies = [r#"{"kind": "order"}"#, r#"{"kind": "offer"}"#, r#"{"kind": "bill"}"#, "order"];
    let mut bench = bench("orders", &bodies, &[]);
    let filter = |kind| Filter::new(&json!({"body": {"kind": [kind]}})).unwrap();
    bench.spec.filters = vec![filter("order"), filter("offer")];
    assert_eq!(bench.settle(2).await, MappingCounters { filtered: 2, ..counters(1, 2, 0, 0) });
    assert_eq!(bench.logs.until("got ", 2).await, bodies[..2]);
    assert_eq!(bench.bodies_left(), [""; 0]);
}

#[tokio::test]
async fn messages_wait_for_a_program_that_is_yet_to_be_built() {
    let mut bench = bench("orders", &["one"], &[]);
    let dir = tempfile::tempdir().unwrap();
    bench.function = Function::awaited(config(dir.path(), &bench.logs, LONG, 1, &[])).unwrap();
    let mapping = bench.start();
    assert!(!bench.function.has_program());
    build(&dir.path().join("bootstrap"), 1);
    bench.function.renew().await;
    until("it is delivered", || mapping.counters().succeeded == 1).await;
    mapping.stop().await;
    assert_eq!(bench.sqs.counters("orders").unwrap().received, 1, "no receive was lost");
}

/// A minute passes as soon as everything waits.
#[tokio::test(start_paused = true)]
async fn a_program_that_is_not_built_costs_no_receives() {
    let mut bench = bench("orders", &["one"], &[]);
    let dir = tempfile::tempdir().unwrap();
    bench.function = Function::awaited(config(dir.path(), &bench.logs, LONG, 1, &[])).unwrap();
    let mapping = bench.start();
    tokio::time::sleep(LONG).await;
    bench.function.renew().await;
    assert_eq!(bench.sqs.counters("orders").unwrap().received, 0);
    mapping.stop().await;
}

/// As after `cargo clean`, while a build takes minutes: the mapping was waiting for a message, and its process is gone.
#[tokio::test]
async fn a_program_that_is_gone_costs_no_receives() {
    let bench = bench("orders", &["one"], &[]);
    let mapping = bench.start();
    until("the first is done", || mapping.counters().succeeded == 1).await;
    let program = bench.dir.path().join("bootstrap");
    std::fs::remove_file(&program).unwrap();
    bench.function.pids().into_iter().for_each(|pid| _ = bench.function.kill(pid));
    bench.logs.until("claimant: waits for its program, ", 1).await;
    bench.send("two");
    tokio::time::pause();
    tokio::time::sleep(LONG).await;
    tokio::time::resume();
    assert_eq!(bench.sqs.counters("orders").unwrap().received, 1);
    build(&program, 2);
    until("the second is done", || mapping.counters().succeeded == 2).await;
    assert_eq!(bench.sqs.counters("orders").unwrap().received, 2, "no receive was lost");
    assert_eq!(bench.logs.until("claimant: waits for its program, ", 1).await.len(), 1, "said once");
    mapping.stop().await;
}

#[tokio::test]
async fn a_program_that_goes_while_a_batch_is_gathered_costs_no_more_receives() {
    let mut bench = bench("orders", &["one"], &[]);
    (bench.spec.batch_size, bench.spec.window) = (100, LONG * 5);
    let mapping = bench.start();
    until("the first is there", || mapping.held().len() == 1).await;
    std::fs::remove_file(bench.dir.path().join("bootstrap")).unwrap();
    bench.logs.until("claimant: waits for its program, ", 1).await;
    bench.send("two");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.sqs.counters("orders").unwrap().received, 1);
    bench.function.stop().await;
    mapping.stop().await;
}

#[tokio::test]
async fn a_paused_mapping_leaves_messages_where_they_are() {
    let bench = bench("orders", &["first"], &[]);
    let mapping = bench.start();
    bench.logs.until("got ", 1).await;
    let switch = mapping.switch();
    switch.enable(false);
    until("nothing is in flight", || switch.state() == MappingState::Disabled).await;
    bench.send("second");
    // The next poller would have it by then: it gets what is there at once.
    assert_eq!(bench.sqs.receive("orders", 10, Duration::ZERO).await.unwrap().len(), 1);
    bench.send("third");
    switch.enable(true);
    bench.logs.until("got ", 2).await;
    assert_eq!(switch.state(), MappingState::Enabled);
    let switch = switch.clone();
    mapping.stop().await;
    switch.enable(true);
    assert_eq!(switch.state(), MappingState::Disabled);
}
