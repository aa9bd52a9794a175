//! Sending back.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use claimant_operate::dead::{Edit, FieldPath};

use super::*;

async fn redrive(queue: &DeadLetterQueue, selection: &Selection, to: Option<&str>, bounds: Bounds) -> Report {
    queue.redrive(selection, to, &Edit::None, bounds, &mut go_on).await.unwrap()
}

#[tokio::test]
async fn one_group_goes_back_and_the_others_stay() {
    let local = Local::start().await;
    for n in 0..23 {
        let more = "tenant=t-1 claimant-message-id=own claimant-record=order#7 claimant-attempt=2";
        local.copied("dead", &format!("order {n}: no price"), &format!("priced {n:02}"), more);
        local.copied("dead", "no stock", &format!("stocked {n:02}"), "");
    }
    let queue = local.open("dead").await;
    let (priced, _) = read(&queue, &Selection { error: Some("price".to_owned()), ..Selection::default() }, 100).await;
    let group = Selection::groups([priced[0].fingerprint.as_str()]);

    let dry = redrive(&queue, &group, None, Bounds { dry_run: true, ..ALL }).await;
    assert_eq!((dry.progress.done, dry.done[0].queue.as_deref(), &dry.done[0].new_id), (23, Some("orders"), &None));
    assert_eq!((local.depth("dead"), local.depth("orders")), ((46, 0), (0, 0)));
    let some = redrive(&queue, &group, None, Bounds { limit: 3, ..ALL }).await;
    assert_eq!((some.progress.done, some.unseen.any()), (3, true));

    let report = redrive(&queue, &group, None, ALL).await;
    assert_eq!((report.progress.done, report.problem_count, report.came_back), (20, 0, 0));
    assert_eq!((local.depth("dead"), local.depth("orders")), ((23, 0), (23, 0)));
    let back = local.receive("orders", 100).await;
    for message in &back {
        assert!(body(message).starts_with("priced"));
        assert_eq!((said(message, "tenant"), said(message, "claimant-message-id")), (Some("t-1"), Some("own")));
        assert_eq!((said(message, "claimant-redrives"), said(message, "claimant-error")), (Some("1"), None));
    }
    assert!(report.done.iter().chain(&some.done).any(|done| done.new_id.as_deref() == back[0].message_id()));
}

#[tokio::test]
async fn what_sqs_moved_goes_back_to_where_it_came_from_and_counts() {
    let local = Local::start().await;
    local.moved("orders", ["moved"].map(NewMessage::new)).await;
    let queue = local.open("dead").await;
    let moved = Selection { outcome: Some("moved".to_owned()), ..Selection::default() };
    for redrives in ["1", "2"] {
        let report = redrive(&queue, &moved, None, ALL).await;
        assert_eq!(report.done[0].queue.as_deref(), Some("orders"), "{report:?}");
        let back = local.receive("orders", 0).await;
        let message = back.iter().find(|message| body(message) == "moved").unwrap();
        assert_eq!(said(message, "claimant-redrives"), Some(redrives));
        local.moved("orders", []).await;
    }
}

/// An insurer's claimants: no attribute of claimant's, though it begins as they do.
#[tokio::test]
async fn what_only_begins_as_an_attribute_of_ours_is_the_producers() {
    let local = Local::start().await;
    let theirs = MessageAttribute { data_type: "String".to_owned(), value: AttributeValue::Text("c-7".to_owned()) };
    let message_attributes = [("claimant-id".to_owned(), theirs)].into();
    local.moved("orders", [NewMessage { message_attributes, ..NewMessage::new("moved") }]).await;
    let queue = local.open("dead").await;
    let (letters, _) = read(&queue, &Selection::default(), 10).await;
    let shown: Vec<_> = letters[0].attributes().collect();
    assert_eq!(shown, [("claimant-id", "String", Some("c-7"))]);
    assert_eq!(letters[0].to_json(true)["attributes"]["claimant-id"]["text"], "c-7");
    assert_eq!(redrive(&queue, &Selection::default(), None, ALL).await.progress.done, 1);
    let back = local.receive("orders", 100).await;
    assert_eq!((said(&back[0], "claimant-id"), said(&back[0], "claimant-redrives")), (Some("c-7"), Some("1")));
}

#[tokio::test]
async fn a_destination_is_needed_where_several_queues_share_the_dead_letters() {
    let local = Local::start().await;
    local.copied("shared", "no", "copied", "");
    local.moved("refunds", ["moved"].map(NewMessage::new)).await;
    let queue = local.open("shared").await;
    let report = redrive(&queue, &Selection::default(), None, ALL).await;
    assert_eq!((report.progress.done, report.done[0].queue.as_deref()), (1, Some("refunds")));
    assert_eq!(report.problem_count, 1);
    let why = &report.problems[0].why;
    assert!(why.contains("payments, refunds") && why.contains("name the destination"), "{why}");
    assert_eq!(local.depth("shared"), (1, 0));
    let report = redrive(&queue, &Selection::default(), Some(&local.url("payments")), ALL).await;
    assert_eq!((report.progress.done, local.depth("shared"), local.depth("payments")), (1, (0, 0), (1, 0)));

    let alone = local.open("other").await;
    local.copied("other", "no", "copied", "");
    let report = redrive(&alone, &Selection::default(), None, ALL).await;
    assert!(report.problems[0].why.contains("no queue is known that it belongs to"), "{report:?}");
    for (to, wanted) in [("other", "its own destination"), ("nowhere", "there is no queue at")] {
        let error =
            alone.redrive(&Selection::default(), Some(&local.url(to)), &Edit::None, ALL, &mut go_on).await.unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[tokio::test]
async fn bodies_are_edited_on_the_way() {
    let local = Local::start().await;
    for n in 0..3 {
        local.copied("dead", "no currency", &format!(r#"{{"n": {n}.00, "currency": null}}"#), "");
    }
    local.copied("dead", "no currency", "not JSON", "");
    let queue = local.open("dead").await;
    let fields = Edit::Fields(vec![(FieldPath::parse("currency").unwrap(), "\"EUR\"".to_owned())]);
    let report = queue.redrive(&Selection::default(), None, &fields, ALL, &mut go_on).await.unwrap();
    assert_eq!((report.progress.done, report.problem_count), (3, 1));
    assert!(report.problems[0].why.contains("the body is not JSON"), "{report:?}");
    let mut bodies: Vec<_> = local.receive("orders", 100).await.iter().map(|m| body(m).to_owned()).collect();
    bodies.sort();
    assert_eq!(bodies[0], r#"{"n":0.00,"currency":"EUR"}"#);

    let whole = Edit::Body("fixed".to_owned());
    let error = queue.redrive(&Selection::default(), None, &whole, ALL, &mut go_on).await.unwrap_err();
    assert!(error.to_string().contains("name it by its id"), "{error}");
    let id = report.problems[0].message_id.clone();
    let report = queue.redrive(&Selection::ids([id]), None, &whole, ALL, &mut go_on).await.unwrap();
    assert_eq!((report.progress.done, local.depth("dead")), (1, (0, 0)));
    assert!(local.receive("orders", 100).await.iter().any(|message| body(message) == "fixed"));
}

#[tokio::test]
async fn another_body_is_for_one_letter() {
    let local = Local::start().await;
    for n in 0..2 {
        local.copied("dead", "no", &n.to_string(), "claimant-message-id=m-1");
    }
    let queue = local.open("dead").await;
    let whole = Edit::Body("fixed".to_owned());
    let typed = Edit::Typed("fixed".to_owned());
    for (whole, dry_run) in [(&whole, true), (&whole, false), (&typed, true), (&typed, false)] {
        let bounds = Bounds { dry_run, ..ALL };
        let report = queue.redrive(&Selection::ids(["m-1"]), None, whole, bounds, &mut go_on).await.unwrap();
        assert_eq!((report.progress.done, report.problem_count, local.depth("dead")), (0, 2, (2, 0)), "{report:?}");
        assert!(report.problems[0].why.contains("name one by the id that it has now, of"), "{report:?}");
    }
    let (letters, _) = read(&queue, &Selection::default(), 10).await;
    let own = Selection::ids([letters[0].message_id.clone()]);
    let report = queue.redrive(&own, None, &whole, ALL, &mut go_on).await.unwrap();
    assert_eq!((report.progress.done, local.depth("dead"), local.depth("orders")), (1, (1, 0), (1, 0)), "{report:?}");
}

#[tokio::test]
async fn ids_that_no_letter_has_are_told() {
    let local = Local::start().await;
    local.copied("dead", "no", "x", "claimant-message-id=m-1");
    local.copied("dead", "no", "y", "");
    let queue = local.open("dead").await;
    let asked = Selection::ids(["m-1", "none"]);
    let report = queue.redrive(&asked, None, &Edit::None, ALL, &mut go_on).await.unwrap();
    assert_eq!((report.progress.done, report.missing.into_iter().collect::<Vec<_>>()), (1, vec!["none".to_owned()]));
    // A limit that was asked for leaves nothing to tell.
    let limited = Bounds { limit: 0, ..ALL };
    assert!(queue.redrive(&asked, None, &Edit::None, limited, &mut go_on).await.unwrap().missing.is_empty());
}

#[tokio::test]
async fn groups_of_a_fifo_queue_keep_their_order() {
    let local = Local::start().await;
    let message = |n: usize| NewMessage {
        group_id: Some(format!("g{}", n % 2)),
        deduplication_id: Some(n.to_string()),
        ..NewMessage::new(format!("{n:02}"))
    };
    local.moved("moves.fifo", (0..60).map(message)).await;
    assert_eq!(local.depth("dead.fifo"), (60, 0));
    let queue = local.open("dead.fifo").await;
    let report = redrive(&queue, &Selection::default(), None, ALL).await;
    assert_eq!((report.progress.done, report.problem_count, local.depth("dead.fifo")), (60, 0, (0, 0)), "{report:?}");
    let mut bodies: [Vec<String>; 2] = [Vec::new(), Vec::new()];
    loop {
        let messages = local.receive("moves.fifo", 100).await;
        for message in &messages {
            let number: usize = body(message).parse().unwrap();
            bodies[number % 2].push(body(message).to_owned());
            let receipt = message.receipt_handle().unwrap();
            local
                .client
                .delete_message()
                .queue_url(local.url("moves.fifo"))
                .receipt_handle(receipt)
                .send()
                .await
                .unwrap();
        }
        if messages.is_empty() {
            break;
        }
    }
    for group in bodies {
        assert_eq!(group.len(), 30);
        assert!(group.is_sorted(), "{group:?}");
    }
    // A standard queue's letter has no group.
    local.copied("dead", "no", "x", "");
    let report = redrive(&local.open("dead").await, &Selection::default(), Some(&local.url("moves.fifo")), ALL).await;
    assert!(report.problems[0].why.contains("no message group"), "{report:?}");
    assert_eq!(local.depth("dead"), (1, 0));
}

/// SQS shows none that is behind a letter that is hidden, as those are that were read and stay.
#[tokio::test]
async fn what_is_behind_letters_that_stay_may_fit() {
    let local = Local::start().await;
    let message = |group: &str, n: usize, fits: bool| NewMessage {
        group_id: Some(group.to_owned()),
        deduplication_id: Some(format!("{group}{n}")),
        ..NewMessage::new(format!("{{\"fits\":{fits}}}"))
    };
    let of_ada = (0..12).map(|n| message("ada", n, n == 11));
    local.moved("moves.fifo", of_ada.chain([message("bob", 0, true)])).await;
    assert_eq!(local.depth("dead.fifo"), (13, 0));
    let queue = local.open("dead.fifo").await;
    let field = (FieldPath::parse("fits").unwrap(), "true".to_owned());
    let that_fit = Selection { fields: vec![field], ..Selection::default() };
    // A look before an act takes none away, and says nothing of it.
    let look = redrive(&queue, &that_fit, None, Bounds { dry_run: true, ..ALL }).await;
    assert_eq!((look.progress.done, look.unseen.any()), (1, false), "{look:?}");
    let report = redrive(&queue, &that_fit, None, ALL).await;
    assert_eq!((report.progress.done, report.unseen.any(), local.depth("dead.fifo")), (1, true, (12, 0)), "{report:?}");
    let report = queue.discard(&that_fit, ALL, None, &mut go_on).await.unwrap();
    assert_eq!((report.progress.done, report.unseen.any()), (0, true), "{report:?}");
    let (letters, report) = read(&queue, &Selection::default(), 100).await;
    assert_eq!((letters.len(), report.unseen.any()), (10, true), "{report:?}");
    // Where all are taken away, what is behind them comes; and where all were shown, there is no more.
    let report = redrive(&queue, &Selection { fields: Vec::new(), ..that_fit }, None, ALL).await;
    assert_eq!(
        (report.progress.done, report.unseen.any(), local.depth("dead.fifo")),
        (12, false, (0, 0)),
        "{report:?}"
    );
}

/// A full receive may have shown all there is.
#[tokio::test]
async fn where_all_letters_were_shown_there_are_no_more_behind_those_that_stay() {
    let local = Local::start().await;
    let message = |n: usize| NewMessage {
        group_id: Some(format!("g{n}")),
        deduplication_id: Some(n.to_string()),
        ..NewMessage::new(format!("{{\"fits\":{}}}", n < 9))
    };
    local.moved("moves.fifo", (0..10).map(message)).await;
    let queue = local.open("dead.fifo").await;
    let (letters, report) = read(&queue, &Selection::default(), 100).await;
    assert_eq!((letters.len(), report.unseen.any()), (10, false), "{report:?}");
    let field = (FieldPath::parse("fits").unwrap(), "true".to_owned());
    let that_fit = Selection { fields: vec![field], ..Selection::default() };
    let report = redrive(&queue, &that_fit, None, ALL).await;
    assert_eq!((report.progress.done, report.unseen.any(), local.depth("dead.fifo")), (9, false, (1, 0)), "{report:?}");
}

/// What comes after a letter that stayed does not overtake it.
#[tokio::test]
async fn a_letter_that_cannot_be_edited_holds_its_group_back() {
    let local = Local::start().await;
    let message = |n: usize| NewMessage {
        group_id: Some(format!("g{}", n % 2)),
        deduplication_id: Some(n.to_string()),
        ..NewMessage::new(if n == 2 { "no JSON".to_owned() } else { format!("{{\"n\":{n}}}") })
    };
    local.moved("moves.fifo", (0..40).map(message)).await;
    let queue = local.open("dead.fifo").await;
    let edit = Edit::Fields(vec![(FieldPath::parse("currency").unwrap(), "\"EUR\"".to_owned())]);
    let report = queue.redrive(&Selection::default(), None, &edit, ALL, &mut go_on).await.unwrap();
    // All of g1, and of g0 only what came before it. What is looked at is hidden, and hides the rest of its group.
    assert_eq!((report.progress.done, local.depth("moves.fifo").0), (21, 21), "{report:?}");
    let behind = report.problems.iter().filter(|problem| problem.why.contains("earlier letter of its group")).count();
    assert!(behind > 0 && report.problem_count == behind + 1, "{report:?}");
}

/// A consumer that gives up on everything at once, as one does whose fault is not fixed.
async fn give_up_on_all(sqs: Sqs) {
    loop {
        for message in sqs.receive("orders", 10, std::time::Duration::from_secs(20)).await.unwrap() {
            let mut attributes = message.message_attributes.clone();
            for (name, value) in [("claimant-outcome", "rejected"), ("claimant-message-id", &message.message_id)] {
                let value = AttributeValue::Text(value.to_owned());
                attributes.insert(name.to_owned(), MessageAttribute { data_type: "String".to_owned(), value });
            }
            sqs.send("dead", NewMessage { message_attributes: attributes, ..NewMessage::new(message.body) }).unwrap();
            sqs.delete("orders", &message.receipt_handle).unwrap();
        }
    }
}

#[tokio::test]
async fn what_comes_back_at_once_is_not_sent_again() {
    let local = Local::start().await;
    for n in 0..30 {
        local.copied("dead", "no", &n.to_string(), "");
    }
    let mut consumer = JoinSet::new();
    consumer.spawn(give_up_on_all(local.sqs.clone()));
    let queue = local.open("dead").await;
    let report = redrive(&queue, &Selection::default(), None, Bounds { per_s: Some(100), ..ALL }).await;
    assert_eq!((report.progress.done, report.problem_count), (30, 0));
    assert_eq!(report.came_back, 30);
    assert_eq!(local.depth("dead"), (30, 0));
}

/// Has so much time pass at once.
fn pass(time: Duration) {
    tokio::time::pause();
    assert!(pin!(tokio::time::advance(time)).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    tokio::time::resume();
}

/// What was read long ago is shown to others, who send it, too; and who ends an act does not wait for all that was read.
#[tokio::test]
async fn what_was_read_is_sent_while_it_is_hidden_and_nobody_ends_the_act() {
    let thirty = Bounds { limit: 30, ..ALL };
    for (after_the_first, is_ended, problems) in [(Duration::from_secs(100), false, 20), (Duration::ZERO, true, 0)] {
        let local = Local::start().await;
        for n in 0..30 {
            local.copied("dead", "no", &n.to_string(), "");
        }
        let mut calls = 0;
        let mut observer = |_: Progress| {
            calls += 1;
            if calls == 1 {
                pass(after_the_first);
            }
            if is_ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let queue = local.open("dead").await;
        let report = queue.redrive(&Selection::default(), None, &Edit::None, thirty, &mut observer).await.unwrap();
        assert_eq!(
            (report.progress.done, report.problem_count, report.unseen.limited),
            (10, problems, !is_ended),
            "{report:?}"
        );
        let is_slow = |why: &str| why.starts_with("it was not sent, since SQS was slow");
        assert!(report.problems.iter().all(|problem| is_slow(&problem.why) && problem.copied == Some(false)));
        assert_eq!((local.depth("dead"), local.depth("orders")), ((20, 0), (10, 0)));
    }
}
