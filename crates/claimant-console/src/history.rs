//! The last minutes, sampled, for the plot.

use std::collections::VecDeque;

use serde::Serialize;

use crate::source::Overview;

/// Samples of a minute.
pub(crate) const MINUTE: usize = 60;

/// Samples that are kept.
const SAMPLES_MAX: usize = 5 * MINUTE;

/// The queues at one time, dead-letter queues apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Sample {
    /// When, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Messages that wait: visible or delayed.
    pub(crate) waiting: u64,
    /// Messages in flight.
    pub(crate) in_flight: u64,
    /// Messages in dead-letter queues.
    pub(crate) dead: u64,
    /// Messages deleted since the sample before.
    pub(crate) deleted: u64,
}

/// Samples, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    /// Messages deleted in all, at the newest sample.
    deleted: Option<u64>,
}

impl History {
    /// Returns the samples, the oldest first.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.samples.iter().copied().collect()
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, overview: &Overview) {
        let (waiting, in_flight, dead) = overview.totals();
        let worked_on = overview.queues.iter().filter(|queue| !queue.is_dead_letter_queue);
        let all: u64 = worked_on.filter_map(|queue| queue.counts).map(|counts| counts.deleted).sum();
        let deleted = self.deleted.replace(all).map_or(0, |before| all.saturating_sub(before));
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at_ms: overview.at_ms, waiting, in_flight, dead, deleted });
    }
}
