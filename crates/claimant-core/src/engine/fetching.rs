//! Payloads that messages only point to: fetched before they are read, and removed when their messages are done.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::time::{Instant, timeout};

use super::invocation::Part;
use super::unpacking::{Unpacking, content_bytes};
use crate::deadline::{Schedule, until};
use crate::key::ConsumerName;
use crate::limits::{DEAD_LETTERS_BATCH_MAX, FETCH_PART, REMOVALS_MAX, ROOM_TURN_MAX_MS, ROOM_TURN_PART};
use crate::message::Message;
use crate::payloads::{FetchError, PayloadSource, Pointer, Room};
use crate::queue::{Confirmation, Queue};
use crate::reader::{Located, Reader};
use crate::rejection::Rejection;
use crate::report::{Outcome, Report};

/// Why a message's content is not there to be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    /// No retry can fix it.
    Rejected(Rejection),
    /// Its payload could not be fetched now.
    FetchFailed,
    /// Its payload was not fetched, for lack of time or room.
    NotStarted,
    /// There is none: its envelope holds no event.
    Empty,
}

/// A message of the batch.
pub(crate) struct Fetched {
    pub(crate) message: Message,
    /// What is in its outer envelopes, with the contents; or why they are not there.
    pub(crate) content: Result<Vec<Message>, Unread>,
    /// Where its payload is, if not in the message.
    pointer: Option<Pointer>,
}

/// Returns the messages of a batch with their contents. Without a source of payloads, that is what was delivered.
pub(crate) async fn fetched(
    reader: &Reader,
    name: &ConsumerName,
    batch: &[Message],
    schedule: Schedule,
    unpacking: &mut Unpacking<'_>,
) -> Vec<Fetched> {
    let delivered =
        |message: &Message| Fetched { message: message.clone(), content: Ok(vec![message.clone()]), pointer: None };
    let mut all: Vec<_> = batch.iter().map(delivered).collect();
    let Some(source) = reader.payloads() else { return all };
    // Those with the most receives first, as in the lanes, and they have their room first: what finds none is not passed over for ever.
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| Reverse(all[*index].message.receive_count()));
    for index in &order {
        let (message, one) = (&batch[*index], &mut all[*index]);
        if !unpacking.has_time(message) {
            one.content = Err(Unread::NotStarted);
            continue;
        }
        match reader.locate(message) {
            Ok(Located::Here(events)) => {
                let has_room = unpacking.has_room(message, message.content().len(), content_bytes(&events));
                one.content = if has_room { Ok(events) } else { Err(Unread::NotStarted) };
            }
            Ok(Located::Elsewhere(message, pointer)) => {
                (one.message, one.content, one.pointer) = (message, Err(Unread::NotStarted), Some(pointer));
            }
            Err(rejection) => one.content = Err(Unread::Rejected(rejection)),
        }
    }
    let fetching = Fetching {
        source,
        name,
        // Of what is left: another consumer's part of the invocation can have come first.
        by: Instant::now() + until(schedule.cancel_at) / FETCH_PART,
    };
    let pointers: Vec<_> = order.into_iter().filter_map(|index| Some((index, all[index].pointer.clone()?))).collect();
    let wait_max = Duration::from_millis(ROOM_TURN_MAX_MS).min(until(fetching.by) / ROOM_TURN_PART);
    let rooms = Room::of_each(source, pointers.len(), wait_max);
    let fetches = pointers.into_iter().zip(rooms).map(|((index, pointer), room)| {
        let (fetching, message) = (&fetching, &batch[index]);
        async move {
            let content = fetching.fetch(message, &pointer, &room).await;
            room.end(content.is_ok());
            (index, content)
        }
    });
    let contents: Vec<_> = stream::iter(fetches).buffer_unordered(source.concurrency().max(1)).collect().await;
    for (index, content) in contents {
        let fetched = &mut all[index];
        fetched.content = content.map(|content| vec![fetched.message.clone().unpacked(content)]);
    }
    all
}

/// One batch's fetches.
struct Fetching<'a> {
    source: &'a dyn PayloadSource,
    name: &'a ConsumerName,
    /// When the last of them ends: the rest of the time is for the work.
    by: Instant,
}

impl Fetching<'_> {
    async fn fetch(&self, message: &Message, pointer: &Pointer, room: &Room) -> Result<Vec<u8>, Unread> {
        let within = until(self.by);
        if within.is_zero() {
            return Err(Unread::NotStarted);
        }
        let unavailable = |why: &str| Err(FetchError::Unavailable(why.to_owned()));
        // In a future of its own, since the call can panic before it returns one.
        let fetch = async { self.source.fetch(pointer, room, within).await };
        let content = match timeout(within, AssertUnwindSafe(fetch).catch_unwind()).await {
            Ok(Ok(content)) => content,
            Ok(Err(_)) => unavailable("fetching it panicked"),
            Err(_) => unavailable("there was no answer in time"),
        };
        match content {
            Ok(content) => Ok(content),
            Err(FetchError::Rejected(rejection)) => Err(Unread::Rejected(rejection)),
            Err(FetchError::NoRoom) => {
                tracing::info!(consumer = %self.name, message_id = %message.id(), "message waits for a later batch: the payloads of this one fill the memory that they may take; smaller batches need not wait");
                Err(Unread::NotStarted)
            }
            Err(error @ FetchError::Unavailable(_)) => {
                tracing::warn!(consumer = %self.name, message_id = %message.id(), reason = %error, "the payload of a message could not be fetched: it stays in its queue");
                Err(Unread::FetchFailed)
            }
        }
    }
}

/// Where the payloads of a batch's messages are, by their indexes: those that are to be removed when their messages are done.
pub(crate) type Removable = Vec<(usize, Pointer)>;

/// Returns the payloads that are to be removed.
pub(crate) fn removable(reader: &Reader, fetched: &[Fetched]) -> Removable {
    if !reader.payloads().is_some_and(|source| source.removes()) {
        return Vec::new();
    }
    let of = |(index, fetched): (usize, &Fetched)| Some((index, fetched.pointer.clone()?));
    fetched.iter().enumerate().filter_map(of).collect()
}

/// Removes the payloads of messages that are completed: the message first, and its payload only once the queue has confirmed that
/// the message is gone. What is redelivered would find no payload otherwise, and be rejected though it is done.
pub(crate) async fn remove_finished(
    reader: &Reader,
    removable: Removable,
    report: &Report,
    part: &Part<'_>,
    return_by: Instant,
) {
    let Some(source) = reader.payloads() else { return };
    let finished = finished(removable, report, part);
    let (total, removed) = (finished.len(), remove(source, &finished, part, return_by).await);
    if removed < total {
        tracing::warn!(
            payloads = total - removed,
            "payloads of completed messages were not removed, since their deletion, or that of their messages, was not confirmed: a rule that lets them expire removes them"
        );
    }
}

/// Returns what may be removed: of messages whose own work is completed, where no other message of the batch needs the same payload
/// and no other copy of the message failed. A dead letter is a copy of its message: it still points to its payload. So does a message
/// of several events, which none of them ends.
fn finished(removable: Removable, report: &Report, part: &Part<'_>) -> Vec<(usize, Pointer)> {
    let failed: HashSet<_> = report.failures().into_iter().collect();
    let done = |index: usize| {
        let entry = report.entries().get(index);
        entry.is_some_and(|entry| {
            matches!(entry.outcome, Outcome::Completed | Outcome::Duplicate)
                && !failed.contains(&entry.message_id)
                && part.is_whole(index)
        })
    };
    let (finished, kept): (Vec<_>, Vec<_>) = removable.into_iter().partition(|(index, _)| done(*index));
    let kept: HashSet<_> = kept.into_iter().map(|(_, pointer)| pointer).collect();
    finished.into_iter().filter(|(_, pointer)| !kept.contains(pointer)).collect()
}

/// Returns how many are removed, of which each is confirmed.
async fn remove(
    source: &dyn PayloadSource,
    finished: &[(usize, Pointer)],
    queue: &dyn Queue,
    return_by: Instant,
) -> usize {
    let delete = |chunk: &[(usize, Pointer)]| {
        let chunk = chunk.to_vec();
        async move {
            let indexes: Vec<_> = chunk.iter().map(|(index, _)| *index).collect();
            let gone = confirmed(return_by, |_| queue.delete(&indexes)).await;
            (chunk, gone)
        }
    };
    let chunks: Vec<_> = finished.chunks(DEAD_LETTERS_BATCH_MAX).map(delete).collect();
    let deleted: Vec<_> = stream::iter(chunks).buffer_unordered(REMOVALS_MAX).collect().await;
    let (gone, left): (Vec<_>, Vec<_>) = deleted.into_iter().partition(|(_, gone)| *gone);
    // A copy that may come back needs the payload that it shares with one that is gone.
    let needed: HashSet<_> = left.into_iter().flat_map(|(chunk, _)| chunk).map(|(_, pointer)| pointer).collect();
    let unneeded = gone.into_iter().flat_map(|(chunk, _)| chunk).filter(|(_, pointer)| !needed.contains(pointer));
    let removals = unneeded
        .map(|(_, pointer)| async move { confirmed(return_by, |within| source.remove(&pointer, within)).await });
    stream::iter(removals).buffer_unordered(REMOVALS_MAX).filter(|gone| std::future::ready(*gone)).count().await
}

/// Calls, unless no time is left, and returns whether that was confirmed in time. Calls wait for each other: the time that is left is
/// that of each when it begins. A panic confirms nothing: the work is done, and its report is due.
async fn confirmed<F: Future<Output = Confirmation>>(return_by: Instant, call: impl FnOnce(Duration) -> F) -> bool {
    let within = until(return_by);
    let called = AssertUnwindSafe(async { call(within).await }).catch_unwind();
    !within.is_zero() && matches!(timeout(within, called).await, Ok(Ok(Confirmation::Confirmed)))
}
