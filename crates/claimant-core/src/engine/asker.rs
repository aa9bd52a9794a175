//! An invocation that asks for the record of a breaker or of a limit, and of the intake.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::deadline::until;
use crate::intake::Intake;
use crate::key::ConsumerName;
use crate::limits::{STORE_CALL_MAX_MS, STORE_GUARD_MS};
use crate::meter::Meter;
use crate::store::{Call, Store};

/// An invocation that asks.
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
