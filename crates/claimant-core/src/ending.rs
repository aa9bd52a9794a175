//! How a claim ends after its handler's run, and what its message is to get for it.

use std::time::Duration;

use crate::backoff;
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::failure::{Failure, FailureKind};
use crate::key::ConsumerName;
use crate::message::Message;
use crate::pipeline::Verdict;
use crate::protocol::{Abandoned, Ending, Settlement};
use crate::rejection::Rejection;
use crate::report::Outcome;
use crate::run::Ran;

/// A claim that is to be settled.
pub(crate) struct Ended {
    pub(crate) claim: Claim,
    pub(crate) ending: Ending,
    pub(crate) after: After,
}

/// What is left of one whose claim is being settled.
pub(crate) struct After {
    pub(crate) place: usize,
    /// What the message gets once the ending is written.
    pub(crate) wanted: Wanted,
    pub(crate) attempt: u32,
    pub(crate) lease_end: Timestamp,
}

/// A settlement on its way, without its claim: the same at each try.
pub(crate) struct Settling {
    pub(crate) settlement: Settlement,
    pub(crate) after: After,
}

/// What a message gets once its ending is written.
pub(crate) enum Wanted {
    /// This verdict, and the handler's result for its duplicates.
    Verdict(Verdict, Option<String>),
    /// None yet: it is claimed again when its turn comes.
    LaterTurn,
    /// To be rejected: why, for its own dead letter, and which run of the handler said so.
    Rejected { rejection: Rejection, error: String, attempt: Option<u32> },
    /// To be parked: why, and after which run of the handler, for its own dead letter.
    Parked { error: String, attempt: u32 },
}

impl Wanted {
    pub(crate) fn is_completion(&self) -> bool {
        matches!(self, Self::Verdict((Outcome::Completed, _), _))
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Verdict((outcome, _), _) => outcome.word(),
            Self::LaterTurn => "set_aside",
            Self::Rejected { .. } => "rejected",
            Self::Parked { .. } => "parked",
        }
    }
}

impl Ended {
    fn new(place: usize, claim: Claim, ending: Ending, wanted: Wanted) -> Self {
        let after = After { place, wanted, attempt: claim.attempt, lease_end: claim.lease_until };
        Self { claim, ending, after }
    }

    /// A claim whose handler was not run, for want of time or of a thread.
    pub(crate) fn released(place: usize, claim: Claim) -> Self {
        let ending = if claim.taken_over { Ending::SetAside } else { Ending::Released };
        Self::new(place, claim, ending, verdict(Outcome::NotStarted, Duration::ZERO))
    }

    /// A claim of work that an earlier owner may have died of, which is not its turn yet.
    pub(crate) fn set_aside(place: usize, claim: Claim) -> Self {
        Self::new(place, claim, Ending::SetAside, Wanted::LaterTurn)
    }

    /// A claim of a key that was claimed as often as it may; claims whose owners died before they ran it count too.
    pub(crate) fn worn_out(name: &ConsumerName, message: &Message, place: usize, claim: Claim, max: u32) -> Self {
        let error = format!("it was claimed {max} times before, which is as often as it may");
        tracing::error!(consumer = %name, message_id = %message.id, attempt = claim.attempt, reason = %error, "message rejected");
        let wanted = Wanted::Rejected { rejection: Rejection::new(error.clone()), error: error.clone(), attempt: None };
        Self::new(place, claim, Ending::Rejected { error }, wanted)
    }
}

fn verdict(outcome: Outcome, visible_after: Duration) -> Wanted {
    Wanted::Verdict((outcome, Some(visible_after)), None)
}

/// How the claim ends after this run; or, where its handler may still run under it, `None`.
pub(crate) fn ending_of(
    name: &ConsumerName,
    message: &Message,
    place: usize,
    claim: Claim,
    ran: Ran,
    abandoned: Abandoned,
) -> Option<Ended> {
    let attempt = claim.attempt;
    let backoff = backoff::delay(attempt, &message.id);
    // It may have had its effect: at most once means that a person decides.
    let in_doubt = |error: String, outcome: Outcome, delay: Duration| match abandoned {
        Abandoned::Rerun => (Ending::Failed { error }, verdict(outcome, delay)),
        Abandoned::Park => (Ending::Parked { error: error.clone() }, Wanted::Parked { error, attempt }),
    };
    let cut_off = |why: &str, outcome| in_doubt(why.to_owned(), outcome, backoff);
    let (ending, wanted) = match ran {
        Ran::Returned(Ok(result)) => {
            (Ending::Completed { result: result.clone() }, Wanted::Verdict((Outcome::Completed, None), result))
        }
        Ran::Returned(Err(Failure { why: error, kind: FailureKind::Terminal, .. })) => {
            tracing::error!(consumer = %name, message_id = %message.id, attempt, reason = %error, "message rejected by its handler");
            let rejection = Rejection::new("its handler says so");
            let wanted = Wanted::Rejected { rejection, error: error.clone(), attempt: Some(attempt) };
            (Ending::Rejected { error }, wanted)
        }
        Ran::Returned(Err(Failure { why: error, kind: FailureKind::Uncertain, retry_after })) => {
            tracing::warn!(consumer = %name, message_id = %message.id, attempt, error = %error, "handler failed, and its work may be done");
            in_doubt(error, Outcome::Retry, retry_after.unwrap_or(backoff))
        }
        Ran::Returned(Err(Failure { why: error, kind: FailureKind::Retry, retry_after })) => {
            tracing::warn!(consumer = %name, message_id = %message.id, attempt, error = %error, "handler failed");
            (Ending::Failed { error }, verdict(Outcome::Retry, retry_after.unwrap_or(backoff)))
        }
        Ran::Panicked => {
            tracing::error!(consumer = %name, message_id = %message.id, attempt, "handler panicked");
            cut_off("the handler panicked", Outcome::Retry)
        }
        Ran::Cancelled(why) => {
            tracing::warn!(consumer = %name, message_id = %message.id, attempt, why, "handler cancelled");
            cut_off(why, Outcome::Cancelled)
        }
        Ran::LeaseLost => {
            tracing::error!(consumer = %name, message_id = %message.id, attempt, "lease lost while the handler ran; it was cancelled");
            // If the claim is still held, since only the message was lost, this lets it go; else it is refused.
            cut_off("the lease was lost while the handler ran", Outcome::LeaseLost)
        }
        Ran::LeaseLostUnstarted => {
            tracing::warn!(consumer = %name, message_id = %message.id, attempt, "lease lost before the handler was started");
            let Ended { claim, ending, .. } = Ended::released(place, claim);
            return Some(Ended::new(place, claim, ending, verdict(Outcome::LeaseLost, backoff)));
        }
        Ran::StillRunning => {
            tracing::error!(consumer = %name, message_id = %message.id, attempt, "handler did not stop when cancelled: it keeps its claim until the lease ends");
            return None;
        }
        Ran::NeverStarted => {
            tracing::warn!(consumer = %name, message_id = %message.id, attempt, "no thread was free for the handler: others block them all");
            return Some(Ended::released(place, claim));
        }
    };
    Some(Ended::new(place, claim, ending, wanted))
}
