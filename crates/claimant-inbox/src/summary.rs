//! How much a worker is to do, and what it did.

use std::time::Duration;

use crate::attempt::AttemptOutcome;

/// How much one [`run_once`](crate::Worker::run_once) processes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub(crate) within: Duration,
    /// How many messages it takes at most.
    pub(crate) messages: u64,
}

impl Limits {
    /// Limits the time: a function's remaining time, less what it needs for itself.
    #[must_use]
    pub const fn within(time: Duration) -> Self {
        Self { within: time, messages: u64::MAX }
    }

    /// Limits the number of messages as well.
    #[must_use]
    pub const fn messages(self, messages: u64) -> Self {
        Self { messages, ..self }
    }
}

/// What a worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Messages whose handler's work is committed.
    pub done: u64,
    /// Attempts that failed; their messages are tried again later.
    pub failed: u64,
    /// Messages that are dead: an operator decides.
    pub dead: u64,
    /// Attempts at which no handler ran: another worker had the message, an earlier one of its group was retried, or no transaction could
    /// begin.
    pub not_started: u64,
    /// Attempts whose end is not known, since the database gave no answer: their messages are done, or due again.
    pub unknown: u64,
}

impl Summary {
    pub(crate) fn count(&mut self, ended: AttemptOutcome) {
        let count = match ended {
            AttemptOutcome::Done => &mut self.done,
            AttemptOutcome::Failed => &mut self.failed,
            AttemptOutcome::Dead => &mut self.dead,
            AttemptOutcome::NotStarted => &mut self.not_started,
            AttemptOutcome::Unknown => &mut self.unknown,
        };
        *count += 1;
    }
}
