//! The settings of a queue and their limits.

use std::time::Duration;

use super::fault::Fault;

/// The longest visibility timeout, in seconds: 12 hours.
pub(super) const VISIBILITY_MAX_S: u64 = 43_200;
/// The shortest retention, in seconds.
pub(super) const RETENTION_MIN_S: u64 = 60;
/// The longest retention, in seconds: 14 days.
pub(super) const RETENTION_MAX_S: u64 = 1_209_600;
/// The longest delay of a queue or a message, in seconds: 15 minutes.
pub(super) const DELAY_MAX_S: u64 = 900;
/// The longest wait of one receive, in seconds.
pub(super) const WAIT_MAX_S: u64 = 20;
/// The largest `maxReceiveCount` of a redrive policy.
pub(super) const RECEIVE_COUNT_MAX: u32 = 1_000;
/// The ending that makes a queue's name a FIFO queue's name.
pub(super) const FIFO_SUFFIX: &str = ".fifo";

const NAME_LENGTH_MAX: usize = 80;

/// How a queue behaves. The default is what SQS gives a standard queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// Whether the queue is FIFO; its name then ends in `.fifo`.
    pub fifo: bool,
    /// Whether a FIFO queue derives a missing deduplication id from the body.
    pub content_based_deduplication: bool,
    /// How long a received message stays hidden: up to 12 hours.
    pub visibility_timeout: Duration,
    /// How long an undeleted message is kept: 1 minute to 14 days.
    pub retention: Duration,
    /// How long a new message stays hidden: up to 15 minutes.
    pub delay: Duration,
    /// How long a receive without its own wait waits for a message: up to 20 seconds.
    pub receive_wait: Duration,
    /// Where messages go that were received too often.
    pub redrive: Option<Redrive>,
}

/// When and to where a queue gives up on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redrive {
    /// The name of the dead-letter queue: an existing queue of the same type.
    pub dead_letter_queue: String,
    /// How many times a message is received before the next receive moves it instead: 1 to 1,000.
    pub max_receive_count: u32,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            fifo: false,
            content_based_deduplication: false,
            visibility_timeout: Duration::from_secs(30),
            retention: Duration::from_secs(345_600),
            delay: Duration::ZERO,
            receive_wait: Duration::ZERO,
            redrive: None,
        }
    }
}

impl QueueSettings {
    /// Checks every limit that needs no other queue.
    pub(super) fn check(&self, name: &str) -> Result<(), Fault> {
        check_name(name, self.fifo)?;
        if self.content_based_deduplication && !self.fifo {
            return Err(Fault::unknown_attribute("ContentBasedDeduplication", "only FIFO queues have it"));
        }
        within("VisibilityTimeout", self.visibility_timeout, 0, VISIBILITY_MAX_S)?;
        within("MessageRetentionPeriod", self.retention, RETENTION_MIN_S, RETENTION_MAX_S)?;
        within("DelaySeconds", self.delay, 0, DELAY_MAX_S)?;
        within("ReceiveMessageWaitTimeSeconds", self.receive_wait, 0, WAIT_MAX_S)?;
        match &self.redrive {
            Some(redrive) if !(1..=RECEIVE_COUNT_MAX).contains(&redrive.max_receive_count) => {
                Err(Fault::invalid_parameter(
                    "RedrivePolicy",
                    format!("maxReceiveCount must be between 1 and {RECEIVE_COUNT_MAX}."),
                ))
            }
            _ => Ok(()),
        }
    }
}

fn check_name(name: &str, fifo: bool) -> Result<(), Fault> {
    let stem = match (fifo, name.strip_suffix(FIFO_SUFFIX)) {
        (true, Some(stem)) => stem,
        (true, None) => {
            return Err(Fault::invalid_parameter(
                "QueueName",
                "The name of a FIFO queue must end with the .fifo suffix.",
            ));
        }
        (false, Some(_)) => {
            return Err(Fault::invalid_parameter(
                "QueueName",
                "Only a FIFO queue's name may end in .fifo: set the attribute FifoQueue to true, or drop the suffix.",
            ));
        }
        (false, None) => name,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if stem.is_empty() || name.len() > NAME_LENGTH_MAX || !stem.chars().all(plain) {
        return Err(Fault::invalid_parameter(
            "QueueName",
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.",
        ));
    }
    Ok(())
}

fn within(attribute: &str, value: Duration, min_s: u64, max_s: u64) -> Result<(), Fault> {
    if value < Duration::from_secs(min_s) || value > Duration::from_secs(max_s) {
        return Err(Fault::invalid_attribute(attribute, format!("It must be between {min_s} and {max_s} seconds.")));
    }
    Ok(())
}
