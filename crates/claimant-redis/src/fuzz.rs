//! Fuzz targets: any answer is a record, none, or an error that names what is wrong with it.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use claimant_core::{Record, StoreErrorKind};
use claimant_testkit::fuzz::{hold, records};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use redis::Value;

use crate::fields::{COMPLETED_AT, ERROR, NOTE, RESULT, record, values};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs(of: &Record) -> Pairs {
    values(of).0.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value)).collect()
}

/// As protocol 2 and as protocol 3 send it.
fn answers(pairs: &[(Vec<u8>, Vec<u8>)]) -> [Value; 2] {
    let bulk = |bytes: &Vec<u8>| Value::BulkString(bytes.clone());
    let map: Vec<_> = pairs.iter().map(|(name, value)| (bulk(name), bulk(value))).collect();
    let flat = map.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect();
    [Value::Array(flat), Value::Map(map)]
}

/// Bytes as some field has them, and others.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(any::<u8>(), 32),
        "[-+ ]?[0-9]{1,24}".prop_map(String::into_bytes),
        "IN_PROGRESS|COMPLETED|failed".prop_map(String::into_bytes),
        "\\PC{0,101}".prop_map(String::into_bytes),
    ]
}

/// Foreign fields change nothing, whatever they are called.
#[test]
fn records_are_read_back() {
    let name =
        prop_oneof!["[A-Z]{1,3}|x_[a-z]{0,9}".prop_map(String::into_bytes), prop::collection::vec(128..=255_u8, 1..4)];
    let foreign = prop::collection::hash_map(name, bytes(), 0..4);
    hold("hashes, read back", file!(), (records(), foreign), |(wanted, foreign)| {
        let all: Pairs = pairs(&wanted).into_iter().chain(foreign).collect();
        for answer in answers(&all) {
            assert_eq!(record(answer).unwrap().unwrap(), wanted);
        }
        let (set, removed) = values(&wanted);
        assert_eq!(set.len() + removed.len(), 14, "each field is set or removed");
    });
}

#[test]
fn one_damaged_field() {
    let inputs = (records(), any::<Index>(), prop::option::of(bytes()));
    hold("hashes, one field damaged", file!(), inputs, |(whole, at, value)| {
        let mut all = pairs(&whole);
        let at = at.index(all.len());
        let name = String::from_utf8(all[at].0.clone()).unwrap();
        let may_miss = [COMPLETED_AT, RESULT, ERROR, NOTE].contains(&name.as_str());
        match &value {
            None => drop(all.remove(at)),
            Some(value) => all[at].1.clone_from(value),
        }
        for answer in answers(&all) {
            match record(answer) {
                Ok(read) => {
                    // What was read is what stands there, but for a sign and leading zeros, which numbers may have.
                    let read = read.unwrap();
                    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(|t| t.parse::<u64>().ok());
                    let same = |a: &[u8], b: &[u8]| a == b || (number(a).is_some() && number(a) == number(b));
                    let again = pairs(&read);
                    assert!(value.is_some() || may_miss, "{name}");
                    assert_eq!(again.len(), all.len());
                    for (name, stood) in &all {
                        let (_, seen) = again.iter().find(|(seen, _)| seen == name).unwrap();
                        assert!(same(seen, stood), "{}", name.escape_ascii());
                    }
                }
                Err(error) => {
                    assert!(!(value.is_none() && may_miss), "{name} may be missing");
                    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
                    assert!(error.to_string().starts_with(&format!("a record's field `{name}` is missing")), "{error}");
                }
            }
        }
    });
}

/// Any answer whatsoever: never a panic, and `None` only for a hash that is empty.
#[test]
fn any_answer() {
    let leaf = prop_oneof![
        Just(Value::Nil),
        Just(Value::Okay),
        any::<i64>().prop_map(Value::Int),
        any::<bool>().prop_map(Value::Boolean),
        any::<f64>().prop_map(Value::Double),
        bytes().prop_map(Value::BulkString),
        "\\PC{0,9}".prop_map(Value::SimpleString),
        select(vec!["status", "owner", "fence", "attempts", "error"]).prop_map(|name| Value::BulkString(name.into())),
    ];
    let any = leaf.prop_recursive(2, 16, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Set),
            prop::collection::vec((inner.clone(), inner), 0..4).prop_map(Value::Map),
        ]
    });
    hold("answers of any kind", file!(), any, |answer| {
        let empty = match &answer {
            Value::Array(items) | Value::Set(items) => items.is_empty(),
            Value::Map(pairs) => pairs.is_empty(),
            other => *other == Value::Nil,
        };
        match record(answer) {
            Ok(read) => assert_eq!(read.is_none(), empty),
            Err(error) => assert!(error.kind() == StoreErrorKind::Corrupt && error.to_string().is_ascii(), "{error}"),
        }
    });
}
