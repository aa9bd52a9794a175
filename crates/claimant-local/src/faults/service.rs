//! The faults of a cloud: switched on and off by hand, asked by the parts of the cloud.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::list::{Fault, waits};
use super::spec::{Act, FaultSpec, Target, When};
use super::state::Inner;
use super::{claims, processes};
use crate::Error;
use crate::clock::wall_clock_ms;
use crate::journal::Journal;
use crate::lambda::Function;
use crate::sync::lock;

/// The faults of a cloud. Clones share them.
#[derive(Clone, Default)]
pub struct Faults(Arc<Inner>);

impl Faults {
    /// Returns none yet; what they do is written into this journal.
    #[must_use]
    pub fn new(journal: &Journal) -> Self {
        Self(Arc::new(Inner { journal: journal.clone(), ..Inner::default() }))
    }

    /// Sets the functions whose processes they can meet; the first time counts.
    pub fn set_functions(&self, functions: Vec<Function>) {
        // OK to be set already: a cloud has its functions once.
        let _ = self.0.functions.set(functions);
    }

    /// Returns the faults that act and the latest that ended, the newest first.
    #[must_use]
    pub fn all(&self) -> Vec<Fault> {
        lock(&self.0.list).all()
    }

    /// Switches a fault on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When it is not one that can be: what is wrong, and what to give instead.
    pub fn begin(&self, spec: FaultSpec) -> Result<Fault, Error> {
        let names: Vec<_> = self.0.functions().iter().map(|function| function.name().to_owned()).collect();
        let spec = spec.checked(&names)?;
        let function = self.0.functions().iter().find(|function| spec.function.as_deref() == Some(function.name()));
        if let Some(function) = function.filter(|_| spec.when == Some(When::Claim))
            && let Some(why) = claims::hidden_by(function.environment())
        {
            return Err(Error::new(format!(
                "{} writes no line for a claim, which this fault waits for: {why}. Give batch for when, or start the local cloud with CLAIMANT_LOG_MESSAGES=on and logs at info",
                function.name()
            )));
        }
        let fault = match function {
            Some(function) if !waits(&spec) => return self.0.meet_now(function, spec),
            _ => self.0.begin(spec)?,
        };
        if let Some(function) = function {
            tokio::spawn(processes::watch(
                Arc::downgrade(&self.0),
                self.0.journal.clone(),
                function.name().into(),
                fault.id,
            ));
        }
        if let Some(seconds) = fault.spec.seconds {
            tokio::spawn(end_after(Arc::downgrade(&self.0), fault.id, Duration::from_secs(seconds.into())));
        }
        Ok(fault)
    }

    /// Ends a fault, and lets the processes go on that it froze; returns it as it is then. One that is over stays so.
    ///
    /// # Errors
    /// When there is none of this number.
    pub fn end(&self, id: u64) -> Result<Fault, Error> {
        self.0.end(id).ok_or_else(|| Error::new(format!("there is no fault {id}: list them to see their numbers")))
    }

    /// Ends all faults, and lets all processes go on that any of them froze; returns those that acted until now.
    pub fn end_all(&self) -> Vec<Fault> {
        let all = self.all().into_iter().rev();
        all.filter_map(|fault| self.0.end(fault.id).filter(|_| !fault.is_over())).collect()
    }

    /// Returns whether a fault does this to a request now, and counts it.
    pub(crate) fn acts(&self, target: Target, act: Act) -> bool {
        let acted = lock(&self.0.list).act(wall_clock_ms(), act, target);
        acted.is_some_and(|acted| {
            self.0.note(&acted);
            true
        })
    }
}

async fn end_after(faults: Weak<Inner>, id: u64, period: Duration) {
    tokio::time::sleep(period).await;
    if let Some(faults) = faults.upgrade() {
        faults.expire(id);
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").field("active", &lock(&self.0.list).active().count()).finish_non_exhaustive()
    }
}
