//! What follows a handler's run, and what follows the settlement of its claim.

use super::context::BatchContext;
use super::exit::Exit;
use super::run::{LEASE_LOST, Ran, RunEnd};
use super::settlement::{Then, Unsettled};
use super::settling::{SettleResult, Settling};
use super::work::{Answer, Claimed, Work};
use crate::backoff;
use crate::error::Chain;
use crate::payload::Payload;
use crate::protocol::breaker::Health;
use crate::report::Outcome;
use crate::store::Settled;

/// What is done next with work.
pub(crate) enum After {
    /// Its claim is settled, or settled in another way.
    Settle(Unsettled),
    /// It is claimed again when its turn comes; it was claimed this often.
    LaterTurn(Work<Payload>, u32),
    /// It is claimed again as if it had not been.
    Wait(Work<Payload>),
    /// Its message leaves the batch.
    Leave(Work<()>, Exit),
}

/// Decides what follows a handler's run.
pub(crate) fn after_run<'a>(cx: BatchContext<'a>, ran: Ran) -> After {
    let Ran { claimed, end, .. } = ran;
    let (delivery, attempt) = (&claimed.work.delivery, claimed.claim.attempt);
    let (name, message_id) = (cx.name(), delivery.message.id());
    // What hangs is away: as a failure that says so.
    let hung = end.health(|_| Health::Unknown) == Health::Away;
    let retry_delay = cx.retry_delay(delivery, attempt, hung, None);
    After::Settle(match end {
        RunEnd::Returned(result) => Unsettled::returned(cx, claimed, result),
        RunEnd::Panicked => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, "handler panicked");
            Unsettled::cut_off(cx, claimed, "the handler panicked", Then::answer(Outcome::Retry, retry_delay))
        }
        RunEnd::Cancelled(why) => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, why, "handler cancelled");
            Unsettled::cut_off(cx, claimed, why, Then::answer(Outcome::Cancelled, retry_delay))
        }
        RunEnd::LeaseLost => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, "lease lost while the handler ran; it was cancelled");
            // If the claim is still held, since only the message was lost, this lets it go; else it is refused.
            Unsettled::cut_off(cx, claimed, LEASE_LOST, Then::answer(Outcome::LeaseLost, retry_delay))
        }
        RunEnd::LeaseLostUnstarted => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, "lease lost before the handler was started");
            // This attempt does not count.
            let delay = cx.retry_delay(delivery, attempt.saturating_sub(1), false, None);
            Unsettled::not_run(claimed, Then::answer(Outcome::LeaseLost, delay))
        }
        RunEnd::StillRunning(_) => {
            tracing::error!(consumer = %name, message_id = %message_id, attempt, "handler did not stop when cancelled: it keeps its claim until the lease ends");
            let lease = cx.after_lease(message_id, claimed.claim.lease_until.plus(cx.policy().skew));
            let held = hung && cx.holds_back() && !cx.shared.is_dead_lettered_next(delivery.message.receive_count());
            let delay = if held { lease.max(retry_delay) } else { lease };
            // Nothing is settled: the handler still runs under the claim.
            return After::Leave(claimed.work, Exit::Answered(Answer::failure(Outcome::Stuck, delay)));
        }
        RunEnd::NeverStarted => {
            tracing::warn!(consumer = %name, message_id = %message_id, attempt, "no thread was free for the handler: others block them all");
            let then = Then::not_started(cx, &delivery.message);
            Unsettled::not_run(claimed, then)
        }
        RunEnd::NoTime => {
            let then = Then::not_started(cx, &delivery.message);
            Unsettled::not_run(claimed, then)
        }
        RunEnd::NoTransaction => {
            let then = Then::Exit(Exit::Answered(Answer::unchanged(Outcome::StoreFailed)));
            Unsettled::not_run(claimed, then)
        }
    })
}

/// Decides what follows a settlement.
pub(crate) fn after_settling<'a>(cx: BatchContext<'a>, result: SettleResult) -> After {
    let SettleResult { settling: Settling { work, permits, then, attempt, lease_end, .. }, settled } = result;
    let (message_id, word) = (&work.delivery.message.id(), then.word());
    let exit = match settled {
        Settled::Done => match then {
            Then::LaterTurn(payload) => return After::LaterTurn(work.with(payload), attempt),
            Then::Wait(payload) => return After::Wait(work.with(payload)),
            Then::Exit(exit) => exit,
            Then::Park { error, attempt } => cx.parked(&work.delivery, error, Some(attempt)),
        },
        Settled::Aborted { claim, failure } if then.is_completion() => {
            return After::Settle(Unsettled::returned(cx, Claimed { work, claim, permits }, Err(failure)));
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
