//! The deduplication window of a FIFO queue. Pure: time is an argument, in milliseconds.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest as _, Sha256};

/// How long a FIFO queue knows a deduplication id after the first send: five minutes.
pub(super) const WINDOW_MS: u64 = 5 * 60 * 1_000;

/// What identifies a send: the deduplication id, and its group where the queue's scope was the message group then.
pub(super) type Scope = (Option<String>, String);

/// The first send of an id: what its repeats are answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FirstSend {
    pub(super) message_id: String,
    pub(super) sequence_number: String,
}

/// Invariant: `order` holds every entry of `seen` once, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Window {
    seen: HashMap<Scope, FirstSend>,
    order: VecDeque<(u64, Scope)>,
}

impl Window {
    /// Returns the first send, if it was less than five minutes ago. Deleting the message does not end the window. What was sent
    /// while the scope was the queue is known in every group, as long as its window is open.
    pub(super) fn find(&mut self, now_ms: u64, scope: &Scope) -> Option<FirstSend> {
        while let Some((sent_ms, _)) = self.order.front()
            && sent_ms + WINDOW_MS <= now_ms
        {
            if let Some((_, old)) = self.order.pop_front() {
                self.seen.remove(&old);
            }
        }
        let whole_queue = || self.seen.get(&(None, scope.1.clone()));
        self.seen.get(scope).or_else(whole_queue).cloned()
    }

    /// Opens the window of an id that [`find`](Self::find) did not know.
    pub(super) fn open(&mut self, now_ms: u64, scope: Scope, first: FirstSend) {
        self.order.push_back((now_ms, scope.clone()));
        self.seen.insert(scope, first);
    }
}

/// Returns the deduplication id of a body, where the queue takes it from there: its SHA-256, in hexadecimal.
pub(super) fn content_id(body: &str) -> String {
    Sha256::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
