//! The tests' worker in the local cloud: a function whose messages can abort its process (`tests/bin/poison-worker.rs`).

use std::path::PathBuf;
use std::time::Duration;

use claimant_local::stack::Stack;

use crate::plan::Target;

/// Suspects run one after the other, a whole batch of them where all are: twice the time of that, with three deaths.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(12);

/// As AWS demands, no less than the timeout. Renewed leases shorten it.
pub(crate) const VISIBILITY: Duration = Duration::from_secs(12);

/// The queue of the worker; its dead-letter queue is called after it.
pub(crate) const QUEUE: &str = "poison";

/// The file with a line for each effect of the worker.
pub(crate) fn effects() -> PathBuf {
    std::env::temp_dir().join(format!("claimant-storm-{}-effects", std::process::id()))
}

/// Deletes that file.
pub(crate) fn forget_effects() {
    // It may never have been made.
    let _ = std::fs::remove_file(effects());
}

/// Adds the worker with its queues to a stack, as `order-confirmation` has its own, whose lock table it shares.
pub(crate) fn add(stack: &mut Stack) {
    forget_effects();
    let like = stack.functions.iter().find(|function| function.binary == Target::Orders.function());
    let Some(mut worker) = like.cloned() else { return };
    let table = worker.environment.get("CLAIMANT_TABLE").cloned();
    worker.logical_id = "PoisonFunction".to_owned();
    worker.name = Target::Poison.function().to_owned();
    worker.binary = Target::Poison.function().to_owned();
    worker.environment = [("EFFECTS_FILE".to_owned(), effects().display().to_string())].into();
    worker.environment.extend(table.map(|table| ("CLAIMANT_TABLE".to_owned(), table)));
    for mapping in &mut worker.mappings {
        let queue = stack.queues.iter().find(|queue| queue.name == mapping.queue).cloned();
        let redrive = queue.as_ref().and_then(|queue| queue.settings.redrive.clone());
        let dead = redrive.and_then(|r| stack.queues.iter().find(|q| q.name == r.dead_letter_queue).cloned());
        let (Some(mut queue), Some(mut dead)) = (queue, dead) else { continue };
        (queue.logical_id, queue.name) = ("PoisonQueue".to_owned(), QUEUE.to_owned());
        (dead.logical_id, dead.name) = ("PoisonDeadLetters".to_owned(), format!("{QUEUE}-dead"));
        if let Some(redrive) = &mut queue.settings.redrive {
            redrive.dead_letter_queue = dead.name.clone();
        }
        (mapping.logical_id, mapping.queue) = ("PoisonFunctionMessages".to_owned(), queue.name.clone());
        stack.queues.extend([dead, queue]);
    }
    stack.functions.push(worker);
}
