//! ARNs, URLs and names.

use crate::model::{Link, Place};

/// The partition of most accounts.
const PARTITION: &str = "aws";

/// The partition of an ARN: `aws`, `aws-cn`, `aws-us-gov` and so on.
pub(super) fn partition_of(arn: &str) -> &str {
    arn.strip_prefix("arn:").and_then(|rest| rest.split(':').next()).unwrap_or(PARTITION)
}

/// The name in an ARN, a URL, or a name.
pub(super) fn name_of(arn: &str) -> &str {
    arn.rsplit([':', '/']).next().unwrap_or(arn)
}

/// What a mapping is called: whose it is, of which queue, and its UUID, which alone says nothing to people.
pub(super) fn mapping_id(function: &str, queue: &str, uuid: &str) -> String {
    format!("{function} ({}, {uuid})", name_of(queue))
}

/// The name of the function with this ARN, without the version or alias behind it.
pub(super) fn function_of(arn: &str) -> Option<&str> {
    arn.split(':').nth(6)
}

/// The version or alias behind the name of the function with this ARN.
pub(super) fn qualifier_of(arn: &str) -> Option<&str> {
    arn.split(':').nth(7)
}

/// What a table is called, which a function with this ARN knows by a name or an ARN: its name if it is of the function's account and
/// Region, else its ARN.
pub(super) fn table_id<'t>(table: &'t str, function: &str) -> &'t str {
    let home = |arn: &'_ str| arn.split(':').skip(3).take(2).map(str::to_owned).collect::<Vec<_>>();
    if table.starts_with("arn:") && home(table) != home(function) { table } else { name_of(table) }
}

/// The place of what has this id in an account.
pub(super) fn place(id: &str) -> Place {
    Place { id: id.into(), certain: true, ..Place::default() }
}

/// A link to what has this name, as far as it is described here.
pub(super) fn here(name: &str) -> Link {
    Link::Here(name.to_owned())
}
