//! What a process knows of a breaker, and since when.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use crate::clock::Timestamp;
use crate::protocol::breaker::{Effect, Health, Known, Rules, observe};

/// What is known, and since when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    pub(crate) known: Known,
    pub(crate) since: Instant,
}

/// The state of a breaker, which the invocations of a process share.
#[derive(Debug)]
pub(crate) struct BreakerState {
    state: Mutex<State>,
    /// Told of a change of the state. It wakes in the order of waiting, so that a simulated run is the same again.
    changed: Notify,
}

impl BreakerState {
    /// Returns that of a breaker that is closed.
    pub(crate) fn closed() -> Self {
        Self { state: Mutex::new(State { known: Known::CLOSED, since: Instant::now() }), changed: Notify::new() }
    }

    pub(crate) fn get(&self) -> State {
        *self.lock()
    }

    pub(crate) fn set(&self, known: Known) {
        *self.lock() = State { known, since: Instant::now() };
        self.changed.notify_waiters();
    }

    /// Waits for a change.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Takes note of what a run says that took so long, and returns what is to be done about the record. A run that began before what is
    /// known now changes nothing; nor does another one's while this process probes.
    pub(crate) fn observe(
        &self,
        (seen, took): (Health, Duration),
        probes: bool,
        rules: &Rules,
        now: Timestamp,
    ) -> Effect {
        let began = Instant::now() - took;
        let mut state = self.lock();
        if began < state.since || matches!(state.known, Known::Probing { .. }) != probes {
            return Effect::Nothing;
        }
        let effect;
        (state.known, effect) = observe(state.known, seen, rules, now);
        if effect != Effect::Nothing {
            state.since = Instant::now();
            self.changed.notify_waiters();
        }
        effect
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
