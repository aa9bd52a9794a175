//! Work that wants to be tried again later than a queue can hide its message, and work that fails on all receives but the last.

use fastrand::Rng;

use super::{one, rarely};
use crate::scenario::{Fault, Scenario, Work};

/// Gives some scenarios such work, most of those schedules, and some of those faults of their requests.
pub(super) fn apply(rng: &mut Rng, scenario: &mut Scenario) {
    if !rarely(rng, 8) {
        return;
    }
    scenario.queue.schedules = !rarely(rng, 5);
    for _ in 0..rng.u32(1..=2) {
        let key = rng.usize(..scenario.keys.len());
        // Its last run is a good one. Twice, so that it wants the same where its process dies in between.
        for _ in 0..rng.u32(1..=2) {
            scenario.keys[key].insert(0, Work::FailFor(one(rng, &[43_000, 50_000, 90_000])));
        }
    }
    // Its requests are among the first to the queue's side.
    for _ in 0..rng.u32(..3) {
        let fate = super::fate(rng);
        scenario.faults.push(Fault::Queue { nth: rng.u32(..4), fate });
    }
    if rarely(rng, 3) {
        scenario.faults.push(Fault::LoseReport { invocation: rng.u32(..2) });
    }
    if rarely(rng, 3) {
        scenario.faults.push(Fault::Kill { invocation: rng.u32(..2), poll: rng.u32(3..16) });
    }
}

/// Tells half of the functions their queue's `maxReceiveCount`. Where these have schedules, too, the work of each key fails on all receives but
/// the last, and some of the requests of that one go wrong.
pub(super) fn tell_receives(rng: &mut Rng, scenario: &mut Scenario) {
    scenario.queue.tells_receives = rng.bool();
    if !scenario.queue.tells_receives || !scenario.queue.schedules {
        return;
    }
    let before = scenario.queue.max_receives - 1;
    for works in &mut scenario.keys {
        works.splice(0..0, (0..before).map(|_| Work::Fail(0)));
    }
    // A request hides what failed on a receive.
    for _ in 0..rng.u32(..3) {
        let fate = super::fate(rng);
        scenario.faults.push(Fault::Queue { nth: before + rng.u32(..4), fate });
    }
}
