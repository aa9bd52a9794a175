//! A consumer's breaker as its process knows it, and the record by which all processes share it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::record::BreakerRecord;
use super::state::{BreakerState, State};
use crate::breaker::Breaker;
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::engine::asker::Asker;
use crate::error::Chain;
use crate::failure::Failure;
use crate::key::{ConsumerName, InvalidValue};
use crate::limits::BREAKER_LOOK_MS;
use crate::protocol::Refusal;
use crate::protocol::breaker::{Effect, Health, Known, Rules, Shown};
use crate::store::{ClaimAnswer, Renewed, Settled};

/// Between two reads of the record at least.
const LOOK_MIN: Duration = Duration::from_millis(50);

/// The breaker of an engine: its invocations share it.
#[derive(Debug)]
pub(crate) struct SharedBreaker {
    downstream: String,
    rules: Rules,
    record: BreakerRecord,
    state: BreakerState,
    /// Whether a record was seen that a clock has made which is far off.
    warned: AtomicBool,
    /// Held by the one invocation that asks the store for all of them.
    asks: Mutex<()>,
}

/// The probe is this process's. Dropped before it has ended, the breaker is open until its lease ends, and then another one has it.
pub(crate) struct Probe<'a> {
    pub(crate) breaker: &'a SharedBreaker,
    /// None where the store refuses to say anything: each process then has a breaker of its own.
    claim: Option<Claim>,
    open_until: Timestamp,
    ended: bool,
}

impl SharedBreaker {
    /// Returns a breaker that is closed.
    pub(crate) fn new(breaker: &Breaker, consumer: &ConsumerName, skew: Duration) -> Result<Self, InvalidValue> {
        Ok(Self {
            downstream: breaker.downstream.clone(),
            rules: breaker.rules,
            record: BreakerRecord::new(breaker, consumer, skew)?,
            state: BreakerState::closed(),
            warned: AtomicBool::new(false),
            asks: Mutex::new(()),
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.get().known.is_closed()
    }

    /// Returns whether it is not closed, and this process does not probe, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state.get().known, Known::Open { .. })
    }

    /// Returns for how long the intake is still paused, as far as is known.
    pub(crate) fn paused(&self, now: Timestamp) -> Option<Duration> {
        self.record.pauses.back(now).map(|back| back.since(now))
    }

    /// Returns whether a failure says that this breaker's system is away.
    pub(crate) fn is_of(&self, failure: &Failure) -> bool {
        failure.downstream.as_deref() == Some(self.downstream.as_str())
    }

    /// Returns what a run that returned this says of its system.
    pub(crate) fn health<T>(&self, returned: &Result<T, Failure>) -> Health {
        match returned {
            Ok(_) => Health::Answered,
            Err(failure) if self.is_of(failure) => Health::Away,
            Err(_) => Health::Unknown,
        }
    }

    /// Takes note of a run that took so long, and returns what is to be done about the record.
    pub(crate) fn observe(&self, seen: Health, took: Duration, probes: bool, now: Timestamp) -> Effect {
        self.state.observe((seen, took), probes, &self.rules, now)
    }

    /// Returns whether a call was answered since the probe began.
    pub(crate) fn has_answer(&self) -> bool {
        matches!(self.state.get().known, Known::Probing { answered } if answered > 0)
    }

    /// Waits until the breaker is closed, or until this invocation is the one to probe, where it `may_probe` then; not longer than `by`.
    pub(crate) async fn pass<'a>(
        &'a self,
        asker: Asker<'a>,
        may_probe: impl Fn() -> bool,
        by: Instant,
    ) -> Option<Probe<'a>> {
        for look in 0_u64.. {
            // Before the state is read, so that no change is missed.
            let mut changed = pin!(self.state.changed());
            changed.as_mut().enable();
            let known = self.state.get().known;
            let wait = match known {
                Known::Closed(_) => return None,
                Known::Probing { .. } => None,
                // A lease is over only after its last millisecond.
                Known::Open { until } => Some(until.plus(Duration::from_millis(1)).since(asker.clock.now())),
            };
            let longest = Duration::from_millis(BREAKER_LOOK_MS);
            let least = match look {
                0 => Duration::ZERO,
                // Who has no time for a probe leaves it to others.
                _ if !may_probe() => longest,
                _ => LOOK_MIN,
            };
            let wait = wait.map_or(longest, |wait| wait.clamp(least, longest));
            tokio::select! {
                biased;
                () = sleep_until(by) => return None,
                () = changed => continue,
                () = sleep(wait) => {}
            }
            if let Some(probe) = self.look(asker, &may_probe).await {
                return Some(probe);
            }
        }
        None
    }

    /// Waits until no other invocation asks the store; not longer than there is time.
    async fn turn(&self, asker: Asker<'_>) -> Option<MutexGuard<'_, ()>> {
        timeout_at(asker.by, self.asks.lock()).await.ok()
    }

    /// Reads the record, and claims it where no owner probes, and there is time to.
    async fn look<'a>(&'a self, asker: Asker<'a>, may_probe: impl Fn() -> bool) -> Option<Probe<'a>> {
        let before = self.state.get().since;
        let _turn = self.turn(asker).await?;
        let State { known: Known::Open { until }, since } = self.state.get() else { return None };
        if since != before {
            // Another invocation has just looked.
            return None;
        }
        let shown = self.record.look(asker).await;
        let may_probe = may_probe();
        let shown = match shown {
            Ok(shown) => shown,
            // It is open as long as this process knows. The others that wait have had this answer, too.
            Err(_) if asker.clock.now() < until => {
                self.state.set(Known::Open { until });
                return None;
            }
            Err(error) if error.kind().is_transient() => {
                self.look_later(asker);
                return None;
            }
            Err(_) => return may_probe.then(|| self.probe(asker, None)),
        };
        match shown {
            Shown::Closed => self.closed(asker),
            Shown::Open { until } => self.state.set(Known::Open { until }),
            // What others know must stay as it is: one of them may have the time.
            Shown::HalfOpen | Shown::Implausible { .. } if !may_probe => {}
            Shown::HalfOpen => return self.claim_probe(asker).await,
            Shown::Implausible { until } => {
                self.warn_of_clock(asker, until);
                return Some(self.probe(asker, None));
            }
        }
        None
    }

    async fn claim_probe<'a>(&'a self, asker: Asker<'a>) -> Option<Probe<'a>> {
        match self.record.claim(asker, self.rules.probe_for(asker.expected)).await {
            // An answer after its lease is none: another process may probe.
            Ok(ClaimAnswer::Granted(claim)) if claim.lease_until <= asker.clock.now() => self.look_later(asker),
            Ok(ClaimAnswer::Granted(claim)) => return Some(self.probe(asker, Some(claim))),
            Ok(ClaimAnswer::Refused(Refusal::Busy { until, .. })) => self.state.set(Known::Open { until }),
            Ok(ClaimAnswer::Refused(_)) => self.closed(asker),
            Err(_) => self.look_later(asker),
        }
        None
    }

    fn probe<'a>(&'a self, asker: Asker<'_>, claim: Option<Claim>) -> Probe<'a> {
        tracing::info!(consumer = %asker.consumer, downstream = self.downstream, "breaker is half open: messages are tried one by one");
        self.state.set(Known::Probing { answered: 0 });
        let lease_end = claim.as_ref().map(|claim| self.record.end(claim.lease_until));
        let open_until = lease_end.unwrap_or_else(|| asker.clock.now().plus(self.rules.open_for));
        Probe { breaker: self, claim, open_until, ended: false }
    }

    /// Warns once of a record whose times cannot be right.
    fn warn_of_clock(&self, asker: Asker<'_>, lease_until: Timestamp) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(consumer = %asker.consumer, downstream = self.downstream, lease_until = lease_until.to_utc(), "breaker is of this process alone: the lease of its record ends later than any breaker's, so a clock is far off, this one or that of the process which wrote it");
        }
    }

    /// The store gave no answer.
    fn look_later(&self, asker: Asker<'_>) {
        self.state.set(Known::Open { until: asker.clock.now().plus(Duration::from_millis(BREAKER_LOOK_MS)) });
    }

    fn closed(&self, asker: Asker<'_>) {
        tracing::info!(consumer = %asker.consumer, downstream = self.downstream, "breaker is closed");
        self.state.set(Known::CLOSED);
    }

    /// Switches the intake on again that is paused, unless the breaker opens meanwhile.
    pub(crate) async fn resume(&self, asker: Asker<'_>) {
        self.record.pauses.resume(asker, &self.downstream, || self.is_closed()).await;
    }

    /// Opens the breaker for all processes, or learns until when another one has opened it. Returns whether the intake was paused.
    pub(crate) async fn open(&self, asker: Asker<'_>) -> bool {
        let Some(_turn) = self.turn(asker).await else { return false };
        match self.record.claim(asker, self.rules.open_for).await {
            Ok(ClaimAnswer::Granted(claim)) => return self.lengthen(asker, claim).await,
            Ok(ClaimAnswer::Refused(Refusal::Busy { until, .. })) => self.state.set(Known::Open { until }),
            // By an operator.
            Ok(ClaimAnswer::Refused(_)) => self.closed(asker),
            Err(error) => {
                let why = BreakerRecord::lacks(&error);
                tracing::warn!(consumer = %asker.consumer, downstream = self.downstream, error = %Chain(&error), "breaker opened for this process alone: {why}");
            }
        }
        false
    }

    /// Leaves the breaker open under this claim, for as long as its turn is, and pauses the intake where the claim is still held: a probe can
    /// have taken longer than its lease, and another process have closed the breaker since. Returns whether it did.
    async fn lengthen(&self, asker: Asker<'_>, mut claim: Claim) -> bool {
        // The first one has just been granted for its time.
        let (record, lasts) = (&self.record, self.rules.open_for(claim.attempt));
        let held = if claim.attempt == 1 { Ok(Renewed::Held) } else { record.renew(asker, &mut claim, lasts).await };
        if let Ok(Renewed::Lost) = held {
            self.lost(asker);
            return false;
        }
        let paused = held.is_ok() && record.pauses.pause(asker, &self.downstream, claim.attempt).await;
        if paused {
            // All have to know until when.
            let _ = record.renew(asker, &mut claim, lasts).await;
        }
        let until = record.end(claim.lease_until);
        let open_ms = until.since(asker.clock.now()).as_millis() as u64;
        tracing::warn!(consumer = %asker.consumer, downstream = self.downstream, attempt = claim.attempt, open_ms, "breaker opened: messages are held back");
        self.state.set(Known::Open { until });
        paused
    }

    /// Another process has the record, or had it: it is to be read.
    fn lost(&self, asker: Asker<'_>) {
        self.state.set(Known::Open { until: asker.clock.now() });
    }
}

impl Probe<'_> {
    /// Returns whether nobody else probes yet, by this process's clock.
    pub(crate) fn lasts(&self, now: Timestamp) -> bool {
        now < self.open_until
    }

    /// Returns whether another process could probe before then, by its own clock: the margin of the clocks is not for who has the claim.
    pub(crate) fn is_short(&self, until: Timestamp) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.lease_until <= until)
    }

    /// Renews the claim for the next message. Returns the probe, unless another process has the record. Without an answer it has what is left.
    pub(crate) async fn keep(mut self, asker: Asker<'_>) -> Option<Self> {
        let (breaker, lasts) = (self.breaker, self.breaker.rules.probe_for(asker.expected));
        if let (Some(_turn), Some(claim)) = (breaker.turn(asker).await, &mut self.claim) {
            match breaker.record.renew(asker, claim, lasts).await {
                Ok(Renewed::Lost) => {
                    breaker.lost(asker);
                    self.ended = true;
                    return None;
                }
                Ok(_) => self.open_until = breaker.record.end(claim.lease_until),
                Err(_) => {}
            }
        }
        Some(self)
    }

    /// Ends a probe that was answered: the breaker is closed; without a claim or an answer of the store this process takes it for closed. One
    /// that has lost the record to another process changes nothing. Returns whether it is known to be closed for all.
    pub(crate) async fn close(mut self, asker: Asker<'_>) -> bool {
        let breaker = self.breaker;
        // Without its turn in time, the claim ends with its lease.
        let Some(_turn) = breaker.turn(asker).await else { return false };
        let released = match self.claim.take() {
            Some(claim) => Some(breaker.record.release(asker, claim).await),
            None => None,
        };
        self.ended = true;
        match &released {
            None | Some(Settled::Done | Settled::Unknown { .. }) => breaker.closed(asker),
            Some(_) => breaker.lost(asker),
        }
        matches!(released, Some(Settled::Done))
    }

    /// Ends a probe that has failed: the breaker is open again. Returns whether the intake was paused.
    pub(crate) async fn fail(mut self, asker: Asker<'_>) -> bool {
        self.ended = true;
        let Some(claim) = self.claim.take() else { return false };
        // Without its turn in time, the claim ends with its lease.
        let Some(_turn) = self.breaker.turn(asker).await else { return false };
        self.breaker.lengthen(asker, claim).await
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.breaker.state.set(Known::Open { until: self.open_until });
        }
    }
}
