//! How a claim ends after its handler's run, and what its message gets for it.

use std::time::Duration;

use super::context::BatchContext;
use super::exit::{Disposal, Exit, Why};
use super::run::{HandlerResult, LEASE_LOST, Ran, RunEnd};
use super::work::{Answer, Claimed, Delivery};
use crate::failure::{Failure, FailureKind};
use crate::message::Message;
use crate::payload::Payload;
use crate::protocol::breaker::Health;
use crate::protocol::{Abandoned, Ending};
use crate::rejection::Rejection;
use crate::report::Outcome;

/// A claim that is to be settled.
pub(crate) struct Unsettled {
    pub(crate) claimed: Claimed<()>,
    pub(crate) ending: Ending,
    pub(crate) then: Then,
}

/// What becomes of the message once the ending is written.
pub(crate) enum Then {
    /// It leaves the batch.
    Exit(Exit),
    /// It leaves the batch as parked: why, and after which run of its handler.
    Park { error: String, attempt: u32 },
    /// It is claimed again when its turn comes.
    LaterTurn(Payload),
    /// It is claimed again once the breaker is closed.
    Wait(Payload),
}

/// What a run leaves to be done.
#[expect(clippy::large_enum_variant, reason = "nearly all are the large one")]
pub(crate) enum AfterRun {
    Settle(Unsettled),
    /// Nothing: the handler still runs under the claim, until its lease is over.
    Stuck(Delivery, Answer),
}

impl Then {
    fn answer(outcome: Outcome, visible_after: Duration) -> Self {
        Self::Exit(Exit::Answered(Answer::failure(outcome, visible_after)))
    }

    fn not_started(cx: BatchContext<'_>, message: &Message) -> Self {
        Self::Exit(Exit::Answered(cx.not_started(message)))
    }

    pub(crate) fn is_completion(&self) -> bool {
        matches!(self, Self::Exit(Exit::Answered(Answer { outcome: Outcome::Completed, .. })))
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Exit(Exit::Answered(answer)) => answer.outcome.word(),
            Self::Exit(Exit::Duplicate { .. }) => "duplicate",
            Self::Exit(Exit::Disposed(disposal)) => disposal.why.reason().as_str(),
            Self::Park { .. } => "parked",
            Self::LaterTurn(_) => "set_aside",
            Self::Wait(_) => "released",
        }
    }
}

impl<'a> Unsettled {
    /// Releases a claim that was made before the breaker opened; its message waits for another one.
    pub(crate) fn held_back(claimed: Claimed) -> Self {
        if claimed.claim.taken_over || claimed.work.its_turn {
            return Self::set_aside(claimed);
        }
        let (claimed, payload) = claimed.split();
        Self { claimed, ending: Ending::Released, then: Then::Wait(payload) }
    }

    /// Releases a claim whose handler was not run for lack of time.
    pub(crate) fn released(cx: BatchContext<'a>, claimed: Claimed) -> Self {
        let then = Then::Exit(Exit::Answered(cx.not_run(&claimed.work.delivery.message)));
        Self::not_run(claimed.without_payload(), then)
    }

    fn not_run(claimed: Claimed<()>, then: Then) -> Self {
        let ending = if claimed.claim.taken_over { Ending::SetAside } else { Ending::Released };
        Self { claimed, ending, then }
    }

    /// Sets aside a claim of work that may have killed an earlier owner, until it has its turn.
    pub(crate) fn set_aside(claimed: Claimed) -> Self {
        let (claimed, payload) = claimed.split();
        Self { claimed, ending: Ending::SetAside, then: Then::LaterTurn(payload) }
    }

    /// Rejects a claim of a key whose attempts are exhausted; claims whose owners died before they ran it count too.
    pub(crate) fn attempts_exhausted(cx: BatchContext<'a>, claimed: Claimed, max: u32) -> Self {
        let claimed = claimed.without_payload();
        let (message_id, attempt) = (&claimed.work.delivery.message.id(), claimed.claim.attempt);
        let error = format!("it was claimed {max} times before, which is as often as it may");
        tracing::error!(consumer = %cx.name(), message_id = %message_id, attempt, reason = %error, "message rejected");
        let why = Why::Rejected(Rejection::new(error.clone()));
        let then = Then::Exit(Exit::Disposed(Disposal { why, error: error.clone(), attempt: None }));
        Self { claimed, ending: Ending::Rejected { error }, then }
    }

    /// Settles a claim by what its handler returned, or by the failure of its transaction.
    pub(crate) fn returned(cx: BatchContext<'a>, claimed: Claimed<()>, result: HandlerResult) -> Self {
        let (ending, then) = match result {
            Ok(result) => {
                let answer = Answer::success(Outcome::Completed, result.clone());
                (Ending::Completed { result }, Then::Exit(Exit::Answered(answer)))
            }
            Err(failure) => after_failure(cx, &claimed, failure),
        };
        Self { claimed, ending, then }
    }
}

fn after_failure(cx: BatchContext<'_>, claimed: &Claimed<()>, failure: Failure) -> (Ending, Then) {
    let (message, attempt) = (&claimed.work.delivery.message, claimed.claim.attempt);
    let (name, message_id) = (cx.name(), message.id());
    let delay = cx.failure_delay(message, attempt, &failure);
    let Failure { why: error, kind, .. } = failure;
    match kind {
        FailureKind::Terminal => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, reason = %error, "message rejected by its handler");
            // A copy of the same work in this batch gets the same dead letter.
            let why = Why::Rejected(Rejection::new(error.clone()));
            let disposal = Disposal { why, error: error.clone(), attempt: Some(attempt) };
            (Ending::Rejected { error }, Then::Exit(Exit::Disposed(disposal)))
        }
        FailureKind::Uncertain => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, error = %error, "handler failed, and its work may be done");
            in_doubt(cx, attempt, error, Then::answer(Outcome::Retry, delay))
        }
        FailureKind::Retry => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, error = %error, "handler failed");
            (Ending::Failed { error }, Then::answer(Outcome::Retry, delay))
        }
    }
}

/// Returns the ending of work that may have had its effect: with at most once, an operator decides.
fn in_doubt(cx: BatchContext<'_>, attempt: u32, error: String, then: Then) -> (Ending, Then) {
    match cx.policy().abandoned {
        Abandoned::Rerun => (Ending::Failed { error }, then),
        Abandoned::Park => (Ending::Parked { error: error.clone() }, Then::Park { error, attempt }),
    }
}

/// Decides what follows a handler's run.
pub(crate) fn after_run<'a>(cx: BatchContext<'a>, ran: Ran) -> AfterRun {
    let Ran { claimed, end, .. } = ran;
    let (message, attempt) = (&claimed.work.delivery.message, claimed.claim.attempt);
    let (name, message_id) = (cx.name(), message.id());
    // What hangs is away: as a failure that says so.
    let hung = end.health(|_| Health::Unknown) == Health::Away;
    let as_held = (hung && cx.holds_back()).then(|| cx.held_delay(message));
    let backoff = cx.retry_delay(message, attempt, as_held);
    let cut_off = |why: &str, outcome| in_doubt(cx, attempt, why.to_owned(), Then::answer(outcome, backoff));
    let (ending, then) = match end {
        RunEnd::Returned(result) => return AfterRun::Settle(Unsettled::returned(cx, claimed, result)),
        RunEnd::Panicked => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, "handler panicked");
            cut_off("the handler panicked", Outcome::Retry)
        }
        RunEnd::Cancelled(why) => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, why, "handler cancelled");
            cut_off(why, Outcome::Cancelled)
        }
        RunEnd::LeaseLost => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, "lease lost while the handler ran; it was cancelled");
            // If the claim is still held, since only the message was lost, this lets it go; else it is refused.
            cut_off(LEASE_LOST, Outcome::LeaseLost)
        }
        RunEnd::LeaseLostUnstarted => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, "lease lost before the handler was started");
            // This attempt does not count.
            let delay = cx.retry_delay(message, attempt.saturating_sub(1), None);
            let then = Then::answer(Outcome::LeaseLost, delay);
            return AfterRun::Settle(Unsettled::not_run(claimed, then));
        }
        RunEnd::StillRunning(_) => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, "handler did not stop when cancelled: it keeps its claim until the lease ends");
            let lease = cx.after_lease(message_id, claimed.claim.lease_until.plus(cx.policy().skew));
            let delay = as_held.map_or(lease, |_| lease.max(backoff));
            return AfterRun::Stuck(claimed.work.delivery, Answer::failure(Outcome::Stuck, delay));
        }
        RunEnd::NeverStarted => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, "no thread was free for the handler: others block them all");
            let then = Then::not_started(cx, message);
            return AfterRun::Settle(Unsettled::not_run(claimed, then));
        }
        RunEnd::NoTime => {
            let then = Then::not_started(cx, message);
            return AfterRun::Settle(Unsettled::not_run(claimed, then));
        }
        RunEnd::NoTransaction => {
            let then = Then::Exit(Exit::Answered(Answer::unchanged(Outcome::StoreFailed)));
            return AfterRun::Settle(Unsettled::not_run(claimed, then));
        }
    };
    AfterRun::Settle(Unsettled { claimed, ending, then })
}
