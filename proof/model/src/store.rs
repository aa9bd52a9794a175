//! What the store does with a write, and what no write may do.

use claimant_core::{Conflicts, Status};

use crate::clause::Clause;
use crate::conditions::Kind;
use crate::config::{Clocks, Config, Form};
use crate::rules::{End, Rules, Settling, Verdict};
use crate::state::{Ask, EFFECTS_MAX, Flaw, State};
use crate::values::{Held, Rec, Req, Time};

impl State {
    /// Notes a broken promise.
    pub fn blame(&mut self, flaw: Flaw, broken: bool) {
        if broken {
            self.flaws |= flaw as u16;
        }
    }

    /// Lets a write arrive at the store; whether it changed the record.
    pub fn apply(&mut self, config: &Config, ask: &Ask) -> bool {
        let rules = config.rules();
        match self.outcome_of(config, &rules, ask) {
            Some(next) => {
                self.put(config, &rules, ask, next);
                true
            }
            None => false,
        }
    }

    /// The record that a write leads to; `None` where it is refused.
    fn outcome_of(&self, config: &Config, rules: &Rules, ask: &Ask) -> Option<Rec> {
        let atomic = config.form == Form::Atomic;
        let written = |settling| match settling {
            Settling::Write(next) => Some(next),
            Settling::Already | Settling::Lost => None,
        };
        match ask {
            Ask::Look(_) | Ask::Begin(_) => None,
            Ask::Claim(req) if atomic => match rules.decide(self.record, req) {
                Verdict::Grant { next, .. } | Verdict::Park { next } => Some(next),
                Verdict::Held | Verdict::Refuse(_) => None,
            },
            Ask::Insert(req) => rules.claim(Kind::Insert, self.record, req),
            Ask::Claim(req) => rules.claim(Kind::Claim, self.record, req),
            Ask::Replace { seen, next, .. } => rules.replace(self.record, Some(*seen), *next),
            Ask::Commit { seen, next, .. } => rules.replace(self.record, *seen, *next),
            Ask::Settle { held, end, now } if atomic => written(rules.settle(self.record, held, *end, *now)),
            Ask::Settle { held, end, now } => rules.settle_guarded(self.record, held, *end, *now),
            Ask::Renew { held, lease, now } if atomic => written(rules.renew(self.record, held, *lease, *now)),
            Ask::Renew { held, lease, now } => rules.renew_guarded(self.record, held, *lease, *now),
        }
    }

    /// Writes the record, and looks whether that may be.
    fn put(&mut self, config: &Config, rules: &Rules, ask: &Ask, next: Rec) {
        let next = if config.attempts { next } else { Rec { attempts: 0, ..next } };
        match ask {
            Ask::Look(_) | Ask::Begin(_) => {}
            Ask::Insert(req) | Ask::Claim(req) | Ask::Replace { req, .. } => {
                if next.status == Status::InProgress {
                    self.check_claim(config, req, &next);
                } else {
                    // Parking, too, leaves completed work alone.
                    self.blame(Flaw::S5, self.record.is_some_and(|record| record.status == Status::Completed));
                }
                self.check_decision(config, rules, req, &next);
            }
            Ask::Commit { req, next, end, now, .. } => {
                self.check_claim(config, req, next);
                if *end == End::Completed {
                    self.complete(config, req.payload, *now);
                }
            }
            Ask::Settle { held, end, now } => {
                self.check_held(held);
                if *end == End::Completed {
                    self.complete(config, held.payload, *now);
                }
            }
            Ask::Renew { held, lease, .. } => {
                self.check_held(held);
                let shorter = self.record.is_some_and(|record| record.lease > *lease);
                self.blame(Flaw::LeasesGrow, shorter);
            }
        }
        self.record = Some(next);
    }

    /// What an accepted claim may not do.
    fn check_claim(&mut self, config: &Config, req: &Req, next: &Rec) {
        let Some(old) = self.record else { return self.blame(Flaw::S1, next.fence != 1) };
        self.blame(Flaw::S1, next.fence != old.fence.saturating_add(1));
        let over = old.expires < req.now;
        if old.status == Status::Completed {
            // By the claimant's own clock; and, as far as clocks agree, by the true one.
            let early =
                config.clocks == Clocks::Within && self.now + config.skew <= self.done_at.saturating_add(config.window);
            self.blame(Flaw::S5, !over || config.windows_end() && early);
        }
        let live = old.status == Status::InProgress && req.now <= old.lease.saturating_add(config.skew);
        let conflict = config.conflicts == Conflicts::Reject && old.payload != req.payload;
        self.blame(Flaw::S10, conflict && (live || !over));
        let again = old.status == Status::Rejected && old.message == req.message;
        self.blame(Flaw::RejectedOnce, again && !over);
        if over && !live {
            self.completions = 0;
        }
        if config.attempts && next.status == Status::InProgress {
            let anew = (over && !live) || old.status == Status::Rejected;
            let wanted = if anew { 1 } else { old.attempts.saturating_add(1) };
            self.blame(Flaw::Attempts, next.attempts != wanted);
        }
    }

    /// A store writes what the decision gives for the record that is there, and nothing else.
    fn check_decision(&mut self, config: &Config, rules: &Rules, req: &Req, next: &Rec) {
        // A condition is held against the whole decision, a decision that lacks a branch against itself.
        let whole = Rules { off: rules.off.filter(|off| matches!(off, Clause::Branch(_))), ..*rules };
        let (Verdict::Grant { next: wanted, .. } | Verdict::Park { next: wanted }) = whole.decide(self.record, req)
        else {
            return self.blame(Flaw::OneDecision, true);
        };
        let wanted = if config.attempts { wanted } else { Rec { attempts: 0, ..wanted } };
        self.blame(Flaw::OneDecision, wanted != *next);
    }

    /// After the claim, only its own record in progress is written.
    fn check_held(&mut self, held: &Held) {
        let exact = self.record.is_some_and(|record| {
            record.status == Status::InProgress && record.owner == held.owner && record.fence == held.fence
        });
        self.blame(Flaw::S3, !exact);
        self.blame(Flaw::S5, self.record.is_some_and(|record| record.status == Status::Completed));
    }

    fn complete(&mut self, config: &Config, payload: u8, now: Time) {
        self.completions = (self.completions + 1).min(2);
        self.blame(Flaw::S2, self.completions > 1);
        self.done[usize::from(payload)] = true;
        if config.windows_end() && config.clocks == Clocks::Within {
            self.done_at = now;
        }
        if config.commits() {
            self.act(payload);
        }
    }

    /// The effect happens.
    pub fn act(&mut self, payload: u8) {
        let effects = &mut self.effects[usize::from(payload)];
        *effects = (*effects + 1).min(EFFECTS_MAX);
    }

    /// The table deletes a record whose window is over, by a clock of its own.
    pub fn delete_expired(&mut self, config: &Config) {
        let Some(record) = self.record.take() else { return };
        if record.status == Status::Completed && config.clocks == Clocks::Within {
            let early = self.now + config.skew <= self.done_at.saturating_add(config.window);
            self.blame(Flaw::S5, early);
        }
        self.completions = 0;
    }
}
