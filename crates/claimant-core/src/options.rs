//! The options of a consumer beside its handler and its rules, and their bounds.

use std::time::Duration;

use crate::breaker::Breaker;
use crate::limit::Limit;
use crate::limits;
use crate::protocol::ClaimPolicy;

/// How long a claim is honoured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Lease {
    /// Until the invocation's deadline and a second more: no renewals, no extra requests.
    #[default]
    UntilDeadline,
    /// For this long, renewed three times in each of it while the handler runs. A key whose owner died is claimable soon.
    /// Each renewal is a request to the store and one to the queue, which hides the message for as long again and the
    /// [clock skew](crate::Consumer::clock_skew), whatever the queue's own visibility timeout is. Copies of the work, under
    /// other message ids, come back after as long as an invocation can last. Between [`LEASE_MIN_MS`](crate::limits::LEASE_MIN_MS) and
    /// [`LEASE_MAX_MS`](crate::limits::LEASE_MAX_MS).
    Renewed(Duration),
}

/// A consumer's options; `None` where it sets none.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) concurrency: Option<usize>,
    /// Set for batch handlers alone.
    pub(crate) items_max: Option<usize>,
    pub(crate) expected: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempts_max: Option<u32>,
    pub(crate) busy_wait: Option<Duration>,
    pub(crate) breaker: Option<Breaker>,
    pub(crate) limit: Option<Limit>,
    pub(crate) lease: Lease,
    pub(crate) policy: ClaimPolicy,
}

impl Options {
    /// Returns how many messages a call of a batch handler gets at most.
    pub(crate) fn items_max(&self) -> usize {
        self.items_max.unwrap_or(limits::ITEMS_DEFAULT)
    }

    /// Returns each option that is out of bounds, in words.
    pub(crate) fn faults(&self) -> Vec<String> {
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let lease = match self.lease {
            Lease::UntilDeadline => None,
            Lease::Renewed(lease) => Some(millis(lease)),
        };
        // OK because usize is at most 64 bits wide.
        let concurrency = self.concurrency.map(|n| n as u64);
        let concurrency_max = limits::CONCURRENCY_MAX as u64;
        let (items, items_max) = (self.items_max.map(|n| n as u64), limits::ITEMS_MAX as u64);
        let bounds = [
            ("the window", Some(self.policy.window.as_secs()), limits::WINDOW_MIN_S, limits::WINDOW_MAX_S, "s"),
            ("the clock skew", Some(millis(self.policy.skew)), 0, limits::SKEW_MAX_MS, "ms"),
            ("the concurrency", concurrency, 1, concurrency_max, "messages"),
            ("the size of a call", items, 1, items_max, "items"),
            ("the expected duration", self.expected.map(millis), 0, limits::LEASE_MAX_MS, "ms"),
            ("the timeout", self.timeout.map(millis), 1, limits::LEASE_MAX_MS, "ms"),
            ("the limit of attempts", self.attempts_max.map(u64::from), 1, u32::MAX.into(), "attempts"),
            ("the wait for busy keys", self.busy_wait.map(millis), 1, limits::BUSY_WAIT_MAX_MS, "ms"),
            ("the lease", lease, limits::LEASE_MIN_MS, limits::LEASE_MAX_MS, "ms"),
        ];
        let breaker = self.breaker.iter().flat_map(Breaker::faults).chain(self.limit.iter().flat_map(Limit::faults));
        let out = bounds.into_iter().filter_map(|(what, value, min, max, unit)| {
            let value = value.filter(|v| !(min..=max).contains(v))?;
            Some(format!("{what} is {value} {unit}; {min} to {max} are allowed"))
        });
        out.chain(breaker).collect()
    }
}
