//! Payloads that messages only point to: fetched before they are decoded, and removed when their messages are done.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::envelope::Envelope;
use claimant_core::{
    BoxFuture, Confirmation, Consumer, DeadLetter, Engine, Event, FetchError, HandlerError, HideAnswer, InvocationTime,
    MemoryStore, Message, PayloadSource, Pointer, Queue, Rejection, Report, Room, Router, Routes,
};

use super::{TIMEOUT, words};

/// What happened, in its order.
type Log = Arc<Mutex<Vec<String>>>;

fn log(log: &Log, what: impl Into<String>) {
    log.lock().unwrap().push(what.into());
}

/// Payloads by their names. A name that is `hang`, `away`, `panic` or `huge` does as it says, and `torn` breaks off once it has its room; one that
/// begins with `late` takes a millisecond longer than others, one that begins with `slow` takes its time to be removed, `stuck` and `jammed` panic when they are, before there is a future and in it.
#[derive(Clone)]
pub(super) struct Shelf {
    payloads: Arc<Mutex<BTreeMap<String, String>>>,
    log: Log,
    pub(super) removes: bool,
    room: usize,
}

impl Shelf {
    pub(super) fn new(payloads: &[(&str, &str)]) -> Self {
        let payloads = payloads.iter().map(|(name, payload)| ((*name).to_owned(), (*payload).to_owned())).collect();
        Self { payloads: Arc::new(Mutex::new(payloads)), log: Log::default(), removes: false, room: 1_000 }
    }

    fn logged(&self) -> String {
        self.log.lock().unwrap().join(" ")
    }

    fn left(&self) -> String {
        self.payloads.lock().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    }
}

impl PayloadSource for Shelf {
    fn pointer(&self, message: &Message) -> Result<Option<Pointer>, Rejection> {
        let content = std::str::from_utf8(message.content()).unwrap();
        match content.strip_prefix("at ") {
            Some("elsewhere") => Err(Rejection::new("nothing may be fetched from there")),
            Some("a place that panics") => panic!("no such place"),
            Some(name) => Ok(Some(Pointer { container: "shelf".to_owned(), name: name.to_owned() })),
            None => Ok(None),
        }
    }

    fn fetch<'a>(
        &'a self,
        pointer: &'a Pointer,
        room: &'a Room,
        _: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, FetchError>> {
        assert_ne!(pointer.name, "panic-at-once", "on purpose");
        Box::pin(async move {
            log(&self.log, format!("fetch:{}", pointer.name));
            match pointer.name.as_str() {
                "hang" => std::future::pending().await,
                "away" => return Err(FetchError::Unavailable("it is away".to_owned())),
                "panic" => panic!("at the disco"),
                "huge" => return Err(FetchError::Rejected(Rejection::new("it is too large"))),
                name if name.starts_with("late") => tokio::time::sleep(Duration::from_millis(11)).await,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
            let payload = self.payloads.lock().unwrap().get(&pointer.name).cloned();
            let payload = payload.ok_or_else(|| FetchError::Rejected(Rejection::new("it is gone")))?;
            room.take(payload.len()).await?;
            if pointer.name == "torn" {
                return Err(FetchError::Unavailable("it broke off".to_owned()));
            }
            Ok(payload.into_bytes())
        })
    }

    fn room_bytes(&self) -> usize {
        self.room
    }

    fn payload_max_bytes(&self) -> usize {
        self.room.min(10)
    }

    fn concurrency(&self) -> usize {
        2
    }

    fn removes(&self) -> bool {
        self.removes
    }

    fn remove<'a>(&'a self, pointer: &'a Pointer, _: Duration) -> BoxFuture<'a, Confirmation> {
        log(&self.log, format!("remove:{}", pointer.name));
        assert_ne!(pointer.name, "stuck", "on purpose");
        Box::pin(async move {
            assert_ne!(pointer.name, "jammed", "on purpose");
            if pointer.name.starts_with("slow") {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            self.payloads.lock().unwrap().remove(&pointer.name);
            Confirmation::Confirmed
        })
    }
}

/// An envelope around everything: brackets.
struct Brackets;

impl Envelope for Brackets {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let content = std::str::from_utf8(message.content()).unwrap();
        let inner = content.strip_prefix('<').and_then(|content| content.strip_suffix('>'));
        let inner = inner.ok_or_else(|| Rejection::new("there are no brackets"))?.to_owned();
        let event = Event::default();
        Ok(vec![message.opened(inner, event)])
    }
}

/// A queue that takes dead letters, and deletes messages before this index.
struct Deleting {
    log: Log,
    before: usize,
}

impl Queue for Deleting {
    fn hide(&self, _: usize, _: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }

    fn delete<'a>(&'a self, indexes: &'a [usize]) -> BoxFuture<'a, Confirmation> {
        log(&self.log, format!("delete:{indexes:?}"));
        let deletes = indexes.iter().all(|index| *index < self.before);
        let answer = if deletes { Confirmation::Confirmed } else { Confirmation::Unconfirmed };
        Box::pin(std::future::ready(answer))
    }

    fn has_dead_letters(&self) -> bool {
        true
    }

    fn dead_letters<'a>(&'a self, letters: &'a [DeadLetter], _: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        letters.iter().for_each(|letter| log(&self.log, format!("letter:{}:{}", letter.index, letter.error)));
        Box::pin(std::future::ready(vec![Confirmation::Confirmed; letters.len()]))
    }
}

fn consumer(shelf: &Shelf) -> Consumer<u64> {
    let runs = Arc::clone(&shelf.log);
    let act = move |order: u64, _| {
        let runs = Arc::clone(&runs);
        async move {
            log(&runs, format!("run:{order}"));
            if order == 9 { Err("not today".into()) } else { Ok(()) }
        }
    };
    Consumer::new("packing", MemoryStore::new(), act).key(|order| order).large_payloads(shelf.clone())
}

fn message(number: usize, body: &str) -> Message {
    Message::new(format!("m{number}"), body).unwrap()
}

fn batch(bodies: &[&str]) -> Vec<Message> {
    bodies.iter().enumerate().map(|(number, body)| message(number, body)).collect()
}

async fn process(consumer: Consumer<u64>, batch: &[Message], queue: &dyn Queue) -> Report {
    process_within(TIMEOUT, consumer, batch, queue).await
}

async fn process_within(within: Duration, consumer: Consumer<u64>, batch: &[Message], queue: &dyn Queue) -> Report {
    let engine = Engine::with_defaults(consumer).unwrap();
    let time = InvocationTime::new(engine.now(), engine.now().plus(within), Duration::from_millis(500));
    let start = tokio::time::Instant::now();
    let report = engine.process(batch, time, queue).await;
    assert!(start.elapsed() < within, "{:?}", start.elapsed());
    report
}

fn queue(shelf: &Shelf, deletes: bool) -> Deleting {
    Deleting { log: Arc::clone(&shelf.log), before: if deletes { usize::MAX } else { 0 } }
}

#[tokio::test(start_paused = true)]
async fn what_is_fetched_is_what_is_decoded_and_deduplicated() {
    let shelf = Shelf::new(&[("a", "7"), ("b", " 7"), ("c", "8")]);
    // Directly and by two pointers: one key, and one payload.
    let report = process(consumer(&shelf), &batch(&["7", "at a", "at b", "at c"]), &queue(&shelf, true)).await;
    assert_eq!(words(&report), "completed duplicate duplicate completed");
    let logged = shelf.logged();
    assert_eq!((logged.matches("run:7").count(), logged.matches("run:8").count()), (1, 1), "{logged}");
    assert!(!logged.contains("remove") && !logged.contains("delete"), "unless it is asked for: {logged}");
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_cannot_be_fetched_stops_its_own_message_only() {
    let shelf = Shelf::new(&[("a", "1"), ("bad", "secret")]);
    let bodies = [
        "at hang",
        "at away",
        "at panic",
        "at panic-at-once",
        "at huge",
        "at gone",
        "at elsewhere",
        "at a place that panics",
        "at bad",
        "at a",
        "2",
    ];
    let report = process(consumer(&shelf), &batch(&bodies), &queue(&shelf, true)).await;
    let wanted = "fetch_failed fetch_failed fetch_failed fetch_failed rejected rejected rejected rejected rejected completed completed";
    assert_eq!(words(&report), wanted);
    assert_eq!(report.failures().len(), 4, "what is rejected has a dead letter");
    // An outage of the source must not use up their receives.
    assert!(report.entries()[..4].iter().all(|entry| entry.visible_after.is_none()));
    let logged = shelf.logged();
    for letter in [
        "letter:4:it is too large",
        "letter:5:it is gone",
        "letter:6:nothing may be fetched from there",
        "letter:7:finding where the payload is panicked",
        "letter:8:the payload that the message points to is not valid JSON",
    ] {
        assert!(logged.contains(letter), "{letter} in {logged}");
    }
    assert!(!logged.contains("secret"));
}

#[tokio::test(start_paused = true)]
async fn fetches_end_in_the_first_quarter_of_the_time_and_never_more_at_once_than_allowed() {
    let shelf = Shelf::new(&[("a", "1")]);
    // Two at once hang to the end of their time: those behind them are not started.
    let report = process(consumer(&shelf), &batch(&["at hang", "at hang", "at a", "2"]), &queue(&shelf, true)).await;
    assert_eq!(words(&report), "fetch_failed fetch_failed not_started completed");
    assert_eq!(shelf.logged(), "fetch:hang fetch:hang run:2");
}

/// There is room for all: nobody waits for the one that hangs, however short the time is.
#[tokio::test(start_paused = true)]
async fn one_payload_that_hangs_takes_no_time_from_others_while_there_is_room() {
    let shelf = Shelf::new(&[("a", "1"), ("b", "2")]);
    let bodies = batch(&["at hang", "at a", "at b"]);
    let report = process_within(Duration::from_secs(3), consumer(&shelf), &bodies, &queue(&shelf, true)).await;
    assert_eq!(words(&report), "fetch_failed completed completed");
    // Where there is not, they wait for a part of the time for fetching.
    let shelf = Shelf { room: 2, ..shelf };
    let report = process_within(Duration::from_secs(3), consumer(&shelf), &bodies, &queue(&shelf, true)).await;
    assert_eq!(words(&report), "fetch_failed completed completed");
}

#[tokio::test(start_paused = true)]
async fn payloads_without_room_wait_for_a_later_batch_in_their_order() {
    let shelf = Shelf { room: 2, ..Shelf::new(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4444")]) };
    let mut messages = batch(&["at a", "at b", "at c", "5", "at d"]);
    let report = process(consumer(&shelf), &messages, &queue(&shelf, true)).await;
    assert_eq!(words(&report), "completed completed not_started completed not_started");
    assert_eq!(report.entries()[2].visible_after, Some(Duration::ZERO));
    // What was received most comes first.
    messages[2] = messages[2].clone().with_receive_count(2);
    let report = process(consumer(&shelf), &messages, &queue(&shelf, true)).await;
    assert_eq!(words(&report), "completed not_started completed completed not_started");
    // Of a group, nothing overtakes what waits.
    let group = |body| message(0, body).with_ordered_group("g");
    let messages = ["at a", "at d", "5"].map(group);
    let report = process(consumer(&shelf), &messages, &queue(&shelf, true)).await;
    assert_eq!(words(&report), "completed not_started blocked");
}

/// Room is for those with the most receives, whose answer ever is there first; what never answers holds up the others for a moment only.
#[tokio::test(start_paused = true)]
async fn a_payload_that_was_passed_over_has_its_room_although_others_answer_earlier() {
    let payloads = [("a", "1"), ("b", "2"), ("late", "4444"), ("hang", "5"), ("torn", "6666"), ("c", "3333")];
    let shelf = Shelf { room: 4, ..Shelf::new(&payloads) };
    for (bodies, wanted) in [
        (["at a", "at late", "at b"], "not_started completed not_started"),
        (["at a", "at hang", "at b"], "completed fetch_failed completed"),
        // What breaks off gives its room back, to those that ask later.
        (["at c", "at torn", "5"], "completed fetch_failed completed"),
    ] {
        let mut messages = batch(&bodies);
        messages[1] = messages[1].clone().with_receive_count(2);
        let report = process(consumer(&shelf), &messages, &queue(&shelf, true)).await;
        assert_eq!(words(&report), wanted, "{bodies:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pointer_is_inside_the_envelopes_before_it_and_around_those_after_it() {
    let shelf = Shelf::new(&[("a", "<1>"), ("b", "2")]);
    let act = |_: u64, _| std::future::ready(Ok::<_, HandlerError>(()));
    let consumer = || Consumer::new("packing", MemoryStore::new(), act).key(|order: &u64| order);
    let both = consumer().envelope(Brackets).large_payloads(shelf.clone()).envelope(Brackets);
    let report = process(both, &batch(&["<at a>", "<<3>>", "at a", "<at b>"]), &queue(&shelf, true)).await;
    assert_eq!(words(&report), "completed completed rejected rejected");
    // With the pointer around everything.
    let outer = consumer().large_payloads(shelf.clone()).envelope(Brackets);
    assert_eq!(words(&process(outer, &batch(&["at a", "<at a>"]), &queue(&shelf, true)).await), "completed rejected");
}

#[tokio::test(start_paused = true)]
async fn payloads_are_removed_after_their_messages_and_only_of_finished_ones() {
    let shelves =
        || Shelf { removes: true, ..Shelf::new(&[("a", "1"), ("b", "1"), ("bad", "x"), ("nine", "9"), ("c", "3")]) };
    let bodies = ["at a", "at b", "at bad", "at nine", "2", "at c"];
    let shelf = shelves();
    let report = process(consumer(&shelf), &batch(&bodies), &queue(&shelf, true)).await;
    assert_eq!(words(&report), "completed duplicate rejected retry completed completed");
    assert_eq!(shelf.left(), "bad nine", "a dead letter points to its payload, and a failure needs it");
    let logged = shelf.logged();
    assert!(logged.find("delete:[0, 1, 5]").unwrap() < logged.find("remove:").unwrap(), "{logged}");
    // A queue that does not confirm that they are gone: what comes back needs its payload.
    let shelf = shelves();
    process(consumer(&shelf), &batch(&bodies), &queue(&shelf, false)).await;
    assert_eq!(shelf.left(), "a b bad c nine");
    // A payload that another message of the batch still needs, and a copy of a message that failed.
    let shelf = shelves();
    let copies = [message(0, "at a"), message(1, "at nine"), message(1, "at c"), message(2, "at b")];
    shelf.payloads.lock().unwrap().insert("c".to_owned(), "4".to_owned());
    process(consumer(&shelf), &copies, &queue(&shelf, true)).await;
    assert_eq!(shelf.left(), "bad c nine", "the message of c came twice, and failed once");
    // A removal that panics, before there is a future or in it, fails nothing.
    let shelf = Shelf { removes: true, ..Shelf::new(&[("stuck", "1"), ("jammed", "2"), ("c", "3")]) };
    let report = process(consumer(&shelf), &batch(&["at stuck", "at jammed", "at c"]), &queue(&shelf, true)).await;
    assert_eq!((words(&report).as_str(), shelf.left().as_str()), ("completed completed completed", "jammed stuck"));
}

/// An envelope with an order in each line.
pub(super) struct Rows;

impl Envelope for Rows {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let event = |line: &str| {
            let mut event = Event::default();
            event.kind = Some("order".to_owned());
            message.clone().opened(line.to_owned(), event)
        };
        Ok(message.body().lines().map(event).collect())
    }
}

/// No event ends a message of several, and none keeps the payloads of other messages from being removed.
#[tokio::test(start_paused = true)]
async fn the_payloads_of_a_message_of_several_events_stay() {
    let shelf = Shelf { removes: true, ..Shelf::new(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]) };
    let router = Router::new(Routes::by_kind().envelope(Rows).on("order", consumer(&shelf)), 1).unwrap();
    let time = InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
    let batch = batch(&["at a\nat b", "at c", "at d", "at b"]);
    let report = router.process(&batch, time, &queue(&shelf, true)).await;
    assert!(report.all().failures().is_empty(), "{report:?}");
    assert_eq!(shelf.left(), "a b", "b is that of another message, too, which has ended");
}

/// Two copies of work, in two requests to the queue: the one that may come back needs the payload of the one that is gone.
#[tokio::test(start_paused = true)]
async fn a_payload_stays_while_any_of_its_messages_may_come_back() {
    let payloads: Vec<_> = (10..20).map(|number| (format!("p{number}"), number.to_string())).collect();
    let of: Vec<_> = payloads.iter().map(|(name, payload)| (name.as_str(), payload.as_str())).collect();
    let bodies: Vec<_> = of.iter().map(|(name, _)| format!("at {name}")).chain(["at p10".to_owned()]).collect();
    let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
    for (before, left) in [(usize::MAX, ""), (10, "p10")] {
        let shelf = Shelf { removes: true, ..Shelf::new(&of) };
        let queue = Deleting { log: Arc::clone(&shelf.log), before };
        process(consumer(&shelf), &batch(&bodies), &queue).await;
        assert_eq!(shelf.left(), left);
    }
}

/// Each removal takes a second, eight at a time: far more than the invocation has left.
#[tokio::test(start_paused = true)]
async fn removals_end_before_the_invocation_does() {
    let payloads: Vec<_> = (10..1_010).map(|number| (format!("slow-{number}"), number.to_string())).collect();
    let of: Vec<_> = payloads.iter().map(|(name, payload)| (name.as_str(), payload.as_str())).collect();
    let bodies: Vec<_> = of.iter().map(|(name, _)| format!("at {name}")).collect();
    let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
    let shelf = Shelf { removes: true, room: usize::MAX, ..Shelf::new(&of) };
    // In time: `process` looks at the clock.
    let report = process(consumer(&shelf), &batch(&bodies), &queue(&shelf, true)).await;
    let done = words(&report).split(' ').filter(|word| *word == "completed").count();
    let left = shelf.payloads.lock().unwrap().len();
    assert!(done > 100 && left > of.len() - done && left < of.len(), "{done} {left}");
}
