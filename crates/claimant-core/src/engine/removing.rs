//! Payloads that messages only point to, at the end of a batch: removed when their messages are done.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, timeout};

use super::fetching::Fetched;
use super::invocation::Part;
use crate::invocation_time::time_until;
use crate::limits::{DELETIONS_TOGETHER, REMOVALS_MAX};
use crate::panics::Caught;
use crate::payloads::{PayloadSource, Pointer};
use crate::queue::{Confirmation, Queue};
use crate::reader::Reader;
use crate::report::{Outcome, Report};

/// The payloads of a batch that are to be removed when their messages are done.
pub(crate) struct Removals<'a> {
    source: &'a dyn PayloadSource,
    /// Where they are, by the indexes of their messages.
    pointers: Vec<(usize, Pointer)>,
}

impl<'a> Removals<'a> {
    /// Returns those of a batch that has some.
    pub(crate) fn of(reader: &'a Reader, fetched: &[Fetched]) -> Option<Self> {
        let source = reader.payloads().filter(|source| source.removes())?;
        let of = |(index, fetched): (usize, &Fetched)| Some((index, fetched.pointer.clone()?));
        let pointers: Vec<_> = fetched.iter().enumerate().filter_map(of).collect();
        (!pointers.is_empty()).then_some(Self { source, pointers })
    }

    /// Returns whether the payload of the message with this index is removed when it is done: not that of one of several events. Such a message
    /// is not sent again: an earlier delivery of it may be done meanwhile, and what is sent would point to nothing.
    pub(crate) fn has(&self, index: usize, part: &Part<'_>) -> bool {
        part.is_whole(index) && self.pointers.iter().any(|(of, _)| *of == index)
    }

    /// Removes the payloads of messages that are completed: the message first, and its payload only once the queue has confirmed that the
    /// message is gone. What is redelivered would find no payload otherwise, and be rejected though it is done.
    pub(crate) async fn finish(self, report: &Report, part: &Part<'_>, return_by: Instant) {
        let source = self.source;
        let finished = self.finished(report, part);
        let (total, removed) = (finished.len(), remove(source, &finished, part, return_by).await);
        if removed < total {
            tracing::warn!(
                payloads = total - removed,
                "payloads of completed messages were not removed, since their deletion, or that of their messages, was not confirmed: a rule that lets them expire removes them"
            );
        }
    }

    /// Returns what may be removed: of messages whose own work is completed, where no other message of the batch needs the same payload
    /// and no other copy of the message failed. Not of dead-lettered messages: their copies still point to the payload. Not of messages with
    /// several events: no single event ends those.
    fn finished(self, report: &Report, part: &Part<'_>) -> Vec<(usize, Pointer)> {
        let failed: HashSet<_> = report.failures().into_iter().collect();
        let done = |index: usize| {
            let entry = report.entries().get(index);
            entry.is_some_and(|entry| {
                matches!(entry.outcome, Outcome::Completed | Outcome::Duplicate)
                    && !failed.contains(&entry.message_id)
                    && part.is_whole(index)
            })
        };
        let (finished, kept): (Vec<_>, Vec<_>) = self.pointers.into_iter().partition(|(index, _)| done(*index));
        let kept: HashSet<_> = kept.into_iter().map(|(_, pointer)| pointer).collect();
        finished.into_iter().filter(|(_, pointer)| !kept.contains(pointer)).collect()
    }
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
    let chunks: Vec<_> = finished.chunks(DELETIONS_TOGETHER).map(delete).collect();
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
async fn confirmed<'a>(return_by: Instant, call: impl FnOnce(Duration) -> BoxFuture<'a, Confirmation>) -> bool {
    let within = time_until(return_by);
    if within.is_zero() {
        return false;
    }
    let called = Caught::new(|| call(within), || Confirmation::Unconfirmed);
    matches!(timeout(within, called).await, Ok(Confirmation::Confirmed))
}
