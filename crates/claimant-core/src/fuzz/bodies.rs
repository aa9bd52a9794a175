//! Any body is decoded or rejected, and nothing of it is said.

use std::collections::HashMap;

use claimant_testkit::fuzz::{Bytes, corpus, hold, spoilt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::decode::{decode_json, of_content};
use crate::key::KEY_MAX_BYTES;
use crate::{Consumer, ConsumerName, Context, HandlerError, MemoryStore, Message, RecordId};

/// The longest that is said of a body: a path of 200 bytes, the name of a field, a place.
const REJECTION_MAX_BYTES: usize = 400;

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only its shape matters")]
struct Order {
    order_id: String,
    items: Vec<Item>,
    currency: Option<Currency>,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only its shape matters")]
struct Item {
    sku: String,
    quantity: u32,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "only its shape matters")]
enum Currency {
    #[serde(rename = "EUR")]
    Euro,
    Other(String),
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(&bytes.0).into_owned()
}

/// Whether it is one; if not, what is said of it is short and has nothing of the body but names of fields.
fn decodes<T: DeserializeOwned>(body: &str) -> bool {
    let Err(rejection) = decode_json::<T>(body) else { return true };
    let said = rejection.to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_.,:*()[]`".contains(c);
    assert!(said.len() <= REJECTION_MAX_BYTES && said.chars().all(plain), "{said}");
    false
}

#[test]
fn decoding() {
    hold("bodies, decoded", file!(), spoilt(corpus("corpus/bodies")), |bytes| {
        let body = text(&bytes);
        assert_eq!(decodes::<Value>(&body), serde_json::from_str::<Value>(&body).is_ok());
        assert_eq!(decodes::<Order>(&body), serde_json::from_str::<Order>(&body).is_ok());
        decodes::<HashMap<String, Item>>(&body);
        decodes::<Vec<(Currency, Option<f64>)>>(&body);
    });
}

#[test]
fn identity() {
    async fn nothing(_: Order, _: Context) -> Result<(), HandlerError> {
        Ok(())
    }
    let consumer = || Consumer::new("fuzz", MemoryStore::new(), nothing).key(|order| &order.order_id);
    let (plain, hashed) = (consumer(), consumer().hashed_keys());
    let name = ConsumerName::new("fuzz").unwrap();
    hold("bodies, identified", file!(), spoilt(corpus("corpus/bodies")), |bytes| {
        let body = text(&bytes);
        let message = Message::new("m-1", body).unwrap();
        let order = serde_json::from_str::<Order>(message.body());
        let key = order.ok().map(|o| o.order_id).filter(|key| (1..=KEY_MAX_BYTES).contains(&key.len()));
        let (Some(key), Ok(shown), Ok(hidden)) = (
            &key,
            plain.definition.reader.read(&name, &message).map(|read| read.0),
            hashed.definition.reader.read(&name, &message).map(|read| read.0),
        ) else {
            assert!(key.is_none() && plain.definition.reader.read(&name, &message).is_err(), "{key:?}");
            assert!(hashed.definition.reader.read(&name, &message).is_err());
            return;
        };
        assert_eq!((shown.key.as_str(), hidden.key.as_str()), (key.as_str(), key.as_str()));
        assert_eq!(shown.record_id, RecordId::new(&name, &shown.key));
        assert_eq!(hidden.record_id, RecordId::hashed(&name, &shown.key));
        assert_eq!(
            (shown.fingerprint, hidden.fingerprint),
            (of_content(message.content()), of_content(message.content()))
        );
    });
}
