//! What follows a handler's run: how its claim ends, and what its message gets for it; and what follows the settlement.

use super::context::BatchContext;
use super::exit::{Disposal, Exit, Why};
use super::run::{Cut, HandlerReturn, Ran, RunEnd};
use super::settling::{Pending, SettleResult};
use super::unsettled::{Then, Unsettled};
use super::work::{Answer, Claimed, Work};
use crate::backoff;
use crate::error::Chain;
use crate::failure::{Failure, FailureKind};
use crate::protocol::{Abandoned, Ending};
use crate::rejection::Rejection;
use crate::report::Outcome;
use crate::store::Settled;

/// What is done next with work.
pub(crate) enum After {
    /// Its claim is settled, or settled in another way.
    Settle(Unsettled),
    /// It is claimed again when its turn comes; it was interrupted this often.
    LaterTurn(Work, u32),
    /// It is claimed again as if it had not been.
    Wait(Work),
    /// Its message leaves the batch.
    Leave(Work<()>, Exit),
}

/// Decides what follows a handler's run.
pub(crate) fn after_run(cx: BatchContext<'_>, ran: Ran) -> After {
    let Ran { claimed, end, .. } = ran;
    let (message, attempt) = (&claimed.work.delivery.message, claimed.claim.attempt);
    let (name, message_id) = (cx.name(), message.id());
    // What hangs is away: as a failure that says so.
    let hung = end.timed_out();
    let retry_delay = cx.retry_delay(message, attempt, hung, None);
    After::Settle(match end {
        RunEnd::Returned(result) => returned(cx, claimed, result),
        RunEnd::Panicked => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, "handler panicked");
            cut_off(cx, claimed, "the handler panicked".to_owned(), Then::answer(Outcome::Retry, retry_delay))
        }
        RunEnd::Cancelled(Cut::LeaseLost) => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, "lease lost while the handler ran; it was cancelled");
            // If the claim is still held, since only the message was lost, this lets it go; else it is refused.
            cut_off(cx, claimed, Cut::LeaseLost.why(), Then::answer(Outcome::LeaseLost, retry_delay))
        }
        RunEnd::Cancelled(cut) => {
            let why = cut.why();
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, why, "handler cancelled");
            cut_off(cx, claimed, why, Then::answer(Outcome::Cancelled, retry_delay))
        }
        RunEnd::LeaseLostUnstarted => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, "lease lost before the handler was started");
            // This attempt does not count.
            let delay = cx.retry_delay(message, attempt.saturating_sub(1), false, None);
            Unsettled::not_run(claimed, Answer::failure(Outcome::LeaseLost, delay))
        }
        RunEnd::StillRunning(_) => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, "handler did not stop when cancelled: it keeps its claim until the lease ends");
            let lease = cx.after_lease(message_id, claimed.claim.lease_until.plus(cx.policy().skew));
            let delay = if hung && cx.holds_back() { lease.max(retry_delay) } else { lease };
            // Nothing is settled: the handler still runs under the claim.
            return After::Leave(claimed.work, Exit::Answered(Answer::failure(Outcome::Stuck, delay)));
        }
        RunEnd::NeverStarted | RunEnd::NoTime => {
            if matches!(end, RunEnd::NeverStarted) {
                tracing::warn!(consumer = %name, message_id = %message_id, attempt, "no thread was free for the handler: others block them all");
            }
            let answer = cx.not_started(message);
            Unsettled::not_run(claimed, answer)
        }
        RunEnd::NoTransaction => Unsettled::not_run(claimed, Answer::unchanged(Outcome::StoreFailed)),
    })
}

/// Settles a claim by what its handler returned, or by the failure of its transaction.
pub(crate) fn returned(cx: BatchContext<'_>, claimed: Claimed<()>, result: HandlerReturn) -> Unsettled {
    let (ending, then) = match result {
        Ok(result) => {
            let answer = Answer::success(Outcome::Completed, result.clone());
            (Ending::Completed { result }, Then::Exit(Exit::Answered(answer)))
        }
        Err(failure) => after_failure(cx, &claimed, failure),
    };
    Unsettled { claimed, ending, then }
}

fn after_failure(cx: BatchContext<'_>, claimed: &Claimed<()>, failure: Failure) -> (Ending, Then) {
    let (message, attempt) = (&claimed.work.delivery.message, claimed.claim.attempt);
    let (name, message_id) = (cx.name(), message.id());
    let is_away = cx.shared.breaker.as_ref().is_some_and(|breaker| breaker.is_of(&failure));
    let Failure { why: error, kind, retry_after, .. } = failure;
    let retry = || Then::answer(Outcome::Retry, cx.retry_delay(message, attempt, is_away, retry_after));
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
            in_doubt(cx, attempt, error, retry)
        }
        FailureKind::Retry => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, error = %error, "handler failed");
            (Ending::Failed { error }, retry())
        }
    }
}

/// Settles a claim whose handler was cut off, and may have had its effect.
fn cut_off(cx: BatchContext<'_>, claimed: Claimed<()>, error: String, then: Then) -> Unsettled {
    let (ending, then) = in_doubt(cx, claimed.claim.attempt, error, || then);
    Unsettled { claimed, ending, then }
}

/// Returns the ending of work that may have had its effect: with at most once, an operator decides.
fn in_doubt(cx: BatchContext<'_>, attempt: u32, error: String, then: impl FnOnce() -> Then) -> (Ending, Then) {
    match cx.policy().abandoned {
        Abandoned::Rerun => (Ending::Failed { error }, then()),
        Abandoned::Park => (Ending::Parked { error: error.clone() }, Then::Park { error, attempt }),
    }
}

/// Decides what follows a settlement.
pub(crate) fn after_settling(cx: BatchContext<'_>, result: SettleResult) -> After {
    let SettleResult { pending: Pending { work, permits, then, attempt, lease_end, .. }, settled } = result;
    let (message_id, word) = (&work.delivery.message.id(), then.word());
    let exit = match settled {
        Settled::Done => match then {
            Then::LaterTurn(payload, interruptions) => return After::LaterTurn(work.with(payload), interruptions),
            Then::Wait(payload) => return After::Wait(work.with(payload)),
            Then::Exit(exit) => exit,
            Then::Park { error, attempt } => cx.parked(&work.delivery, error, Some(attempt)),
        },
        Settled::Aborted { claim, failure } if then.is_completion() => {
            // What runs again anyway is not in doubt.
            let parks = cx.policy().abandoned == Abandoned::Park;
            let failure = if parks { failure.after_return() } else { failure };
            return After::Settle(returned(cx, Claimed { work, claim, permits }, Err(failure)));
        }
        Settled::Refused(refusal) if then.is_completion() => cx.refused(&work, refusal),
        Settled::Lost | Settled::Aborted { .. } | Settled::Refused(_) => {
            tracing::warn!(consumer = %cx.name(), message_id = %message_id, attempt, wanted = word, "claim was lost before it was settled");
            let delay = backoff::delay(attempt, message_id);
            Exit::Answered(Answer::failure(Outcome::LeaseLost, delay))
        }
        Settled::Unknown { error, .. } => {
            tracing::warn!(consumer = %cx.name(), message_id = %message_id, attempt, wanted = word, error = %Chain(&error), "whether the claim was settled is not known");
            let delay = cx.after_lease(message_id, lease_end.plus(cx.policy().skew));
            Exit::Answered(Answer::failure(Outcome::SettleUnknown, delay))
        }
    };
    After::Leave(work, exit)
}
