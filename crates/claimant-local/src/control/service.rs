//! What the control endpoint answers.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tokio::sync::{broadcast, watch};

use super::management::{Functions, Managed};
use crate::clock::wall_clock_ms;
use crate::faults::Faults;
use crate::journal::Journal;
use crate::lambda::LogSink;

/// Log lines that are kept for a reader who is slower than the functions; of what is older it misses some.
pub const KEPT_LINES_MAX: usize = 4_096;

/// A function's log line.
#[derive(Debug, Clone)]
pub(super) struct LogLine {
    /// When it came, in milliseconds since the epoch.
    pub(super) at_ms: u64,
    pub(super) function: Arc<str>,
    pub(super) line: Arc<str>,
}

/// The control endpoint of a cloud. Clones share it.
#[derive(Clone)]
pub struct Control {
    pub(super) description: Arc<OnceLock<Value>>,
    pub(super) lines: broadcast::Sender<LogLine>,
    pub(super) stopped: watch::Sender<bool>,
    pub(super) functions: Functions,
    pub(super) faults: Faults,
    pub(super) journal: Journal,
    pub(super) effects: Arc<OnceLock<ReadEffects>>,
}

/// Reads what the functions have done, as JSON.
pub(super) type ReadEffects = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Value> + Send>> + Send + Sync>;

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("description", &self.description).finish_non_exhaustive()
    }
}

impl Control {
    /// Returns one that has nothing to say yet, for a cloud with these faults and this journal.
    #[must_use]
    pub fn new(faults: &Faults, journal: &Journal) -> Self {
        Self {
            description: Arc::default(),
            lines: broadcast::Sender::new(KEPT_LINES_MAX),
            stopped: watch::Sender::new(false),
            functions: Functions::default(),
            faults: faults.clone(),
            journal: journal.clone(),
            effects: Arc::default(),
        }
    }

    /// Sets what the cloud holds; the first time counts.
    pub fn set_description(&self, description: Value) {
        // OK to be set already: a cloud is described once.
        let _ = self.description.set(description);
    }

    /// Sets the functions that Lambda's API shows; the first time counts.
    pub fn set_functions(&self, functions: Vec<Managed>) {
        // OK to be set already: as above.
        let _ = self.functions.set(functions);
    }

    /// Sets what reads the functions' effects, as JSON; the first time counts.
    pub fn set_effects(&self, read: impl Fn() -> Pin<Box<dyn Future<Output = Value> + Send>> + Send + Sync + 'static) {
        // OK to be set already: as above.
        let _ = self.effects.set(Box::new(read));
    }

    /// Returns a sink that passes each line on to this endpoint's readers, and to `sink`.
    #[must_use]
    pub fn observe(&self, sink: LogSink) -> LogSink {
        let lines = self.lines.clone();
        Arc::new(move |function, line| {
            // Without a reader there is nothing to keep.
            if lines.receiver_count() > 0 {
                let at_ms = wall_clock_ms();
                // OK to fail: the last reader may have left since.
                let _ = lines.send(LogLine { at_ms, function: function.into(), line: line.into() });
            }
            sink(function, line);
        })
    }
}
