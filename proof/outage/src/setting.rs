//! How much of everything, and which means against the outage are there.

use std::ops::Range;
use std::time::Duration;

/// What the consumer has against an outage of what it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// Each failure by itself is hidden for its backoff.
    Backoff,
    /// A breaker: messages wait in their invocations.
    Hold,
    /// The breaker pauses the event source mapping, too.
    Pause,
    /// And a limit holds across all processes.
    Rate,
}

impl Means {
    /// All of them, each after what it adds to.
    pub const ALL: [Self; 4] = [Self::Backoff, Self::Hold, Self::Pause, Self::Rate];

    /// What it is called in the table and the plot.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Backoff => "backoff only",
            Self::Hold => "breaker",
            Self::Pause => "breaker that pauses",
            Self::Rate => "and a limit",
        }
    }
}

/// The world of a run.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Messages that are sent in a second.
    pub sent_per_s: u32,
    /// For so long they are sent.
    pub sent_for: Duration,
    /// When the downstream is away.
    pub away: Range<Duration>,
    /// `MaximumConcurrency` of the event source mapping: invocations at once, each in a process of its own.
    pub invocations: usize,
    /// Calls that the downstream is good for in a second: the limit, where there is one.
    pub limit_per_s: u32,
    /// Messages in flight, beyond which nothing is received.
    pub in_flight_max: usize,
}

impl Setting {
    /// The batch size of the mapping.
    pub const BATCH: usize = 10;
    /// The function's timeout.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// The queue's visibility timeout: six times the function's.
    pub const VISIBILITY: Duration = Duration::from_secs(180);
    /// The queue's `maxReceiveCount`.
    pub const RECEIVES_MAX: u32 = 5;
    /// How long a call of the downstream takes, whatever comes of it.
    pub const CALL: Duration = Duration::from_millis(50);
    /// How long a request to the store takes.
    pub const STORE: Duration = Duration::from_millis(5);

    /// The issue's: half an hour away, at 1,000 messages a second.
    #[must_use]
    pub fn whole() -> Self {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        Self {
            sent_per_s: 1_000,
            sent_for: minutes(42),
            away: minutes(2)..minutes(32),
            invocations: 100,
            limit_per_s: 2_500,
            in_flight_max: 120_000,
        }
    }

    /// All of it smaller, except for times.
    #[must_use]
    pub fn divided(self, by: u32) -> Self {
        Self {
            sent_per_s: self.sent_per_s / by,
            invocations: self.invocations / by as usize,
            limit_per_s: self.limit_per_s / by,
            in_flight_max: self.in_flight_max / by as usize,
            ..self
        }
    }
}
