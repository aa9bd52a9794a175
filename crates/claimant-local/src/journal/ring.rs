//! The latest events, bounded in number and bytes. Pure.

use std::collections::VecDeque;

use super::event::Event;

/// Events in the order of their numbers, of which the oldest go when there are too many.
#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<Event>,
    bytes: usize,
    max: usize,
    max_bytes: usize,
    /// How many have gone.
    pub(super) dropped: u64,
}

impl Ring {
    pub(super) fn new(max: usize, max_bytes: usize) -> Self {
        Self { events: VecDeque::new(), bytes: 0, max, max_bytes, dropped: 0 }
    }

    /// Adds an event, whose number is higher than that of all before.
    pub(super) fn push(&mut self, event: Event) {
        self.bytes += event.bytes();
        self.events.push_back(event);
    }

    /// Takes out the oldest event as long as there are too many; the newest always stays.
    pub(super) fn pop_excess(&mut self) -> Option<Event> {
        if self.events.len() <= 1 || (self.events.len() <= self.max && self.bytes <= self.max_bytes) {
            return None;
        }
        let event = self.events.pop_front()?;
        self.bytes -= event.bytes();
        self.dropped += 1;
        Some(event)
    }

    pub(super) fn get(&self, seq: u64) -> Option<&Event> {
        let at = self.events.binary_search_by_key(&seq, |event| event.seq).ok()?;
        self.events.get(at)
    }

    /// The events after this number, the oldest first.
    pub(super) fn after(&self, seq: u64) -> impl Iterator<Item = &Event> {
        let at = self.events.partition_point(|event| event.seq <= seq);
        self.events.range(at..)
    }

    pub(super) fn oldest(&self) -> Option<&Event> {
        self.events.front()
    }
}
