//! A failing scenario made small: fewer messages, fewer faults, fewer processes, plainer settings.

use crate::scenario::{Fault, Scenario, Shape, Work};

/// Changes that are tried, one after the other.
type Change = Box<dyn Fn(&Scenario) -> Option<Scenario>>;

/// The smallest scenario found that still fails; `fails` runs one.
#[must_use]
pub fn shrink(scenario: &Scenario, fails: impl Fn(&Scenario) -> bool) -> Scenario {
    let mut smallest = scenario.clone();
    loop {
        let before = smallest.clone();
        for change in changes(&smallest) {
            if let Some(smaller) = change(&smallest).filter(|smaller| *smaller != smallest && fails(smaller)) {
                smallest = smaller;
            }
        }
        if smallest == before {
            return smallest;
        }
    }
}

fn changes(scenario: &Scenario) -> Vec<Change> {
    // From the end, so that places stay what they are.
    let messages = (0..scenario.messages.len())
        .rev()
        .map(|place| -> Change { Box::new(move |s| without(s, |s| remove(&mut s.messages, place))) });
    let faults = (0..scenario.faults.len())
        .rev()
        .map(|place| -> Change { Box::new(move |s| without(s, |s| remove(&mut s.faults, place))) });
    let clocks = (1..scenario.function.clocks_ms.len()).rev().map(|place| -> Change {
        let used = move |s: &Scenario| s.faults.iter().any(|fault| uses(fault, place));
        Box::new(move |s| if used(s) { None } else { without(s, |s| remove(&mut s.function.clocks_ms, place)) })
    });
    let keys = (0..scenario.keys.len()).map(|place| -> Change {
        Box::new(move |s| {
            without(s, |s| {
                let works = s.keys.get_mut(place).filter(|works| works.len() > 1);
                works.map(|works| works.remove(0)).is_some()
            })
        })
    });
    let all: [fn(&mut Scenario); 25] = [
        |s| s.consumer.items = None,
        |s| s.messages.iter_mut().for_each(|message| message.large = false),
        |s| {
            s.consumer.routes = None;
            s.messages.retain(|message| message.shape != Shape::Stray);
            s.messages.iter_mut().for_each(|message| message.stray = false);
        },
        |s| s.consumer.window_s = None,
        |s| s.consumer.timeout_ms = None,
        |s| s.consumer.attempts_max = None,
        |s| s.consumer.concurrency = 1,
        |s| s.consumer.batched = false,
        |s| s.consumer.ignores_conflicts = false,
        |s| s.queue.fifo_groups = None,
        |s| s.queue.letters = false,
        |s| s.queue.schedules = false,
        |s| s.queue.tells_receives = false,
        |s| s.queue.batch_max = 1,
        |s| s.function.per_process = 1,
        |s| s.function.mapping_reports = None,
        |s| s.function.threads = false,
        |s| s.consumer.by_message_id = false,
        |s| s.consumer.busy_wait_ms = None,
        |s| s.consumer.breaker = None,
        |s| s.function.pauses = false,
        |s| s.consumer.limit = None,
        |s| s.consumer.tenants = None,
        |s| s.messages.iter_mut().for_each(|message| message.more.clear()),
        plain,
    ];
    let settings = all.into_iter().map(|change| -> Change {
        Box::new(move |s| {
            without(s, |s| {
                change(s);
                true
            })
        })
    });
    messages.chain(faults).chain(clocks).chain(keys).chain(settings).collect()
}

fn without(scenario: &Scenario, change: impl Fn(&mut Scenario) -> bool) -> Option<Scenario> {
    let mut smaller = scenario.clone();
    change(&mut smaller).then_some(smaller)
}

fn remove<T>(list: &mut Vec<T>, place: usize) -> bool {
    if place < list.len() {
        list.remove(place);
        return true;
    }
    false
}

fn uses(fault: &Fault, place: usize) -> bool {
    matches!(fault, Fault::Jump { process, .. } | Fault::Terminate { process, .. } if *process >= place)
}

/// Clocks that are right, messages at once, round times.
fn plain(scenario: &mut Scenario) {
    scenario.function.clocks_ms.iter_mut().for_each(|off| *off = 0);
    for message in &mut scenario.messages {
        (message.at_ms, message.shape) = (0, Shape::Good);
    }
    for work in scenario.keys.iter_mut().flatten() {
        if let Work::Good { before_ms, after_ms } = work {
            (*before_ms, *after_ms) = (100, 100);
        }
    }
}
