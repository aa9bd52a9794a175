//! One message of a local cloud, from its journal and its queues.

use std::collections::{BTreeMap, BTreeSet};

use claimant_local::cloud::View;
use claimant_local::journal::{Event, What};

use super::message::MessageFacts;
use crate::timeline::facts_of_journal;

/// Messages of the same keys that are told of, the latest.
const OTHERS_MAX: usize = 20;

/// Returns what the journal has of a message and of those of its keys; `None` where it has nothing of the message.
pub(super) fn message(view: &View, id: &str) -> Option<MessageFacts> {
    let own = view.journal.of_message(id);
    if own.is_empty() {
        return None;
    }
    let keys = view.journal.keys_of(id);
    let of_keys = keys.iter().flat_map(|key| view.journal.messages_of(key)).map(|other| other.to_string());
    // What it was made from, and what was made from it.
    let made = own.iter().filter(|event| matches!(event.what, What::Sent { .. } | What::Redriven { .. }));
    let made = made.flat_map(|event| event.messages().map(ToString::to_string).collect::<Vec<_>>());
    let others: BTreeSet<_> = made.chain(of_keys).filter(|other| other != id).collect();
    let others: Vec<_> = others.into_iter().take(OTHERS_MAX).collect();
    // By number: an event can be about several of them.
    let of_others = others.iter().flat_map(|other| view.journal.of_message(other));
    let events: BTreeMap<u64, Event> = own.into_iter().chain(of_others).map(|event| (event.seq, event)).collect();
    let events: Vec<_> = events.into_values().collect();
    let about = others.iter().map(String::as_str).chain([id]).collect();
    Some(MessageFacts {
        facts: facts_of_journal(&events, &about),
        keys: keys.iter().map(ToString::to_string).collect(),
        body: view.journal.body(id),
        missing: None,
    })
}
