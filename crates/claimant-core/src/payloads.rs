//! Payloads that are kept outside of their messages, which only point to them.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::attributes::AttributeValue;
use crate::error::Error;
use crate::message::Message;
use crate::queue::Confirmation;
use crate::rejection::Rejection;

/// Fetches payloads that messages only point to: for [`Consumer::large_payloads`](crate::Consumer::large_payloads).
///
/// The engine asks for the pointers of a batch's messages first, then fetches before anything is decoded, in the first quarter of
/// the invocation's time. A panic in [`pointer`](Self::pointer) rejects the message alone, one in [`fetch`](Self::fetch) leaves it in its
/// queue, and one in [`remove`](Self::remove) leaves the payload where it is.
///
/// What [`room_bytes`](Self::room_bytes), [`payload_max_bytes`](Self::payload_max_bytes), [`concurrency`](Self::concurrency) and
/// [`removes`](Self::removes) return is fixed, and they must not panic.
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
    /// is bounded: what has been received most has its room first. A fetch that fails gives it back.
    ///
    /// # Errors
    /// When the payload cannot be had, now or ever: see [`FetchError`].
    fn fetch<'a>(
        &'a self,
        pointer: &'a Pointer,
        room: &'a Room,
        within: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, FetchError>>;

    /// Returns how many bytes of payloads one batch may have in memory.
    fn room_bytes(&self) -> usize;

    /// Returns how many bytes the largest payload has that is fetched: so much room is left for those that come first and whose size is
    /// not known yet. Unless implemented, all of the [room](Self::room_bytes).
    fn payload_max_bytes(&self) -> usize {
        self.room_bytes()
    }

    /// Returns how many payloads one batch may fetch at once.
    fn concurrency(&self) -> usize;

    /// Returns whether payloads are removed once the queue has confirmed that their messages are deleted.
    fn removes(&self) -> bool {
        false
    }

    /// Removes a payload: [`Confirmation::Confirmed`] once it is gone. Called only where it [removes](Self::removes) them.
    fn remove<'a>(&'a self, pointer: &'a Pointer, within: Duration) -> BoxFuture<'a, Confirmation> {
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
    fn write<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Written, Error>>;
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

/// How many more bytes of payloads a batch may have in memory, as one of its fetches sees it: each has its turn, in the order of the
/// batch's fetches.
#[derive(Debug)]
pub struct Room {
    shared: watch::Sender<Shared>,
    turn: usize,
    wait_max: Duration,
    taken: AtomicUsize,
}

/// What the fetches of a batch share.
#[derive(Debug)]
struct Shared {
    left_bytes: usize,
    payload_max_bytes: usize,
    /// The turns of the fetches that have neither taken room nor ended, with what they ask for once they know it.
    waiting: BTreeMap<usize, Option<usize>>,
}

impl Shared {
    /// Returns whether this turn need not wait: what is left holds it and all before it, as large as those may be; or there are none.
    fn admits(&self, turn: usize, bytes: usize) -> bool {
        let mut before =
            self.waiting.range(..turn).map(|(_, asked)| asked.unwrap_or(self.payload_max_bytes)).peekable();
        before.peek().is_none() || before.fold(bytes, usize::saturating_add) <= self.left_bytes
    }
}

impl Room {
    /// Returns room for this many bytes, for one fetch.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let shared = Shared { left_bytes: bytes, payload_max_bytes: bytes, waiting: BTreeMap::new() };
        Self { shared: watch::Sender::new(shared), turn: 0, wait_max: Duration::ZERO, taken: AtomicUsize::new(0) }
    }

    /// Returns what each of so many fetches from this source has to take its part of its room, in their order. Each waits for those
    /// before it for this time at most, until they know their size.
    pub(crate) fn of_each(
        source: &dyn PayloadSource,
        fetches: usize,
        wait_max: Duration,
    ) -> impl Iterator<Item = Self> {
        let waiting = (0..fetches).map(|turn| (turn, None)).collect();
        let (left_bytes, payload_max_bytes) = (source.room_bytes(), source.payload_max_bytes());
        let shared = watch::Sender::new(Shared { left_bytes, payload_max_bytes, waiting });
        (0..fetches).map(move |turn| Self { shared: shared.clone(), turn, wait_max, taken: AtomicUsize::new(0) })
    }

    /// Takes room for a payload of this size, once its size is known and before it is read. Where there may be too little for those
    /// before it as well, it waits until they have theirs or have ended; for those of unknown size half a second at most, since one that
    /// hangs would hold up all others.
    ///
    /// # Errors
    /// [`FetchError::NoRoom`] when there is too little left.
    pub async fn take(&self, bytes: usize) -> Result<(), FetchError> {
        let turn = self.turn;
        self.shared.send_modify(|shared| {
            shared.waiting.insert(turn, Some(bytes));
        });
        let mut changes = self.shared.subscribe();
        let in_time = timeout(self.wait_max, changes.wait_for(|shared| shared.admits(turn, bytes))).await.is_ok();
        if !in_time {
            // Those that were waited for in vain are waited for no more. The others have asked: each takes its room or ends.
            self.shared.send_modify(|shared| shared.waiting.retain(|other, asked| *other >= turn || asked.is_some()));
            // OK to ignore: the sender is here.
            drop(changes.wait_for(|shared| shared.admits(turn, bytes)).await);
        }
        let mut has_room = false;
        self.shared.send_modify(|shared| {
            shared.waiting.remove(&turn);
            if let Some(left) = shared.left_bytes.checked_sub(bytes) {
                (shared.left_bytes, has_room) = (left, true);
                self.taken.fetch_add(bytes, Ordering::Relaxed);
            }
        });
        if has_room { Ok(()) } else { Err(FetchError::NoRoom) }
    }

    /// Ends the fetch: without its payload, it gives back what it took.
    pub(crate) fn end(self, is_fetched: bool) {
        let unused = if is_fetched { 0 } else { self.taken.into_inner() };
        self.shared.send_modify(|shared| {
            shared.waiting.remove(&self.turn);
            shared.left_bytes += unused;
        });
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

    #[tokio::test(start_paused = true)]
    async fn room_is_taken_whole_or_not_at_all() {
        let room = Room::new(10);
        let taken = [room.take(4).await, room.take(7).await, room.take(6).await];
        assert_eq!(taken, [Ok(()), Err(FetchError::NoRoom), Ok(())]);
        assert_eq!((room.take(1).await, room.take(0).await), (Err(FetchError::NoRoom), Ok(())));
    }

    /// What has room for so many bytes, and payloads of up to four.
    struct Shelf(usize);

    impl PayloadSource for Shelf {
        fn pointer(&self, _: &Message) -> Result<Option<Pointer>, Rejection> {
            Ok(None)
        }

        fn fetch<'a>(&'a self, _: &'a Pointer, _: &'a Room, _: Duration) -> BoxFuture<'a, Result<Vec<u8>, FetchError>> {
            Box::pin(std::future::ready(Err(FetchError::NoRoom)))
        }

        fn room_bytes(&self) -> usize {
            self.0
        }

        fn payload_max_bytes(&self) -> usize {
            4
        }

        fn concurrency(&self) -> usize {
            1
        }
    }

    const WAIT_MAX: Duration = Duration::from_millis(500);

    fn rooms(bytes: usize, fetches: usize) -> Vec<Room> {
        Room::of_each(&Shelf(bytes), fetches, WAIT_MAX).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_is_waited_for_once_and_only_where_room_is_short() {
        let rooms = rooms(10, 4);
        let start = tokio::time::Instant::now();
        assert_eq!(rooms[1].take(4).await, Ok(()));
        assert_eq!(start.elapsed(), Duration::ZERO, "four are left for the first");
        for room in &rooms[2..] {
            assert_eq!(room.take(3).await, Ok(()));
            assert_eq!(start.elapsed().as_millis() / 10, WAIT_MAX.as_millis() / 10);
        }
        assert_eq!(rooms[0].take(1).await, Err(FetchError::NoRoom));
        let mut rooms = rooms.into_iter();
        rooms.nth(1).unwrap().end(false);
        assert_eq!(rooms.next().unwrap().take(4).await, Ok(()), "what was given back");
    }

    #[tokio::test(start_paused = true)]
    async fn those_behind_one_that_hangs_keep_their_order() {
        let rooms = rooms(4, 4);
        let late = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            rooms[1].take(4).await
        };
        let taken = tokio::join!(rooms[2].take(1), rooms[3].take(1), late);
        assert_eq!(taken, (Err(FetchError::NoRoom), Err(FetchError::NoRoom), Ok(())));
    }
}
