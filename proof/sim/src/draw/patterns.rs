//! Scenarios after a pattern: a course of things that chance alone would seldom find.

use fastrand::Rng;

use super::{one, rarely};
use crate::scenario::{Fate, Fault, Guarantee, MessageSpec, Scenario, Work};

/// Longer than any run lasts until the faults stop.
const FOREVER_MS: u64 = 48 * 3_600_000;

/// Arranges some scenarios after a pattern.
pub(super) fn apply(rng: &mut Rng, scenario: &mut Scenario) {
    let at_most_once = scenario.consumer.guarantee == Guarantee::AtMostOnce;
    match rng.u32(..24) {
        0 if !at_most_once => forgotten(rng, scenario),
        1 => overtaken(rng, scenario),
        2 => cut_off(rng, scenario),
        3 | 4 => poisoned(rng, scenario),
        5 => unavailable(rng, scenario),
        6 => blocking(rng, scenario),
        7 => crowded(rng, scenario),
        8 => deployed(rng, scenario),
        9 => several(rng, scenario),
        _ => {}
    }
}

/// Healthy surroundings for as many good pieces of work, sent at once.
fn good(rng: &mut Rng, scenario: &mut Scenario, keys: usize, most_ms: u64) {
    let half = most_ms / 2;
    scenario.consumer.attempts_max = None;
    scenario.consumer.timeout_ms = None;
    scenario.consumer.window_s = None;
    scenario.function.mapping_reports = None;
    scenario.function.clocks_ms.iter_mut().for_each(|off| *off %= Scenario::SKEW_MS / 2);
    scenario.queue.fifo_groups = None;
    scenario.queue.max_receives = 5;
    scenario.queue.visibility_s = scenario.function.timeout_ms / 1_000 * one(rng, &[1, 2, 6]);
    scenario.keys =
        (0..keys).map(|_| vec![Work::Good { before_ms: rng.u64(..=half), after_ms: rng.u64(..=half) }]).collect();
    scenario.messages = (0..keys).map(|key| MessageSpec::good(0, key)).collect();
    scenario.faults = Vec::new();
}

/// Messages that abort their process, each time, in a batch with good ones.
fn poisoned(rng: &mut Rng, scenario: &mut Scenario) {
    scenario.function.timeout_ms = one(rng, &[15_000, 30_000]);
    scenario.queue.batch_max = one(rng, &[10, 10, 30]);
    let keys = rng.usize(4..=10);
    good(rng, scenario, keys, 2_000);
    for place in 0..rng.usize(1..=2) {
        scenario.keys[place] = vec![Work::Abort(rng.u64(..1_500))];
    }
}

/// A store that is away for tens of seconds from an effect on, and an invocation that is longer.
fn unavailable(rng: &mut Rng, scenario: &mut Scenario) {
    scenario.function.timeout_ms = 30_000;
    scenario.queue.batch_max = 10;
    let keys = rng.usize(1..=6);
    good(rng, scenario, keys, 400);
    let fate = one(rng, &[Fate::Throttled, Fate::Throttled, Fate::Lost, Fate::Silence, Fate::AnswerLost]);
    let for_ms = one(rng, &[3_000, 8_000, 20_000]);
    // OK because there are a few keys.
    scenario.faults = vec![Fault::OutageAfterEffect { nth: rng.u32(..keys as u32), for_ms, fate }];
}

/// Handlers that block their thread for good, and others that come later.
fn blocking(rng: &mut Rng, scenario: &mut Scenario) {
    scenario.function.threads = true;
    scenario.function.timeout_ms = one(rng, &[3_000, 6_000]);
    scenario.function.clocks_ms.truncate(2);
    scenario.queue.batch_max = one(rng, &[1, 3, 10]);
    let keys = rng.usize(3..=8);
    good(rng, scenario, keys, 600);
    for message in &mut scenario.messages {
        message.at_ms = rng.u64(..30_000);
    }
    for place in 0..rng.usize(1..=2) {
        scenario.keys[place] = vec![Work::Block(one(rng, &[1_000, 8_000, FOREVER_MS, FOREVER_MS]))];
        scenario.messages[place].at_ms = rng.u64(..2_000);
    }
    scenario.messages.sort_by_key(|message| message.at_ms);
}

/// Batches for which there is no time in one invocation; now and then a process dies in the middle.
fn crowded(rng: &mut Rng, scenario: &mut Scenario) {
    scenario.function.timeout_ms = one(rng, &[6_000, 15_000]);
    scenario.function.clocks_ms.truncate(one(rng, &[1, 2]));
    scenario.queue.batch_max = one(rng, &[10, 30]);
    scenario.consumer.concurrency = one(rng, &[1, 2]);
    let keys = rng.usize(12..=40);
    let most_ms = scenario.function.timeout_ms / one(rng, &[2, 4]);
    good(rng, scenario, keys, most_ms);
    for message in &mut scenario.messages {
        message.at_ms = if rng.bool() { 0 } else { rng.u64(..20_000) };
    }
    scenario.messages.sort_by_key(|message| message.at_ms);
    if rng.bool() {
        let after_ms = rng.u64(500..scenario.function.timeout_ms);
        scenario.faults.push(Fault::KillAfter { invocation: rng.u32(..3), after_ms });
    }
}

/// A new version with another fingerprint rule, between a message and its retry, or its copy.
fn deployed(rng: &mut Rng, scenario: &mut Scenario) {
    let keys = rng.usize(2..=5);
    good(rng, scenario, keys, 600);
    for key in 0..keys {
        if rng.bool() {
            scenario.keys[key].insert(0, Work::Fail(rng.u64(..300)));
        } else {
            let at_ms = rng.u64(2_000..20_000);
            scenario.messages.push(MessageSpec { at_ms, ..scenario.messages[key].clone() });
        }
    }
    scenario.messages.sort_by_key(|message| message.at_ms);
    scenario.faults = vec![Fault::Deploy { at_ms: rng.u64(300..3_000) }];
    if rarely(rng, 3) {
        scenario.faults.push(Fault::Deploy { at_ms: rng.u64(3_000..10_000) });
    }
}

/// Several invocations at once in one process, with more to do than it may do at once.
fn several(rng: &mut Rng, scenario: &mut Scenario) {
    scenario.function.timeout_ms = 15_000;
    scenario.function.clocks_ms.truncate(1);
    scenario.function.per_process = rng.usize(2..=4);
    scenario.queue.batch_max = one(rng, &[1, 3, 10]);
    scenario.consumer.concurrency = one(rng, &[1, 2, 4]);
    let keys = rng.usize(4..=12);
    good(rng, scenario, keys, 1_500);
}

/// An owner, or what it sent, that comes back when its record is gone: the window ends before the message comes back.
fn forgotten(rng: &mut Rng, scenario: &mut Scenario) {
    scenario.consumer.window_s = Some(60);
    scenario.consumer.timeout_ms = None;
    scenario.function.timeout_ms = 15_000;
    scenario.queue.visibility_s = 90;
    scenario.queue.changes_visibility = false;
    let later = rng.u64(1_000..4_000);
    for works in &mut scenario.keys {
        *works = vec![Work::Good { before_ms: later, after_ms: later / 2 }];
    }
    for message in &mut scenario.messages {
        message.at_ms = message.at_ms.min(300);
        // Several events that do not fit into one invocation are never all remembered at once.
        message.more.clear();
    }
    let late = |nth| Fault::Store { nth, fate: Fate::Late(94_000 + u64::from(nth) * 1_000) };
    let freeze = Fault::Freeze { invocation: 0, poll: rng.u32(2..6), for_ms: rng.u64(80_000..140_000) };
    scenario.faults = if rarely(rng, 4) { vec![freeze] } else { (1..4).map(late).collect() };
    scenario.faults.push(Fault::Expire { at_ms: rng.u64(79_000..93_000) });
}

/// An owner whose lease is over for another one whose clock is far ahead.
fn overtaken(rng: &mut Rng, scenario: &mut Scenario) {
    let (run_ms, later_ms) = (rng.u64(2_000..6_000), rng.u64(100..2_000));
    two_of_one_key(scenario, run_ms, later_ms);
    scenario.function.clocks_ms = vec![0, 3_600_000];
    scenario.faults.truncate(1);
}

/// An owner that cannot renew its lease, and another one that wants it when the store is back.
fn cut_off(rng: &mut Rng, scenario: &mut Scenario) {
    let (run_ms, later_ms) = (rng.u64(6_000..7_500), rng.u64(3_000..6_000));
    two_of_one_key(scenario, run_ms, later_ms);
    scenario.consumer.guarantee = Guarantee::Renewed(3_000);
    scenario.function.clocks_ms = vec![0, rng.i64(-500..500)];
    let fate = one(rng, &[Fate::Lost, Fate::Silence, Fate::Throttled]);
    scenario.faults = vec![Fault::Outage { from_ms: rng.u64(100..1_500), for_ms: rng.u64(2_500..5_000), fate }];
}

/// Two messages of one key for two processes, whose handlers run for so long.
fn two_of_one_key(scenario: &mut Scenario, run_ms: u64, later_ms: u64) {
    scenario.consumer.timeout_ms = None;
    scenario.function.timeout_ms = 15_000;
    (scenario.queue.visibility_s, scenario.queue.fifo_groups, scenario.queue.batch_max) = (90, None, 1);
    scenario.keys = vec![vec![Work::Good { before_ms: run_ms / 2, after_ms: run_ms / 2 }]];
    scenario.messages = vec![MessageSpec::good(0, 0), MessageSpec::good(later_ms, 0)];
}
