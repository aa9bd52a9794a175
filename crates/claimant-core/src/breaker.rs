//! A breaker's settings.

use std::time::Duration;

pub use crate::engine::breaker::worker::{Health, Passage, WorkerBreaker};
use crate::key::ConsumerName;
use crate::limits::{BREAKER_CALLS_MAX, BREAKER_OPEN_MAX_MS, BREAKER_OPEN_MIN_MS};
use crate::protocol::breaker::Rules;

/// The consumer whose keys are the names of breakers, each with the record of one: `claimant-breaker#mail`. No other consumer has
/// this name.
pub const BREAKER_CONSUMER: &str = "claimant-breaker";

/// A breaker: while a system that the handler calls is away, messages are held back instead of failing one after the other.
///
/// It opens when 5 of the last 10 runs in one process have failed because of that system: when the handler
/// [says so](crate::HandlerError::downstream), or was cut off by the consumer's own [timeout](crate::Consumer::timeout). It is then
/// open for all processes, through the consumer's store. Messages that are received meanwhile wait in their invocations,
/// and nothing of them is claimed or run; what has waited to the end is [`breaker_open`](crate::Outcome::BreakerOpen), and comes back in some
/// minutes. After 10 s one process probes with one message at a time: three answers close the breaker, one failure
/// opens it for twice as long, up to a minute; and not before its lease ends, which a process that probes has for as long as it expects a
/// handler to take, or as calls hung, a minute at most. While it is closed it costs no request.
///
/// ```
/// # use claimant_core as claimant;
/// use std::time::Duration;
///
/// use claimant::{Breaker, Consumer, Context, HandlerError, memory::MemoryStore};
///
/// async fn confirm(order: u64, _: Context) -> Result<(), HandlerError> {
///     send(order).await.map_err(|error| HandlerError::retry(error).downstream("mail"))
/// }
/// # async fn send(_: u64) -> std::io::Result<()> { Ok(()) }
///
/// let consumer = Consumer::new("confirmation", MemoryStore::new(), confirm)
///     .timeout(Duration::from_secs(5))
///     .breaker(Breaker::new("mail"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    pub(crate) downstream: String,
    pub(crate) rules: Rules,
}

impl Breaker {
    /// Returns a breaker for the system of this name: letters, digits, `-` and `_`, 1 to 64 of them. Consumers that name the same
    /// system in one store share its breaker.
    pub fn new(downstream: impl Into<String>) -> Self {
        Self { downstream: downstream.into(), rules: Rules { failures: 5, of: 10, open_for: Duration::from_secs(10) } }
    }

    /// Sets that it opens when `failures` of the last `of` runs have failed: 1 to 64, and no more failures than runs.
    #[must_use]
    pub fn opens_after(mut self, failures: u32, of: u32) -> Self {
        (self.rules.failures, self.rules.of) = (failures, of);
        self
    }

    /// Sets for how long it is open before it is probed for the first time: 1 s to 5 minutes, however long handlers take. Each failed probe
    /// doubles it, up to a minute, or to what is set here where that is more.
    #[must_use]
    pub fn open_for(mut self, time: Duration) -> Self {
        self.rules.open_for = time;
        self
    }

    /// Returns what is out of bounds, in words.
    pub(crate) fn faults(&self) -> Vec<String> {
        let Rules { failures, of, open_for } = self.rules;
        let (least, most) = (BREAKER_OPEN_MIN_MS, BREAKER_OPEN_MAX_MS * 5);
        let mut faults = Vec::new();
        if ConsumerName::new(self.downstream.as_str()).is_err() {
            faults.push(format!("the breaker's name {:?} is not 1 to 64 letters, digits, '-' or '_'", self.downstream));
        }
        if !(1..=of).contains(&failures) || of > BREAKER_CALLS_MAX {
            faults.push(format!(
                "the breaker opens after {failures} failures of {of} calls; 1 to {BREAKER_CALLS_MAX} calls are allowed, and 1 failure to as many as calls"
            ));
        }
        if !(u128::from(least)..=u128::from(most)).contains(&open_for.as_millis()) {
            faults.push(format!("the breaker is open for {} ms; {least} to {most} are allowed", open_for.as_millis()));
        }
        faults
    }
}
