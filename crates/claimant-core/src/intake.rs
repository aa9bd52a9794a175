//! What lets messages into a function: it is paused only where it comes back by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::limits::INTAKE_LATE_MS;

/// What lets a queue's messages into the function. [`pause`] and [`resume`] put its parts together; what they ask for can be lost,
/// come late or twice, and end with their process anywhere. An error of [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) says that the
/// same can succeed later, as while a change before it is under way: then all of it is tried again.
pub trait Intake: Send + Sync {
    /// Returns whether messages are let in, or are about to be.
    ///
    /// # Errors
    /// When this cannot be found out.
    fn is_on(&self) -> BoxFuture<'_, Result<bool, Error>>;

    /// Has it switched on at this time, whatever becomes of this process. `why` is for people. The same time again changes nothing.
    ///
    /// # Errors
    /// When this is not confirmed; it may be planned all the same.
    fn plan_return<'a>(&'a self, at: Timestamp, why: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns whether there is a planned return that is still to come: who switched it off then was no person.
    ///
    /// # Errors
    /// When this cannot be found out.
    fn has_return(&self) -> BoxFuture<'_, Result<bool, Error>>;

    /// Switches it off: before this time or not at all, however late the request arrives. Nothing is asked where
    /// [`is_early_enough`] says no at the time that the request bears.
    ///
    /// # Errors
    /// When this is not confirmed; it may be off all the same.
    fn switch_off(&self, before: Timestamp) -> BoxFuture<'_, Result<(), Error>>;

    /// Switches it on.
    ///
    /// # Errors
    /// When this is not confirmed; it may be on all the same.
    fn switch_on(&self) -> BoxFuture<'_, Result<(), Error>>;
}

/// What became of an intake that was to be paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// It is off until then.
    Until(Timestamp),
    /// It was off already: by a person, or with a return of its own. Nothing was changed.
    WasOff,
}

/// Returns whether a request that bears the time `now` is refused once its return `before` has come: it is no longer valid
/// [`INTAKE_LATE_MS`] later. One that could be carried out after the return would leave the intake off for ever.
#[must_use]
pub fn is_early_enough(now: Timestamp, before: Timestamp) -> bool {
    now.plus(Duration::from_millis(INTAKE_LATE_MS)) < before
}

/// Pauses an intake until about this time, in whole seconds: plans its return, and switches it off only once that is confirmed.
/// One that is off already is left alone, so that nothing is switched on that a person has switched off.
///
/// Dropped at any step, it leaves the intake on, or off with a return to come.
///
/// # Errors
/// When a step is not confirmed. The intake may be off then, with its return to come.
pub async fn pause(intake: &dyn Intake, until: Timestamp, why: &str) -> Result<Paused, Error> {
    pause_again(intake, until, why, &AtomicBool::new(false)).await
}

/// Pauses an intake, perhaps not for the first time: `is_asked` tells whether a try before has asked to switch it off. One that is off then was
/// paused by that, though the answer was an error.
pub(crate) async fn pause_again(
    intake: &dyn Intake,
    until: Timestamp,
    why: &str,
    is_asked: &AtomicBool,
) -> Result<Paused, Error> {
    let until = Timestamp::from_millis(until.as_secs_rounded_up().saturating_mul(1_000));
    if !intake.is_on().await? {
        return Ok(if is_asked.load(Ordering::Relaxed) { Paused::Until(until) } else { Paused::WasOff });
    }
    intake.plan_return(until, why).await?;
    is_asked.store(true, Ordering::Relaxed);
    intake.switch_off(until).await?;
    Ok(Paused::Until(until))
}

/// Switches an intake on that has a return to come; returns whether it did. Its return stays: it then changes nothing. One that is off
/// without a return was switched off by a person, and stays off.
///
/// # Errors
/// When a step is not confirmed.
pub async fn resume(intake: &dyn Intake) -> Result<bool, Error> {
    if intake.is_on().await? || !intake.has_return().await? {
        return Ok(false);
    }
    intake.switch_on().await?;
    Ok(true)
}
