//! Event source mappings, as Lambda's API has them.

use serde::Deserialize;

use crate::signed::Answer;

/// The path of all of them; that of one has its UUID after it.
pub const PATH: &str = "/2015-03-31/event-source-mappings";

/// The function response type of a mapping that reports failures.
pub const REPORTS: &str = "ReportBatchItemFailures";

/// An event source mapping. What an answer lacks is `None`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct EventSourceMapping {
    /// Its UUID.
    #[serde(rename = "UUID")]
    pub uuid: Option<String>,
    /// The ARN of what it reads: a queue, or another source.
    pub event_source_arn: Option<String>,
    /// The ARN of its function, with the version or alias if it is of one.
    pub function_arn: Option<String>,
    /// What it does: `Enabled`, `Disabled`, `Enabling`, `Disabling`, `Updating`, …
    pub state: Option<String>,
    /// What of its function's answers counts.
    pub function_response_types: Option<Vec<String>>,
}

impl EventSourceMapping {
    /// Returns whether it polls, or is about to.
    #[must_use]
    pub fn is_on(&self) -> bool {
        is_on(self.state.as_deref().unwrap_or_default())
    }

    /// Returns whether the function's answers name the messages that failed.
    #[must_use]
    pub fn reports_failures(&self) -> bool {
        self.function_response_types.iter().flatten().any(|kind| kind == REPORTS)
    }

    /// Returns the ARN of its queue, if it is one of a queue.
    #[must_use]
    pub fn queue_arn(&self) -> Option<&str> {
        self.event_source_arn.as_deref().filter(|arn| arn.contains(":sqs:"))
    }
}

/// Returns whether a mapping in this state polls, or is about to.
#[must_use]
pub fn is_on(state: &str) -> bool {
    !matches!(state, "Disabled" | "Disabling")
}

/// A page of event source mappings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Mappings {
    /// The mappings.
    pub event_source_mappings: Vec<EventSourceMapping>,
    /// Where the next page begins, if there is one.
    pub next_marker: Option<String>,
}

/// Returns whether a change is refused because another one is under way.
#[must_use]
pub fn is_in_use(answer: &Answer) -> bool {
    matches!(answer.code.as_str(), "ResourceInUseException" | "ResourceConflictException")
}
