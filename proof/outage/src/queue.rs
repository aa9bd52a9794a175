//! SQS: visibility, receives, what may be in flight, the dead-letter queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::setting::Setting;

/// Messages are numbered as they are sent; times are milliseconds since the beginning.
#[derive(Default)]
pub(crate) struct Queue {
    messages: Vec<Waiting>,
    /// The oldest first, as SQS tries to.
    visible: BinaryHeap<Reverse<u32>>,
    /// When each is visible again; one whose message says another time is of an earlier receive.
    hidden: BinaryHeap<Reverse<(u64, u32)>>,
    pub(crate) in_flight: usize,
    pub(crate) in_flight_max: usize,
    pub(crate) receives: u64,
    pub(crate) dead: usize,
}

#[derive(Clone, Copy)]
struct Waiting {
    receives: u32,
    /// None where it is visible, or gone.
    hidden_until: Option<u64>,
}

impl Queue {
    pub(crate) fn new(in_flight_max: usize) -> Self {
        Self { in_flight_max, ..Self::default() }
    }

    pub(crate) fn send(&mut self) {
        self.visible.push(Reverse(self.messages.len() as u32));
        self.messages.push(Waiting { receives: 0, hidden_until: None });
    }

    pub(crate) fn sent(&self) -> usize {
        self.messages.len()
    }

    pub(crate) fn visible(&self) -> usize {
        self.visible.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.visible.is_empty() && self.in_flight == 0
    }

    /// Receives a batch at most: the number of each message, and how often it was received by now. Those that were received too
    /// often go to the dead-letter queue.
    pub(crate) fn receive(&mut self, now: u64) -> Vec<(u32, u32)> {
        self.show(now);
        let mut received = Vec::with_capacity(Setting::BATCH);
        while received.len() < Setting::BATCH && self.in_flight < self.in_flight_max {
            let Some(Reverse(n)) = self.visible.pop() else { break };
            let message = &mut self.messages[n as usize];
            if message.receives == Setting::RECEIVES_MAX {
                self.dead += 1;
                continue;
            }
            message.receives += 1;
            received.push((n, message.receives));
            self.in_flight += 1;
            self.hide(n, now + Setting::VISIBILITY.as_millis() as u64);
        }
        self.receives += received.len() as u64;
        received
    }

    /// Hides a message that is in flight until then.
    pub(crate) fn hide(&mut self, n: u32, until: u64) {
        if let Some(message) = self.messages.get_mut(n as usize) {
            message.hidden_until = Some(until);
            self.hidden.push(Reverse((until, n)));
        }
    }

    /// Deletes a message that is in flight.
    pub(crate) fn delete(&mut self, n: u32) {
        if self.messages[n as usize].hidden_until.take().is_some() {
            self.in_flight -= 1;
        }
    }

    /// Shows what is to be visible by now.
    pub(crate) fn show(&mut self, now: u64) {
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
