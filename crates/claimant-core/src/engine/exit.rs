//! Decides which answer a message gets, or why it is for the dead-letter queue. Whether the queue confirms the copy is known later.

use std::time::Duration;

use tokio::time::Instant;

use super::context::BatchContext;
use super::fetching::Unread;
use super::work::{Answer, Delivery, Waited, Work};
use crate::backoff;
use crate::clock::Timestamp;
use crate::error::Chain;
use crate::invocation_time::time_until;
use crate::key::Key;
use crate::message::Message;
use crate::protocol::{Refusal, rejected_before};
use crate::rejection::Rejection;
use crate::report::{DeadLetterReason, Outcome};
use crate::store::StoreError;

/// How a message leaves the batch.
pub(crate) enum Exit {
    /// With this answer.
    Answered(Answer),
    /// As a duplicate of finished work, and what was kept of its result.
    Duplicate { key: Key, result: Option<String> },
    /// By way of the dead-letter queue, where there is one.
    Disposed(Disposal),
}

/// Why a message goes to the dead-letter queue.
pub(crate) struct Disposal {
    pub(crate) why: Why,
    /// For its dead letter.
    pub(crate) error: String,
    /// Which run of the handler said so, if one did.
    pub(crate) attempt: Option<u32>,
}

pub(crate) enum Why {
    Rejected(Rejection),
    Parked,
}

impl Why {
    pub(crate) fn reason(&self) -> DeadLetterReason {
        match self {
            Self::Rejected(rejection) if rejection.is_conflict() => DeadLetterReason::Conflict,
            Self::Rejected(_) => DeadLetterReason::Rejected,
            Self::Parked => DeadLetterReason::Parked,
        }
    }

    pub(crate) fn outcome(&self, dead_lettered: bool) -> Outcome {
        match self {
            Self::Rejected(rejection) => Outcome::Rejected { rejection: rejection.clone(), dead_lettered },
            Self::Parked => Outcome::Parked { dead_lettered },
        }
    }
}

impl BatchContext<'_> {
    /// Returns the exit of a message in which there is no work to be read.
    pub(crate) fn unread(&self, delivery: &Delivery, unread: Unread) -> Exit {
        Exit::Answered(match unread {
            Unread::Rejected(rejection) => return self.rejected(delivery, rejection),
            // The queue's own visibility timeout, as where the store fails: an outage must not use up the receives.
            Unread::FetchFailed => Answer::unchanged(Outcome::FetchFailed),
            Unread::NotStarted => self.not_started(&delivery.message),
            Unread::Empty => {
                tracing::info!(consumer = %self.name(), message_id = %delivery.message.id(), "message holds no event by its envelope: there is nothing to do");
                Answer::success(Outcome::Empty, None)
            }
        })
    }

    /// Rejects a message that no retry can fix, without a run of its handler.
    pub(crate) fn rejected(&self, delivery: &Delivery, rejection: Rejection) -> Exit {
        let message_id = &delivery.message.id();
        tracing::error!(consumer = %self.name(), message_id = %message_id, reason = %rejection, "message rejected");
        let error = rejection.to_string();
        Exit::Disposed(Disposal { why: Why::Rejected(rejection), error, attempt: None })
    }

    /// Parks a message whose work may be done, and that is not run again without an operator.
    pub(crate) fn parked(&self, delivery: &Delivery, error: String, attempt: Option<u32>) -> Exit {
        let message_id = &delivery.message.id();
        tracing::error!(consumer = %self.name(), message_id = %message_id, attempt, reason = %error, "message is parked: its work may be done, and is not run again by itself");
        Exit::Disposed(Disposal { why: Why::Parked, error, attempt })
    }

    /// Returns the answer for a message for which there was no time.
    pub(crate) fn not_started(&self, message: &Message) -> Answer {
        match self.unstarted_delay(message) {
            Some(delay) => Answer::failure(Outcome::NotStarted, delay),
            None => Answer::unchanged(Outcome::NotStarted),
        }
    }

    /// Returns the answer for a message that gets no run for lack of time or room: busy, if its key was found so before; held back, where
    /// the breaker is open, or by the limit.
    pub(crate) fn without_run(&self, delivery: &Delivery) -> Answer {
        let message = &delivery.message;
        if let Some(waited) = delivery.waited {
            self.busy(message, waited.until, waited.same_message)
        } else if self.is_held_back() {
            self.breaker_open(message)
        } else if self.is_limited() && !self.time.total().is_zero() {
            self.rate_limited(message, self.turn_promised())
        } else {
            self.not_started(message)
        }
    }

    fn breaker_open(&self, message: &Message) -> Answer {
        Answer::failure(Outcome::BreakerOpen, self.held_delay(message))
    }

    fn rate_limited(&self, message: &Message, turn: Option<Duration>) -> Answer {
        Answer::failure(Outcome::RateLimited, self.limited_delay(message, turn))
    }

    /// Returns the answer for a message whose claim the store did not answer.
    pub(crate) fn unanswered(&self, delivery: &Delivery, error: &StoreError) -> Answer {
        let (consumer, message_id) = (self.name(), delivery.message.id());
        if error.kind().is_transient() {
            tracing::warn!(%consumer, %message_id, error = %Chain(error), "the store {} a claim", error.kind().said());
        } else {
            tracing::error!(%consumer, %message_id, error = %Chain(error), "the store refused a claim");
        }
        // The queue's own visibility timeout: a short outage must not use up the message's receives.
        Answer::unchanged(Outcome::StoreFailed)
    }

    /// Parks a message whose key is parked, or was found abandoned by this claim.
    fn parked_before(&self, delivery: &Delivery) -> Exit {
        let error = "its work was abandoned by an earlier owner, or parked before, and is not run again by itself";
        self.parked(delivery, error.to_owned(), None)
    }

    /// Returns the exit of a later message of the same work: the answer of the first one, and as a duplicate if that is completed. What was
    /// not run comes back by its own receives.
    pub(crate) fn following(&self, delivery: &Delivery, key: Key, leader: Answer) -> Exit {
        match leader.outcome {
            Outcome::Completed | Outcome::Duplicate => Exit::Duplicate { key, result: leader.result },
            Outcome::Rejected { rejection, .. } => self.rejected(delivery, rejection),
            Outcome::Parked { .. } => self.parked_before(delivery),
            Outcome::NotStarted => Exit::Answered(self.not_started(&delivery.message)),
            Outcome::BreakerOpen => Exit::Answered(self.breaker_open(&delivery.message)),
            // Without a turn of its own: it is a duplicate once the first one has had its turn.
            Outcome::RateLimited => Exit::Answered(self.rate_limited(&delivery.message, None)),
            _ => Exit::Answered(leader),
        }
    }

    /// Returns the answer for a message whose key another owner holds until then, or longer.
    fn busy(&self, message: &Message, until: Timestamp, same_message: bool) -> Answer {
        if self.shared.receives_max.is_nearly_last(message.receive_count()) {
            tracing::warn!(consumer = %self.name(), message_id = %message.id(), receive_count = message.receive_count(), "message is still busy elsewhere: a queue's visibility timeout and maxReceiveCount must outlast the longest lease");
        }
        Answer::failure(Outcome::Busy { until }, self.busy_delay(message, until, same_message))
    }

    /// Returns after how long the key of a message is asked for again in this invocation; `None` where it is not.
    pub(crate) fn wait_while_busy(&self, delivery: &mut Delivery, refusal: &Refusal) -> Option<Duration> {
        let most = self.options().busy_wait?;
        let Refusal::Busy { until: claimable_at, same_message } = *refusal else { return None };
        let (since, tries) = delivery.waited.map_or((Instant::now(), 0), |waited| (waited.since, waited.tries));
        let left = time_until((since + most).min(self.slot_by()));
        let delay = backoff::store_delay(tries + 1, delivery.message.id(), left)?;
        delivery.waited = Some(Waited { since, tries: tries + 1, until: claimable_at, same_message });
        Some(delay)
    }

    /// Returns the exit of a message whose key cannot be claimed.
    pub(crate) fn refused(&self, work: &Work<()>, refusal: Refusal) -> Exit {
        let delivery = &work.delivery;
        match refusal {
            Refusal::Completed { result } => Exit::Duplicate { key: work.identity.key.clone(), result },
            Refusal::Busy { until, same_message } => Exit::Answered(self.busy(&delivery.message, until, same_message)),
            Refusal::Conflict => self.rejected(delivery, Rejection::conflict()),
            Refusal::Parked => self.parked_before(delivery),
            Refusal::Rejected { error } => {
                // It keeps its first id for as long as its queues alone move it to and fro.
                let sent_again = delivery.message.first_id() != *delivery.message.id();
                self.rejected(delivery, Rejection::new(rejected_before(error.as_deref(), sent_again)))
            }
        }
    }
}
