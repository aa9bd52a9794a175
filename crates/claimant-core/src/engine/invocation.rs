//! What the batches of one invocation share. Each consumer has its own, and some run one after the other: a sequence. What an
//! earlier owner may have died of runs while no other sequence works, and once all that is done was deleted, whoever did it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::intake::Intake;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::queue::{Confirmation, HideAnswer, Queue, QueueFuture};
use crate::report::{DeadLetter, Entry};
use crate::spans::{MessageSpan, MessageSpans, Spans};

/// By what suspects are sorted: those that are suspected least come first.
pub(crate) type Suspicion = (u32, Reverse<u32>, Option<String>, Option<Reverse<String>>);

/// Who works, and who waits for a turn.
#[derive(Debug, Default)]
struct Turns {
    /// How many sequences have something under way, or can start something.
    working: usize,
    /// What each sequence that waits for a turn would start, by the sequence's number.
    waiting: BTreeMap<usize, (Suspicion, usize)>,
    /// How many sequences there were.
    sequences: usize,
}

impl Turns {
    /// Returns whether the next turn is this sequence's.
    fn is_next(&self, number: usize) -> bool {
        let next = self.waiting.iter().min_by_key(|(_, (suspicion, _))| suspicion);
        self.working == 0 && next.is_some_and(|(next, _)| *next == number)
    }
}

/// One invocation: its queue, and what of its messages is done.
pub(crate) struct Invocation<'a> {
    pub(crate) queue: &'a dyn Queue,
    /// How many events its messages hold, as far as routes have opened them, whichever consumer they are for.
    pub(crate) events: usize,
    turns: watch::Sender<Turns>,
    /// How many events are not done, of messages that have several.
    undone: Mutex<BTreeMap<usize, usize>>,
    /// Messages that are done, and that the queue was not asked to delete.
    done: Mutex<Vec<usize>>,
    /// Whether it could not confirm that one of them is gone.
    kept: AtomicBool,
    spans: Option<MessageSpans>,
    /// Whether each claim is logged at `INFO`.
    logs_claims: bool,
}

impl<'a> Invocation<'a> {
    pub(crate) fn new(queue: &'a dyn Queue, events: usize) -> Self {
        let (turns, _) = watch::channel(Turns::default());
        let (undone, done) = (Mutex::default(), Mutex::default());
        Self { queue, events, turns, undone, done, kept: AtomicBool::new(false), spans: None, logs_claims: false }
    }

    /// Opens the spans of its messages, if there is a system for them.
    pub(crate) fn with_spans(self, system: Option<&Arc<dyn Spans>>, batch: &[Message]) -> Self {
        Self { spans: MessageSpans::of(system, batch), ..self }
    }

    /// Logs each claim at level `INFO`, or at `DEBUG`.
    pub(crate) fn logging_claims(self, logs_claims: bool) -> Self {
        Self { logs_claims, ..self }
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

    /// Returns whether the queue may still have what is done.
    pub(crate) fn keeps_done(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }
}

/// Batches of an invocation that run one after the other. All of an invocation's sequences are made before one of them starts.
pub(crate) struct Sequence<'a> {
    pub(crate) invocation: &'a Invocation<'a>,
    number: usize,
    works: AtomicBool,
}

impl<'a> Sequence<'a> {
    /// Returns a sequence, which works until it waits for its turn or ends.
    pub(crate) fn of(invocation: &'a Invocation<'a>) -> Self {
        let mut number = 0;
        invocation.turns.send_modify(|turns| {
            number = turns.sequences;
            turns.sequences += 1;
            turns.working += 1;
        });
        Self { invocation, number, works: AtomicBool::new(true) }
    }

    /// Waits until no other sequence works, and none that waits has a less suspicious message; then none begins to work before this
    /// one ends or waits again. Not longer than `by`: then it works beside others.
    ///
    /// `suspects` is how many it has. Returns how many there are with those of others, its own included.
    pub(crate) async fn turn(&self, suspicion: Suspicion, suspects: usize, by: Instant) -> usize {
        let turns = &self.invocation.turns;
        self.works.store(false, Ordering::Relaxed);
        turns.send_modify(|turns| {
            turns.working -= 1;
            turns.waiting.insert(self.number, (suspicion, suspects));
        });
        let mut changes = turns.subscribe();
        // Whether its turn came or its time is over. The channel cannot be closed: its sender is borrowed.
        let _ = timeout_at(by, changes.wait_for(|turns| turns.is_next(self.number))).await;
        let mut all = 0;
        turns.send_modify(|turns| {
            all = turns.waiting.values().map(|(_, suspects)| suspects).sum();
            turns.waiting.remove(&self.number);
            turns.working += 1;
        });
        self.works.store(true, Ordering::Relaxed);
        all
    }
}

impl Drop for Sequence<'_> {
    fn drop(&mut self) {
        let works = self.works.load(Ordering::Relaxed);
        self.invocation.turns.send_modify(|turns| {
            turns.working -= usize::from(works);
            turns.waiting.remove(&self.number);
        });
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
    /// Dead letters of what is one of several events in its message. They are confirmed here, and the message is not done by that:
    /// one copy of it is sent when all of its events are.
    held_back: Mutex<Vec<DeadLetter>>,
}

impl<'a> Part<'a> {
    /// Returns the whole invocation.
    pub(crate) fn whole(sequence: &'a Sequence<'a>) -> Self {
        Self { sequence, origins: None, held_back: Mutex::default() }
    }

    /// Returns the part that comes from here.
    pub(crate) fn of(sequence: &'a Sequence<'a>, origins: Vec<Origin>) -> Self {
        Self { sequence, origins: Some(origins), held_back: Mutex::default() }
    }

    /// Records that a message of the batch is done. With a dead letter that is held back, an event is not.
    pub(crate) fn done(&self, index: usize) {
        let origin = self.origin(index);
        let held_back = || self.held_back.lock().unwrap_or_else(PoisonError::into_inner);
        match origin.whole {
            true => self.sequence.invocation.done(origin.message),
            false if held_back().iter().any(|letter| letter.index == index) => {}
            false => self.sequence.invocation.event_done(origin.message),
        }
    }

    /// Returns the invocation's spans, if it has any.
    pub(crate) fn spans(&self) -> Option<&MessageSpans> {
        self.sequence.invocation.spans.as_ref()
    }

    /// Returns whether each claim is logged at level `INFO`.
    pub(crate) fn logs_claims(&self) -> bool {
        self.sequence.invocation.logs_claims
    }

    /// Returns the span of a message of the batch, if there is one.
    pub(crate) fn span(&self, index: usize) -> Option<&dyn MessageSpan> {
        self.spans()?.get(self.origin(index).message)
    }

    /// Notes in a message's span that this consumer works on this event in it.
    pub(crate) fn arrived(&self, index: usize, consumer: &ConsumerName, event: &Message) {
        if let Some(span) = self.span(index) {
            span.arrived(consumer, event);
        }
    }

    /// Notes in a message's span that all is done for it, as far as this batch knows.
    pub(crate) fn stop_span(&self, index: usize) {
        if let Some(span) = self.span(index) {
            span.stop();
        }
    }

    /// Returns the dead letters that were held back.
    pub(crate) fn held_back(self) -> Vec<DeadLetter> {
        self.held_back.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this one is all of its message, and not one of several events in it.
    pub(crate) fn is_whole(&self, index: usize) -> bool {
        self.origin(index).whole
    }

    fn origin(&self, index: usize) -> Origin {
        // OK because a batch asks for its own messages only, and each has an origin.
        self.origins.as_ref().map_or(Origin { message: index, whole: true }, |origins| origins[index])
    }

    async fn send(&self, dead_letters: &[DeadLetter], within: Duration) -> Vec<Confirmation> {
        let (whole, parts): (Vec<_>, Vec<_>) =
            dead_letters.iter().cloned().partition(|dead_letter| self.origin(dead_letter.index).whole);
        self.held_back.lock().unwrap_or_else(PoisonError::into_inner).extend(parts);
        let mut copies = whole;
        copies.iter_mut().for_each(|copy| copy.index = self.origin(copy.index).message);
        let answers = if copies.is_empty() {
            Vec::new()
        } else {
            self.sequence.invocation.queue.dead_letters(&copies, within).await
        };
        let mut answers = answers.into_iter();
        let answer = |dead_letter: &DeadLetter| match self.origin(dead_letter.index).whole {
            true => answers.next().unwrap_or(Confirmation::Unconfirmed),
            false => Confirmation::Confirmed,
        };
        dead_letters.iter().map(answer).collect()
    }
}

impl Queue for Part<'_> {
    fn hide(&self, index: usize, period: Duration) -> QueueFuture<'_, HideAnswer> {
        self.sequence.invocation.queue.hide(self.origin(index).message, period)
    }

    /// Deletes nothing where one of them is not all of its message.
    fn delete<'a>(&'a self, indexes: &'a [usize]) -> QueueFuture<'a, Confirmation> {
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
    ) -> QueueFuture<'a, Vec<Confirmation>> {
        if self.origins.is_none() {
            return self.sequence.invocation.queue.dead_letters(dead_letters, within);
        }
        Box::pin(self.send(dead_letters, within))
    }

    fn intake(&self) -> Option<&dyn Intake> {
        self.sequence.invocation.queue.intake()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::NoQueue;

    fn suspicion(attempt: u32) -> Suspicion {
        (attempt, Reverse(1), None, None)
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_suspicious_has_its_turn_while_no_other_sequence_works() {
        let invocation = Invocation::new(&NoQueue, 3);
        let [first, second, third] = std::array::from_fn(|_| Sequence::of(&invocation));
        let (by, moment) = (Instant::now() + Duration::from_secs(1), Duration::from_millis(1));
        let mut first_turn = Box::pin(first.turn(suspicion(2), 3, by));
        let mut third_turn = Box::pin(third.turn(suspicion(1), 1, by));
        assert!(timeout(moment, &mut first_turn).await.is_err(), "two others work");
        assert!(timeout(moment, &mut third_turn).await.is_err(), "another one works");
        drop(second);
        assert!(timeout(moment, &mut first_turn).await.is_err(), "the other one is less suspicious");
        assert_eq!(timeout(moment, third_turn).await, Ok(4));
        assert!(timeout(moment, &mut first_turn).await.is_err(), "the other one has its turn");
        assert_eq!(timeout(moment, third.turn(suspicion(3), 1, by)).await.ok(), None, "now it is more suspicious");
        assert_eq!(timeout(moment, first_turn).await, Ok(4));
        drop(third);
        drop(first);
        let turns = invocation.turns.borrow();
        assert_eq!((turns.working, turns.waiting.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_not_waited_for_beyond_its_time() {
        let invocation = Invocation::new(&NoQueue, 2);
        let (first, _second) = (Sequence::of(&invocation), Sequence::of(&invocation));
        first.turn(suspicion(1), 1, Instant::now() + Duration::from_secs(1)).await;
        assert_eq!(invocation.turns.borrow().working, 2);
    }
}
