//! Fuzz targets: any event in, any report out.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::HashSet;

use aws_lambda_events::event::sqs::SqsEvent;
use claimant_core::decode::decode_json;
use claimant_core::key::MESSAGE_ID_MAX_BYTES;
use claimant_core::trace::continued;
use claimant_core::{Entry, MessageId, Outcome, Report, Timestamp};
use claimant_testkit::fuzz::{any_text, corpus, hold, json, spoilt};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::event::{QUEUES, Source, batch};
use crate::response::response;
use crate::wire::QueueBatch;

fn usable(id: &str) -> bool {
    (1..=MESSAGE_ID_MAX_BYTES).contains(&id.len())
}

/// A batch has one message for each record, in its place; and none at all where one has no usable id.
fn check(event: SqsEvent) {
    let records = event.records.clone();
    let ids: Vec<_> = records.iter().map(|r| r.message_id.clone().unwrap_or_default()).collect();
    let batch = match batch(event) {
        Ok(batch) => batch,
        Err(error) => {
            let place = ids.iter().position(|id| !usable(id)).expect("a batch was refused for no reason");
            let said = error.to_string();
            let is_of_a_queue = records[place].event_source.as_deref().is_none_or(|source| source == QUEUES);
            let wanted = match (is_of_a_queue, &records[place].message_id) {
                (false, _) => "the event is not a batch of an SQS queue: its records are of ".to_owned(),
                (true, None) => format!("record {} of {} has no messageId: ", place + 1, ids.len()),
                (true, Some(_)) => format!("record {} of {} has no usable messageId (", place + 1, ids.len()),
            };
            assert!(said.starts_with(&wanted), "{said}");
            // Beside the two numbers, what is said has its own words only: an id may be anything.
            assert!(said.is_ascii() && said.len() < 300, "{said}");
            return;
        }
    };
    assert!(ids.iter().all(|id| usable(id)), "a batch with an unusable id");
    assert!(batch.messages.iter().map(|m| m.id().as_str()).eq(ids.iter().map(String::as_str)));
    assert_eq!(batch.receipts.len(), records.len());
    for ((record, message), receipt) in records.iter().zip(&batch.messages).zip(&batch.receipts) {
        let fifo = record.event_source_arn.as_deref().and_then(Source::of_arn).is_some_and(|queue| queue.fifo);
        assert_eq!(message.body(), record.body.clone().unwrap_or_default());
        assert_eq!(message.ordered_group().is_some(), fifo);
        assert_eq!(*receipt, record.receipt_handle);
        assert!(message.receive_count() >= 1);
        if let Some(trace) = message.trace() {
            assert!(trace.starts_with("Root=1-") && trace.len() <= 100 && trace.is_ascii(), "{trace}");
        }
    }
}

#[test]
fn event_bytes() {
    let mut seeds = corpus("events");
    seeds.extend(corpus("corpus/events"));
    hold("events, as bytes", file!(), spoilt(seeds), |bytes| {
        // As the Lambda runtime does; what it cannot decode fails the whole invocation there.
        if let Ok(QueueBatch(event)) = serde_json::from_slice(&bytes.0) {
            check(event);
        }
    });
}

/// A record with what each field may and may not hold.
fn records() -> impl Strategy<Value = Value> {
    let null_or = |value: BoxedStrategy<String>| prop_oneof![1 => Just(Value::Null), 8 => value.prop_map(Value::from)];
    let id = prop_oneof![20 => "[a-c]{1,2}".boxed(), 1 => any_text(0, 2 * MESSAGE_ID_MAX_BYTES).boxed()];
    let count = prop_oneof!["[0-9]{1,12}", "-1", "", "\\PC{0,3}"];
    let trace = prop_oneof![
        "Root=1-[0-9a-f]{8}-[0-9a-f]{24}(;Parent=[0-9a-f]{16})?(;Sampled=[01?])?",
        "(Root|Parent|Self)=[0-9a-f;=-]{0,60}",
        any_text(0, 300),
    ];
    let arn = prop_oneof!["arn:aws(-cn)?:sqs:[a-z]{0,4}:[0-9]{0,3}:[a-z]{0,3}(\\.fifo)?", "[a-z:.]{0,20}", "\\PC{0,9}"];
    let attributes = (null_or(count.boxed()), null_or(any_text(0, 130).boxed()), null_or(trace.boxed()));
    let fields = (null_or(id.boxed()), null_or(any_text(0, 300).boxed()), null_or(arn.boxed()), attributes);
    let odd = prop::collection::vec(("[a-zA-Z]{0,12}", json()), 0..2);
    (fields, odd).prop_map(|((id, body, arn, (count, group, trace)), odd)| {
        let all = [("ApproximateReceiveCount", count), ("MessageGroupId", group), ("AWSTraceHeader", trace)];
        let known = all.into_iter().filter(|(_, value)| !value.is_null());
        let attributes: Map<String, Value> = known.map(|(name, value)| (name.to_owned(), value)).collect();
        let mut record = json!({ "messageId": id, "body": body, "eventSourceARN": arn, "attributes": attributes });
        let fields = record.as_object_mut().expect("it was made as one");
        for (name, value) in odd {
            fields.entry(name).or_insert(value);
        }
        record
    })
}

#[test]
fn event_records() {
    hold("events, as records", file!(), prop::collection::vec(records(), 0..5), |records| {
        check(serde_json::from_value(json!({ "Records": records })).unwrap());
    });
}

#[test]
fn trace_headers() {
    let field = ("(Root|Parent|Sampled|Self| Root)", "[=;]{0,1}", "(1-)?[0-9a-fA-F-]{0,26}|[01?]|\\PC{0,4}");
    let header = prop::collection::vec(field.prop_map(|(name, is, value)| format!("{name}{is}{value}")), 0..5);
    let whole = "Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{15,16};Sampled=[01?2]";
    hold("trace headers", file!(), prop_oneof![header.prop_map(|fields| fields.join(";")), whole], |header| {
        if let Some(trace) = continued(&header) {
            assert!(trace.bytes().all(|b| b.is_ascii_alphanumeric() || b"=;-?".contains(&b)), "{trace}");
            assert_eq!(continued(&trace).as_deref(), Some(trace.as_str()));
        }
    });
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let rejection = decode_json::<()>("x").unwrap_err();
    let rejected = move |dead_lettered| Outcome::Rejected { rejection: rejection.clone(), dead_lettered };
    prop_oneof![
        Just(Outcome::Completed),
        Just(Outcome::Duplicate),
        select(vec![Outcome::Retry, Outcome::Stuck, Outcome::Blocked, Outcome::LeaseLost, Outcome::SettleUnknown]),
        any::<u64>().prop_map(|ms| Outcome::Busy { until: Timestamp::from_millis(ms) }),
        any::<bool>().prop_map(rejected),
        any::<bool>().prop_map(|dead_lettered| Outcome::Parked { dead_lettered }),
    ]
}

/// S7, on the wire.
#[test]
fn responses() {
    let id = prop_oneof!["[a-c]", any_text(1, MESSAGE_ID_MAX_BYTES)];
    hold("responses", file!(), prop::collection::vec((id, outcomes()), 0..12), |entries| {
        let failed: HashSet<_> = entries.iter().filter(|(_, o)| !o.is_success()).map(|(id, _)| id.clone()).collect();
        let entry = |(id, outcome)| Entry::new(MessageId::new(id).unwrap(), outcome);
        let report = Report::new(entries.into_iter().map(entry).collect());
        let text = serde_json::to_vec(&response(&report)).unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        let fields = read.as_object().unwrap();
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["batchItemFailures"]);
        let failures = fields["batchItemFailures"].as_array().unwrap();
        let ids: Vec<_> = failures.iter().map(|f| f["itemIdentifier"].as_str().unwrap().to_owned()).collect();
        assert!(failures.iter().all(|f| f.as_object().unwrap().len() == 1) && ids.iter().all(|id| !id.is_empty()));
        assert_eq!(ids.len(), failed.len(), "each once");
        assert_eq!(ids.into_iter().collect::<HashSet<_>>(), failed);
    });
}
