//! Whether a state drains once faults stop: everything that is under way is answered, handlers succeed, clocks are right,
//! and the queue shows what failed when a retry can help.

use claimant_core::Status;

use crate::config::{Config, Finish};
use crate::state::{Out, Place, State, Worker};
use crate::steps::Step;

/// Deliveries that a message may need once faults have stopped: one that finds its key busy, and one that ends it.
pub const DELIVERIES_MAX: u8 = 2;

/// Steps that a worker may need for one message.
const STEPS_MAX: usize = 16;

impl State {
    /// Whether every message ends within [`DELIVERIES_MAX`] deliveries, and is completed unless a person has to decide.
    #[must_use]
    pub fn drains(&self, config: &Config) -> bool {
        // What is delayed arrives or vanishes first; the states behind that are drained themselves.
        if self.flaws != 0 || self.delayed.iter().any(Option::is_some) {
            return true;
        }
        // Requests under way may still carry what a clock showed before, so the clocks stay what they are.
        let calm = Config { receives: u8::MAX, drained: false, ..config.clone() };
        let mut state = self.clone();
        for worker in 0..config.workers {
            if state.work_off(&calm, worker).is_none() {
                return false;
            }
        }
        (0..config.payloads.len()).all(|message| state.deliver(&calm, message)) && state.flaws == 0
    }

    /// Delivers a message until it ends.
    fn deliver(&mut self, config: &Config, message: usize) -> bool {
        self.messages[message].receives = 0;
        for _ in 0..DELIVERIES_MAX {
            if matches!(self.messages[message].place, Place::Deleted | Place::DeadLetters) {
                return true;
            }
            self.messages[message].place = Place::Queue;
            self.take(config, Step::Receive { worker: 0, message, clock: self.now });
            match self.work_off(config, 0) {
                None => return false,
                Some(Some(Out::Busy)) => self.wait(config),
                // It stays in the queue until that moves it to the dead letters.
                Some(Some(out)) if out.is_letter() && !config.letters => return true,
                Some(_) => {}
            }
        }
        self.messages[message].place == Place::Deleted
    }

    /// Time passes until the key can be claimed.
    fn wait(&mut self, config: &Config) {
        if let Some(record) = self.record.filter(|record| record.status == Status::InProgress) {
            self.now = self.now.max(record.lease.saturating_add(config.skew).saturating_add(1));
        }
    }

    /// Lets a worker come to its end without faults: its outcome, if it had a message; `None` if it does not end.
    fn work_off(&mut self, config: &Config, worker: usize) -> Option<Option<Out>> {
        let mut last = None;
        for _ in 0..STEPS_MAX {
            let step = match self.workers[worker] {
                Worker::Idle => return Some(last),
                Worker::Asking { ask, lost: true, .. } if ask.ends() => Step::Resolve { worker },
                Worker::Asking { lost: true, .. } => Step::GiveUp { worker },
                Worker::Asking { .. } => Step::Answer { worker },
                Worker::Running { .. } => Step::Finish { worker, how: Finish::Ok, clock: self.now },
                Worker::Reporting { out, letter: None, .. } if config.letters && out.is_letter() => {
                    Step::Letter { worker, confirmed: true }
                }
                Worker::Reporting { out, .. } => {
                    last = Some(out);
                    Step::Report { worker, heard: true }
                }
            };
            self.take(config, step);
        }
        None
    }
}
