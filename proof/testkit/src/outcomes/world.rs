//! One store, one clock, one queue, and a handler that does what its message says.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::protocol::{ClaimPolicy, ClaimRequest, Likely};
use claimant_core::{
    Call, Clock, Consumer, ConsumerName, Context, Engine, Envelope, Event, Fingerprint, HandlerError, InvocationTime,
    Item, Items, Key, Message, MessageId, Meter, OwnerToken, Record, RecordId, Rejection, Report, Status, Store,
    Timestamp,
};
use serde::Deserialize;

use futures_util::future::join_all;

use super::at_once::AtOnce;
use super::cases::PLAIN;
use super::{Case, Setting};
use crate::clock::MovableClock;
use crate::faulty::FaultyStore;
use crate::queue::{DeadLetterQueue, ScriptedQueue};

/// An hour: beyond any lease here.
const HOUR: Duration = Duration::from_secs(3_600);

/// What a message asks the handler to do.
#[derive(Debug, Deserialize)]
pub struct Work {
    /// The key.
    pub id: String,
    /// One word; see `act`.
    #[serde(rename = "do")]
    pub action: String,
}

/// One store, one clock, one queue, and a consumer on them.
pub struct World {
    /// The store, with its faults.
    pub store: FaultyStore,
    /// The clock, moved by hand.
    pub clock: MovableClock,
    /// The queue.
    pub queue: ScriptedQueue,
    /// The engine under test.
    pub engine: Engine,
    timeout: Duration,
    runs: Arc<Mutex<Vec<String>>>,
}

/// What a handler can reach.
#[derive(Clone)]
struct Stage {
    store: FaultyStore,
    clock: MovableClock,
    runs: Arc<Mutex<Vec<String>>>,
    timeout: Duration,
}

impl World {
    /// A world on this store whose keys no other world has.
    ///
    /// # Panics
    /// When the settings are not usable.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, timeout: Duration, setting: Setting, letters: DeadLetterQueue) -> Self {
        Self::of(store, timeout, &Case { setting, letters, ..PLAIN })
    }

    /// The world of a case.
    ///
    /// # Panics
    /// As for [`new`](Self::new).
    #[must_use]
    pub fn of(store: Arc<dyn Store>, timeout: Duration, case: &Case) -> Self {
        let store = if case.calls.is_some() { Arc::new(AtOnce::new(store)) } else { store };
        let (store, clock, runs) = (FaultyStore::new(store), MovableClock::start(), Arc::default());
        let token = OwnerToken::draw().expect("a test machine has random bytes");
        let stage = Stage { store: store.clone(), clock: clock.clone(), runs: Arc::clone(&runs), timeout };
        let name = format!("c-{}", token.as_str());
        let consumer = match case.calls {
            None => Consumer::new(name, store.clone(), move |work, cx| act(work, cx, stage.clone())),
            Some(items) => {
                let handler = move |items| act_all(items, stage.clone());
                Consumer::batch(name, store.clone(), handler).items_max(items)
            }
        };
        let consumer = (case.setting)(consumer.envelope(Several).key(|work| &work.id));
        let engine = Engine::with_defaults(consumer).expect("the case's settings are within bounds");
        let engine = engine.clock(Arc::new(clock.clone()));
        Self { store, clock, queue: ScriptedQueue::new(case.letters), engine, timeout, runs }
    }

    /// One invocation with these messages, delivered for the `number`th time after the first.
    ///
    /// # Panics
    /// When it does not return in time, or not with one entry for each message.
    pub async fn deliver(&self, batch: &[&str], number: usize) -> Report {
        self.try_deliver(batch, number).await.unwrap_or_else(|late| panic!("{late}"))
    }

    /// As [`deliver`](Self::deliver).
    ///
    /// # Errors
    /// When it does not return in time.
    pub async fn try_deliver(&self, batch: &[&str], number: usize) -> Result<Report, String> {
        let receive_count = u32::try_from(number + 1).expect("few deliveries");
        let batch: Vec<Message> = batch.iter().enumerate().map(|(n, text)| message(n, text, receive_count)).collect();
        self.try_process(&batch).await
    }

    /// One invocation with these messages.
    ///
    /// # Panics
    /// As for [`deliver`](Self::deliver).
    pub async fn process(&self, batch: &[Message]) -> Report {
        self.try_process(batch).await.unwrap_or_else(|late| panic!("{late}"))
    }

    async fn try_process(&self, batch: &[Message]) -> Result<Report, String> {
        let (now, margin) = (self.engine.now(), Duration::from_millis(MARGIN_DEFAULT_MS));
        let start = tokio::time::Instant::now();
        let time = InvocationTime::new(now, now.plus(self.timeout), margin);
        let report = self.engine.process(batch, time, &self.queue).await;
        assert_eq!(report.entries().len(), batch.len());
        let took = start.elapsed();
        if took <= self.timeout - margin {
            Ok(report)
        } else {
            Err(format!("returned after {took:?} of {:?}", self.timeout))
        }
    }

    /// Handler runs so far as `key/attempt`, sorted, since lanes run side by side.
    #[must_use]
    pub fn runs(&self) -> String {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        runs.sort();
        runs.join(" ")
    }

    /// The record of a key.
    ///
    /// # Panics
    /// When the store does not answer.
    pub async fn record(&self, key: &str) -> Option<Record> {
        let id = RecordId::new(self.engine.name(), &Key::new(key).expect("keys in cases are not empty"));
        let meter = Meter::default();
        let call = Call { within: Duration::from_secs(20), meter: &meter };
        self.store.get(&id, call).await.expect("the store answers")
    }

    /// Where a key stands.
    pub async fn status(&self, key: &str) -> Option<Status> {
        self.record(key).await.map(|record| record.status)
    }
}

/// What a message with several events is wrapped in: a JSON array of them. What is none is left as it is.
struct Several;

impl Envelope for Several {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let events: Option<Vec<serde_json::Value>> = serde_json::from_slice(message.content()).ok();
        let Some(events) = events else { return Ok(vec![message]) };
        Ok(events.into_iter().map(|event| message.clone().opened(event.to_string(), Event::default())).collect())
    }
}

/// A message from its text: `group:key action @id`, where group and id can be left out; a text with a `{` or a `[` in front, or
/// without an action, is the body as it is. Without an id of its own, it is `m` and its place. `key action + key action` has two
/// events.
///
/// # Panics
/// When the id is none.
#[must_use]
pub fn message(place: usize, text: &str, receive_count: u32) -> Message {
    let (text, id) = text.rsplit_once(" @").map_or((text, format!("m{place}")), |(text, id)| (text, id.to_owned()));
    let (group, text) = match text.split_once(':') {
        Some((group, rest)) if group.len() == 1 => (Some(group.to_owned()), rest),
        _ => (None, text),
    };
    let event = |text: &str| match text.split_once(' ') {
        Some((key, action)) if !text.starts_with(['{', '[']) => format!(r#"{{"id":"{key}","do":"{action}"}}"#),
        _ => text.to_owned(),
    };
    let events: Vec<_> = text.split(" + ").map(event).collect();
    let body = if let [one] = &events[..] { one.clone() } else { format!("[{}]", events.join(",")) };
    let message = Message::new(id, body).expect("ids in cases are short").with_receive_count(receive_count);
    match group {
        Some(group) => message.with_ordered_group(group),
        None => message,
    }
}

/// Acts for each item of a call, all at once; some words are about the whole of it.
async fn act_all(items: Items<Work>, stage: Stage) -> Result<Vec<Result<Option<String>, HandlerError>>, HandlerError> {
    let any = |action| items.payloads().any(|work| work.action == action);
    if any("sink") {
        return Err(HandlerError::retry("no luck with any"));
    }
    if any("doom") {
        return Err(HandlerError::terminal("no use for any"));
    }
    let few = any("few");
    let items: Vec<_> = items.into_iter().collect();
    // Before any of them acts: one that panics must not decide by its place which runs are seen.
    items.iter().for_each(|Item { payload, cx }| note_run(payload, cx, &stage));
    let acting = items.into_iter().map(|Item { payload, cx }| act_noted(payload, cx, stage.clone()));
    let mut results = join_all(acting).await;
    results.truncate(if few { 0 } else { results.len() });
    Ok(results)
}

async fn act(work: Work, cx: Context, stage: Stage) -> Result<Option<String>, HandlerError> {
    note_run(&work, &cx, &stage);
    act_noted(work, cx, stage).await
}

fn note_run(work: &Work, cx: &Context, stage: &Stage) {
    let run = format!("{}/{}", work.id, cx.attempt());
    stage.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
}

async fn act_noted(work: Work, cx: Context, stage: Stage) -> Result<Option<String>, HandlerError> {
    match work.action.as_str() {
        "ok" | "few" => {}
        "value" => return Ok(Some(format!("made by attempt {}", cx.attempt()))),
        "big" => return Ok(Some("x".repeat(claimant_core::record::RESULT_MAX_BYTES))),
        // Fails at the first attempt only.
        "flaky" if cx.attempt() > 1 => {}
        "doubt" if cx.attempt() > 1 => {}
        "doubt" => return Err(HandlerError::uncertain("no answer")),
        "fail" | "flaky" => return Err(HandlerError::retry("no luck")),
        "later" => return Err(HandlerError::retry("no luck").after(Duration::from_secs(77))),
        "reject" => return Err(HandlerError::terminal("no use")),
        "panics-again" if cx.attempt() == 1 => {}
        "panic" | "panics-again" => panic!("on purpose"),
        "hang" => std::future::pending().await,
        "long" => tokio::time::sleep(stage.timeout / 2).await,
        "forward" => stage.clock.advance(HOUR),
        "backward" => stage.clock.retreat(HOUR),
        "robbed" => {
            stage.clock.advance(HOUR);
            rob(&stage.store, &cx, stage.clock.now()).await;
        }
        other => panic!("no action {other}"),
    }
    Ok(None)
}

/// Another owner claims the key of this run, for an hour; its lease must be over by then.
///
/// # Panics
/// When the store does not grant it.
pub async fn rob(store: &dyn Store, cx: &Context, now: Timestamp) {
    let consumer = ConsumerName::new(cx.consumer()).expect("it is one");
    let request = ClaimRequest {
        id: RecordId::new(&consumer, &Key::new(cx.key()).expect("it is one")),
        owner: OwnerToken::draw().expect("a test machine has random bytes"),
        message_id: MessageId::new(cx.message_id()).expect("it is one"),
        fingerprint: Fingerprint::of_bytes(b"robber"),
        now,
        lease_until: now.plus(HOUR),
        policy: ClaimPolicy { conflicts: claimant_core::Conflicts::Ignore, ..ClaimPolicy::default() },
        likely: Likely::Known,
    };
    let meter = Meter::default();
    let call = Call { within: Duration::from_secs(20), meter: &meter };
    let answer = store.claim(&request, call).await.expect("the store answers");
    assert!(matches!(answer, claimant_core::ClaimAnswer::Granted(_)), "{answer:?}");
}
