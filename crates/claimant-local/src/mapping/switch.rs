//! What is asked of a running mapping, and what it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;
use uuid::Uuid;

use crate::clock::wall_clock_ms;
use crate::stack::MappingSpec;

/// What a mapping is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Polling,
    Paused,
    Stopped,
}

/// What a mapping does, as Lambda names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingState {
    /// It is about to poll.
    Enabling,
    /// It polls.
    Enabled,
    /// It polls no more, and has batches in flight.
    Disabling,
    /// Nothing is in flight.
    Disabled,
}

impl MappingState {
    /// Returns Lambda's name of it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enabling => "Enabling",
            Self::Enabled => "Enabled",
            Self::Disabling => "Disabling",
            Self::Disabled => "Disabled",
        }
    }

    /// Returns whether it polls, or is about to.
    pub const fn is_on(self) -> bool {
        matches!(self, Self::Enabling | Self::Enabled)
    }
}

/// What pauses and resumes a running mapping, and says what it does. Clones share it.
#[derive(Debug, Clone)]
pub struct MappingSwitch {
    id: Arc<str>,
    wanted: watch::Sender<Wanted>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Whether it polls or has batches in flight.
    busy: AtomicBool,
    reports_failures: AtomicBool,
    modified_ms: AtomicU64,
}

impl MappingSwitch {
    /// Returns the switch of a mapping that is about to run.
    #[must_use]
    pub fn new(spec: &MappingSpec) -> Self {
        let wanted = if spec.enabled { Wanted::Polling } else { Wanted::Paused };
        let shared = Shared {
            busy: AtomicBool::new(false),
            reports_failures: AtomicBool::new(spec.report_batch_item_failures),
            modified_ms: AtomicU64::new(wall_clock_ms()),
        };
        Self { id: Uuid::new_v4().to_string().into(), wanted: watch::Sender::new(wanted), shared: Arc::new(shared) }
    }

    /// Returns the mapping's id, a UUID.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns what the mapping does. One that was stopped is disabled.
    pub fn state(&self) -> MappingState {
        match (*self.wanted.borrow(), self.shared.busy.load(Ordering::SeqCst)) {
            (Wanted::Polling, true) => MappingState::Enabled,
            (Wanted::Polling, false) => MappingState::Enabling,
            (Wanted::Paused | Wanted::Stopped, true) => MappingState::Disabling,
            (Wanted::Paused | Wanted::Stopped, false) => MappingState::Disabled,
        }
    }

    /// Has it poll, or not. What is in flight ends as it would; a mapping that was stopped stays so.
    pub fn enable(&self, enabled: bool) {
        let wanted = if enabled { Wanted::Polling } else { Wanted::Paused };
        self.wanted.send_if_modified(|there| {
            let changes = *there != Wanted::Stopped && *there != wanted;
            if changes {
                *there = wanted;
            }
            changes
        });
        self.touch();
    }

    /// Returns whether a message that its function does not name as failed counts as done, and one that it names as failed stays.
    pub fn reports_failures(&self) -> bool {
        self.shared.reports_failures.load(Ordering::SeqCst)
    }

    /// Sets whether the function's answer names the messages that failed: `ReportBatchItemFailures`.
    pub fn set_reports_failures(&self, reports: bool) {
        self.shared.reports_failures.store(reports, Ordering::SeqCst);
        self.touch();
    }

    /// Returns when it was changed last, in milliseconds since 1970.
    pub fn modified_ms(&self) -> u64 {
        self.shared.modified_ms.load(Ordering::SeqCst)
    }

    pub(super) fn stop(&self) {
        self.wanted.send_replace(Wanted::Stopped);
    }

    pub(super) fn wanted(&self) -> watch::Receiver<Wanted> {
        self.wanted.subscribe()
    }

    pub(super) fn set_busy(&self, busy: bool) {
        self.shared.busy.store(busy, Ordering::SeqCst);
    }

    fn touch(&self) {
        self.shared.modified_ms.store(wall_clock_ms(), Ordering::SeqCst);
    }
}
