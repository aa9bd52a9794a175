//! What was seen of several queues, of which one that cannot be read hides nothing.

use claimant_core::Error;
use claimant_core::error::Chain;
use claimant_operate::dead::{DeadLetterQueue, Report};
use serde_json::{Value, json};

use crate::exit::Ended;
use crate::operate::interrupt::Stop;
use crate::operate::options::OutputOptions;
use crate::output::{note, say_json};

/// What was seen of all queues.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether there is only one.
    only: bool,
    /// Whether there is a letter that fits.
    some: bool,
    /// Whether there may be others.
    pub(super) more: bool,
    /// Whether one could not be read.
    pub(super) failed: bool,
}

impl Seen {
    pub(super) fn of(queues: &[DeadLetterQueue]) -> Self {
        Self { only: queues.len() == 1, ..Self::default() }
    }

    /// Adds what was read of a queue, and returns it. One that cannot be read hides nothing of the others: it is said of it, and added to the
    /// documents.
    ///
    /// # Errors
    /// When the only one cannot be read.
    pub(super) fn add(
        &mut self,
        queue: &DeadLetterQueue,
        read: Result<Report, Error>,
        documents: &mut Vec<Value>,
    ) -> Result<Option<Report>, Error> {
        match read {
            Ok(report) => {
                self.some |= report.progress.selected > 0;
                self.more |= report.unseen.any();
                Ok(Some(report))
            }
            Err(error) if self.only => Err(error),
            Err(error) => {
                let why = Chain(&error).to_string();
                note(format!("error: {}: {why}", queue.name()));
                documents.push(json!({ "queue": queue.name(), "failed": why }));
                (self.more, self.failed) = (true, true);
                Ok(None)
            }
        }
    }
}

/// Prints the documents, and says how the command ends.
pub(super) fn end(output: OutputOptions, documents: Vec<Value>, seen: &Seen, stop: &Stop) -> Ended {
    if output.json {
        say_json(&json!({ "queues": documents }));
    }
    match seen {
        _ if stop.is_asked() => Ended::Interrupted,
        Seen { failed: true, .. } => Ended::NotDone,
        Seen { some: true, .. } => Ended::WithFaults,
        // That there is none is not known.
        Seen { more: true, .. } => Ended::NotDone,
        Seen { .. } => Ended::Well,
    }
}
