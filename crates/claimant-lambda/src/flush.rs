//! Exports spans at the end of an invocation: what its process keeps is frozen with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claimant_core::Spans;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Calls a tracing system's flush, one call at a time.
#[derive(Debug, Default)]
pub(crate) struct Flusher {
    running: Arc<AtomicBool>,
}

impl Flusher {
    /// Exports what has ended, and waits for that as long as there is time. While an earlier export still runs, that one is all:
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
        match timeout(within, flushing).await {
            Ok(Ok(())) => {}
            // The panic hook has logged it.
            Ok(Err(_)) => {}
            Err(_) => tracing::warn!(
                "the spans of this invocation were not exported in time: its report does not wait for them"
            ),
        }
    }
}

struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
