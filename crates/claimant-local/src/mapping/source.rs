//! The queue that a mapping reads: messages gathered into batches, and deleted.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::counters::MappingCounters;
use super::event;
use super::switch::Wanted;
use crate::arn;
use crate::journal::{Journal, Text, What};
use crate::lambda::Function;
use crate::sqs::{Deletion, Received, Sqs};
use crate::stack::MappingSpec;
use crate::sync::lock;

/// Messages of one receive, as SQS has it. Small steps also bound what is received beyond the size of one event.
const RECEIVE_MAX: usize = 10;

/// How long one receive waits for a message.
const RECEIVE_WAIT: Duration = Duration::from_secs(20);

/// After a receive that failed, such as from a queue that was deleted.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// A queue as its mapping reads it.
pub(super) struct Source {
    pub(super) spec: MappingSpec,
    pub(super) sqs: Sqs,
    pub(super) counters: Arc<Mutex<MappingCounters>>,
    /// The ids of the messages that were received for an invocation that has not ended.
    pub(super) held: Arc<Mutex<HashSet<String>>>,
    pub(super) journal: Journal,
    /// Why the last receive failed; none where it did not.
    pub(super) failed: Mutex<Option<String>>,
}

impl Source {
    /// Waits for a message, then for more until the batch is full, the window ends or the event would be too large.
    /// Empty only if the mapping was stopped or paused; what was gathered until then is still returned.
    pub(super) async fn gather(&self, function: &Function, wanted: &mut watch::Receiver<Wanted>) -> Vec<Received> {
        let mut batch = Vec::new();
        while batch.is_empty() {
            // A program that is yet to be built, or gone, must not cost a message its receives.
            tokio::select! {
                biased;
                _ = wanted.wait_for(|wanted| *wanted != Wanted::Polling) => return batch,
                () = function.ready() => {}
            }
            tokio::select! {
                received = self.receive(self.spec.batch_size, RECEIVE_WAIT, wanted) => match received {
                    Some(messages) => batch = messages,
                    None => return batch,
                },
                () = function.gone() => {}
            }
        }
        if self.spec.window.is_zero() {
            return batch;
        }
        let arn = arn::of_queue(&self.spec.queue);
        let size = |messages: &[Received]| messages.iter().map(|message| event::size(&arn, message)).sum::<usize>();
        let mut bytes = size(&batch);
        let deadline = Instant::now() + self.spec.window;
        while batch.len() < self.spec.batch_size {
            let left = deadline.saturating_duration_since(Instant::now());
            // As many more as fit if they are like those that are there: what is left for a second event waits for the first.
            let fit = event::BYTES_MAX.saturating_sub(bytes) * batch.len() / bytes;
            if left.is_zero() || fit == 0 {
                break;
            }
            let received = tokio::select! {
                received = self.receive(fit.min(self.spec.batch_size - batch.len()), left, wanted) => received,
                // No more for a start that waits for the program, and may fail.
                () = function.gone() => None,
            };
            let Some(messages) = received else { break };
            bytes += size(&messages);
            batch.extend(messages);
        }
        batch
    }

    /// `None` if the mapping was stopped or paused.
    async fn receive(
        &self,
        room: usize,
        wait: Duration,
        wanted: &mut watch::Receiver<Wanted>,
    ) -> Option<Vec<Received>> {
        let queue = &self.spec.queue;
        let received = tokio::select! {
            biased;
            _ = wanted.wait_for(|wanted| *wanted != Wanted::Polling) => return None,
            received = self.sqs.receive(queue, room.min(RECEIVE_MAX), wait) => received,
        };
        match received {
            Ok(messages) => {
                if lock(&self.failed).take().is_some() {
                    tracing::info!(queue, "an event source mapping receives from its queue again");
                }
                let messages = self.filtered(messages);
                lock(&self.held).extend(messages.iter().map(|message| message.message_id.clone()));
                Some(messages)
            }
            Err(error) => {
                self.note_failed(error.to_string());
                tokio::select! {
                    _ = wanted.wait_for(|wanted| *wanted != Wanted::Polling) => None,
                    () = sleep(ERROR_PAUSE) => Some(Vec::new()),
                }
            }
        }
    }

    /// Logs why a receive failed where that begins, or becomes another reason: it is tried again each second.
    fn note_failed(&self, error: String) {
        let mut failed = lock(&self.failed);
        if failed.as_ref() != Some(&error) {
            let queue = &self.spec.queue;
            tracing::error!(
                queue,
                %error,
                "cannot receive from the queue of an event source mapping, and goes on to try: create the queue again, or stop the cloud"
            );
            *failed = Some(error);
        }
    }

    /// The messages that fit a filter; the others are deleted, as Lambda does.
    fn filtered(&self, messages: Vec<Received>) -> Vec<Received> {
        if self.spec.filters.is_empty() {
            return messages;
        }
        let fits = |message: &Received| self.spec.filters.iter().any(|filter| filter.matches(&message.body));
        let (passing, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(fits);
        for message in &others {
            self.journal.note(
                || What::Filtered,
                |event| event.message(&message.message_id).queue(&Text::from(&self.spec.queue)),
            );
        }
        let deleted = self.delete(&others);
        lock(&self.counters).filtered += deleted;
        passing
    }

    /// Forgets that these messages are held: their invocations have ended.
    pub(super) fn let_go(&self, message_ids: &[String]) {
        let mut held = lock(&self.held);
        message_ids.iter().for_each(|id| _ = held.remove(id));
    }

    /// Deletes messages; returns how many were still there to be deleted.
    pub(super) fn delete<'a>(&self, messages: impl IntoIterator<Item = &'a Received>) -> u64 {
        let mut deleted = 0;
        for message in messages {
            let (queue, message_id) = (&self.spec.queue, &message.message_id);
            match self.sqs.delete(queue, &message.receipt_handle) {
                Ok(Deletion::Deleted) => deleted += 1,
                Ok(Deletion::Gone) => self.warn_if_dead(message_id),
                Ok(Deletion::Stale) => {
                    tracing::warn!(
                        queue,
                        message_id,
                        "a message could not be deleted, and comes again: its receipt handle is stale"
                    );
                }
                Err(error) => tracing::warn!(queue, message_id, %error, "a message could not be deleted"),
            }
        }
        deleted
    }

    /// Warns of a message that was gone when it was to be deleted where it is a dead letter. Most others were deleted by their function,
    /// as what is done before a suspect runs.
    fn warn_if_dead(&self, message_id: &str) {
        let queue = &self.spec.queue;
        if let Ok(Some(dead_letter_queue)) = self.sqs.dead_letter_queue_with(queue, message_id) {
            tracing::warn!(
                queue,
                message_id,
                dead_letter_queue,
                "a message could not be deleted, since it was moved to the dead-letter queue while its function ran, which reported success: the queue's visibility timeout must exceed the function's timeout"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqs::{NewMessage, QueueSettings, Redrive};

    fn source() -> Source {
        let spec = MappingSpec::new("ConfirmOrders", "orders");
        let (sqs, journal) = (Sqs::new(), Journal::off());
        let (counters, held, failed) = Default::default();
        Source { spec, sqs, counters, held, journal, failed }
    }

    /// Returns the file to which this thread logs until the guard is dropped.
    fn logs() -> (tempfile::NamedTempFile, tracing::subscriber::DefaultGuard) {
        let logs = tempfile::NamedTempFile::new().unwrap();
        let writer = Arc::new(logs.reopen().unwrap());
        let guard = tracing::subscriber::set_default(tracing_subscriber::fmt().with_writer(writer).finish());
        (logs, guard)
    }

    #[tokio::test]
    async fn only_a_message_that_comes_again_is_said_not_to_be_deleted() {
        let (source, (logs, _guard)) = (source(), logs());
        let visibility_timeout = Duration::from_millis(1);
        source.sqs.create_queue("orders", QueueSettings { visibility_timeout, ..QueueSettings::default() }).unwrap();
        let receive = async || source.sqs.receive("orders", 10, Duration::ZERO).await.unwrap();
        for body in ["a", "b", "c"] {
            source.sqs.send("orders", NewMessage::new(body)).unwrap();
        }
        let mut received = receive().await;
        // By its function.
        source.sqs.delete("orders", &received[1].receipt_handle).unwrap();
        sleep(visibility_timeout * 10).await;
        received[0] = receive().await.swap_remove(0);
        assert_eq!((received[0].body.as_str(), source.delete(&received)), ("a", 1));
        let text = std::fs::read_to_string(logs.path()).unwrap();
        assert!(text.lines().count() == 1 && text.contains(&received[2].message_id), "{text}");
    }

    #[tokio::test]
    async fn what_was_dead_lettered_while_its_function_ran_is_said_not_to_be_deleted() {
        let (source, (logs, _guard)) = (source(), logs());
        let visibility_timeout = Duration::from_millis(1);
        let redrive = Some(Redrive { dead_letter_queue: "dead".to_owned(), max_receive_count: 1 });
        source.sqs.create_queue("dead", QueueSettings::default()).unwrap();
        let settings = QueueSettings { visibility_timeout, redrive, ..QueueSettings::default() };
        source.sqs.create_queue("orders", settings).unwrap();
        let receive = async || source.sqs.receive("orders", 10, Duration::ZERO).await.unwrap();
        for body in ["a", "b"] {
            source.sqs.send("orders", NewMessage::new(body)).unwrap();
        }
        let received = receive().await;
        // By its function.
        source.sqs.delete("orders", &received[1].receipt_handle).unwrap();
        sleep(visibility_timeout * 10).await;
        assert_eq!((receive().await.len(), source.delete(&received)), (0, 0));
        let text = std::fs::read_to_string(logs.path()).unwrap();
        assert!(text.lines().count() == 1 && text.contains(&received[0].message_id), "{text}");
        assert!(
            text.contains("moved to the dead-letter queue") && text.contains("dead_letter_queue=\"dead\""),
            "{text}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_is_gone_is_logged_once_and_when_it_is_there_again() {
        let (source, (logs, _guard)) = (source(), logs());
        let (_switch, mut wanted) = watch::channel(Wanted::Polling);
        let mut receive = async || source.receive(1, Duration::ZERO, &mut wanted).await.unwrap().len();
        for _ in 0..3 {
            assert_eq!(receive().await, 0);
        }
        source.sqs.create_queue("orders", QueueSettings::default()).unwrap();
        source.sqs.send("orders", NewMessage::new("a")).unwrap();
        assert_eq!((receive().await, receive().await), (1, 0));
        let text = std::fs::read_to_string(logs.path()).unwrap();
        for line in ["cannot receive from the queue", "receives from its queue again"] {
            assert_eq!(text.matches(line).count(), 1, "{line}: {text}");
        }
    }
}
