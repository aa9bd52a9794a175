//! What envelopes have in common: JSON, times, traces, attributes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claimant_core::decode::read_json;
use claimant_core::key::KEY_MAX_BYTES;
use claimant_core::{AttributeValue, Attributes, Rejection, Timestamp};
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::ATTRIBUTES_MAX;

/// Reads an envelope, which errors call by this word.
pub(crate) fn read<'a, T: Deserialize<'a>>(word: &str, content: &'a [u8]) -> Result<T, Rejection> {
    let text = std::str::from_utf8(content)
        .map_err(|e| Rejection::new(format!("the {word} is not UTF-8 (from byte {} on)", e.valid_up_to())))?;
    Ok(read_json(word, text)?)
}

/// Checks the id of what an envelope carries: each event in it can have a copy of it. An empty one, or a longer one, could be no key.
pub(crate) fn id(word: &str, id: String) -> Result<Option<String>, Rejection> {
    match id.len() {
        0 => Err(Rejection::new(format!("the {word} has an empty id"))),
        1..=KEY_MAX_BYTES => Ok(Some(id)),
        bytes => {
            Err(Rejection::new(format!("the {word} has an id of {bytes} bytes; at most {KEY_MAX_BYTES} are allowed")))
        }
    }
}

/// Returns the time that this text says (RFC 3339); `None` if it says none, or one before 1970.
pub(crate) fn time(text: Option<&str>) -> Option<Timestamp> {
    let time = OffsetDateTime::parse(text?, &Rfc3339).ok()?;
    u64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok().map(Timestamp::from_millis)
}

/// Returns the header that continues the trace of a W3C `traceparent`; `None` if it is not exactly of that form.
pub(crate) fn trace(traceparent: &str) -> Option<String> {
    let hex = |text: &str, digits| text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let [version, trace, parent, flags] = traceparent.split('-').collect::<Vec<_>>()[..] else { return None };
    // An id of zeros only is none.
    let is_id = |text: &str, digits| hex(text, digits) && text.bytes().any(|b| b != b'0');
    let well_formed = version == "00" && is_id(trace, 32) && is_id(parent, 16) && hex(flags, 2);
    // The last bit of the flags says whether it is sampled.
    let sampled = u8::from_str_radix(flags, 16).ok()? & 1;
    well_formed.then(|| format!("Root=1-{}-{};Parent={parent};Sampled={sampled}", &trace[..8], &trace[8..]))
}

/// The header of [`trace`], among attributes.
pub(crate) fn trace_of(attributes: &Attributes) -> Option<String> {
    attributes.text("traceparent").and_then(trace)
}

/// Returns Base64, decoded; `None` if it is none.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Collects an envelope's attributes. More than are allowed are counted and not kept.
pub(crate) fn attributes<'a>(
    word: &str,
    mut all: impl Iterator<Item = (&'a str, Result<AttributeValue, Rejection>)>,
) -> Result<Attributes, Rejection> {
    let mut attributes = Attributes::default();
    for (name, value) in all.by_ref().take(ATTRIBUTES_MAX) {
        attributes.set(name, value?);
    }
    match all.count() {
        0 => Ok(attributes),
        more => Err(Rejection::new(format!(
            "the {word} has {} attributes; at most {ATTRIBUTES_MAX} are allowed",
            ATTRIBUTES_MAX + more
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_or_left_out() {
        for (text, wanted) in [
            ("1970-01-01T00:00:01Z", Some(1_000)),
            ("2012-04-26T20:45:04.751Z", Some(1_335_473_104_751)),
            ("2012-04-26T22:45:04.751+02:00", Some(1_335_473_104_751)),
            ("1969-12-31T23:59:59Z", None),
            ("yesterday", None),
            ("2012-04-26", None),
        ] {
            assert_eq!(time(Some(text)).map(Timestamp::as_millis), wanted, "{text}");
        }
        assert_eq!(time(None), None);
    }

    #[test]
    fn a_trace_of_the_web_continues_as_one_of_ours() {
        let trace_id = "5759e988bd862e3fe1be46a994272793";
        let wanted = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=";
        for (traceparent, wanted) in [
            (format!("00-{trace_id}-53995c3f42cd8ad8-01"), Some(format!("{wanted}1"))),
            (format!("00-{trace_id}-53995c3f42cd8ad8-02"), Some(format!("{wanted}0"))),
            (format!("01-{trace_id}-53995c3f42cd8ad8-01"), None),
            (format!("00-{}-53995c3f42cd8ad8-01", trace_id.to_uppercase()), None),
            (format!("00-{trace_id}-53995c3f42cd8ad8-01-x"), None),
            (format!("00-{trace_id}-53995c3f42cd8ad-01"), None),
            (format!("00-{}-53995c3f42cd8ad8-é", trace_id), None),
            (format!("00-{}-53995c3f42cd8ad8-01", "0".repeat(32)), None),
            (format!("00-{trace_id}-{}-01", "0".repeat(16)), None),
            (String::new(), None),
        ] {
            assert_eq!(trace(&traceparent), wanted, "{traceparent}");
        }
    }
}
