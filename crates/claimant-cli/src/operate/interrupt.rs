//! Ctrl-C and SIGTERM, at which a command ends in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::exit::EXIT_INTERRUPTED;
use crate::output::note;
use crate::stop::StopSignals;

/// Of more that was not reached, only the first is named.
const NAMED_MAX: usize = 10;

/// Whether the command is to end: set by the first of the [signals](StopSignals) that stop a command. At the second the process ends.
pub(crate) struct Stop {
    asked: watch::Receiver<bool>,
    /// Whether a question stands: to end is then no news.
    at_question: Arc<AtomicBool>,
}

impl Stop {
    /// Begins to listen. The first signal says this.
    pub(crate) fn listen(ending: &'static str) -> Self {
        let (ask, asked) = watch::channel(false);
        let at_question = Arc::<AtomicBool>::default();
        let stands = Arc::clone(&at_question);
        // Where nothing can be listened to, a signal ends the process by itself.
        if let Ok(mut signals) = StopSignals::listen() {
            tokio::spawn(async move {
                signals.received().await;
                let says = if stands.load(Ordering::SeqCst) { String::new() } else { format!("\n{ending}") };
                note(says);
                ask.send_replace(true);
                signals.received().await;
                std::process::exit(EXIT_INTERRUPTED.into());
            });
        }
        Self { asked, at_question }
    }

    pub(crate) fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Waits for the answer to a question; `None` where a signal comes first.
    pub(crate) async fn or_answer<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        self.at_question.store(true, Ordering::SeqCst);
        let answer = self.or(answer).await;
        self.at_question.store(false, Ordering::SeqCst);
        answer
    }

    /// Waits for work to end; `None` where a signal has come, or comes first.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.until_asked() => None,
            done = work => Some(done),
        }
    }

    /// Waits for a signal.
    pub(crate) async fn until_asked(&self) {
        // Where nothing listens, nothing stops it.
        if self.asked.clone().wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Says what a command did not come to before it ended, in a sentence: of many the first, and how many others.
pub(crate) fn ended_before(not_reached: &[impl AsRef<str>]) -> String {
    let names: Vec<_> = not_reached.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [first, others @ ..] if names.len() > NAMED_MAX => format!("Ended before {first} and {} others.", others.len()),
        _ => format!("Ended before {}.", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_reached_is_one_short_line() {
        let names: Vec<_> = (1..=638).map(|n| n.to_string()).collect();
        assert_eq!(ended_before(&names[..3]), "Ended before 1, 2, 3.");
        assert_eq!(ended_before(&names), "Ended before 1 and 637 others.");
    }
}
