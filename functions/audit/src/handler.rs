//! The audit: an event becomes one row.
//!
//! The row and the completion of the event's key commit together, so that an event has its row exactly once, however often and in
//! however many forms it comes.

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant::decode::{Decoder, Json};
use claimant::dynamodb::Transaction;
use claimant::envelope::S3Record;
use claimant::{Context, HandlerError, Message, Rejection, TransactionGuard, TransactionalHandler};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The longest type or source of an event, in bytes.
const TEXT_MAX_BYTES: usize = 256;

/// What is kept of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AuditEvent {
    pub(crate) event_id: String,
    kind: String,
    source: String,
}

/// The content of an event: what a service says, `event_id` and `type` and anything else, or what a bucket says of an object.
#[derive(Deserialize)]
struct Content {
    event_id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    s3: Option<IgnoredAny>,
}

/// Reads events of all forms. An event has the same id in each of them, so that the second one is a duplicate.
pub(crate) struct EventDecoder;

impl Decoder<AuditEvent> for EventDecoder {
    fn decode(&self, content: &[u8], message: &Message) -> Result<AuditEvent, Rejection> {
        let Content { event_id, kind, s3 } = Json.decode(content, message)?;
        let (event_id, kind) = match (event_id, s3) {
            (None, Some(_)) => {
                let object: S3Record = Json.decode(content, message)?;
                (id_of(&object), Some(object.event_name))
            }
            (event_id, _) => (event_id, kind),
        };
        let envelope = message.event();
        let missing = |what: &str| Rejection::new(format!("the event has no {what}"));
        let source = envelope.and_then(|event| event.source.as_deref()).or(message.source_arn());
        Ok(AuditEvent {
            event_id: event_id
                .ok_or_else(|| missing("event_id, and as an object neither version nor sequencer, or no time"))?,
            kind: kind.ok_or_else(|| missing("type"))?,
            source: source.unwrap_or("unknown").to_owned(),
        })
    }
}

/// The id of what happened to an object: one version is created, tagged and removed, and each of them is an event.
fn id_of(object: &S3Record) -> Option<String> {
    Some(format!("{} {}", object.event_name, object.id()?))
}

/// The table that rows are written to.
#[derive(Debug)]
pub(crate) struct Entries {
    table: String,
}

impl Entries {
    pub(crate) fn new(table: String) -> Self {
        Self { table }
    }
}

/// Keeps an event: says what is to be written. It is written once this has returned `Ok`, or not at all.
impl TransactionalHandler<AuditEvent, Transaction> for Entries {
    type Output = ();

    async fn handle(
        &self,
        event: AuditEvent,
        mut tx: TransactionGuard<Transaction>,
        _: Context,
    ) -> Result<(), HandlerError> {
        let fields = [("event_id", event.event_id), ("type", event.kind), ("source", event.source)];
        if let Some((name, _)) = fields.iter().skip(1).find(|(_, text)| !(1..=TEXT_MAX_BYTES).contains(&text.len())) {
            return Err(HandlerError::terminal(format!(
                "the event's {name} is empty, or longer than {TEXT_MAX_BYTES} bytes"
            )));
        }
        let row = fields.map(|(name, text)| (name.to_owned(), AttributeValue::S(text)));
        let put = Put::builder().table_name(&self.table).set_item(Some(row.into()));
        // The table keeps events for ever, the lock table only for its window: after that, the row is there already, and stays.
        tx.put(put.condition_expression("attribute_not_exists(event_id)").build()?)
            .or_terminal("the event has a row already");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use claimant::Envelope as _;
    use claimant::envelope::detect;
    use serde_json::{Value, json};

    use super::*;

    const QUEUE: &str = "arn:aws:sqs:us-east-1:123456789012:AuditQueue";

    fn read(body: &Value) -> Result<AuditEvent, Rejection> {
        let message = Message::new("m", body.to_string()).unwrap().with_source_arn(QUEUE);
        let opened = detect().open(message)?;
        EventDecoder.decode(opened[0].content(), &opened[0])
    }

    fn event(event_id: &str, kind: &str, source: &str) -> AuditEvent {
        let [event_id, kind, source] = [event_id, kind, source].map(str::to_owned);
        AuditEvent { event_id, kind, source }
    }

    #[test]
    fn an_event_is_the_same_in_every_form() {
        let plain = json!({ "event_id": "evt-1", "type": "order.paid", "more": [1] });
        let bus = json!({
            "version": "0", "id": "b", "detail-type": "paid", "source": "shop", "account": "1", "time": "2026-11-22T10:00:00Z",
            "region": "us-east-1", "resources": [], "detail": plain,
        });
        let topic = |message: &Value| {
            json!({ "Type": "Notification", "MessageId": "t", "TopicArn": "arn:topic", "Timestamp": "2026-11-22T10:00:00.000Z",
                "Message": message.to_string() })
        };
        let rows = [(plain.clone(), QUEUE), (topic(&plain), "arn:topic"), (bus.clone(), "shop"), (topic(&bus), "shop")];
        for (body, source) in rows {
            assert_eq!(read(&body), Ok(event("evt-1", "order.paid", source)), "{body}");
        }
    }

    #[test]
    fn an_objects_event_is_what_happened_to_which_version() {
        let record = |name: &str, version: Option<&str>, sequencer: Option<&str>, time: &str| {
            let object = json!({ "key": "a+b%2Fc", "versionId": version, "sequencer": sequencer });
            let s3 = json!({ "bucket": { "name": "invoices" }, "object": object });
            let record = json!({ "eventSource": "aws:s3", "eventName": name, "eventTime": time, "s3": s3 });
            json!({ "Records": [record] })
        };
        const NOON: &str = "2026-11-22T12:00:00.000Z";
        // One version is created, tagged, tagged again, restored and removed: five events.
        for (name, version, sequencer, time, id) in [
            ("ObjectCreated:Put", Some("v1"), Some("s1"), NOON, "ObjectCreated:Put invoices/a b/c@v1"),
            ("ObjectTagging:Put", Some("v1"), None, NOON, "ObjectTagging:Put invoices/a b/c@v1@1795348800000"),
            (
                "ObjectTagging:Put",
                Some("v1"),
                None,
                "2026-11-22T12:00:00.001Z",
                "ObjectTagging:Put invoices/a b/c@v1@1795348800001",
            ),
            (
                "ObjectRestore:Completed",
                Some("v1"),
                Some("s1"),
                NOON,
                "ObjectRestore:Completed invoices/a b/c@v1@1795348800000",
            ),
            ("ObjectRemoved:Delete", Some("v1"), Some("s2"), NOON, "ObjectRemoved:Delete invoices/a b/c@v1"),
            ("ObjectCreated:Put", None, Some("s1"), NOON, "ObjectCreated:Put invoices/a b/c@s1"),
        ] {
            assert_eq!(read(&record(name, version, sequencer, time)), Ok(event(id, name, "invoices")));
        }
        let no_place = record("ObjectTagging:Put", None, None, NOON);
        assert!(read(&no_place).unwrap_err().to_string().contains("neither version nor sequencer"));
    }

    #[test]
    fn what_is_no_event_is_rejected_by_what_it_lacks() {
        for (body, wanted) in [
            (json!({ "type": "order.paid" }), "no event_id"),
            (json!({ "event_id": "evt-1" }), "no type"),
            (json!({ "event_id": 7, "type": "order.paid" }), "event_id"),
            (json!([]), "wrong shape"),
        ] {
            let why = read(&body).unwrap_err().to_string();
            assert!(why.contains(wanted), "{why}");
        }
    }
}
