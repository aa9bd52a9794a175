//! ARNs, URLs and names.

use crate::model::Link;

/// The name in an ARN, a URL, or a name.
pub(super) fn name_of(arn: &str) -> &str {
    arn.rsplit([':', '/']).next().unwrap_or(arn)
}

/// A link to what has this name, as far as it is described here.
pub(super) fn here(name: &str) -> Link {
    Link::Here(name.to_owned())
}
