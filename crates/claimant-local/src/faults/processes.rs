//! Faults of processes that wait until one does something.

use std::sync::Weak;
use std::time::Duration;

use super::spec::When;
use super::state::Inner;
use crate::journal::{Journal, Text, What};

/// Events that are read at a time.
const READ_MAX: usize = 1_000;

/// Between two looks whether a fault that waits was ended by hand, while nothing happens.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Has a fault meet processes of this function as they do what it waits for, until it is over.
pub(super) async fn watch(faults: Weak<Inner>, journal: Journal, function: Text, id: u64) {
    let mut newest = journal.newest();
    let mut seen = *newest.borrow_and_update();
    loop {
        // A change, or none for a while: either way it is looked at.
        let _ = tokio::time::timeout(LOOK_EVERY, newest.changed()).await;
        for event in journal.after(seen, READ_MAX) {
            seen = event.seq;
            let Some(faults) = faults.upgrade() else { return };
            let Some(fault) = faults.active(id) else { return };
            let met = match &event.what {
                What::Claimed(_) => fault.spec.when == Some(When::Claim),
                What::InvocationBegan { .. } => fault.spec.when == Some(When::Batch),
                _ => false,
            };
            let process = event.process.filter(|_| met && event.function.as_ref() == Some(&function));
            let found = faults.functions().iter().find(|found| *found.name() == *function);
            if let (Some(process), Some(found)) = (process, found)
                && faults.meet(found, process, &fault)
            {
                faults.act_of(id);
            }
        }
        if faults.upgrade().is_none_or(|faults| faults.active(id).is_none()) {
            return;
        }
    }
}
