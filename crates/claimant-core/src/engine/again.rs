//! Messages that come back later than a queue can hide them: a schedule sends each to its queue again. Their claims are settled by then, and
//! only a confirmed schedule makes a message a success. A process that dies in between leaves the message where it is.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff;
use crate::clock::Timestamp;
use crate::key::MessageId;
use crate::limits::VISIBILITY_MAX_S;
use crate::message::Message;
use crate::queue::{Queue, SendAgain, confirmed};
use crate::report::{Entry, Outcome};

/// Which messages of an invocation are sent again: whether the schedule of each was confirmed.
#[derive(Default)]
pub(crate) struct SentAgain(BTreeMap<MessageId, bool>);

impl SentAgain {
    /// Schedules those of these messages of a batch that are to be sent again, one entry for each, until `by`. Where a queue delivered one
    /// twice, once.
    pub(crate) async fn of(
        entries: &[Entry],
        batch: &[Message],
        queue: &dyn Queue,
        now: Timestamp,
        by: Instant,
    ) -> Self {
        let (mut sent, mut messages) = (Self::default(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let Some(after) = after(entry) else { continue };
            if sent.0.insert(entry.message_id.clone(), false).is_none() {
                messages.push(SendAgain { index, at: now.plus(after), after });
            }
        }
        if messages.is_empty() {
            return sent;
        }
        let confirmed = confirmed(messages.len(), by, |within| queue.send_again(&messages, within)).await;
        for (SendAgain { index, at, .. }, confirmed) in messages.iter().zip(confirmed) {
            let message_id = &entries[*index].message_id;
            if confirmed {
                // The record of its key has that one.
                let first = batch.get(*index).map(Message::first_id).filter(|first| first != message_id);
                let first_message_id = first.as_ref().map(tracing::field::display);
                tracing::info!(message_id = %message_id, first_message_id, at = at.to_utc(), "message is scheduled to be sent to its queue again");
                sent.0.insert(message_id.clone(), true);
            } else {
                tracing::warn!(message_id = %message_id, "message is not known to be scheduled: it comes back after the longest time that a queue can hide it, or after the queue's visibility timeout, unless it is dead-lettered after this receive");
            }
        }
        sent
    }

    /// Gives these messages, or events of them, the outcome that they have by that.
    pub(crate) fn note(&self, entries: &mut [Entry]) {
        for entry in entries.iter_mut().filter(|entry| after(entry).is_some()) {
            match self.0.get(&entry.message_id) {
                Some(true) => (entry.outcome, entry.visible_after) = (Outcome::Scheduled, None),
                _ => entry.visible_after = Some(Duration::from_secs(VISIBILITY_MAX_S)),
            }
        }
    }
}

/// Returns after how long the message of an entry is to be sent again, where no queue can hide it for so long.
fn after(entry: &Entry) -> Option<Duration> {
    entry.visible_after.filter(|after| entry.outcome == Outcome::Retry && backoff::is_long(*after))
}
