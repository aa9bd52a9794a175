//! Outages of what handlers call, and the breakers of their consumers.

use fastrand::Rng;

use super::{one, rarely};
use crate::scenario::{BreakerSpec, Fault, Guarantee, MessageSpec, Scenario, Work};

/// Gives some scenarios an outage, and most of those a breaker.
pub(super) fn apply(rng: &mut Rng, scenario: &mut Scenario) {
    // Whose claims are open transactions has no breaker.
    if scenario.consumer.guarantee == Guarantee::Optimistic || !rarely(rng, 5) {
        return;
    }
    for _ in 0..rng.u32(1..=2) {
        let for_ms = one(rng, &[2_000, 15_000, 60_000, 120_000]);
        scenario.faults.push(Fault::Away { from_ms: rng.u64(..5_000), for_ms });
    }
    if rarely(rng, 4) {
        return;
    }
    let failures = rng.u32(1..=3);
    let of = failures + rng.u32(..3);
    scenario.consumer.breaker = Some(BreakerSpec { failures, of, open_for_ms: one(rng, &[1_000, 3_000, 10_000]) });
    if rng.bool() {
        // Enough to open it, and to wait for it.
        let first = scenario.keys.len();
        for key in first..first + rng.usize(4..=10) {
            scenario.keys.push(vec![Work::Good { before_ms: rng.u64(..100), after_ms: rng.u64(..100) }]);
            scenario.messages.push(MessageSpec::good(rng.u64(..3_000), key));
        }
        scenario.messages.sort_by_key(|message| message.at_ms);
    }
}
