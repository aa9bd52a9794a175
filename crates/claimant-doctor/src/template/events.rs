//! Events of functions that read a queue.

use super::part::Part;
use crate::fact::Fact;

/// What SAM makes a mapping of, of a function's event.
pub(super) struct Source<'s> {
    /// The queue's ARN; nothing where SAM makes the queue, too.
    pub(super) queue: Part<'s>,
    /// As a mapping has them.
    pub(super) properties: Part<'s>,
    /// Whether the event is a topic's, with a queue between that and the function.
    pub(super) of_topic: bool,
}

/// What an event has of a mapping from a queue, if it has one.
pub(super) fn source<'s>(event: &Part<'s>) -> Fact<Option<Source<'s>>> {
    let Fact::Known(kind) = event.at("Type").literal() else { return Fact::Unknown };
    let properties = event.at("Properties");
    if kind.as_deref() == Some("SQS") {
        return Fact::Known(Some(Source { queue: properties.at("Queue"), properties, of_topic: false }));
    }
    let subscription = properties.at("SqsSubscription");
    let is_map = subscription.is_map();
    let reads = if is_map == Fact::Known(true) { is_map } else { subscription.boolean_or(false) };
    match (kind.as_deref(), reads) {
        (Some("SNS"), Fact::Unknown) => Fact::Unknown,
        (Some("SNS"), Fact::Known(true)) => Fact::Known(Some(Source {
            queue: subscription.at("QueueArn"),
            // SAM passes nothing else on, not even `Enabled`.
            properties: subscription.only("BatchSize"),
            of_topic: true,
        })),
        _ => Fact::Known(None),
    }
}
