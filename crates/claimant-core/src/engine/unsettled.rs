//! How a claim is to end, and what its message gets for it; and how one ends whose handler is not run.

use std::time::Duration;

use super::context::BatchContext;
use super::exit::Exit;
use super::work::{Answer, Claimed};
use crate::payload::Payload;
use crate::protocol::{Ending, too_often};
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
    /// It is claimed again when its turn comes, after so many interruptions.
    LaterTurn(Payload, u32),
    /// It is claimed again once the breaker is closed.
    Wait(Payload),
}

impl Then {
    pub(crate) fn answer(outcome: Outcome, visible_after: Duration) -> Self {
        Self::Exit(Exit::Answered(Answer::failure(outcome, visible_after)))
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
            Self::LaterTurn(..) => "set_aside",
            Self::Wait(_) => "released",
        }
    }
}

impl Unsettled {
    /// Releases a claim that was made before the breaker opened; its message waits for another one.
    pub(crate) fn held_back(claimed: Claimed) -> Self {
        if claimed.claim.is_taken_over() {
            return Self::set_aside(claimed);
        }
        let (claimed, payload) = claimed.split();
        Self { claimed, ending: Ending::Released, then: Then::Wait(payload) }
    }

    /// Releases a claim whose handler was not run for lack of time.
    pub(crate) fn released(cx: BatchContext<'_>, claimed: Claimed) -> Self {
        let answer = cx.without_run(&claimed.work.delivery);
        Self::not_run(claimed.without_payload(), answer)
    }

    /// Settles a claim whose handler was not started.
    pub(crate) fn not_run(claimed: Claimed<()>, answer: Answer) -> Self {
        let interruptions = claimed.claim.interruptions;
        let ending = if interruptions > 0 { Ending::SetAside { interruptions } } else { Ending::Released };
        Self { claimed, ending, then: Then::Exit(Exit::Answered(answer)) }
    }

    /// Sets aside a claim of work that may have killed an earlier owner, until it has its turn.
    pub(crate) fn set_aside(claimed: Claimed) -> Self {
        let (claimed, payload) = claimed.split();
        let interruptions = claimed.claim.interruptions;
        let then = Then::LaterTurn(payload, interruptions);
        Self { claimed, ending: Ending::SetAside { interruptions }, then }
    }

    /// Rejects a claim of a key whose attempts are exhausted; claims whose owners died before they ran it count too.
    pub(crate) fn attempts_exhausted(cx: BatchContext<'_>, claimed: Claimed, max: u32) -> Self {
        let claimed = claimed.without_payload();
        let error = too_often(max, &claimed.claim);
        let exit = cx.rejected(&claimed.work.delivery, Rejection::new(error.clone()));
        Self { claimed, ending: Ending::Rejected { error }, then: Then::Exit(exit) }
    }
}
