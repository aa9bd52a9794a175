//! Work that wants to be tried again later than a queue can hide its message.

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
