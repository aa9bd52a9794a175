//! CloudEvents: the JSON format, structured mode.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use claimant_core::decode::{Form, not_the_envelope};
use claimant_core::{AttributeValue, Envelope, Event, Fault, Message, Rejection, trace};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::values;

const WORD: &str = "the CloudEvents envelope";

/// What the format itself defines; all other members are extensions.
const DEFINED: [&str; 9] =
    ["specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data"];

/// What errors call it.
const DATA_NAME: &str = "the `data` of the CloudEvents envelope";

/// The attribute that a message has in binary mode, whose body is the `data` alone, as SDKs name it for HTTP.
const BINARY_MODE: &str = "ce-specversion";

/// What `data` is instead, where it is binary.
const DATA_BASE64: &str = "data_base64";

/// The envelope of CloudEvents 1.0 in JSON, structured mode: its `data` is what is decoded (`null` if it has none), or what
/// `data_base64` holds; the text itself where `data` is a text and `datacontenttype` is not JSON.
///
/// The event's id is `source` and `id` with a space between, which together are the same each time that a producer sends it. Extensions
/// that are texts, numbers or booleans are its attributes; `traceparent` continues its trace.
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant_events as envelope;
/// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// # #[derive(serde::Deserialize)]
/// # struct Order { order_id: String }
/// # async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> { Ok(()) }
/// // Without a key rule, `source` and `id` are the key.
/// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm).envelope(envelope::CloudEvents);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CloudEvents;

/// The members of the envelope that a message's content is.
struct Members<'a> {
    message: &'a Message,
    all: Once<'a>,
}

/// The members of an object that has none of them twice: which of two counts depends on who reads it, and the key is made of them.
struct Once<'a>(BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Once<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OnceVisitor)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Once<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Once<'de>, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            match all.entry(name) {
                Entry::Vacant(place) => place.insert(value),
                // The name of an extension is data.
                Entry::Occupied(twice) => {
                    let name = if is_extension(twice.key()) { "*" } else { twice.key() };
                    return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
                }
            };
        }
        Ok(Once(all))
    }
}

impl<'a> Members<'a> {
    fn of(message: &'a Message) -> Result<Self, Rejection> {
        Ok(Self { message, all: values::read(message, WORD, Form::CloudEvents)? })
    }

    fn rejection(&self, fault: impl Into<Fault>) -> Rejection {
        self.message.rejection_as(WORD, fault)
    }

    /// Returns a member as text; `None` if it is not there, or null.
    fn text(&self, name: &str) -> Result<Option<String>, Rejection> {
        self.read(name).map(Option::flatten)
    }

    fn required(&self, name: &str) -> Result<String, Rejection> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| self.rejection(format!("has no `{name}`")))
    }

    fn read<T: Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, Rejection> {
        let Some(raw) = self.all.0.get(name) else { return Ok(None) };
        values::read_part(self.message, &format!("the `{name}` of {WORD}"), raw).map(Some)
    }

    /// Returns the message with what the envelope holds, whose event this is.
    fn opened(&self, event: Event) -> Result<Message, Rejection> {
        let kind = self.text("datacontenttype")?;
        let opened = |content: Vec<u8>| self.message.clone().opened(content, event);
        Ok(match (self.all.0.get("data"), self.text(DATA_BASE64)?) {
            (Some(_), Some(_)) => return Err(self.rejection(format!("has both `data` and `{DATA_BASE64}`"))),
            (None, Some(encoded)) => {
                let no_base64 = || self.rejection(format!("has a `{DATA_BASE64}` that is not Base64"));
                opened(values::base64(&encoded).ok_or_else(no_base64)?)
                    .with_content_name("the decoded `data_base64` of the CloudEvents envelope")
            }
            (Some(data), None) if data.get().starts_with('"') && !kind.as_deref().is_none_or(is_json) => {
                opened(self.required_text("data")?.into_bytes()).with_content_name(DATA_NAME)
            }
            (Some(data), None) => opened(data.get().as_bytes().to_vec()).with_part_name(DATA_NAME),
            (None, None) => opened(b"null".to_vec()).with_part_name(DATA_NAME),
        })
    }

    fn required_text(&self, name: &str) -> Result<String, Rejection> {
        Ok(self.read(name)?.unwrap_or_default())
    }
}

/// Returns why a message holds no CloudEvent in structured mode, where it holds one, or several, in another way.
fn not_structured(message: &Message) -> Option<Rejection> {
    let first = message.content().trim_ascii_start().strip_prefix(b"[");
    let fault = if message.attribute(BINARY_MODE).is_some() {
        "is in binary mode: send the event in structured mode, which is one JSON object"
    } else if first.is_some_and(|first| first.trim_ascii_start().starts_with(b"{")) {
        "is a batch: send each event in a message of its own"
    } else {
        return None;
    };
    Some(message.rejection_as(WORD, fault))
}

/// Returns whether a media type is JSON.
fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.ends_with("/json") || kind.ends_with("+json")
}

fn is_extension(name: &str) -> bool {
    !DEFINED.contains(&name) && name != DATA_BASE64
}

/// Returns an extension as an attribute; `None` if it is of no type that extensions have. Lists and objects are not read: a tree of them
/// can take a hundred times their size.
fn extension(raw: &RawValue) -> Option<AttributeValue> {
    let json = raw.get();
    Some(match json.as_bytes().first()? {
        b'{' | b'[' | b'n' => return None,
        b't' | b'f' => AttributeValue::text(json),
        b'"' => AttributeValue::text(serde_json::from_str::<String>(json).ok()?),
        _ => AttributeValue::number(json),
    })
}

impl Envelope for CloudEvents {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let no_version = || not_the_envelope("has no `specversion`", message.content(), Form::CloudEvents);
        let read = Members::of(&message).and_then(|members| {
            let version = members.text("specversion")?.filter(|version| !version.is_empty());
            Ok((version.ok_or_else(|| members.rejection(no_version()))?, members))
        });
        let (version, members) = read.map_err(|rejection| not_structured(&message).unwrap_or(rejection))?;
        if version != "1.0" {
            return Err(members.rejection("has a `specversion` that is not 1.0"));
        }
        let (id, source) = (members.required("id")?, members.required("source")?);
        // The key is both with a space between: two events would be one.
        if source.contains(' ') {
            return Err(members.rejection("has a `source` that contains a space, which a URI reference does not"));
        }
        let extensions = members.all.0.iter().filter(|(name, _)| is_extension(name));
        let extensions = extensions.filter_map(|(name, raw)| Some((name.as_str(), Ok(extension(raw)?))));
        let mut event = Event::default();
        event.attributes = values::attributes(&message, WORD, extensions)?;
        event.trace = trace::of_attributes(&event.attributes);
        event.id = values::id(&message, WORD, format!("{source} {id}"))?;
        event.source = Some(source);
        event.kind = Some(members.required("type")?);
        event.subject = members.text("subject")?;
        event.time = values::time(members.text("time")?.as_deref());
        Ok(vec![members.opened(event)?])
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    /// As in the specification.
    fn cloud_event() -> Value {
        json!({
            "specversion": "1.0",
            "type": "com.example.someevent",
            "source": "/mycontext",
            "subject": null,
            "id": "C234-1234-1234",
            "time": "2018-04-05T17:31:00Z",
            "comexampleextension1": "value",
            "comexampleothervalue": 5,
            "comexampleflag": true,
            "comexamplelist": ["value", {}],
            "comexampleobject": { "comexampleextension1": 1 },
            "traceparent": "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-00",
            "data": { "order_id": "ord-1" },
        })
    }

    fn with(changes: Value) -> Value {
        let mut body = cloud_event();
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => drop(body.as_object_mut().unwrap().remove(name)),
                value => body[name] = value.clone(),
            }
        }
        body
    }

    fn open(body: &Value) -> Result<Message, Rejection> {
        let mut opened = CloudEvents.open(Message::new("m", body.to_string()).unwrap())?;
        assert_eq!(opened.len(), 1);
        Ok(opened.remove(0))
    }

    #[test]
    fn the_data_is_what_is_decoded() {
        let message = open(&cloud_event()).unwrap();
        assert_eq!(message.content(), br#"{"order_id":"ord-1"}"#);
        let event = message.event().unwrap();
        assert_eq!(
            (event.id.as_deref(), event.source.as_deref()),
            (Some("/mycontext C234-1234-1234"), Some("/mycontext"))
        );
        assert_eq!((event.kind.as_deref(), event.subject.as_deref()), (Some("com.example.someevent"), None));
        assert_eq!(event.time, Some(Timestamp::from_millis(1_522_949_460_000)));
        assert_eq!(event.attributes.text("comexampleextension1"), Some("value"));
        assert_eq!(event.attributes.number("comexampleothervalue"), Some(5));
        assert_eq!(event.attributes.text("comexampleflag"), Some("true"));
        assert!(["comexamplelist", "comexampleobject"].iter().all(|name| event.attributes.get(name).is_none()));
        assert!(message.trace().unwrap().ends_with("Sampled=0"));
    }

    #[test]
    fn numbers_stay_as_they_were_sent() {
        for sent in ["100000000000000000001", "0.12345678901234567891", "1.10", "-0", "1e400"] {
            let body = cloud_event().to_string().replace(r#""comexampleothervalue":5"#, &format!(r#""x":{sent}"#));
            let opened = CloudEvents.open(Message::new("m", body).unwrap()).unwrap();
            assert_eq!(opened[0].attribute("x").and_then(AttributeValue::as_sent), Some(sent));
        }
    }

    #[test]
    fn data_of_every_form_is_taken() {
        for (changes, wanted) in [
            (json!({ "data": null }), &b"null"[..]),
            (json!({ "data": "text" }), b"\"text\""),
            (json!({ "data": "text", "datacontenttype": "application/vnd.x+JSON; charset=utf-8" }), b"\"text\""),
            (json!({ "data": "<much wow=\"xml\"/>", "datacontenttype": "application/xml" }), b"<much wow=\"xml\"/>"),
            (json!({ "data": [1], "datacontenttype": "text/plain" }), b"[1]"),
            (json!({ "data": null, "data_base64": "AQI=" }), &[1, 2]),
        ] {
            assert_eq!(open(&with(changes.clone())).unwrap().content(), wanted, "{changes}");
        }
    }

    /// Its attributes are the message's, and its body can be anything.
    #[test]
    fn one_in_binary_mode_is_called_so() {
        let sent = |body: &str| {
            let version = AttributeValue::text("1.0");
            CloudEvents.open(Message::new("m", body).unwrap().with_attribute("ce-specversion", version))
        };
        for body in [r#"{"order_id":"secret"}"#, "secret", "[{}]"] {
            let rejection = sent(body).unwrap_err().to_string();
            assert!(rejection.starts_with("the CloudEvents envelope is in binary mode: "), "{rejection}");
            assert!(!rejection.contains("secret"), "{rejection}");
        }
        assert!(sent(&cloud_event().to_string()).is_ok(), "the body says it all");
        let wrong = sent(&with(json!({ "id": "" })).to_string()).unwrap_err().to_string();
        assert!(wrong.contains("has no `id`"), "{wrong}");
    }

    #[test]
    fn one_that_lies_is_rejected_without_being_quoted() {
        for (changes, wanted) in [
            (json!({ "specversion": "0.3" }), "not 1.0"),
            (json!({ "specversion": null }), "no `specversion`"),
            (json!({ "id": "" }), "no `id`"),
            (json!({ "id": "secret".repeat(340) }), "an id of 2051 bytes; at most 2048"),
            (json!({ "source": null }), "no `source`"),
            (json!({ "source": "secret shop" }), "the CloudEvents envelope has a `source` that contains a space"),
            (json!({ "type": { "secret": 1 } }), "the `type` of the CloudEvents envelope has the wrong shape"),
            (json!({ "data_base64": "AQI=" }), "both `data` and `data_base64`"),
            (
                json!({ "data": null, "data_base64": "secret!" }),
                "the CloudEvents envelope has a `data_base64` that is not Base64",
            ),
        ] {
            let rejection = open(&with(changes)).unwrap_err().to_string();
            assert!(rejection.contains(wanted) && !rejection.contains("secret"), "{rejection}");
        }
        for (name, shown) in [
            ("id", "id"),
            ("datacontenttype", "datacontenttype"),
            ("data_base64", "data_base64"),
            ("secret", "*"),
            ("secret`@", "*"),
        ] {
            let twice =
                cloud_event().to_string().replacen('{', &format!(r#"{{"{name}":"secret","{name}":"secret","#), 1);
            let rejection = CloudEvents.open(Message::new("m", twice).unwrap()).unwrap_err().to_string();
            assert!(rejection.contains(&format!("field `{shown}` is there twice")), "{rejection}");
            assert!(!rejection.contains("secret"), "{rejection}");
        }
        let batch = open(&json!([cloud_event()])).unwrap_err().to_string();
        assert_eq!(batch, "the CloudEvents envelope is a batch: send each event in a message of its own");
        let by_index = open(&json!(["1.0", "secret"])).unwrap_err().to_string();
        assert!(by_index.contains("the CloudEvents envelope has the wrong shape at JSON path .:"), "{by_index}");
        let many: serde_json::Map<_, _> = (0..150).map(|n| (format!("x{n}"), json!("secret"))).collect();
        let rejection = open(&with(Value::Object(many))).unwrap_err().to_string();
        assert!(rejection.contains(" 154 attributes; at most 100"), "{rejection}");
    }
}
