//! The state of the faults, and what they do to processes.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use super::list::{Acted, Fault, List};
use super::spec::FaultSpec;
use crate::Error;
use crate::clock::wall_clock_ms;
use crate::journal::{Journal, What};
use crate::lambda::Function;
use crate::sync::lock;

/// What the handles share.
#[derive(Default)]
pub(super) struct Inner {
    pub(super) list: Mutex<List>,
    pub(super) journal: Journal,
    pub(super) functions: OnceLock<Vec<Function>>,
}

impl Inner {
    pub(super) fn functions(&self) -> &[Function] {
        self.functions.get().map_or(&[], Vec::as_slice)
    }

    /// A fault that acts; `None` once it is over.
    pub(super) fn active(&self, id: u64) -> Option<Fault> {
        lock(&self.list).get(id).filter(|fault| !fault.is_over()).cloned()
    }

    pub(super) fn begin(&self, spec: FaultSpec) -> Result<Fault, Error> {
        let fault = lock(&self.list).begin(wall_clock_ms(), spec)?;
        self.journal.note(|| What::FaultBegan { fault: fault.id, does: fault.does.as_str().into() }, |event| event);
        Ok(fault)
    }

    /// Meets processes of a function at once.
    pub(super) fn meet_now(self: &Arc<Self>, function: &Function, spec: FaultSpec) -> Result<Fault, Error> {
        let there = function.pids();
        let met: Vec<_> = match spec.process {
            Some(process) => there.iter().copied().filter(|there| *there == process).collect(),
            None => there.clone(),
        };
        if met.is_empty() {
            let there: Vec<_> = there.iter().map(u32::to_string).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            return Err(Error::new(format!("{} has no such process now: it has {there}", function.name())));
        }
        let fault = self.begin(spec)?;
        for process in met {
            self.meet(function, process, &fault);
        }
        self.act_of(fault.id);
        Ok(lock(&self.list).get(fault.id).cloned().unwrap_or(fault))
    }

    /// Does to a process what the fault does.
    pub(super) fn meet(self: &Arc<Self>, function: &Function, process: u32, fault: &Fault) -> bool {
        match fault.spec.frozen_s {
            None => function.kill(process),
            Some(seconds) => {
                let frozen = function.freeze(process, fault.id);
                if frozen {
                    let (faults, name) = (Arc::downgrade(self), function.name().to_owned());
                    let period = Duration::from_secs(seconds.into());
                    tokio::spawn(thaw_after(faults, name, process, fault.id, period));
                }
                frozen
            }
        }
    }

    /// Counts that this fault has acted; false where it is over.
    pub(super) fn act_of(&self, id: u64) -> bool {
        let acted = lock(&self.list).act_of(wall_clock_ms(), id);
        acted.is_some_and(|acted| {
            self.note(&acted);
            true
        })
    }

    /// Has a fault act no more. What it froze stays so for its time.
    pub(super) fn expire(&self, id: u64) -> Option<Fault> {
        let (fault, acted) = lock(&self.list).end(wall_clock_ms(), id)?;
        if acted {
            self.journal.note(|| What::FaultEnded { fault: id }, |event| event);
        }
        Some(fault)
    }

    /// Has a fault act no more, and lets go on what it left frozen.
    pub(super) fn end(&self, id: u64) -> Option<Fault> {
        let fault = self.expire(id)?;
        for function in self.functions().iter().filter(|function| fault.freezes(function.name())) {
            for process in function.pids() {
                function.thaw(process, id);
            }
        }
        Some(fault)
    }

    pub(super) fn note(&self, acted: &Acted) {
        self.journal.note(|| What::FaultActed { fault: acted.id }, |event| event);
        if acted.is_over {
            self.journal.note(|| What::FaultEnded { fault: acted.id }, |event| event);
        }
    }
}

/// Lets a process go on after a while, unless it was let go on before.
async fn thaw_after(faults: Weak<Inner>, function: String, process: u32, fault: u64, period: Duration) {
    tokio::time::sleep(period).await;
    let Some(faults) = faults.upgrade() else { return };
    if let Some(found) = faults.functions().iter().find(|found| found.name() == function) {
        found.thaw(process, fault);
    }
}
