//! The messages of one queue, and which of them may be handed out next. Pure: time is an argument, in milliseconds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use super::message::{Depth, StoredMessage};
use super::queued::Message;

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Ready { since_ms: u64 },
    Delayed { until_ms: u64 },
    InFlight { received_ms: u64, until_ms: u64 },
}

/// The position of a message in its backlog: grows with every arrival, never reused.
pub(super) type Key = u64;

/// Invariant: each message is in `ages`, and by its standing in exactly one of `ready` and `hidden`; on a FIFO
/// queue it is in its group's `order` too, and `heads` holds the first message of every group where that is ready. A first
/// message that is hidden holds up its group: nothing is handed out past it.
#[derive(Debug)]
pub(super) struct Backlog {
    fifo: bool,
    arrivals: u64,
    messages: BTreeMap<Key, (Message, Standing)>,
    ready: BTreeSet<(u64, Key)>,
    hidden: BTreeSet<(u64, Key)>,
    ages: BTreeSet<(u64, Key)>,
    in_flight: usize,
    groups: HashMap<String, Group>,
    heads: BTreeSet<Head>,
}

/// The first message of a group, and since when it has been ready.
type Head = (u64, Key);

#[derive(Debug, Default)]
struct Group {
    order: BTreeSet<Key>,
    /// The entry of `heads`.
    head: Option<Head>,
}

impl Backlog {
    pub(super) fn new(fifo: bool) -> Self {
        Self {
            fifo,
            arrivals: 0,
            messages: BTreeMap::new(),
            ready: BTreeSet::new(),
            hidden: BTreeSet::new(),
            ages: BTreeSet::new(),
            in_flight: 0,
            groups: HashMap::new(),
            heads: BTreeSet::new(),
        }
    }

    pub(super) fn insert(&mut self, message: Message, now_ms: u64, delay_ms: u64) {
        let key = self.arrivals;
        self.arrivals += 1;
        let standing = if delay_ms == 0 {
            Standing::Ready { since_ms: now_ms }
        } else {
            Standing::Delayed { until_ms: now_ms + delay_ms }
        };
        self.ages.insert((message.retained_from_ms, key));
        if let Some(group) = self.group_of(&message) {
            self.groups.entry(group).or_default().order.insert(key);
        }
        self.messages.insert(key, (message, standing));
        self.index(key, standing);
    }

    pub(super) fn get(&self, key: Key) -> Option<(&Message, Standing)> {
        self.messages.get(&key).map(|(message, standing)| (message, *standing))
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Message> {
        let standing = self.messages.get(&key)?.1;
        self.unindex(key, standing);
        let (message, _) = self.messages.remove(&key)?;
        self.ages.remove(&(message.retained_from_ms, key));
        if let Some(name) = self.group_of(&message) {
            if let Some(group) = self.groups.get_mut(&name) {
                group.order.remove(&key);
            }
            self.relist(&name);
        }
        Some(message)
    }

    /// Counts a receive and hides the message; returns the message as it now is.
    pub(super) fn receive(&mut self, key: Key, now_ms: u64, until_ms: u64) -> Option<&Message> {
        self.stand(key, Standing::InFlight { received_ms: now_ms, until_ms });
        let (message, _) = self.messages.get_mut(&key)?;
        message.receives.count += 1;
        message.receives.here += 1;
        message.receives.first_ms.get_or_insert(now_ms);
        Some(message)
    }

    /// Moves a message to another standing.
    pub(super) fn stand(&mut self, key: Key, standing: Standing) {
        if let Some(old) = self.messages.get(&key).map(|(_, old)| *old) {
            self.unindex(key, old);
            self.messages.entry(key).and_modify(|entry| entry.1 = standing);
            self.index(key, standing);
        }
    }

    /// Lets time pass: what was hidden long enough becomes visible, what is too old goes, and is returned.
    pub(super) fn advance(&mut self, now_ms: u64, retention_ms: u64) -> Vec<Message> {
        while let Some(&(until_ms, key)) = self.hidden.first()
            && until_ms <= now_ms
        {
            self.stand(key, Standing::Ready { since_ms: until_ms });
        }
        let mut expired = Vec::new();
        while let Some(&(from_ms, key)) = self.ages.first()
            && from_ms + retention_ms <= now_ms
        {
            expired.extend(self.remove(key));
        }
        expired
    }

    /// Returns the next message to hand out. On a FIFO queue, `after` is the message this receive has just dealt with:
    /// what follows it in its group comes first, up to the first that is hidden, then the groups whose first message is ready,
    /// the longest waiting first. A message that is ready again is handed out though later ones of its group are in flight.
    pub(super) fn next_ready(&self, after: Option<(&str, Key)>) -> Option<Key> {
        if !self.fifo {
            return self.first_ready();
        }
        let same_group = after.and_then(|(name, last)| {
            let later = (Bound::Excluded(last), Bound::Unbounded);
            self.groups.get(name)?.order.range(later).next().copied()
        });
        same_group.filter(|key| self.ready_since(*key).is_some()).or_else(|| self.heads.first().map(|(_, key)| *key))
    }

    /// Sets a new delay for every delayed message, counted from its sending.
    pub(super) fn delay_again(&mut self, delay_ms: u64) {
        let delayed: Vec<(Key, u64)> = self
            .messages
            .iter()
            .filter(|(_, (_, standing))| matches!(standing, Standing::Delayed { .. }))
            .map(|(key, (message, _))| (*key, message.sent_ms + delay_ms))
            .collect();
        for (key, until_ms) in delayed {
            self.stand(key, Standing::Delayed { until_ms });
        }
    }

    /// When the next hidden message becomes visible.
    pub(super) fn next_change_ms(&self) -> Option<u64> {
        self.hidden.first().map(|(until_ms, _)| *until_ms)
    }

    pub(super) fn depth(&self) -> Depth {
        Depth { visible: self.ready.len(), in_flight: self.in_flight, delayed: self.hidden.len() - self.in_flight }
    }

    /// Returns the first visible message: of a FIFO queue by arrival, whatever holds up its group.
    pub(super) fn first_ready(&self) -> Option<Key> {
        self.ready.first().map(|(_, key)| *key)
    }

    pub(super) fn stored(&self) -> Vec<StoredMessage> {
        let look = |(message, _): &(Message, Standing)| StoredMessage {
            message_id: message.id.clone(),
            body: message.content.body.clone(),
        };
        self.messages.values().map(look).collect()
    }

    /// Returns the messages in flight, and until when each is hidden.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = (&Message, u64)> {
        let hidden = self.hidden.iter().filter_map(|(until_ms, key)| Some((self.messages.get(key)?, *until_ms)));
        hidden.filter_map(|((message, standing), until_ms)| {
            matches!(standing, Standing::InFlight { .. }).then_some((message, until_ms))
        })
    }

    /// Returns the messages that came after this position, hidden ones too, in order of arrival.
    pub(super) fn later(&self, after: Option<Key>) -> impl Iterator<Item = (Key, &Message)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.messages.range((from, Bound::Unbounded)).map(|(key, (message, _))| (*key, message))
    }

    pub(super) fn clear(&mut self) {
        *self = Self { arrivals: self.arrivals, ..Self::new(self.fifo) };
    }

    fn group_of(&self, message: &Message) -> Option<String> {
        message.group_id.clone().filter(|_| self.fifo)
    }

    /// The key of the `ready` set. A standard queue hands out what has been visible longest, so that a message that
    /// fails over and over does not starve the others; a FIFO queue keeps the order of arrival.
    fn ready_entry(&self, key: Key, since_ms: u64) -> (u64, Key) {
        (if self.fifo { 0 } else { since_ms }, key)
    }

    fn index(&mut self, key: Key, standing: Standing) {
        match standing {
            Standing::Ready { since_ms } => {
                let entry = self.ready_entry(key, since_ms);
                self.ready.insert(entry);
            }
            Standing::Delayed { until_ms } => {
                self.hidden.insert((until_ms, key));
            }
            Standing::InFlight { until_ms, .. } => {
                self.hidden.insert((until_ms, key));
                self.in_flight += 1;
            }
        }
        if let Some(name) = self.messages.get(&key).and_then(|(message, _)| self.group_of(message)) {
            self.relist(&name);
        }
    }

    fn unindex(&mut self, key: Key, standing: Standing) {
        match standing {
            Standing::Ready { since_ms } => {
                let entry = self.ready_entry(key, since_ms);
                self.ready.remove(&entry);
            }
            Standing::Delayed { until_ms } => {
                self.hidden.remove(&(until_ms, key));
            }
            Standing::InFlight { until_ms, .. } => {
                self.hidden.remove(&(until_ms, key));
                self.in_flight -= 1;
            }
        }
    }

    fn ready_since(&self, key: Key) -> Option<u64> {
        match self.messages.get(&key)?.1 {
            Standing::Ready { since_ms } => Some(since_ms),
            Standing::Delayed { .. } | Standing::InFlight { .. } => None,
        }
    }

    /// Restores the invariant of `heads` for one group, and forgets a group without messages.
    fn relist(&mut self, name: &str) {
        let first = self.groups.get(name).and_then(|group| group.order.first().copied());
        let head = first.and_then(|key| Some((self.ready_since(key)?, key)));
        let Some(group) = self.groups.get_mut(name) else {
            return;
        };
        if head != group.head {
            if let Some(old) = group.head {
                self.heads.remove(&old);
            }
            self.heads.extend(head);
            group.head = head;
        }
        if group.order.is_empty() {
            self.groups.remove(name);
        }
    }
}
