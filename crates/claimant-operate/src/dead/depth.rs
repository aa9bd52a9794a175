//! How many messages a dead-letter queue holds.

use std::collections::HashMap;

use aws_sdk_sqs::types::QueueAttributeName as Name;

/// How many messages a queue holds, as SQS counts them: about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Those that can be read now.
    pub visible: u64,
    /// Those that are hidden now: something reads them, or a reader died within the last minutes.
    pub hidden: u64,
    /// Those that were sent with a delay.
    pub delayed: u64,
}

impl Depth {
    /// Returns what a queue's attributes say of it.
    pub(super) fn of(attributes: &HashMap<Name, String>) -> Self {
        let number = |name| attributes.get(&name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Self {
            visible: number(Name::ApproximateNumberOfMessages),
            hidden: number(Name::ApproximateNumberOfMessagesNotVisible),
            delayed: number(Name::ApproximateNumberOfMessagesDelayed),
        }
    }

    /// Returns how many have no delay, or none any more.
    pub(super) const fn due(self) -> u64 {
        self.visible + self.hidden
    }

    /// Returns how many these are together.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.due() + self.delayed
    }
}
