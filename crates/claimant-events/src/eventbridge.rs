//! EventBridge: an event of a bus, whose `detail` is what was put.

use claimant_core::decode::Form;
use claimant_core::{Envelope, Event, Message, Rejection};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::values::{self, Object};

const WORD: &str = "the EventBridge envelope";

/// The envelope of EventBridge: its `detail` is what is decoded, as it was put.
///
/// The event has `detail-type` as its kind, `source`, `time`, and EventBridge's `id`: the same each time that EventBridge delivers it,
/// another one if the producer puts it again. A key that also holds then comes from `detail`. The bus's other fields are in the
/// message's [`body`](Message::body).
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant_events as envelope;
/// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// # #[derive(serde::Deserialize)]
/// # struct Order { order_id: String }
/// # async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> { Ok(()) }
/// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm)
///     .envelope(envelope::EventBridge)
///     .key(|order| &order.order_id);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct EventBridge;

#[derive(Deserialize)]
struct Put<'a> {
    id: String,
    #[serde(rename = "detail-type")]
    detail_type: String,
    source: String,
    #[serde(default)]
    time: Option<String>,
    #[serde(borrow)]
    detail: &'a RawValue,
}

impl Envelope for EventBridge {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let Object(put): Object<Put<'_>> = values::read(&message, WORD, Form::EventBridge)?;
        let mut event = Event::default();
        event.time = values::time(put.time.as_deref());
        event.id = values::id(&message, WORD, put.id)?;
        (event.kind, event.source) = (Some(put.detail_type), Some(put.source));
        let detail = put.detail.get().to_owned();
        Ok(vec![message.opened(detail, event).with_part_name("the `detail` of the EventBridge envelope")])
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn put() -> Value {
        json!({
            "version": "0",
            "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
            "detail-type": "OrderPaid",
            "source": "shop.orders",
            "account": "111122223333",
            "time": "2017-12-22T18:43:48Z",
            "region": "us-west-1",
            "resources": [],
            "detail": { "order_id": "ord-1", "total": 12345678901234567890_u64 },
        })
    }

    fn open(body: &Value) -> Result<Message, Rejection> {
        let mut opened = EventBridge.open(Message::new("m", body.to_string()).unwrap())?;
        assert_eq!(opened.len(), 1);
        Ok(opened.remove(0))
    }

    #[test]
    fn the_detail_is_what_is_decoded_as_it_was_put() {
        let message = open(&put()).unwrap();
        assert_eq!(message.content(), br#"{"order_id":"ord-1","total":12345678901234567890}"#);
        let event = message.event().unwrap();
        assert_eq!((event.kind.as_deref(), event.source.as_deref()), (Some("OrderPaid"), Some("shop.orders")));
        assert_eq!(event.id.as_deref(), Some("6a7e8feb-b491-4cf7-a9f1-bf3703467718"));
        assert_eq!(event.time, Some(Timestamp::from_millis(1_513_968_228_000)));
    }

    #[test]
    fn one_that_lies_is_rejected_without_being_quoted() {
        for (field, value, wanted) in [
            ("detail", None, "field `detail` is missing"),
            ("id", None, "field `id` is missing"),
            ("id", Some(json!("")), "an empty id"),
            ("id", Some(json!("secret".repeat(342))), "an id of 2052 bytes; at most 2048"),
            ("detail-type", Some(json!(["secret"])), "at JSON path detail-type"),
            ("source", Some(json!({ "secret": 1 })), "at JSON path source"),
        ] {
            let mut body = put();
            body.as_object_mut().unwrap().remove(field);
            if let Some(value) = value {
                body[field] = value;
            }
            let rejection = open(&body).unwrap_err().to_string();
            assert!(rejection.contains(wanted) && !rejection.contains("secret"), "{rejection}");
        }
        for body in [json!("secret"), json!(["id", "secret", "shop", null, { "order_id": "ord-1" }])] {
            let rejection = open(&body).unwrap_err().to_string();
            assert!(rejection.contains("the EventBridge envelope has the wrong shape at JSON path .:"), "{rejection}");
        }
    }
}
