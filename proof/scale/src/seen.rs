//! What is measured, and what must not happen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use claimant_core::Outcome;

use crate::capacity::Counts;

/// One second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// Write and read units taken, and requests throttled, in it.
    pub counts: Counts,
    /// Messages visible in the queue, at its end.
    pub visible: usize,
    /// Invocations at once, at its end.
    pub invocations: usize,
    /// Partitions, at its end.
    pub partitions: usize,
}

/// What became of the messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// A sample for each second.
    pub samples: Vec<Sample>,
    /// Messages that were sent.
    pub sent: usize,
    /// Messages in the dead-letter queue.
    pub dead: usize,
    /// Receives of messages.
    pub receives: u64,
    /// Messages that were deleted though their work was never done: none may be.
    pub lost: u64,
    /// Runs of work that was done before, and of which no completion was in doubt: none may be.
    pub doubled: u64,
    /// Runs of work that was done before by an owner that could not complete it: at least once is what is promised.
    pub repeated: u64,
    /// How often each outcome was.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Requests to DynamoDB.
    pub requests: u64,
    /// How long after it was sent each deleted message was, in milliseconds, in the order of their being deleted.
    pub ages_ms: Vec<u32>,
    /// How often the work of each key was done.
    pub runs: BTreeMap<u32, u8>,
    /// Keys whose completion is in doubt.
    pub doubts: BTreeSet<u32>,
}

impl Seen {
    /// Notes that a handler has done the work of this key.
    pub(crate) fn ran(&mut self, key: u32) {
        let runs = self.runs.entry(key).or_default();
        *runs = runs.saturating_add(1);
        if *runs > 1 {
            *if self.doubts.remove(&key) { &mut self.repeated } else { &mut self.doubled } += 1;
        }
    }

    /// Notes what became of a message with this key that was sent so long ago.
    pub(crate) fn ended(&mut self, key: u32, outcome: &Outcome, age: Duration) {
        *self.outcomes.entry(outcome.word()).or_default() += 1;
        if outcome.is_success() {
            self.lost += u64::from(!self.runs.contains_key(&key));
            // OK because no message is 49 days old.
            self.ages_ms.push(age.as_millis() as u32);
        } else if matches!(outcome, Outcome::SettleUnknown | Outcome::LeaseLost) {
            self.doubts.insert(key);
        }
    }

    /// Returns all counts together.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.samples.iter().fold(Counts::default(), |all, Sample { counts, .. }| Counts {
            writes: all.writes + counts.writes,
            reads: all.reads + counts.reads,
            throttled: all.throttled + counts.throttled,
            over_quota: all.over_quota + counts.over_quota,
        })
    }

    /// Returns how many writes and reads were asked for.
    #[must_use]
    pub fn asked(&self) -> u64 {
        let Counts { writes, reads, throttled, .. } = self.counts();
        writes + reads + throttled
    }

    /// Returns the first second, and the one after the last, in which more than one in a hundred writes and reads was throttled.
    #[must_use]
    pub fn throttled(&self) -> Option<(usize, usize)> {
        let is = |sample: &Sample| {
            let Counts { writes, reads, throttled, .. } = sample.counts;
            throttled * 100 > writes + reads + throttled
        };
        let first = self.samples.iter().position(is)?;
        let last = self.samples.iter().rposition(is)?;
        Some((first, last + 1))
    }

    /// Returns how old messages were when they were done: that of so many of a thousand is no greater.
    #[must_use]
    pub fn age(&self, of_thousand: usize) -> Duration {
        let mut ages = self.ages_ms.clone();
        ages.sort_unstable();
        let index = (ages.len() * of_thousand / 1_000).min(ages.len().saturating_sub(1));
        Duration::from_millis(ages.get(index).copied().unwrap_or_default().into())
    }

    /// Returns how often there was this outcome.
    #[must_use]
    pub fn outcome(&self, word: &str) -> u64 {
        self.outcomes.get(word).copied().unwrap_or_default()
    }

    /// Returns the most of the ends of all seconds.
    #[must_use]
    pub fn most(&self, measure: fn(&Sample) -> usize) -> usize {
        self.samples.iter().map(measure).max().unwrap_or_default()
    }
}
