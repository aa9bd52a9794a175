//! How messages are gathered into a batch.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::lambda::EVENT_BYTES_MAX;
use crate::sqs::Received;

use super::{Poller, count, lock};

/// Messages of one receive, as SQS has it. Small steps also bound what is received beyond the size of one event.
const RECEIVE_MAX: usize = 10;

/// How long one receive waits for a message.
const RECEIVE_WAIT: Duration = Duration::from_secs(20);

/// After a receive that failed, such as from a queue that was deleted.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

impl Poller {
    /// Waits for a message, then for more until the batch is full, the window ends or the event would be too large.
    /// Empty only if the mapping was stopped; what had been gathered until then is still handed out.
    pub(super) async fn gather(&self, stop: &mut watch::Receiver<bool>) -> Vec<Received> {
        let mut batch = Vec::new();
        while batch.is_empty() {
            match self.receive(self.spec.batch_size, RECEIVE_WAIT, stop).await {
                Some(messages) => batch = messages,
                None => return batch,
            }
        }
        let deadline = Instant::now() + self.spec.window;
        let mut bytes: usize = batch.iter().map(size).sum();
        while batch.len() < self.spec.batch_size && bytes < EVENT_BYTES_MAX {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match self.receive(self.spec.batch_size - batch.len(), left, stop).await {
                Some(messages) => {
                    bytes += messages.iter().map(size).sum::<usize>();
                    batch.extend(messages);
                }
                None => break,
            }
        }
        batch
    }

    /// `None` if the mapping was stopped.
    async fn receive(&self, room: usize, wait: Duration, stop: &mut watch::Receiver<bool>) -> Option<Vec<Received>> {
        let queue = &self.spec.queue;
        let received = tokio::select! {
            biased;
            _ = stop.wait_for(|stopped| *stopped) => return None,
            received = self.sqs.receive(queue, room.min(RECEIVE_MAX), wait) => received,
        };
        match received {
            Ok(messages) => Some(self.filtered(messages)),
            Err(error) => {
                tracing::error!(queue, %error, "cannot receive from the queue of an event source mapping");
                tokio::select! {
                    _ = stop.wait_for(|stopped| *stopped) => None,
                    () = sleep(ERROR_PAUSE) => Some(Vec::new()),
                }
            }
        }
    }

    /// The messages that fit a filter; the others are deleted, as Lambda does.
    fn filtered(&self, messages: Vec<Received>) -> Vec<Received> {
        if self.spec.filters.is_empty() {
            return messages;
        }
        let fits = |message: &Received| self.spec.filters.iter().any(|filter| filter.matches(&message.body));
        let (passing, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(fits);
        let deleted = others.iter().filter(|message| self.delete(message)).count();
        lock(&self.counters).filtered += count(deleted);
        passing
    }
}

/// A lower bound of what the message takes in an event.
fn size(message: &Received) -> usize {
    message.body.len()
}
