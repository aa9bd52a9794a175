//! Scripts for queues: what is done to one, and what must come of it.

use std::collections::HashMap;

use super::super::super::message::Received;
use super::super::super::settings::QueueSettings;
use super::super::*;
use Step::*;

/// One line of a script. Messages are named by their bodies, receipts by their number, from 0.
pub(super) enum Step {
    /// The time from here on, in milliseconds.
    At(u64),
    Send(&'static str),
    /// Body and delay in seconds.
    SendLate(&'static str, u64),
    /// Body, group and deduplication id: enqueued.
    SendTo(&'static str, &'static str, &'static str),
    /// The same, taken for a repeat of the message with the body named last.
    Repeat(&'static str, &'static str, &'static str, &'static str),
    /// How many are asked for, and the bodies that come.
    Receive(usize, &'static [&'static str]),
    /// The same with a visibility timeout in seconds.
    ReceiveFor(usize, u64, &'static [&'static str]),
    /// The bodies that the last receive moved out as dead.
    Dead(&'static [&'static str]),
    Delete(&'static str, usize, Result<Deletion, Code>),
    /// Body, receipt, and the new timeout in seconds.
    Hide(&'static str, usize, u64, Result<(), Code>),
    /// Visible, in flight, delayed.
    Depth(usize, usize, usize),
    /// When the next hidden message becomes visible.
    Next(Option<u64>),
    /// The `ApproximateReceiveCount` of the message in the last receive that gave it.
    Count(&'static str, &'static str),
    Expired(u64),
}

struct Play {
    queue: Queue,
    now_ms: u64,
    max_receive_count: Option<u32>,
    ids: HashMap<&'static str, String>,
    received: HashMap<String, Vec<Received>>,
    dead: Vec<String>,
}

pub(super) const STANDARD: QueueSettings =
    QueueSettings { retention: Duration::from_secs(1_000), ..QueueSettings::STANDARD };

pub(super) const FIFO: QueueSettings = QueueSettings { fifo: true, ..STANDARD };

pub(super) fn check(case: &str, settings: QueueSettings, max_receive_count: Option<u32>, steps: &[Step]) {
    let mut play = Play {
        queue: Queue::new("queue".to_owned(), Attributes::new(settings), 0),
        now_ms: 0,
        max_receive_count,
        ids: HashMap::new(),
        received: HashMap::new(),
        dead: Vec::new(),
    };
    for (number, step) in steps.iter().enumerate() {
        play.step(step, &format!("{case}, step {number}"));
    }
}

impl Play {
    fn step(&mut self, step: &Step, at: &str) {
        let (queue, now_ms) = (&mut self.queue, self.now_ms);
        match *step {
            At(now_ms) => self.now_ms = now_ms,
            Send(body) => self.send(body, NewMessage::new(body), None, at),
            SendLate(body, delay_s) => {
                let delay = Some(Duration::from_secs(delay_s));
                self.send(body, NewMessage { delay, ..NewMessage::new(body) }, None, at);
            }
            SendTo(body, group, id) => self.send(body, grouped(body, group, id), None, at),
            Repeat(body, group, id, first) => self.send(body, grouped(body, group, id), Some(first), at),
            Receive(max, expected) => self.receive(max, None, expected, at),
            ReceiveFor(max, visibility_s, expected) => self.receive(max, Some(visibility_s), expected, at),
            Dead(expected) => assert_eq!(self.dead, expected, "{at}"),
            Delete(body, receipt, expected) => {
                let handle = &self.received[body][receipt].receipt_handle;
                let deleted = queue.delete(now_ms, handle).map_err(|fault| fault.code);
                assert_eq!(deleted, expected, "{at}");
            }
            Hide(body, receipt, timeout_s, expected) => {
                let handle = &self.received[body][receipt].receipt_handle;
                let hidden = queue.change_visibility(now_ms, handle, Duration::from_secs(timeout_s));
                assert_eq!(hidden.map_err(|fault| fault.code), expected, "{at}");
            }
            Depth(visible, in_flight, delayed) => {
                let depth = super::super::Depth { visible, in_flight, delayed };
                assert_eq!(queue.depth(now_ms), depth, "{at}");
            }
            Next(expected) => assert_eq!(queue.next_change_ms(), expected, "{at}"),
            Count(body, expected) => {
                let last = self.received[body].last().unwrap();
                assert_eq!(last.attributes["ApproximateReceiveCount"], expected, "{at}");
            }
            Expired(expected) => assert_eq!(queue.counters(now_ms).expired, expected, "{at}"),
        }
    }

    fn send(&mut self, body: &'static str, message: NewMessage, repeats: Option<&str>, at: &str) {
        let id = format!("id-{}", self.ids.len());
        let sent = self.queue.send(self.now_ms, id.clone(), message).unwrap();
        match repeats {
            Some(first) => assert_eq!(sent.message_id, self.ids[first], "{at}"),
            None => {
                assert_eq!(sent.message_id, id, "{at}");
                self.ids.insert(body, id);
            }
        }
    }

    fn receive(&mut self, max: usize, visibility_s: Option<u64>, expected: &[&str], at: &str) {
        let ask =
            Ask { max, visibility: visibility_s.map(Duration::from_secs), max_receive_count: self.max_receive_count };
        let handout = self.queue.receive(self.now_ms, ask).unwrap();
        let bodies: Vec<&str> = handout.received.iter().map(|message| message.body.as_str()).collect();
        assert_eq!(bodies, expected, "{at}");
        self.dead = handout.dead.into_iter().map(|message| message.content.body).collect();
        for message in handout.received {
            self.received.entry(message.body.clone()).or_default().push(message);
        }
    }
}

pub(super) fn grouped(body: &str, group: &str, id: &str) -> NewMessage {
    NewMessage {
        group_id: Some(group.to_owned()),
        deduplication_id: (!id.is_empty()).then(|| id.to_owned()),
        ..NewMessage::new(body)
    }
}
