//! A limit as a process knows it, and the claims of the slots that it holds: for all consumers of a function that name its system.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::users::LimitUsers;
use crate::claim::Claim;
use crate::clock::Clock;
use crate::engine::asker::{Asker, policy};
use crate::error::Chain;
use crate::key::{ConsumerName, InvalidValue, Key, MessageId, RecordId};
use crate::limit::{LIMIT_CONSUMER, Limit};
use crate::limits::{LIMIT_LEASE_MS, LIMIT_WINDOW_S};
use crate::protocol::rate::Allowed;
use crate::protocol::slots::{LimitSlots, Now, SlotAnswer, SlotRequest};
use crate::protocol::{ClaimPolicy, Refusal, Renewal};
use crate::store::{ClaimAnswer, Renewed, Store, StoreError};

/// What is known, and the claims by the numbers of their slots.
#[derive(Debug)]
struct State {
    slots: LimitSlots,
    claims: Vec<(u32, Claim)>,
    users: LimitUsers,
    /// Whether it was logged that the store refuses to say anything.
    warned: bool,
}

/// A limit of a process: its invocations share it, and its consumers that name one system.
pub(crate) struct SharedLimit {
    /// As it is set.
    own: Limit,
    /// Where its records are.
    store: Arc<dyn Store>,
    record: RecordId,
    slot_ids: Vec<RecordId>,
    /// In place of a message: whose slot it is.
    by: MessageId,
    policy: ClaimPolicy,
    state: Mutex<State>,
    /// Told of slots, of calls that have ended, and of what an operator has set.
    changed: Notify,
}

/// A call that has begun; dropped, it has ended. Where its limit counts calls at once, it is one of them.
#[derive(Debug, Default)]
pub(crate) struct Permit(Option<Box<Counted>>);

#[derive(Debug)]
struct Counted {
    limit: Arc<SharedLimit>,
    number: u32,
    since: Instant,
}

impl fmt::Debug for SharedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimit").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(Counted { limit, number, since }) = self.0.as_deref() else { return };
        let mut state = limit.state();
        state.slots.end(*number, *since);
        state.users.freed();
        drop(state);
        limit.tell();
    }
}

/// A request that is to be made, or under way: dropped without an answer, another one can be made, by whoever waits.
struct Asking<'a>(Option<&'a SharedLimit>);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(limit) = self.0 {
            limit.state().slots.unasked();
            limit.tell();
        }
    }
}

pub(crate) fn now(clock: &dyn Clock) -> Now {
    Now { wall: clock.now(), mono: Instant::now() }
}

impl SharedLimit {
    /// Returns a limit of which this process holds nothing.
    pub(crate) fn new(
        limit: &Limit,
        consumer: &ConsumerName,
        skew: Duration,
        store: Arc<dyn Store>,
    ) -> Result<Self, InvalidValue> {
        let record_of = ConsumerName::new(LIMIT_CONSUMER)?;
        let id = |key: String| Ok::<_, InvalidValue>(RecordId::new(&record_of, &Key::new(key)?));
        let slot_ids: Result<_, _> =
            (0..limit.slots).map(|number| id(format!("{}/{number}", limit.downstream))).collect();
        let known = LimitSlots::new(limit.allowed, limit.slots, Instant::now());
        Ok(Self {
            own: limit.clone(),
            store,
            record: id(limit.downstream.clone())?,
            slot_ids: slot_ids?,
            by: MessageId::new(consumer.as_str())?,
            policy: policy(skew, LIMIT_WINDOW_S),
            state: Mutex::new(State { slots: known, claims: Vec::new(), users: LimitUsers::default(), warned: false }),
            changed: Notify::new(),
        })
    }

    /// Returns how it is set.
    pub(crate) fn own(&self) -> &Limit {
        &self.own
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is known, to ask or to tell it something.
    pub(crate) fn with<R>(&self, of: impl FnOnce(&mut LimitSlots) -> R) -> R {
        of(&mut self.state().slots)
    }

    /// Returns the time between two calls in a slot.
    pub(crate) fn interval(&self) -> Duration {
        self.with(|slots| slots.interval())
    }

    /// Asks those that use it something, or tells them.
    pub(crate) fn with_users<R>(&self, of: impl FnOnce(&mut LimitUsers) -> R) -> R {
        of(&mut self.state().users)
    }

    /// Returns when this user's next call can begin in a slot that is held.
    pub(crate) fn next_call_at(&self, now: Now, user: u64) -> Option<Instant> {
        let state = self.state();
        Some(state.users.turn_at(state.slots.next_call_at(now)?, user))
    }

    /// Returns when this user may claim its next key.
    pub(crate) fn next_claim_at(&self, now: Now, user: u64) -> Option<Instant> {
        let state = self.state();
        Some(state.users.claim_at(state.slots.next_call_at(now)?, user))
    }

    /// Returns whether no call can begin now.
    pub(crate) fn is_short(&self, clock: &dyn Clock) -> bool {
        self.with(|slots| slots.soon(now(clock), Duration::ZERO)) == 0
    }

    /// Waits for a change. What it returns is to be made before the state is read.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.changed.notified()
    }

    /// Wakes who waits for a change.
    pub(crate) fn tell(&self) {
        self.changed.notify_waiters();
    }

    /// Returns whether a call of this user may begin now, or one may go on with another item: a call has one turn for all that it has.
    pub(crate) fn may_begin(&self, now: Now, user: u64, goes_on: bool) -> bool {
        let state = self.state();
        let at = state.slots.next_call_at(now);
        at.is_some_and(|at| at <= now.mono && (goes_on || state.users.turn_at(at, user) <= now.mono))
    }

    /// Begins a call of this user, if one may begin now, or goes on with another item of it; what it returns is kept as long as it runs.
    pub(crate) fn begin(self: &Arc<Self>, now: Now, user: u64, goes_on: bool) -> Option<Permit> {
        let mut state = self.state();
        let at = state.slots.next_call_at(now).filter(|at| *at <= now.mono);
        if !goes_on && at.is_some_and(|at| state.users.turn_at(at, user) > now.mono) {
            return None;
        }
        let number = state.slots.begin(now)?;
        let leaves_room = state.users.began(user, goes_on);
        let counted = |since| Box::new(Counted { limit: Arc::clone(self), number, since });
        let permit = Permit(state.slots.counted_since(number).map(counted));
        drop(state);
        if leaves_room {
            self.tell();
        }
        Some(permit)
    }

    /// Returns what is to be asked of the store now, or when.
    pub(crate) fn next(&self, now: Now, waiting: usize, seed: u64) -> Result<SlotRequest, Option<Instant>> {
        self.state().slots.next(now, waiting, seed)
    }

    /// Asks it.
    pub(crate) fn go<'a>(&'a self, request: SlotRequest, asker: Asker<'a>) -> impl Future<Output = ()> + 'a {
        // From now on, and not from the first poll, which what is dropped may never see.
        let asking = Asking(matches!(request, SlotRequest::Read | SlotRequest::Claim(_)).then_some(self));
        let asker = Asker { store: self.store.as_ref(), ..asker };
        async move {
            match request {
                SlotRequest::Read => self.read(asking, asker).await,
                SlotRequest::Claim(number) => self.claim(number, asking, asker).await,
                SlotRequest::Renew(number) => self.renew(number, asker).await,
                SlotRequest::Release(number) => self.release(number, asker).await,
            }
            self.tell();
        }
    }

    async fn read(&self, mut asking: Asking<'_>, asker: Asker<'_>) {
        let set = match asker.get(&self.record).await {
            Ok(record) => Ok(Allowed::set_by(record.as_ref(), asker.clock.now())),
            Err(error) => {
                self.warn(asker, &error);
                Err(())
            }
        };
        asking.0 = None;
        let before = self.with(|slots| slots.allowed().0);
        self.with(|slots| slots.read(set, now(asker.clock)));
        let (Allowed { calls, per_ms, at_once }, used) = self.with(|slots| slots.allowed());
        if before != (Allowed { calls, per_ms, at_once }) {
            tracing::info!(consumer = %asker.consumer, downstream = self.own.downstream, calls, per_ms, at_once, slots = used, "limit is changed");
        }
    }

    async fn claim(&self, number: u32, mut asking: Asking<'_>, asker: Asker<'_>) {
        let asked = now(asker.clock);
        let lease_until = asked.wall.plus(Duration::from_millis(LIMIT_LEASE_MS));
        let slot = (&self.slot_ids[number as usize], &self.by);
        let answer = asker.claim(slot, (asked.wall, lease_until), self.policy).await;
        asking.0 = None;
        let came = match answer {
            Ok(ClaimAnswer::Granted(claim)) => {
                let held = SlotAnswer::Held { asked, lease_until: claim.lease_until };
                tracing::debug!(consumer = %asker.consumer, downstream = self.own.downstream, slot = number, "slot of the limit is held");
                let mut state = self.state();
                state.claims.retain(|(other, _)| *other != number);
                state.claims.push((number, claim));
                held
            }
            // A lease is over only after its last millisecond.
            Ok(ClaimAnswer::Refused(Refusal::Busy { until, .. })) => {
                SlotAnswer::Busy(until.since(asker.clock.now()) + Duration::from_millis(1))
            }
            // By an operator.
            Ok(ClaimAnswer::Refused(_)) => SlotAnswer::Busy(self.policy.window),
            Err(error) => {
                self.warn(asker, &error);
                SlotAnswer::Unanswered
            }
        };
        self.with(|slots| slots.claimed(number, came, now(asker.clock)));
    }

    fn take_claim(&self, number: u32) -> Option<Claim> {
        let mut state = self.state();
        let at = state.claims.iter().position(|(other, _)| *other == number)?;
        Some(state.claims.swap_remove(at).1)
    }

    async fn renew(&self, number: u32, asker: Asker<'_>) {
        let asked = now(asker.clock);
        let Some(mut claim) = self.take_claim(number) else {
            self.with(|slots| slots.renewed(number, asked, Ok(None)));
            return;
        };
        let lease_until = asked.wall.plus(Duration::from_millis(LIMIT_LEASE_MS));
        let renewal = Renewal { lease_until, now: asked.wall, policy: self.policy };
        let answer = match asker.renew(&mut claim, renewal).await {
            Ok(Renewed::Held) => Ok(Some(claim.lease_until)),
            Ok(Renewed::Lost) => Ok(None),
            Err(_) => Err(()),
        };
        let mut state = self.state();
        if state.slots.renewed(number, asked, answer) {
            state.claims.push((number, claim));
        }
    }

    async fn release(&self, number: u32, asker: Asker<'_>) {
        if let Some(claim) = self.take_claim(number) {
            _ = asker.release(claim, self.policy).await;
        }
    }

    /// Logs once what another try does not fix.
    fn warn(&self, asker: Asker<'_>, error: &StoreError) {
        if !error.kind().is_transient() && !std::mem::replace(&mut self.state().warned, true) {
            tracing::error!(consumer = %asker.consumer, downstream = self.own.downstream, error = %Chain(error), "messages wait, since the store refuses the records of their limit: the role has to be allowed keys that begin with claimant-rate#");
        }
    }
}
