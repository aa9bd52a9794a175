//! Runs and judges: one scenario, or many on all cores.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::check::{Violation, check};
use crate::coverage::Coverage;
use crate::draw::draw;
use crate::history::History;
use crate::mutant::Mutant;
use crate::run::run;
use crate::scenario::Scenario;
use crate::shrink::shrink;

/// The rule of a run that panicked.
pub const PANIC: &str = "panic";

/// What a run came to.
#[derive(Debug)]
pub struct Verdict {
    /// What happened.
    pub history: History,
    /// Which rules did not hold.
    pub violations: Vec<Violation>,
}

/// A seed whose run broke a rule.
#[derive(Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// Its violations.
    pub violations: Vec<Violation>,
}

/// What became of many seeds.
#[derive(Debug, Default)]
pub struct Summary {
    /// What occurred.
    pub coverage: Coverage,
    /// Those that failed, by seed.
    pub failures: Vec<Failure>,
}

/// Runs a scenario and checks what happened. A panic of the runtime's is a violation too.
#[must_use]
pub fn judge(scenario: &Scenario, mutant: Option<Mutant>) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| run(scenario, mutant))) {
        Ok(history) => Verdict { violations: check(scenario, &history), history },
        Err(_) => {
            let violation = Violation { rule: PANIC, at_ms: 0, what: "the run panicked".to_owned() };
            Verdict { violations: vec![violation], history: History::default() }
        }
    }
}

/// The smallest scenario found that breaks the same rule as this one.
#[must_use]
pub fn smallest(scenario: &Scenario, rule: &str, mutant: Option<Mutant>) -> Scenario {
    shrink(scenario, |smaller| judge(smaller, mutant).violations.iter().any(|violation| violation.rule == rule))
}

/// Runs `count` seeds from `first` on, on all cores; `progress` is called after each with how many are done, and with this one if
/// it failed.
pub fn judge_many(first: u64, count: u64, progress: impl Fn(u64, Option<&Failure>, &Summary) + Sync) -> Summary {
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let summary = Mutex::new(Summary::default());
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= count {
                return;
            }
            let seed = first + place;
            let scenario = draw(seed);
            let Verdict { history, violations } = judge(&scenario, None);
            let coverage = Coverage::of(&scenario, &history);
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.coverage.extend(&coverage);
            let failed = !violations.is_empty();
            if failed {
                summary.failures.push(Failure { seed, violations });
            }
            let failure = summary.failures.last().filter(|_| failed);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, failure, &summary);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.failures.sort_by_key(|failure| failure.seed);
    summary
}

/// In how many of these seeds each rule sees the mutant, and the first of them. A panic alone shows nothing of what is wrong.
#[must_use]
pub fn seen_by(mutant: Mutant, seeds: Range<u64>) -> (Option<u64>, BTreeMap<&'static str, u64>) {
    let (mut first, mut rules) = (None, BTreeMap::new());
    for seed in seeds {
        let broken: BTreeSet<_> = judge(&draw(seed), Some(mutant)).violations.iter().map(|v| v.rule).collect();
        first = first.or(broken.iter().any(|rule| *rule != PANIC).then_some(seed));
        broken.into_iter().for_each(|rule| *rules.entry(rule).or_default() += 1);
    }
    (first, rules)
}
