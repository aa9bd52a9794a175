//! A limit's settings: how many calls all processes together make.

use std::time::Duration;

use crate::clock::Timestamp;
pub use crate::engine::limit::worker::{LimitTurn, Line, WorkerLimit};
use crate::key::ConsumerName;
use crate::limits::{LIMIT_SLOTS_DEFAULT, LIMIT_SLOTS_MAX};
pub use crate::protocol::rate::{Allowed, Plan};

/// The consumer whose keys are limits: `claimant-rate#mail` has what an operator has set, `claimant-rate#mail/plan` what all processes go
/// by, `claimant-rate#mail/0` and so on are the slots that they hold, and `claimant-rate#mail/wanted` says that one has none. No other
/// consumer has this name.
pub const LIMIT_CONSUMER: &str = "claimant-rate";

/// What follows a limit's name and `/` in the key of its [`Plan`].
pub const LIMIT_PLAN: &str = "plan";

/// What follows them in the key of the mark that a process has no slot.
pub const LIMIT_WANTED: &str = "wanted";

/// Returns whether a lease of so many milliseconds ends later than it can, whatever clocks within this skew say: one of them is far off.
#[must_use]
pub fn ends_too_late(until: Timestamp, lease_ms: u64, (now, skew): (Timestamp, Duration)) -> bool {
    until > now.plus(Duration::from_millis(lease_ms) + skew * 3)
}

/// A limit across all processes: how many messages are started each second for a system that handlers call, or run at once, or both.
///
/// It is split into slots, each a leased record of the consumer's store: a process runs a message only in a slot that it holds. So the
/// limit costs a few requests for each slot and minute, and none for a message; and a process that dies gives its slots back with
/// their leases, after 15 s. In any time W at most *rate* × (W + 20 ms) + *slots* messages are started, by all processes together.
///
/// Messages that have no turn yet wait in their invocations, and are not claimed; what has waited to the end is
/// [`rate_limited`](crate::Outcome::RateLimited). It can be changed while functions run: `claimant limit`.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Consumer, Context, HandlerError, Limit, memory::MemoryStore};
///
/// async fn confirm(order: u64, _: Context) -> Result<(), HandlerError> {
///     Ok(())
/// }
///
/// // Fifty a second, and twenty at once.
/// let consumer = Consumer::new("confirmation", MemoryStore::new(), confirm)
///     .limit(Limit::new("mail").per_second(50).at_once(20));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    pub(crate) downstream: String,
    pub(crate) allowed: Allowed,
    pub(crate) slots: u32,
}

impl Limit {
    /// Returns a limit for the system of this name: letters, digits, `-` and `_`, 1 to 64 of them. Consumers that name the same
    /// system in one store share its limit, and must set it alike. Those of one function share its slots, in the store of the first.
    pub fn new(downstream: impl Into<String>) -> Self {
        Self { downstream: downstream.into(), allowed: Allowed::default(), slots: LIMIT_SLOTS_DEFAULT }
    }

    /// Sets how many messages are started in a second at most, by all processes together: 1 to
    /// [`LIMIT_CALLS_MAX`](crate::limits::LIMIT_CALLS_MAX).
    #[must_use]
    pub fn per_second(self, messages: u32) -> Self {
        self.per(messages, Duration::from_secs(1))
    }

    /// Sets how many messages are started in this time at most, by all processes together: a time of a second to a minute.
    ///
    /// The first message in a process waits as long as the time between two, where that is more than that: six a minute are one
    /// each ten seconds, and a process begins with a wait of those.
    #[must_use]
    pub fn per(mut self, messages: u32, time: Duration) -> Self {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        (self.allowed.calls, self.allowed.per_ms) = (Some(messages), ms);
        self
    }

    /// Sets how many messages run at once at most, in all processes together: 1 to [`LIMIT_CALLS_MAX`](crate::limits::LIMIT_CALLS_MAX).
    /// A message whose process was cut off from the store for longer than its lease goes on, and is then beyond it.
    #[must_use]
    pub fn at_once(mut self, messages: u32) -> Self {
        self.allowed.at_once = Some(messages);
        self
    }

    /// Sets into how many slots it is split: 1 to [`LIMIT_SLOTS_MAX`], ten unless set. As many
    /// processes can work at once, so an event source mapping's `MaximumConcurrency` should not be more. And no more are used than the
    /// limit allows in a second, or at once.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// Returns what all processes go by where no operator has set anything.
    pub(crate) fn plan(&self) -> Plan {
        Plan { allowed: self.allowed, slots: self.slots }
    }

    /// Returns what is out of bounds, in words.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = self.allowed.faults();
        if ConsumerName::new(self.downstream.as_str()).is_err() {
            faults.push(format!("the limit's name {:?} is not 1 to 64 letters, digits, '-' or '_'", self.downstream));
        }
        if !(1..=LIMIT_SLOTS_MAX).contains(&self.slots) {
            faults.push(format!("the limit has {} slots; 1 to {LIMIT_SLOTS_MAX} are allowed", self.slots));
        }
        faults
    }
}
