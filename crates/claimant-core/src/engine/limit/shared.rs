//! A limit as a process knows it, and the claims of the slots that it holds: for all consumers of a function that name its system.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::users::LimitUsers;
use crate::claim::{Claim, Fence};
use crate::clock::{Clock, Timestamp};
use crate::engine::asker::policy;
use crate::key::{ConsumerName, InvalidValue, Key, MessageId, RecordId};
use crate::limit::{LIMIT_CONSUMER, LIMIT_PLAN, LIMIT_WANTED, Limit};
use crate::limits::{LIMIT_SLOTS_MAX, LIMIT_WINDOW_S};
use crate::protocol::ClaimPolicy;
use crate::protocol::slots::{LimitSlots, Now, SlotRequest};
use crate::store::Store;

/// What is known, and the claims by the numbers of their slots.
#[derive(Debug)]
pub(super) struct State {
    pub(super) slots: LimitSlots,
    pub(super) claims: Vec<(u32, Claim)>,
    users: LimitUsers,
    pub(super) warned: Warned,
}

/// What was logged, each once.
#[derive(Debug, Default)]
pub(super) struct Warned {
    /// The store refuses to say anything.
    pub(super) refused: bool,
    /// A lease ends later than any should.
    pub(super) far: bool,
    /// Others go by what this process would not set.
    pub(super) differs: bool,
    /// That plan, as it was seen last: its fence, and the end of its lease.
    pub(super) differs_from: Option<(Fence, Timestamp)>,
}

/// A limit of a process: its invocations share it, and its consumers that name one system.
pub(crate) struct SharedLimit {
    /// As it is set.
    own: Limit,
    /// Where its records are.
    pub(super) store: Arc<dyn Store>,
    pub(super) records: Records,
    /// In place of a message: whose slot it is.
    pub(super) by: MessageId,
    pub(super) policy: ClaimPolicy,
    state: Mutex<State>,
    /// Told of slots, of calls that have ended, and of what an operator has set.
    changed: Notify,
}

/// The records of a limit.
pub(super) struct Records {
    /// What an operator has set.
    pub(super) set: RecordId,
    /// What all processes go by.
    pub(super) plan: RecordId,
    /// Claimed by a process that has no slot.
    pub(super) wanted: RecordId,
    pub(super) slots: Vec<RecordId>,
}

impl Records {
    fn of(downstream: &str) -> Result<Self, InvalidValue> {
        let consumer = ConsumerName::new(LIMIT_CONSUMER)?;
        let id = |key: String| Ok::<_, InvalidValue>(RecordId::new(&consumer, &Key::new(key)?));
        Ok(Self {
            set: id(downstream.to_owned())?,
            plan: id(format!("{downstream}/{LIMIT_PLAN}"))?,
            wanted: id(format!("{downstream}/{LIMIT_WANTED}"))?,
            slots: (0..LIMIT_SLOTS_MAX).map(|number| id(format!("{downstream}/{number}"))).collect::<Result<_, _>>()?,
        })
    }
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
        let slots = LimitSlots::new(limit.plan(), Instant::now());
        let (claims, users, warned) = (Vec::new(), LimitUsers::default(), Warned::default());
        Ok(Self {
            own: limit.clone(),
            store,
            records: Records::of(&limit.downstream)?,
            by: MessageId::new(consumer.as_str())?,
            policy: policy(skew, LIMIT_WINDOW_S),
            state: Mutex::new(State { slots, claims, users, warned }),
            changed: Notify::new(),
        })
    }

    /// Returns how it is set.
    pub(crate) fn own(&self) -> &Limit {
        &self.own
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
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
}
