//! Waiting, with tokio's paused time as the clock: virtual time moves only when every task waits.

use super::super::settings::Redrive;
use super::*;

fn paused() -> Sqs {
    let start = Instant::now();
    let clock = move || u64::try_from(start.elapsed().as_millis()).unwrap();
    let sqs = Sqs::with_clock(Box::new(clock));
    sqs.create_queue("orders", QueueSettings::default()).unwrap();
    sqs
}

fn elapsed_ms(sqs: &Sqs) -> u64 {
    sqs.now_ms()
}

const IN_FLIGHT_MAX: usize = 120_000;

const WAIT: Duration = Duration::from_secs(20);

fn grouped(body: &str) -> NewMessage {
    NewMessage { group_id: Some("g".to_owned()), deduplication_id: Some(body.to_owned()), ..NewMessage::new(body) }
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_ends_empty_after_its_wait() {
    let sqs = paused();
    assert_eq!(sqs.receive("orders", 1, WAIT).await.unwrap(), []);
    assert_eq!(elapsed_ms(&sqs), 20_000);
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_wakes_for_what_becomes_receivable() {
    let fifo = || QueueSettings { fifo: true, ..QueueSettings::default() };
    type Act = fn(&Sqs, &str);
    // (queue, what is sent first, what happens after two seconds, when the poll ends)
    let cases: &[(&str, &[&str], Act, u64)] = &[
        ("orders", &[], |sqs, _| drop(sqs.send("orders", NewMessage::new("b")).unwrap()), 2_000),
        ("orders", &["a"], |_, _| (), 10_000), // the visibility timeout
        (
            "g.fifo",
            &["a", "b"],
            |sqs, handle| assert_eq!(sqs.delete("g.fifo", handle).unwrap(), Deletion::Deleted),
            2_000,
        ),
        ("g.fifo", &["a", "b"], |_, _| (), 10_000),
    ];
    for (number, (queue, before, act, expected_ms)) in cases.iter().enumerate() {
        let sqs = paused();
        sqs.create_queue("g.fifo", fifo()).unwrap();
        let mut handle = String::new();
        for body in *before {
            let message = if *queue == "orders" { NewMessage::new(*body) } else { grouped(body) };
            sqs.send(queue, message).unwrap();
        }
        if !before.is_empty() {
            let visibility = Some(Duration::from_secs(10));
            let received = sqs.poll(queue, 1, visibility, None).await.unwrap();
            handle.clone_from(&received[0].receipt_handle);
        }
        let waiter = tokio::spawn({
            let (sqs, queue) = (sqs.clone(), *queue);
            async move { sqs.receive(queue, 1, WAIT).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_secs(2)).await;
        act(&sqs, &handle);
        assert_eq!(waiter.await.unwrap().len(), 1, "case {number}");
        assert_eq!(elapsed_ms(&sqs), *expected_ms, "case {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_waits_where_too_many_are_in_flight() {
    let sqs = paused();
    for _ in 0..=IN_FLIGHT_MAX {
        sqs.send("orders", NewMessage::new("a")).unwrap();
    }
    let held = sqs.poll("orders", IN_FLIGHT_MAX, Some(Duration::from_secs(60)), None).await.unwrap();
    assert_eq!(held.len(), IN_FLIGHT_MAX);
    // A short poll says so.
    let refused = sqs.poll("orders", 1, None, Some(Duration::ZERO)).await.unwrap_err();
    assert_eq!(refused.code, Code::OverLimit);
    assert_eq!(sqs.receive("orders", 1, WAIT).await.unwrap(), []);
    let waiter = tokio::spawn({
        let sqs = sqs.clone();
        async move { sqs.receive("orders", 1, WAIT).await.unwrap().len() }
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    sqs.delete("orders", &held[0].receipt_handle).unwrap();
    assert_eq!((waiter.await.unwrap(), elapsed_ms(&sqs)), (1, 22_000));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_receive_loses_no_message() {
    let sqs = paused();
    let waiting = sqs.receive("orders", 1, WAIT);
    assert!(tokio::time::timeout(Duration::from_secs(1), waiting).await.is_err());
    sqs.send("orders", NewMessage::new("a")).unwrap();
    assert_eq!(sqs.receive("orders", 1, Duration::ZERO).await.unwrap()[0].body, "a");
}

#[tokio::test(start_paused = true)]
async fn the_queue_decides_the_wait_and_its_deletion_ends_it() {
    let sqs = paused();
    let settings = QueueSettings { receive_wait: Duration::from_secs(3), ..QueueSettings::default() };
    sqs.create_queue("slow", settings).unwrap();
    assert_eq!(sqs.poll("slow", 1, None, None).await.unwrap(), []);
    assert_eq!(elapsed_ms(&sqs), 3_000);
    let waiter = tokio::spawn({
        let sqs = sqs.clone();
        async move { sqs.receive("slow", 1, WAIT).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    sqs.account().remove(4_000, "slow").unwrap();
    waiter.await.unwrap().unwrap_err();
    assert_eq!(elapsed_ms(&sqs), 4_000);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_wake_their_queue_and_are_counted() {
    let sqs = paused();
    let redrive = Redrive { dead_letter_queue: "dead".to_owned(), max_receive_count: 1 };
    let settings = QueueSettings { redrive: Some(redrive), ..QueueSettings::default() };
    let early = sqs.create_queue("source", settings.clone()).unwrap_err();
    assert!(early.to_string().contains("create the queue dead first"), "{early}");
    sqs.create_queue("dead", QueueSettings::default()).unwrap();
    sqs.create_queue("source", settings.clone()).unwrap();
    sqs.create_queue("source", settings).unwrap(); // the same again is no error
    sqs.create_queue("source", QueueSettings::default()).unwrap_err();

    sqs.send("source", NewMessage::new("a")).unwrap();
    let dead = tokio::spawn({
        let sqs = sqs.clone();
        async move { sqs.receive("dead", 10, Duration::from_secs(60)).await.unwrap() }
    });
    assert_eq!(sqs.receive("source", 10, WAIT).await.unwrap().len(), 1);
    assert_eq!(sqs.messages("source").unwrap()[0].body, "a");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(sqs.receive("source", 10, Duration::ZERO).await.unwrap(), []);
    assert_eq!(dead.await.unwrap()[0].body, "a");
    let counters = sqs.counters("source").unwrap();
    assert_eq!((counters.sent, counters.received, counters.dead_lettered), (1, 1, 1));
    assert_eq!(sqs.depth("dead").unwrap(), Depth { in_flight: 1, ..Depth::default() });
}
