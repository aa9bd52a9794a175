//! The header that continues a producer's trace, and W3C's header that names its span: checked before they go anywhere.

use std::sync::OnceLock;

use crate::attributes::Attributes;

/// The attribute by which producers with OpenTelemetry send their trace.
pub const TRACEPARENT: &str = "traceparent";

/// The longest header that is parsed; those of tracing systems have about 100 bytes.
pub const HEADER_MAX_BYTES: usize = 256;

/// A span's place in its trace, as W3C Trace Context has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanIdentity {
    /// The trace; not all zeros.
    pub trace_id: [u8; 16],
    /// The span; not all zeros.
    pub span_id: [u8; 8],
    /// Whether it is recorded.
    pub sampled: bool,
}

/// What a message says of the trace that it was sent in.
#[derive(Clone, Default)]
pub(crate) struct SentIn {
    pub(crate) header: Option<String>,
    /// The header that continues the trace of its attributes, once it was asked for.
    of_attributes: OnceLock<Option<String>>,
}

impl SentIn {
    /// Returns the header that continues it: its own, or else that of these attributes, which are always the message's.
    pub(crate) fn get(&self, attributes: &Attributes) -> Option<&str> {
        let of_attributes = || self.of_attributes.get_or_init(|| of_attributes(attributes)).as_deref();
        self.header.as_deref().or_else(of_attributes)
    }

    /// Notes that the attributes are others now.
    pub(crate) fn forget_attributes(&mut self) {
        self.of_attributes = OnceLock::new();
    }
}

/// Returns the part of a trace header (`Root=…;Parent=…;Sampled=…`) that continues its trace: these three fields, in this order.
///
/// It comes from whoever sent the message and ends in logs and in other systems' headers, so what is not exactly of
/// the documented form is dropped: fields of other names, and the whole header where `Root` is missing or one of the
/// three is malformed.
#[must_use]
pub fn continued(header: &str) -> Option<String> {
    if header.len() > HEADER_MAX_BYTES {
        return None;
    }
    let root = field(header, "Root").filter(|root| is_root(root))?;
    let mut continued = format!("Root={root}");
    for (name, well_formed) in [("Parent", is_parent as fn(&str) -> bool), ("Sampled", is_sampled)] {
        match field(header, name) {
            None => {}
            Some(value) if well_formed(value) => continued.extend([";", name, "=", value]),
            Some(_) => return None,
        }
    }
    Some(continued)
}

fn field<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = header.split(';').filter_map(|field| field.split_once('='));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns whether this is a `Root`: a version, the seconds since the epoch, and 96 bits of chance.
fn is_root(root: &str) -> bool {
    match root.split('-').collect::<Vec<_>>()[..] {
        ["1", seconds, chance] => is_hex(seconds, 8) && is_hex(chance, 24),
        _ => false,
    }
}

fn is_parent(parent: &str) -> bool {
    is_hex(parent, 16)
}

fn is_sampled(sampled: &str) -> bool {
    matches!(sampled, "0" | "1" | "?")
}

/// Returns the span that a trace header names; `None` where it has no `Parent`, or nothing of it [continues](continued).
#[must_use]
pub fn of_header(header: &str) -> Option<SpanIdentity> {
    let continued = continued(header)?;
    let (_, trace) = field(&continued, "Root")?.split_once('-')?;
    span(&trace.replace('-', ""), field(&continued, "Parent")?, field(&continued, "Sampled") == Some("1"))
}

/// Returns the span that a W3C `traceparent` names; `None` where that is not well-formed.
#[must_use]
pub fn of_traceparent(header: &str) -> Option<SpanIdentity> {
    let mut fields = header.splitn(5, '-');
    let mut hex = |digits| {
        let is_hex = |text: &&str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        fields.next().filter(|text| text.len() == digits).filter(is_hex)
    };
    let version = hex(2).filter(|version| *version != "ff")?;
    let (trace, parent) = (hex(32)?, hex(16)?);
    // The last bit of the flags says whether it is sampled.
    let sampled = u8::from_str_radix(hex(2)?, 16).ok()? & 1 == 1;
    // A later version may have more fields.
    let is_whole = version != "00" || fields.next().is_none();
    span(trace, parent, sampled).filter(|_| is_whole)
}

/// Returns the span with these ids, as hexadecimal digits. An id of zeros only is none.
fn span(trace: &str, span: &str, sampled: bool) -> Option<SpanIdentity> {
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    Some(SpanIdentity { trace_id: trace.to_be_bytes(), span_id: span.to_be_bytes(), sampled })
}

/// Returns the header that continues the trace of the W3C `traceparent` among attributes; `None` if there is none that is well-formed.
#[must_use]
pub fn of_attributes(attributes: &Attributes) -> Option<String> {
    attributes.text(TRACEPARENT).and_then(of_traceparent).map(|span| header(&span))
}

/// Returns the header that continues the trace of a span.
#[must_use]
pub fn header(span: &SpanIdentity) -> String {
    let (trace, parent) = (u128::from_be_bytes(span.trace_id), u64::from_be_bytes(span.span_id));
    let (seconds, chance, sampled) = (trace >> 96, trace & (u128::MAX >> 32), u8::from(span.sampled));
    format!("Root=1-{seconds:08x}-{chance:024x};Parent={parent:016x};Sampled={sampled}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_formed_traceparent_continues_as_one_of_ours() {
        let (trace, span) = ("0759e988bd862e3f01be46a994272793", "03995c3f42cd8ad8");
        let zeros = "0".repeat(32);
        let sampled =
            |sampled: u8| Some(format!("Root=1-0759e988-bd862e3f01be46a994272793;Parent={span};Sampled={sampled}"));
        for (traceparent, wanted) in [
            (format!("00-{trace}-{span}-01"), sampled(1)),
            (format!("00-{trace}-{span}-02"), sampled(0)),
            (format!("01-{trace}-{span}-01"), sampled(1)),
            (format!("cc-{trace}-{span}-01-later-{zeros}"), sampled(1)),
            (format!("cc-{trace}-{span}-01later"), None),
            (format!("00-{trace}-{span}-01-later"), None),
            (format!("00-{trace}-{span}-01-"), None),
            (format!("00-{trace}-{span}-+1"), None),
            (format!("00-{trace}-{span}-é"), None),
            (format!("00-{trace}-{span}-1"), None),
            (format!("00-{trace}-{span}"), None),
            (format!("00-{trace}-{}-01", &span[1..]), None),
            (format!("00-{}-{span}-01", trace.to_uppercase()), None),
            (format!("00-{trace}-{}-01", span.to_uppercase()), None),
            (format!("00-{zeros}-{span}-01"), None),
            (format!("00-{trace}-{}-01", &zeros[16..]), None),
            (format!("+0-{trace}-{span}-01"), None),
            (format!("ff-{trace}-{span}-01"), None),
            (format!("FF-{trace}-{span}-01"), None),
            (format!("0g-{trace}-{span}-01"), None),
            (String::new(), None),
        ] {
            assert_eq!(of_traceparent(&traceparent).map(|span| header(&span)), wanted, "{traceparent}");
        }
    }

    #[test]
    fn only_the_documented_form_is_passed_on() {
        let root = "Root=1-5759e988-bd862e3fe1be46a994272793";
        let whole = format!("{root};Parent=53995c3f42cd8ad8;Sampled=1");
        for (header, wanted) in [
            (whole.clone(), Some(whole.as_str())),
            (format!("Sampled=1 ; Parent=53995c3f42cd8ad8; {root};Lineage=a:0;Self=x"), Some(whole.as_str())),
            (root.to_owned(), Some(root)),
            (format!("{root};note=\n\u{1b}[31m"), Some(root)),
            (format!("{root};Sampled=yes"), None),
            (format!("{root};Parent=53995c3f42cd8ad"), None),
            ("Root=1-5759e988-bd862e3fe1be46a99427279\u{e9}".to_owned(), None),
            ("Parent=53995c3f42cd8ad8".to_owned(), None),
            (format!("{root};x={}", "y".repeat(256)), None),
            (String::new(), None),
        ] {
            assert_eq!(continued(&header).as_deref(), wanted, "{header}");
        }
    }
}
