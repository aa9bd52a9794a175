//! Exports spans at the end of an invocation: what its process keeps is frozen with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use claimant_core::Spans;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The longest that a report waits for an export. A collector that is near answers in milliseconds.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// After an export that was waited for in vain, so many run beside the reports: a collector that gives no answer holds up one of so many.
const UNAWAITED: u32 = 20;

/// Calls a tracing system's flush, one call at a time.
#[derive(Debug, Default)]
pub(crate) struct Flusher {
    running: Arc<AtomicBool>,
    /// How many of the next exports are not waited for.
    unawaited: AtomicU32,
}

impl Flusher {
    /// Exports what has ended, and waits for that a moment, as long as there is time. While an earlier export still runs, that one is all:
    /// an exporter without an answer takes up one thread.
    pub(crate) async fn flush(&self, spans: Option<&Arc<dyn Spans>>, within: Duration) {
        let Some(spans) = spans.map(Arc::clone) else { return };
        if within.is_zero() || self.running.swap(true, Ordering::SeqCst) {
            return;
        }
        let running = Running(Arc::clone(&self.running));
        let flushing = spawn_blocking(move || {
            let _running = running;
            spans.flush();
        });
        let one_less = |left: u32| left.checked_sub(1);
        if self.unawaited.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return;
        }
        match timeout(within.min(WAIT_MAX), flushing).await {
            Ok(Ok(())) => {}
            // The panic hook has logged it.
            Ok(Err(_)) => {}
            Err(_) => {
                self.unawaited.store(UNAWAITED, Ordering::SeqCst);
                tracing::warn!(
                    "the spans of this invocation were not exported in time: its report does not wait for them, nor do the next ones"
                );
            }
        }
    }
}

struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
