//! From ended to settled, and to the dead-letter queue.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use super::{Event, Pipeline, Place, store_time};
use crate::backoff;
use crate::consumer::Rejection;
use crate::deadline::until;
use crate::ending::{After, Ended, Wanted, ending_of};
use crate::error::Chain;
use crate::limits::{SETTLE_LINGER_MS, STORE_BATCH_MAX};
use crate::pace;
use crate::protocol::Settlement;
use crate::report::{DeadLetter, Outcome};
use crate::run::Ran;
use crate::store::{Call, Settled, StoreError};

impl<T: DeserializeOwned + Send + 'static> Pipeline<'_, T> {
    pub(super) fn end(&mut self, ended: Ended) {
        self.ended.push(ended);
        self.linger_until.get_or_insert_with(|| Instant::now() + Duration::from_millis(SETTLE_LINGER_MS));
    }

    /// Writes endings: together, but none waits long.
    pub(super) fn start_settlements(&mut self) {
        let others_will_end = self.claiming + self.ready.len() + self.running > 0;
        let lingered = self.linger_until.is_some_and(|at| until(at).is_zero());
        let mut count = pace::to_settle(self.ended.len(), others_will_end, lingered);
        while count > 0 {
            let chunk = self.ended.drain(..count.min(STORE_BATCH_MAX)).collect::<Vec<_>>();
            count -= chunk.len();
            self.settle(chunk);
            self.linger_until = None;
        }
        if !self.ended.is_empty() && self.linger_until.is_none() {
            self.linger_until = Some(Instant::now() + Duration::from_millis(SETTLE_LINGER_MS));
        }
    }

    pub(super) fn settle(&mut self, chunk: Vec<Ended>) {
        self.settling += chunk.len();
        let (store, meter, policy) = (&self.engine.consumer.store, self.meter, self.engine.consumer.policy);
        let (within, guarded) = store_time(self.schedule.return_by);
        let now = self.engine.now();
        self.under_way.push(Box::pin(async move {
            let start = Instant::now();
            let parts = |ended: Ended| ((ended.claim, Settlement { ending: ended.ending, now, policy }), ended.after);
            let (claims, afters): (Vec<_>, Vec<After>) = chunk.into_iter().map(parts).unzip();
            let settled = timeout(within, store.settle_all(claims, Call { within: guarded, meter })).await;
            let mut settled = settled.unwrap_or_default().into_iter();
            // As for claims: what is not answered is not known.
            let or_unknown =
                |answer: Option<_>| answer.unwrap_or_else(|| Settled::Unknown(StoreError::no_answer(within)));
            let settled = afters.into_iter().map(|after| (after, or_unknown(settled.next())));
            Event::Settled { settled: settled.collect(), took: start.elapsed() }
        }));
    }

    /// Sends rejected messages to the dead-letter queue, a few at a time.
    pub(super) fn start_letters(&mut self) {
        while self.sending < self.engine.concurrency {
            let Some((place, letter, outcome)) = self.letters.pop_front() else { return };
            let (queue, within) = (self.queue, until(self.schedule.return_by));
            self.sending += 1;
            self.under_way.push(Box::pin(async move {
                let sent = timeout(within, queue.dead_letter(&letter)).await.unwrap_or(false);
                let outcome = match outcome {
                    Outcome::Rejected { rejection, .. } => Outcome::Rejected { rejection, dead_lettered: sent },
                    _ => Outcome::Parked { dead_lettered: sent },
                };
                Event::Lettered { place, outcome }
            }));
        }
    }

    pub(super) fn take_settled(&mut self, after: After, settled: Settled) {
        let After { place, wanted, attempt, lease_end } = after;
        let (message, name, word) = (&self.batch[place], &self.engine.name, wanted.word());
        match settled {
            Settled::Done => match wanted {
                Wanted::Verdict(verdict, result) => self.conclude(place, verdict, result),
                Wanted::LaterTurn => self.suspects.push(self.lane_of[place], attempt),
                Wanted::Rejected { rejection, error, attempt } => {
                    self.dispose(place, Outcome::Rejected { rejection, dead_lettered: false }, error, attempt);
                }
                Wanted::Parked { error, attempt } => self.park(place, error, Some(attempt)),
            },
            Settled::Aborted { claim, failure } if wanted.is_completion() => {
                let abandoned = self.engine.consumer.policy.abandoned;
                let failed = Ran::Returned(Err(failure));
                // There is one: only a handler that still runs leaves nothing to settle.
                if let Some(ended) = ending_of(name, message, place, claim, failed, abandoned) {
                    self.end(ended);
                }
            }
            Settled::Refused(refusal) if wanted.is_completion() => self.take_refused(place, refusal),
            Settled::Lost | Settled::Aborted { .. } | Settled::Refused(_) => {
                tracing::warn!(consumer = %name, message_id = %message.id, attempt, wanted = word, "claim was lost before it was settled");
                self.conclude(place, (Outcome::Lost, Some(backoff::delay(attempt, &message.id))), None);
            }
            Settled::Unknown(error) => {
                tracing::warn!(consumer = %name, message_id = %message.id, attempt, wanted = word, error = %Chain(&error), "whether the claim was settled is not known");
                let delay = self.after_lease(message, lease_end.plus(self.engine.consumer.policy.skew));
                self.conclude(place, (Outcome::Unsettled, Some(delay)), None);
            }
        }
    }

    /// A message that no retry can mend, and that has no claim to settle.
    pub(super) fn reject(&mut self, place: Place, rejection: Rejection) {
        let message = &self.batch[place];
        tracing::error!(consumer = %self.engine.name, message_id = %message.id, reason = %rejection, "message rejected");
        let error = rejection.to_string();
        self.dispose(place, Outcome::Rejected { rejection, dead_lettered: false }, error, None);
    }

    /// A message whose work may be done, and that nobody runs again by himself.
    pub(super) fn park(&mut self, place: Place, error: String, attempt: Option<u32>) {
        let message_id = &self.batch[place].id;
        tracing::error!(consumer = %self.engine.name, message_id = %message_id, attempt, reason = %error, "message is parked: its work may be done, and is not run again by itself");
        self.dispose(place, Outcome::Parked { dead_lettered: false }, error, attempt);
    }

    /// A message of a key that is parked, or that this claim found abandoned.
    pub(super) fn park_again(&mut self, place: Place) {
        let error = "its work was abandoned by an earlier owner, or parked before, and is not run again by itself";
        self.park(place, error.to_owned(), None);
    }

    /// To the dead-letter queue, or back to its own on the way there.
    pub(super) fn dispose(&mut self, place: Place, outcome: Outcome, error: String, attempt: Option<u32>) {
        let (message, consumer) = (&self.batch[place], self.engine.name.clone());
        if self.queue.has_dead_letters() {
            let letter = DeadLetter { place, message_id: message.id.clone(), consumer, error, attempt };
            return self.letters.push_back((place, letter, outcome));
        }
        let delay = backoff::rejected_delay(message.receive_count);
        self.conclude(place, (outcome, Some(delay)), None);
    }
}
