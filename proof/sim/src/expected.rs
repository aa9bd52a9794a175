//! What must become of a message, from the scenario alone.

use crate::scenario::{Guarantee, MessageSpec, Scenario, Shape, Work};

/// Whether every message of this kind is completed at last, whatever had gone wrong before.
#[must_use]
pub fn completes(scenario: &Scenario, spec: &MessageSpec) -> bool {
    is_good(scenario, spec) && (!gives_up(scenario) || spec.shape == Shape::Stray)
}

/// Whether every message of this kind is completed at last, or given up by its consumer, whose record says so. Not where groups are in
/// order: one that is behind others can be received too often before its turn. Nor where message ids are keys: a copy in the
/// dead-letter queue has another one than the work.
#[must_use]
pub fn ends(scenario: &Scenario, spec: &MessageSpec) -> bool {
    let says_so = scenario.queue.fifo_groups.is_none() && !scenario.consumer.by_message_id;
    completes(scenario, spec) || says_so && is_good(scenario, spec)
}

/// Whether the consumer gives up good work, too: it runs it at most once, or so many times.
#[must_use]
pub fn gives_up(scenario: &Scenario) -> bool {
    scenario.consumer.guarantee == Guarantee::AtMostOnce || scenario.consumer.attempts_max.is_some()
}

/// Whether nothing is wrong with it.
fn is_good(scenario: &Scenario, spec: &MessageSpec) -> bool {
    if spec.shape == Shape::Stray {
        return scenario.accepts(spec);
    }
    // Whole batches fail then, or are not deleted since they were received again, over and over; and what was done in them is
    // forgotten before they come back.
    let seen_too_early = scenario.queue.visibility_s * 1_000 < scenario.function.timeout_ms;
    let undeleted = scenario.function.mapping_reports == Some(false) || seen_too_early;
    let forgets = scenario.consumer.window_s.is_some() && undeleted;
    let good = |work: &Work| {
        let lasts = matches!(work, Work::Block(ms) if *ms >= scenario.function.timeout_ms / 2);
        !lasts && !matches!(work, Work::Permanent | Work::Abort(_))
    };
    scenario.accepts(spec)
        && !forgets
        && !conflicts(scenario, spec)
        && spec.works().all(|key| scenario.keys.get(key).is_some_and(|works| works.iter().all(good)))
}

/// Whether there is another payload of the same key, so that one of the two is rejected.
#[must_use]
pub fn conflicts(scenario: &Scenario, spec: &MessageSpec) -> bool {
    let shares = |m: &MessageSpec| m.works().any(|key| spec.works().any(|mine| mine == key));
    let other = |m: &&MessageSpec| m.shape == Shape::Good && shares(m) && m.variant != spec.variant;
    let alone = scenario.consumer.ignores_conflicts || scenario.consumer.by_message_id;
    !alone && scenario.messages.iter().any(|message| other(&message))
}
