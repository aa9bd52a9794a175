//! All queues of the account, and what happens between two of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use uuid::Uuid;

use super::attributes::{ARN_PREFIX, Attributes, name_in_arn};
use super::fault::{Code, Fault};
use super::message::{NewMessage, Received, Sent};
use super::queue::{Ask, Queue};
use super::receipt::SENDER_ID;

/// The queues by name.
#[derive(Debug, Default)]
pub(super) struct Account {
    queues: BTreeMap<String, Entry>,
    /// The start of every queue URL, without a slash at its end.
    pub(super) endpoint: Option<String>,
    /// Where set, no change of visibility hides a message for longer.
    pub(super) hidden_max: Option<Duration>,
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
        self.check_redrive(&attributes)?;
        let entry = Entry {
            queue: Queue::new(Uuid::new_v4().simple().to_string(), attributes, now_ms),
            changed: Arc::default(),
        };
        Ok(&mut self.queues.entry(name.to_owned()).or_insert(entry).queue)
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
        self.check_redrive(&attributes)?;
        let entry = self.entry(name)?;
        entry.queue.set_attributes(now_ms, attributes);
        entry.changed.notify_waiters();
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), Fault> {
        let entry = self.queues.remove(name).ok_or_else(|| Fault::no_such_queue(name))?;
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
                entry.queue.take_dead(now_ms, &arn(name), message);
            }
            entry.changed.notify_waiters();
        }
        Ok(handout.received)
    }

    pub(super) fn delete(&mut self, now_ms: u64, name: &str, receipt_handle: &str) -> Result<bool, Fault> {
        let entry = self.entry(name)?;
        let deleted = entry.queue.delete(now_ms, receipt_handle)?;
        // A deletion can unlock a FIFO group.
        entry.changed.notify_waiters();
        Ok(deleted)
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

    /// Moves every visible message of a dead-letter queue to `destination`, or back to where it came from. A message
    /// whose origin is unknown or gone stays. Gives the number of messages moved.
    pub(super) fn redrive(&mut self, now_ms: u64, source: &str, destination: Option<&str>) -> Result<usize, Fault> {
        self.check_move(source, destination)?;
        let existing: Vec<String> = self.queues.keys().cloned().collect();
        let target = |origin_arn: Option<&str>| {
            let origin = destination.or_else(|| name_in_arn(origin_arn?))?;
            existing.iter().find(|name| *name == origin).cloned()
        };
        let messages =
            self.queue(source)?.take_visible(now_ms, |message| target(message.dead_letter_source.as_deref()).is_some());
        let moved = messages.len();
        for message in messages {
            let Some(name) = target(message.dead_letter_source.as_deref()) else {
                continue; // `take_visible` has asked the same question: there is a target.
            };
            let entry = self.entry(&name)?;
            entry.queue.take_redriven(now_ms, Uuid::new_v4().to_string(), message);
            entry.changed.notify_waiters();
        }
        Ok(moved)
    }

    fn check_move(&self, source: &str, destination: Option<&str>) -> Result<(), Fault> {
        let found = |role: &str, name: &str| match self.queues.get(name) {
            Some(entry) => Ok(&entry.queue.attributes.settings),
            None => Err(Fault::new(
                Code::ResourceNotFound,
                format!("The resource that you specified for the {role} parameter doesn't exist."),
            )),
        };
        let source_settings = found("SourceArn", source)?;
        if self.sources(source).is_empty() {
            return Err(Fault::invalid_parameter(
                "SourceArn",
                "Source queue must be configured as a Dead Letter Queue.",
            ));
        }
        if let Some(destination) = destination {
            let destination_settings = found("DestinationArn", destination)?;
            if destination == source || destination_settings.fifo != source_settings.fifo {
                return Err(Fault::invalid_parameter(
                    "DestinationArn",
                    "Destination queue must be another queue of the same type as the source.",
                ));
            }
        }
        Ok(())
    }

    fn check_redrive(&self, attributes: &Attributes) -> Result<(), Fault> {
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
            Some(_) => Ok(()),
        }
    }

    fn entry(&mut self, name: &str) -> Result<&mut Entry, Fault> {
        self.queues.get_mut(name).ok_or_else(|| Fault::no_such_queue(name))
    }

    /// The URL of a queue, whether it exists or not.
    pub(super) fn url(&self, name: &str) -> String {
        let endpoint = self.endpoint.as_deref().unwrap_or("http://127.0.0.1");
        format!("{endpoint}/{SENDER_ID}/{name}")
    }
}

/// The ARN of a queue, whether it exists or not.
pub(super) fn arn(name: &str) -> String {
    format!("{ARN_PREFIX}{name}")
}
