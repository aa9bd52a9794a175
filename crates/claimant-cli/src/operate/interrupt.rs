//! Ctrl-C, at which a command ends in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::exit::EXIT_INTERRUPTED;
use crate::output::note;

/// Whether the command is to end: set by the first Ctrl-C. At the second the process ends.
pub(crate) struct Stop {
    asked: watch::Receiver<bool>,
    /// Whether a question stands: to end is then no news.
    at_question: Arc<AtomicBool>,
}

impl Stop {
    /// Begins to listen. The first Ctrl-C says this.
    pub(crate) fn listen(ending: &'static str) -> Self {
        let (ask, asked) = watch::channel(false);
        let at_question = Arc::<AtomicBool>::default();
        let stands = Arc::clone(&at_question);
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                let says = if stands.load(Ordering::SeqCst) { String::new() } else { format!("\n{ending}") };
                note(says);
                ask.send_replace(true);
            }
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(EXIT_INTERRUPTED.into());
            }
        });
        Self { asked, at_question }
    }

    pub(crate) fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Waits for the answer to a question; `None` where Ctrl-C comes first.
    pub(crate) async fn or_answer<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        self.at_question.store(true, Ordering::SeqCst);
        let answer = self.or(answer).await;
        self.at_question.store(false, Ordering::SeqCst);
        answer
    }

    /// Waits for work to end; `None` where Ctrl-C has come, or comes first.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.until_asked() => None,
            done = work => Some(done),
        }
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn until_asked(&self) {
        // Where nothing listens, nothing stops it.
        if self.asked.clone().wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
