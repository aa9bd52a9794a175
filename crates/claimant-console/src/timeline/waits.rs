//! What a message waited for between two receives.

use std::time::Duration;

use claimant_core::backoff::delay;
use claimant_core::{MessageId, Timestamp};

use super::fact::{BatchEnd, Fact, What};

/// A message that is received so much later than it could be was waiting for a process.
pub(super) const LATE_MIN: Duration = Duration::from_secs(1);

/// How a message waited to be received again.
pub(super) struct Waited {
    /// Since when.
    pub(super) from: Timestamp,
    /// For what.
    pub(super) why: String,
    /// Until when it was hidden at the end of its receive, where that is known.
    pub(super) hidden_until: Option<Timestamp>,
}

impl Waited {
    fn of(from: Timestamp, why: &str) -> Option<Self> {
        Some(Self { from, why: why.to_owned(), hidden_until: None })
    }
}

/// The outcomes of a run that failed.
const FAILED: [&str; 3] = ["retry", "cancelled", "lease_lost"];

/// Returns whether a message was hidden for longer than the backoff of its last attempt, which is rounded up to whole seconds.
fn is_longer_than_backoff((from, until): (Timestamp, Timestamp), attempt: u32, message: &str) -> bool {
    let backoff = MessageId::new(message).map(|id| delay(attempt.max(1), &id));
    backoff.is_ok_and(|backoff| until.since(from) > backoff + 2 * LATE_MIN)
}

/// Returns from when a message was waiting to be received again, and for what.
pub(super) fn waited(before: &[Fact], message: &str) -> Option<Waited> {
    let (mut outcome, mut from, mut hidden, mut attempt, mut others) = (None, None, None, 0, false);
    for fact in of_last_receive(before, message) {
        match &fact.what {
            What::Hidden { until } if outcome.is_none() => hidden = hidden.or(Some((fact.at, *until))),
            What::Claimed(claim) => attempt = claim.attempt.max(attempt),
            What::Finished(finished) => {
                others |= finished.rank() == 0 && !FAILED.contains(&finished.outcome.as_str());
                let known = outcome.filter(|(rank, _)| *rank < finished.rank());
                outcome = known.or(Some((finished.rank(), finished.outcome.as_str())));
            }
            What::BatchFailed(BatchEnd::Died(_) | BatchEnd::TimedOut) => outcome = Some((0, "died")),
            What::Received { .. } => break,
            What::Moved { .. } => return Waited::of(from.unwrap_or(fact.at), "in the dead-letter queue"),
            What::Sent { delayed_until: Some(_), .. } => return Waited::of(fact.at, "delayed by its sender"),
            What::Sent { .. } => return Waited::of(fact.at, "in its queue, to be received"),
            _ => {}
        }
        from = from.or(Some(fact.at));
    }
    let why = match outcome.map(|(_, word)| word) {
        Some("busy") => "for the claim on its key, which another worker held",
        Some(failed) if FAILED.contains(&failed) => match hidden {
            Some((from, until)) if until <= from => "after a failed run, to be received: it was visible again at once",
            Some(hidden) if is_longer_than_backoff(hidden, attempt, message) => match others {
                true => {
                    "after a failed run, for longer than the backoff: its handler asked for that, the breaker was open, or another event of it \
                     waits longer"
                }
                false => {
                    "after a failed run, for longer than the backoff: its handler asked for that, or the breaker was open"
                }
            },
            _ => "for the backoff after a failed run",
        },
        Some("stuck" | "settle_unknown") => "for the end of the lease of its claim",
        Some("blocked") => "for an earlier message of its group",
        Some("breaker_open") => "for the system that its handler calls: the breaker was open",
        Some("rate_limited") => "for its turn within the limit of the system that its handler calls",
        Some("not_started") => "for an invocation that has time for it",
        Some("rejected" | "conflict" | "parked") => "to be received once more, on its way to the dead-letter queue",
        Some("died") => "for the end of its visibility timeout: nothing else brings a message back whose process died",
        _ => "for the end of its visibility timeout",
    };
    let hidden_until = hidden.filter(|(from, until)| until > from).map(|(_, until)| until);
    from.map(|from| Waited { from, why: why.to_owned(), hidden_until })
}

/// Returns what happened to a message since its last receive or its sending, newest first, with that at the end. What ends an earlier
/// receive late is left out: what a process that was frozen tells, and the function's timeout.
pub(super) fn of_last_receive<'a>(before: &'a [Fact], message: &str) -> Vec<&'a Fact> {
    let mut own = Vec::new();
    for (index, fact) in before.iter().enumerate().rev().filter(|(_, fact)| fact.message == message) {
        own.push(fact);
        if let What::Received { count, .. } = fact.what {
            own.retain(|fact| match &fact.what {
                What::Finished(finished) => finished.receive.is_none_or(|of| of >= count),
                What::BatchFailed(_) | What::Answered(_) => !is_delivered(&before[..index], fact),
                _ => true,
            });
        }
        if matches!(fact.what, What::Received { .. } | What::Sent { .. }) {
            break;
        }
    }
    own
}

/// Whether a message had been handed to the invocation of a fact about it.
fn is_delivered(before: &[Fact], of: &Fact) -> bool {
    let is_its = |fact: &Fact| fact.message == of.message && fact.invocation == of.invocation;
    of.invocation.is_some() && before.iter().any(|fact| matches!(fact.what, What::Delivered { .. }) && is_its(fact))
}
