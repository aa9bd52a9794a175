//! All queues of the account, and what happens between two of them.

mod moves;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use uuid::Uuid;

use super::attributes::Attributes;
use super::fault::{Code, Fault};
use super::message::{Deletion, NewMessage, Received, Sent};
use super::move_task::MoveTask;
use super::notes::Notes;
use super::queue::Queue;
use super::receipt::Ask;
use crate::arn::{self, ACCOUNT_ID};
use crate::journal::{Journal, What};

/// How long after the deletion of a queue its name is not free.
const DELETED_PAUSE_MS: u64 = 60_000;

/// The queues by name.
#[derive(Debug, Default)]
pub(super) struct Account {
    queues: BTreeMap<String, Entry>,
    /// When the queues that are gone were deleted, of the last minute.
    deleted: BTreeMap<String, u64>,
    /// Message move tasks, the oldest first.
    moves: Vec<MoveTask>,
    /// The start of every queue URL, without a slash at its end.
    pub(super) endpoint: Option<String>,
    /// Where set, no change of visibility hides a message for longer.
    pub(super) hidden_max: Option<Duration>,
    pub(super) journal: Journal,
}

/// A queue, and who waits for it.
#[derive(Debug)]
struct Entry {
    queue: Queue,
    changed: Arc<Notify>,
}

impl Account {
    pub(super) fn queue(&mut self, name: &str) -> Result<&mut Queue, Fault> {
        self.entry(name).map(|entry| &mut entry.queue)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(String::as_str)
    }

    /// Told whenever a receive from the queue might give more than before.
    pub(super) fn changes(&mut self, name: &str) -> Result<Arc<Notify>, Fault> {
        Ok(Arc::clone(&self.entry(name)?.changed))
    }

    /// Creates a queue whose attributes are checked, but for its dead-letter queue.
    pub(super) fn create(&mut self, now_ms: u64, name: &str, attributes: Attributes) -> Result<&mut Queue, Fault> {
        self.check_redrive(name, &attributes)?;
        let mut queue = Queue::new(Uuid::new_v4().simple().to_string(), attributes, now_ms);
        queue.notes = Notes::new(self.journal.clone(), name);
        let entry = Entry { queue, changed: Arc::default() };
        Ok(&mut self.queues.entry(name.to_owned()).or_insert(entry).queue)
    }

    /// Refuses a name that was a queue's until less than a minute ago.
    pub(super) fn check_deleted(&self, now_ms: u64, name: &str) -> Result<(), Fault> {
        if self.deleted.get(name).is_some_and(|deleted_ms| now_ms < deleted_ms + DELETED_PAUSE_MS) {
            return Err(Fault::new(
                Code::QueueDeletedRecently,
                "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
            ));
        }
        Ok(())
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.queues.contains_key(name)
    }

    pub(super) fn set_attributes(
        &mut self,
        now_ms: u64,
        name: &str,
        supplied: &BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let attributes = self.queue(name)?.attributes.with(name, supplied)?;
        // A queue whose dead-letter queue is gone, or allows it no longer, can still be changed.
        if supplied.contains_key("RedrivePolicy") {
            self.check_redrive(name, &attributes)?;
        }
        let entry = self.entry(name)?;
        entry.queue.set_attributes(now_ms, attributes);
        entry.changed.notify_waiters();
        Ok(())
    }

    pub(super) fn remove(&mut self, now_ms: u64, name: &str) -> Result<(), Fault> {
        let entry = self.queues.remove(name).ok_or_else(|| Fault::no_such_queue(name))?;
        self.deleted.retain(|_, deleted_ms| now_ms < *deleted_ms + DELETED_PAUSE_MS);
        self.deleted.insert(name.to_owned(), now_ms);
        entry.queue.dropped(now_ms, || What::QueueDeleted);
        // Those who wait learn that there is nothing left to wait for.
        entry.changed.notify_waiters();
        Ok(())
    }

    pub(super) fn send(&mut self, now_ms: u64, name: &str, new: NewMessage) -> Result<Sent, Fault> {
        let entry = self.entry(name)?;
        let sent = entry.queue.send(now_ms, Uuid::new_v4().to_string(), new)?;
        entry.changed.notify_waiters();
        Ok(sent)
    }

    /// Hands out messages, and moves those that were received too often to the dead-letter queue.
    pub(super) fn receive(
        &mut self,
        now_ms: u64,
        name: &str,
        max: usize,
        visibility: Option<Duration>,
    ) -> Result<Vec<Received>, Fault> {
        let redrive = self.queue(name)?.attributes.settings.redrive.clone();
        // Without its dead-letter queue, deleted since, a queue goes on handing its messages out.
        let redrive = redrive.filter(|redrive| self.exists(&redrive.dead_letter_queue));
        let ask = Ask { max, visibility, max_receive_count: redrive.as_ref().map(|redrive| redrive.max_receive_count) };
        let handout = self.queue(name)?.receive(now_ms, ask)?;
        if let Some(redrive) = redrive
            && !handout.dead.is_empty()
        {
            let entry = self.entry(&redrive.dead_letter_queue)?;
            for message in handout.dead {
                entry.queue.take_dead(now_ms, &arn::of_queue(name), message);
            }
            entry.changed.notify_waiters();
        }
        Ok(handout.received)
    }

    pub(super) fn delete(&mut self, now_ms: u64, name: &str, receipt_handle: &str) -> Result<Deletion, Fault> {
        let entry = self.entry(name)?;
        let deleted = entry.queue.delete(now_ms, receipt_handle)?;
        // A deletion can unlock a FIFO group.
        entry.changed.notify_waiters();
        Ok(deleted)
    }

    /// Returns the dead-letter queue of a queue, if it holds this message.
    pub(super) fn dead_letter_queue_with(
        &mut self,
        now_ms: u64,
        name: &str,
        message_id: &str,
    ) -> Result<Option<String>, Fault> {
        let redrive = self.queue(name)?.attributes.settings.redrive.clone();
        let Some(dead) = redrive.map(|redrive| redrive.dead_letter_queue) else { return Ok(None) };
        let mut held = self.queue(&dead)?.look(now_ms, None);
        let is_there = held.any(|(_, message)| message.id == message_id);
        drop(held);
        Ok(is_there.then_some(dead))
    }

    pub(super) fn change_visibility(
        &mut self,
        now_ms: u64,
        name: &str,
        receipt_handle: &str,
        timeout: Duration,
    ) -> Result<(), Fault> {
        let timeout = self.hidden_max.map_or(timeout, |max| timeout.min(max));
        let entry = self.entry(name)?;
        entry.queue.change_visibility(now_ms, receipt_handle, timeout)?;
        entry.changed.notify_waiters();
        Ok(())
    }

    /// The names of the queues whose dead-letter queue is `name`.
    pub(super) fn sources(&self, name: &str) -> Vec<&str> {
        let redrives_here = |entry: &Entry| {
            let redrive = entry.queue.attributes.settings.redrive.as_ref();
            redrive.is_some_and(|redrive| redrive.dead_letter_queue == name)
        };
        let sources = self.queues.iter().filter(|(_, entry)| redrives_here(entry));
        sources.map(|(source, _)| source.as_str()).collect()
    }

    fn check_redrive(&self, source: &str, attributes: &Attributes) -> Result<(), Fault> {
        let Some(redrive) = &attributes.settings.redrive else {
            return Ok(());
        };
        let name = &redrive.dead_letter_queue;
        match self.queues.get(name) {
            None => Err(Fault::invalid_parameter(
                "RedrivePolicy",
                format!("Dead letter target does not exist: create the queue {name} first."),
            )),
            Some(target) if target.queue.attributes.settings.fifo != attributes.settings.fifo => {
                Err(Fault::invalid_parameter(
                    "RedrivePolicy",
                    format!("Dead-letter queue must be same type of queue as the source, and {name} is not."),
                ))
            }
            Some(target) if !target.queue.attributes.settings.redrive_allow.allows(source) => {
                Err(Fault::invalid_parameter(
                    "RedrivePolicy",
                    format!(
                        "The RedriveAllowPolicy of {name} does not allow this queue to use it as its dead-letter queue."
                    ),
                ))
            }
            Some(_) => Ok(()),
        }
    }

    fn entry(&mut self, name: &str) -> Result<&mut Entry, Fault> {
        self.queues.get_mut(name).ok_or_else(|| Fault::no_such_queue(name))
    }

    /// The URL of a queue, whether it exists or not.
    pub(super) fn url(&self, name: &str) -> String {
        let endpoint = self.endpoint.as_deref().unwrap_or("http://127.0.0.1");
        format!("{endpoint}/{ACCOUNT_ID}/{name}")
    }
}
