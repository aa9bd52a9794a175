//! The shared handle to all queues: its clock, and the waiting of long polls.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::account::Account;
use super::attributes::Attributes;
use super::fault::{Code, Fault};
use super::message::{Counters, Deletion, Depth, InFlight, NewMessage, Received, Sent, StoredMessage};
use super::settings::QueueSettings;
use crate::Error;
use crate::arn;
use crate::clock::wall_clock_ms;
use crate::journal::Journal;

type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// Local SQS: every queue of the account `000000000000` in the region `us-east-1`.
///
/// Clones share the queues. The methods here and the HTTP endpoint of [`serve`](Self::serve) see the same messages.
#[derive(Clone)]
pub struct Sqs {
    inner: Arc<Inner>,
}

struct Inner {
    account: Mutex<Account>,
    clock: Clock,
}

impl Default for Sqs {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Sqs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqs").finish_non_exhaustive()
    }
}

impl Sqs {
    /// An account without queues.
    pub fn new() -> Self {
        Self::with_clock(Box::new(wall_clock_ms))
    }

    /// An account without queues, whose queues write into this journal.
    #[must_use]
    pub fn with_journal(journal: Journal) -> Self {
        let sqs = Self::new();
        sqs.account().journal = journal;
        sqs
    }

    pub(super) fn with_clock(clock: Clock) -> Self {
        let inner = Inner { account: Mutex::default(), clock };
        Self { inner: Arc::new(inner) }
    }

    /// Sets what queue URLs start with, such as `http://127.0.0.1:9324`. [`serve`](Self::serve) does so by itself,
    /// with the address it listens on, unless this was called.
    pub fn set_endpoint(&self, base_url: &str) {
        self.account().endpoint = Some(base_url.trim_end_matches('/').to_owned());
    }

    /// From now on no change of visibility hides a message for longer than this, whatever it asks for: backoffs of minutes
    /// take moments then, for who has no minutes.
    pub fn hide_at_most(&self, max: Duration) {
        self.account().hidden_max = Some(max);
    }

    /// Creates a queue. Does nothing if it exists with the same settings.
    ///
    /// # Errors
    ///
    /// If a setting is out of its bounds, the queue exists with other settings, or the dead-letter queue does not
    /// exist yet or is of the other type.
    pub fn create_queue(&self, name: &str, settings: QueueSettings) -> Result<(), Error> {
        settings.check(name)?;
        let (mut account, now_ms) = (self.account(), self.now_ms());
        if account.exists(name) {
            if account.queue(name)?.attributes.settings == settings {
                return Ok(());
            }
            let message = format!("the queue {name} exists already, with other settings: use another name");
            return Err(Fault::new(Code::QueueNameExists, message).into());
        }
        account.create(now_ms, name, Attributes::new(settings))?;
        Ok(())
    }

    /// The URL of the queue of this name; it need not exist.
    pub fn queue_url(&self, name: &str) -> String {
        self.account().url(name)
    }

    /// The ARN of the queue of this name; it need not exist.
    pub fn queue_arn(&self, name: &str) -> String {
        arn::of_queue(name)
    }

    /// Receives up to `max` messages, of which there may be more than SQS's ten, waiting up to `wait` for the first.
    /// They stay hidden for the queue's visibility timeout.
    ///
    /// Cancel safe: messages are taken and returned without an await in between, so dropping the future loses none.
    ///
    /// # Errors
    ///
    /// If the queue does not exist or is deleted during the wait, or, without a wait, a standard queue has 120,000 messages in flight.
    pub async fn receive(&self, queue: &str, max: usize, wait: Duration) -> Result<Vec<Received>, Error> {
        Ok(self.poll(queue, max, None, Some(wait)).await?)
    }

    /// Deletes the message that was received with this handle.
    ///
    /// # Errors
    ///
    /// If the queue does not exist, or never handed out this handle.
    pub fn delete(&self, queue: &str, receipt_handle: &str) -> Result<Deletion, Error> {
        let (mut account, now_ms) = (self.account(), self.now_ms());
        match account.delete(now_ms, queue, receipt_handle) {
            Err(fault) if fault.code == Code::InvalidParameterValue => Ok(Deletion::Stale),
            other => Ok(other?),
        }
    }

    /// Returns the dead-letter queue of a queue, if it holds this message.
    pub(crate) fn dead_letter_queue_with(&self, queue: &str, message_id: &str) -> Result<Option<String>, Error> {
        let (mut account, now_ms) = (self.account(), self.now_ms());
        Ok(account.dead_letter_queue_with(now_ms, queue, message_id)?)
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// If the queue does not exist or SQS would refuse the message.
    pub fn send(&self, queue: &str, message: NewMessage) -> Result<Sent, Error> {
        let (mut account, now_ms) = (self.account(), self.now_ms());
        Ok(account.send(now_ms, queue, message)?)
    }

    /// How many messages the queue holds.
    ///
    /// # Errors
    ///
    /// If the queue does not exist.
    pub fn depth(&self, queue: &str) -> Result<Depth, Error> {
        let (mut account, now_ms) = (self.account(), self.now_ms());
        Ok(account.queue(queue)?.depth(now_ms))
    }

    /// What has happened to the queue's messages so far.
    ///
    /// # Errors
    ///
    /// If the queue does not exist.
    pub fn counters(&self, queue: &str) -> Result<Counters, Error> {
        let (mut account, now_ms) = (self.account(), self.now_ms());
        Ok(account.queue(queue)?.counters(now_ms))
    }

    /// Every message in the queue in order of arrival, hidden ones too, without receiving them.
    ///
    /// # Errors
    ///
    /// If the queue does not exist.
    pub fn messages(&self, queue: &str) -> Result<Vec<StoredMessage>, Error> {
        let (mut account, now_ms) = (self.account(), self.now_ms());
        Ok(account.queue(queue)?.stored(now_ms))
    }

    /// The messages in flight, those that come back first before the others.
    ///
    /// # Errors
    ///
    /// If the queue does not exist.
    pub fn in_flight(&self, queue: &str) -> Result<Vec<InFlight>, Error> {
        let (mut account, now_ms) = (self.account(), self.now_ms());
        Ok(account.queue(queue)?.in_flight(now_ms))
    }

    /// Sets the endpoint unless it is set.
    pub(super) fn default_endpoint(&self, base_url: String) {
        self.account().endpoint.get_or_insert(base_url);
    }

    /// Receives, waiting for up to `wait`, or for as long as the queue's settings say.
    pub(super) async fn poll(
        &self,
        queue: &str,
        max: usize,
        visibility: Option<Duration>,
        wait: Option<Duration>,
    ) -> Result<Vec<Received>, Fault> {
        let start = Instant::now();
        loop {
            let changes = self.account().changes(queue)?;
            let mut changed = pin!(changes.notified());
            // Registered before the look, so that a change between the look and the wait is not missed.
            changed.as_mut().enable();
            let (wait, next_change) = {
                let (mut account, now_ms) = (self.account(), self.now_ms());
                let wait = wait.unwrap_or(account.queue(queue)?.attributes.settings.receive_wait);
                let received = match account.receive(now_ms, queue, max, visibility) {
                    // Too many in flight: SQS says so to short polls only.
                    Err(fault) if fault.code == Code::OverLimit && !wait.is_zero() => Vec::new(),
                    received => received?,
                };
                if !received.is_empty() {
                    return Ok(received);
                }
                let next_move_ms = account.next_move_ms();
                let queue = account.queue(queue)?;
                let next_change_ms = queue.next_change_ms().into_iter().chain(next_move_ms).min();
                let next_change_ms = next_change_ms.map(|at_ms| at_ms.saturating_sub(now_ms));
                // At least a millisecond, lest a clock that lags behind the timer makes this a busy loop.
                (wait, next_change_ms.map(|ms| Duration::from_millis(ms.max(1))))
            };
            let left = wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(Vec::new());
            }
            let pause = next_change.map_or(left, |change| change.min(left));
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Locks the account, in which message move tasks are as far as they are due. Never held across an await: the guard is
    /// not `Send`.
    pub(super) fn account(&self) -> MutexGuard<'_, Account> {
        let account = self.inner.account.lock();
        let mut account = account.expect("no code panics while it holds the lock");
        account.advance_moves(self.now_ms());
        account
    }

    pub(super) fn now_ms(&self) -> u64 {
        (self.inner.clock)()
    }
}

#[cfg(test)]
mod tests;
