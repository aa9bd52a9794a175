//! ARNs, URLs and names.

use crate::model::Link;

/// The partition of most accounts.
pub(super) const PARTITION: &str = "aws";

/// The partition of an ARN: `aws`, `aws-cn`, `aws-us-gov` and so on.
pub(super) fn partition_of(arn: &str) -> &str {
    arn.strip_prefix("arn:").and_then(|rest| rest.split(':').next()).unwrap_or(PARTITION)
}

/// The name in an ARN, a URL, or a name.
pub(super) fn name_of(arn: &str) -> &str {
    arn.rsplit([':', '/']).next().unwrap_or(arn)
}

/// A link to what has this name, as far as it is described here.
pub(super) fn here(name: &str) -> Link {
    Link::Here(name.to_owned())
}
