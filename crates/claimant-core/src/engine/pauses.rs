//! The pauses of the intake while a breaker is open: by whoever was granted its claim, and by nobody else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::asker::Asker;
use crate::clock::Timestamp;
use crate::deadline::until;
use crate::error::{Chain, Error, ErrorKind};
use crate::intake::{self, Intake, Paused};
use crate::limits::{INTAKE_CALLS_MAX_MS, INTAKE_RESUME_AGAIN_MS, INTAKE_RESUME_MAX_MS};
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

    /// Pauses the intake of whoever has opened the breaker, or failed a probe, for the `attempt`th time. Returns whether it did:
    /// one that is paused already comes back when it does.
    pub(crate) async fn pause(&self, asker: Asker<'_>, downstream: &str, attempt: u32) -> bool {
        let now = asker.clock.now();
        let (Some(intake), Some(pause)) = (asker.intake, pause_for(attempt)) else { return false };
        if self.back(now).is_some() {
            return false;
        }
        let why = format!("breaker {downstream} of {}", asker.consumer);
        let most = most(asker, INTAKE_CALLS_MAX_MS);
        match within(most, intake::pause(intake, now.plus(pause), &why)).await {
            Ok(Paused::Until(back)) => {
                tracing::warn!(consumer = %asker.consumer, downstream, attempt, until = back.to_utc(), "intake paused: it is switched on again at that time, or when the breaker closes");
                self.learn(Some(back));
                true
            }
            Ok(Paused::WasOff) => false,
            Err(error) => {
                self.warn(asker, downstream, "intake not paused: messages are held back in their invocations", &error);
                false
            }
        }
    }

    /// Switches the intake on again that is paused, now that the breaker is closed. Where that fails, it comes back when it does.
    pub(crate) async fn resume(&self, asker: Asker<'_>, downstream: &str) {
        let (Some(intake), Some(_)) = (asker.intake, self.back(asker.clock.now())) else { return };
        let most = most(asker, INTAKE_RESUME_MAX_MS);
        match within(most, resumed(intake, Instant::now() + most)).await {
            Ok(resumed) => {
                self.learn(None);
                if resumed {
                    tracing::info!(consumer = %asker.consumer, downstream, "intake resumed");
                }
            }
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

/// Resumes the intake. What fails for the moment, as while it is still being switched off, is tried again until then, each time with a new
/// look: a person may have switched it off meanwhile.
async fn resumed(intake: &dyn Intake, by: Instant) -> Result<bool, Error> {
    let again = Duration::from_millis(INTAKE_RESUME_AGAIN_MS);
    loop {
        match intake::resume(intake).await {
            Err(error) if error.kind() == ErrorKind::Unavailable && until(by) > again => sleep(again).await,
            answer => return answer,
        }
    }
}

/// Returns how long the intake is waited for; half of the time that is left is for what follows.
fn most(asker: Asker<'_>, most_ms: u64) -> Duration {
    (until(asker.by) / 2).min(Duration::from_millis(most_ms))
}

async fn within<T>(most: Duration, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = || Error::new(format!("no answer within {} ms", most.as_millis())).of_kind(ErrorKind::Unavailable);
    timeout(most, asked).await.unwrap_or_else(|_| Err(late()))
}
