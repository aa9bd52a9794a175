//! From ended to settled, and to the dead-letter queue.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::{Event, Pipeline, Place, store_time};
use crate::backoff;
use crate::claim::Claim;
use crate::deadline::until;
use crate::ending::{After, Ended, Settling, Wanted, ending_of};
use crate::error::Chain;
use crate::limits::{DEAD_LETTERS_BATCH_MAX, SETTLE_LINGER_MS, STORE_BATCH_MAX, STORE_GUARD_MS};
use crate::pace;
use crate::protocol::Settlement;
use crate::queue::Confirmation;
use crate::rejection::Rejection;
use crate::report::{DeadLetter, DeadLetterReason, Outcome};
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
            let (now, policy) = (self.engine.now(), self.engine.consumer.options.policy);
            let settling = |Ended { claim, ending, after }| {
                (claim, Settling { settlement: Settlement { ending, now, policy }, after })
            };
            self.settle(chunk.into_iter().map(settling).collect(), 0);
            self.linger_until = None;
        }
        if !self.ended.is_empty() && self.linger_until.is_none() {
            self.linger_until = Some(Instant::now() + Duration::from_millis(SETTLE_LINGER_MS));
        }
    }

    /// Settles these claims; `tries` calls for them gave no answer before.
    fn settle(&mut self, chunk: Vec<(Claim, Settling)>, tries: u32) {
        self.settling += chunk.len();
        self.unanswered += if tries > 0 { chunk.len() } else { 0 };
        let (store, meter) = (&self.engine.consumer.store, self.meter);
        let (within, guarded) = store_time(self.schedule.return_by);
        self.under_way.push(Box::pin(async move {
            let start = Instant::now();
            let parts = |(claim, settling): (Claim, Settling)| ((claim, settling.settlement.clone()), settling);
            let (claims, settling): (Vec<_>, Vec<Settling>) = chunk.into_iter().map(parts).unzip();
            let settled = timeout(within, store.settle_all(claims, Call { within: guarded, meter })).await;
            let mut settled = settled.unwrap_or_default().into_iter();
            // As for claims: what is not answered is not known.
            let or_unknown = |answer: Option<_>| answer.unwrap_or_else(|| Settled::given_up(within));
            let settled = settling.into_iter().map(|settling| (settling, or_unknown(settled.next())));
            Event::Settled { settled: settled.collect(), tries: tries + 1, took: start.elapsed() }
        }));
    }

    /// What came of settlements. What is not known, and another try can find out, is tried again after a while, until the
    /// report is due: what was done and not written would be done again.
    pub(super) fn take_settlements(&mut self, settled: Vec<(Settling, Settled)>, tries: u32) {
        self.settling -= settled.len();
        self.unanswered -= if tries > 1 { settled.len() } else { 0 };
        let mut unknown = Vec::new();
        for (settling, settled) in settled {
            match settled {
                Settled::Unknown { claim: Some(claim), error } if error.kind().is_transient() => {
                    unknown.push((claim, settling, error));
                }
                settled => self.take_settled(settling.after, settled),
            }
        }
        let Some((_, first, error)) = unknown.first() else { return };
        let message_id = &self.batch[first.after.place].id;
        let Some(delay) = backoff::store_delay(tries, message_id, until(self.schedule.return_by)) else {
            return self.give_up(unknown);
        };
        if tries == 1 {
            tracing::warn!(consumer = %self.engine.name, message_id = %message_id, claims = unknown.len(), error = %Chain(error), "whether claims were settled is not known: they are tried again until the report is due");
        }
        self.settling += unknown.len();
        self.unanswered += unknown.len();
        self.under_way.push(Box::pin(async move {
            sleep(delay).await;
            Event::SettleAgain { claims: unknown, tries }
        }));
    }

    /// The next try: the same settlement, so that one which applied although its answer was lost is recognised.
    pub(super) fn settle_again(&mut self, claims: Vec<(Claim, Settling, StoreError)>, tries: u32) {
        self.settling -= claims.len();
        self.unanswered -= claims.len();
        if until(self.schedule.return_by).is_zero() {
            return self.give_up(claims);
        }
        self.settle(claims.into_iter().map(|(claim, settling, _)| (claim, settling)).collect(), tries);
    }

    /// No time is left to find out.
    fn give_up(&mut self, claims: Vec<(Claim, Settling, StoreError)>) {
        for (claim, settling, error) in claims {
            self.take_settled(settling.after, Settled::unknown(claim, error));
        }
    }

    /// Sends rejected messages to the dead-letter queue, in requests for many; without time they stay where they are.
    pub(super) fn start_letters(&mut self) {
        while !self.letters.is_empty() && self.sending < self.engine.concurrency {
            let left = until(self.schedule.return_by);
            let count = self.letters.len().min(DEAD_LETTERS_BATCH_MAX);
            let letters: Vec<_> = self.letters.drain(..count).collect();
            if left.is_zero() {
                letters.into_iter().for_each(|(place, _, outcome)| self.take_lettered(place, outcome, false));
                continue;
            }
            let queue = self.queue;
            // So that the queue's own limit comes first, and the answers that it has by then count.
            let guarded = left - Duration::from_millis(STORE_GUARD_MS).min(left / 4);
            self.sending += 1;
            self.under_way.push(Box::pin(async move {
                let mut whose = Vec::new();
                let mut copies = Vec::new();
                for (place, letter, outcome) in letters {
                    whose.push((place, outcome));
                    copies.push(letter);
                }
                let sent = timeout(left, queue.dead_letters(&copies, guarded)).await.unwrap_or_default();
                let sent =
                    sent.into_iter().map(|answer| answer == Confirmation::Confirmed).chain(std::iter::repeat(false));
                let lettered = whose.into_iter().zip(sent).map(|((place, outcome), sent)| (place, outcome, sent));
                Event::Lettered(lettered.collect())
            }));
        }
    }

    /// Whether a message's copy is in the dead-letter queue is known.
    pub(super) fn take_lettered(&mut self, place: Place, outcome: Outcome, sent: bool) {
        let outcome = match outcome {
            Outcome::Rejected { rejection, .. } => Outcome::Rejected { rejection, dead_lettered: sent },
            _ => Outcome::Parked { dead_lettered: sent },
        };
        let message = &self.batch[place];
        if !sent {
            tracing::warn!(consumer = %self.engine.name, message_id = %message.id, "message could not be dead-lettered: it stays in its queue");
        }
        let delay = (!sent).then(|| backoff::rejected_delay(message.receive_count));
        self.conclude(place, (outcome, delay), None);
    }

    pub(super) fn take_settled(&mut self, after: After, settled: Settled) {
        let After { place, wanted, attempt, lease_end } = after;
        let (message, name, word) = (&self.batch[place], &self.engine.name, wanted.word());
        if !matches!(settled, Settled::Aborted { .. }) {
            self.held.remove(&place);
        }
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
                let abandoned = self.engine.consumer.options.policy.abandoned;
                let failed = Ran::Returned(Err(failure));
                // There is one: only a handler that still runs leaves nothing to settle.
                if let Some(ended) = ending_of(name, message, place, claim, failed, abandoned) {
                    self.end(ended);
                }
            }
            Settled::Refused(refusal) if wanted.is_completion() => self.take_refused(place, refusal),
            Settled::Lost | Settled::Aborted { .. } | Settled::Refused(_) => {
                tracing::warn!(consumer = %name, message_id = %message.id, attempt, wanted = word, "claim was lost before it was settled");
                self.conclude(place, (Outcome::LeaseLost, Some(backoff::delay(attempt, &message.id))), None);
            }
            Settled::Unknown { error, .. } => {
                tracing::warn!(consumer = %name, message_id = %message.id, attempt, wanted = word, error = %Chain(&error), "whether the claim was settled is not known");
                let delay = self.after_lease(message, lease_end.plus(self.engine.consumer.options.policy.skew));
                self.conclude(place, (Outcome::SettleUnknown, Some(delay)), None);
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
            let record = self.identities[place].as_ref().ok().map(|identity| identity.record_id.clone());
            let message_id = message.id.clone();
            let reason = match &outcome {
                Outcome::Rejected { rejection, .. } if rejection.is_conflict() => DeadLetterReason::Conflict,
                Outcome::Rejected { .. } => DeadLetterReason::Rejected,
                _ => DeadLetterReason::Parked,
            };
            let letter = DeadLetter { index: place, message_id, consumer, error, attempt, reason, record };
            return self.letters.push_back((place, letter, outcome));
        }
        let delay = backoff::rejected_delay(message.receive_count);
        self.conclude(place, (outcome, Some(delay)), None);
    }
}
