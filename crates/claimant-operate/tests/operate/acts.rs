//! Reading, grouping and discarding.

use std::io;
use std::ops::Range;
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use claimant_core::{ErrorKind, State, Timestamp};
use claimant_operate::dead::{Edit, FieldPath, Groups, MOVED, Origin};
use claimant_operate::keys::record_json;

use super::*;

#[tokio::test]
async fn letters_are_grouped_by_cause_and_stay() {
    let local = Local::start().await;
    for n in 0..25 {
        local.copied("dead", &format!("order ord-{n} has no price"), &format!("{{\"n\":{n}}}"), "");
    }
    local.copied("dead", "no stock", "x", "claimant-outcome=parked claimant-record=order#7 claimant-redrives=2");
    local.moved("orders", ["a", "b"].map(NewMessage::new)).await;
    assert_eq!(local.depth("dead"), (28, 0));

    let queue = local.open("dead").await;
    assert_eq!((queue.depth().visible, queue.sources(), queue.name()), (28, &[local.url("orders")][..], "dead"));
    let (letters, report) = read(&queue, &Selection::default(), 1_000).await;
    assert_eq!((letters.len(), report.progress.looked_at, report.unseen.any()), (28, 28, false));
    assert_eq!(local.depth("dead"), (28, 0));
    let origins = |origin: &Origin| letters.iter().filter(|letter| letter.origin == *origin).count();
    assert_eq!(origins(&Origin::Copied), 26);
    assert_eq!(origins(&Origin::Moved { source: "arn:aws:sqs:us-east-1:000000000000:orders".to_owned() }), 2);

    let mut groups = Groups::default();
    letters.iter().for_each(|letter| groups.add(letter));
    let groups = groups.into_sorted();
    let shown: Vec<_> = groups
        .iter()
        .map(|group| {
            (group.count, group.outcome.as_deref().unwrap(), group.consumer.as_deref().unwrap(), &*group.cause)
        })
        .collect();
    assert_eq!(
        shown,
        [
            (25, "rejected", "order", "order # has no price"),
            (2, MOVED, "orders", "received too often from orders, without a reason given"),
            (1, "parked", "order", "no stock"),
        ]
    );
    assert_eq!((groups[0].examples.len(), groups[2].redriven), (3, 1));

    let selection = Selection::groups([groups[1].fingerprint.as_str()]);
    let (moved, _) = read(&queue, &selection, 1_000).await;
    assert_eq!(moved.iter().map(DeadLetter::body).collect::<Vec<_>>(), ["a", "b"]);
    let field = (FieldPath::parse("n").unwrap(), "7".to_owned());
    let (one, report) = read(&queue, &Selection { fields: vec![field], ..Selection::default() }, 1_000).await;
    assert_eq!((one.len(), report.progress.looked_at), (1, 28));
    assert_eq!(local.depth("dead"), (28, 0));
}

/// Scripts go by what the book says.
#[tokio::test]
async fn each_field_is_in_the_book() {
    let local = Local::start().await;
    local.copied("dead", "no", "{}", "");
    let queue = local.open("dead").await;
    let (letters, _) = read(&queue, &Selection::default(), 10).await;
    let mut groups = Groups::default();
    letters.iter().for_each(|letter| groups.add(letter));
    let report = queue.redrive(&Selection::default(), None, &Edit::None, ALL, &mut go_on).await.unwrap();
    let (id, record) = crate::keys::completed().await;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (what, shown) in [
        ("| a record |", record_json(&id, &record, State::Completed)),
        ("| a dead letter |", letters[0].to_json(true)),
        ("| a group of them |", groups.into_sorted()[0].to_json()),
        ("| a letter that was sent back, or discarded |", report.to_json()["done"][0].clone()),
    ] {
        let row = page.lines().find(|line| line.starts_with(what)).unwrap();
        let fields = row.rsplit_once(" | ").unwrap().1;
        // What some commands add is theirs.
        let own = fields.split("; ").filter(|part| !part.starts_with("of "));
        let listed = own.flat_map(|part| part.split('`').skip(1).step_by(2)).filter(|field| !field.starts_with("--"));
        let mut listed: Vec<_> = listed.map(str::to_owned).collect();
        let mut there: Vec<_> = shown.as_object().unwrap().keys().cloned().collect();
        listed.sort();
        there.sort();
        assert_eq!(listed, there, "{what} docs/commands.md on the left, what is shown on the right");
    }
}

#[tokio::test]
async fn a_limit_and_an_id_end_the_reading_early() {
    let local = Local::start().await;
    for n in 0..30 {
        local.copied("dead", "no", &n.to_string(), "");
    }
    let queue = local.open("dead").await;
    let (letters, report) = read(&queue, &Selection::default(), 5).await;
    assert_eq!((letters.len(), report.progress.looked_at, report.unseen.any()), (5, 5, true));
    let id = letters[0].message_id.clone();
    let (found, report) = read(&queue, &Selection::ids([id.clone()]), 1_000).await;
    assert_eq!((found[0].message_id.as_str(), report.unseen.any()), (id.as_str(), false));
    let (since, _) =
        read(&queue, &Selection { sent_since: Some(Timestamp::from_millis(u64::MAX)), ..Selection::default() }, 1_000)
            .await;
    assert!(since.is_empty());
    let mut pages = 0;
    let report =
        queue.read(&Selection::default(), 1_000, &mut |_| pages += 1, &mut |_| ControlFlow::Break(())).await.unwrap();
    assert!(report.unseen.any() && pages < 31);
    assert_eq!(local.depth("dead"), (30, 0));
}

/// What becomes of a queue once it is opened.
#[derive(Debug, Clone, Copy)]
enum Then {
    Stays,
    OthersCome,
    IsHidden,
    IsDeleted,
    /// Others come, with a delay.
    OthersAreDelayed,
    /// The delay of three more ends, and then something hides ten.
    IsHiddenOnceDue,
}

/// What counts is what is hidden at the end, beside what the walk itself holds: letters that come meanwhile make up for none that was hidden
/// at first.
#[tokio::test]
async fn what_something_else_hides_at_the_end_is_told() {
    let dry_run = Bounds { dry_run: true, ..ALL };
    let mut all = JoinSet::new();
    for (queue, act, is_hidden, then, met, (hidden, delayed)) in [
        ("dead", None, true, Then::Stays, 5, (10, 0)),
        ("dead", None, false, Then::Stays, 15, (0, 0)),
        ("dead", None, true, Then::OthersCome, 17, (10, 0)),
        ("dead", None, true, Then::IsDeleted, 5, (0, 0)),
        ("dead", None, false, Then::IsHidden, 5, (10, 0)),
        ("dead", Some(ALL), true, Then::Stays, 5, (10, 0)),
        ("dead", Some(ALL), false, Then::Stays, 15, (0, 0)),
        ("dead", Some(ALL), false, Then::IsHidden, 5, (10, 0)),
        ("dead", Some(ALL), true, Then::OthersCome, 17, (10, 0)),
        ("dead.fifo", Some(dry_run), true, Then::Stays, 5, (10, 0)),
        ("dead.fifo", Some(dry_run), false, Then::Stays, 15, (0, 0)),
        ("dead", None, false, Then::OthersAreDelayed, 15, (0, 3)),
        ("dead", None, true, Then::OthersAreDelayed, 5, (10, 3)),
        ("dead", Some(ALL), false, Then::OthersAreDelayed, 15, (0, 3)),
        ("dead.fifo", None, false, Then::OthersAreDelayed, 15, (0, 3)),
        ("dead", None, false, Then::IsHiddenOnceDue, 8, (10, 0)),
        ("dead", Some(ALL), false, Then::IsHiddenOnceDue, 8, (10, 0)),
    ] {
        all.spawn(async move {
            let report = after(queue, act, is_hidden, then).await;
            let what = format!("{queue} {act:?} {is_hidden} {then:?}: {report:?}");
            let unseen = report.unseen;
            assert_eq!((report.progress.looked_at, unseen.hidden, unseen.delayed), (met, hidden, delayed), "{what}");
            assert_eq!((unseen.any(), unseen.cut), (hidden + delayed > 0, false), "{what}");
        });
    }
    all.join_all().await;
}

/// Reads or discards a queue's 15 letters, of which something else may hide ten.
async fn after(queue: &str, act: Option<Bounds>, is_hidden: bool, then: Then) -> Report {
    let local = Local::start().await;
    let put = |numbers: Range<usize>| {
        for n in numbers {
            let group = queue.ends_with(".fifo").then(|| format!("g{n}"));
            let message = NewMessage { group_id: group.clone(), deduplication_id: group, ..NewMessage::new("x") };
            local.sqs.send(queue, message).unwrap();
        }
    };
    put(0..15);
    let held = if is_hidden { local.receive(queue, 60).await } else { Vec::new() };
    if matches!(then, Then::IsHiddenOnceDue) {
        for _ in 0..3 {
            // Long enough for the queue to be opened before; if it is not, the same is to be told.
            let message = NewMessage { delay: Some(Duration::from_millis(500)), ..NewMessage::new("x") };
            local.sqs.send(queue, message).unwrap();
        }
    }
    let opened = local.open(queue).await;
    match then {
        Then::Stays => {}
        Then::OthersCome => put(15..27),
        Then::IsHidden => assert_eq!(local.receive(queue, 60).await.len(), 10),
        Then::IsHiddenOnceDue => {
            while local.depth(queue) != (18, 0) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert_eq!(local.receive(queue, 60).await.len(), 10);
        }
        Then::OthersAreDelayed => {
            let request = local.client.set_queue_attributes().queue_url(local.url(queue));
            request.attributes(QueueAttributeName::DelaySeconds, "900").send().await.unwrap();
            put(15..18);
        }
        Then::IsDeleted => {
            for message in &held {
                local.sqs.delete(queue, message.receipt_handle().unwrap()).unwrap();
            }
        }
    }
    match act {
        None => read(&opened, &Selection::default(), 1_000).await.1,
        Some(bounds) => opened.discard(&Selection::default(), bounds, None, &mut go_on).await.unwrap(),
    }
}

#[tokio::test]
async fn what_is_discarded_is_saved_first() {
    let local = Local::start().await;
    for n in 0..12 {
        local.copied("dead", if n < 3 { "bad" } else { "no" }, &format!("body {n}"), "tenant=t");
    }
    let queue = local.open("dead").await;
    let bad = Selection { error: Some("BAD".to_owned()), ..Selection::default() };

    let dry = queue.discard(&bad, Bounds { dry_run: true, ..ALL }, None, &mut go_on).await.unwrap();
    assert_eq!((dry.progress.done, local.depth("dead")), (3, (12, 0)));

    // Some say only when they are flushed that they are full.
    struct Full {
        when_flushed: bool,
    }
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.when_flushed { Ok(bytes.len()) } else { Err(io::ErrorKind::StorageFull.into()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            if self.when_flushed { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
    }
    for when_flushed in [false, true] {
        let error = queue.discard(&bad, ALL, Some(&mut Full { when_flushed }), &mut go_on).await.unwrap_err();
        assert!(error.to_string().contains("not discarded"), "{error}");
        assert_eq!(local.depth("dead"), (12, 0));
    }

    let mut saved = Vec::new();
    let report = queue.discard(&bad, ALL, Some(&mut saved), &mut go_on).await.unwrap();
    assert_eq!((report.progress.done, report.problem_count, local.depth("dead")), (3, 0, (9, 0)));
    let saved = String::from_utf8(saved).unwrap();
    assert_eq!(saved.lines().count(), 3);
    assert!(saved.lines().all(|line| line.contains("\"body\":\"body ") && line.contains("tenant")), "{saved}");
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let local = Local::start().await;
    let error = DeadLetterQueue::open(local.client.clone(), local.url("none")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("there is no queue at") && error.to_string().contains("none"), "{error}");
    let queue = local.open("dead").await;
    let (letters, report) = read(&queue, &Selection::default(), 10).await;
    assert_eq!((letters.len(), report.unseen.any()), (0, false));
    let error = queue.read(&Selection::groups(["x"]), 10, &mut |_| (), &mut go_on).await.unwrap_err();
    assert!(error.to_string().contains("4 to 8 of the digits"), "{error}");
}
