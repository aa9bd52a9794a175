//! Payloads that messages only point to: fetched before they are read.

use std::cmp::Reverse;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, timeout};

use super::unpacking::{Unpacking, content_bytes};
use crate::invocation_time::{InvocationTime, time_until};
use crate::key::ConsumerName;
use crate::limits::{FETCH_PART, ROOM_TURN_MAX_MS, ROOM_TURN_PART};
use crate::message::Message;
use crate::panics::Caught;
use crate::payloads::{FetchError, PayloadSource, Pointer, Room};
use crate::reader::{Located, Reader};
use crate::rejection::Rejection;

/// What errors call a payload that was fetched.
const PAYLOAD: &str = "the payload that the message points to";

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
    pub(crate) pointer: Option<Pointer>,
}

/// Returns the messages of a batch with their contents. Without a source of payloads, that is what was delivered.
pub(crate) async fn fetched(
    reader: &Reader,
    name: &ConsumerName,
    batch: &[Message],
    time: InvocationTime,
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
        by: Instant::now() + time_until(time.cancel_at) / FETCH_PART,
    };
    let pointers: Vec<_> = order.into_iter().filter_map(|index| Some((index, all[index].pointer.clone()?))).collect();
    let wait_max = Duration::from_millis(ROOM_TURN_MAX_MS).min(time_until(fetching.by) / ROOM_TURN_PART);
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
        let with = |payload: Vec<u8>| fetched.message.clone().unpacked(payload).with_content_name(PAYLOAD);
        fetched.content = content.map(|content| vec![with(content)]);
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
        let within = time_until(self.by);
        if within.is_zero() {
            return Err(Unread::NotStarted);
        }
        let unavailable = |why: &str| Err(FetchError::Unavailable(why.to_owned()));
        let fetch = Caught::new(|| self.source.fetch(pointer, room, within), || unavailable("fetching it panicked"));
        match timeout(within, fetch).await.unwrap_or_else(|_| unavailable("there was no answer in time")) {
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
