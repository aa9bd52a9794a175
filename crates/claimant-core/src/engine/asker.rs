//! Who asks for the record of a breaker or of a limit, and of the intake: an invocation, or a worker.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::deadline::until;
use crate::error::Error;
use crate::intake::Intake;
use crate::key::ConsumerName;
use crate::limits::{STORE_CALL_MAX_MS, STORE_GUARD_MS};
use crate::meter::Meter;
use crate::store::{Call, Store};

/// An invocation or a worker that asks.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) consumer: &'a ConsumerName,
    pub(crate) store: &'a dyn Store,
    /// What lets messages in, where that is to be paused.
    pub(crate) intake: Option<&'a dyn Intake>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) meter: &'a Meter,
    /// When it has to have its answers.
    pub(crate) by: Instant,
    /// How long a handler takes.
    pub(crate) expected: Duration,
}

impl<'a> Asker<'a> {
    /// Returns how long a call of the store may take, and the call, which has a little less.
    pub(crate) fn call(&self) -> (Duration, Call<'a>) {
        let within = until(self.by).min(Duration::from_millis(STORE_CALL_MAX_MS));
        let guard = Duration::from_millis(STORE_GUARD_MS).min(within / 4);
        (within, Call { within: within - guard, meter: self.meter })
    }
}

/// A worker that takes its work by itself and not in batches, as one that asks.
pub(crate) struct Worker {
    pub(crate) name: ConsumerName,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    meter: Meter,
    /// How long one of its runs can take.
    longest: Duration,
}

impl Worker {
    /// Returns the worker of this name, with a store whose claims outlive it.
    ///
    /// # Errors
    /// With these faults of its `setting`, and if the store's claims end with their owners, so that no other process would see them.
    pub(crate) fn new(
        (name, setting, mut faults): (&str, &str, Vec<String>),
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        longest: Duration,
    ) -> Result<Self, Error> {
        if !store.claims_outlive_owners() {
            faults.push(format!("a {setting} needs a store whose claims outlive their owners"));
        }
        Error::unless_empty(&format!("the worker's {setting} is not usable"), &faults)?;
        Ok(Self { name: ConsumerName::new(name)?, store, clock, meter: Meter::default(), longest })
    }

    /// Returns it as one that asks, with its answers within this time.
    pub(crate) fn asker(&self, within: Duration) -> Asker<'_> {
        let Self { name, store, clock, meter, longest } = self;
        let (store, clock, by) = (store.as_ref(), clock.as_ref(), Instant::now() + within);
        Asker { consumer: name, store, intake: None, clock, meter, by, expected: *longest }
    }
}
