//! The field by which a message is routed is that of the whole JSON, read in another way; what is wrong is said without the body.

use claimant_testkit::fuzz::{corpus, hold, json, spoilt};
use proptest::prelude::*;
use serde_json::Value;

use crate::message::Message;
use crate::routes::{Unreadable, read_field};

/// The longest that is said: a path of these tests, and a place.
const SAID_MAX_BYTES: usize = 200;

const PATHS: [&str; 6] = ["type", "a", "order_id", "detail.type", "a.b.c", ""];

fn steps(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

/// Returns what a path leads to in a value that was read as a whole; `Err` where that is no text.
fn expected(value: &Value, path: &[String]) -> Result<Option<String>, ()> {
    let found = path.iter().try_fold(value, |value, name| value.as_object().and_then(|object| object.get(name)));
    match found {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Bool(truth)) => Ok(Some(truth.to_string())),
        Some(Value::Number(number)) if !number.is_f64() => Ok(Some(number.to_string())),
        Some(_) => Err(()),
    }
}

/// Reads a field of any bytes: it returns, and says nothing of them.
fn check(content: &[u8], path: &[String]) -> Result<Option<String>, String> {
    let message = Message::new("m", "").expect("the id is one").unpacked(content).with_content_name("the content");
    read_field(&message, path).map_err(|unreadable| {
        let (Unreadable::NoValue(rejection) | Unreadable::Ambiguous(rejection)) = unreadable;
        let said = rejection.to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || " -_.,()`".contains(c);
        assert!(said.len() <= SAID_MAX_BYTES && said.chars().all(plain), "{said}");
        said
    })
}

#[test]
fn fields_of_bytes() {
    let mut seeds = corpus("corpus/bodies");
    seeds.extend(corpus("corpus/envelopes"));
    hold("fields of bodies, as bytes", file!(), spoilt(seeds), |bytes| {
        for path in PATHS.map(steps) {
            let found = check(&bytes.0, &path);
            // What is no JSON as a whole has no field, whatever it begins with.
            let Ok(whole) = serde_json::from_slice::<Value>(&bytes.0) else { continue };
            match found {
                Ok(found) => assert_eq!(Ok(found), expected(&whole, &path)),
                // `Value` keeps the last of two fields of one name.
                Err(said) => assert!(said.ends_with("is there twice") || expected(&whole, &path).is_err(), "{said}"),
            }
        }
    });
}

/// A JSON value, and a path that leads somewhere in it half of the time.
#[test]
fn fields_of_values() {
    let inner = prop::collection::btree_map("[a-c]|type", json(), 0..4);
    let object =
        prop::collection::btree_map("[a-c]|type|detail", prop_oneof![json(), inner.prop_map(Value::from_iter)], 0..4);
    let path = prop::collection::vec("[a-c]|type|detail", 1..4);
    hold("fields of values", file!(), (object, path), |(object, path)| {
        let value = Value::from_iter(object);
        let found = check(value.to_string().as_bytes(), &path);
        assert_eq!(found.map_err(|_| ()), expected(&value, &path), "{path:?}");
    });
}
