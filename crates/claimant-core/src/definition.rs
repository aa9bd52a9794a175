//! What a consumer is, whatever the type of its payloads: what an engine runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::batch::AnyBatchHandler;
use crate::breaker::BREAKER_CONSUMER;
use crate::duplicate::DuplicateHook;
use crate::error::Error;
use crate::handler::AnyHandler;
use crate::key::ConsumerName;
use crate::limit::LIMIT_CONSUMER;
use crate::limits::WINDOW_DEFAULT_S;
use crate::options::Options;
use crate::protocol::Abandoned;
use crate::reader::Reader;
use crate::store::Store;

/// What a consumer runs.
pub(crate) enum Runner {
    /// For each message.
    Each(AnyHandler),
    /// For many at once.
    Batch(AnyBatchHandler),
}

impl From<AnyHandler> for Runner {
    fn from(handler: AnyHandler) -> Self {
        Self::Each(handler)
    }
}

impl From<AnyBatchHandler> for Runner {
    fn from(handler: AnyBatchHandler) -> Self {
        Self::Batch(handler)
    }
}

/// What a consumer is, whatever the type of its payloads.
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) handler: Runner,
    pub(crate) reader: Reader,
    pub(crate) on_duplicate: Option<DuplicateHook>,
    pub(crate) options: Options,
}

impl Definition {
    /// Checks the consumer, and returns its name.
    ///
    /// # Errors
    /// One error with everything that is wrong with its name, its rules and its options.
    pub(crate) fn check(&self) -> Result<ConsumerName, Error> {
        let mut faults: Vec<String> = self.faults().into_iter().map(str::to_owned).collect();
        faults.extend(self.options.faults());
        let name = ConsumerName::new(self.name.as_str());
        if let Err(fault) = &name {
            faults.insert(0, fault.to_string());
        }
        Error::unless_empty(&format!("the settings of the consumer {:?} are not usable", self.name), &faults)?;
        Ok(name?)
    }

    /// Returns why options contradict each other, in words.
    fn faults(&self) -> Vec<&'static str> {
        const NEEDS_OUTLIVING_CLAIMS: &str = "at most once needs a store whose claims outlive their owners, and this one's end \
            with the process: do the work in the transaction and remove .at_most_once(), or use a store without transactions";
        const NEEDS_KEY: &str = "at most once needs a key rule: a message that is redriven from a dead-letter queue has a new \
            message id, so that under the id as the key its parked work would run again; add .key(…) or another key rule";
        const NEEDS_LONG_WINDOW: &str = "at most once needs a window of 15 days or more, since a queue keeps a message for up to 14: \
            what comes back after the window runs again, though it may be done. Remove .window(…), or set a longer one; where the \
            same key rightly comes again sooner, put into it what tells such work apart, such as the date";
        const BREAKER_NEEDS_OUTLIVING_CLAIMS: &str = "a breaker needs a store whose claims outlive their owners, and this one's \
            end with the process, so that no other process would see it: remove .breaker(…), use a store without transactions, or set it on \
            the inbox's worker";
        const LIMIT_NEEDS_OUTLIVING_CLAIMS: &str = "a limit needs a store whose claims outlive their owners, and this one's end \
            with the process, so that no other process would keep to it: remove .limit(…), use a store without transactions, or set it on \
            the inbox's worker";
        const RESERVED: &str = "its name is that of the records of breakers or limits: choose another one";
        const NEEDS_BATCH: &str = "a size of calls needs a batch handler: use Consumer::batch, or remove .items_max(…)";
        const RUNS_AGAIN: &str = "at most once does not go with a batch in a transaction, whose handler is called again for \
            the other items when one fails: remove .at_most_once(), since what was rolled back is not done";
        const LONG_WINDOW: Duration = Duration::from_secs(WINDOW_DEFAULT_S);
        let parks = self.options.policy.abandoned == Abandoned::Park;
        let (batch, transactional) = match &self.handler {
            Runner::Each(_) => (false, false),
            Runner::Batch(handler) => (true, handler.transactions.is_some()),
        };
        let faults = [
            (parks && !self.store.claims_outlive_owners()).then_some(NEEDS_OUTLIVING_CLAIMS),
            (parks && !self.reader.identity.has_key()).then_some(NEEDS_KEY),
            (parks && self.options.policy.window < LONG_WINDOW).then_some(NEEDS_LONG_WINDOW),
            (parks && transactional).then_some(RUNS_AGAIN),
            (self.options.breaker.is_some() && !self.store.claims_outlive_owners())
                .then_some(BREAKER_NEEDS_OUTLIVING_CLAIMS),
            (self.options.limit.is_some() && !self.store.claims_outlive_owners())
                .then_some(LIMIT_NEEDS_OUTLIVING_CLAIMS),
            [BREAKER_CONSUMER, LIMIT_CONSUMER].contains(&self.name.as_str()).then_some(RESERVED),
            (self.options.items_max.is_some() && !batch).then_some(NEEDS_BATCH),
        ];
        faults.into_iter().flatten().chain(self.reader.identity.faults.iter().copied()).collect()
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, options, .. } = self;
        f.debug_struct("Consumer").field("name", name).field("policy", &options.policy).finish_non_exhaustive()
    }
}
