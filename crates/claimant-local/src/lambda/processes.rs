//! The processes of a function that have not been reaped, and signals to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::sync::lock;

/// The processes of a function that have not been reaped. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Processes(Arc<Mutex<BTreeMap<u32, State>>>);

/// What was done to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    /// By the fault of this number.
    Frozen(u64),
    Killed,
}

impl Processes {
    pub(super) fn insert(&self, id: u32) {
        lock(&self.0).insert(id, State::Runs);
    }

    /// Forgets one that was reaped; returns whether a fault had killed it.
    pub(super) fn remove(&self, id: u32) -> bool {
        lock(&self.0).remove(&id) == Some(State::Killed)
    }

    pub(super) fn ids(&self) -> Vec<u32> {
        lock(&self.0).keys().copied().collect()
    }

    /// Kills one, with all that it started; returns whether it was there.
    pub(super) fn kill(&self, id: u32) -> bool {
        let mut processes = lock(&self.0);
        let Some(state) = processes.get_mut(&id) else { return false };
        *state = State::Killed;
        // Under the lock: it is not reaped, and its id not another process's, before it is forgotten.
        signal(id, Signal::KILL)
    }

    /// Stops one where it is, with all that it started; returns whether it ran.
    pub(super) fn freeze(&self, id: u32, fault: u64) -> bool {
        self.change(id, State::Runs, State::Frozen(fault), Signal::STOP)
    }

    /// Lets one go on that this fault froze; returns whether it had.
    pub(super) fn thaw(&self, id: u32, fault: u64) -> bool {
        self.change(id, State::Frozen(fault), State::Runs, Signal::CONT)
    }

    fn change(&self, id: u32, from: State, to: State, sent: Signal) -> bool {
        let mut processes = lock(&self.0);
        let Some(state) = processes.get_mut(&id).filter(|state| **state == from) else { return false };
        *state = to;
        signal(id, sent)
    }
}

/// Sends a signal to the group of the process with this id; returns whether there was one.
pub(super) fn signal(id: u32, signal: Signal) -> bool {
    let group = i32::try_from(id).ok().and_then(Pid::from_raw);
    // An error means that no process is left in the group.
    group.is_some_and(|group| kill_process_group(group, signal).is_ok())
}
