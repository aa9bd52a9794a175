//! From waiting to claimed.

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::{Event, Pipeline, Place, store_time};
use crate::backoff;
use crate::claim::{Claim, OwnerToken};
use crate::clock::Timestamp;
use crate::deadline::until;
use crate::ending::Ended;
use crate::error::Chain;
use crate::limits::{STORE_BATCH_MAX, UNSETTLED_MAX};
use crate::options::Lease;
use crate::pace;
use crate::protocol::{ClaimRequest, Refusal};
use crate::rejection::Rejection;
use crate::report::Outcome;
use crate::slots::Held;
use crate::store::{BatchedClaim, Call, ClaimAnswer, StoreError, StoreErrorKind};

/// A claim that was sent, and what came of it.
pub(super) type Answer = (Place, ClaimRequest, Result<BatchedClaim, StoreError>);

impl<T: DeserializeOwned + Send + 'static> Pipeline<'_, T> {
    /// Claims as many keys as the pace allows.
    pub(super) fn start_claims(&mut self) {
        // What cannot be settled must not be run: its handlers would all run again.
        if self.ended.len() + self.settling >= self.engine.concurrency + UNSETTLED_MAX {
            return;
        }
        // Where claims are scarce, those on their way to be settled still count.
        let ending = self.engine.consumer.store.claims_max().map_or(0, |_| self.ended.len() + self.settling);
        let in_hand = self.claiming + self.ready.len() + self.running + ending;
        let (concurrency, ahead) = (self.engine.concurrency, self.engine.ahead());
        let count = match self.time_is_suspects() {
            true => 0,
            false => pace::to_claim(self.waiting.len(), in_hand, concurrency, ahead),
        };
        // Without claims ahead, a claim has its slot before it is asked for, and what was taken ahead before comes first.
        let in_slots = ahead == 0;
        if in_slots && self.ready.iter().any(|(place, _)| !self.has_slot(*place)) {
            return;
        }
        let mut first_deliveries = Vec::new();
        for _ in 0..count {
            let held = if in_slots { self.take_slot() } else { Some(Held::default()) };
            let Some(held) = held else { break };
            let Some(lane) = self.waiting.pop_front() else { break };
            let place = self.head(lane);
            self.held.insert(place, held);
            match self.request(place) {
                Err(error) => self.store_failed(place, &error),
                Ok(request) if request.first_delivery => first_deliveries.push((place, request)),
                // A redelivery most likely has a record, which a batched claim cannot show: it gets its own request.
                Ok(request) => self.claim(vec![(place, request)], 0),
            }
        }
        while !first_deliveries.is_empty() {
            let rest = first_deliveries.split_off(first_deliveries.len().min(STORE_BATCH_MAX));
            self.claim(std::mem::replace(&mut first_deliveries, rest), 0);
        }
    }

    pub(super) fn request(&self, place: Place) -> Result<ClaimRequest, StoreError> {
        let (message, engine) = (&self.batch[place], self.engine);
        let no_random = |e: crate::InvalidValue| StoreError::new(StoreErrorKind::Other, e.to_string());
        let (now, lease_until) = self.lease();
        let Ok(identity) = &self.identities[place] else {
            return Err(StoreError::new(StoreErrorKind::Other, "a message without a key was to be claimed"));
        };
        Ok(ClaimRequest {
            id: identity.record_id.clone(),
            owner: OwnerToken::draw().map_err(no_random)?,
            message_id: message.id.clone(),
            fingerprint: identity.fingerprint,
            now,
            lease_until,
            policy: engine.consumer.options.policy,
            first_delivery: message.receive_count <= 1,
        })
    }

    /// The time now, and until when a claim made now is to be honoured.
    fn lease(&self) -> (Timestamp, Timestamp) {
        let now = self.engine.now();
        match self.engine.consumer.options.lease {
            Lease::UntilDeadline => (now, self.schedule.lease_until(now)),
            Lease::Renewed(lease) => (now, now.plus(lease)),
        }
    }

    /// Claims these keys; `tries` calls for them gave no answer before.
    pub(super) fn claim(&mut self, requests: Vec<(Place, ClaimRequest)>, tries: u32) {
        self.claiming += requests.len();
        let (store, meter) = (&self.engine.consumer.store, self.meter);
        let (within, guarded) = store_time(self.schedule.cancel_at);
        self.under_way.push(Box::pin(async move {
            let start = Instant::now();
            let (places, requests): (Vec<Place>, Vec<ClaimRequest>) = requests.into_iter().unzip();
            let call = Call { within: guarded, meter };
            let answers = match &requests[..] {
                [one] => {
                    timeout(within, store.claim(one, call)).await.map(|answer| vec![answer.map(BatchedClaim::Answered)])
                }
                many => timeout(within, store.claim_all(many, call)).await,
            };
            let mut answers = answers.unwrap_or_default().into_iter();
            // The store bounds its own calls and answers each; this is for one that does not.
            let or_none = |answer: Option<_>| answer.unwrap_or_else(|| Err(StoreError::no_answer(within)));
            let answers =
                places.into_iter().zip(requests).map(|(place, request)| (place, request, or_none(answers.next())));
            Event::Claimed { answers: answers.collect(), tries: tries + 1, took: start.elapsed() }
        }));
    }

    /// What came of claims. Where there was no answer, and another try can get one, it is made after a while: an outage
    /// then costs time, and not a receive of each message.
    pub(super) fn take_claims(&mut self, answers: Vec<Answer>, tries: u32) {
        self.claiming -= answers.len();
        let mut unanswered = Vec::new();
        for (place, request, answer) in answers {
            match answer {
                Err(error) if error.kind().is_transient() => unanswered.push((place, request, error)),
                answer => self.take_claim(place, request, answer),
            }
        }
        let Some((first, _, error)) = unanswered.first() else { return };
        let message_id = &self.batch[*first].id;
        let Some(delay) = backoff::store_delay(tries, message_id, until(self.schedule.cancel_at)) else {
            return unanswered.into_iter().for_each(|(place, _, error)| self.store_failed(place, &error));
        };
        if tries == 1 {
            tracing::warn!(consumer = %self.engine.name, message_id = %message_id, claims = unanswered.len(), error = %Chain(error), "the store gave no answer to claims: they are tried again while handlers can start");
        }
        self.claiming += unanswered.len();
        self.under_way.push(Box::pin(async move {
            sleep(delay).await;
            Event::ClaimAgain { claims: unanswered, tries }
        }));
    }

    /// The next try: by the same owner, so that a claim which applied although its answer was lost is recognised.
    pub(super) fn claim_again(&mut self, claims: Vec<(Place, ClaimRequest, StoreError)>, tries: u32) {
        self.claiming -= claims.len();
        if !self.fits() {
            return claims.into_iter().for_each(|(place, _, error)| self.store_failed(place, &error));
        }
        let (now, lease_until) = self.lease();
        let again = claims.into_iter().map(|(place, request, _)| (place, ClaimRequest { now, lease_until, ..request }));
        self.claim(again.collect(), tries);
    }

    pub(super) fn take_claim(&mut self, place: Place, request: ClaimRequest, answer: Result<BatchedClaim, StoreError>) {
        match answer {
            Err(error) => self.store_failed(place, &error),
            Ok(BatchedClaim::ClaimAlone) => self.claim(vec![(place, request)], 0),
            Ok(BatchedClaim::Answered(ClaimAnswer::Granted(claim))) => self.take_granted(place, claim),
            Ok(BatchedClaim::Answered(ClaimAnswer::Refused(refusal))) => self.take_refused(place, refusal),
        }
    }

    /// A key that cannot be claimed, and why.
    pub(super) fn take_refused(&mut self, place: Place, refusal: Refusal) {
        let message = &self.batch[place];
        self.held.remove(&place);
        match (refusal, &self.identities[place]) {
            (Refusal::Completed { result }, Ok(identity)) => self.duplicate(place, identity, result),
            (Refusal::Busy { until, same_message }, _) => {
                if self.engine.receives_end(message.receive_count) {
                    tracing::warn!(consumer = %self.engine.name, message_id = %message.id, receive_count = message.receive_count, "message is still busy elsewhere: a queue's visibility timeout and maxReceiveCount must outlast the longest lease");
                }
                let back = if same_message { until } else { self.copies_wait_until(until) };
                let verdict = (Outcome::Busy { until }, Some(self.after_lease(message, back)));
                self.conclude(place, verdict, None);
            }
            (Refusal::Conflict, _) => self.reject(place, Rejection::conflict()),
            (Refusal::Parked, _) => self.park_again(place),
            (Refusal::Rejected | Refusal::Completed { .. }, _) => {
                self.reject(place, Rejection::new("it was rejected on an earlier delivery"));
            }
        }
    }

    /// When a copy of work that is busy until `until` comes back. A lease that is renewed can last as long as an invocation, and
    /// each look at it costs the copy a receive. Nobody waits for the copy: if the owner dies, its own message comes back.
    fn copies_wait_until(&self, until: Timestamp) -> Timestamp {
        match self.engine.consumer.options.lease {
            Lease::UntilDeadline => until,
            Lease::Renewed(_) => until.max(self.engine.now().plus(self.schedule.longest_lease())),
        }
    }

    pub(super) fn take_granted(&mut self, place: Place, claim: Claim) {
        let (message, name) = (&self.batch[place], &self.engine.name);
        let its_turn = self.suspects.is_turn(place);
        (self.details[place].attempt, self.details[place].fence) = (Some(claim.attempt), Some(claim.fence));
        if claim.taken_over && !its_turn {
            self.taken_over += 1;
            tracing::warn!(consumer = %name, message_id = %message.id, attempt = claim.attempt, fence = %claim.fence, "taking over work whose owner did not finish it");
        }
        match self.engine.consumer.options.attempts_max {
            Some(max) if claim.attempt > max => self.end(Ended::worn_out(name, message, place, claim, max)),
            // One alone takes nothing along.
            _ if claim.taken_over && !its_turn && self.batch.len() > 1 => self.end(Ended::set_aside(place, claim)),
            _ => self.ready.push_back((place, claim)),
        }
    }

    pub(super) fn store_failed(&mut self, place: Place, error: &StoreError) {
        let message = &self.batch[place];
        tracing::warn!(consumer = %self.engine.name, message_id = %message.id, error = %Chain(error), "the store gave no answer to a claim");
        // The queue's own visibility timeout: a short outage must not use up the message's receives.
        self.conclude(place, (Outcome::StoreFailed, None), None);
    }
}
