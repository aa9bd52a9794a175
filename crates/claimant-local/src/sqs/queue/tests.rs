//! The queue as a table: each case is a queue, and a script of what is done to it and what must come of it.

mod play;
mod random;

use play::Step::*;
use play::{FIFO, STANDARD, Step, check, grouped};

use super::super::message::Received;
use super::super::settings::Deduplication;
use super::super::settings::QueueSettings;
use super::*;

const STALE: Result<Deletion, Code> = Err(Code::InvalidParameterValue);
const EXPIRED: Result<(), Code> = Err(Code::InvalidParameterValue);

#[test]
fn standard_queues() {
    #[rustfmt::skip] // a script reads along the line
    let cases: &[(&str, &[Step])] = &[
        ("a received message is hidden for the visibility timeout", &[
            Send("a"), Receive(1, &["a"]), Count("a", "1"), Depth(0, 1, 0), Next(Some(30_000)), At(29_999),
            Receive(1, &[]), At(30_000), Depth(1, 0, 0), Receive(1, &["a"]), Count("a", "2"),
        ]),
        ("a receive can name its own visibility timeout, zero too", &[
            Send("a"), ReceiveFor(10, 0, &["a"]), ReceiveFor(10, 5, &["a"]), At(4_999), Receive(1, &[]),
            At(5_000), Receive(1, &["a"]), Count("a", "3"),
        ]),
        ("as many as asked for, the longest visible first", &[
            Send("a"), At(1), Send("b"), At(2), Send("c"), Receive(2, &["a", "b"]), Depth(1, 2, 0), At(3),
            Hide("a", 0, 0, Ok(())), Receive(10, &["c", "a"]),
        ]),
        ("a new timeout counts from now, and the next receive has forgotten it", &[
            Send("a"), Receive(1, &["a"]), At(20_000), Hide("a", 0, 60, Ok(())), Next(Some(80_000)), At(79_999),
            Receive(1, &[]), At(80_000), Receive(1, &["a"]), Next(Some(110_000)),
        ]),
        ("a timeout of zero makes the message visible at once", &[
            Send("a"), Receive(1, &["a"]), Hide("a", 0, 0, Ok(())), Depth(1, 0, 0),
            Hide("a", 0, 10, Ok(())), Depth(1, 0, 0), Receive(1, &["a"]),
        ]),
        ("twelve hours from the receive is the end", &[
            Send("a"), Receive(1, &["a"]), Hide("a", 0, 43_200, Ok(())), At(1_000),
            Hide("a", 0, 43_200, Err(Code::InvalidParameterValue)), Hide("a", 0, 43_199, Ok(())),
        ]),
        ("nothing changes once the timeout has ended, and a message that has gone is an error", &[
            Send("a"), Receive(1, &["a"]), At(30_000), Hide("a", 0, 10, Ok(())), Depth(1, 0, 0), Receive(1, &["a"]),
            Delete("a", 1, Ok(Deletion::Deleted)), Hide("a", 1, 10, Err(Code::InvalidParameterValue)),
        ]),
        ("a deletion is for good, and harmless when repeated", &[
            Send("a"), Receive(1, &["a"]), Delete("a", 0, Ok(Deletion::Deleted)), Delete("a", 0, Ok(Deletion::Gone)), At(30_000),
            Receive(1, &[]), Depth(0, 0, 0),
        ]),
        ("an old receipt deletes nothing once a newer one was given", &[
            Send("a"), Receive(1, &["a"]), At(30_000), Receive(1, &["a"]), Delete("a", 0, Ok(Deletion::Stale)),
            Depth(0, 1, 0), At(60_000), Delete("a", 0, Ok(Deletion::Stale)), Depth(1, 0, 0),
            Delete("a", 1, Ok(Deletion::Deleted)), Depth(0, 0, 0),
        ]),
        ("a receipt still deletes after the timeout", &[
            Send("a"), Receive(1, &["a"]), At(30_000), Delete("a", 0, Ok(Deletion::Deleted)), Depth(0, 0, 0),
        ]),
        ("a delayed message comes when its delay has passed", &[
            SendLate("a", 10), Send("b"), Depth(1, 0, 1), Receive(10, &["b"]), Next(Some(10_000)), At(9_999),
            Receive(1, &[]), At(10_000), Depth(1, 1, 0), Receive(1, &["a"]),
        ]),
        ("messages go at the end of the retention, hidden or not", &[
            Send("a"), At(500_000), Send("b"), At(999_999), Receive(1, &["a"]), At(1_000_000), Depth(1, 0, 0),
            Expired(1), Delete("a", 0, Ok(Deletion::Gone)), At(1_500_000), Depth(0, 0, 0), Expired(2),
        ]),
        ("groups order nothing on a standard queue", &[
            SendTo("a", "g", ""), SendTo("b", "g", ""), Receive(1, &["a"]), Receive(1, &["b"]),
        ]),
    ];
    for (case, steps) in cases {
        check(case, STANDARD, None, steps);
    }
}

#[test]
fn fifo_queues() {
    #[rustfmt::skip] // a script reads along the line
    let cases: &[(&str, &[Step])] = &[
        ("one receive gives several messages of a group, in order, and locks it", &[
            SendTo("a", "g", "1"), SendTo("b", "g", "2"), SendTo("c", "g", "3"), Receive(2, &["a", "b"]),
            Receive(10, &[]), Depth(1, 2, 0), Delete("a", 0, Ok(Deletion::Deleted)), Receive(10, &[]),
            Delete("b", 0, Ok(Deletion::Deleted)), Receive(10, &["c"]),
        ]),
        ("a receive fills up from one group before it goes to the next", &[
            SendTo("a", "g", "1"), SendTo("x", "h", "2"), SendTo("b", "g", "3"), SendTo("y", "h", "4"),
            Receive(3, &["a", "b", "x"]), Receive(10, &[]),
        ]),
        ("a locked group does not hold up the others", &[
            SendTo("a", "g", "1"), SendTo("b", "g", "2"), Receive(1, &["a"]), SendTo("x", "h", "3"),
            Receive(10, &["x"]),
        ]),
        ("order is kept when a message comes back", &[
            SendTo("a", "g", "1"), SendTo("b", "g", "2"), Receive(1, &["a"]), Hide("a", 0, 0, Ok(())),
            Receive(10, &["a", "b"]), Count("a", "2"), Count("b", "1"),
        ]),
        ("a message that comes back is received again, though a later one of its group is in flight", &[
            SendTo("a", "g", "1"), SendTo("b", "g", "2"), SendTo("c", "g", "3"), Receive(2, &["a", "b"]),
            Hide("a", 0, 0, Ok(())), Receive(10, &["a"]), Count("a", "2"), Receive(10, &[]),
            Delete("a", 1, Ok(Deletion::Deleted)), Receive(10, &[]), Delete("b", 0, Ok(Deletion::Deleted)), Receive(10, &["c"]),
        ]),
        ("what is in flight holds up what comes after it, visible or not: the first", &[
            SendTo("a", "g", "1"), SendTo("b", "g", "2"), SendTo("c", "g", "3"), Receive(10, &["a", "b", "c"]),
            Hide("a", 0, 60, Ok(())), At(30_000), Depth(2, 1, 0), Receive(10, &[]), At(60_000),
            Receive(10, &["a", "b", "c"]),
        ]),
        ("what is in flight holds up what comes after it, visible or not: the second", &[
            SendTo("a", "g", "1"), SendTo("b", "g", "2"), SendTo("c", "g", "3"), Receive(10, &["a", "b", "c"]),
            Hide("b", 0, 60, Ok(())), At(30_000), Receive(10, &["a"]), Delete("a", 1, Ok(Deletion::Deleted)), Receive(10, &[]),
            At(60_000), Receive(10, &["b", "c"]),
        ]),
        ("what is in flight holds up what comes after it, visible or not: the last", &[
            SendTo("a", "g", "1"), SendTo("b", "g", "2"), SendTo("c", "g", "3"), Receive(10, &["a", "b", "c"]),
            Hide("c", 0, 60, Ok(())), At(30_000), Receive(10, &["a", "b"]), At(60_000),
            Receive(10, &["a", "b", "c"]),
        ]),
        ("a group comes back behind those that have waited longer", &[
            SendTo("a", "g", "1"), SendTo("b", "g", "2"), SendTo("x", "h", "3"), Receive(2, &["a", "b"]), At(1),
            Hide("a", 0, 0, Ok(())), Receive(3, &["x", "a"]),
        ]),
        ("received with no timeout, groups come back behind those that have waited longer", &[
            SendTo("a", "g", "1"), SendTo("x", "h", "2"), SendTo("y", "h", "3"), SendTo("z", "i", "4"),
            SendTo("b", "g", "5"), At(1), ReceiveFor(3, 0, &["a", "b", "x"]), At(2),
            Receive(10, &["z", "a", "b", "x", "y"]),
        ]),
        ("a receipt is worth nothing after the timeout", &[
            SendTo("a", "g", "1"), Receive(1, &["a"]), At(30_000), Delete("a", 0, STALE),
            Hide("a", 0, 10, EXPIRED), Receive(1, &["a"]), Delete("a", 0, STALE),
            Hide("a", 0, 10, EXPIRED), Delete("a", 1, Ok(Deletion::Deleted)),
            Delete("a", 1, Ok(Deletion::Gone)),
        ]),
        ("a repeat within five minutes of the first send is swallowed, even after deletion", &[
            SendTo("a", "g", "1"), Repeat("a2", "g", "1", "a"), Receive(10, &["a"]), Delete("a", 0, Ok(Deletion::Deleted)),
            At(299_999), Repeat("a3", "h", "1", "a"), Receive(10, &[]), At(300_000), SendTo("a4", "g", "1"),
            Receive(10, &["a4"]),
        ]),
        ("a repeat does not lengthen the window", &[
            SendTo("a", "g", "1"), At(200_000), Repeat("b", "g", "1", "a"), At(300_000), SendTo("c", "g", "1"),
            At(599_999), Repeat("d", "g", "1", "c"), At(600_000), SendTo("e", "g", "1"),
        ]),
    ];
    for (case, steps) in cases {
        check(case, FIFO, None, steps);
    }
}

#[test]
fn settings_of_the_queue() {
    let late = QueueSettings { delay: Duration::from_secs(5), ..STANDARD };
    #[rustfmt::skip]
    check("the queue's delay, and a message's own, zero too", late.clone(), None, &[
        Send("a"), SendLate("b", 0), SendLate("c", 1), Receive(10, &["b"]), At(1_000), Receive(10, &["c"]),
        At(5_000), Receive(10, &["a"]),
    ]);
    #[rustfmt::skip]
    check("a delay keeps the order of a FIFO queue", QueueSettings { fifo: true, ..late }, None, &[
        SendTo("a", "g", "1"), At(1_000), SendTo("b", "g", "2"), Receive(10, &[]), At(5_000),
        Receive(10, &["a"]), At(6_000), Receive(10, &[]), Delete("a", 0, Ok(Deletion::Deleted)), Receive(10, &["b"]),
    ]);
    let by_content =
        QueueSettings { deduplication: Deduplication { content_based: true, ..Deduplication::default() }, ..FIFO };
    #[rustfmt::skip]
    check("the body is the deduplication id", by_content, None, &[
        SendTo("a", "g", ""), Repeat("a", "h", "", "a"), SendTo("b", "g", ""), SendTo("b2", "g", "own"),
        Receive(10, &["a", "b", "b2"]),
    ]);
}

#[test]
fn redrive() {
    #[rustfmt::skip]
    check("the receive after the last allowed one moves the message", STANDARD, Some(2), &[
        Send("a"), Receive(1, &["a"]), At(30_000), Receive(1, &["a"]), At(60_000), Depth(1, 0, 0),
        Receive(1, &[]), Dead(&["a"]), Depth(0, 0, 0), Delete("a", 1, Ok(Deletion::Gone)),
    ]);
    #[rustfmt::skip]
    check("a receive goes on past the dead", STANDARD, Some(1), &[
        Send("a"), Send("b"), Receive(1, &["a"]), Hide("a", 0, 0, Ok(())), At(1), Send("c"),
        Receive(2, &["b", "c"]), Dead(&["a"]),
    ]);
    #[rustfmt::skip]
    check("the rest of a FIFO group follows at once", FIFO, Some(1), &[
        SendTo("a", "g", "1"), SendTo("b", "g", "2"), SendTo("c", "g", "3"), SendTo("x", "h", "4"),
        Receive(2, &["a", "b"]), At(30_000), Receive(10, &["x", "c"]), Dead(&["a", "b"]),
    ]);
    #[rustfmt::skip]
    check("a dead message of a FIFO group goes though a later one is in flight", FIFO, Some(1), &[
        SendTo("a", "g", "1"), SendTo("b", "g", "2"), SendTo("c", "g", "3"), Receive(2, &["a", "b"]),
        Hide("a", 0, 0, Ok(())), Receive(10, &[]), Dead(&["a"]), Depth(1, 1, 0), Delete("b", 0, Ok(Deletion::Deleted)),
        Receive(10, &["c"]),
    ]);
}

#[test]
fn messages_between_queues() {
    let mut source = Queue::new("source".to_owned(), Attributes::new(STANDARD), 0);
    let mut dead = Queue::new("dead".to_owned(), Attributes::new(STANDARD), 0);
    let ask = Ask { max: 1, visibility: Some(Duration::ZERO), max_receive_count: Some(1) };
    source.send(5, "first".to_owned(), NewMessage::new("a")).unwrap();
    source.receive(10, ask).unwrap();
    let message = source.receive(20, ask).unwrap().dead.remove(0);
    dead.take_dead(20, "arn:aws:sqs:us-east-1:000000000000:source", message);

    let received = dead.receive(30, ask).unwrap().received.remove(0);
    let attribute = |received: &Received, name: &str| received.attributes.get(name).cloned();
    assert_eq!(received.message_id, "first");
    for (name, expected) in [
        ("SentTimestamp", "5"),
        ("ApproximateFirstReceiveTimestamp", "10"),
        ("ApproximateReceiveCount", "2"),
        ("DeadLetterQueueSourceArn", "arn:aws:sqs:us-east-1:000000000000:source"),
    ] {
        assert_eq!(attribute(&received, name).as_deref(), Some(expected), "{name}");
    }
    // Handles are good for the queue that gave them, and no other.
    let foreign = source.delete(30, &received.receipt_handle).unwrap_err();
    assert_eq!(foreign.code, Code::ReceiptHandleIsInvalid);

    let message = dead.take_first_visible(40).unwrap();
    source.take_redriven(40, "second".to_owned(), message, "dead");
    let received = source.receive(50, ask).unwrap().received.remove(0);
    assert_eq!(received.message_id, "second");
    assert_eq!(attribute(&received, "SentTimestamp").as_deref(), Some("40"));
    assert_eq!(attribute(&received, "ApproximateReceiveCount").as_deref(), Some("1"));
    assert_eq!(attribute(&received, "DeadLetterQueueSourceArn"), None);
}

#[test]
fn retention_after_a_move_counts_from_the_sending_or_on_fifo_queues_from_the_move() {
    for (settings, left) in [(STANDARD, 0), (FIFO, 1)] {
        let mut source = Queue::new("source".to_owned(), Attributes::new(settings.clone()), 0);
        let mut dead = Queue::new("dead".to_owned(), Attributes::new(settings.clone()), 0);
        let message = if settings.fifo { grouped("a", "g", "1") } else { NewMessage::new("a") };
        source.send(0, "id".to_owned(), message).unwrap();
        let message = source.take_first_visible(900_000).unwrap();
        dead.take_dead(900_000, "arn", message);
        assert_eq!(dead.depth(1_000_000).visible, left, "fifo: {}", settings.fifo);
    }
}

#[test]
fn a_new_delay_reaches_back_on_fifo_queues_only() {
    for (settings, visible_at_1s) in [(STANDARD, 0), (FIFO, 1)] {
        let late = QueueSettings { delay: Duration::from_secs(5), ..settings.clone() };
        let mut queue = Queue::new("queue".to_owned(), Attributes::new(late), 0);
        let message = if settings.fifo { grouped("a", "g", "1") } else { NewMessage::new("a") };
        queue.send(0, "id".to_owned(), message).unwrap();
        let sooner = QueueSettings { delay: Duration::from_secs(1), ..settings.clone() };
        queue.set_attributes(0, Attributes::new(sooner));
        assert_eq!(queue.depth(1_000).visible, visible_at_1s, "fifo: {}", settings.fifo);
    }
}

#[test]
fn sequence_numbers_grow_and_have_twenty_digits() {
    let mut queue = Queue::new("queue".to_owned(), Attributes::new(FIFO), 0);
    let mut send = |id: &str| {
        let sent = queue.send(0, format!("id-{id}"), grouped("a", "g", id)).unwrap();
        sent.sequence_number.unwrap()
    };
    let (first, second, repeat) = (send("1"), send("2"), send("1"));
    assert!(first < second && first.len() == 20 && second.len() == 20, "{first} {second}");
    assert_eq!(first, repeat);
}

#[test]
fn in_flight_limit() {
    assert_eq!(IN_FLIGHT_MAX, 120_000);
    for (settings, expected) in [(STANDARD, Err(Code::OverLimit)), (FIFO, Ok(0))] {
        let mut queue = Queue::new("queue".to_owned(), Attributes::new(settings.clone()), 0);
        queue.in_flight_max = 2;
        for id in ["1", "2", "3"] {
            let message = if settings.fifo { grouped("a", id, id) } else { NewMessage::new("a") };
            queue.send(0, id.to_owned(), message).unwrap();
        }
        let ask = Ask { max: 10, visibility: None, max_receive_count: None };
        assert_eq!(queue.receive(0, ask).unwrap().received.len(), 2);
        let refused = queue.receive(0, ask).map(|handout| handout.received.len());
        assert_eq!(refused.map_err(|fault| fault.code), expected, "fifo: {}", settings.fifo);
    }
}
