//! A queue as SQS keeps it, with its dead-letter queue: visibility, receive counts, redrive, groups. Pure: time is an
//! argument, in milliseconds.

use std::collections::{BTreeMap, BTreeSet};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// Its body.
    pub body: String,
    /// Its group, on a FIFO queue.
    pub group: Option<u32>,
    /// How often it was received.
    pub receives: u32,
    hidden_until_ms: u64,
    /// Whether it was handed out and is hidden for that; the number of the newest receipt is that of its receives.
    in_flight: bool,
}

/// What a receiver gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The message as it was then.
    pub message: Message,
    /// What changes its visibility, and deletes it.
    pub receipt: String,
}

/// A queue and its dead-letter queue.
#[derive(Debug, Default)]
pub struct Sqs {
    fifo: bool,
    visibility_ms: u64,
    max_receives: u32,
    /// By the numbers of their ids, which is the order of sending.
    messages: BTreeMap<u32, Message>,
    /// Dead letters, oldest first.
    pub dead: Vec<Message>,
    /// What is sent again at its time, by the names of the schedules.
    scheduled: BTreeMap<String, Scheduled>,
    sent: u32,
}

/// A message that is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    /// When.
    pub at_ms: u64,
    /// The message that it was.
    pub id: String,
    /// Its body.
    pub body: String,
    /// Its group, on a FIFO queue.
    pub group: Option<u32>,
    /// The request that made the schedule, as it is shown.
    pub request: String,
}

/// Why a request was refused: the message was deleted, or, on a FIFO queue, another owner has it, or may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired;

impl Sqs {
    /// An empty queue.
    #[must_use]
    pub fn new(fifo: bool, visibility_ms: u64, max_receives: u32) -> Self {
        Self { fifo, visibility_ms, max_receives, ..Self::default() }
    }

    /// Sends a message, and gives its id.
    pub fn send(&mut self, now_ms: u64, body: String, group: Option<u32>) -> String {
        self.sent += 1;
        let id = format!("m-{}", self.sent);
        let message = Message { id: id.clone(), body, group, receives: 0, hidden_until_ms: now_ms, in_flight: false };
        self.messages.insert(self.sent, message);
        id
    }

    /// Puts a copy into the dead-letter queue, and gives its id.
    pub fn send_dead(&mut self, body: String, group: Option<u32>) -> String {
        self.sent += 1;
        let id = format!("m-{}", self.sent);
        let (receives, hidden_until_ms) = (0, 0);
        self.dead.push(Message { id: id.clone(), body, group, receives, hidden_until_ms, in_flight: false });
        id
    }

    /// Makes a schedule; whether there was none of this name.
    pub fn schedule(&mut self, name: &str, scheduled: Scheduled) -> bool {
        let free = !self.scheduled.contains_key(name);
        if free {
            self.scheduled.insert(name.to_owned(), scheduled);
        }
        free
    }

    /// The schedule of this name.
    #[must_use]
    pub fn scheduled(&self, name: &str) -> Option<&Scheduled> {
        self.scheduled.get(name)
    }

    /// Sends what is due, and gives names, old ids and new ones.
    pub fn send_scheduled(&mut self, now_ms: u64) -> Vec<(String, String, String)> {
        let due = |scheduled: &Scheduled| scheduled.at_ms <= now_ms;
        let names: Vec<_> = self.scheduled.iter().filter(|(_, one)| due(one)).map(|(name, _)| name.clone()).collect();
        let sent = names.into_iter().filter_map(|name| {
            let Scheduled { id, body, group, .. } = self.scheduled.remove(&name)?;
            let again = self.send(now_ms, body, group);
            Some((name, id, again))
        });
        sent.collect()
    }

    /// Moves dead letters back, as new messages; gives old and new ids.
    pub fn redrive(&mut self, now_ms: u64, wanted: impl Fn(&Message) -> bool) -> Vec<(Message, String)> {
        let (dead, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.dead).into_iter().partition(wanted);
        self.dead = kept;
        let again = dead.into_iter().map(|message| {
            let id = self.send(now_ms, message.body.clone(), message.group);
            (message, id)
        });
        again.collect()
    }

    /// Receives up to `max` messages; `order` gives each candidate a place. The second list are those that were received
    /// too often and are dead now.
    pub fn receive(&mut self, now_ms: u64, max: usize, order: impl Fn(u32) -> u64) -> (Vec<Delivery>, Vec<Message>) {
        self.advance(now_ms);
        let is_ready = |m: &Message| !m.in_flight && m.hidden_until_ms <= now_ms;
        // A hidden message holds up what is behind it in its group, and nothing before it.
        let mut held_up: BTreeSet<Option<u32>> = BTreeSet::new();
        let mut ready = Vec::new();
        for (number, message) in &self.messages {
            if !is_ready(message) {
                held_up.insert(message.group.filter(|_| self.fifo));
            } else if !self.fifo || !held_up.contains(&message.group) {
                ready.push(*number);
            }
        }
        if !self.fifo {
            ready.sort_by_cached_key(|number| (order(*number), *number));
        }
        let (mut deliveries, mut dead) = (Vec::new(), Vec::new());
        for number in ready {
            if deliveries.len() >= max {
                break;
            }
            let Some(message) = self.messages.get_mut(&number) else { continue };
            if message.receives >= self.max_receives {
                dead.extend(self.messages.remove(&number));
                continue;
            }
            message.receives += 1;
            message.in_flight = true;
            message.hidden_until_ms = now_ms + self.visibility_ms;
            let receipt = format!("{}/{}", message.id, message.receives);
            deliveries.push(Delivery { message: message.clone(), receipt });
        }
        self.dead.extend(dead.iter().cloned());
        (deliveries, dead)
    }

    /// Deletes a message; whether it was there.
    pub fn delete(&mut self, now_ms: u64, receipt: &str) -> bool {
        let found = self.find(now_ms, receipt);
        found.is_ok_and(|number| self.messages.remove(&number).is_some())
    }

    /// Hides a message for so long from now. As SQS does, a standard queue takes this for one that is visible again, too, and
    /// changes nothing.
    ///
    /// # Errors
    /// When it is no longer this receiver's to hide.
    pub fn hide(&mut self, now_ms: u64, receipt: &str, for_s: u64) -> Result<(), Expired> {
        let number = self.find(now_ms, receipt)?;
        if let Some(message) = self.messages.get_mut(&number).filter(|message| message.in_flight) {
            message.hidden_until_ms = now_ms + for_s * 1_000;
            message.in_flight = for_s > 0;
        }
        Ok(())
    }

    /// Shows a message again that is in flight.
    pub fn show(&mut self, id: &str) {
        if let Some(message) = number(id).and_then(|number| self.messages.get_mut(&number)) {
            message.in_flight = false;
            message.hidden_until_ms = 0;
        }
    }

    /// Receives a message once more that was just received.
    pub fn receive_again(&mut self, id: &str) -> Option<Delivery> {
        let message = self.messages.get_mut(&number(id)?)?;
        message.receives += 1;
        Some(Delivery { message: message.clone(), receipt: format!("{id}/{}", message.receives) })
    }

    /// Whether there is nothing but dead letters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.scheduled.is_empty()
    }

    /// The message of this id, while it is in the queue.
    #[must_use]
    pub fn message(&self, id: &str) -> Option<&Message> {
        self.messages.get(&number(id)?)
    }

    /// The messages that are in the queue.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.values()
    }

    /// When the next message becomes visible by itself.
    #[must_use]
    pub fn next_ms(&self) -> Option<u64> {
        let shown = self.messages.values().map(|message| message.hidden_until_ms);
        shown.chain(self.scheduled.values().map(|scheduled| scheduled.at_ms)).min()
    }

    fn advance(&mut self, now_ms: u64) {
        for message in self.messages.values_mut().filter(|message| message.hidden_until_ms <= now_ms) {
            message.in_flight = false;
        }
    }

    /// The message of this receipt; a FIFO queue takes only the newest, while the message is in flight.
    fn find(&mut self, now_ms: u64, receipt: &str) -> Result<u32, Expired> {
        let (id, receives) = receipt.split_once('/').ok_or(Expired)?;
        let number = number(id).ok_or(Expired)?;
        let message = self.messages.get_mut(&number).ok_or(Expired)?;
        message.in_flight &= message.hidden_until_ms > now_ms;
        if self.fifo && (!message.in_flight || message.receives.to_string() != receives) {
            return Err(Expired);
        }
        Ok(number)
    }
}

/// The number in an id.
fn number(id: &str) -> Option<u32> {
    id.strip_prefix("m-")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(received: (Vec<Delivery>, Vec<Message>)) -> Vec<String> {
        received.0.into_iter().map(|delivery| delivery.message.id).collect()
    }

    #[test]
    fn messages_are_hidden_counted_and_moved() {
        let mut sqs = Sqs::new(false, 10_000, 2);
        sqs.send(0, "a".into(), None);
        let first = sqs.receive(0, 10, |_| 0).0;
        assert_eq!(sqs.receive(9_999, 10, |_| 0).0, []);
        assert_eq!(sqs.hide(9_999, &first[0].receipt, 5), Ok(()));
        assert_eq!(sqs.receive(14_998, 10, |_| 0).0, []);
        assert_eq!(sqs.hide(14_999, &first[0].receipt, 5), Ok(()), "taken, and nothing changes");
        assert_eq!(ids(sqs.receive(14_999, 10, |_| 0)), ["m-1"]);
        assert_eq!(sqs.receive(30_000, 10, |_| 0).1[0].id, "m-1");
        assert!(sqs.is_empty() && sqs.dead.len() == 1);
        assert_eq!(sqs.hide(30_000, &first[0].receipt, 5), Err(Expired));
        assert_eq!(sqs.redrive(30_000, |_| true)[0].1, "m-2");
        let again = sqs.receive(30_000, 10, |_| 0).0;
        assert_eq!(again[0].message.receives, 1);
        assert!(sqs.delete(99_000, &again[0].receipt) && sqs.is_empty());
    }

    #[test]
    fn a_hidden_message_holds_up_what_is_behind_it_in_its_group() {
        let mut sqs = Sqs::new(true, 10_000, 9);
        for (body, group) in [("a", 1), ("b", 1), ("c", 2), ("d", 1)] {
            sqs.send(0, body.into(), Some(group));
        }
        let first = sqs.receive(0, 1, |_| 0).0;
        assert_eq!(ids(sqs.receive(0, 10, |_| 0)), ["m-3"]);
        assert!(sqs.delete(1, &first[0].receipt));
        let second = sqs.receive(1, 10, |_| 0).0;
        assert_eq!(second[0].message.id, "m-2");
        assert_eq!(sqs.receive(20_000, 1, |_| 0).0.len(), 1);
        assert!(!sqs.delete(20_000, &second[0].receipt), "the receipt has expired");
    }

    #[test]
    fn a_message_that_comes_back_is_received_though_a_later_one_of_its_group_is_in_flight() {
        let mut sqs = Sqs::new(true, 10_000, 9);
        for body in ["a", "b", "c"] {
            sqs.send(0, body.into(), Some(1));
        }
        let two = sqs.receive(0, 2, |_| 0).0;
        assert_eq!(sqs.hide(0, &two[0].receipt, 0), Ok(()));
        let back = sqs.receive(0, 10, |_| 0).0;
        assert_eq!(back[0].message.id, "m-1");
        assert!(back.len() == 1 && sqs.delete(0, &back[0].receipt));
        assert_eq!(sqs.receive(0, 10, |_| 0).0, [], "b holds up c");
        assert!(sqs.delete(0, &two[1].receipt));
        assert_eq!(ids(sqs.receive(0, 10, |_| 0)), ["m-3"]);
    }
}
