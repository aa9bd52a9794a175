//! What consumers there are, beside one with a handler for each message; and where payloads are.

use fastrand::Rng;

use super::{one, rarely};
use crate::scenario::{Fate, Fault, MessageSpec, RoutesSpec, Scenario, Shape};

/// Gives some scenarios batch handlers, some several consumers, and some payloads that messages only point to.
pub(super) fn apply(rng: &mut Rng, scenario: &mut Scenario) {
    let each = scenario.consumer.guarantee.is_transactional() || scenario.function.threads;
    scenario.consumer.items = (!each && rarely(rng, 4)).then(|| one(rng, &[2, 5, 25]));
    match rng.u32(..8) {
        0 | 1 => routed(rng, scenario),
        2 => pointed(rng, scenario),
        _ => {}
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
