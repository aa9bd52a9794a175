//! Parameters that several actions take.

use std::ops::RangeInclusive;

use super::super::fault::{Code, Fault};
use crate::arn::ACCOUNT_ID;

/// The name in a queue URL, or the name alone. The host is not looked at: a queue may be reached under several.
pub(super) fn queue_name(url: &str) -> Result<&str, Fault> {
    if url.is_empty() {
        return Err(Fault::missing("QueueUrl"));
    }
    if !url.contains('/') {
        return Ok(url);
    }
    let mut segments = url.trim_end_matches('/').rsplit('/');
    match (segments.next(), segments.next()) {
        (Some(name), Some(ACCOUNT_ID)) if !name.is_empty() => Ok(name),
        _ => Err(Fault::new(
            Code::InvalidAddress,
            format!(
                "The address {url} is not valid for this endpoint: queue URLs end in /{ACCOUNT_ID}/<name>, and a name alone does as well."
            ),
        )),
    }
}

/// Returns a number that may be absent, if it is within its bounds.
pub(super) fn bounded(parameter: &str, value: Option<i64>, bounds: RangeInclusive<u64>) -> Result<Option<u64>, Fault> {
    let Some(value) = value else {
        return Ok(None);
    };
    let inside = u64::try_from(value).ok().filter(|value| bounds.contains(value));
    inside.map(Some).ok_or_else(|| {
        let (min, max) = bounds.into_inner();
        Fault::new(
            Code::InvalidParameterValue,
            format!(
                "Value {value} for parameter {parameter} is invalid. Reason: Must be between {min} and {max}, if provided."
            ),
        )
    })
}
