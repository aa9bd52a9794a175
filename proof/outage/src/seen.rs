//! What is measured, each second and at the end.

use std::time::Duration;

/// One second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    /// Messages in flight: received, and neither deleted nor visible again.
    pub in_flight: usize,
    /// Messages that are visible in the queue.
    pub visible: usize,
    /// Calls of the downstream.
    pub calls: u32,
    /// Messages in the dead-letter queue.
    pub dead: usize,
}

/// What became of the messages.
#[derive(Debug, Default)]
pub struct Seen {
    /// A sample for each second.
    pub samples: Vec<Sample>,
    /// Messages that were sent.
    pub sent: usize,
    /// How often each was done.
    pub done: Vec<u8>,
    /// The numbers of the messages in the dead-letter queue.
    pub dead: Vec<usize>,
    /// Receives of messages.
    pub receives: u64,
    /// Calls of the downstream while it was away.
    pub calls_away: u64,
    /// How long invocations took while the downstream was away.
    pub invoked_away: Duration,
    /// How often the mapping was switched off.
    pub pauses: u32,
    /// Reads and writes of records that are no message's.
    pub asked: (u64, u64),
    /// Since the beginning: when the downstream was back.
    pub back: Duration,
    /// Since the beginning: when the queue was empty, and no message was sent any more.
    pub empty: Duration,
}

impl Seen {
    /// Returns how many messages were done.
    #[must_use]
    pub fn done(&self) -> usize {
        self.done.iter().filter(|times| **times > 0).count()
    }

    /// Returns how many messages were done more than once.
    #[must_use]
    pub fn doubled(&self) -> usize {
        self.done.iter().filter(|times| **times > 1).count()
    }

    /// Returns how many messages are neither done nor dead. One that is both makes up for none that is lost.
    #[must_use]
    pub fn lost(&self) -> usize {
        let mut has_end: Vec<_> = (0..self.sent).map(|n| self.done.get(n).is_some_and(|times| *times > 0)).collect();
        self.dead.iter().for_each(|n| has_end[*n] = true);
        has_end.iter().filter(|has_end| !**has_end).count()
    }

    /// Returns the most messages in flight at the end of a second.
    #[must_use]
    pub fn in_flight_most(&self) -> usize {
        self.samples.iter().map(|sample| sample.in_flight).max().unwrap_or(0)
    }

    /// Returns the most calls in a second after the downstream was back.
    #[must_use]
    pub fn calls_most(&self) -> u32 {
        self.samples.iter().skip(self.back.as_secs() as usize).map(|sample| sample.calls).max().unwrap_or(0)
    }

    /// Returns how long after the outage nothing of its backlog was visible any more: no more than what is sent in a second.
    #[must_use]
    pub fn drained(&self, sent_per_s: u32) -> Option<Duration> {
        let back = self.back.as_secs() as usize;
        let after = self.samples.iter().skip(back).position(|sample| sample.visible <= sent_per_s as usize);
        after.map(|seconds| Duration::from_secs(seconds as u64))
    }

    /// Returns the calls in a second while the backlog was worked off, by so many seconds: the fewest and the most. The first ten, in which
    /// that begins, and what is left at its end are left out.
    #[must_use]
    pub fn pace(&self, sent_per_s: u32, by: usize) -> Option<(u64, u64)> {
        let back = self.back.as_secs() as usize;
        let begin = back + self.samples[back..].iter().position(|sample| sample.calls > sent_per_s)?;
        let end = back + self.drained(sent_per_s)?.as_secs() as usize;
        let parts = self.samples.get(begin + 10..end)?.chunks_exact(by);
        let each =
            || parts.clone().map(|part| part.iter().map(|sample| u64::from(sample.calls)).sum::<u64>() / by as u64);
        Some((each().min()?, each().max()?))
    }

    /// Returns for how long the queue was full: 95 in 100 of what may be in flight, or more.
    #[must_use]
    pub fn full(&self, in_flight_max: usize) -> Duration {
        let full = self.samples.iter().filter(|sample| sample.in_flight * 100 >= in_flight_max * 95);
        Duration::from_secs(full.count() as u64)
    }
}
