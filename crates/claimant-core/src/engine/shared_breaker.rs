//! A consumer's breaker as its process knows it, and the record by which all processes share it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::asker::{Asker, policy};
use super::breaker_state::{BreakerState, State};
use super::pauses::Pauses;
use crate::breaker::{BREAKER_CONSUMER, Breaker};
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::error::Chain;
use crate::failure::Failure;
use crate::key::{ConsumerName, InvalidValue, Key, MessageId, RecordId};
use crate::limits::{BREAKER_LOOK_MS, BREAKER_WINDOW_S};
use crate::protocol::breaker::{Effect, Health, Known, Rules, Shown, back, shown, window};
use crate::protocol::{ClaimPolicy, Refusal, Renewal};
use crate::store::{ClaimAnswer, Renewed, StoreError, StoreErrorKind};

/// Between two reads of the record at least.
const LOOK_MIN: Duration = Duration::from_millis(50);

/// The breaker of an engine: its invocations share it.
#[derive(Debug)]
pub(crate) struct SharedBreaker {
    downstream: String,
    rules: Rules,
    id: RecordId,
    /// In place of a message: who opened it.
    by: MessageId,
    policy: ClaimPolicy,
    state: BreakerState,
    pauses: Pauses,
    /// Whether a record was seen that a clock has made which is far off.
    warned: AtomicBool,
    /// Held by the one invocation that asks the store for all of them.
    asks: Mutex<()>,
}

/// The probe is this process's. Dropped before it has ended, the breaker is open until its lease ends, and then another one has it.
pub(crate) struct Probe<'a> {
    breaker: &'a SharedBreaker,
    /// None where the store refuses to say anything: each process then has a breaker of its own.
    claim: Option<Claim>,
    open_until: Timestamp,
    ended: bool,
}

impl SharedBreaker {
    /// Returns a breaker that is closed.
    pub(crate) fn new(breaker: &Breaker, consumer: &ConsumerName, skew: Duration) -> Result<Self, InvalidValue> {
        let record_of = ConsumerName::new(BREAKER_CONSUMER)?;
        Ok(Self {
            downstream: breaker.downstream.clone(),
            rules: breaker.rules,
            id: RecordId::new(&record_of, &Key::new(breaker.downstream.as_str())?),
            by: MessageId::new(consumer.as_str())?,
            policy: policy(skew, BREAKER_WINDOW_S),
            state: BreakerState::closed(),
            pauses: Pauses::default(),
            warned: AtomicBool::new(false),
            asks: Mutex::new(()),
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.get().known.is_closed()
    }

    /// Returns whether nothing is run at all, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state.get().known, Known::Open { .. })
    }

    /// Returns for how long the intake is still paused, as far as is known.
    pub(crate) fn paused(&self, now: Timestamp) -> Option<Duration> {
        self.pauses.back(now).map(|back| back.since(now))
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
    pub(crate) fn after_run(&self, seen: Health, took: Duration, probes: bool, now: Timestamp) -> Effect {
        self.state.after_run((seen, took), probes, &self.rules, now)
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
        let State { known, since } = self.state.get();
        let Known::Open { until } = known else { return None };
        if since != before {
            // Another invocation has just looked.
            return None;
        }
        let record = asker.get(&self.id).await;
        let may_probe = may_probe();
        let record = match record {
            Ok(record) => record,
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
        self.pauses.learn(record.as_ref().and_then(|record| back(record, self.policy.skew)));
        match shown(record.as_ref(), asker.clock.now(), self.policy.skew) {
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
        match self.claim(asker, self.rules.probe_for(asker.expected)).await {
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
        let lease_end = claim.as_ref().map(|claim| claim.lease_until.plus(self.policy.skew));
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

    /// Opens the breaker for all processes, or learns until when another one has opened it. Returns whether the intake was paused.
    pub(crate) async fn open(&self, asker: Asker<'_>) -> bool {
        let Some(_turn) = self.turn(asker).await else { return false };
        match self.claim(asker, self.rules.open_for).await {
            Ok(ClaimAnswer::Granted(claim)) => return self.lengthen(asker, claim).await,
            Ok(ClaimAnswer::Refused(Refusal::Busy { until, .. })) => self.state.set(Known::Open { until }),
            // By an operator.
            Ok(ClaimAnswer::Refused(_)) => self.closed(asker),
            Err(error) => {
                let why = match error.kind() {
                    StoreErrorKind::Denied => {
                        "the store refuses its record: the role has to be allowed keys that begin with claimant-breaker#"
                    }
                    kind if kind.is_transient() => "the store gave no answer",
                    _ => "its record cannot be written",
                };
                tracing::warn!(consumer = %asker.consumer, downstream = self.downstream, error = %Chain(&error), "breaker opened for this process alone: {why}");
            }
        }
        false
    }

    /// Returns the policy by which the record is kept, and tells when a paused intake comes back.
    fn policy(&self, now: Timestamp, lease_until: Timestamp) -> ClaimPolicy {
        let window = window(lease_until.plus(self.policy.skew), self.pauses.back(now));
        ClaimPolicy { window, ..self.policy }
    }

    /// Claims the record for so long.
    async fn claim(&self, asker: Asker<'_>, lasts: Duration) -> Result<ClaimAnswer, StoreError> {
        let now = asker.clock.now();
        let lease_until = now.plus(lasts);
        asker.claim((&self.id, &self.by), (now, lease_until), self.policy(now, lease_until)).await
    }

    /// Leaves the breaker open under this claim, for as long as its turn is, and pauses the intake where the claim is still held: a probe can
    /// have taken longer than its lease, and another process have closed the breaker since. Returns whether it did.
    async fn lengthen(&self, asker: Asker<'_>, mut claim: Claim) -> bool {
        // The first one has just been granted for its time.
        let held = if claim.attempt == 1 { Ok(Renewed::Held) } else { self.renew(asker, &mut claim).await };
        if let Ok(Renewed::Lost) = held {
            self.state.set(Known::Open { until: asker.clock.now() });
            return false;
        }
        let paused = held.is_ok() && self.pauses.pause(asker, &self.downstream, claim.attempt).await;
        if paused {
            // All have to know until when.
            let _ = self.renew(asker, &mut claim).await;
        }
        let until = claim.lease_until.plus(self.policy.skew);
        let open_ms = until.since(asker.clock.now()).as_millis() as u64;
        tracing::warn!(consumer = %asker.consumer, downstream = self.downstream, attempt = claim.attempt, open_ms, "breaker opened: messages are held back");
        self.state.set(Known::Open { until });
        paused
    }

    /// Renews the claim from now on for as long as its turn is; in any case it writes. Without an answer it is half open a little earlier.
    async fn renew(&self, asker: Asker<'_>, claim: &mut Claim) -> Result<Renewed, StoreError> {
        let now = asker.clock.now();
        let open_until = now.plus(self.rules.open_for(claim.attempt));
        let lease_until = open_until.max(claim.lease_until.plus(Duration::from_millis(1)));
        asker.renew(claim, Renewal { lease_until, now, policy: self.policy(now, lease_until) }).await
    }
}

impl Probe<'_> {
    /// Returns whether nobody else probes yet.
    pub(crate) fn lasts(&self, now: Timestamp) -> bool {
        now < self.open_until
    }

    /// Ends the probe: the breaker is closed for all processes, or open again. Returns whether the intake was paused.
    pub(crate) async fn end(mut self, asker: Asker<'_>, closed: bool) -> bool {
        let breaker = self.breaker;
        self.ended = true;
        if closed {
            breaker.closed(asker);
        }
        let Some(claim) = self.claim.take() else { return false };
        // Without its turn in time, the claim ends with its lease.
        let Some(turn) = breaker.turn(asker).await else { return false };
        if !closed {
            return breaker.lengthen(asker, claim).await;
        }
        // Without an answer, other processes then probe, too.
        asker.release(claim, breaker.policy).await;
        // That can take a minute, in which it may open again.
        drop(turn);
        breaker.pauses.resume(asker, &breaker.downstream, || breaker.is_closed()).await;
        false
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.breaker.state.set(Known::Open { until: self.open_until });
        }
    }
}
