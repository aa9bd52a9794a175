//! Limits across the processes of a consumer.

use fastrand::Rng;

use super::{one, rarely};
use crate::scenario::{Fault, Guarantee, LimitSpec, MessageSpec, OtherLimit, Scenario, Work};

/// Gives some scenarios a limit, enough messages to meet it, and processes that die in between.
pub(super) fn apply(rng: &mut Rng, scenario: &mut Scenario) {
    // Whose claims are open transactions has none.
    if scenario.consumer.guarantee == Guarantee::Optimistic || !rarely(rng, 6) {
        return;
    }
    let per_second = (!rarely(rng, 3)).then(|| one(rng, &[1, 3, 10, 50]));
    let at_once = (per_second.is_none() || rarely(rng, 3)).then(|| rng.u32(1..=4));
    let slots = one(rng, &[1, 2, 3, 10]);
    let other = rarely(rng, 2).then(|| OtherLimit {
        per_second: per_second.map(|calls| one(rng, &[calls, calls, 1, 10])),
        slots: one(rng, &[1, 2, 4, 10]),
    });
    scenario.consumer.limit = Some(LimitSpec { per_second, at_once, slots, other });
    if other.is_some() || rng.bool() {
        // Two versions need a while to show that they do not agree.
        let more = if other.is_some() { 20..=60 } else { 4..=12 };
        let first = scenario.keys.len();
        for key in first..first + rng.usize(more) {
            scenario.keys.push(vec![Work::Good { before_ms: rng.u64(..200), after_ms: rng.u64(..200) }]);
            scenario.messages.push(MessageSpec::good(rng.u64(..3_000), key));
        }
        scenario.messages.sort_by_key(|message| message.at_ms);
    }
    for _ in 0..rng.u32(..3) {
        let (invocation, poll) = (rng.u32(..4), rng.u32(2..20));
        scenario.faults.push(match rng.u32(..3) {
            0 => Fault::Kill { invocation, poll },
            1 => Fault::KillAfter { invocation, after_ms: rng.u64(..3_000) },
            _ => Fault::Freeze { invocation, poll, for_ms: one(rng, &[1_000, 10_000, 30_000]) },
        });
    }
}
