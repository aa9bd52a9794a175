//! What was sent against what was seen: the verdict on one function.

use std::collections::BTreeMap;

use claimant_local::workload::{Fate, Piece, Plan};

use crate::plan::Target;
use crate::seen::Seen;

/// Keys that a fault names; the rest are counted.
const NAMED_MAX: usize = 10;

/// What the queues say, once the storm is over and they had time to drain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic {
    /// Messages the queue accepted.
    pub(crate) sent: u64,
    /// Those of them that the operator moved back from the dead-letter queue.
    pub(crate) redriven: u64,
    /// Deliveries: a message received twice counts twice.
    pub(crate) deliveries: u64,
    /// Messages deleted: those reported done, or safely dead-lettered.
    pub(crate) deleted: u64,
    /// Messages that the queue moved to its dead-letter queue.
    pub(crate) moved: u64,
    /// Messages that are still in the queue.
    pub(crate) queued: u64,
    /// The bodies in the dead-letter queue.
    pub(crate) dead_letters: Vec<String>,
}

/// One function's figures, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Pieces of work.
    pub(crate) work: usize,
    /// Handler runs, by the lock table; a transaction without a claim counts when it commits.
    pub(crate) runs: u64,
    pub(crate) effects: usize,
    /// Effects beyond the first of their key.
    pub(crate) repeated: usize,
    /// Letters beyond those that had to be sent: copied again after a death between the copy and the deletion.
    pub(crate) letters_repeated: u64,
    /// One sentence each; empty when all is well.
    pub(crate) faults: Vec<String>,
}

impl Verdict {
    pub(crate) fn new(target: Target, plan: &Plan, seen: &Seen, traffic: &Traffic) -> Self {
        let effects: usize = seen.effects.values().map(Vec::len).sum();
        let mut verdict = Self {
            work: plan.pieces.len(),
            runs: seen.records.values().map(|record| record.attempts).sum(),
            effects,
            repeated: effects - seen.effects.len(),
            letters_repeated: 0,
            faults: Vec::new(),
        };
        verdict.check_traffic(plan, traffic);
        verdict.check_records(plan, seen);
        verdict.check_effects(target, plan, seen);
        verdict.check_dead_letters(plan, traffic);
        verdict
    }

    fn check_traffic(&mut self, plan: &Plan, traffic: &Traffic) {
        let Traffic { sent, redriven, deleted, moved, queued, .. } = *traffic;
        if sent != plan.messages.len() as u64 + redriven {
            self.faults.push(format!("{sent} messages were sent instead of {} and {redriven}", plan.messages.len()));
        }
        if queued > 0 {
            self.faults.push(format!("{queued} messages are still queued"));
        }
        if sent != deleted + moved + queued {
            self.faults.push(format!("of {sent} messages, {deleted} were deleted, {moved} moved, {queued} are queued"));
        }
    }

    fn check_records(&mut self, plan: &Plan, seen: &Seen) {
        for (fate, expected) in [(Fate::Done, "COMPLETED"), (Fate::Refused, "REJECTED")] {
            let others = plan.pieces.iter().filter(|piece| {
                piece.fate == fate && seen.records.get(&piece.key).is_none_or(|record| record.status != expected)
            });
            self.fault(&format!("are not {expected} in the lock table"), others.map(|piece| piece.key.as_str()));
        }
        let done = |key: &str| seen.records.get(key).is_some_and(|record| record.status == "COMPLETED");
        let deadly = plan.pieces.iter().filter(|piece| piece.fate == Fate::Deadly && done(&piece.key));
        self.fault("end their process, and are COMPLETED in the lock table", deadly.map(|piece| piece.key.as_str()));
        // Whatever the storm does, one message of a key is completed, and the others are its duplicates.
        let completed = |piece: &Piece| seen.completed.get(&piece.body).copied().unwrap_or(0);
        let again = plan.pieces.iter().filter(|piece| completed(piece) > 1);
        self.fault("were completed more than once", again.map(|piece| piece.key.as_str()));
        if let Some(what) = seen.dropped {
            self.faults.push(format!(
                "the journal has dropped {what}, so another completion may be missed: run a shorter storm"
            ));
        }
        if plan.pieces.iter().all(|piece| completed(piece) == 0) {
            self.faults.push("no function said that it has completed a message".to_owned());
        }
        let known = |key: &str| plan.pieces.iter().any(|piece| piece.key == key);
        self.fault(
            "have a record and were never sent",
            seen.records.keys().map(String::as_str).filter(|key| !known(key)),
        );
    }

    fn check_effects(&mut self, target: Target, plan: &Plan, seen: &Seen) {
        let of = |piece: &Piece| seen.effects.get(&piece.key).map_or(&[][..], Vec::as_slice);
        let runs = |key: &str| seen.records.get(key).map_or(0, |record| record.attempts);
        let keys = |wanted: &dyn Fn(&Piece) -> bool| -> Vec<&str> {
            plan.pieces.iter().filter(|piece| wanted(piece)).map(|piece| piece.key.as_str()).collect()
        };
        self.fault("had no effect", keys(&|p| p.fate == Fate::Done && of(p).is_empty()));
        self.fault(
            "had an effect although they were to be refused",
            keys(&|p| p.fate != Fate::Done && !of(p).is_empty()),
        );
        // A mail, or a line, is an effect whose system knows no keys: a death before its completion repeats it.
        if !target.repeats() {
            self.fault("had their effect more than once", keys(&|p| of(p).len() > 1));
        }
        self.fault("had another effect than was asked for", keys(&|p| of(p).iter().any(|what| *what != p.effect)));
        let known = |key: &&str| plan.pieces.iter().any(|piece| piece.key == **key);
        self.fault(
            "were never sent, and had an effect",
            seen.effects.keys().map(String::as_str).filter(|key| !known(key)),
        );
        self.fault("have effects that do not fit together", seen.torn.iter().map(String::as_str));
        self.fault("were worked on twice at the same time", seen.overlaps.iter().map(String::as_str));
        let unclaimed = seen.tries.iter().filter(|(key, tries)| **tries > runs(key)).map(|(key, _)| key.as_str());
        self.fault("were tried more often than their handler was run", unclaimed);
    }

    fn check_dead_letters(&mut self, plan: &Plan, traffic: &Traffic) {
        let mut letters: BTreeMap<&str, u64> = BTreeMap::new();
        for body in &traffic.dead_letters {
            *letters.entry(body).or_default() += 1;
        }
        let (mut missing, mut good) = (Vec::new(), Vec::new());
        for piece in &plan.pieces {
            let found = letters.remove(piece.body.as_str()).unwrap_or(0);
            match piece.fate {
                Fate::Refused | Fate::Deadly if found < piece.copies.into() => missing.push(piece.key.as_str()),
                Fate::Refused | Fate::Deadly => self.letters_repeated += found - u64::from(piece.copies),
                Fate::Done if found > 0 => good.push(piece.key.as_str()),
                // No storm plans work that may be in doubt.
                Fate::Done | Fate::InDoubt => {}
            }
        }
        self.fault("were refused or deadly, and not all their copies were dead-lettered", missing);
        self.fault("were good, and dead-lettered", good);
        let places =
            (0_usize..).zip(&plan.broken).map(|(place, body)| (place.to_string(), letters.remove(body.as_str())));
        let mut missing = Vec::new();
        for (place, found) in places {
            match found {
                None => missing.push(place),
                Some(found) => self.letters_repeated += found - 1,
            }
        }
        self.fault("of the broken ones were not dead-lettered", missing.iter().map(String::as_str));
        if !letters.is_empty() {
            self.faults.push(format!("{} bodies in the dead-letter queue were never sent", letters.len()));
        }
    }

    fn fault<'a>(&mut self, what: &str, keys: impl IntoIterator<Item = &'a str>) {
        let keys: Vec<_> = keys.into_iter().collect();
        if keys.is_empty() {
            return;
        }
        let named = keys[..keys.len().min(NAMED_MAX)].join(", ");
        let more = if keys.len() > NAMED_MAX { ", …" } else { "" };
        self.faults.push(format!("{} {what}: {named}{more}", keys.len()));
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
