//! Which steps can be taken in a state.

use crate::config::{Config, Finish};
use crate::state::{Ask, Place, State, WORKERS_MAX, Worker};
use crate::steps::{Fate, Step};

impl State {
    /// Adds every step that can be taken.
    pub fn moves(&self, config: &Config, moves: &mut Vec<Step>) {
        // A state in which a promise is broken has been explored far enough.
        if self.flaws != 0 {
            return;
        }
        for worker in 0..config.workers {
            self.moves_of(config, worker, moves);
        }
        self.receives(config, moves);
        for place in 0..self.delayed.iter().flatten().count() {
            moves.extend([Step::Land { place }, Step::Vanish { place }]);
        }
        for message in 0..config.payloads.len() {
            let there = &self.messages[message];
            if there.place == Place::InFlight {
                moves.push(Step::Show { message });
            }
            let dead = there.place == Place::DeadLetters || there.place == Place::Deleted && there.copied;
            if dead && self.redrives > 0 {
                moves.push(Step::Redrive { message });
            }
        }
        let expired = self.record.is_some_and(|record| record.expires < self.now.saturating_add(config.skew));
        if config.ttl && expired {
            moves.push(Step::Expire);
        }
        // Time that passes before anything happened changes nothing but the numbers.
        let begun = self.record.is_some() || self.workers != [Worker::Idle; WORKERS_MAX] || self.delayed[0].is_some();
        if begun && self.now < config.ticks && !self.must_stop(config) {
            moves.push(Step::Tick);
        }
    }

    /// Whether a handler has to end before time goes on.
    fn must_stop(&self, config: &Config) -> bool {
        let over = |worker: &Worker| matches!(worker, Worker::Running { until, .. } if *until <= self.now);
        config.stops && self.workers.iter().any(over)
    }

    /// Idle workers are all alike, so the first one receives.
    fn receives(&self, config: &Config, moves: &mut Vec<Step>) {
        let idle = self.workers[..config.workers].iter().position(|worker| *worker == Worker::Idle);
        let Some(worker) = idle else { return };
        for message in 0..config.payloads.len() {
            if self.messages[message].place == Place::Queue {
                moves.extend(config.clock(self.now).map(|clock| Step::Receive { worker, message, clock }));
            }
        }
    }

    fn moves_of(&self, config: &Config, worker: usize, moves: &mut Vec<Step>) {
        let can_lose = self.losses > 0;
        match &self.workers[worker] {
            Worker::Idle => return,
            Worker::Asking { ask, lost: true, .. } => {
                moves.extend([Step::Again { worker }, Step::GiveUp { worker }]);
                if ask.ends() {
                    moves.push(Step::Resolve { worker });
                }
            }
            Worker::Asking { ask, lost: false, .. } => {
                moves.push(Step::Answer { worker });
                if can_lose {
                    moves.push(Step::Lose { worker, applied: false });
                }
                if can_lose && ask.writes() {
                    if self.changes(config, ask) {
                        moves.push(Step::Lose { worker, applied: true });
                    }
                    if self.delayed.iter().any(Option::is_none) {
                        moves.push(Step::Delay { worker });
                    }
                }
                if self.deaths > 0 && self.changes(config, ask) {
                    moves.push(Step::Die { worker, applied: true });
                }
            }
            Worker::Running { .. } => self.moves_of_running(config, worker, moves),
            Worker::Reporting { out, letter, .. } => {
                if config.letters && out.is_letter() && letter.is_none() {
                    moves.push(Step::Letter { worker, confirmed: true });
                    if can_lose {
                        moves.push(Step::Letter { worker, confirmed: false });
                    }
                } else {
                    moves.push(Step::Report { worker, heard: true });
                    // A failure that the queue does not hear of is a visibility that has yet to end.
                    if can_lose && out.is_success(*letter == Some(true)) {
                        moves.push(Step::Report { worker, heard: false });
                    }
                }
            }
        }
        if self.deaths > 0 {
            moves.push(Step::Die { worker, applied: false });
        }
    }

    fn moves_of_running(&self, config: &Config, worker: usize, moves: &mut Vec<Step>) {
        for how in config.finishes.iter().copied() {
            if !config.windows_end() || how == Finish::Release {
                moves.push(Step::Finish { worker, how, clock: self.now });
            } else {
                moves.extend(config.clock(self.now).map(|clock| Step::Finish { worker, how, clock }));
            }
        }
        let Worker::Running { held, base: None, .. } = &self.workers[worker] else { return };
        if !config.renewed {
            return;
        }
        for clock in config.clock(self.now) {
            if clock.saturating_add(config.lease) == held.lease {
                continue;
            }
            moves.push(Step::Renew { worker, clock, fate: Fate::Answered });
            if self.losses > 0 {
                let fates = [Fate::Repeated, Fate::Lost { applied: true }, Fate::Lost { applied: false }];
                moves.extend(fates.into_iter().map(|fate| Step::Renew { worker, clock, fate }));
                if self.delayed.iter().any(Option::is_none) {
                    moves.push(Step::Renew { worker, clock, fate: Fate::Delayed });
                }
            }
        }
    }

    fn changes(&self, config: &Config, ask: &Ask) -> bool {
        self.clone().apply(config, ask)
    }
}
