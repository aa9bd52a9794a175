//! One message: what is known to have happened to it, and what it holds.

use crate::timeline::Fact;

/// What is known of one message.
#[derive(Debug, Clone, Default)]
pub struct MessageFacts {
    /// What happened to it and to the other messages of its keys, in any order.
    pub facts: Vec<Fact>,
    /// The ids of the records of its keys, as far as they are known.
    pub keys: Vec<String>,
    /// Its body, where it is still to be had.
    pub body: Option<String>,
    /// What this source cannot tell of messages, in a sentence.
    pub missing: Option<String>,
}
