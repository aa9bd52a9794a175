//! SQS: visibility, receives, what may be in flight, the dead-letter queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// The queue's settings.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Messages of a batch.
    pub batch: usize,
    /// For how long a message that is received is hidden.
    pub visibility: Duration,
    /// How often a message is received; what is visible once more goes to the dead-letter queue.
    pub receives: u32,
    /// Messages in flight, beyond which nothing is received.
    pub in_flight: usize,
}

/// Messages are numbered as they are sent; times are milliseconds since the beginning.
pub struct Queue {
    limits: Limits,
    messages: Vec<Waiting>,
    /// The oldest first, as SQS tries to.
    visible: BinaryHeap<Reverse<u32>>,
    /// When each is visible again; one whose message says another time is of an earlier receive.
    hidden: BinaryHeap<Reverse<(u64, u32)>>,
    /// Messages that were received, and are neither deleted nor visible again.
    pub in_flight: usize,
    /// Receives of messages.
    pub receives: u64,
    /// Messages in the dead-letter queue.
    pub dead: usize,
}

#[derive(Clone, Copy)]
struct Waiting {
    receives: u32,
    /// None where it is visible, or gone.
    hidden_until: Option<u64>,
    /// Whether it is in the dead-letter queue.
    dead: bool,
}

impl Queue {
    /// Returns an empty queue.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let (messages, visible, hidden) = (Vec::new(), BinaryHeap::new(), BinaryHeap::new());
        Self { limits, messages, visible, hidden, in_flight: 0, receives: 0, dead: 0 }
    }

    /// Sends the next message.
    pub fn send(&mut self) {
        self.visible.push(Reverse(self.messages.len() as u32));
        self.messages.push(Waiting { receives: 0, hidden_until: None, dead: false });
    }

    /// Returns how many messages were sent.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.messages.len()
    }

    /// Returns the numbers of the messages in the dead-letter queue.
    #[must_use]
    pub fn dead_numbers(&self) -> Vec<usize> {
        self.messages.iter().enumerate().filter(|(_, message)| message.dead).map(|(n, _)| n).collect()
    }

    /// Returns how many messages are visible.
    #[must_use]
    pub fn visible(&self) -> usize {
        self.visible.len()
    }

    /// Returns whether no message is visible or in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.visible.is_empty() && self.in_flight == 0
    }

    /// Receives a batch at most: the number of each message, and how often it was received by now. Those that were received too
    /// often go to the dead-letter queue.
    pub fn receive(&mut self, now: u64) -> Vec<(u32, u32)> {
        self.show(now);
        let mut received = Vec::with_capacity(self.limits.batch);
        while received.len() < self.limits.batch && self.in_flight < self.limits.in_flight {
            let Some(Reverse(n)) = self.visible.pop() else { break };
            let message = &mut self.messages[n as usize];
            if message.receives == self.limits.receives {
                message.dead = true;
                self.dead += 1;
                continue;
            }
            message.receives += 1;
            received.push((n, message.receives));
            self.in_flight += 1;
            self.hide(n, now + self.limits.visibility.as_millis() as u64);
        }
        self.receives += received.len() as u64;
        received
    }

    /// Hides a message that is in flight until then.
    pub fn hide(&mut self, n: u32, until: u64) {
        if let Some(message) = self.messages.get_mut(n as usize) {
            message.hidden_until = Some(until);
            self.hidden.push(Reverse((until, n)));
        }
    }

    /// Deletes a message that is in flight.
    pub fn delete(&mut self, n: u32) {
        if self.messages[n as usize].hidden_until.take().is_some() {
            self.in_flight -= 1;
        }
    }

    /// Shows what is to be visible by now.
    pub fn show(&mut self, now: u64) {
        while let Some(Reverse((until, n))) = self.hidden.peek().copied().filter(|Reverse((until, _))| *until <= now) {
            self.hidden.pop();
            let message = &mut self.messages[n as usize];
            if message.hidden_until == Some(until) {
                message.hidden_until = None;
                self.in_flight -= 1;
                self.visible.push(Reverse(n));
            }
        }
    }
}
