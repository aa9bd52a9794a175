//! What was seen of several queues, of which one that cannot be read hides nothing.

use claimant_core::Error;
use claimant_core::error::Chain;
use claimant_operate::dead::{DeadLetterQueue, Report, Unseen};
use serde_json::{Value, json};

use super::which::Opened;
use crate::exit::Ended;
use crate::operate::interrupt::{self, Stop};
use crate::operate::options::OutputOptions;
use crate::output::{note, say, say_json};

/// What was seen of all queues.
#[derive(Debug)]
pub(super) struct Seen {
    /// What is shown of each: its groups, or its letters.
    shows: &'static str,
    /// Whether there is only one queue.
    only: bool,
    /// Whether there is a letter that fits.
    some: bool,
    /// Whether there may be others.
    pub(super) more: bool,
    /// Whether a queue could not be read.
    pub(super) failed: bool,
    /// What is known of each queue, as JSON.
    pub(super) documents: Vec<Value>,
    /// The queues that Ctrl-C or SIGTERM came before.
    pub(super) not_reached: Vec<String>,
}

impl Seen {
    pub(super) fn of(queues: &[Opened], shows: &'static str) -> Self {
        Self {
            shows,
            only: queues.len() == 1,
            some: false,
            more: false,
            failed: false,
            documents: Vec::new(),
            not_reached: Vec::new(),
        }
    }

    /// Adds what was read of a queue, and returns it. One that cannot be read hides nothing of the others: it is said of it, and added to the
    /// documents.
    ///
    /// # Errors
    /// When the only one cannot be read.
    pub(super) fn add(
        &mut self,
        name: &str,
        read: Result<(DeadLetterQueue, Report), Error>,
    ) -> Result<Option<(DeadLetterQueue, Report)>, Error> {
        match read {
            Ok((queue, report)) => {
                self.some |= report.progress.selected > 0;
                self.more |= report.unseen.any();
                Ok(Some((queue, report)))
            }
            Err(error) if self.only => Err(error),
            Err(error) => {
                let report = failed(name, &error);
                self.document(name, &report, Vec::new());
                (self.more, self.failed) = (true, true);
                Ok(None)
            }
        }
    }

    /// Adds what is known of a queue to the documents.
    pub(super) fn document(&mut self, name: &str, report: &Report, items: Vec<Value>) {
        self.documents.push(json!({
            "queue": name,
            self.shows: items,
            "looked_at": report.progress.looked_at,
            "more": report.unseen.any(),
            "hidden": report.unseen.hidden,
            "delayed": report.unseen.delayed,
            "stay_hidden": report.unseen.stay_hidden,
            "failed": report.failed,
        }));
    }
}

/// Says why nothing is known of a queue, and returns that as its report.
pub(super) fn failed(name: &str, error: &Error) -> Report {
    let why = Chain(error).to_string();
    note(format!("error: {name}: {why}"));
    Report { failed: Some(why), unseen: Unseen { cut: true, ..Unseen::default() }, ..Report::default() }
}

/// Prints the documents, and says how the command ends.
pub(super) fn end(output: OutputOptions, seen: Seen, stop: &Stop) -> Ended {
    let is_cut = seen.more || !seen.not_reached.is_empty();
    if output.json {
        say_json(&json!({ "queues": seen.documents, "not_reached": seen.not_reached }));
    } else if !seen.not_reached.is_empty() {
        say(interrupt::ended_before(&seen.not_reached));
    }
    match (seen.failed, seen.some) {
        _ if stop.is_asked() && is_cut => Ended::Interrupted,
        (true, _) => Ended::NotDone,
        (false, true) => Ended::WithFaults,
        // That there is none is not known.
        (false, false) if seen.more => Ended::NotDone,
        (false, false) => Ended::Well,
    }
}
