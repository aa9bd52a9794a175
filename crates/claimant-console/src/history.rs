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
        let (mut sample, mut all) =
            (Sample { at_ms: overview.at_ms, waiting: 0, in_flight: 0, dead: 0, deleted: 0 }, 0);
        for queue in &overview.queues {
            if queue.is_dead_letter_queue {
                sample.dead += queue.visible + queue.delayed + queue.in_flight;
                continue;
            }
            sample.waiting += queue.visible + queue.delayed;
            sample.in_flight += queue.in_flight;
            all += queue.counts.map_or(0, |counts| counts.deleted);
        }
        sample.deleted = self.deleted.map_or(0, |before| all.saturating_sub(before));
        self.deleted = Some(all);
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}
