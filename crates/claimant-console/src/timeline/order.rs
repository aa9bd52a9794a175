//! The order of facts. What a function writes arrives a moment after it happened.

use std::time::Duration;

use super::fact::{Fact, What};

/// How late a line may be.
const LATE_MAX: Duration = Duration::from_millis(250);

/// Puts facts into their order: by time, and a claim before what was done under it, an outcome before what followed from it, of which the
/// backoff of a failure is one: what hid its message last.
pub(super) fn ordered(mut facts: Vec<Fact>) -> Vec<Fact> {
    // Stable: what happened in one millisecond stays in its order.
    facts.sort_by_key(|fact| fact.at);
    for at in 0..facts.len() {
        let follows = |index: usize, earlier: &What| match &facts[at].what {
            What::Claimed(_) => matches!(earlier, What::Effect { .. } | What::Finished(_)),
            What::Finished(finished) => match earlier {
                // What is done was hidden while it was worked on, if at all.
                What::Hidden { .. } => {
                    (finished.events > 1 || !finished.is_success()) && is_last_hidden(&facts[index..])
                }
                earlier => matches!(earlier, What::Answered(_) | What::Deleted),
            },
            _ => false,
        };
        let this = &facts[at];
        let own = facts[..at].iter().enumerate().rev().take_while(|(_, fact)| this.at.since(fact.at) <= LATE_MAX);
        let own = own.filter(|(_, fact)| fact.message == this.message);
        // No further back than the receive that it belongs to.
        let own = own.take_while(|(_, fact)| !matches!(fact.what, What::Received { .. }));
        let first = own.filter(|(index, fact)| follows(*index, &fact.what)).map(|(index, _)| index).last();
        if let Some(first) = first {
            facts[at].at = facts[first].at;
            facts[first..=at].rotate_right(1);
        }
    }
    facts
}

/// Whether nothing hides the message of the first of these facts again before its next receive.
fn is_last_hidden(facts: &[Fact]) -> bool {
    let [hidden, later @ ..] = facts else { return false };
    let mut own = later.iter().filter(|fact| fact.message == hidden.message);
    let next = own.find(|fact| matches!(fact.what, What::Hidden { .. } | What::Received { .. }));
    next.is_none_or(|fact| matches!(fact.what, What::Received { .. }))
}
