//! What a model is made of: the consumer's rules, the store's form, and which faults there can be.

use std::time::Duration;

use claimant_core::protocol::{Abandoned, ClaimPolicy, Conflicts};

use crate::clause::Clause;
use crate::rules::Rules;
use crate::values::{FOREVER, Time};

/// How a store carries out decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Reads, decides and writes in one step: memory, Redis, PostgreSQL.
    Atomic,
    /// The lock table: a blind conditional claim, then compare and set on what the refusal showed.
    Conditional,
    /// The lock table with batched claims: an insert, a read, then as before.
    Batched,
    /// The lock table without claims: the completion finds out whether the key is still to be had.
    Optimistic,
}

/// What a worker reads when it asks for the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// The true time, or up to the skew later: two clocks differ by no more than the skew.
    Within,
    /// One of these times, whatever the true one is.
    Jumping(&'static [Time]),
}

/// How a handler's run can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// It had its effect and returned.
    Ok,
    /// It says that it failed, and had no effect.
    Fail,
    /// It says that nothing can fix it, and had no effect.
    Reject,
    /// It panicked, was cancelled or timed out; it may have had its effect.
    Cut {
        /// Whether it had it.
        acted: bool,
    },
    /// It was not run after all, for want of time.
    Release,
}

/// One configuration of the model.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its name in reports.
    pub name: &'static str,
    /// The store's form.
    pub form: Form,
    /// Whether the effect commits together with the completion.
    pub transactional: bool,
    /// What becomes of abandoned work.
    pub abandoned: Abandoned,
    /// What becomes of a key with another payload.
    pub conflicts: Conflicts,
    /// The clock-skew margin, in seconds.
    pub skew: Time,
    /// The window of a settled record, in seconds; [`FOREVER`] where it never ends.
    pub window: Time,
    /// How long a claim is honoured, in seconds.
    pub lease: Time,
    /// Whether leases are renewed.
    pub renewed: bool,
    /// Whether handlers stop when their time is over: without it, a frozen one can go on at any time.
    pub stops: bool,
    /// What clocks show.
    pub clocks: Clocks,
    /// How runs can end.
    pub finishes: &'static [Finish],
    /// How many workers there are.
    pub workers: usize,
    /// The payload of each message.
    pub payloads: &'static [u8],
    /// The last second.
    pub ticks: Time,
    /// After how many receives the queue moves a message to its dead-letter queue.
    pub receives: u8,
    /// How many requests, answers and deletions can be lost or delayed.
    pub losses: u8,
    /// How many workers can die.
    pub deaths: u8,
    /// How many messages an operator can redrive.
    pub redrives: u8,
    /// Whether the table deletes records whose window is over.
    pub ttl: bool,
    /// Whether the function sends dead letters itself.
    pub letters: bool,
    /// Whether attempts are counted.
    pub attempts: bool,
    /// After how many attempts a message is rejected.
    pub attempts_max: Option<u8>,
    /// Whether each state is drained.
    pub drained: bool,
    /// What is switched off.
    pub off: Option<Clause>,
}

impl Config {
    /// Two workers and one message; clocks within a second of each other, handlers that stop, and no faults yet.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            form: Form::Atomic,
            transactional: false,
            abandoned: Abandoned::Rerun,
            conflicts: Conflicts::Reject,
            skew: 1,
            window: FOREVER,
            lease: 1,
            renewed: false,
            stops: true,
            clocks: Clocks::Within,
            finishes: &[Finish::Ok],
            workers: 2,
            payloads: &[0],
            ticks: 5,
            receives: 3,
            losses: 0,
            deaths: 0,
            redrives: 0,
            ttl: false,
            letters: false,
            attempts: false,
            attempts_max: None,
            drained: true,
            off: None,
        }
    }

    /// The rules that production decides by, with what is switched off.
    #[must_use]
    pub fn rules(&self) -> Rules {
        let seconds = |time: Time| Duration::from_secs(time.into());
        let policy = ClaimPolicy {
            abandoned: self.abandoned,
            conflicts: self.conflicts,
            skew: seconds(self.skew),
            window: seconds(self.window),
        };
        Rules { policy, off: self.off }
    }

    /// Whether the end of a window can matter.
    #[must_use]
    pub fn windows_end(&self) -> bool {
        self.window != FOREVER
    }

    /// Whether a settled effect is counted with its completion.
    #[must_use]
    pub fn commits(&self) -> bool {
        self.transactional || self.form == Form::Optimistic
    }

    /// What a clock can show at this true time.
    pub fn clock(&self, now: Time) -> impl Iterator<Item = Time> + use<> {
        let (band, jumps) = match self.clocks {
            Clocks::Within => (now..=now.saturating_add(self.skew), [].as_slice()),
            Clocks::Jumping(times) => (now..=now, times),
        };
        band.chain(jumps.iter().copied().filter(move |time| *time != now))
    }
}
