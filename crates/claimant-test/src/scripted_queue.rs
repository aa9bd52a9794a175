//! A scripted queue.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claimant_core::{BoxFuture, Confirmation, DeadLetter, HideAnswer, Queue};

/// What a [`ScriptedQueue`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterQueue {
    /// There is no dead-letter queue.
    Without,
    /// It takes every dead letter.
    Taken,
    /// It takes none.
    Refused,
}

/// A scripted queue, which remembers what it was asked. Clones are the same queue.
#[derive(Debug, Clone)]
pub struct ScriptedQueue {
    dead_letter_queue: DeadLetterQueue,
    /// Whether messages are still this delivery's to hide.
    pub held: bool,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Debug, Default)]
struct Asked {
    letters: Vec<DeadLetter>,
    requests: Vec<usize>,
    hidden: Vec<(usize, Duration)>,
}

impl ScriptedQueue {
    /// Returns a queue that treats dead letters like this.
    #[must_use]
    pub fn new(dead_letter_queue: DeadLetterQueue) -> Self {
        Self { dead_letter_queue, held: true, asked: Arc::default() }
    }

    /// Returns the dead letters that it was sent, taken or not.
    #[must_use]
    pub fn dead_letters_sent(&self) -> Vec<DeadLetter> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).letters.clone()
    }

    /// Returns how many dead letters there were in each request.
    #[must_use]
    pub fn requests(&self) -> Vec<usize> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).requests.clone()
    }

    /// Returns which messages, by their index, it was asked to hide, and for how long.
    #[must_use]
    pub fn hidden(&self) -> Vec<(usize, Duration)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).hidden.clone()
    }
}

impl Queue for ScriptedQueue {
    fn hide(&self, index: usize, period: Duration) -> BoxFuture<'_, HideAnswer> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).hidden.push((index, period));
        Box::pin(std::future::ready(if self.held { HideAnswer::Hidden } else { HideAnswer::Lost }))
    }

    fn has_dead_letters(&self) -> bool {
        self.dead_letter_queue != DeadLetterQueue::Without
    }

    fn dead_letters<'a>(&'a self, letters: &'a [DeadLetter], _within: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.letters.extend_from_slice(letters);
        asked.requests.push(letters.len());
        let answer = match self.dead_letter_queue {
            DeadLetterQueue::Taken => Confirmation::Confirmed,
            DeadLetterQueue::Refused | DeadLetterQueue::Without => Confirmation::Unconfirmed,
        };
        Box::pin(std::future::ready(vec![answer; letters.len()]))
    }
}
