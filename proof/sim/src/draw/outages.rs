//! Outages of what handlers call, and the breakers of their consumers.

use fastrand::Rng;

use super::{one, rarely};
use crate::scenario::{BreakerSpec, Fate, Fault, Guarantee, MessageSpec, Scenario, Work};

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
    pauses(rng, scenario);
}

/// Lets some breakers pause the mapping, and has some of those pauses fail at a step.
fn pauses(rng: &mut Rng, scenario: &mut Scenario) {
    scenario.function.pauses = rng.bool();
    if !scenario.function.pauses {
        return;
    }
    // Long enough for a probe to fail, and over when the next one comes, or long enough for the return to be one.
    scenario.faults.retain(|fault| !matches!(fault, Fault::Away { .. }));
    let for_ms = one(rng, &[4_000, 8_000, 15_000, 60_000, 900_000]);
    scenario.faults.push(Fault::Away { from_ms: 0, for_ms });
    if for_ms < 10_000 {
        // The invocation that has paused it sees the end of the outage.
        scenario.function.timeout_ms = 15_000;
        scenario.queue.visibility_s = scenario.queue.visibility_s.max(15);
        scenario.consumer.breaker = Some(BreakerSpec { failures: 1, of: 3, open_for_ms: 1_000 });
    }
    if rng.bool() {
        return;
    }
    for _ in 0..rng.u32(1..=3) {
        let nth = rng.u32(..6);
        let fate = one(rng, &[Fate::Lost, Fate::Silence, Fate::AnswerLost, Fate::Throttled, Fate::Error]);
        scenario.faults.push(match rng.u32(..6) {
            0 | 1 => Fault::Intake { nth, fate },
            2 => Fault::Intake { nth, fate: Fate::Late(one(rng, &[5_000, 60_000, 280_000, 400_000])) },
            3 | 4 => Fault::KillAtIntake { nth },
            _ => Fault::FreezeAtIntake { nth, for_ms: one(rng, &[5_000, 25_000, 60_000, 400_000]) },
        });
    }
}
