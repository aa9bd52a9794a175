//! Alarms on queues, and the metrics that they have to be on.

use crate::link::Link;
use crate::place::Place;

/// Where SQS's metrics are.
pub(crate) const SPACE: &str = "AWS/SQS";

/// Metrics that say that a dead-letter queue has something in it. `NumberOfMessagesSent` is none: it does not count what SQS moves.
pub(crate) const DEAD_LETTERS: [&str; 2] = ["ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"];

/// Metrics that say that a queue is not worked off.
pub(crate) const WAITING: [&str; 3] =
    ["ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"];

/// An alarm on one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// Such as `ApproximateAgeOfOldestMessage`.
    pub metric: String,
    /// What it is about: the values of its dimensions.
    pub of: Vec<Link>,
    /// Whether it is certain to act, and to be about all of these.
    pub certain: bool,
    /// Where it stands.
    pub place: Place,
}

/// Returns what an alarm by a query of Metrics Insights may be: an alarm on any of these queues, of each metric above that it names.
pub(crate) fn by_query(query: &str, queues: &[Link], place: &Place) -> Vec<Alarm> {
    let named = WAITING.into_iter().filter(|metric| query.contains(SPACE) && query.contains(metric));
    let alarm =
        |metric: &str| Alarm { metric: metric.to_owned(), of: queues.to_vec(), certain: false, place: place.clone() };
    named.map(alarm).collect()
}

/// What a template has of CloudWatch that is paid by the month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Watching {
    /// Metrics that alarms look at.
    pub alarm_metrics: usize,
    /// Dashboards.
    pub dashboards: usize,
    /// Alarms and dashboards that are in neither number, since it is not known whether they are there.
    pub uncertain: usize,
}
