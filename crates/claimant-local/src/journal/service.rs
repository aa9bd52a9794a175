//! The journal: one writer's call, and readers by number and by message.

use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::bodies::Bodies;
use super::event::Event;
use super::index::Index;
use super::ring::Ring;
use super::text::Text;
use super::what::What;
use crate::clock::wall_clock_ms;
use crate::sync::lock;

/// Events kept, function's lines aside; the oldest go when one more arrives.
pub const EVENTS_MAX: usize = 1_200_000;
/// About how many bytes of memory those take at most.
pub const EVENTS_MAX_BYTES: usize = 256 * 1024 * 1024;
/// Lines of functions kept.
pub const LINES_MAX: usize = 200_000;
/// About how many bytes of memory those take at most.
pub const LINES_MAX_BYTES: usize = 64 * 1024 * 1024;

/// About how many bytes of memory the bodies of messages take at most.
pub const BODIES_MAX_BYTES: usize = 48 * 1024 * 1024;

/// What happened in a cloud. Clones share it.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<Inner>>);

struct Inner {
    state: Mutex<State>,
    /// The number of the newest event.
    newest: watch::Sender<u64>,
}

struct State {
    seq: u64,
    events: Ring,
    /// Apart, so that a function that writes much drops no event.
    lines: Ring,
    index: Index,
    bodies: Bodies,
}

/// How much a journal holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages that an event is about.
    pub messages: usize,
    /// Events that were dropped to make room, lines aside.
    pub events_dropped: u64,
    /// The time of the oldest event that is kept, in milliseconds since 1970.
    pub since_ms: Option<u64>,
}

impl Journal {
    /// Returns an empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::bounded((EVENTS_MAX, EVENTS_MAX_BYTES), (LINES_MAX, LINES_MAX_BYTES))
    }

    /// Returns one that keeps nothing.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    fn bounded(events: (usize, usize), lines: (usize, usize)) -> Self {
        let state = State {
            seq: 0,
            events: Ring::new(events.0, events.1),
            lines: Ring::new(lines.0, lines.1),
            index: Index::default(),
            bodies: Bodies::default(),
        };
        Self(Some(Arc::new(Inner { state: Mutex::new(state), newest: watch::Sender::new(0) })))
    }

    /// Whether events are kept.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Writes what happens at this moment, about what `about` adds to it; a journal that is off asks for nothing.
    pub fn note(&self, what: impl FnOnce() -> What, about: impl FnOnce(Event) -> Event) {
        self.write(|| about(Event::new(wall_clock_ms(), what())));
    }

    /// Writes an event; a journal that is off does not ask for it. The number is set here.
    pub fn write(&self, event: impl FnOnce() -> Event) {
        let Some(inner) = &self.0 else { return };
        let mut event = event();
        let seq = {
            let mut state = lock(&inner.state);
            state.seq += 1;
            event.seq = state.seq;
            state.add(event);
            state.seq
        };
        // Writers may come in another order than their events; the number never goes back.
        inner.newest.send_if_modified(|newest| {
            let is_newer = seq > *newest;
            *newest = seq.max(*newest);
            is_newer
        });
    }

    /// Keeps the body of a message, and its attributes as JSON, for who looks at the message; they are in no event.
    pub fn keep_body(&self, message_id: &str, body: &str, attributes: &str) {
        let Some(inner) = &self.0 else { return };
        lock(&inner.state).bodies.keep(message_id, (body, attributes), BODIES_MAX_BYTES);
    }

    /// Returns the body of a message, if it is among the latest.
    #[must_use]
    pub fn body(&self, message_id: &str) -> Option<String> {
        self.read(|state| state.bodies.get(message_id).map(str::to_owned))
    }

    /// Returns the attributes of a message as JSON, if its body is among the latest; empty where it has none.
    #[must_use]
    pub fn attributes(&self, message_id: &str) -> Option<String> {
        self.read(|state| state.bodies.attributes(message_id).map(str::to_owned))
    }

    /// Ties a message to the record that it asks for, once there are events of the message; others are ignored.
    pub fn tie(&self, message_id: &str, key: &str) {
        let Some(inner) = &self.0 else { return };
        lock(&inner.state).index.tie(message_id, key);
    }

    /// What tells of new events: the number of the newest. One of a journal that is off never changes.
    #[must_use]
    pub fn newest(&self) -> watch::Receiver<u64> {
        match &self.0 {
            Some(inner) => inner.newest.subscribe(),
            None => watch::Sender::new(0).subscribe(),
        }
    }

    /// Returns the events after this number, the oldest first, as many as asked for.
    #[must_use]
    pub fn after(&self, seq: u64, max: usize) -> Vec<Event> {
        self.read(|state| {
            let (mut events, mut lines) = (state.events.after(seq).peekable(), state.lines.after(seq).peekable());
            let next = move || match (events.peek(), lines.peek()) {
                (Some(event), Some(line)) if line.seq < event.seq => lines.next(),
                (Some(_), _) => events.next(),
                (None, _) => lines.next(),
            };
            std::iter::from_fn(next).take(max).cloned().collect()
        })
    }

    /// Returns all events about a message, the oldest first.
    #[must_use]
    pub fn of_message(&self, message_id: &str) -> Vec<Event> {
        self.read(|state| {
            let events = state.index.events(message_id);
            events.filter_map(|seq| state.events.get(seq).or_else(|| state.lines.get(seq))).cloned().collect()
        })
    }

    /// Returns the effects that were asked for with this idempotency key, the oldest first: mails and charges.
    #[must_use]
    pub fn effects_of(&self, key: &str) -> Vec<Event> {
        self.read(|state| state.index.effects(key).filter_map(|seq| state.events.get(seq)).cloned().collect())
    }

    /// Returns the messages whose first event is before this number, the newest first, each with the number of that event: give
    /// the last one's for the next page, and `u64::MAX` for the first.
    #[must_use]
    pub fn messages_before(&self, seq: u64, max: usize) -> Vec<(u64, Text)> {
        self.read(|state| state.index.before(seq).take(max).map(|(seq, id)| (seq, id.clone())).collect())
    }

    /// Returns the ids of the records that a message asked for, as the lock table has them: the consumer's name, `#`, and the key.
    #[must_use]
    pub fn keys_of(&self, message_id: &str) -> Vec<Text> {
        self.read(|state| state.index.keys(message_id).to_vec())
    }

    /// Returns the names of the consumers for which messages asked for records, sorted.
    #[must_use]
    pub fn consumers(&self) -> Vec<Text> {
        self.read(|state| state.index.consumers.iter().cloned().collect())
    }

    /// Returns the latest messages that asked for the record with this id, in the order in which they did, as many as asked for; and the
    /// number of all that did.
    #[must_use]
    pub fn messages_of(&self, key: &str, max: usize) -> (Vec<Text>, usize) {
        self.read(|state| state.index.messages_of(key, max))
    }

    /// Returns how much it holds.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.read(|state| Totals {
            messages: state.index.len(),
            events_dropped: state.events.dropped,
            since_ms: state.events.oldest().map(|event| event.at_ms),
        })
    }

    fn read<R: Default>(&self, read: impl FnOnce(&State) -> R) -> R {
        self.0.as_ref().map(|inner| read(&lock(&inner.state))).unwrap_or_default()
    }
}

impl State {
    fn add(&mut self, mut event: Event) {
        self.index.add(&mut event);
        let ring = if event.is_line() { &mut self.lines } else { &mut self.events };
        ring.push(event);
        while let Some(dropped) = ring.pop_excess() {
            self.index.remove(&dropped);
        }
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("is_on", &self.is_on()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::Texts;
    use super::super::what::InvocationEnd;
    use super::*;

    fn sent(at_ms: u64, id: &str) -> Event {
        Event::new(at_ms, What::Sent { visible_at_ms: at_ms, group: None, copy_of: None, redriven: false }).message(id)
    }

    fn line(at_ms: u64, id: &str) -> Event {
        Event::new(at_ms, What::Line { level: super::super::Level::Info, text: "text".into() }).message(id)
    }

    fn seqs(events: &[Event]) -> Vec<u64> {
        events.iter().map(|event| event.seq).collect()
    }

    #[test]
    fn events_come_in_order_by_number_and_by_message() {
        let journal = Journal::new();
        let newest = journal.newest();
        for (at_ms, id) in [(1, "a"), (2, "b"), (4, "a")] {
            journal.write(|| sent(at_ms, id));
            journal.write(|| line(at_ms, id));
        }
        assert_eq!(*newest.borrow(), 6);
        assert_eq!(seqs(&journal.after(0, 9)), [1, 2, 3, 4, 5, 6]);
        assert_eq!(seqs(&journal.after(3, 2)), [4, 5]);
        assert_eq!(seqs(&journal.of_message("a")), [1, 2, 5, 6]);
        assert_eq!(journal.messages_before(u64::MAX, 9), [(3, "b".into()), (1, "a".into())]);
        assert_eq!(journal.messages_before(3, 9), [(1, "a".into())]);
        assert_eq!((journal.of_message("c").len(), journal.totals().messages), (0, 2));
    }

    #[test]
    fn a_line_makes_no_message_of_what_it_names() {
        let journal = Journal::new();
        journal.write(|| line(1, "a"));
        assert_eq!((journal.totals().messages, seqs(&journal.after(0, 9))), (0, vec![1]));
        journal.write(|| sent(2, "a"));
        journal.write(|| line(3, "a"));
        assert_eq!(journal.messages_before(u64::MAX, 9), [(2, "a".into())]);
        assert_eq!(seqs(&journal.of_message("a")), [2, 3]);
    }

    #[test]
    fn an_event_of_many_messages_is_with_each_of_them_once() {
        let journal = Journal::new();
        let messages = ["a", "b", "a"].into_iter().collect();
        journal.write(|| Event::new(1, What::InvocationBegan { messages, deadline_ms: 2 }));
        let redriven = || What::Redriven { from: "dead".into(), was: "a".into(), group: None };
        journal.write(|| Event::new(2, redriven()).message("c"));
        assert_eq!(seqs(&journal.of_message("a")), [1, 2]);
        assert_eq!(seqs(&journal.of_message("b")), [1]);
        assert_eq!(seqs(&journal.of_message("c")), [2]);
    }

    #[test]
    fn the_oldest_go_and_nothing_is_left_of_them() {
        let journal = Journal::bounded((3, usize::MAX), (1, usize::MAX));
        journal.write(|| sent(1, "a"));
        journal.tie("a", "orders#1");
        for at_ms in 2..5 {
            journal.write(|| sent(at_ms, "b"));
            journal.write(|| line(at_ms, "b"));
        }
        assert_eq!(journal.totals(), Totals { messages: 1, events_dropped: 1, since_ms: Some(2) });
        assert_eq!(seqs(&journal.after(0, 9)), [2, 4, 6, 7]);
        assert_eq!(seqs(&journal.of_message("b")), [2, 4, 6, 7]);
        assert_eq!((journal.of_message("a").len(), journal.messages_of("orders#1", 9).1), (0, 0));
        assert_eq!(journal.messages_before(u64::MAX, 9), [(2, "b".into())]);
    }

    #[test]
    fn bytes_are_bounded_too() {
        let one = sent(1, "a").bytes();
        let journal = Journal::bounded((usize::MAX, 10 * one), (usize::MAX, one));
        for n in 0..100 {
            journal.write(|| sent(n, "a"));
            journal.write(|| line(n, "a"));
        }
        let (lines, events): (Vec<_>, Vec<_>) = journal.after(0, 999).into_iter().partition(Event::is_line);
        assert_eq!((events.len(), lines.len()), (10, 1));
    }

    #[test]
    fn what_an_event_says_in_a_text_of_its_own_counts() {
        let (text, none) = (Text::from("x".repeat(1_000)), Texts::default);
        for what in [
            What::Sent { visible_at_ms: 1, group: Some(text.clone()), copy_of: None, redriven: false },
            What::InvocationEnded { messages: none(), how: InvocationEnd::Failed, detail: Some(text.clone()) },
            What::Reported { succeeded: none(), failed: none(), why: Some(text.clone()) },
            What::Mail { key: Some(text.clone()), answer: "accepted" },
            What::Object { object: text, request: "GET" },
        ] {
            let event = Event::new(1, what);
            assert!(event.bytes() > 1_000, "{event:?}");
        }
    }

    #[test]
    fn keys_are_tied_to_messages_that_are_known() {
        let journal = Journal::new();
        journal.tie("a", "orders#1");
        assert_eq!(journal.messages_of("orders#1", 9), (vec![], 0));
        for id in ["a", "b"] {
            journal.write(|| sent(1, id));
            journal.tie(id, "orders#1");
            journal.tie(id, "orders#1");
        }
        journal.tie("b", "orders#2");
        assert_eq!(journal.messages_of("orders#1", 9), (vec!["a".into(), "b".into()], 2));
        assert_eq!(journal.messages_of("orders#1", 1), (vec!["b".into()], 2));
        assert_eq!(journal.keys_of("b"), ["orders#1", "orders#2"]);
        journal.tie("a", "payments~1");
        assert_eq!(journal.consumers(), ["orders", "payments"]);
    }

    #[test]
    fn effects_are_found_by_their_key() {
        let journal = Journal::bounded((2, usize::MAX), (1, usize::MAX));
        for (at_ms, key) in [(1, Some("k")), (2, None), (3, Some("k"))] {
            journal.write(|| Event::new(at_ms, What::Mail { key: key.map(Text::from), answer: "accepted" }));
        }
        assert_eq!(seqs(&journal.effects_of("k")), [3]);
    }

    #[test]
    fn one_that_is_off_asks_for_nothing() {
        let journal = Journal::off();
        journal.write(|| panic!("nothing is kept"));
        assert_eq!(journal.totals(), Totals::default());
        assert!(journal.after(0, 9).is_empty() && !journal.is_on());
    }

    #[test]
    fn an_event_is_one_object() {
        let event = sent(1, "a").queue(&"orders".into());
        let json = serde_json::to_value(event).unwrap();
        let expected = serde_json::json!({
            "seq": 0, "at_ms": 1, "message_id": "a", "queue": "orders", "what": "sent", "visible_at_ms": 1,
        });
        assert_eq!(json, expected);
    }
}
