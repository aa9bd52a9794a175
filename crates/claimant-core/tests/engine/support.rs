//! What several of the tests need.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use claimant_core::protocol::ClaimRequest;
use claimant_core::{
    BoxFuture, Call, ClaimAnswer, Engine, InvocationTime, MemoryStore, Message, NoQueue, Record, RecordId, Report,
    Store, StoreError, StoreErrorKind,
};
use tracing::{Dispatch, Level};

pub(crate) const MARGIN: Duration = Duration::from_millis(500);

/// So many messages that nobody has received before.
pub(crate) fn batch(prefix: &str, count: usize) -> Vec<Message> {
    (0..count).map(|n| Message::new(format!("{prefix}{n}"), r#""x""#).unwrap().with_receive_count(1)).collect()
}

pub(crate) async fn deliver(process: &Engine, batch: &[Message], seconds: u64) -> Report {
    let now = process.now();
    let time = InvocationTime::new(now, now.plus(Duration::from_secs(seconds)), MARGIN);
    process.process(batch, time, &NoQueue).await
}

/// How many messages have this outcome.
pub(crate) fn count(report: &Report, word: &str) -> usize {
    report.counts().get(word).copied().unwrap_or_default()
}

/// While there is just one subscriber, `tracing` asks the thread that first meets a line whether anybody wants it, and keeps the
/// answer: a test on another thread that records nothing would take the line away from the one that does. This one makes two.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

/// What is logged on this thread while it lives.
pub(crate) struct Logs {
    text: Sink,
    _guard: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Logs {
    pub(crate) fn record() -> Self {
        Self::record_from(Level::INFO)
    }

    /// Of this level and those above.
    pub(crate) fn record_from(level: Level) -> Self {
        LazyLock::force(&SECOND);
        let (text, logs) = (Sink::default(), tracing_subscriber::fmt().with_ansi(false).with_max_level(level));
        let sink = text.clone();
        let logs = logs.with_writer(move || sink.clone()).finish();
        Self { text, _guard: tracing::subscriber::set_default(logs) }
    }

    /// The lines that have this text.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        let all = String::from_utf8(self.text.0.lock().unwrap().clone()).unwrap();
        all.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

/// A store that refuses whatever is asked of records of this prefix, as a role can that names the consumer's own keys alone.
pub(crate) struct Denies {
    store: MemoryStore,
    prefix: &'static str,
}

impl Denies {
    pub(crate) fn new(prefix: &'static str) -> Self {
        Self { store: MemoryStore::new(), prefix }
    }

    fn denied(&self, id: &RecordId) -> Option<StoreError> {
        let is_one = id.as_str().starts_with(self.prefix);
        is_one.then(|| StoreError::new(StoreErrorKind::Denied, "the role lacks a permission"))
    }
}

impl Store for Denies {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        match self.denied(&request.id) {
            Some(error) => Box::pin(async { Err(error) }),
            None => self.store.claim(request, call),
        }
    }

    claimant_testkit::pass_on!(self => self.store; renew, settle);

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        match self.denied(id) {
            Some(error) => Box::pin(async { Err(error) }),
            None => self.store.get(id, call),
        }
    }
}
