//! The way of a batch's messages: claimed in requests for many, run in slots, settled in requests for many.
//!
//! ```text
//! lane ──▶ waiting ──▶ claiming ──▶ ready ──▶ running ──▶ ended ──▶ settling ──▶ verdict ──▶ next of the lane
//!   └──────────── rejected, follows, blocked, no time ─────────────────────────────▶┘
//! ```
//!
//! One loop moves everything: it starts what may be started, waits for one event, and takes it in. Here are the loop,
//! the lanes and the running handlers; `claims` has the stretch before them, `endings` the one behind, `suspects` what is
//! run last and alone.

mod claims;
mod endings;
mod suspects;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures_util::future::{BoxFuture, OptionFuture};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

use crate::backoff;
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::deadline::{Schedule, until};
use crate::duplicate::Duplicate;
use crate::ending::{Ended, Settling, ending_of};
use crate::engine::Engine;
use crate::fingerprint::Fingerprint;
use crate::identity::Identity;
use crate::limits::{STORE_CALL_MAX_MS, STORE_GUARD_MS};
use crate::message::Message;
use crate::meter::Meter;
use crate::pace;
use crate::plan::Lane;
use crate::protocol::{ClaimRequest, Conflicts};
use crate::queue::Queue;
use crate::rejection::Rejection;
use crate::report::{DeadLetter, Details, Entry, Latencies, Outcome, Report};
use crate::run::{Ran, Runner};
use crate::slots::Held;
use crate::store::{Settled, StoreError};
use suspects::Suspects;

/// A message's place in the batch.
type Place = usize;

/// What became of a message, and when the queue should show it again.
pub(crate) type Verdict = (Outcome, Option<Duration>);

/// What the loop waits for.
enum Event {
    Claimed {
        answers: Vec<claims::Answer>,
        tries: u32,
        took: Duration,
    },
    /// Claims without an answer have waited for their next try.
    ClaimAgain {
        claims: Vec<(Place, ClaimRequest, StoreError)>,
        tries: u32,
    },
    Ran {
        place: Place,
        claim: Claim,
        ran: Ran,
        took: Duration,
    },
    Settled {
        settled: Vec<(Settling, Settled)>,
        tries: u32,
        took: Duration,
    },
    /// Settlements without an answer have waited for their next try.
    SettleAgain {
        claims: Vec<(Claim, Settling, StoreError)>,
        tries: u32,
    },
    Lettered(Vec<(Place, Outcome, bool)>),
    Deleted {
        places: Vec<Place>,
        gone: bool,
    },
}

/// A lane on its way: which of its messages is next, and what its earlier ones got.
struct LaneState<'a> {
    lane: Lane,
    next: usize,
    blocked: bool,
    leaders: HashMap<Work<'a>, (Verdict, Option<String>)>,
}

/// What two messages share where the later one follows the earlier one.
type Work<'a> = (&'a str, Option<Fingerprint>);

/// One batch on its way.
pub(crate) struct Pipeline<'a, T> {
    engine: &'a Engine<T>,
    batch: &'a [Message],
    identities: &'a [Result<Identity, Rejection>],
    schedule: Schedule,
    queue: &'a dyn Queue,
    meter: &'a Meter,
    lanes: Vec<LaneState<'a>>,
    lane_of: Vec<usize>,
    /// Lanes that may go on to their next message.
    advancing: VecDeque<usize>,
    /// Lanes whose next message needs a claim.
    waiting: VecDeque<usize>,
    ready: VecDeque<(Place, Claim)>,
    claiming: usize,
    running: usize,
    ended: Vec<Ended>,
    settling: usize,
    /// Of those that are being settled: how many went without an answer at least once.
    unanswered: usize,
    /// When the oldest ending has waited long enough.
    linger_until: Option<Instant>,
    letters: VecDeque<(Place, DeadLetter, Outcome)>,
    sending: usize,
    under_way: FuturesUnordered<BoxFuture<'a, Event>>,
    /// What messages hold of what invocations share.
    held: HashMap<Place, Held>,
    /// The next slot, while all are taken; and the one that came.
    slot: Option<BoxFuture<'a, Option<Held>>>,
    spare: Option<Held>,
    suspects: Suspects,
    verdicts: Vec<Option<Verdict>>,
    details: Vec<Details>,
    taken_over: usize,
    latencies: Latencies,
}

impl<'a, T: DeserializeOwned + Send + 'static> Pipeline<'a, T> {
    pub(crate) fn new(
        engine: &'a Engine<T>,
        batch: &'a [Message],
        identities: &'a [Result<Identity, Rejection>],
        lanes: Vec<Lane>,
        schedule: Schedule,
        queue: &'a dyn Queue,
        meter: &'a Meter,
    ) -> Self {
        let mut lane_of = vec![0; batch.len()];
        for (number, lane) in lanes.iter().enumerate() {
            lane.places.iter().for_each(|place| lane_of[*place] = number);
        }
        let advancing = (0..lanes.len()).collect();
        let lanes = lanes.into_iter();
        Self {
            lanes: lanes.map(|lane| LaneState { lane, next: 0, blocked: false, leaders: HashMap::new() }).collect(),
            lane_of,
            advancing,
            verdicts: vec![None; batch.len()],
            details: batch.iter().map(|m| Details { receive_count: m.receive_count, ..Details::default() }).collect(),
            engine,
            batch,
            identities,
            schedule,
            queue,
            meter,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            claiming: 0,
            running: 0,
            ended: Vec::new(),
            settling: 0,
            unanswered: 0,
            linger_until: None,
            letters: VecDeque::new(),
            sending: 0,
            under_way: FuturesUnordered::new(),
            held: HashMap::new(),
            slot: None,
            spare: None,
            suspects: Suspects::default(),
            taken_over: 0,
            latencies: Latencies::default(),
        }
    }

    /// Moves everything until each message has its verdict.
    pub(crate) async fn drive(mut self) -> Report {
        self.tell_of_no_time();
        loop {
            self.bring_up();
            self.start_claims();
            self.start_runs();
            self.start_settlements();
            self.start_letters();
            if !self.advancing.is_empty() {
                continue;
            }
            if self.waiting.is_empty() && self.ready.is_empty() && self.suspects.is_empty() {
                self.slot = None;
            }
            if self.under_way.is_empty() && self.suspects.end_turn() {
                continue;
            }
            if self.under_way.is_empty() && self.slot.is_none() {
                if self.suspects.is_empty() {
                    return self.report();
                }
                self.start_suspects();
                continue;
            }
            let linger = self.linger_until;
            // One that came and is not needed is another invocation's.
            self.spare = None;
            tokio::select! {
                biased;
                Some(event) = self.under_way.next() => self.take(event),
                Some(spare) = OptionFuture::from(self.slot.as_mut()) => {
                    self.slot = None;
                    self.spare = spare;
                }
                () = sleep_until(linger.unwrap_or_else(Instant::now)), if linger.is_some() => {}
            }
        }
    }

    /// Logs it where nothing can be started at all.
    fn tell_of_no_time(&self) {
        if self.schedule.total().is_zero() && !self.batch.is_empty() {
            tracing::error!(consumer = %self.engine.name, "there is no time to start anything: the function's timeout must exceed CLAIMANT_MARGIN_MS by far, and its deadline must not have passed");
        }
    }

    /// Brings every lane to a message that needs a claim, or to its end; without time none is started.
    fn bring_up(&mut self) {
        loop {
            while let Some(lane) = self.advancing.pop_front() {
                self.advance(lane);
            }
            if self.waiting.is_empty() || self.fits() {
                return;
            }
            for lane in std::mem::take(&mut self.waiting) {
                self.not_started(lane);
            }
        }
    }

    /// The message that the lane is at gets no run for want of time.
    fn not_started(&mut self, lane: usize) {
        // At once, but where that would be a hot loop to the dead-letter queue: for a function that never has time, and where
        // other invocations of the process have the slots, as long as this one would have waited for them.
        let delay = match self.engine.slots.invocations() {
            _ if self.schedule.total().is_zero() => None,
            1 => Some(Duration::ZERO),
            _ => Some(until(self.schedule.cancel_at)),
        };
        self.conclude(self.head(lane), (Outcome::NotStarted, delay), None);
    }

    /// Brings a lane to its next message that needs a claim; what needs none gets its verdict here.
    fn advance(&mut self, number: usize) {
        let state = &mut self.lanes[number];
        let Some(&place) = state.lane.places.get(state.next) else { return };
        state.next += 1;
        if state.blocked {
            return self.conclude(place, (Outcome::Blocked, Some(Duration::ZERO)), None);
        }
        match &self.identities[place] {
            Err(rejection) => self.reject(place, rejection.clone()),
            Ok(identity) => match self.lanes[number].leaders.get(&self.work_of(identity)).cloned() {
                None if self.is_suspect_unseen(place) => self.suspects.push(number, 0),
                None => self.waiting.push_back(number),
                Some((verdict, result)) => self.follow(place, identity, verdict, result),
            },
        }
    }

    fn work_of(&self, identity: &'a Identity) -> Work<'a> {
        let all_alike = self.engine.consumer.options.policy.conflicts == Conflicts::Ignore;
        (identity.record_id.as_str(), (!all_alike).then_some(identity.fingerprint))
    }

    /// A later message of the same work gets what the first one got: a duplicate where that is done.
    fn follow(&mut self, place: Place, identity: &Identity, leader: Verdict, result: Option<String>) {
        match leader {
            (Outcome::Completed | Outcome::Duplicate, _) => self.duplicate(place, identity, result),
            (Outcome::Rejected { rejection, .. }, _) => self.reject(place, rejection),
            (Outcome::Parked { .. }, _) => self.park_again(place),
            failed => self.conclude(place, failed, None),
        }
    }

    fn duplicate(&mut self, place: Place, identity: &Identity, result: Option<String>) {
        let message_id = self.batch[place].id.as_str();
        let duplicate = Duplicate::new(identity.key.as_str(), message_id, result.as_deref());
        self.engine.consumer.show_duplicate(&duplicate);
        self.conclude(place, (Outcome::Duplicate, None), result);
    }

    /// The message that a lane is at.
    fn head(&self, lane: usize) -> Place {
        let state = &self.lanes[lane];
        state.lane.places[state.next - 1]
    }

    /// Whether a handler started now would end in time.
    fn fits(&self) -> bool {
        pace::fits(until(self.schedule.cancel_at), self.schedule.total(), self.engine.expected())
    }

    /// A free slot of those that invocations share; where there is none, the next one is waited for, as long as a handler
    /// would still fit into the time.
    fn take_slot(&mut self) -> Option<Held> {
        let held = self.spare.take().or_else(|| self.engine.slots.take());
        if held.is_none() && self.slot.is_none() {
            let needed = pace::needed(self.schedule.total(), self.engine.expected());
            // A millisecond later it does not fit any more, which ends the waiting.
            let by = self.schedule.cancel_at - needed + Duration::from_millis(1);
            self.slot = Some(Box::pin(self.engine.slots.wait(by)));
        }
        held
    }

    /// Whether the message has a slot.
    fn has_slot(&self, place: Place) -> bool {
        self.held.get(&place).is_some_and(|held| held.slot.is_some())
    }

    /// How many handlers may run now. While the store leaves settlements without an answer, each effect that is not settled
    /// counts: it may have to be repeated. So a store that takes none of them stops all, and one hot key takes up one slot.
    fn running_max(&self) -> usize {
        let unsettled = if self.unanswered > 0 { self.ended.len() + self.settling } else { 0 };
        self.engine.concurrency.saturating_sub(unsettled)
    }

    /// Starts handlers in free slots; a claim whose handler no longer fits into the time is released.
    fn start_runs(&mut self) {
        let (fits, running_max) = (self.fits(), self.running_max());
        while self.running < running_max || !fits {
            let Some(next) = self.ready.front().map(|(place, _)| *place) else { return };
            if fits && !self.has_slot(next) {
                let Some(held) = self.take_slot() else { return };
                self.held.insert(next, held);
            }
            let Some((place, claim)) = self.ready.pop_front() else { return };
            if !fits {
                self.end(Ended::released(place, claim));
                continue;
            }
            let (Ok(identity), engine) = (&self.identities[place], self.engine) else { continue };
            let runner = Runner {
                consumer: &engine.consumer,
                name: &engine.name,
                clock: engine.clock.as_ref(),
                threads: engine.threads.as_ref(),
                queue: self.queue,
                meter: self.meter,
                schedule: self.schedule,
                place,
                message: &self.batch[place],
                identity,
            };
            self.running += 1;
            self.under_way.push(Box::pin(async move {
                let (start, mut claim) = (Instant::now(), claim);
                let ran = runner.run(&mut claim).await;
                Event::Ran { place, claim, ran, took: start.elapsed() }
            }));
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Claimed { answers, tries, took } => {
                self.latencies.claim = self.latencies.claim.max(took);
                answers.iter().for_each(|(place, ..)| add(&mut self.details[*place].claim, took));
                self.take_claims(answers, tries);
            }
            Event::ClaimAgain { claims, tries } => self.claim_again(claims, tries),
            Event::Ran { place, claim, ran, took } => {
                self.running -= 1;
                if let Some(held) = self.held.get_mut(&place) {
                    held.slot = None;
                }
                self.latencies.handle = self.latencies.handle.max(took);
                add(&mut self.details[place].handle, took);
                self.take_run(place, claim, ran, took);
            }
            Event::Settled { settled, tries, took } => {
                self.latencies.settle = self.latencies.settle.max(took);
                settled.iter().for_each(|(of, _)| add(&mut self.details[of.after.place].settle, took));
                self.take_settlements(settled, tries);
            }
            Event::SettleAgain { claims, tries } => self.settle_again(claims, tries),
            Event::Lettered(lettered) => {
                self.sending -= 1;
                lettered.into_iter().for_each(|(place, outcome, sent)| self.take_lettered(place, outcome, sent));
            }
            Event::Deleted { places, gone } => self.suspects.deleted(&places, gone),
        }
    }

    fn take_run(&mut self, place: Place, claim: Claim, ran: Ran, took: Duration) {
        if matches!(ran, Ran::Returned(_)) {
            self.engine.durations.learn(took);
        }
        let lease_end = claim.lease_until.plus(self.engine.consumer.options.policy.skew);
        let abandoned = self.engine.consumer.options.policy.abandoned;
        match ending_of(&self.engine.name, &self.batch[place], place, claim, ran, abandoned) {
            Some(ended) => self.end(ended),
            // Nothing to settle: the handler still runs under the claim.
            None => {
                let delay = self.after_lease(&self.batch[place], lease_end);
                self.conclude(place, (Outcome::Stuck, Some(delay)), None);
            }
        }
    }

    /// Gives a message its verdict, and brings its lane on.
    fn conclude(&mut self, place: Place, verdict: Verdict, result: Option<String>) {
        let (number, message) = (self.lane_of[place], &self.batch[place]);
        if verdict.0 == Outcome::NotStarted && self.engine.receives_end(message.receive_count) {
            tracing::warn!(consumer = %self.engine.name, message_id = %message.id, receive_count = message.receive_count, "message had no turn, and one receive is left at most before it is dead-lettered: smaller batches, a longer timeout or more concurrency give it one");
        }
        if let Ok(identity) = &self.identities[place] {
            let work = self.work_of(identity);
            let state = &mut self.lanes[number];
            if state.lane.places.len() > 1 && !state.blocked {
                state.leaders.entry(work).or_insert_with(|| (verdict.clone(), result));
            }
        }
        self.held.remove(&place);
        let state = &mut self.lanes[number];
        state.blocked |= state.lane.ordered && !verdict.0.is_success();
        self.verdicts[place] = Some(verdict);
        // Not at once: a lane can have thousands of messages that need no claim, and this would call itself for each.
        self.advancing.push_back(number);
    }

    /// When a key that is held until `until` can be claimed: then, and up to a second later, so that waiting copies
    /// do not all come at once.
    fn after_lease(&self, message: &Message, until: Timestamp) -> Duration {
        until.since(self.engine.now()) + backoff::jitter(&message.id)
    }

    fn report(self) -> Report {
        let entries = self.batch.iter().zip(self.verdicts).zip(self.details).map(|((message, verdict), details)| {
            // A message without a verdict cannot be, since each is in exactly one lane; it would not be a success.
            let (outcome, visible_after) = verdict.unwrap_or((Outcome::NotStarted, None));
            Entry { message_id: message.id.clone(), outcome, visible_after, details }
        });
        let mut report = Report::new(entries.collect());
        report.taken_over = self.taken_over;
        report.latencies = self.latencies;
        report.usage = self.meter.usage();
        report
    }
}

/// Adds a try's duration to those of a step.
fn add(sum: &mut Option<Duration>, took: Duration) {
    *sum = Some(sum.unwrap_or_default() + took);
}

/// How long a store may take until `at`: for the engine, and a little less for the store itself.
fn store_time(at: Instant) -> (Duration, Duration) {
    let within = until(at).min(Duration::from_millis(STORE_CALL_MAX_MS));
    (within, within - Duration::from_millis(STORE_GUARD_MS).min(within / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_has_less_time_than_the_engine_waits_for_it() {
        let (most, guard) = (STORE_CALL_MAX_MS, STORE_GUARD_MS);
        for (left, engine, store) in
            [(0, 0, 0), (4, 4, 3), (1_000, 1_000, 1_000 - guard), (900_000, most, most - guard)]
        {
            let (within, guarded) = store_time(Instant::now() + Duration::from_millis(left));
            assert_eq!((within.as_millis(), guarded.as_millis()), (engine.into(), store.into()), "{left} ms");
        }
    }
}
