//! The pauses of the intake while a breaker is open: only the invocation that was granted its claim pauses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::clock::Timestamp;
use crate::engine::asker::Asker;
use crate::error::{Chain, Error, ErrorKind};
use crate::intake::{self, Paused};
use crate::invocation_time::time_until;
use crate::limits::{INTAKE_AGAIN_MS, INTAKE_CALLS_MAX_MS, INTAKE_RESUME_MAX_MS};
use crate::panics::Caught;
use crate::protocol::breaker::pause_for;

/// What a process knows of the pause of its intake.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    /// When it comes back.
    back: Mutex<Option<Timestamp>>,
    warned: AtomicBool,
}

impl Pauses {
    /// Returns when the intake comes back that is paused now.
    pub(crate) fn back(&self, now: Timestamp) -> Option<Timestamp> {
        self.back.lock().unwrap_or_else(PoisonError::into_inner).filter(|back| *back > now)
    }

    /// Takes note of when it comes back, as the record tells.
    pub(crate) fn learn(&self, back: Option<Timestamp>) {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = back;
    }

    /// Forgets this return, and no other one.
    fn forget(&self, known: Timestamp) {
        self.back.lock().unwrap_or_else(PoisonError::into_inner).take_if(|back| *back == known);
    }

    /// Pauses the intake of the invocation that has opened the breaker, or failed a probe, for the `attempt`th time. Returns whether it did:
    /// one that is paused already comes back when it does.
    pub(crate) async fn pause(&self, asker: Asker<'_>, downstream: &str, attempt: u32) -> bool {
        let now = asker.clock.now();
        let (Some(intake), Some(pause)) = (asker.intake, pause_for(attempt)) else { return false };
        if self.back(now).is_some() {
            return false;
        }
        let (until, why) = (now.plus(pause), format!("breaker {downstream} of {}", asker.consumer));
        let why = why.as_str();
        let is_asked = AtomicBool::new(false);
        let ask = || intake::pause_again(intake, until, why, &is_asked);
        match asked(asker, INTAKE_CALLS_MAX_MS, || true, ask).await {
            Ok(Some(Paused::Until(back))) => {
                tracing::warn!(consumer = %asker.consumer, downstream, attempt, until = back.to_utc(), "intake paused: it is switched on again at that time, or when the breaker closes");
                self.learn(Some(back));
                true
            }
            Ok(_) => false,
            Err(error) => {
                self.warn(asker, downstream, "intake not paused: messages are held back in their invocations", &error);
                false
            }
        }
    }

    /// Switches the intake on again that is paused, while the breaker is closed. Where that fails, it comes back when it does.
    pub(crate) async fn resume(&self, asker: Asker<'_>, downstream: &str, is_closed: impl Fn() -> bool) {
        let (Some(intake), Some(back)) = (asker.intake, self.back(asker.clock.now())) else { return };
        match asked(asker, INTAKE_RESUME_MAX_MS, is_closed, || intake::resume(intake)).await {
            Ok(Some(resumed)) => {
                self.forget(back);
                if resumed {
                    tracing::info!(consumer = %asker.consumer, downstream, "intake resumed");
                }
            }
            // It has opened again, and the intake is paused still.
            Ok(None) => {}
            Err(error) => self.warn(asker, downstream, "intake not resumed: it is at its planned time", &error),
        }
    }

    /// Warns of a missing permission once.
    fn warn(&self, asker: Asker<'_>, downstream: &str, what: &str, error: &Error) {
        if error.kind() != ErrorKind::Refused || !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(consumer = %asker.consumer, downstream, error = %Chain(error), "{what}");
        }
    }
}

/// Asks something of the intake, for so long at most; half of the time that is left is for what follows. What fails for the moment, as while
/// a mapping is still changing, is asked for again, each time with a new look: a person may have switched it off meanwhile. `None` once it is
/// not wanted any more.
async fn asked<T, F: Future<Output = Result<T, Error>>>(
    asker: Asker<'_>,
    most_ms: u64,
    is_wanted: impl Fn() -> bool,
    ask: impl Fn() -> F,
) -> Result<Option<T>, Error> {
    let most = (time_until(asker.by) / 2).min(Duration::from_millis(most_ms));
    let (by, again) = (Instant::now() + most, Duration::from_millis(INTAKE_AGAIN_MS));
    while is_wanted() {
        let asked = Caught::new(|| Box::pin(ask()), || Err(Error::new("what lets messages in panicked")));
        match timeout_at(by, asked).await {
            Ok(Err(error)) if error.kind() == ErrorKind::Unavailable && time_until(by) > again => sleep(again).await,
            Ok(answer) => return answer.map(Some),
            Err(_) => {
                let late = format!("no answer within {} ms", most.as_millis());
                return Err(Error::new(late).of_kind(ErrorKind::Unavailable));
            }
        }
    }
    Ok(None)
}
