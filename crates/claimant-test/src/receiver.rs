//! A queue as the invocation sees it that has received a batch from it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claimant_core::{BoxFuture, Clock as _, Confirmation, DeadLetter, HideAnswer, Queue};

use crate::backlog::Backlog;
use crate::clock::MovableClock;
use crate::life::{self, Step};

/// The queue as one invocation sees it.
pub(crate) struct Receiver {
    pub(crate) backlog: Arc<Mutex<Backlog>>,
    pub(crate) clock: MovableClock,
    /// Whether there is a dead-letter queue.
    pub(crate) dead_letters: bool,
    /// Where the messages of the batch are in the backlog; empty where they are not from there.
    pub(crate) batch: Vec<usize>,
}

impl Queue for Receiver {
    fn hide(&self, index: usize, period: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(async move {
            life::step(Step::QueueRequest).await;
            if let Some(index) = self.batch.get(index) {
                lock(&self.backlog).hide(*index, self.clock.now().plus(period));
            }
            life::step(Step::QueueAnswer).await;
            HideAnswer::Hidden
        })
    }

    fn delete<'a>(&'a self, indexes: &'a [usize]) -> BoxFuture<'a, Confirmation> {
        Box::pin(async move {
            life::step(Step::QueueRequest).await;
            let places = indexes.iter().filter_map(|index| self.batch.get(*index));
            places.for_each(|index| lock(&self.backlog).delete(*index));
            life::step(Step::QueueAnswer).await;
            Confirmation::Confirmed
        })
    }

    fn has_dead_letters(&self) -> bool {
        self.dead_letters
    }

    fn dead_letters<'a>(&'a self, letters: &'a [DeadLetter], _: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        Box::pin(async move {
            life::step(Step::QueueRequest).await;
            for letter in letters {
                if let Some(index) = self.batch.get(letter.index) {
                    lock(&self.backlog).dead_letter(*index, letter);
                }
            }
            life::step(Step::QueueAnswer).await;
            vec![Confirmation::Confirmed; letters.len()]
        })
    }
}

fn lock(backlog: &Mutex<Backlog>) -> MutexGuard<'_, Backlog> {
    backlog.lock().unwrap_or_else(PoisonError::into_inner)
}
