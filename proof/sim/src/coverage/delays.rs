//! What occurs to messages that are to wait longer than a queue can hide them.

use std::collections::BTreeMap;

use super::{Coverage, Occurrence};
use crate::history::Event;
use crate::timeline::Timeline;

/// The longest time that a queue can hide a message for, less what an invocation can have had it for.
const HIDDEN_MAX_S: u64 = 43_200 - 900;

pub(super) fn count(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    let mut kept = BTreeMap::new();
    for (_, event) in &timeline.history.events {
        match event {
            Event::Scheduled { id, .. } => drop(kept.insert(id.as_str(), 0)),
            Event::SentAgain { .. } => coverage.add(Occurrence::ScheduleSends, 1),
            Event::Deleted { id, done: true, .. } => drop(kept.remove(id.as_str())),
            // It is received once more.
            Event::Invoked { batch, .. } => {
                for delivered in batch {
                    if let Some(times) = kept.get_mut(delivered.id.as_str()) {
                        *times += 1;
                        coverage.add(Occurrence::ScheduledNotDeleted, usize::from(*times == 1));
                    }
                }
            }
            Event::ScheduledAlready { .. } => coverage.add(Occurrence::ScheduledAlready, 1),
            Event::Hidden { for_s, done: true, .. } => {
                coverage.add(Occurrence::HiddenAsLongAsCan, usize::from(*for_s >= HIDDEN_MAX_S))
            }
            _ => {}
        }
    }
}
