//! The timeline of a message: pure functions from what is known to have happened to steps, and to sentences that say where the
//! message is and why.
//!
//! | module | holds |
//! | --- | --- |
//! | `fact` | what is known to have happened: the input |
//! | `journal`, `line` | facts from a local cloud's journal, and from the lines of functions |
//! | `order` | facts in the order in which they happened |
//! | `life` | what became of each message, receive by receive |
//! | `clauses` | one receive, in words |
//! | `says` | where a message is now and why, in a few sentences |
//! | `gone` | how a message left its queue for good, in words |
//! | `steps` | what happened, step by step |
//! | `waits` | what a message waited for between two receives |
//! | `words` | times, numbers and lists in words |

mod clauses;
mod fact;
mod gone;
mod journal;
mod life;
mod line;
mod order;
mod says;
mod steps;
#[cfg(test)]
mod tests;
mod waits;
pub(crate) mod words;

use claimant_core::Timestamp;

pub use fact::{Answer, BatchEnd, Claim, Fact, Finished, Line, Origin, Process, What};
pub(crate) use journal::facts as facts_of_journal;
pub use says::Standing;
pub use steps::{Kind, Step};

use clauses::Told;
use life::{Life, lives};
use order::ordered;

/// The most steps that a timeline shows: the first and the last of them.
pub const STEPS_MAX: usize = 500;

/// How many of them are the first, where some are left out.
pub(crate) const FIRST_STEPS: usize = STEPS_MAX / 5;

/// The timeline of one message, with those of the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// Where the message is.
    pub standing: Standing,
    /// That, and why, in one to three sentences.
    pub says: Vec<String>,
    /// The queue that it is in, or was in last, where that is known.
    pub queue: Option<String>,
    /// The outcome of the last receive, if the engine has said one.
    pub outcome: Option<String>,
    /// What happened, the oldest first.
    pub steps: Vec<Step>,
    /// How many steps in the middle were left out.
    pub left_out: usize,
    /// The other messages of the same key, and where they are.
    pub copies: Vec<(String, Standing)>,
    /// Whether its sending is among the facts; if not, older facts are missing.
    pub is_whole: bool,
}

/// Returns the timeline of a message from what is known of it and of the messages of the same key; `None` where nothing is known
/// of the message itself.
#[must_use]
pub fn tell(facts: Vec<Fact>, message: &str, now: Timestamp) -> Option<Timeline> {
    let facts = ordered(facts);
    let lives = lives(&facts);
    let life = lives.get(message)?;
    let all: Vec<&Life<'_>> = lives.values().collect();
    let others: Vec<&Life<'_>> = lives.values().filter(|other| other.id != message).collect();
    let told = Told { life, others: &others, now };
    let standing_of = |other: &&Life<'_>| {
        // Where a copy and its original are depends on each other.
        let told = Told { life: other, others: &all, now };
        (other.id.to_owned(), told.standing())
    };
    let standing = told.standing();
    let waits_until = life.last().filter(|_| standing == Standing::ComesBack).map(|last| last.hidden_until);
    let mut steps = steps::steps(&facts, message, waits_until, now);
    let left_out = steps.len().saturating_sub(STEPS_MAX);
    if left_out > 0 {
        // The beginning and the end tell most.
        steps.drain(FIRST_STEPS..FIRST_STEPS + left_out);
    }
    Some(Timeline {
        standing,
        says: told.says(),
        queue: life.queue.map(str::to_owned),
        outcome: life.last().and_then(|last| last.outcome()).map(str::to_owned),
        steps,
        left_out,
        copies: others.iter().map(standing_of).collect(),
        is_whole: life.sent.is_some(),
    })
}
