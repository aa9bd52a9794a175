//! Exports spans at the end of an invocation: what its process keeps is frozen with it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claimant_core::Spans;
use claimant_core::error::Chain;
use claimant_core::panics::caught;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The longest that a report waits for an export. A collector that is near answers in milliseconds.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// After an export that was waited for in vain, so many run beside the reports: a collector that gives no answer holds up one of so many.
const UNAWAITED: u32 = 20;

/// Calls a tracing system's flush, one call at a time.
#[derive(Debug, Default)]
pub(crate) struct Flusher {
    exporter: Arc<Exporter>,
    /// How many of the next exports are not waited for.
    unawaited: AtomicU32,
}

impl Flusher {
    /// Exports what has ended, and waits for that a moment, as long as there is time. While an earlier export still runs, that one is all:
    /// an exporter without an answer takes up one thread.
    pub(crate) async fn flush(&self, spans: Option<&Arc<dyn Spans>>, within: Duration) {
        let Some(spans) = spans.map(Arc::clone) else { return };
        if within.is_zero() || self.exporter.is_running.swap(true, Ordering::SeqCst) {
            return;
        }
        let running = Running(Arc::clone(&self.exporter));
        let flushing = spawn_blocking(move || running.export(&*spans));
        let one_less = |left: u32| left.checked_sub(1);
        if self.unawaited.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return;
        }
        if timeout(within.min(WAIT_MAX), flushing).await.is_err() {
            self.unawaited.store(UNAWAITED, Ordering::SeqCst);
            tracing::warn!(
                "the spans of this invocation were not exported in time: its report does not wait for them, nor do the next ones"
            );
        }
    }
}

#[derive(Debug, Default)]
struct Exporter {
    is_running: AtomicBool,
    /// The last error that was logged. An export of nothing succeeds, too, so success says nothing.
    logged: Mutex<Option<String>>,
}

/// An export that runs.
struct Running(Arc<Exporter>);

impl Running {
    /// Exports, and logs an error that is another one than the last: nothing else knows of it, in time or not.
    fn export(self, spans: &dyn Spans) {
        // The panic hook has logged a panic. The runtime would catch it, too, and return what it was raised with, whose drop may panic.
        let Ok(Err(error)) = caught(|| spans.flush()) else { return };
        let error = Chain(&error).to_string();
        let mut logged = self.0.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.as_ref() != Some(&error) {
            tracing::warn!(%error, "spans are not exported; the same error is not logged again");
            *logged = Some(error);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.is_running.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use claimant_core::spans::{MessageSpan, SendSpan, SpanIdentity, StepSpan};
    use claimant_core::{ConsumerName, Error, Message};

    use super::*;
    use crate::child;

    /// Exports by this.
    struct Exports<F>(F);

    impl<F: Fn() -> Result<(), Error> + Send + Sync + 'static> Spans for Exports<F> {
        fn message(&self, _: &Message) -> Box<dyn MessageSpan> {
            unreachable!("only flushed")
        }

        fn call(&self, _: &ConsumerName, _: &[SpanIdentity]) -> Arc<dyn StepSpan> {
            unreachable!("only flushed")
        }

        fn send(&self, _: &str, _: Option<&str>) -> Box<dyn SendSpan> {
            unreachable!("only flushed")
        }

        fn flush(&self) -> Result<(), Error> {
            (self.0)()
        }
    }

    /// Panics when it is dropped.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }

    #[tokio::test]
    async fn an_export_that_panics_ends_no_report_and_the_next_one_runs() {
        let (begun, flusher) = (Arc::new(AtomicU32::new(0)), Flusher::default());
        let counted = Arc::clone(&begun);
        let spans: Arc<dyn Spans> = Arc::new(Exports(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            panic_any(Bomb)
        }));
        for exports in 1..=2 {
            flusher.flush(Some(&spans), Duration::MAX).await;
            assert_eq!(begun.load(Ordering::SeqCst), exports);
        }
    }

    #[test]
    fn an_error_of_exports_is_logged_once() {
        let Some(ended) = child::ended("flush::tests::an_error_of_exports_is_logged_once") else {
            crate::init_logs();
            let ends =
                [Err("status 401"), Ok(()), Err("status 401"), Err("status 403")].map(|end| end.map_err(Error::new));
            let count = ends.len();
            let ends = Mutex::new(ends.into_iter());
            let spans: Arc<dyn Spans> = Arc::new(Exports(move || ends.lock().unwrap().next().unwrap()));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let flusher = Flusher::default();
            (0..count).for_each(|_| runtime.block_on(flusher.flush(Some(&spans), Duration::MAX)));
            return;
        };
        let said = String::from_utf8_lossy(&ended.stdout);
        let lines: Vec<_> = said.lines().filter_map(|line| line.split_once("is not logged again")).collect();
        let errors: Vec<_> = lines.iter().map(|(_, error)| error.trim()).collect();
        assert_eq!(errors, ["error=status 401", "error=status 403"], "{said}");
    }
}
