//! What several of the tests need.

use std::time::Duration;

use claimant_core::protocol::ClaimRequest;
use claimant_core::{
    BoxFuture, Call, ClaimAnswer, Engine, InvocationTime, MemoryStore, Message, NoQueue, Record, RecordId, Report,
    Store, StoreError, StoreErrorKind,
};

use super::TIMEOUT;

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

/// Delivers with the timeout of most tests.
pub(crate) async fn process(engine: &Engine, batch: &[Message]) -> Report {
    deliver(engine, batch, TIMEOUT.as_secs()).await
}

/// How many messages have this outcome.
pub(crate) fn count(report: &Report, word: &str) -> usize {
    report.counts().get(word).copied().unwrap_or_default()
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
