//! The list of messages.

use claimant_core::Error;
use serde::Serialize;

use crate::timeline::Standing;

/// Messages on one page.
pub const PAGE_MAX: usize = 100;

/// Where a message can be, for who chooses.
pub(crate) const STANDINGS: [Standing; 10] = [
    Standing::Waiting,
    Standing::Delayed,
    Standing::InFlight,
    Standing::ComesBack,
    Standing::Done,
    Standing::DeadLettered,
    Standing::Parked,
    Standing::Redriven,
    Standing::Expired,
    Standing::Deleted,
];

/// Which messages are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MessageQuery {
    /// Text in the message's id or in one of its keys.
    pub text: Option<String>,
    /// Only of this queue: the one that the message is in, or was in last.
    pub queue: Option<String>,
    /// Only those that are here.
    pub state: Option<Standing>,
    /// Only older ones than this: the `next` of the page before.
    pub before: Option<u64>,
}

impl MessageQuery {
    /// Returns whether every message is asked for.
    #[must_use]
    pub fn is_for_all(&self) -> bool {
        self.text.is_none() && self.queue.is_none() && self.state.is_none()
    }

    /// Reads the words for where a message is: `in flight`, `in_flight`.
    ///
    /// # Errors
    /// When there are no such words.
    pub(crate) fn standing(words: &str) -> Result<Standing, Error> {
        let words = words.replace('_', " ");
        let known = || STANDINGS.map(Standing::as_str).join(", ");
        let found = STANDINGS.into_iter().find(|standing| standing.as_str() == words);
        found.ok_or_else(|| Error::invalid(format!("no message is {words:?}: it is one of {}", known())))
    }
}

/// A page of messages, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MessageList {
    /// The messages.
    pub messages: Vec<MessageRow>,
    /// How many are known in all, whatever was asked for.
    pub known: usize,
    /// Where the next page begins; none where there are no older ones.
    pub next: Option<u64>,
    /// Whether the search stopped before the page was full, so as not to take too long: it goes on at `next`.
    pub stopped: bool,
    /// From when on messages are known, in milliseconds since 1970, where older ones are not kept.
    pub since_ms: Option<u64>,
    /// Why there is no list of messages at all, where this source has none.
    pub missing: Option<String>,
}

/// A message in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessageRow {
    /// Its id.
    pub id: String,
    /// The queue that it is in, or was in last.
    pub queue: String,
    /// Where it is.
    pub state: Standing,
    /// When it was sent, in milliseconds since 1970; or when it was seen first.
    pub sent_ms: u64,
    /// When something happened to it last.
    pub last_ms: u64,
    /// How often it was received.
    pub receives: u32,
    /// The ids of the records of its keys, as far as they are known.
    pub keys: Vec<String>,
    /// The message of which it is the copy in a dead-letter queue.
    pub copy_of: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_chosen_by_their_words() {
        assert_eq!(MessageQuery::standing("in_flight").unwrap(), Standing::InFlight);
        for standing in STANDINGS {
            assert_eq!(MessageQuery::standing(standing.as_str()).unwrap(), standing);
        }
        let error = MessageQuery::standing("lost").unwrap_err().to_string();
        assert!(error.starts_with("no message is \"lost\": it is one of waiting, delayed"), "{error}");
    }
}
