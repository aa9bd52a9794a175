//! The engine: a batch of messages in, exactly one outcome for each out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use serde::de::DeserializeOwned;
use tokio::time::{sleep_until, timeout};

use crate::backoff;
use crate::claim::{Claim, OwnerToken};
use crate::clock::{Clock, SystemClock};
use crate::consumer::{Consumer, Identity, Rejection};
use crate::context::{Context, Run};
use crate::deadline::{Schedule, until};
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::handler::HandlerError;
use crate::key::{ConsumerName, RecordId};
use crate::limits::{CANCEL_GRACE_MS, CONCURRENCY_DEFAULT};
use crate::message::Message;
use crate::plan::{self, Lane, LaneKey};
use crate::protocol::{ClaimRequest, Ending, Refusal, Settlement};
use crate::report::{Entry, Outcome, Report};
use crate::store::{ClaimAnswer, Settled, StoreError};

/// Runs batches through one consumer. Holds no state between batches, so any number may run at once.
pub struct Engine<T> {
    consumer: Consumer<T>,
    name: ConsumerName,
    concurrency: usize,
    clock: Arc<dyn Clock>,
}

impl<T> std::fmt::Debug for Engine<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("consumer", &self.consumer).finish_non_exhaustive()
    }
}

/// What became of one message, and when the queue should show it again.
type Verdict = (Outcome, Option<Duration>);

/// How the handler's run ended.
enum Ran {
    Returned(Result<(), HandlerError>),
    Panicked,
    Cancelled,
    /// It was told to stop and did not.
    StillRunning,
}

impl<T: DeserializeOwned + Send + 'static> Engine<T> {
    /// An engine for this consumer; `concurrency` counts where the consumer does not say.
    ///
    /// # Errors
    /// When the consumer's settings are out of bounds: one error with every fault.
    pub fn new(consumer: Consumer<T>, concurrency: usize) -> Result<Self, Error> {
        Error::unless_empty("the consumer's settings are not usable", &consumer.faults())?;
        let name = consumer.checked_name().map_err(|fault| Error::new(fault.to_string()))?;
        Ok(Self {
            concurrency: consumer.concurrency.unwrap_or(concurrency).max(1),
            consumer,
            name,
            clock: Arc::new(SystemClock),
        })
    }

    /// As [`new`](Self::new) with the default concurrency.
    ///
    /// # Errors
    /// As there.
    pub fn with_defaults(consumer: Consumer<T>) -> Result<Self, Error> {
        Self::new(consumer, CONCURRENCY_DEFAULT)
    }

    /// The same engine with another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The consumer's name.
    #[must_use]
    pub fn name(&self) -> &ConsumerName {
        &self.name
    }

    /// The time now, as this engine sees it.
    #[must_use]
    pub fn now(&self) -> crate::clock::Timestamp {
        self.clock.now()
    }

    /// Works on a batch and returns within the schedule, with one outcome for each message, in the batch's order.
    ///
    /// Handlers run as tasks of their own, so this needs a Tokio runtime; with a single-threaded one a handler that
    /// blocks its thread blocks everything.
    ///
    /// Cancel safe: dropping the future cancels the handlers; claims that were held end with their leases.
    pub async fn process(&self, batch: Vec<Message>, schedule: Schedule) -> Report {
        let identities: Vec<_> = batch.iter().map(|m| self.consumer.identify(&self.name, m)).collect();
        let lanes = plan::lanes(batch.iter().zip(&identities).enumerate().map(|(place, (message, identity))| {
            match (&message.ordered_group, identity) {
                (Some(group), _) => LaneKey::Group(group.as_str()),
                (None, Ok(identity)) => LaneKey::Work(Ok(&identity.record_id)),
                // Each undecodable message is alone: it has no key to share.
                (None, Err(_)) => LaneKey::Work(Err(place)),
            }
        }));
        let verdicts: Vec<(usize, Verdict)> = stream::iter(lanes)
            .map(|lane| self.run_lane(lane, &batch, &identities, schedule))
            .buffer_unordered(self.concurrency)
            .flat_map(stream::iter)
            .collect()
            .await;
        self.report(&batch, verdicts)
    }

    fn report(&self, batch: &[Message], verdicts: Vec<(usize, Verdict)>) -> Report {
        // A place without a verdict cannot be, since each is in exactly one lane; if it were, it would not be a success.
        let mut by_place: Vec<Verdict> = vec![(Outcome::NotStarted, None); batch.len()];
        for (place, verdict) in verdicts {
            by_place[place] = verdict;
        }
        let entries = batch.iter().zip(by_place).map(|(message, (outcome, visible_after))| {
            if !outcome.is_success() {
                tracing::debug!(consumer = %self.name, message_id = %message.id, outcome = outcome.word(), "message not done");
            }
            Entry { message_id: message.id.clone(), outcome, visible_after }
        });
        Report::new(entries.collect())
    }

    /// Works on the messages of one lane, one after the other.
    async fn run_lane(
        &self,
        lane: Lane,
        batch: &[Message],
        identities: &[Result<Identity, Rejection>],
        schedule: Schedule,
    ) -> Vec<(usize, Verdict)> {
        let mut leaders: HashMap<(&RecordId, Fingerprint), Verdict> = HashMap::new();
        let mut verdicts = Vec::with_capacity(lane.places.len());
        let mut blocked = false;
        for place in lane.places {
            let message = &batch[place];
            let verdict = match &identities[place] {
                _ if blocked => (Outcome::Blocked, Some(Duration::ZERO)),
                Err(rejection) => self.rejected(message, rejection.clone()),
                Ok(identity) => {
                    let work = (&identity.record_id, identity.fingerprint);
                    match leaders.get(&work) {
                        Some(leader) => follow(leader),
                        None => {
                            let verdict = self.run_message(message, identity, schedule).await;
                            leaders.insert(work, verdict.clone());
                            verdict
                        }
                    }
                }
            };
            blocked = lane.ordered && (blocked || !verdict.0.is_success());
            verdicts.push((place, verdict));
        }
        verdicts
    }

    /// Claims, runs and settles one message.
    async fn run_message(&self, message: &Message, identity: &Identity, schedule: Schedule) -> Verdict {
        if until(schedule.cancel_at).is_zero() {
            return (Outcome::NotStarted, Some(Duration::ZERO));
        }
        let claim = match self.claim(message, identity, schedule).await {
            Ok(ClaimAnswer::Granted(claim)) => claim,
            Ok(ClaimAnswer::Refused(refusal)) => return self.refused(message, refusal),
            Err(error) => {
                tracing::warn!(consumer = %self.name, message_id = %message.id, error = %Chain(&error), "the store gave no answer to a claim");
                return (Outcome::StoreFailed, Some(backoff::delay(message.receive_count, &message.id)));
            }
        };
        if claim.taken_over {
            tracing::warn!(consumer = %self.name, message_id = %message.id, attempt = claim.attempt, fence = %claim.fence, "taking over work whose owner did not finish it");
        }
        let ran = self.run_handler(message, identity, &claim, schedule).await;
        self.settle(message, claim, ran, schedule).await
    }

    async fn claim(
        &self,
        message: &Message,
        identity: &Identity,
        schedule: Schedule,
    ) -> Result<ClaimAnswer, StoreError> {
        let owner = OwnerToken::draw().map_err(|e| StoreError::new(crate::StoreErrorKind::Other, e.to_string()))?;
        let request = ClaimRequest {
            id: identity.record_id.clone(),
            owner,
            message_id: message.id.clone(),
            fingerprint: identity.fingerprint,
            now: self.clock.now(),
            lease_until: schedule.lease_until,
            policy: self.consumer.policy,
        };
        let within = until(schedule.cancel_at);
        // The store bounds its own calls; this is for one that does not.
        timeout(within, self.consumer.store.claim(&request, within))
            .await
            .unwrap_or_else(|_| Err(StoreError::no_answer(within)))
    }

    fn refused(&self, message: &Message, refusal: Refusal) -> Verdict {
        match refusal {
            Refusal::Completed => (Outcome::Duplicate, None),
            Refusal::Busy { until } => (Outcome::Busy { until }, Some(self.after_lease(message, until))),
            Refusal::Rejected => self.rejected(message, Rejection::new("it was rejected on an earlier delivery")),
            Refusal::Conflict => self.rejected(message, Rejection::new("its key belongs to work with another payload")),
            Refusal::Parked => {
                tracing::error!(consumer = %self.name, message_id = %message.id, "message is parked: its work was abandoned and is not run again");
                (Outcome::Parked, Some(backoff::rejected_delay(message.receive_count)))
            }
        }
    }

    /// When a key that is held until `until` can be claimed: then, and up to a second later, so that waiting copies
    /// do not all come at once.
    fn after_lease(&self, message: &Message, until: crate::clock::Timestamp) -> Duration {
        until.since(self.clock.now()) + backoff::delay(1, &message.id)
    }

    fn rejected(&self, message: &Message, rejection: Rejection) -> Verdict {
        tracing::error!(consumer = %self.name, message_id = %message.id, reason = %rejection, "message rejected");
        (Outcome::Rejected(rejection), Some(backoff::rejected_delay(message.receive_count)))
    }

    /// Runs the handler in a task of its own until it ends or is cancelled.
    async fn run_handler(&self, message: &Message, identity: &Identity, claim: &Claim, schedule: Schedule) -> Ran {
        let context = Context::new(Run {
            consumer: self.name.clone(),
            key: identity.key.clone(),
            fence: claim.fence,
            attempt: claim.attempt,
            message_id: message.id.clone(),
            receive_count: message.receive_count,
            cancelled_at: schedule.cancel_at,
        });
        let run = match self.consumer.run(message, context) {
            Ok(run) => run,
            Err(rejection) => return Ran::Returned(Err(HandlerError::retry(rejection))),
        };
        let mut task = AbortOnDrop(tokio::spawn(run));
        let joined = tokio::select! {
            joined = &mut task.0 => joined,
            () = sleep_until(schedule.cancel_at) => {
                task.0.abort();
                match timeout(Duration::from_millis(CANCEL_GRACE_MS), &mut task.0).await {
                    Ok(joined) => joined,
                    Err(_) => return Ran::StillRunning,
                }
            }
        };
        match joined {
            Ok(result) => Ran::Returned(result),
            Err(end) if end.is_panic() => Ran::Panicked,
            Err(_) => Ran::Cancelled,
        }
    }

    async fn settle(&self, message: &Message, claim: Claim, ran: Ran, schedule: Schedule) -> Verdict {
        let attempt = claim.attempt;
        let lease_end = claim.lease_until.plus(self.consumer.policy.skew);
        let backoff = Some(backoff::delay(attempt, &message.id));
        let (ending, wanted) = match ran {
            Ran::Returned(Ok(())) => (Ending::Completed, (Outcome::Completed, None)),
            Ran::Returned(Err(error)) if error.is_terminal() => {
                let why = error.to_string();
                tracing::error!(consumer = %self.name, message_id = %message.id, attempt, reason = %why, "message rejected by its handler");
                let delay = backoff::rejected_delay(message.receive_count);
                (
                    Ending::Rejected { error: why },
                    (Outcome::Rejected(Rejection::new("its handler says so")), Some(delay)),
                )
            }
            Ran::Returned(Err(error)) => {
                tracing::warn!(consumer = %self.name, message_id = %message.id, attempt, error = %error, "handler failed");
                let asked = error.retry_after().or(backoff);
                (Ending::Failed { error: error.to_string() }, (Outcome::Retry, asked))
            }
            Ran::Panicked => {
                tracing::error!(consumer = %self.name, message_id = %message.id, attempt, "handler panicked");
                (Ending::Failed { error: "the handler panicked".into() }, (Outcome::Retry, backoff))
            }
            Ran::Cancelled => {
                tracing::warn!(consumer = %self.name, message_id = %message.id, attempt, "handler cancelled at the deadline");
                (
                    Ending::Failed { error: "the handler was cancelled at the deadline".into() },
                    (Outcome::Retry, backoff),
                )
            }
            Ran::StillRunning => {
                tracing::error!(consumer = %self.name, message_id = %message.id, attempt, "handler did not stop when cancelled: it keeps its claim until the lease ends");
                return (Outcome::Stuck, Some(self.after_lease(message, lease_end)));
            }
        };
        match self.write_ending(claim, ending, schedule).await {
            Settled::Done => wanted,
            Settled::Lost => {
                tracing::warn!(consumer = %self.name, message_id = %message.id, attempt, wanted = wanted.0.word(), "claim was lost before it was settled");
                (Outcome::Lost, backoff)
            }
            Settled::Unknown(error) => {
                tracing::warn!(consumer = %self.name, message_id = %message.id, attempt, wanted = wanted.0.word(), error = %Chain(&error), "whether the claim was settled is not known");
                (Outcome::Unsettled, Some(self.after_lease(message, lease_end)))
            }
        }
    }

    async fn write_ending(&self, claim: Claim, ending: Ending, schedule: Schedule) -> Settled {
        let settlement = Settlement { ending, now: self.clock.now(), policy: self.consumer.policy };
        let within = until(schedule.return_by);
        timeout(within, self.consumer.store.settle(claim, &settlement, within))
            .await
            .unwrap_or_else(|_| Settled::Unknown(StoreError::no_answer(within)))
    }
}

/// What a later message of the same work gets: what the first one got, as a duplicate where that is done.
fn follow(leader: &Verdict) -> Verdict {
    match leader {
        (outcome, _) if outcome.is_success() => (Outcome::Duplicate, None),
        failed => failed.clone(),
    }
}

/// A handler's task, cancelled when the engine's future is dropped.
struct AbortOnDrop<R>(tokio::task::JoinHandle<R>);

impl<R> Drop for AbortOnDrop<R> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An error and its causes on one line.
struct Chain<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
