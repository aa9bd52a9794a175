//! A message to send.

use std::collections::BTreeMap;
use std::fmt;

use aws_sdk_sqs::types::MessageAttributeValue;
use claimant_core::Key;

use crate::error::{SendError, SendErrorKind};
use crate::id;

/// The largest message, and the largest sum of a batch: 1 MiB of bodies and attributes.
pub(crate) const BYTES_MAX: usize = 1_048_576;

/// A message to be sent: its business key and its body.
///
/// The key names the piece of work, as the consumer's rule for keys does. Two messages of one key with different bodies are
/// a mistake: a FIFO queue drops the second silently, a consumer reports a conflict.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod producer { pub use claimant_producer::*; } }
/// use claimant::Key;
/// use claimant::producer::Outgoing;
///
/// let order = Outgoing::new(Key::new("ord-1")?, r#"{"order_id": "ord-1"}"#).group("customer-7");
/// # Ok::<_, claimant::Error>(())
/// ```
#[derive(Clone)]
pub struct Outgoing {
    pub(crate) body: String,
    pub(crate) deduplication_id: String,
    pub(crate) group: Option<String>,
    pub(crate) attributes: BTreeMap<String, MessageAttributeValue>,
}

impl Outgoing {
    /// Returns a message of this key.
    #[must_use]
    pub fn new(key: Key, body: impl Into<String>) -> Self {
        let deduplication_id = id::of(key.as_str());
        Self { body: body.into(), deduplication_id, group: None, attributes: BTreeMap::new() }
    }

    /// Sets the message group. On a FIFO queue, messages of a group stay in their order; without this, each key is a group of its
    /// own. On a standard queue, it is a tenant for fair queues, and without this there is none.
    ///
    /// Any text; one that SQS does not accept as a group id is hashed. Use the same group for a key each time: queues that
    /// deduplicate by group recognise a key only within its group.
    #[must_use]
    pub fn group(mut self, group: impl AsRef<str>) -> Self {
        self.group = Some(id::of(group.as_ref()));
        self
    }

    /// Adds a message attribute. SQS accepts at most ten.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: MessageAttributeValue) -> Self {
        self.attributes.insert(name.into(), value);
        self
    }

    /// Returns the size that counts towards the limits of SQS: the body, and names, types and values of the attributes.
    pub(crate) fn bytes(&self) -> usize {
        let attribute = |(name, value): (&String, &MessageAttributeValue)| {
            let text = value.string_value().map_or(0, str::len);
            let binary = value.binary_value().map_or(0, |blob| blob.as_ref().len());
            name.len() + value.data_type().len() + text + binary
        };
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>()
    }

    /// Checks for what SQS would refuse the whole batch, so that one message cannot fail the others.
    pub(crate) fn check(&self) -> Result<(), SendError> {
        let refused = |why: String| Err(SendError::new(SendErrorKind::Refused, why));
        if self.body.is_empty() {
            return refused("the body is empty: SQS takes no empty messages".into());
        }
        let bytes = self.bytes();
        if bytes > BYTES_MAX {
            return refused(format!(
                "the message has {bytes} bytes with its attributes, and SQS takes {BYTES_MAX}: put the payload into S3, and \
                 send where it is"
            ));
        }
        let sendable =
            |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        match self.body.chars().position(|c| !sendable(c)) {
            None => Ok(()),
            Some(at) => refused(format!(
                "character {at} of the body is one that SQS does not take, a control character or U+FFFE or U+FFFF: escape it, \
                 as JSON does, or encode the body in Base64"
            )),
        }
    }
}

// Bodies and keys are personal data more often than not, and `Debug` ends up in logs.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outgoing({} bytes)", self.bytes())
    }
}
