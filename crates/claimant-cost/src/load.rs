//! What no template says: how many messages come, and what they are like.

/// Days that a month has here.
pub const MONTH_DAYS: f64 = 30.0;

/// The window of a consumer that sets none, and the shortest of one that does its work at most once: `claimant::limits::WINDOW_DEFAULT_S`.
pub(crate) const WINDOW_DEFAULT_DAYS: f64 = 15.0;

/// How many messages come to a function, and what they are like.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// How many messages come.
    pub traffic: Traffic,
    /// What one message is.
    pub work: Work,
    /// Messages of a batch, where that is known; else it is estimated.
    pub filled: Option<f64>,
    /// Days that a completed key keeps duplicates out.
    pub window_days: f64,
}

/// How many messages come.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// Messages that come, copies included.
    pub per_second: f64,
    /// The busiest second over the mean one.
    pub peak: f64,
    /// Of the messages, how many are copies of completed work, from 0 to 1.
    pub duplicates: f64,
    /// Of the messages, how many fail and come again once, from 0 to 1.
    pub retries: f64,
    /// Of FIFO queues: messages of one group in a batch, which run one after the other.
    pub per_group: f64,
    /// Messages in one request of their sender, if sending is to be counted.
    pub sent_in: Option<f64>,
}

/// What one message is.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Milliseconds of the handler.
    pub handler_ms: f64,
    /// Milliseconds that the store takes for an answer.
    pub store_ms: f64,
    /// Bytes of the body and the attributes.
    pub body_bytes: f64,
    /// Bytes of what the handler returns, which the record keeps.
    pub result_bytes: f64,
    /// Transactional: write units of the handler's own writes, each as if it stood alone.
    pub writes: f64,
    /// Bytes that the handler itself logs.
    pub log_bytes: f64,
    /// Seconds of a lease that is renewed while the handler runs, if it is.
    pub lease_s: Option<f64>,
}

impl Default for Load {
    fn default() -> Self {
        Self { traffic: Traffic::default(), work: Work::default(), filled: None, window_days: WINDOW_DEFAULT_DAYS }
    }
}

impl Default for Traffic {
    fn default() -> Self {
        Self { per_second: 1.0, peak: 2.0, duplicates: 0.01, retries: 0.01, per_group: 1.0, sent_in: None }
    }
}

impl Default for Work {
    fn default() -> Self {
        Self {
            handler_ms: 20.0,
            store_ms: 5.0,
            body_bytes: 1_024.0,
            result_bytes: 0.0,
            writes: 1.0,
            log_bytes: 0.0,
            lease_s: None,
        }
    }
}

impl Traffic {
    /// Returns deliveries a second: messages, and those that come again.
    pub fn deliveries(&self) -> f64 {
        self.per_second * (1.0 + self.retries)
    }
}

impl Work {
    /// Returns how often the lease of a message is renewed.
    pub fn renewals(&self) -> f64 {
        self.lease_s.map_or(0.0, |lease| (self.handler_ms / 1_000.0 / (lease / 3.0)).floor())
    }
}
