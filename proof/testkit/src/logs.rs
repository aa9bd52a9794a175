//! What is logged on a test's thread.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tracing::{Dispatch, Level};

/// While there is just one subscriber, `tracing` asks the thread that first meets a line whether anybody wants it, and keeps the
/// answer: a test on another thread that records nothing would take the line away from the one that does. This one makes two.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

/// What is logged on this thread while it lives.
pub struct Logs {
    sink: Sink,
    _guard: tracing::dispatcher::DefaultGuard,
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Logs {
    /// Records lines of level `INFO` and those above.
    #[must_use]
    pub fn record() -> Self {
        Self::record_from(Level::INFO)
    }

    /// Records lines of this level and those above.
    #[must_use]
    pub fn record_from(level: Level) -> Self {
        Self::into(|sink| {
            let logs = tracing_subscriber::fmt().with_ansi(false).with_max_level(level);
            logs.with_writer(move || sink.clone()).finish().into()
        })
    }

    /// Records lines as JSON, as a deployed function writes them.
    #[must_use]
    pub fn record_json() -> Self {
        Self::into(|sink| {
            let logs = tracing_subscriber::fmt().with_max_level(Level::INFO).with_target(false).json();
            logs.flatten_event(true).with_span_list(false).with_writer(move || sink.clone()).finish().into()
        })
    }

    fn into(subscriber: impl FnOnce(Sink) -> Dispatch) -> Self {
        LazyLock::force(&SECOND);
        let sink = Sink::default();
        let guard = tracing::dispatcher::set_default(&subscriber(sink.clone()));
        Self { sink, _guard: guard }
    }

    /// Returns all that was logged.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.sink.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Returns the lines that have this text.
    #[must_use]
    pub fn with(&self, text: &str) -> Vec<String> {
        self.text().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}
