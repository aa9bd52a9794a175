//! What became of one function's work: arithmetic over what was seen from outside.

use std::collections::BTreeMap;

use super::plan::{Fate, Piece, Plan};
use super::records::Status;
use super::sample::{Effect, Seen};

/// Names listed in one fault at most.
const NAMED_MAX: usize = 20;

/// What a function's queues showed.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic {
    /// Messages the queue accepted.
    pub(super) sent: u64,
    /// Messages deleted from the queue: those reported done.
    pub(super) deleted: u64,
    /// Messages the queue moved to its dead-letter queue by itself.
    pub(super) moved: u64,
    /// Messages still in the queue: visible, in flight or delayed.
    pub(super) queued: u64,
    /// The bodies in the dead-letter queue.
    pub(super) dead_letters: Vec<String>,
    /// Messages that the mapping left for redelivery, each time counted.
    pub(super) left_for_redelivery: u64,
}

/// One function's figures, and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The function, by its binary.
    pub function: &'static str,
    /// What its effects are called, in the plural.
    pub effects_are: &'static str,
    /// What can be said when there is no fault.
    pub all_well: &'static str,
    /// What was counted.
    pub figures: Figures,
    /// What went wrong, one sentence each; empty when all is well.
    pub faults: Vec<String>,
}

/// What was counted of one function's work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Pieces of work, each with one effect at most.
    pub work: u64,
    /// Messages sent, copies and broken bodies among them.
    pub sent: u64,
    /// Handler runs: claims of the work, by the lock table.
    pub runs: u64,
    /// Effects, by the system that has them.
    pub effects: u64,
    /// Messages reported done beyond the first of each completed piece of work; 0 where not even those were all reported done.
    pub duplicates: u64,
    /// Messages left for redelivery, each time counted.
    pub retries: u64,
    /// Messages in the dead-letter queue.
    pub dead_lettered: u64,
    /// Pieces of work that are parked, by the lock table.
    pub parked: u64,
    /// Messages that are neither done, nor dead-lettered, nor queued. Below 0: messages out of nowhere.
    pub lost: i64,
}

impl Summary {
    /// Compares what was seen with what was sent. The names are the caller's.
    pub(super) fn new(plan: &Plan, seen: &Seen, traffic: &Traffic) -> Self {
        let dead_lettered = count(traffic.dead_letters.len());
        // A rejected message may be copied to the dead-letter queue by the function and then deleted: that is no
        // work done, and counted once.
        let copied = dead_lettered.saturating_sub(traffic.moved);
        let done = signed(traffic.deleted) - signed(copied);
        let with_status =
            |status| plan.pieces.iter().filter(|piece| seen.records.status(&piece.key) == Some(status)).count();
        let figures = Figures {
            work: count(plan.pieces.len()),
            sent: traffic.sent,
            runs: plan.pieces.iter().map(|piece| seen.records.claims(&piece.key)).sum(),
            effects: count(seen.effects.len()),
            duplicates: u64::try_from(done).unwrap_or(0).saturating_sub(count(with_status(Status::Completed))),
            retries: traffic.left_for_redelivery,
            dead_lettered,
            parked: count(with_status(Status::Parked)),
            lost: signed(traffic.sent) - done - signed(dead_lettered) - signed(traffic.queued),
        };
        let mut summary = Self { function: "", effects_are: "effects", all_well: "", figures, faults: Vec::new() };
        summary.check_counts(plan, seen, traffic);
        summary.check_records(plan, seen);
        summary.check_effects(plan, seen);
        summary.check_dead_letters(plan, seen, traffic);
        summary
    }

    fn check_counts(&mut self, plan: &Plan, seen: &Seen, traffic: &Traffic) {
        let Figures { sent, lost, runs, .. } = self.figures;
        if sent != count(plan.messages.len()) {
            self.faults.push(format!("{sent} messages were sent instead of {}", plan.messages.len()));
        }
        if lost > 0 {
            self.faults.push(format!("{lost} messages are lost: not done, not dead-lettered, not queued"));
        }
        if lost < 0 {
            self.faults.push(format!("{} messages too many were deleted or dead-lettered", -lost));
        }
        if traffic.queued > 0 {
            self.faults.push(format!("{} messages are still queued", traffic.queued));
        }
        if seen.tries > runs {
            let tries = seen.tries;
            self.faults.push(format!("{tries} tries in {runs} handler runs: some without a claim, or two in one run"));
        }
    }

    fn check_records(&mut self, plan: &Plan, seen: &Seen) {
        for (fate, expected, what) in [
            (Fate::Done, &[Status::Completed][..], "are not completed by their records"),
            (Fate::Refused, &[Status::Rejected], "are not rejected by their records"),
            (Fate::InDoubt, &[Status::Completed, Status::Parked], "are neither completed nor parked by their records"),
        ] {
            let of_fate = plan.pieces.iter().filter(|piece| piece.fate == fate);
            let is_expected = |piece: &&Piece| seen.records.status(&piece.key).is_some_and(|s| expected.contains(&s));
            let others = of_fate.filter(|piece| !is_expected(piece));
            self.fault(what, &others.map(|piece| piece.key.as_str()).collect::<Vec<_>>());
        }
    }

    fn check_effects(&mut self, plan: &Plan, seen: &Seen) {
        let mut effects: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
        for effect in &seen.effects {
            effects.entry(&effect.key).or_default().push(effect);
        }
        let (mut none, mut several, mut refused, mut other) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for Piece { key, effect, fate, .. } in &plan.pieces {
            let found = effects.remove(key.as_str()).unwrap_or_default();
            match (found.len(), fate) {
                (0, Fate::Done) => none.push(key.as_str()),
                (1.., Fate::Refused | Fate::Deadly) => refused.push(key.as_str()),
                (2.., _) => several.push(key.as_str()),
                _ => {}
            }
            if found.iter().any(|found| found.what != *effect) {
                other.push(key.as_str());
            }
        }
        self.fault("had no effect", &none);
        self.fault("had their effect more than once", &several);
        self.fault("had an effect although they were to be refused", &refused);
        self.fault("had another effect than was asked for", &other);
        let unknown: Vec<_> = effects.into_keys().map(|key| if key.is_empty() { "(no key)" } else { key }).collect();
        self.fault("were never sent, and had an effect", &unknown);
    }

    fn check_dead_letters(&mut self, plan: &Plan, seen: &Seen, traffic: &Traffic) {
        let mut found: BTreeMap<&str, u32> = BTreeMap::new();
        for body in &traffic.dead_letters {
            *found.entry(body).or_default() += 1;
        }
        let (mut missing, mut good, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        for piece in &plan.pieces {
            let belong = match piece.fate {
                Fate::Refused | Fate::Deadly => piece.copies,
                Fate::InDoubt if seen.records.status(&piece.key) == Some(Status::Parked) => piece.copies,
                Fate::Done | Fate::InDoubt => 0,
            };
            match found.remove(piece.body.as_str()).unwrap_or(0) {
                count if count < belong => missing.push(piece.key.as_str()),
                count if count > belong && belong == 0 => good.push(piece.key.as_str()),
                count if count > belong => repeated.push(piece.key.as_str()),
                _ => {}
            }
        }
        self.fault("were refused or parked, and not all their copies were dead-lettered", &missing);
        self.fault("were good, and dead-lettered", &good);
        let mut missing = Vec::new();
        for body in &plan.broken {
            match found.remove(body.as_str()) {
                None => missing.push(start_of(body)),
                Some(1) => {}
                Some(_) => repeated.push(start_of(body)),
            }
        }
        self.fault("were broken, and not dead-lettered", &missing);
        self.fault("were dead-lettered more often than sent", &repeated);
        if !found.is_empty() {
            // Not quoted: unlike a sample body, it may be a person's.
            self.faults.push(format!("{} bodies in the dead-letter queue were never sent", found.len()));
        }
    }

    fn fault(&mut self, what: &str, names: &[&str]) {
        if names.is_empty() {
            return;
        }
        let listed = names[..names.len().min(NAMED_MAX)].join(", ");
        let more = names.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        self.faults.push(format!("{} {what}: {listed}{more}", names.len()));
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).expect("a usize is at most 64 bits")
}

/// For differences. What is counted here is bounded far below 2⁶³.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Enough of a generated body to know it by; on one line.
fn start_of(body: &str) -> &str {
    let line = body.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(48)]
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
