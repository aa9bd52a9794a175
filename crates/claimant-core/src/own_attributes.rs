//! The names of the attributes that claimant itself writes: all others of a message are its producer's, whatever they begin with.

/// Why a message is a dead letter.
pub const ERROR: &str = "claimant-error";

/// What became of the message of a dead letter: whether its work may be done.
pub const OUTCOME: &str = "claimant-outcome";

/// The id that the message of a dead letter had in its own queue: a copy has a new one.
pub const MESSAGE_ID: &str = "claimant-message-id";

/// The id that the producer's message had, where a dead letter was redriven, or its message sent again.
pub const FIRST_MESSAGE_ID: &str = "claimant-first-message-id";

/// How often the message was redriven from a dead-letter queue.
pub const REDRIVES: &str = "claimant-redrives";

/// The id of the record of the key of a dead letter.
pub const RECORD: &str = "claimant-record";

/// The consumer that gave up on a dead letter.
pub const CONSUMER: &str = "claimant-consumer";

/// Which run of the handler rejected a dead letter.
pub const ATTEMPT: &str = "claimant-attempt";

/// The id of the first message, of one that a schedule has sent to its queue again.
pub const SENT_AGAIN_OF: &str = "claimant-sent-again-of";

/// The ids that a message had before its own, the earliest first. Copies of dead letters leave out which message was sent again: where that
/// is there, it is later than the copy.
pub const EARLIER_IDS: [&str; 3] = [FIRST_MESSAGE_ID, MESSAGE_ID, SENT_AGAIN_OF];

const ALL: [&str; 9] =
    [ERROR, OUTCOME, MESSAGE_ID, FIRST_MESSAGE_ID, REDRIVES, RECORD, CONSUMER, ATTEMPT, SENT_AGAIN_OF];

/// Returns whether claimant itself writes an attribute of this name.
#[must_use]
pub fn is_own(name: &str) -> bool {
    ALL.contains(&name)
}
