//! What the batches of one invocation share. Each consumer has its own batches; batches that run one after the other are a sequence. A
//! suspect (work that may have killed an earlier owner) runs when it has its turn, after all completed messages of the invocation were
//! deleted, of every consumer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout};

use super::guarded::GuardedQueue;
use super::turns::{Entrant, SuspectTurns};
use crate::duplicate::{SeenDuplicate, SeenDuplicates};
use crate::intake::Intake;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::queue::{Confirmation, HideAnswer, Queue};
use crate::report::{DeadLetter, Entry};
use crate::spans::{MessageSpan, MessageSpans, Span, Spans};

/// One invocation: its queue, and what of its messages is done.
pub(crate) struct Invocation<'a> {
    pub(crate) queue: GuardedQueue<'a>,
    /// How many events its messages hold, as far as routes have opened them, whichever consumer they are for.
    pub(crate) events: usize,
    turns: SuspectTurns,
    /// How many events are not done, of messages that have several.
    undone: Mutex<BTreeMap<usize, usize>>,
    /// Messages that are done, and that the queue was not asked to delete.
    done: Mutex<Vec<usize>>,
    /// What is shown of duplicates when all is settled: a hook that blocks the thread then holds up no work of others.
    duplicates: Mutex<SeenDuplicates>,
    /// Whether it could not confirm that one of them is gone.
    kept: AtomicBool,
    spans: Option<MessageSpans>,
}

impl<'a> Invocation<'a> {
    pub(crate) fn new(queue: &'a dyn Queue, events: usize) -> Self {
        let (turns, undone, done, duplicates) =
            (SuspectTurns::new(), Mutex::default(), Mutex::default(), Mutex::default());
        let queue = GuardedQueue::new(queue);
        Self { queue, events, turns, undone, done, duplicates, kept: AtomicBool::new(false), spans: None }
    }

    /// Opens the spans of its messages, if there is a system for them.
    pub(crate) fn with_spans(self, system: Option<&Arc<dyn Spans>>, batch: &[Message]) -> Self {
        Self { spans: MessageSpans::of(system, batch), ..self }
    }

    /// Ends the spans of its messages: what became of each.
    pub(crate) fn end_spans(&self, entries: &[Entry]) {
        if let Some(spans) = &self.spans {
            spans.end(entries);
        }
    }

    /// Returns an invocation whose messages have several events: each is named once for each of its events.
    pub(crate) fn of_events(queue: &'a dyn Queue, events: usize, of: impl Iterator<Item = usize>) -> Self {
        let mut undone = BTreeMap::new();
        of.for_each(|message| *undone.entry(message).or_default() += 1);
        Self { undone: Mutex::new(undone), ..Self::new(queue, events) }
    }

    /// Records that one of several events of a message is done; with the last one, the message is.
    fn event_done(&self, message: usize) {
        let mut undone = self.undone.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(events) = undone.get_mut(&message) {
            *events -= 1;
            if *events == 0 {
                undone.remove(&message);
                self.done(message);
            }
        }
    }

    /// Records that a message is done.
    pub(crate) fn done(&self, message: usize) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Returns whether there is a message to delete.
    pub(crate) fn has_done(&self) -> bool {
        !self.done.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Deletes what is done, in this time. What has no confirmation then is kept.
    pub(crate) async fn delete_done(&self, within: Duration) {
        let done = std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner));
        match timeout(within, self.queue.delete(&done)).await {
            Ok(Confirmation::Confirmed) => return,
            Ok(Confirmation::Unconfirmed) => {} // The queue has said why.
            Err(_) => tracing::warn!(
                messages = done.len(),
                "no time was left to delete all completed messages ahead of the report: they can come back as duplicates"
            ),
        }
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Calls the hooks for the duplicates among its messages, as long as there is time.
    pub(crate) fn show_duplicates(&self, by: Instant) {
        let duplicates = std::mem::take(&mut *self.duplicates.lock().unwrap_or_else(PoisonError::into_inner));
        let not_shown = duplicates.show(by);
        if not_shown > 0 {
            tracing::warn!(not_shown, "no time was left to show all duplicates to .on_duplicate's hook");
        }
    }

    /// Returns whether the queue may still have what is done.
    pub(crate) fn keeps_done(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }
}

/// Batches of an invocation that run one after the other. All of an invocation's sequences are made before one of them starts.
pub(crate) struct Sequence<'a> {
    pub(crate) invocation: &'a Invocation<'a>,
    pub(crate) turns: Entrant<'a>,
}

impl<'a> Sequence<'a> {
    /// Returns a sequence, which takes part in the turns of suspects until it ends.
    pub(crate) fn of(invocation: &'a Invocation<'a>) -> Self {
        Self { invocation, turns: invocation.turns.enter() }
    }
}

/// Where a message of a batch comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The message of the invocation.
    pub(crate) message: usize,
    /// Whether it is all of that message, and not one of several events in it.
    pub(crate) whole: bool,
}

/// The messages of one batch, as a part of their invocation: the queue as the batch sees it.
pub(crate) struct Part<'a> {
    pub(crate) sequence: &'a Sequence<'a>,
    /// Where each message comes from; `None` where the batch is the whole invocation.
    origins: Option<Vec<Origin>>,
}

impl<'a> Part<'a> {
    /// Returns the whole invocation.
    pub(crate) fn whole(sequence: &'a Sequence<'a>) -> Self {
        Self { sequence, origins: None }
    }

    /// Returns the part that comes from here.
    pub(crate) fn of(sequence: &'a Sequence<'a>, origins: Vec<Origin>) -> Self {
        Self { sequence, origins: Some(origins) }
    }

    /// Records that a message of the batch is done, which may be one of several events.
    pub(crate) fn done(&self, index: usize) {
        let Origin { message, whole } = self.origin(index);
        match whole {
            true => self.sequence.invocation.done(message),
            false => self.sequence.invocation.event_done(message),
        }
    }

    /// Keeps a duplicate of the batch for the end of the invocation, or shows it where too much is kept.
    pub(crate) fn duplicate(&self, duplicate: SeenDuplicate) {
        let mut duplicates = self.sequence.invocation.duplicates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(duplicate) = duplicates.keep(duplicate) {
            drop(duplicates);
            duplicate.show();
        }
    }

    /// Returns the invocation's spans, if it has any.
    pub(crate) fn spans(&self) -> Option<&MessageSpans> {
        self.sequence.invocation.spans.as_ref()
    }

    /// Returns the span of a message of the batch, if there is one.
    pub(crate) fn span(&self, index: usize) -> Option<&Span<Box<dyn MessageSpan>>> {
        self.spans()?.get(self.origin(index).message)
    }

    /// Notes in a message's span that this consumer works on this event in it.
    pub(crate) fn arrived(&self, index: usize, consumer: &ConsumerName, event: &Message) {
        if let Some(span) = self.span(index) {
            span.tell(|span| span.arrived(consumer, event));
        }
    }

    /// Notes in a message's span that all is done for it, as far as this batch knows.
    pub(crate) fn stop_span(&self, index: usize) {
        if let Some(span) = self.span(index) {
            span.tell(|span| span.stop());
        }
    }

    /// Returns whether this one is all of its message, and not one of several events in it.
    pub(crate) fn is_whole(&self, index: usize) -> bool {
        self.origin(index).whole
    }

    fn origin(&self, index: usize) -> Origin {
        // OK because a batch asks for its own messages only, and each has an origin.
        self.origins.as_ref().map_or(Origin { message: index, whole: true }, |origins| origins[index])
    }
}

impl Queue for Part<'_> {
    fn hide(&self, index: usize, period: Duration) -> BoxFuture<'_, HideAnswer> {
        self.sequence.invocation.queue.hide(self.origin(index).message, period)
    }

    /// Deletes nothing where one of them is not all of its message.
    fn delete<'a>(&'a self, indexes: &'a [usize]) -> BoxFuture<'a, Confirmation> {
        let origins: Vec<_> = indexes.iter().map(|index| self.origin(*index)).collect();
        if origins.iter().any(|origin| !origin.whole) {
            return Box::pin(std::future::ready(Confirmation::Unconfirmed));
        }
        let messages: Vec<_> = origins.iter().map(|origin| origin.message).collect();
        Box::pin(async move { self.sequence.invocation.queue.delete(&messages).await })
    }

    fn has_dead_letters(&self) -> bool {
        self.sequence.invocation.queue.has_dead_letters()
    }

    /// Messages are sent again once all of an invocation is done, by its own queue.
    fn has_schedules(&self) -> bool {
        self.sequence.invocation.queue.has_schedules()
    }

    fn dead_letters<'a>(
        &'a self,
        dead_letters: &'a [DeadLetter],
        within: Duration,
    ) -> BoxFuture<'a, Vec<Confirmation>> {
        if self.origins.is_none() {
            return self.sequence.invocation.queue.dead_letters(dead_letters, within);
        }
        let of_message =
            |letter: &DeadLetter| DeadLetter { index: self.origin(letter.index).message, ..letter.clone() };
        let letters: Vec<_> = dead_letters.iter().map(of_message).collect();
        Box::pin(async move { self.sequence.invocation.queue.dead_letters(&letters, within).await })
    }

    fn intake(&self) -> Option<&dyn Intake> {
        self.sequence.invocation.queue.intake()
    }
}
