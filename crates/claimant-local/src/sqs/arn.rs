//! The ARNs of queues.

/// Every queue ARN is this and the queue's name.
const PREFIX: &str = "arn:aws:sqs:us-east-1:000000000000:";

/// Returns the ARN of a queue, whether it exists or not.
pub(super) fn of(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Returns the name in a queue's ARN.
pub(super) fn name_in(arn: &str) -> Option<&str> {
    let (region_and_on, name) = arn.strip_prefix("arn:aws:sqs:")?.rsplit_once(':')?;
    (region_and_on.split(':').count() == 2 && !name.is_empty()).then_some(name)
}
