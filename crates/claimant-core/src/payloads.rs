//! Payloads that are kept outside of their messages, which only point to them.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::attributes::AttributeValue;
use crate::error::Error;
use crate::message::Message;
use crate::queue::Confirmation;
use crate::rejection::Rejection;

/// What the methods of a [`PayloadSource`] return: object safe, as for stores.
pub type FetchFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Fetches payloads that messages only point to: for [`Consumer::large_payloads`](crate::Consumer::large_payloads).
///
/// The engine asks for the pointers of a batch's messages first, then fetches before anything is decoded, in the first quarter of
/// the invocation's time. A panic in [`pointer`](Self::pointer) rejects the message alone, one in [`fetch`](Self::fetch) leaves it in its
/// queue, and one in [`remove`](Self::remove) leaves the payload where it is.
///
/// Futures are cancel safe: one that is dropped either took effect or did not.
pub trait PayloadSource: Send + Sync + 'static {
    /// Returns where the payload of a message is; `None` where the message's [`content`](Message::content) is the payload.
    ///
    /// # Errors
    /// When the content is a pointer that is wrong, or that points to where nothing may be fetched from: the message is rejected.
    /// The error says what is wrong and where, and quotes nothing.
    fn pointer(&self, message: &Message) -> Result<Option<Pointer>, Rejection>;

    /// Fetches a payload within this time. It takes the bytes from `room` before it reads them, so that what a batch has in memory
    /// is bounded.
    ///
    /// # Errors
    /// When the payload cannot be had, now or ever: see [`FetchError`].
    fn fetch<'a>(
        &'a self,
        pointer: &'a Pointer,
        room: &'a Room,
        within: Duration,
    ) -> FetchFuture<'a, Result<Vec<u8>, FetchError>>;

    /// Returns how many bytes of payloads one batch may have in memory.
    fn room_bytes(&self) -> usize;

    /// Returns how many payloads one batch may fetch at once.
    fn concurrency(&self) -> usize;

    /// Returns whether payloads are removed once the queue has confirmed that their messages are deleted.
    fn removes(&self) -> bool {
        false
    }

    /// Removes a payload: [`Confirmation::Confirmed`] once it is gone. Called only where it [removes](Self::removes) them.
    fn remove<'a>(&'a self, pointer: &'a Pointer, within: Duration) -> FetchFuture<'a, Confirmation> {
        let _ = (pointer, within);
        Box::pin(std::future::ready(Confirmation::Unconfirmed))
    }
}

/// Writes payloads outside of their messages: for a producer.
pub trait PayloadSink: Send + Sync + 'static {
    /// Writes a payload under a new name, and returns the message that points to it. A producer waits for 20 s at most, at each try.
    ///
    /// Cancel safe, but for a payload that no message points to.
    ///
    /// # Errors
    /// When it is not confirmed: [`Refused`](crate::ErrorKind::Refused) where another try is of no use.
    fn write<'a>(&'a self, payload: &'a [u8]) -> FetchFuture<'a, Result<Written, Error>>;
}

/// The message that points to a payload.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Written {
    /// Its body.
    pub body: String,
    /// The name of the attribute that goes with it.
    pub attribute: String,
    /// The value of that attribute.
    pub value: AttributeValue,
}

impl Written {
    /// Returns the message with this body and this attribute.
    #[must_use]
    pub fn new(body: impl Into<String>, attribute: impl Into<String>, value: AttributeValue) -> Self {
        Self { body: body.into(), attribute: attribute.into(), value }
    }
}

/// Where a payload is.
///
/// No field of it reaches a log: its sender chose it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pointer {
    /// What it is kept in, such as a bucket.
    pub container: String,
    /// Its name there.
    pub name: String,
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pointer").finish_non_exhaustive()
    }
}

/// How many more bytes of payloads a batch may have in memory.
#[derive(Debug)]
pub struct Room(AtomicUsize);

impl Room {
    /// Returns room for this many bytes.
    #[must_use]
    pub const fn new(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    /// Takes room for a payload of this size, once its size is known and before it is read.
    ///
    /// # Errors
    /// [`FetchError::NoRoom`] when there is too little left.
    pub fn take(&self, bytes: usize) -> Result<(), FetchError> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map(|_| ()).map_err(|_| FetchError::NoRoom)
    }
}

/// Why a payload was not fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchError {
    /// It never can be: the message is rejected.
    Rejected(Rejection),
    /// It could not be now, for this reason, which quotes nothing of the message: the message stays in its queue.
    Unavailable(String),
    /// The payloads of the batch's other messages leave no room for it: the message has its turn in a later batch.
    NoRoom,
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Unavailable(why) => f.write_str(why),
            Self::NoRoom => f.write_str("the payloads of other messages of the batch leave no room for it"),
        }
    }
}

impl StdError for FetchError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_whole_or_not_at_all() {
        let room = Room::new(10);
        assert_eq!([room.take(4), room.take(7), room.take(6)], [Ok(()), Err(FetchError::NoRoom), Ok(())]);
        assert_eq!((room.take(1), room.take(0)), (Err(FetchError::NoRoom), Ok(())));
    }
}
