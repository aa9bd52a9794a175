//! What consumers there are, beside one with a handler for each message; where payloads are; and operators.

use fastrand::Rng;

use super::{one, rarely};
use crate::scenario::{Act, Fate, Fault, MessageSpec, RoutesSpec, Scenario, Shape};

/// Gives some scenarios batch handlers, some several consumers, some payloads that messages only point to, and some operators.
pub(super) fn apply(rng: &mut Rng, scenario: &mut Scenario) {
    let each = scenario.consumer.guarantee.is_transactional() || scenario.function.threads;
    scenario.consumer.items = (!each && rarely(rng, 4)).then(|| one(rng, &[2, 5, 25]));
    match rng.u32(..8) {
        0 | 1 => routed(rng, scenario),
        2 => pointed(rng, scenario),
        _ => {}
    }
    // Without a key rule, no operator knows the key.
    if !scenario.consumer.by_message_id && rarely(rng, 4) {
        operated(rng, scenario);
    }
}

/// Operators at any time: most of it happens at the beginning.
fn operated(rng: &mut Rng, scenario: &mut Scenario) {
    for _ in 0..rng.u32(1..=5) {
        let within_ms = one(rng, &[3_000, 30_000, 150_000]);
        scenario.faults.push(Fault::Operate {
            at_ms: rng.u64(..within_ms),
            key: rng.usize(..scenario.keys.len()),
            act: one(rng, &[Act::Release, Act::Reset, Act::Forget, Act::Resolve]),
            watch_ms: one(rng, &[0, 60_000, 600_000]),
            pause_ms: one(rng, &[0, 10, 100, 2_000, 20_000]),
            dies: rarely(rng, 6),
        });
    }
}

fn routed(rng: &mut Rng, scenario: &mut Scenario) {
    scenario.consumer.routes = Some(RoutesSpec { consumers: rng.usize(2..=3), ignores_unknown: rng.bool() });
    // Without a key rule, the events of a message have its id and a number.
    for message in scenario.messages.iter_mut().filter(|message| message.shape == Shape::Good) {
        message.stray = !scenario.consumer.by_message_id && rarely(rng, 8);
    }
    for _ in 0..rng.u32(..3) {
        let stray = MessageSpec { shape: Shape::Stray, ..MessageSpec::good(rng.u64(..2_000), 0) };
        scenario.messages.push(stray);
    }
    scenario.messages.sort_by_key(|message| message.at_ms);
}

fn pointed(rng: &mut Rng, scenario: &mut Scenario) {
    for message in scenario.messages.iter_mut().filter(|message| message.shape == Shape::Good) {
        message.large = rng.bool();
    }
    for _ in 0..rng.u32(..4) {
        let fate = one(rng, &[Fate::Lost, Fate::Lost, Fate::Silence, Fate::Slow(1_500)]);
        scenario.faults.push(Fault::Fetch { nth: rng.u32(..12), fate });
    }
}
