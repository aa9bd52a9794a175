//! The event source mapping, and the schedule that switches it on again: requests take their time, and so does what they ask for.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claimant_core::intake;
use claimant_core::{BoxFuture, Clock as _, Error, HideAnswer, Intake, Queue, Timestamp};
use tokio::time::sleep;

use crate::clock::VirtualClock;

/// How long a request takes.
const REQUEST: Duration = Duration::from_millis(100);

/// How long after a request pollers stop, or start: Lambda says "up to a minute" of changes.
const CHANGE: Duration = Duration::from_secs(30);

/// How long after its time a schedule's request is made: within a minute.
const SCHEDULED: Duration = Duration::from_secs(30);

/// One mapping, which is on at first.
pub(crate) struct Mapping {
    clock: VirtualClock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When it was or will be asked to be on or off.
    asked: Vec<(Timestamp, bool)>,
    returns: BTreeSet<Timestamp>,
    pauses: u32,
}

impl State {
    /// Returns what was asked for last, up to this time.
    fn asked(&self, by: Timestamp) -> bool {
        let last = self.asked.iter().filter(|(at, _)| *at <= by).max_by_key(|(at, _)| *at);
        last.is_none_or(|(_, on)| *on)
    }
}

impl Mapping {
    pub(crate) fn new(clock: VirtualClock) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Returns whether messages are received.
    pub(crate) fn polls(&self) -> bool {
        self.state().asked(self.clock.now().minus(CHANGE))
    }

    pub(crate) fn pauses(&self) -> u32 {
        self.state().pauses
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Intake for Mapping {
    fn is_on(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async {
            sleep(REQUEST).await;
            Ok(self.state().asked(self.clock.now()))
        })
    }

    fn plan_return<'a>(&'a self, at: Timestamp, _why: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            sleep(REQUEST).await;
            let mut state = self.state();
            if state.returns.insert(at) {
                state.asked.push((at.plus(SCHEDULED), true));
            }
            Ok(())
        })
    }

    fn has_return(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async {
            sleep(REQUEST).await;
            let now = self.clock.now();
            Ok(self.state().returns.iter().any(|at| *at > now))
        })
    }

    fn switch_off(&self, before: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            sleep(REQUEST).await;
            let now = self.clock.now();
            if !intake::is_early_enough(now, before) {
                return Err(Error::new("too late"));
            }
            let mut state = self.state();
            state.asked.push((now, false));
            state.pauses += 1;
            Ok(())
        })
    }

    fn switch_on(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async {
            sleep(REQUEST).await;
            let now = self.clock.now();
            self.state().asked.push((now, true));
            Ok(())
        })
    }
}

/// What the engine may ask of the queue: nothing but to pause its intake, where it may.
pub(crate) struct Asked<'a> {
    pub(crate) intake: Option<&'a Mapping>,
}

impl Queue for Asked<'_> {
    fn hide(&self, _index: usize, _period: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }

    fn intake(&self) -> Option<&dyn Intake> {
        self.intake.map(|mapping| mapping as &dyn Intake)
    }
}
