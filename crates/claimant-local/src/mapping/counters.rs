//! What has happened to a mapping's messages.

/// What has happened to a mapping's messages so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MappingCounters {
    /// Invocations that have ended.
    pub invocations: u64,
    /// Messages deleted after an invocation.
    pub succeeded: u64,
    /// Messages deleted without one, since they fit no filter of the mapping.
    pub filtered: u64,
    /// Deliveries left in the queue for redelivery: a message that fails twice counts twice.
    pub failed: u64,
    /// Invocations after which every message was left because of an error or an invalid response.
    pub whole_batch_failures: u64,
}

pub(super) fn count(messages: usize) -> u64 {
    u64::try_from(messages).expect("a number of messages fits 64 bits")
}
