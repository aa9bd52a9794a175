//! The events and keys of each message. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::event::Event;
use super::text::Text;

/// Which events are about a message, and which messages are about a key. What is no longer in a ring is in no index.
#[derive(Debug, Default)]
pub(super) struct Index {
    messages: HashMap<Text, Entry>,
    /// The messages by the number of the event that was the first about them.
    order: BTreeMap<u64, Text>,
    /// The messages of each record, in the order in which they were tied to it.
    keys: HashMap<Text, VecDeque<Text>>,
    /// The consumers of these records, with those whose last record is gone: there are few.
    pub(super) consumers: BTreeSet<Text>,
    /// The effects of each idempotency key.
    effects: HashMap<Text, VecDeque<u64>>,
}

#[derive(Debug)]
struct Entry {
    id: Text,
    first: u64,
    events: VecDeque<u64>,
    keys: Vec<Text>,
}

impl Index {
    /// Adds an event. Its message's id becomes the one that all events of the message share.
    pub(super) fn add(&mut self, event: &mut Event) {
        let seq = event.seq;
        if let Some(key) = event.key() {
            self.effects.entry(key.clone()).or_default().push_back(seq);
        }
        for id in event.messages() {
            match self.messages.get_mut(id) {
                Some(entry) if entry.events.back() != Some(&seq) => entry.events.push_back(seq),
                Some(_) => {}
                // A function writes what it likes: what a line names is a message only where something else is about it.
                None if event.is_line() => {}
                None => {
                    let entry = Entry { id: id.clone(), first: seq, events: VecDeque::from([seq]), keys: Vec::new() };
                    self.order.insert(seq, id.clone());
                    self.messages.insert(id.clone(), entry);
                }
            }
        }
        let shared = event.message_id.as_ref().and_then(|id| self.messages.get(id)).map(|entry| entry.id.clone());
        event.message_id = shared.or_else(|| event.message_id.take());
    }

    /// Removes an event, the oldest of its ring; a message without events goes too.
    pub(super) fn remove(&mut self, event: &Event) {
        if let Some(key) = event.key()
            && let Some(effects) = self.effects.get_mut(key)
        {
            effects.pop_front();
            if effects.is_empty() {
                self.effects.remove(key);
            }
        }
        for id in event.messages() {
            let Some(entry) = self.messages.get_mut(id) else { continue };
            if let Some(at) = entry.events.iter().position(|seq| *seq == event.seq) {
                entry.events.remove(at);
            }
            if entry.events.is_empty() {
                let first = entry.first;
                for key in std::mem::take(&mut entry.keys) {
                    self.untie(id, &key);
                }
                self.order.remove(&first);
                self.messages.remove(id);
            }
        }
    }

    fn untie(&mut self, id: &Text, key: &Text) {
        if let Some(tied) = self.keys.get_mut(key) {
            // The oldest messages go first.
            if let Some(at) = tied.iter().position(|tied| tied == id) {
                tied.remove(at);
            }
            if tied.is_empty() {
                self.keys.remove(key);
            }
        }
    }

    /// Ties a message to a key; returns whether that is new. Only a message that there are events of can be tied.
    pub(super) fn tie(&mut self, id: &str, key: &str) -> bool {
        let Some(entry) = self.messages.get_mut(id) else { return false };
        if entry.keys.iter().any(|known| **known == *key) {
            return false;
        }
        let key = self.keys.get_key_value(key).map_or_else(|| Text::from(key), |(known, _)| known.clone());
        entry.keys.push(key.clone());
        if let Some((consumer, _)) = key.split_once(['#', '~'])
            && !self.consumers.contains(consumer)
        {
            self.consumers.insert(consumer.into());
        }
        self.keys.entry(key).or_default().push_back(entry.id.clone());
        true
    }

    pub(super) fn events(&self, id: &str) -> impl Iterator<Item = u64> {
        self.messages.get(id).into_iter().flat_map(|entry| entry.events.iter().copied())
    }

    pub(super) fn effects(&self, key: &str) -> impl Iterator<Item = u64> {
        self.effects.get(key).into_iter().flatten().copied()
    }

    pub(super) fn keys(&self, id: &str) -> &[Text] {
        self.messages.get(id).map_or(&[], |entry| &entry.keys)
    }

    /// The latest messages of a key, as many as asked for, and the number of all.
    pub(super) fn messages_of(&self, key: &str, max: usize) -> (Vec<Text>, usize) {
        let Some(tied) = self.keys.get(key) else { return (Vec::new(), 0) };
        (tied.iter().skip(tied.len().saturating_sub(max)).cloned().collect(), tied.len())
    }

    /// The messages whose first event is before this number, the newest first, each with that number.
    pub(super) fn before(&self, seq: u64) -> impl Iterator<Item = (u64, &Text)> {
        self.order.range(..seq).rev().map(|(first, id)| (*first, id))
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }
}
