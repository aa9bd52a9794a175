//! The list of messages.

use serde::Serialize;

/// Messages on one page.
pub const PAGE_MAX: usize = 100;

/// Which messages are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MessageQuery {
    /// Text in the message's id or key.
    pub text: Option<String>,
    /// Only of this queue.
    pub queue: Option<String>,
    /// Only in this state.
    pub state: Option<String>,
    /// Only what comes after this: the `next` of the page before.
    pub after: Option<u64>,
}

/// A page of messages, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MessageList {
    /// The messages.
    pub messages: Vec<MessageRow>,
    /// How many fit the query in all, where that is known.
    pub total: Option<u64>,
    /// Where the next page begins; none on the last.
    pub next: Option<u64>,
    /// What of them is not here any more, in a sentence.
    pub missing: Option<String>,
}

/// A message in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MessageRow {
    /// Its id.
    pub id: String,
    /// The queue that it is in, or was in last.
    pub queue: String,
    /// Where it is now, in a word.
    pub state: String,
    /// When it was sent, in milliseconds since 1970.
    pub sent_ms: u64,
    /// When something happened to it last.
    pub last_ms: u64,
    /// How often it was received.
    pub receives: u64,
    /// Its key, once that is known.
    pub key: Option<String>,
}
