//! Messages sent for trying things out, and dead letters that are only looked at.

use std::collections::BTreeMap;

use claimant_core::Timestamp;
use claimant_operate::send::{Batch, Envelope, Sender};

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_795_379_820_123);

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_arrives_whole_and_in_its_order() {
    let local = Local::start().await;
    let sender = Sender::new(local.client.clone(), local.url("other"));
    let batch = Batch {
        count: 13,
        copies: 2,
        shuffle: Some(7),
        attributes: vec![("tenant".to_owned(), "t-1".to_owned())],
        ..Batch::of(r#"{"id": "ord-{n}"}"#)
    };
    let messages = batch.plan("x", NOW, sender.is_fifo()).unwrap();
    let report = sender.send(&batch, &messages).await.unwrap();
    assert_eq!((report.sent, report.ids.len(), report.failed, report.left), (26, 26, 0, 0));
    let stored: Vec<_> = local.sqs.messages("other").unwrap().into_iter().map(|message| message.body).collect();
    assert_eq!(stored, messages.iter().map(|message| message.body.clone()).collect::<Vec<_>>());
    let received = local.sqs.receive("other", 1, std::time::Duration::ZERO).await.unwrap();
    assert_eq!(received[0].message_id, report.ids[0]);
    assert!(received[0].message_attributes.contains_key("tenant"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_copy_gets_through_a_fifo_queue() {
    let local = Local::start().await;
    let sender = Sender::new(local.client.clone(), local.url("moves.fifo"));
    let batch =
        Batch { count: 2, copies: 3, group: Some("g-{n}".to_owned()), envelope: Envelope::Sns, ..Batch::of("{n}") };
    let messages = batch.plan("x", NOW, sender.is_fifo()).unwrap();
    assert_eq!(sender.send(&batch, &messages).await.unwrap().sent, 6);
    // The same once more is sent once more, within the five minutes in which SQS drops what it has seen.
    let again = Batch { count: 1, copies: 1, group: Some("g-again".to_owned()), ..batch.clone() };
    for later_s in [1, 2] {
        let now = NOW.plus(std::time::Duration::from_secs(later_s));
        assert_eq!(sender.send(&again, &again.plan("x", now, true).unwrap()).await.unwrap().sent, 1);
    }
    assert_eq!(local.depth("moves.fifo").0, 8);
    let received = local.sqs.receive("moves.fifo", 6, std::time::Duration::ZERO).await.unwrap();
    let mut groups: BTreeMap<_, usize> = BTreeMap::new();
    for message in &received {
        *groups.entry(message.attributes["MessageGroupId"].as_str()).or_default() += 1;
    }
    assert_eq!(groups, BTreeMap::from([("g-x-1", 3), ("g-x-2", 3)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_confirmed_is_said() {
    let local = Local::start().await;
    let sender = Sender::new(local.client.clone(), local.url("none"));
    let batch = Batch { count: 25, ..Batch::of("secret {n}") };
    let messages = batch.plan("x", NOW, false).unwrap();
    let report = sender.send(&batch, &messages).await.unwrap();
    assert_eq!((report.sent, report.failed, report.left, report.problems.len()), (0, 10, 15, 1));
    assert!(!report.problems[0].contains("secret"), "{report:?}");
    // A message that SQS refuses does not keep the others back.
    let sender = Sender::new(local.client.clone(), local.url("other"));
    let mut messages = Batch { count: 3, ..Batch::of("fine {n}") }.plan("x", NOW, false).unwrap();
    messages[1].body = "\u{b}".to_owned();
    let report = sender.send(&batch, &messages).await.unwrap();
    assert_eq!((report.sent, report.failed, report.left), (2, 1, 0), "{report:?}");
}
