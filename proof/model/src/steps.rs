//! Every step that can be taken, and what it does.

use crate::answers::{asking, attempting, commit, reporting};
use crate::config::{Config, Finish, Form};
use crate::rules::{End, Settling, Verdict};
use crate::state::{Ask, Flaw, Message, Out, Place, State, Worker};
use crate::values::{Held, Req, Time};
use claimant_core::{Abandoned, Conflicts};

/// What becomes of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is answered.
    Answered,
    /// It applies, its answer is lost, and the same request is answered.
    Repeated,
    /// It applies, or not, and no answer comes.
    Lost {
        /// Whether it applies.
        applied: bool,
    },
    /// It may still arrive, and no answer comes.
    Delayed,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "`worker`, `message` and `place` say whose, `clock` what its clock shows")]
pub enum Step {
    /// The queue gives a message to a worker, which asks for its key.
    Receive { worker: usize, message: usize, clock: Time },
    /// What the worker asked for arrives, and so does its answer.
    Answer { worker: usize },
    /// No answer comes; `applied` says whether the request did.
    Lose { worker: usize, applied: bool },
    /// No answer comes, and the write may still arrive.
    Delay { worker: usize },
    /// The worker sends the same request again.
    Again { worker: usize },
    /// The worker reads the record that tells what became of its ending.
    Resolve { worker: usize },
    /// The worker stops waiting.
    GiveUp { worker: usize },
    /// The handler's run ends.
    Finish { worker: usize, how: Finish, clock: Time },
    /// The worker renews its lease beside the handler.
    Renew { worker: usize, clock: Time, fate: Fate },
    /// The worker sends a dead letter.
    Letter { worker: usize, confirmed: bool },
    /// The worker reports; `heard` says whether the queue acts on it.
    Report { worker: usize, heard: bool },
    /// The worker dies; `applied` says whether what it asked for arrives all the same.
    Die { worker: usize, applied: bool },
    /// A delayed write arrives.
    Land { place: usize },
    /// A delayed write is lost for good.
    Vanish { place: usize },
    /// A message's visibility ends.
    Show { message: usize },
    /// An operator moves a message from the dead-letter queue back.
    Redrive { message: usize },
    /// The table deletes the expired record.
    Expire,
    /// A second passes.
    Tick,
}

impl State {
    /// Takes a step; what cannot be leaves the state as it is.
    pub fn take(&mut self, config: &Config, step: Step) {
        match step {
            Step::Receive { worker, message, clock } => self.receive(config, worker, message, clock),
            Step::Answer { worker } => self.answer(config, worker),
            Step::Lose { worker, applied } => self.lose(config, worker, applied),
            Step::Delay { worker } => {
                self.losses -= 1;
                if let Worker::Asking { ask, .. } = self.workers[worker] {
                    self.delay(ask);
                }
                self.mark_lost(worker);
            }
            Step::Again { worker } => {
                if let Worker::Asking { lost, resolving, ask, .. } = &mut self.workers[worker] {
                    (*lost, *resolving) = (false, ask.ends());
                }
            }
            Step::Resolve { worker } => self.resolve(config, worker),
            Step::GiveUp { worker } => self.give_up(worker),
            Step::Finish { worker, how, clock } => self.finish(config, worker, how, clock),
            Step::Renew { worker, clock, fate } => self.renew(config, worker, clock, fate),
            Step::Letter { worker, confirmed } => self.letter(config, worker, confirmed),
            Step::Report { worker, heard } => self.report(config, worker, heard),
            Step::Die { worker, applied } => {
                self.deaths -= 1;
                if let (Worker::Asking { ask, .. }, true) = (self.workers[worker], applied) {
                    self.apply(config, &ask);
                }
                self.workers[worker] = Worker::Idle;
            }
            Step::Land { place } => {
                if let Some(ask) = self.take_delayed(place) {
                    self.apply(config, &ask);
                }
            }
            Step::Vanish { place } => drop(self.take_delayed(place)),
            Step::Show { message } => self.show(config, message),
            Step::Redrive { message } => {
                self.redrives -= 1;
                let redriven = self.messages[message].redriven + 1;
                self.messages[message] = Message { place: Place::Queue, receives: 0, redriven, copied: false };
            }
            Step::Expire => self.delete_expired(config),
            Step::Tick => self.now += 1,
        }
    }

    /// The place of the message with this id.
    fn message_of(config: &Config, id: u8) -> usize {
        usize::from(id) % config.payloads.len()
    }

    fn receive(&mut self, config: &Config, worker: usize, message: usize, clock: Time) {
        let owner = self.fresh_owner();
        let (count, until) = (config.payloads.len(), self.now + config.lease);
        let received = &mut self.messages[message];
        received.place = Place::InFlight;
        received.receives += 1;
        let first = received.receives == 1;
        // OK because there are few messages.
        let id = message as u8 + count as u8 * received.redriven;
        let lease = clock.saturating_add(config.lease);
        let req = Req { owner, message: id, payload: config.payloads[message], now: clock, lease };
        self.workers[worker] = match config.form {
            Form::Batched if first => asking(id, until, Ask::Insert(req)),
            Form::Optimistic if first => match config.rules().decide(None, &req) {
                Verdict::Grant { next, .. } => attempting(id, until, &req, None, &next, false),
                _ => reporting(id, Out::StoreFailed),
            },
            Form::Optimistic => asking(id, until, Ask::Begin(req)),
            _ => asking(id, until, Ask::Claim(req)),
        };
    }

    fn lose(&mut self, config: &Config, worker: usize, applied: bool) {
        self.losses -= 1;
        if let (Worker::Asking { ask, .. }, true) = (self.workers[worker], applied) {
            self.apply(config, &ask);
        }
        self.mark_lost(worker);
    }

    fn mark_lost(&mut self, worker: usize) {
        if let Worker::Asking { lost, .. } = &mut self.workers[worker] {
            *lost = true;
        }
    }

    fn delay(&mut self, ask: Ask) {
        if let Some(free) = self.delayed.iter_mut().find(|place| place.is_none()) {
            *free = Some(ask);
        }
    }

    /// Takes out a delayed write; those behind it move up, so that places say nothing.
    fn take_delayed(&mut self, place: usize) -> Option<Ask> {
        let ask = self.delayed[place].take();
        self.delayed[place..].rotate_left(1);
        ask
    }

    fn give_up(&mut self, worker: usize) {
        if let Worker::Asking { id, ask, .. } = self.workers[worker] {
            let out = if ask.ends() { Out::Unsettled } else { Out::StoreFailed };
            self.workers[worker] = reporting(id, out);
        }
    }

    /// How the claim ends, as the engine's `after_run` says.
    fn finish(&mut self, config: &Config, worker: usize, how: Finish, clock: Time) {
        let Worker::Running { id, until, held, base } = self.workers[worker] else { return };
        let acted = matches!(how, Finish::Ok | Finish::Cut { acted: true });
        if acted && !config.commits() {
            self.act(held.payload);
        }
        let end = match how {
            Finish::Ok => End::Completed,
            Finish::Fail => End::Failed,
            Finish::Reject => End::Rejected,
            Finish::Release => End::Released,
            Finish::Cut { .. } => cut_off(config),
        };
        self.workers[worker] = match base {
            None => asking(id, until, Ask::Settle { held, end, now: clock }),
            // Nothing was written.
            Some(_) if end == End::Released => reporting(id, Out::Retry),
            Some(base) => match commit(&config.rules(), &base.req, base.seen, end, clock) {
                Ok(ask) => asking(id, until, ask),
                Err(_) => reporting(id, Out::Lost),
            },
        };
    }

    fn renew(&mut self, config: &Config, worker: usize, clock: Time, fate: Fate) {
        let Worker::Running { id, until, held, base } = self.workers[worker] else { return };
        let lease = clock.saturating_add(config.lease);
        let ask = Ask::Renew { held, lease, now: clock };
        self.losses -= u8::from(fate != Fate::Answered);
        match fate {
            Fate::Delayed => return self.delay(ask),
            Fate::Lost { applied } => {
                if applied {
                    self.apply(config, &ask);
                }
                return;
            }
            Fate::Repeated => {
                self.apply(config, &ask);
            }
            Fate::Answered => {}
        }
        let applied = self.apply(config, &ask);
        let seen = self.record;
        let lease = match (applied, config.rules().renew(seen, &held, lease, clock), seen) {
            (true, ..) => Some(lease),
            (false, Settling::Already, Some(seen)) => Some(seen.lease),
            _ => None,
        };
        self.blame(Flaw::OwnWrites, lease.is_none() && fate == Fate::Repeated && self.shows(&held));
        self.workers[worker] = match lease {
            Some(lease) => {
                let until = until.max(self.now + config.lease);
                Worker::Running { id, until, held: Held { lease, ..held }, base }
            }
            // The handler is cancelled, which ends its claim if that is still held.
            None => asking(id, until, Ask::Settle { held, end: cut_off(config), now: clock }),
        };
    }

    fn shows(&self, held: &Held) -> bool {
        self.record.is_some_and(|record| record.owner == held.owner && record.fence == held.fence)
    }

    fn letter(&mut self, config: &Config, worker: usize, confirmed: bool) {
        self.losses -= u8::from(!confirmed);
        if let Worker::Reporting { id, letter, .. } = &mut self.workers[worker] {
            *letter = Some(confirmed);
            let message = Self::message_of(config, *id);
            self.messages[message].copied = true;
        }
    }

    fn report(&mut self, config: &Config, worker: usize, heard: bool) {
        let Worker::Reporting { id, out, letter } = self.workers[worker] else { return };
        self.losses -= u8::from(!heard);
        self.workers[worker] = Worker::Idle;
        let place = Self::message_of(config, id);
        let payload = usize::from(config.payloads[place]);
        let success = out.is_success(letter == Some(true));
        if success && !out.is_letter() {
            let known = |payload: usize| self.done[payload] && self.effects[payload] > 0;
            let known = match config.conflicts {
                Conflicts::Reject => known(payload),
                Conflicts::Ignore => known(0) || known(1),
            };
            self.blame(Flaw::S4, !known);
        }
        let present = usize::from(id) / config.payloads.len() == usize::from(self.messages[place].redriven);
        self.blame(Flaw::S4, present && success && out.is_letter() && !self.messages[place].copied);
        let message = &mut self.messages[place];
        if !heard || !present {
            return;
        }
        match (success, message.place) {
            (true, Place::Queue | Place::InFlight) => message.place = Place::Deleted,
            (false, Place::InFlight) => self.show(config, place),
            _ => {}
        }
    }

    /// A message is visible again, or moved where it was received often enough.
    fn show(&mut self, config: &Config, message: usize) {
        let message = &mut self.messages[message];
        message.place = if message.receives >= config.receives { Place::DeadLetters } else { Place::Queue };
    }
}

/// What a run that was cut off ends with.
fn cut_off(config: &Config) -> End {
    match config.abandoned {
        Abandoned::Rerun => End::Failed,
        Abandoned::Park => End::Parked,
    }
}
