//! One queue. Pure: no clock and no I/O; `now_ms` and new message ids are arguments.

use std::collections::BTreeMap;
use std::time::Duration;

use super::attributes::Attributes;
use super::backlog::{Backlog, Key, Standing};
use super::checks;
use super::dedup::{FirstSend, Window, content_id};
use super::fault::{Code, Fault};
use super::md5;
use super::message::{Counters, Deletion, Depth, InFlight, NewMessage, Sent, StoredMessage};
use super::notes::Notes;
use super::queued::{Content, Message, Receives};
use super::receipt::{self, Ask, Handout};
use super::settings::{DeduplicationScope, VISIBILITY_MAX_S};
use crate::arn;
use crate::journal::What;

/// The most messages of one queue that can be in flight.
const IN_FLIGHT_MAX: usize = 120_000;
/// How long after a purge the next one is refused.
const PURGE_PAUSE_MS: u64 = 60_000;

/// A queue and its messages.
#[derive(Debug)]
pub(super) struct Queue {
    /// Tells this queue's receipt handles from those of others, even of an earlier queue of the same name.
    id: String,
    in_flight_max: usize,
    pub(super) attributes: Attributes,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) times: Times,
    backlog: Backlog,
    window: Window,
    sequence: u64,
    counters: Counters,
    pub(super) notes: Notes,
}

/// When something was last done to the queue itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) created_ms: u64,
    pub(super) modified_ms: u64,
    purged_ms: Option<u64>,
}

impl Queue {
    pub(super) fn new(id: String, attributes: Attributes, now_ms: u64) -> Self {
        Self {
            id,
            in_flight_max: IN_FLIGHT_MAX,
            backlog: Backlog::new(attributes.settings.fifo),
            attributes,
            tags: BTreeMap::new(),
            times: Times { created_ms: now_ms, modified_ms: now_ms, purged_ms: None },
            window: Window::default(),
            sequence: 0,
            counters: Counters::default(),
            notes: Notes::default(),
        }
    }

    /// Enqueues a message under `message_id`, unless it repeats one inside the deduplication window.
    pub(super) fn send(&mut self, now_ms: u64, message_id: String, new: NewMessage) -> Result<Sent, Fault> {
        self.advance(now_ms);
        checks::message(&new, &self.attributes)?;
        let mut sent = Sent {
            message_id,
            md5_of_body: md5::of_body(&new.body),
            md5_of_message_attributes: md5::of_attributes(&new.message_attributes),
            md5_of_message_system_attributes: md5::of_attributes(&checks::system_attributes(&new)),
            sequence_number: None,
        };
        let mut deduplication_id = None;
        if self.attributes.settings.fifo {
            let id = new.deduplication_id.unwrap_or_else(|| content_id(&new.body));
            let per_group = self.attributes.settings.deduplication.scope == DeduplicationScope::MessageGroup;
            let scope = new.group_id.clone().filter(|_| per_group);
            let scope = (scope, id.clone());
            if let Some(first) = self.window.find(now_ms, &scope) {
                sent.message_id = first.message_id;
                sent.sequence_number = Some(first.sequence_number);
                self.notes.write(now_ms, &sent.message_id, || What::Deduplicated);
                return Ok(sent);
            }
            let first = FirstSend { message_id: sent.message_id.clone(), sequence_number: self.next_sequence_number() };
            sent.sequence_number = Some(first.sequence_number.clone());
            self.window.open(now_ms, scope, first);
            deduplication_id = Some(id);
        }
        let delay = new.delay.filter(|_| !self.attributes.settings.fifo);
        let delay = delay.unwrap_or(self.attributes.settings.delay);
        let message = Message {
            id: sent.message_id.clone(),
            content: Content {
                body: new.body,
                md5_of_body: sent.md5_of_body.clone(),
                attributes: new.message_attributes,
                trace_header: new.trace_header,
            },
            group_id: new.group_id,
            deduplication_id,
            sequence_number: sent.sequence_number.clone(),
            sent_ms: now_ms,
            retained_from_ms: now_ms,
            receives: Receives::default(),
            dead_letter_source: None,
        };
        self.notes.sent(now_ms, now_ms + millis(delay), &message);
        self.backlog.insert(message, now_ms, millis(delay));
        self.counters.sent += 1;
        Ok(sent)
    }

    /// Hands out up to `ask.max` messages and hides them.
    pub(super) fn receive(&mut self, now_ms: u64, ask: Ask) -> Result<Handout, Fault> {
        self.advance(now_ms);
        let visibility = ask.visibility.unwrap_or(self.attributes.settings.visibility_timeout);
        let until_ms = now_ms + millis(visibility);
        let mut handout = Handout::default();
        let mut last: Option<(String, Key)> = None;
        while handout.received.len() < ask.max {
            let after = last.as_ref().map(|(group, key)| (group.as_str(), *key));
            let Some(key) = self.backlog.next_ready(after) else {
                break;
            };
            let Some((message, _)) = self.backlog.get(key) else {
                break;
            };
            last = message.group_id.clone().map(|group| (group, key));
            if ask.max_receive_count.is_some_and(|max| message.receives.here >= max) {
                handout.dead.extend(self.backlog.remove(key));
                continue;
            }
            if self.backlog.depth().in_flight >= self.in_flight_max {
                // A FIFO queue answers with nothing instead, and so does a receive that has got something already.
                if self.attributes.settings.fifo || !handout.received.is_empty() || !handout.dead.is_empty() {
                    break;
                }
                return Err(Fault::over_limit(self.in_flight_max));
            }
            if let Some(message) = self.backlog.receive(key, now_ms, until_ms) {
                let count = message.receives.count;
                self.notes.write(now_ms, &message.id, || What::Received { count, hidden_until_ms: until_ms });
                handout.received.push(receipt::received(&self.id, key, message));
            }
        }
        self.counters.received += handout.received.len() as u64;
        self.counters.dead_lettered += handout.dead.len() as u64;
        Ok(handout)
    }

    /// Deletes a message by its newest receipt handle. An expired one of a FIFO queue is a fault; an older one of another deletes nothing.
    pub(super) fn delete(&mut self, now_ms: u64, receipt_handle: &str) -> Result<Deletion, Fault> {
        self.advance(now_ms);
        let (key, receipt) = receipt::parse(&self.id, receipt_handle)?;
        let fifo = self.attributes.settings.fifo;
        let Some((message, standing)) = self.backlog.get(key) else { return Ok(Deletion::Gone) };
        let current = receipt == message.receives.here && (!fifo || matches!(standing, Standing::InFlight { .. }));
        if !current {
            return if fifo { Err(handle_expired()) } else { Ok(Deletion::Stale) };
        }
        self.notes.write(now_ms, &message.id, || What::Deleted);
        self.backlog.remove(key);
        self.counters.deleted += 1;
        Ok(Deletion::Deleted)
    }

    /// Hides a message in flight for `timeout` from now; zero makes it visible at once. On a standard queue a message whose
    /// timeout has ended stays as it is, without an error: AWS answers so.
    pub(super) fn change_visibility(
        &mut self,
        now_ms: u64,
        receipt_handle: &str,
        timeout: Duration,
    ) -> Result<(), Fault> {
        self.advance(now_ms);
        let (key, receipt) = receipt::parse(&self.id, receipt_handle)?;
        let fifo = self.attributes.settings.fifo;
        let Some((message, standing)) = self.backlog.get(key) else {
            return Err(Fault::invalid_parameter(
                "ReceiptHandle",
                "Message does not exist or is not available for visibility timeout change.",
            ));
        };
        let Standing::InFlight { received_ms, .. } = standing else {
            return if fifo { Err(handle_expired()) } else { Ok(()) };
        };
        if fifo && receipt != message.receives.here {
            return Err(handle_expired());
        }
        let held_s = now_ms.saturating_sub(received_ms) / 1_000;
        if held_s + timeout.as_secs() > VISIBILITY_MAX_S {
            return Err(Fault::invalid_parameter(
                "VisibilityTimeout",
                format!("Total VisibilityTimeout for the message is beyond the limit [{VISIBILITY_MAX_S} seconds]."),
            ));
        }
        let until_ms = now_ms + millis(timeout);
        self.notes.write(now_ms, &message.id, || What::Hidden { until_ms });
        let standing = if timeout.is_zero() {
            Standing::Ready { since_ms: now_ms }
        } else {
            Standing::InFlight { received_ms, until_ms }
        };
        self.backlog.stand(key, standing);
        Ok(())
    }

    /// Adds a message that another queue gave up on.
    pub(super) fn take_dead(&mut self, now_ms: u64, source_arn: &str, message: Message) {
        let retained_from_ms = if self.attributes.settings.fifo {
            now_ms // FIFO queues count the retention from the move, standard queues from the sending.
        } else {
            message.retained_from_ms
        };
        let (from, receives) = (arn::queue_name(source_arn).unwrap_or(source_arn), message.receives.here);
        self.notes.write(now_ms, &message.id, || What::DeadLettered { from: from.into(), receives });
        self.backlog.insert(message.dead_lettered(source_arn, retained_from_ms), now_ms, 0);
    }

    /// Adds a message that a dead-letter queue sends back.
    pub(super) fn take_redriven(&mut self, now_ms: u64, message_id: String, message: Message, from: &str) {
        self.notes.redriven(now_ms, &message_id, &message, from);
        let sequence_number = message.sequence_number.as_ref().map(|_| self.next_sequence_number());
        self.backlog.insert(message.redriven(now_ms, message_id, sequence_number), now_ms, 0);
    }

    /// Returns the first visible message, in order of arrival on a FIFO queue, without receiving it.
    pub(super) fn first_visible(&mut self, now_ms: u64) -> Option<&Message> {
        self.advance(now_ms);
        self.backlog.first_ready().and_then(|key| self.backlog.get(key)).map(|(message, _)| message)
    }

    /// Takes out the message that [`first_visible`](Self::first_visible) returns.
    pub(super) fn take_first_visible(&mut self, now_ms: u64) -> Option<Message> {
        self.advance(now_ms);
        self.backlog.first_ready().and_then(|key| self.backlog.remove(key))
    }

    pub(super) fn set_attributes(&mut self, now_ms: u64, attributes: Attributes) {
        let delay = attributes.settings.delay;
        // A new delay reaches back to messages already sent on FIFO queues, where order forbids anything else.
        if attributes.settings.fifo && delay != self.attributes.settings.delay {
            self.backlog.delay_again(millis(delay));
        }
        self.attributes = attributes;
        self.times.modified_ms = now_ms;
    }

    /// Drops every message, those in flight too, and what was known of their deduplication ids. Refused within a minute of
    /// the last purge.
    pub(super) fn purge(&mut self, now_ms: u64, name: &str) -> Result<(), Fault> {
        if self.times.purged_ms.is_some_and(|last_ms| now_ms < last_ms + PURGE_PAUSE_MS) {
            let message = format!("Only one PurgeQueue operation on {name} is allowed every 60 seconds.");
            return Err(Fault::new(Code::PurgeQueueInProgress, message));
        }
        self.times.purged_ms = Some(now_ms);
        self.dropped(now_ms, || What::Purged);
        self.backlog.clear();
        self.window = Window::default();
        Ok(())
    }

    /// Writes that every message is dropped.
    pub(super) fn dropped(&self, now_ms: u64, how: fn() -> What) {
        self.notes.of_all(now_ms, self.backlog.later(None).map(|(_, message)| message), how);
    }

    pub(super) fn depth(&mut self, now_ms: u64) -> Depth {
        self.advance(now_ms);
        self.backlog.depth()
    }

    pub(super) fn counters(&mut self, now_ms: u64) -> Counters {
        self.advance(now_ms);
        self.counters
    }

    pub(super) fn stored(&mut self, now_ms: u64) -> Vec<StoredMessage> {
        self.advance(now_ms);
        self.backlog.stored()
    }

    pub(super) fn in_flight(&mut self, now_ms: u64) -> Vec<InFlight> {
        self.advance(now_ms);
        let seen = self.backlog.in_flight().map(|(message, until_ms)| InFlight {
            message_id: message.id.clone(),
            visible_in: Duration::from_millis(until_ms.saturating_sub(now_ms)),
        });
        seen.collect()
    }

    /// Returns messages that came after this position, without receiving them.
    pub(super) fn look(&mut self, now_ms: u64, after: Option<Key>) -> impl Iterator<Item = (Key, &Message)> {
        self.advance(now_ms);
        self.backlog.later(after)
    }

    /// When a hidden message becomes visible by itself.
    pub(super) fn next_change_ms(&self) -> Option<u64> {
        self.backlog.next_change_ms()
    }

    fn advance(&mut self, now_ms: u64) {
        let retention_ms = millis(self.attributes.settings.retention);
        for message in self.backlog.advance(now_ms, retention_ms) {
            self.notes.write(now_ms, &message.id, || What::Expired);
            self.counters.expired += 1;
        }
    }

    /// 20 digits, like those of SQS.
    fn next_sequence_number(&mut self) -> String {
        self.sequence += 1;
        format!("188{:017}", self.sequence)
    }
}

fn handle_expired() -> Fault {
    Fault::invalid_parameter("ReceiptHandle", "The receipt handle has expired.")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("every duration of a queue is at most 14 days")
}

#[cfg(test)]
mod tests;
