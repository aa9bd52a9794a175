//! What SQS takes of a message.

/// The most bytes of a message, bodies and attributes, and of the messages of one request together ("SendMessageBatch" in the SQS API
/// reference, since August 2025). A queue may be set to fewer for a message.
pub const MESSAGE_MAX_BYTES: usize = 1 << 20;

/// The most attributes of a message.
pub const ATTRIBUTES_MAX: usize = 10;

/// Returns whether SQS takes this character in a body or an attribute: one that XML 1.0 has.
#[must_use]
pub const fn takes(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// What error codes have in them where SQS, or what is in front of it, takes no more for now.
const THROTTLED: [&str; 6] =
    ["Throttl", "OverLimit", "TooManyRequests", "LimitExceeded", "SlowDown", "PriorRequestNotComplete"];

/// Returns whether an error of this code says that SQS takes no more for now, and took nothing of the request.
#[must_use]
pub fn is_throttle(code: &str) -> bool {
    THROTTLED.iter().any(|word| code.contains(word))
}
