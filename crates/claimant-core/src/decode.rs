//! Decodes contents, and describes what is wrong with one that does not decode: where, never its content.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_path_to_error::Segment;

use crate::fingerprint::{self, Fingerprint};
use crate::forms;
#[doc(hidden)]
pub use crate::forms::Form;
use crate::message::Message;
use crate::record::bounded;
use crate::rejection::{Fault, Rejection};

/// The longest JSON path shown for a body of the wrong shape, in bytes.
const PATH_MAX_BYTES: usize = 200;

/// The longest field name shown in it, in bytes.
const FIELD_MAX_BYTES: usize = 40;

/// Decodes the content of messages to payloads `T`: for [`decoded_by`](crate::decoded_by).
///
/// A panic in it rejects the message alone.
pub trait Decoder<T>: Send + Sync + 'static {
    /// Returns the payload that `content` holds, which is the message's [`content`](Message::content). The message is there for
    /// what its attributes and its envelopes say.
    ///
    /// # Errors
    /// When the content does not decode: the message is rejected. The error says where it is wrong, and quotes nothing:
    /// [`Message::rejection`] makes it.
    fn decode(&self, content: &[u8], message: &Message) -> Result<T, Rejection>;

    /// Returns the fingerprint of content that this decodes, for consumers without a
    /// [rule of their own](crate::Consumer::fingerprint_of): of the content's bytes, unless said otherwise. Whatever it returns for
    /// a content it returns for ever: the records of a store hold it.
    fn fingerprint(&self, content: &[u8]) -> Fingerprint {
        Fingerprint::of_bytes(content)
    }
}

/// Decodes JSON: what [`Consumer::new`](crate::Consumer::new) does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

impl<T: DeserializeOwned> Decoder<T> for Json {
    fn decode(&self, content: &[u8], message: &Message) -> Result<T, Rejection> {
        read_content(content).map_err(|fault| message.rejection(fault))
    }

    /// Returns the fingerprint of the JSON value, whose white space and order of fields do not count; of the bytes, if the value has
    /// numbers that it would not distinguish from others.
    fn fingerprint(&self, content: &[u8]) -> Fingerprint {
        of_content(content)
    }
}

/// Takes the content as a text: UTF-8, of any length.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text;

impl Decoder<String> for Text {
    fn decode(&self, content: &[u8], message: &Message) -> Result<String, Rejection> {
        text(content).map(str::to_owned).map_err(|fault| message.rejection(fault))
    }
}

/// Takes the content as it is. A body is a text in UTF-8: other bytes are what an envelope holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bytes;

impl Decoder<Vec<u8>> for Bytes {
    fn decode(&self, content: &[u8], _: &Message) -> Result<Vec<u8>, Rejection> {
        Ok(content.to_vec())
    }
}

/// Returns content as a text.
///
/// # Errors
/// When it is not UTF-8. The error says from where on.
pub fn text(content: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(content).map_err(|e| Fault::new("is not UTF-8").at(format!("from byte {} on", e.valid_up_to())))
}

/// Returns the fingerprint of content: of its JSON value if that represents it exactly, else of its bytes.
pub(crate) fn of_content(content: &[u8]) -> Fingerprint {
    let text = std::str::from_utf8(content).ok().filter(|text| fingerprint::numbers_are_exact(text));
    text.and_then(Fingerprint::of_json_text).unwrap_or_else(|| Fingerprint::of_bytes(content))
}

/// Decodes a JSON body.
///
/// # Errors
/// When the body does not decode. The error says where it is wrong, and never quotes it.
pub fn decode_json<T: DeserializeOwned>(body: &str) -> Result<T, Rejection> {
    read_json(body).map_err(|fault| Rejection::new(format!("the body {fault}")))
}

/// Decodes content that is JSON. A pointer to a payload elsewhere is none of it, whatever type would take it: the fields of a struct are read from
/// arrays, too.
///
/// # Errors
/// When it does not decode. The error says where it is wrong, and never quotes it.
pub fn read_content<'a, T: Deserialize<'a>>(content: &'a [u8]) -> Result<T, Fault> {
    read_content_as(content, None)
}

/// As [`read_content`], of content that is to be this envelope, or a payload: for envelopes.
///
/// # Errors
/// When it does not decode. Where it is another envelope, the error says so.
#[doc(hidden)]
pub fn read_content_as<'a, T: Deserialize<'a>>(content: &'a [u8], wanted: Option<Form>) -> Result<T, Fault> {
    let text = text(content)?;
    if is_pointer(text) {
        return Err(Fault::new("is a pointer to a payload in S3: `.large_payloads` is missing, or comes too late"));
    }
    read(text)
        .map_err(|Misfit { fault, of_whole }| fault.being(of_whole.then(|| forms::what_it_is(text, wanted)).flatten()))
}

/// Returns the fault of content that is JSON, and not this envelope, with what it is instead: for envelopes.
#[doc(hidden)]
#[must_use]
pub fn not_the_envelope(fault: &'static str, content: &[u8], wanted: Form) -> Fault {
    Fault::new(fault).being(text(content).ok().and_then(|text| forms::what_it_is(text, Some(wanted))))
}

/// Decodes a JSON text.
///
/// # Errors
/// When it does not decode. The error says where it is wrong, and never quotes it.
pub fn read_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Fault> {
    read(text).map_err(|misfit| misfit.fault)
}

/// Why a JSON text does not decode.
struct Misfit {
    fault: Fault,
    /// Whether the shape is wrong, of the whole rather than of something in it.
    of_whole: bool,
}

impl From<Fault> for Misfit {
    fn from(fault: Fault) -> Self {
        Self { fault, of_whole: false }
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Misfit> {
    // Where it is wrong is looked for only if it is: to keep track of the path costs two allocations for each field.
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    // `serde_json` also calls much that is valid JSON and has another shape than `T` a fault of syntax.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        let invalid = || json_place(Fault::new("is not valid JSON"), &error);
        return Err(no_json(text.as_bytes()).unwrap_or_else(invalid).into());
    }
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|e| describe(text, e.inner(), e.path()))
}

/// Returns why this is not JSON, where that cannot be seen at the place of a fault.
pub(crate) fn no_json(content: &[u8]) -> Option<Fault> {
    match content {
        _ if content.trim_ascii().is_empty() => Some(Fault::new("is empty")),
        [0xef, 0xbb, 0xbf, ..] => Some(Fault::new("begins with a byte order mark, which JSON does not")),
        _ => None,
    }
}

/// What is wrong with JSON that is valid and that no type is read from, by the beginnings of `serde_json`'s texts.
const NOT_READ: [(&str, &str); 4] = [
    ("recursion limit exceeded", "is nested deeper than 127"),
    ("number out of range", "has a number that is out of range"),
    ("lone leading surrogate", "has a text with half a surrogate pair"),
    ("unexpected end of hex escape", "has a text with half a surrogate pair"),
];

/// Describes why valid JSON does not decode.
fn describe(text: &str, error: &serde_json::Error, path: &serde_path_to_error::Path) -> Misfit {
    let said = error.to_string();
    // What types say themselves may begin like that, too.
    if let Some((_, fault)) = NOT_READ.iter().find(|(start, _)| !error.is_data() && said.starts_with(start)) {
        return json_place(Fault::new(*fault), error).into();
    }
    let of_whole = path.iter().next().is_none();
    let is_text = of_whole && NO_TEXT.iter().any(|start| said.starts_with(start));
    if is_text && holds_json(text) {
        return Fault::new("is a text that holds JSON: it was encoded twice").into();
    }
    let fault = Fault::new(format!("has the wrong shape at JSON path {}", shape_fault(&said, path)));
    Misfit { fault: json_place(fault, error), of_whole }
}

/// The beginnings of serde's texts where it wants something else than a text, or another one.
const NO_TEXT: [&str; 2] = ["invalid type: string", "unknown variant `"];

/// Returns whether a JSON text holds another one, of an object or an array.
fn holds_json(text: &str) -> bool {
    let inner = serde_json::from_str::<String>(text).unwrap_or_default();
    inner.trim_ascii_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(&inner).is_ok()
}

/// How the class ends with which a pointer to a payload begins, in each version of the clients that write it.
const POINTER_CLASS_END: &str = "S3Pointer";

/// Returns whether it is an array of such a class and what it points to.
fn is_pointer(text: &str) -> bool {
    let first = text.trim_ascii_start().strip_prefix('[').and_then(|rest| rest.trim_ascii_start().strip_prefix('"'));
    let class = first.and_then(|rest| rest.split_once('"')).map_or("", |(class, _)| class);
    class.ends_with(POINTER_CLASS_END) && serde_json::from_str::<(IgnoredAny, IgnoredAny)>(text).is_ok()
}

/// Says where the fault is. serde does not know it where it has kept a value to look at it twice: then the line is 0.
pub(crate) fn json_place(fault: Fault, error: &serde_json::Error) -> Fault {
    match error.line() {
        0 => fault,
        // Behind the end of a line, `serde_json` has not begun to count.
        line => fault.at(format!("line {line} column {}", error.column().max(1))),
    }
}

/// What is wrong with a value that its type knows and serde tells, by the beginnings of its texts.
const KNOWN: [(&str, &str); 3] = [
    ("unknown variant `", "the value names none of the variants of its type"),
    ("unknown field `", "its type has no such field"),
    ("data did not match any variant of untagged enum", "the value has the form of none of the variants of its type"),
];

/// Returns where a value has another shape than its type, and how, from what serde says of it: for decoders.
///
/// serde's own texts quote the value, so they are not passed on; its "missing field" and "duplicate field" name only fields of the type.
#[doc(hidden)]
#[must_use]
pub fn shape_fault(error: &str, path: &serde_path_to_error::Path) -> String {
    let named = |start: &str, fault: &str| {
        let field = error.strip_prefix(start).and_then(|rest| rest.split('`').next());
        field.map(|field| format!("field `{field}` is {fault}"))
    };
    let known = || KNOWN.iter().find(|(start, _)| error.starts_with(start)).map(|(_, fault)| (*fault).to_owned());
    let fault = named("missing field `", "missing")
        .or_else(|| named("duplicate field `", "there twice"))
        .or_else(known)
        .unwrap_or_else(|| "the value has the wrong type or form".to_owned());
    format!("{}: {fault}", field_path(path))
}

/// Returns a JSON path of fields and indexes. A segment that is not a plain name is hidden: it can be a map's key, which is data.
fn field_path(path: &serde_path_to_error::Path) -> String {
    let is_plain = |name: &str| {
        name.len() <= FIELD_MAX_BYTES && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    let mut shown = String::new();
    for segment in path {
        let name = match segment {
            Segment::Seq { index } => {
                shown.push_str(&format!("[{index}]"));
                continue;
            }
            Segment::Map { key: name } | Segment::Enum { variant: name } if is_plain(name) => name,
            _ => "*",
        };
        let dot = if shown.is_empty() { "" } else { "." };
        shown.push_str(&format!("{dot}{name}"));
    }
    if shown.is_empty() { ".".to_owned() } else { bounded(&shown, PATH_MAX_BYTES).to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only its shape matters")]
    struct Order {
        order_id: String,
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only its shape matters")]
    struct Item {
        quantity: u32,
        #[serde(default, rename = "unit-price")]
        unit_price: u32,
    }

    /// What unpacks a text that holds JSON by itself.
    #[derive(Debug, Deserialize)]
    #[serde(try_from = "String")]
    #[allow(dead_code, reason = "only its shape matters")]
    struct Unpacked(Order);

    impl TryFrom<String> for Unpacked {
        type Error = serde_json::Error;

        fn try_from(text: String) -> Result<Self, Self::Error> {
            serde_json::from_str(&text).map(Self)
        }
    }

    #[test]
    fn a_pointer_is_no_payload_whatever_type_would_take_it() {
        let pointer =
            r#" [ "software.amazon.payloadoffloading.PayloadS3Pointer", {"s3BucketName":"secret","s3Key":"a"}]"#;
        let fault = read_content::<(String, serde_json::Value)>(pointer.as_bytes()).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "is a pointer to a payload in S3: `.large_payloads` is missing, or comes too late"
        );
        for content in
            [r#"["software.amazon.payloadoffloading.PayloadS3Pointer"]"#, r#"["S3Pointer",1,2]"#, r#"["a",{}]"#]
        {
            assert!(read_content::<serde_json::Value>(content.as_bytes()).is_ok(), "{content}");
        }
    }

    #[test]
    fn what_an_envelope_is_around_is_said_of_the_whole_alone() {
        let sns = r#"{"Type":"Notification","TopicArn":"secret","order_id":"secret"#;
        let said = |text: &str| read_content::<Order>(text.as_bytes()).map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            said(&format!(r#"{sns}"}}"#)),
            "has the wrong shape at JSON path .: field `items` is missing (line 1 column 63); it is a message of SNS: \
             `.envelope(envelope::Sns)` is missing or comes too late, or raw message delivery is off"
        );
        for text in [format!(r#"{sns}","items":[7]}}"#), format!(r#"{sns}","items":"#)] {
            assert!(!said(&text).contains("SNS"), "{}", said(&text));
        }
        let message = Message::new("m", format!(r#"{sns}"}}"#)).unwrap();
        let rejection = Decoder::<Order>::decode(&Json, message.content(), &message).unwrap_err().to_string();
        assert!(rejection.starts_with("the body has the wrong shape") && rejection.ends_with("is off"), "{rejection}");
    }

    #[test]
    fn a_bad_body_is_described_by_place_and_never_quoted() {
        let deep = format!(r#"{{"order_id":"secret","items":[],"more":{}"#, "[".repeat(10_000));
        let cases = [
            ("secret", "the body is not valid JSON (line 1 column 1)"),
            ("", "the body is empty"),
            ("\u{feff}{}", "the body begins with a byte order mark, which JSON does not"),
            ("{\n", "not valid JSON (line 2 column 1)"),
            (deep.as_str(), "not valid JSON"),
            (r#"{"order_id":"secret","items":[{"quantity":1e400}]}"#, "has a number that is out of range"),
            (r#"{"order_id":"secret\ud83d"}"#, "has a text with half a surrogate pair (line 1 column"),
            (r#"{"order_id":"secret\ud83d\u0041"}"#, "half a surrogate pair"),
            (r#"{"order_id":"secret\udc00"}"#, "half a surrogate pair"),
            (r#"{"order_id":"secret\ud8"}"#, "not valid JSON"),
            (r#"{"order_id":"secret\ud83d"#, "not valid JSON"),
            (r#"{"order_id":"secret","items":[]} secret"#, "not valid JSON"),
            (r#"{"order_id":"secret","items":[{"quantity":"secret"}]}"#, "at JSON path items[0].quantity"),
            (r#"{"order_id":["secret"],"items":[]}"#, "at JSON path order_id:"),
            (
                r#"{"order_id":"secret","items":[{"quantity":1,"unit-price":"secret"}]}"#,
                "at JSON path items[0].unit-price:",
            ),
            (r#"{"order_id":"secret"}"#, "field `items` is missing"),
            (r#"{"order_id":"secret","order_id":"secret"}"#, "field `order_id` is there twice"),
            (r#"["secret"]"#, "wrong shape"),
            (r#"["secret",{"s3BucketName":"secret"}]"#, "at JSON path [1]: "),
            (r#" "{\"order_id\":\"secret\"}""#, "the body is a text that holds JSON: it was encoded twice"),
            (r#""[\"secret\"]""#, "encoded twice"),
            (r#""\"secret\"""#, "wrong shape at JSON path .: the value has the wrong type or form"),
            (r#""{secret""#, "wrong shape at JSON path .:"),
            ("\u{0}secret", "not valid JSON"),
        ];
        for (body, wanted) in cases {
            let rejection = decode_json::<Order>(body).unwrap_err().to_string();
            assert!(rejection.contains(wanted), "{rejection}");
            assert!(!rejection.contains("secret"), "{rejection}");
        }
        let nested = |depth| decode_json::<serde_json::Value>(&("[".repeat(depth) + &"]".repeat(depth)));
        assert!(nested(127).is_ok());
        let rejection = nested(128).unwrap_err().to_string();
        assert!(rejection.starts_with("the body is nested deeper than 127 (line 1 column "), "{rejection}");
        assert!(decode_json::<Order>(r#"{"order_id":"a","items":[{"quantity":1}],"more":0}"#).is_ok());
        let rejection = decode_json::<Unpacked>(r#""{\"quantity\":\"secret\"}""#).unwrap_err().to_string();
        assert!(
            rejection.starts_with("the body has the wrong shape at JSON path .:"),
            "what unpacks a text itself: {rejection}"
        );
        let rejection = decode_json::<HashMap<String, u32>>(r#"{"secret@example.com":"x"}"#).unwrap_err().to_string();
        assert!(rejection.contains("JSON path *:") && !rejection.contains("secret"), "{rejection}");
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[allow(dead_code, reason = "only its shape matters")]
    enum Status {
        Paid(u32),
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only its shape matters")]
    enum Value {
        Status(Status),
        Point(f64, f64),
        Pair([u8; 2]),
        Totals(HashMap<u64, u32>),
        Wei(u128),
        Strict(Strict),
        Tagged(Tagged),
        Untagged(Untagged),
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only its shape matters")]
    struct Strict {
        #[serde(rename = "@größe")]
        size: u32,
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "type")]
    #[allow(dead_code, reason = "only its shape matters")]
    enum Tagged {
        Placed { lines: Vec<u32> },
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code, reason = "only its shape matters")]
    enum Untagged {
        Number(u32),
    }

    #[test]
    fn valid_json_of_another_shape_is_not_called_invalid() {
        for (body, wanted) in [
            (r#"{"Status":5}"#, "wrong shape at JSON path Status:"),
            (r#"{"Status":null}"#, "wrong shape at JSON path Status:"),
            (r#"{"Status":{"paid":1,"secret":1}}"#, "wrong shape at JSON path Status:"),
            (r#"{"Point":[1,2,3]}"#, "wrong shape at JSON path Point:"),
            (r#"{"Pair":[1,2,3]}"#, "wrong shape at JSON path Pair:"),
            (r#"{"Totals":{"secret":2}}"#, "wrong shape at JSON path Totals"),
            (r#"{"Totals":{"12secret":2}}"#, "wrong shape at JSON path Totals"),
            (r#"{"Wei":1.5}"#, "wrong shape at JSON path"),
            (r#"{"Wei":-1}"#, "has a number that is out of range (line 1 column"),
            (r#"{"Status":5"#, "not valid JSON (line 1 column 11)"),
            (
                r#"{"Strict":{"more":"secret"}}"#,
                "at JSON path Strict.more: its type has no such field (line 1 column 17)",
            ),
            (r#"{"Strict":{}}"#, "at JSON path Strict: field `@größe` is missing"),
            (r#"{"Strict":{"@größe":1,"@größe":2}}"#, "at JSON path Strict: field `@größe` is there twice"),
            (r#"{"Tagged":{"type":"secret"}}"#, "at JSON path Tagged.type: the value names none of the variants"),
            (r#"{"Tagged":{"type":"Placed","lines":["secret"]}}"#, "Tagged: the value has the wrong type or form"),
            (r#"{"Tagged":{"type":"Placed"}}"#, "at JSON path Tagged: field `lines` is missing"),
            (r#"{"Untagged":"secret"}"#, "at JSON path Untagged: the value has the form of none of the variants"),
        ] {
            let rejection = decode_json::<Value>(body).unwrap_err().to_string();
            assert!(rejection.contains(wanted) && !rejection.contains("secret"), "{body}: {rejection}");
            assert!(!rejection.contains("line 0") && !rejection.contains("column 0"), "{body}: {rejection}");
        }
    }
}
