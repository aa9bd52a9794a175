//! Who may use a queue or a table, beside what the policies of roles say.

use crate::fact::Fact;
use crate::link::Link;

/// A key of KMS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// The one of AWS for the service, such as `alias/aws/sqs`, whose policy cannot be changed.
    Default,
    /// One of the account's own; whether its policy leaves everything to IAM.
    Own {
        /// Which key.
        link: Link,
        /// Whether only IAM decides about it: its policy grants nothing to roles or services.
        by_iam_only: Fact<bool>,
    },
}

/// What decides who may use a table, beside the policies of roles.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Whether a policy of its own may let roles in: it has one, or that is not known.
    pub has_policy: bool,
    /// Its key, if it is encrypted with one of KMS.
    pub key: Fact<Option<Key>>,
}
