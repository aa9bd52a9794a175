//! The messages of a queue: what of them can be received, and what became of them. Time is an argument.

use std::time::Duration;

use claimant_core::{DeadLetter, Entry, Message, MessageId, Timestamp};

/// One message in the queue, and its story.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub(crate) message: Message,
    /// Which of the messages that were given it is a copy of.
    pub(crate) copy_of: usize,
    pub(crate) receives: u32,
    pub(crate) visible_at: Timestamp,
    /// What each invocation that reported on it said, in their order.
    pub(crate) outcomes: Vec<&'static str>,
    pub(crate) end: Option<End>,
    /// What was wrong when it had left the queue as done, if it was not done then.
    pub(crate) undone: Option<String>,
}

/// How a message left the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// It was deleted as done.
    Done,
    /// A copy is in the dead-letter queue, for this reason, and it was deleted.
    DeadLettered(String),
    /// It was received too often, and moved to the dead-letter queue as it is.
    Redriven,
}

/// The messages of a queue, in the order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pub(crate) all: Vec<Queued>,
    /// Why messages were dead-lettered, by their index.
    dead_lettered: Vec<(usize, String)>,
}

impl Backlog {
    pub(crate) fn push(&mut self, message: Message, copy_of: usize, visible_at: Timestamp) {
        let receives = message.receive_count() - 1;
        let (outcomes, end, undone) = (Vec::new(), None, None);
        self.all.push(Queued { message, copy_of, receives, visible_at, outcomes, end, undone });
    }

    /// Receives up to this many messages, and hides them for this long. One that was received too often is moved instead.
    pub(crate) fn receive(&mut self, most: usize, now: Timestamp, hidden: Duration, receives_max: u32) -> Vec<usize> {
        let (mut batch, mut held_up) = (Vec::new(), Vec::new());
        for index in 0..self.all.len() {
            let queued = &mut self.all[index];
            if batch.len() == most || queued.end.is_some() {
                continue;
            }
            let group = queued.message.ordered_group().map(str::to_owned);
            if group.as_ref().is_some_and(|group| held_up.contains(group)) {
                continue;
            }
            if queued.visible_at > now {
                held_up.extend(group);
            } else if queued.receives >= receives_max {
                queued.end = Some(End::Redriven);
            } else {
                queued.receives += 1;
                queued.visible_at = now.plus(hidden);
                queued.message = queued.message.clone().with_receive_count(queued.receives);
                batch.push(index);
            }
        }
        batch
    }

    /// Returns when the next hidden message is visible; `None` if there is none. While there is one it can hold up others of its
    /// group.
    pub(crate) fn next_visible_at(&self, now: Timestamp) -> Option<Timestamp> {
        let hidden = self.all.iter().filter(|queued| queued.end.is_none() && queued.visible_at > now);
        hidden.map(|queued| queued.visible_at).min()
    }

    /// Notes a copy in the dead-letter queue. Whether the message itself is deleted, the report says.
    pub(crate) fn dead_letter(&mut self, index: usize, letter: &DeadLetter) {
        self.dead_lettered.push((index, letter.error.clone()));
    }

    /// Hides a message from now on.
    pub(crate) fn hide(&mut self, index: usize, until: Timestamp) {
        self.all[index].visible_at = until;
    }

    /// Deletes a message: as done, unless a copy of it is in the dead-letter queue.
    pub(crate) fn delete(&mut self, index: usize) {
        let end = self.dead_lettered(index).unwrap_or(End::Done);
        self.all[index].end.get_or_insert(end);
    }

    /// Returns the end of a message of which a copy is in the dead-letter queue.
    fn dead_lettered(&self, index: usize) -> Option<End> {
        let letter = self.dead_lettered.iter().rev().find(|(of, _)| *of == index);
        letter.map(|(_, why)| End::DeadLettered(why.clone()))
    }

    /// Returns the id of a message that was deleted as done.
    pub(crate) fn done(&self, index: usize) -> Option<MessageId> {
        let queued = &self.all[index];
        (queued.end == Some(End::Done)).then(|| queued.message.id().clone())
    }

    /// Applies what an invocation reports of a message.
    pub(crate) fn report(&mut self, index: usize, entry: &Entry, now: Timestamp) {
        let rejected = !matches!(entry.outcome.word(), "completed" | "duplicate");
        let letter = self.dead_lettered(index).filter(|_| rejected);
        let queued = &mut self.all[index];
        queued.outcomes.push(entry.outcome.word());
        if queued.end.is_some() {
            return;
        }
        if entry.outcome.is_success() {
            queued.end = letter.or(Some(End::Done));
        } else if let Some(after) = entry.visible_after {
            queued.visible_at = now.plus(after);
        }
    }

    /// Returns whether all of the messages from this index on were duplicates from the first.
    pub(crate) fn are_duplicates(&self, first: usize) -> bool {
        self.all[first..].iter().all(|queued| queued.outcomes.first() == Some(&"duplicate"))
    }

    /// Puts messages that were deleted back, as if the queue had not got the deletion, to be received at once. Returns the index of each,
    /// and how many invocations had reported on it by then.
    pub(crate) fn restore_done(&mut self, now: Timestamp) -> Vec<(usize, usize)> {
        let mut restored = Vec::new();
        for (index, queued) in self.all.iter_mut().enumerate().filter(|(_, queued)| queued.end == Some(End::Done)) {
            queued.end = None;
            queued.visible_at = now;
            restored.push((index, queued.outcomes.len()));
        }
        restored
    }
}
