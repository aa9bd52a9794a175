//! A message's work in the stages: a type for each step, moved from one to the next.

use std::time::Duration;

use tokio::time::Instant;

use super::slots::Permits;
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::identity::Identity;
use crate::message::Message;
use crate::payload::Payload;
use crate::report::{Details, Outcome};

/// An event of a message of the batch, whatever is known of its content.
pub(crate) struct Delivery {
    /// The message's index in the batch.
    pub(crate) index: usize,
    /// Which event of the message it is, from 0.
    pub(crate) event: u32,
    pub(crate) lane: usize,
    pub(crate) message: Message,
    pub(crate) details: Details,
    /// Since when it waits for its key in this invocation, if it does.
    pub(crate) waited: Option<Waited>,
}

/// A wait for a key that another owner holds.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    pub(crate) since: Instant,
    /// How often the key was found busy.
    pub(crate) tries: u32,
    /// What was found last: when it is claimable, and whether an earlier delivery of this message holds it.
    pub(crate) until: Timestamp,
    pub(crate) same_message: bool,
}

/// A message whose body says what its work is. With a [`Payload`], its handler has not run.
pub(crate) struct Work<P = Payload> {
    pub(crate) delivery: Delivery,
    pub(crate) identity: Identity,
    pub(crate) payload: P,
    /// Whether it is a suspect whose turn it is.
    pub(crate) its_turn: bool,
}

impl<P> Work<P> {
    /// Returns the work without its payload, and the payload.
    pub(crate) fn split(self) -> (Work<()>, P) {
        let Self { delivery, identity, payload, its_turn } = self;
        (Work { delivery, identity, payload: (), its_turn }, payload)
    }

    /// Returns the work without its payload, which is dropped.
    pub(crate) fn without_payload(self) -> Work<()> {
        self.split().0
    }
}

impl Work<()> {
    pub(crate) fn with(self, payload: Payload) -> Work {
        let Self { delivery, identity, its_turn, .. } = self;
        Work { delivery, identity, payload, its_turn }
    }
}

/// Work whose key is claimed. With a [`Payload`], its handler has not run.
pub(crate) struct Claimed<P = Payload> {
    pub(crate) work: Work<P>,
    pub(crate) claim: Claim,
    pub(crate) permits: Permits,
}

impl<P> Claimed<P> {
    /// Returns it without its payload, and the payload.
    pub(crate) fn split(self) -> (Claimed<()>, P) {
        let Self { work, claim, permits } = self;
        let (work, payload) = work.split();
        (Claimed { work, claim, permits }, payload)
    }

    /// Returns it without its payload, which is dropped.
    pub(crate) fn without_payload(self) -> Claimed<()> {
        self.split().0
    }

    /// Returns whether its handler is called for it alone: an earlier run of it failed, or may have taken its process along.
    pub(crate) fn is_alone(&self) -> bool {
        self.work.its_turn || self.claim.attempt > 1
    }
}

impl Claimed<()> {
    pub(crate) fn with(self, payload: Payload) -> Claimed {
        let Self { work, claim, permits } = self;
        Claimed { work: work.with(payload), claim, permits }
    }
}

/// What a message is reported with, and the handler's result for its duplicates.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    /// When the queue should make it visible again; `None` leaves that as it is.
    pub(crate) visible_after: Option<Duration>,
    pub(crate) result: Option<String>,
}

impl Answer {
    pub(crate) fn success(outcome: Outcome, result: Option<String>) -> Self {
        Self { outcome, visible_after: None, result }
    }

    pub(crate) fn failure(outcome: Outcome, visible_after: Duration) -> Self {
        Self { outcome, visible_after: Some(visible_after), result: None }
    }

    /// Returns an answer that leaves the message to the queue's own visibility timeout.
    pub(crate) fn unchanged(outcome: Outcome) -> Self {
        Self { outcome, visible_after: None, result: None }
    }
}

/// Adds a try's duration to those of a step, and returns their sum.
pub(crate) fn add(sum: &mut Option<Duration>, took: Duration) -> Duration {
    *sum.insert(sum.unwrap_or_default() + took)
}
