//! What an invocation answers, and the numbers it shows.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant::dynamodb::{LockTable, Transaction};
use claimant::lambda::{NotDone, Service};
use claimant::memory::MemoryStore;
use claimant::store::StoreErrorKind;
use claimant::{Clock, Consumer, Consumers, Context, HandlerError, Routes, SystemClock, TransactionGuard};
use claimant_core::own_attributes::SENT_AGAIN_OF;
use claimant_local::journal::What;
use claimant_local::sqs::NewMessage;
use claimant_testkit::logs::Logs;
use claimant_testkit::{Call, Fault};
use claimant_tests::dynamodb::DynamoDb;
use serde_json::{Value, json};
use tracing_subscriber::Registry;

use super::world::{QUEUE, Work, World, body, event, failures, invoke, settings, work};

/// What Lambda takes as an answer.
const RESPONSE_MAX_BYTES: usize = 6 * 1_024 * 1_024;

fn alone() -> Service {
    let consumer = Consumer::new("c", MemoryStore::new(), work).key(|w| &w.id);
    Service::with_aws(&settings(&[("CLAIMANT_METRICS", "off")]), consumer, None).unwrap()
}

fn record(id: &str, body: &str) -> Value {
    json!({ "messageId": id, "receiptHandle": "r", "body": body, "eventSourceARN": "arn:aws:sqs:us-east-1:1:orders" })
}

/// S7: ids of this batch, none empty, each once.
#[tokio::test]
async fn each_failure_is_named_once() {
    for (name, messages, wanted) in [
        ("all well", vec![("m1", "a", "ok"), ("m2", "b", "ok")], vec![]),
        ("one fails", vec![("m1", "a", "ok"), ("m2", "b", "fail")], vec!["m2"]),
        ("one message twice, failing", vec![("m1", "a", "fail"), ("m1", "a", "fail")], vec!["m1"]),
        ("one message twice, done", vec![("m1", "a", "ok"), ("m1", "a", "ok")], vec![]),
        ("one id, one of two failing", vec![("m1", "a", "ok"), ("m1", "b", "fail")], vec!["m1"]),
        ("one work in two messages", vec![("m1", "a", "fail"), ("m2", "a", "fail")], vec!["m1", "m2"]),
        ("one key, two payloads", vec![("m1", "a", "ok"), ("m2", "a", "other")], vec!["m2"]),
    ] {
        let records = messages.iter().map(|(id, key, action)| record(id, &body(key, action)));
        let response = invoke(&alone(), event(records.collect())).await.unwrap();
        assert_eq!(failures(&response), wanted, "{name}");
    }
}

/// Without a queue: the response is the answer to whoever asked.
#[tokio::test]
async fn a_direct_event_whose_work_is_not_done_is_an_error() {
    let world = World::start(&[]).await;
    let service = world.service(&[]);
    for (id, action, fault, wanted) in [
        ("a", "ok", None, None),
        ("b", "fail", None, Some("retry")),
        ("c", "panic", None, Some("retry")),
        ("d", "no use", None, Some("rejected")),
        ("e", "ok", Some(Call::Settle), Some("settle_unknown")),
        ("f", "ok", Some(Call::Claim), Some("store_failed")),
        ("f", "ok", None, Some("busy")),
    ] {
        if let Some(call) = fault {
            world.store.fail_next(call, Fault::Applied(StoreErrorKind::Corrupt));
        }
        let event = serde_json::value::to_raw_value(&json!({ "id": id, "do": action })).unwrap();
        let deadline = SystemClock.now().plus(Duration::from_secs(60)).as_millis();
        let answer = service.invoke_directly(&event, &format!("{id}-{action}"), deadline).await;
        assert_eq!(answer.as_ref().err().map(NotDone::outcome), wanted, "{id} {action}: {answer:?}");
    }
}

/// A service whose work fails, of a store that does not read for a first delivery, and the attempts that its handler was told.
async fn failing() -> (Service, Arc<Mutex<Vec<u32>>>) {
    let table = DynamoDb::embedded().await.lock_table("direct").await;
    let attempts = Arc::<Mutex<Vec<u32>>>::default();
    let told = Arc::clone(&attempts);
    let fails = move |_: Work, _: TransactionGuard<Transaction>, cx: Context| {
        told.lock().unwrap().push(cx.attempt());
        async { Err::<(), _>(HandlerError::retry("no luck")) }
    };
    let consumer = Consumer::transactional("c", table.optimistic_transactions(), fails).key(|w| &w.id).attempts_max(2);
    (Service::with_aws(&settings(&[("CLAIMANT_METRICS", "off")]), consumer, None).unwrap(), attempts)
}

/// No queue counts it, so that its record is read for.
#[tokio::test(flavor = "multi_thread")]
async fn a_direct_event_has_as_many_attempts_as_its_key() {
    let (service, attempts) = failing().await;
    let event = serde_json::value::to_raw_value(&json!({ "id": "a", "do": "ok" })).unwrap();
    // Lambda's own second try of what is rejected has its id; another caller's begins anew.
    for (request, wanted) in [("1", "retry"), ("2", "retry"), ("3", "rejected"), ("3", "rejected"), ("4", "retry")] {
        let deadline = SystemClock.now().plus(Duration::from_secs(60)).as_millis();
        let answer = service.invoke_directly(&event, request, deadline).await;
        let not_done = answer.unwrap_err();
        assert_eq!(not_done.outcome(), wanted, "{request}");
        // What is rejected for want of attempts says why they failed.
        assert!(not_done.to_string().contains("no luck") || wanted == "retry", "{not_done}");
    }
    assert_eq!(*attempts.lock().unwrap(), [1, 2, 1]);
}

/// So is that of a message that a schedule sent again, which has the id of the first one, and of one whose queue does not count it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_may_not_be_a_first_delivery_has_as_many_attempts_as_its_key() {
    let first = json!({ "ApproximateReceiveCount": "1" });
    let sent_again = json!({ SENT_AGAIN_OF: { "dataType": "String", "stringValue": "first" } });
    for (system, attributes, wanted) in [(json!({}), json!({}), vec![1, 2, 1]), (first, sent_again, vec![1, 2])] {
        let (service, attempts) = failing().await;
        for id in ["1", "2", "3", "3", "4"] {
            let mut record = record(id, &body("a", "fail"));
            (record["attributes"], record["messageAttributes"]) = (system.clone(), attributes.clone());
            let response = invoke(&service, event(vec![record])).await.unwrap();
            assert_eq!(failures(&response), [id]);
        }
        assert_eq!(*attempts.lock().unwrap(), wanted, "{attributes}");
    }
}

#[tokio::test]
async fn a_record_without_an_id_fails_everything() {
    for id in [json!(null), json!("")] {
        let mut bad = record("m2", &body("b", "ok"));
        bad["messageId"] = id;
        let error = invoke(&alone(), event(vec![record("m1", &body("a", "ok")), bad])).await.unwrap_err();
        assert!(error.to_string().contains("record 2 of 2"), "{error}");
    }
}

/// Fault 30.
#[tokio::test]
async fn ten_thousand_failures_fit_into_an_answer() {
    let id = |n: usize| format!("{n:08}-1111-4222-8333-444444444444");
    let records = (0..10_000).map(|n| record(&id(n), &body(&n.to_string(), "fail")));
    let response = invoke(&alone(), event(records.collect())).await.unwrap();
    let failed: HashSet<_> = failures(&response).into_iter().map(str::to_owned).collect();
    assert_eq!((failed.len(), response.batch_item_failures.len()), (10_000, 10_000));
    assert!((0..10_000).all(|n| failed.contains(&id(n))));
    assert!(serde_json::to_vec(&response).unwrap().len() < RESPONSE_MAX_BYTES);
}

/// What is behind a failure in its FIFO group uses up the same receives.
#[tokio::test]
async fn a_group_behind_a_failure_is_warned_of_once_before_it_is_dead_lettered() {
    let consumer = |name| Consumer::new(name, MemoryStore::new(), work).key(|w: &Work| &w.id);
    let routed = || Routes::by_field("do").on("ok", consumer("good")).on("fail", consumer("bad"));
    let service = |consumers: Consumers| Service::with_aws(&settings(&[]), consumers, None).unwrap();
    for (receives, warned) in [("3", [0, 0]), ("4", [1, 1]), ("5", [1, 1])] {
        for service in [service(consumer("c").into()), service(routed().into())] {
            let logs = Logs::record();
            let record = |(id, group, action): (&str, &str, &str)| {
                let mut record = record(id, &body(id, action));
                record["eventSourceARN"] = json!("arn:aws:sqs:us-east-1:1:orders.fifo");
                record["attributes"] = json!({ "MessageGroupId": group, "ApproximateReceiveCount": receives });
                record
            };
            let batch = [("m1", "g", "fail"), ("m2", "g", "ok"), ("m3", "g", "ok"), ("m4", "h", "fail")];
            let batch = batch.into_iter().chain([("m5", "h", "ok"), ("m6", "i", "ok")]).map(record).collect();
            let response = invoke(&service, event(batch)).await.unwrap();
            assert_eq!(failures(&response), ["m1", "m2", "m3", "m4", "m5"]);
            let lines = |id: &str| {
                let of = |line: &&str| line.contains("waits behind one of its FIFO group") && line.contains(id);
                logs.text().lines().filter(of).count()
            };
            assert_eq!(["m2", "m5"].map(lines), warned, "{receives}: {}", logs.text());
            assert_eq!(["m1", "m3", "m4", "m6"].map(lines), [0; 4], "{}", logs.text());
        }
    }
}

/// What a sink of the function's own does decides nothing: the log has the line then.
#[tokio::test]
async fn a_sink_of_metrics_that_panics_fails_no_batch() {
    let logs = Logs::record();
    let service = alone().metrics(|_: &str| panic!("on purpose"));
    let batch = vec![record("m1", &body("a", "ok")), record("m2", &body("b", "fail"))];
    assert_eq!(failures(&invoke(&service, event(batch)).await.unwrap()), ["m2"]);
    assert!(logs.text().contains("batch done"), "{}", logs.text());
}

#[tokio::test]
async fn a_batch_is_shown_in_numbers() {
    let logs = Logs::record();
    let world = World::start(&[]).await;
    let bodies =
        [body("a", "ok"), body("a", "ok"), body("a", "other"), body("b", "fail"), body("c", "no use"), "{".into()];
    let batch = world.batch(QUEUE, bodies.map(NewMessage::new).to_vec()).await;
    invoke(&world.service(&[]), world.event(QUEUE, &batch)).await.unwrap();
    let records = world.metrics.lock().unwrap().clone();
    let [record] = &records[..] else { panic!("one record for one batch: {records:?}") };
    let counted = [
        ("received", 6),
        ("completed", 1),
        ("duplicate", 1),
        ("conflict", 1),
        ("retry", 1),
        ("rejected", 2),
        ("failed", 4),
    ];
    for (name, count) in counted {
        assert_eq!(record[name], count, "{name} in {record}");
    }
    assert_eq!(record.get("busy"), None, "{record}");
    assert!(record["store_requests"].as_f64().unwrap() > 0.0);
    assert_eq!(record["consumer"], "c");
    let directive = &record["_aws"]["CloudWatchMetrics"][0];
    assert_eq!(directive["Dimensions"], json!([["consumer", "function"]]));
    // It is the line of the batch: the log has no other. Without metrics the log has one, which shows the same.
    assert_eq!(record["message"], "batch done");
    assert!(!logs.text().contains("batch done"), "{}", logs.text());
    let again = World::start(&[]).await;
    invoke(&again.service_without_metrics(again.store.clone()), world.event(QUEUE, &batch)).await.unwrap();
    let logs = logs.text();
    let line = logs.lines().find(|line| line.contains("batch done")).unwrap();
    for (name, count) in counted {
        assert!(line.contains(&format!(" {name}={count} ")), "{name} in {line}");
    }
    assert!(!line.contains("busy") && !line.contains("=0 "), "{line}");
    for private in [&batch[0].receipt_handle, r#""do""#] {
        assert!(!logs.contains(private), "{logs}");
    }
    assert!(record["_aws"]["Timestamp"].as_u64().unwrap() > 1_577_836_800_000);
}

/// What `claimant cost` counts as metrics, by the hours that have such messages.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_billed_is_what_happened() {
    let (dynamodb, world) = (DynamoDb::embedded().await, World::start(&[]).await);
    dynamodb.lock_table("locks").await;
    let table = LockTable::new(dynamodb.client(), "locks");
    let billed_as = |line: &str, bytes: f64| {
        println!("{} bytes, billed as {bytes}", line.len());
        assert!((0.9..1.1).contains(&(line.len() as f64 / bytes)), "{}: {line}", line.len());
    };
    // A step that takes no microsecond has no duration.
    let slowly = |what: Work, cx: Context| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        work(what, cx).await
    };
    let consumer = Consumer::new("order-confirmation", table.clone(), slowly).key(|w: &Work| &w.id);
    let service = world.service_of(&[], consumer);
    for (bodies, now_and_then) in [
        (vec![body("a", "ok")], vec![]),
        (vec![body("a", "ok"), body("b", "ok")], vec!["duplicate"]),
        (vec![body("c", "ok"), body("d", "fail")], vec!["retry"]),
        // Two that are refused together are read.
        (vec![body("a", "ok"), body("b", "ok"), body("e", "ok")], vec!["duplicate", "read_units"]),
    ] {
        let batch = world.batch(QUEUE, bodies.into_iter().map(NewMessage::new).collect()).await;
        invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        let record = world.metrics.lock().unwrap().pop().unwrap();
        let metrics = record["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap().iter();
        let named: BTreeSet<_> = metrics.map(|metric| metric["Name"].as_str().unwrap()).collect();
        let billed = claimant_cost::METRICS.into_iter().chain(now_and_then.iter().copied());
        assert_eq!(named, billed.collect(), "{record}");
        if now_and_then.is_empty() {
            billed_as(&record.to_string(), claimant_cost::RECORD_LOG_BYTES);
        }
    }
    let logs = Logs::record_json();
    let batch = world.batch(QUEUE, vec![NewMessage::new(body("f", "ok"))]).await;
    invoke(&world.service_without_metrics(table), world.event(QUEUE, &batch)).await.unwrap();
    let text = logs.text();
    billed_as(text.lines().find(|line| line.contains("batch done")).unwrap(), claimant_cost::LINE_LOG_BYTES);
}

#[tokio::test]
async fn a_handler_runs_in_a_span_that_continues_its_messages_trace() {
    let whole = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    let _subscriber = tracing::subscriber::set_default(Registry::default());
    for (header, wanted) in [(whole, Some(whole)), ("Root=\n", None)] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let run = move |_: Work, cx: Context| {
            let log = Arc::clone(&log);
            async move {
                let span = tracing::Span::current();
                let fields =
                    span.metadata().map(|m| (m.name(), m.fields().iter().map(|f| f.name()).collect::<Vec<_>>()));
                log.lock().unwrap().push((fields, cx.trace().map(str::to_owned)));
                Ok(())
            }
        };
        let consumer = Consumer::new("c", MemoryStore::new(), run).key(|w| &w.id);
        let service = Service::with_aws(&settings(&[("CLAIMANT_METRICS", "off")]), consumer, None).unwrap();
        let mut message = record("m1", &body("a", "ok"));
        message["attributes"] = json!({ "AWSTraceHeader": header });
        invoke(&service, event(vec![message])).await.unwrap();
        let (fields, trace) = seen.lock().unwrap().pop().unwrap();
        assert_eq!(fields, Some(("message", vec!["consumer", "message_id", "attempt", "trace"])));
        assert_eq!(trace.as_deref(), wanted);
    }
}

#[tokio::test]
async fn what_had_no_turn_is_warned_of_at_its_last_receive_but_one() {
    for (receives, variables, warned) in [
        (3, &[][..], false),
        (4, &[][..], true),
        (4, &[("CLAIMANT_MAX_RECEIVE_COUNT", "10")][..], false),
        (9, &[("CLAIMANT_MAX_RECEIVE_COUNT", "10")][..], true),
        (1, &[("CLAIMANT_MAX_RECEIVE_COUNT", "1")][..], true),
    ] {
        let world = World::start(&[]).await;
        let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "ok"))]).await;
        let mut event = world.event(QUEUE, &batch);
        event.records[0].attributes.insert("ApproximateReceiveCount".to_owned(), receives.to_string());
        let logs = Logs::record();
        let service = world.service(variables);
        let response = service.invoke(event, SystemClock.now().as_millis(), "").await.unwrap();
        assert_eq!(failures(&response.0).len(), 1);
        let text = logs.text();
        assert_eq!(text.contains("message had no turn"), warned, "{receives} {variables:?}: {text}");
    }
}

#[tokio::test]
async fn what_became_of_each_message_is_in_the_logs_where_that_is_asked_for() {
    for on in [true, false] {
        let logs = Logs::record();
        let world = World::start(&[]).await;
        let service = world.service(&[("CLAIMANT_LOG_MESSAGES", if on { "on" } else { "off" })]);
        let bodies = [body("secret-key", "ok"), body("secret-key", "ok"), body("b", "fail"), "{".to_owned()];
        let batch = world.batch(QUEUE, bodies.map(NewMessage::new).to_vec()).await;
        invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        let text = logs.text();
        let lines: Vec<_> = text.lines().filter(|line| line.contains("message done")).collect();
        assert_eq!(lines.len(), if on { 4 } else { 0 }, "{text}");
        // The second follows the first, and the last has no key.
        let claims: Vec<_> = text.lines().filter(|line| line.contains("message claimed")).collect();
        assert_eq!(claims.len(), if on { 2 } else { 0 }, "{text}");
        for claim in claims {
            let read = claimant_local::journal::lines::read(claim);
            let What::Claimed(claimed) = read.what else { panic!("not read: {claim}") };
            assert_eq!((claimed.fence, claimed.attempt, claimed.taken_over), (1, 1, false), "{claim}");
            assert!(claimed.owner.len() == 6 && claimed.lease_until_ms > SystemClock.now().as_millis(), "{claim}");
            assert!(batch.iter().any(|message| read.message_id.as_ref() == Some(&message.message_id)), "{claim}");
            assert!(!claim.contains("secret-key"), "{claim}");
        }
        for (line, (message, wanted)) in lines.iter().zip(batch.iter().zip([
            ("completed", true),
            ("duplicate", false),
            ("retry", true),
            ("rejected", false),
        ])) {
            let (outcome, ran) = wanted;
            assert!(line.contains(&format!("message_id={}", message.message_id)), "{line}");
            assert!(line.contains(&format!("outcome=\"{outcome}\"")) && line.contains("receive_count=1"), "{line}");
            for field in ["attempt=1", "fence=1", "claim_ms=", "handle_ms=", "settle_ms="] {
                assert_eq!(line.contains(field), ran, "{field} in {line}");
            }
            assert!(!line.contains("secret-key"), "{line}");
        }
    }
}
