//! The settings of a queue and their limits.

use std::time::Duration;

use super::fault::Fault;
use crate::arn;

/// The longest visibility timeout, in seconds: 12 hours.
pub(crate) const VISIBILITY_MAX_S: u64 = 43_200;
/// The shortest retention, in seconds.
pub(crate) const RETENTION_MIN_S: u64 = 60;
/// The longest retention, in seconds: 14 days.
pub(crate) const RETENTION_MAX_S: u64 = 1_209_600;
/// The longest delay of a queue or a message, in seconds: 15 minutes.
pub(crate) const DELAY_MAX_S: u64 = 900;
/// The longest wait of one receive, in seconds.
pub(crate) const WAIT_MAX_S: u64 = 20;
/// The largest `maxReceiveCount` of a redrive policy.
pub(crate) const RECEIVE_COUNT_MAX: u32 = 1_000;
/// The ending that makes a queue's name a FIFO queue's name.
pub(crate) const FIFO_SUFFIX: &str = ".fifo";

/// The smallest `MaximumMessageSize`, in bytes.
pub(crate) const MESSAGE_BYTES_MIN: usize = 1_024;
/// The largest message, and the largest batch, in bytes: 1 MiB of bodies and attributes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1_048_576;

/// ARNs in one `RedriveAllowPolicy` at most.
pub(crate) const SOURCES_MAX: usize = 10;

/// The longest name, with its suffix.
pub(crate) const NAME_LENGTH_MAX: usize = 80;

/// How a queue behaves. The default is what SQS gives a standard queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// Whether the queue is FIFO; its name then ends in `.fifo`.
    pub fifo: bool,
    /// How a FIFO queue recognises repeated messages.
    pub deduplication: Deduplication,
    /// How long a received message stays hidden: up to 12 hours.
    pub visibility_timeout: Duration,
    /// How long an undeleted message is kept: 1 minute to 14 days.
    pub retention: Duration,
    /// How long a new message stays hidden: up to 15 minutes.
    pub delay: Duration,
    /// How long a receive without its own wait waits for a message: up to 20 seconds.
    pub receive_wait: Duration,
    /// The largest message that the queue accepts, attributes included, in bytes: 1 KiB to 1 MiB.
    pub max_message_bytes: usize,
    /// What a FIFO queue's throughput quota applies to. Checked and shown; throughput is not limited here.
    pub throughput_limit: ThroughputLimit,
    /// Where messages go that were received too often.
    pub redrive: Option<Redrive>,
    /// Which queues may name this one as their dead-letter queue.
    pub redrive_allow: RedriveAllow,
}

/// How a FIFO queue recognises repeated messages, for five minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deduplication {
    /// Whether the queue derives a missing deduplication id from the body.
    pub content_based: bool,
    /// Where the queue recognises a deduplication id.
    pub scope: DeduplicationScope,
}

/// Where a FIFO queue recognises a deduplication id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeduplicationScope {
    /// `queue`: in the whole queue.
    #[default]
    Queue,
    /// `messageGroup`: in the message group, so that two groups can use the same id.
    MessageGroup,
}

/// What a FIFO queue's throughput quota applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThroughputLimit {
    /// `perQueue`.
    #[default]
    PerQueue,
    /// `perMessageGroupId`; the scope of deduplication is then the message group.
    PerMessageGroup,
}

/// Which queues may name a queue as their dead-letter queue. Looked at when they do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RedriveAllow {
    /// `allowAll`: every queue.
    #[default]
    All,
    /// `denyAll`: none.
    None,
    /// `byQueue`: those of these ARNs.
    Queues(Vec<String>),
}

impl DeduplicationScope {
    /// Reads the value of `DeduplicationScope`; `None` for one that is not its.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Queue, Self::MessageGroup].into_iter().find(|scope| scope.as_str() == text)
    }

    /// Returns the value of `DeduplicationScope`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::MessageGroup => "messageGroup",
        }
    }
}

impl ThroughputLimit {
    /// Reads the value of `FifoThroughputLimit`; `None` for one that is not its.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::PerQueue, Self::PerMessageGroup].into_iter().find(|limit| limit.as_str() == text)
    }

    /// Returns the value of `FifoThroughputLimit`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PerQueue => "perQueue",
            Self::PerMessageGroup => "perMessageGroupId",
        }
    }
}

impl RedriveAllow {
    /// Whether the queue of this name may name the one with this policy.
    pub(crate) fn allows(&self, source: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Queues(arns) => arns.iter().any(|arn| arn::queue_name(arn) == Some(source)),
        }
    }
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
        Self::STANDARD
    }
}

impl QueueSettings {
    /// What SQS gives a standard queue.
    pub(super) const STANDARD: Self = Self {
        fifo: false,
        deduplication: Deduplication { content_based: false, scope: DeduplicationScope::Queue },
        visibility_timeout: Duration::from_secs(30),
        retention: Duration::from_secs(345_600),
        delay: Duration::ZERO,
        receive_wait: Duration::ZERO,
        max_message_bytes: MESSAGE_BYTES_MAX,
        throughput_limit: ThroughputLimit::PerQueue,
        redrive: None,
        redrive_allow: RedriveAllow::All,
    };

    /// Checks every limit that needs no other queue.
    pub(super) fn check(&self, name: &str) -> Result<(), Fault> {
        check_name(name, self.fifo).map_err(|why| Fault::invalid_parameter("QueueName", why))?;
        self.check_fifo()?;
        if !(MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX).contains(&self.max_message_bytes) {
            let reason = format!("It must be between {MESSAGE_BYTES_MIN} and {MESSAGE_BYTES_MAX} bytes.");
            return Err(Fault::invalid_attribute("MaximumMessageSize", reason));
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

    fn check_fifo(&self) -> Result<(), Fault> {
        let per_group = self.deduplication.scope == DeduplicationScope::MessageGroup;
        let high_throughput = self.throughput_limit == ThroughputLimit::PerMessageGroup;
        if !self.fifo {
            let given = [
                ("ContentBasedDeduplication", self.deduplication.content_based),
                ("DeduplicationScope", per_group),
                ("FifoThroughputLimit", high_throughput),
            ];
            let given = given.into_iter().find(|(_, given)| *given);
            return given.map_or(Ok(()), |(attribute, _)| Err(Fault::fifo_only(attribute)));
        }
        if high_throughput && !per_group {
            return Err(Fault::invalid_attribute(
                "FifoThroughputLimit",
                "Reason: perMessageGroupId is allowed only when DeduplicationScope is messageGroup.",
            ));
        }
        Ok(())
    }
}

/// Checks the name of a queue. The error says what is wrong with it.
pub(crate) fn check_name(name: &str, fifo: bool) -> Result<(), &'static str> {
    let stem = match (fifo, name.strip_suffix(FIFO_SUFFIX)) {
        (true, Some(stem)) => stem,
        (true, None) => return Err("The name of a FIFO queue must end with the .fifo suffix."),
        (false, Some(_)) => {
            return Err(
                "Only a FIFO queue's name may end in .fifo: set the attribute FifoQueue to true, or drop the suffix.",
            );
        }
        (false, None) => name,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if stem.is_empty() || name.len() > NAME_LENGTH_MAX || !stem.chars().all(plain) {
        return Err("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.");
    }
    Ok(())
}

fn within(attribute: &str, value: Duration, min_s: u64, max_s: u64) -> Result<(), Fault> {
    if value < Duration::from_secs(min_s) || value > Duration::from_secs(max_s) {
        return Err(Fault::invalid_attribute(attribute, format!("It must be between {min_s} and {max_s} seconds.")));
    }
    Ok(())
}
