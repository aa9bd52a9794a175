//! The errors that claimant itself writes, and what is read from them again.

use crate::claim::Claim;
use crate::record::{Record, Status};

/// The error of a record whose work was taken over, and given back without a run, before how often. Where the answer to a claim was lost, it is
/// not known whether there was an owner before it that died.
const UNFINISHED: &str = "owners that may not have finished it: ";

/// What is around the number in the error of a record whose key was rejected without a run, since it had been claimed as often as it may.
const TOO_OFTEN: (&str, &str) = ("it was claimed ", " times before, which is as often as it may");

/// What comes after that, before the error of the last run.
const LAST_ERROR: &str = "; the last error: ";

/// Why a message is rejected whose record says that it was, before the record's error.
const REJECTED_BEFORE: &str = "it was rejected on an earlier delivery";

/// How a message that a schedule has sent again is run once more.
const AFTER_A_SCHEDULE: &str =
    " (a schedule had sent it again: to run it once more, use `claimant dead redrive` or `claimant reset`)";

/// Returns the error of a record whose work so many owners left in progress, and which was given back without a run.
#[must_use]
pub fn set_aside(interruptions: u32) -> String {
    format!("{UNFINISHED}{interruptions}")
}

/// Returns how many owners left the work of a record with this error in progress before it was set aside.
#[must_use]
pub fn interruptions_in(error: Option<&str>) -> u32 {
    let count = error.and_then(|error| error.strip_prefix(UNFINISHED));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Returns the error of a record with this claim, which is one more than the `max` that it may have: with what is known of why, how many owners
/// may not have finished the work and the error of the last run.
pub(crate) fn too_often(max: u32, claim: &Claim) -> String {
    let mut error = format!("{}{max}{}", TOO_OFTEN.0, TOO_OFTEN.1);
    if claim.is_taken_over() {
        error.push_str("; ");
        error.push_str(&set_aside(claim.interruptions));
    }
    if let Some(last) = &claim.last_error {
        error.push_str(LAST_ERROR);
        error.push_str(last);
    }
    error
}

/// Returns why a message is rejected whose record was, with the record's error; and how to run it once more, where a schedule has sent it again.
pub(crate) fn rejected_before(error: Option<&str>, sent_again: bool) -> String {
    let how = if sent_again { AFTER_A_SCHEDULE } else { "" };
    let why = error.map(|error| format!(": {error}")).unwrap_or_default();
    format!("{REJECTED_BEFORE}{how}{why}")
}

/// Returns what follows the number in an error of [`too_often`]; `None` for any other.
fn after_too_often(error: &str) -> Option<&str> {
    let count = error.strip_prefix(TOO_OFTEN.0)?;
    count.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(TOO_OFTEN.1)
}

/// Returns the error of the last run of the handler that the error of a record has: that itself, unless the record got it without a run.
pub(super) fn last_error(error: &str) -> Option<&str> {
    match after_too_often(error) {
        Some(after) => after.split_once(LAST_ERROR).map(|(_, last)| last),
        None => Some(error).filter(|_| interruptions_in(Some(error)) == 0),
    }
}

/// Returns the two parts of an error that ends with one which a record kept: claimant's own words, without how many owners may not have finished
/// the work, and the error kept. That is at most [`ERROR_MAX_BYTES`](crate::record::ERROR_MAX_BYTES) bytes, less those words where the record
/// kept them with it. `None` for any other error.
#[must_use]
pub fn kept_in(error: &str) -> Option<(&str, &str)> {
    if let Some(at) = error.find(TOO_OFTEN.1) {
        let (words, rest) = error.split_at(at + TOO_OFTEN.1.len());
        return rest.split_once(LAST_ERROR).map(|(_, last)| (words, last));
    }
    let mut end = error.find(REJECTED_BEFORE)? + REJECTED_BEFORE.len();
    if error[end..].starts_with(AFTER_A_SCHEDULE) {
        end += AFTER_A_SCHEDULE.len();
    }
    let (words, rest) = error.split_at(end);
    Some((words, rest.strip_prefix(": ")?))
}

/// Returns how many of a record's [attempts](Record::attempts) were to run the handler: all but the one that rejected the key, since it had
/// been claimed as often as it may.
#[must_use]
pub fn runs(record: &Record) -> u32 {
    let is_too_often = record.error.as_deref().and_then(after_too_often).is_some();
    record.attempts.saturating_sub((is_too_often && record.status == Status::Rejected).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_a_record_kept_is_found_behind_our_words() {
        let often = "it was claimed 2 times before, which is as often as it may";
        let owners = format!("{often}; {}; the last error: no luck", set_aside(3));
        let (before, scheduled) = (rejected_before(None, false), rejected_before(None, true));
        for (error, parts) in [
            ("no luck", None),
            (often, None),
            (&format!("{often}; {}", set_aside(3)), None),
            (&before, None),
            (&scheduled, None),
            (&owners, Some((often, "no luck"))),
            (&rejected_before(Some("no: luck"), false), Some((&*before, "no: luck"))),
            (&rejected_before(Some("no: luck"), true), Some((&scheduled, "no: luck"))),
            (&rejected_before(Some(&owners), false), Some((&format!("{before}: {often}"), "no luck"))),
            (&format!("event 1 of 2: {owners}"), Some((&format!("event 1 of 2: {often}"), "no luck"))),
        ] {
            assert_eq!(kept_in(error), parts, "{error}");
        }
    }
}
