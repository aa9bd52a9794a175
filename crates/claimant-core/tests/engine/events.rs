//! Messages that hold several events, or none.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::{
    Consumer, Context, Engine, Envelope, Event, HandlerError, MemoryStore, Message, Outcome, Rejection,
};
use claimant_testkit::MovableClock;
use claimant_testkit::outcomes::World;
use claimant_testkit::queue::DeadLetterQueue;

use super::support::process;
use super::{TIMEOUT, words, world};

/// An envelope of words with a plus between them. An event that begins with `id=` has that as its id.
struct Plus;

impl Envelope for Plus {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let content = String::from_utf8(message.content().to_vec()).unwrap();
        assert_ne!(content, "panic");
        let events = content.split('+').map(|word| {
            let mut event = Event::default();
            event.id = word.strip_prefix("id=").map(str::to_owned);
            message.clone().opened(format!("{word:?}"), event)
        });
        Ok(events.collect())
    }
}

fn message(id: &str, body: &str) -> Message {
    Message::new(id, body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_message_has_one_dead_letter_for_all_its_events() {
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, |consumer| consumer, DeadLetterQueue::Taken);
    let batch = ["a ok", "b ok + c reject + d ok + e reject", "f reject", "g reject + h fail"];
    let report = world.deliver(&batch, 0).await;
    assert_eq!(words(&report), "completed rejected rejected retry");
    let mut sent = world.queue.dead_letters_sent();
    sent.sort_by_key(|letter| letter.index);
    let sent: Vec<_> = sent.iter().map(|letter| (letter.index, letter.error.as_str())).collect();
    assert_eq!(sent, [(1, "event 2 of 4: no use (and 1 more of its events)"), (2, "no use")]);
    assert_eq!(report.failures().len(), 1);
    let events: Vec<_> = report.entries().iter().map(|entry| entry.details.events).collect();
    assert_eq!(events, [1, 4, 1, 2]);
}

/// Its dead letter says why, whichever delivery found it out, and whichever message of the same work it was.
#[tokio::test(start_paused = true)]
async fn a_dead_letter_has_the_reason_of_an_earlier_delivery_or_of_the_first_of_its_work() {
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, |consumer| consumer, DeadLetterQueue::Taken);
    let report = world.deliver(&["a reject + b flaky", "c reject", "c reject"], 0).await;
    assert_eq!(words(&report), "retry rejected rejected");
    assert_eq!(words(&world.deliver(&["a reject + b flaky"], 1).await), "rejected");
    let sent: Vec<_> = world.queue.dead_letters_sent().into_iter().map(|letter| letter.error).collect();
    assert_eq!(sent, ["no use", "no use", "event 1 of 2: it was rejected on an earlier delivery: no use"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_comes_back_when_all_its_events_can_be_tried_again() {
    let world = world(|consumer| consumer);
    let report = world.deliver(&["a later + b fail", "b2 fail + a2 later + c ok", "d fail"], 0).await;
    assert_eq!(words(&report), "retry retry retry");
    let after: Vec<_> = report.entries().iter().map(|entry| entry.visible_after.unwrap()).collect();
    let later = Duration::from_secs(77);
    assert!(after[0] >= later && after[1] >= later && after[2] < later, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn each_event_has_a_key_of_its_own_without_a_rule() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let handler = move |word: String, cx: Context| {
        seen.lock().unwrap().push(format!("{}={word}", cx.key()));
        async { Ok::<_, HandlerError>(()) }
    };
    let consumer = Consumer::new("c", MemoryStore::new(), handler).envelope(Plus).envelope(Around);
    let engine = Engine::with_defaults(consumer).unwrap();
    let batch = [message("m1", "x"), message("m2", "x+y"), message("m3", "id=i+z"), message("m4", "panic")];
    assert_eq!(words(&process(&engine, &batch).await), "completed completed completed rejected");
    keys.lock().unwrap().sort();
    assert_eq!(*keys.lock().unwrap(), ["i=id=i", "m1=x", "m2#1=x", "m2#2=y", "m3#2=z"]);
    assert_eq!(words(&process(&engine, &batch).await), "duplicate duplicate duplicate rejected");
}

/// An envelope that says nothing.
struct Around;

impl Envelope for Around {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let content = message.content().to_vec();
        Ok(vec![message.opened(content, Event::default())])
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_with_too_many_events_is_rejected_alone() {
    let consumer = Consumer::new("c", MemoryStore::new(), |_: String, _| async { Ok(()) });
    let engine = Engine::with_defaults(consumer.envelope(Plus).envelope(Twice)).unwrap();
    let body = |events: usize| vec!["x"; events].join("+");
    let report =
        process(&engine, &[message("m1", &body(50)), message("m2", &body(51)), message("m3", &body(5_000))]).await;
    assert_eq!(words(&report), "completed rejected rejected");
    let Outcome::Rejected { rejection, .. } = &report.entries()[1].outcome else { panic!("it is rejected") };
    assert_eq!(rejection.to_string(), "the message holds 102 events or more; at most 100 are allowed");
}

/// An envelope that holds everything twice.
struct Twice;

impl Envelope for Twice {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        Ok(vec![message.clone(), message])
    }
}

/// What one event of a message may have killed the process with takes the others of the message along only once.
#[tokio::test(start_paused = true)]
async fn events_whose_owner_died_run_alone_though_their_message_is_alone() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, max) = (Arc::clone(&running), Arc::clone(&most));
    let handler = move |_: String, cx: Context| {
        let (now, max) = (Arc::clone(&now), Arc::clone(&max));
        async move {
            max.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(if cx.attempt() == 1 { TIMEOUT } else { Duration::from_millis(10) }).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, HandlerError>(())
        }
    };
    let (store, clock) = (MemoryStore::new(), MovableClock::start());
    let consumer = Consumer::new("c", store, handler).envelope(Plus);
    let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(clock.clone()));
    let batch = [message("m", "a+b+c")];
    tokio::time::timeout(Duration::from_secs(1), process(&engine, &batch)).await.unwrap_err();
    assert_eq!(most.swap(0, Ordering::SeqCst), 3);
    running.store(0, Ordering::SeqCst);
    clock.advance(Duration::from_secs(3_600));
    let report = process(&engine, &[batch[0].clone().with_receive_count(2)]).await;
    assert_eq!((words(&report).as_str(), report.totals.taken_over), ("completed", 3));
    assert_eq!(most.load(Ordering::SeqCst), 1);
}
