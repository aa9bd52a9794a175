//! Fuzz targets: any item is a record, or an error that names what is wrong with it.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use claimant_core::{Record, StoreErrorKind};
use claimant_testkit::fuzz::{any_text, hold, records};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::item::{Item, record, values};
use crate::names::AttributeNames;

/// Attributes that a record need not have.
const OPTIONAL: [&str; 4] = ["completed_at", "result", "error", "note"];

/// All that a record has.
const ALL: [&str; 15] = [
    "id",
    "status",
    "owner",
    "fence",
    "lease_until",
    "attempts",
    "message_id",
    "fingerprint",
    "created_at",
    "updated_at",
    "completed_at",
    "expires_at",
    "result",
    "error",
    "note",
];

fn item(of: &Record) -> Item {
    let names = AttributeNames::default();
    values(of, &names).into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Values of every type, and of the types that records have, well and badly formed.
fn any_value() -> impl Strategy<Value = AttributeValue> {
    let blob = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(any::<u8>(), 32),
        prop::collection::vec(any::<u8>(), 37)
    ];
    let number = prop_oneof!["-?[0-9]{1,38}", "[0-9]{1,3}\\.[0-9]{1,3}", "1E[0-9]{1,2}", "\\PC{0,3}"];
    let leaf = prop_oneof![
        any_text(0, 130).prop_map(AttributeValue::S),
        select(["IN_PROGRESS", "COMPLETED", "FAILED"].as_slice()).prop_map(|s| AttributeValue::S(s.to_owned())),
        number.prop_map(AttributeValue::N),
        blob.prop_map(|bytes| AttributeValue::B(Blob::new(bytes))),
        any::<bool>().prop_map(AttributeValue::Bool),
        Just(AttributeValue::Null(true)),
        Just(AttributeValue::Ss(vec!["a".to_owned()])),
        Just(AttributeValue::Ns(vec!["1".to_owned()])),
        Just(AttributeValue::Bs(Vec::new())),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(AttributeValue::L),
            prop::collection::hash_map("[a-z]{0,4}", inner, 0..3).prop_map(AttributeValue::M),
        ]
    })
}

/// Foreign attributes, and the record's own id, change nothing.
#[test]
fn records_are_read_back() {
    let foreign = prop::collection::hash_map("id|[a-zA-Z#]{1,3}|x_[a-z_]{0,20}", any_value(), 0..4);
    hold("items, read back", file!(), (records(), foreign), |(wanted, foreign)| {
        let mut item = item(&wanted);
        for (name, value) in foreign {
            item.entry(name).or_insert(value);
        }
        assert_eq!(record(&item, &AttributeNames::default()).unwrap(), wanted);
    });
}

/// One attribute that is missing or another type's is named; with any other value the item is a record with it, or names it.
#[test]
fn one_damaged_attribute() {
    let inputs = (records(), any::<Index>(), prop::option::of(any_value()));
    hold("items, one attribute damaged", file!(), inputs, |(whole, at, value)| {
        let mut item = item(&whole);
        let mut names: Vec<_> = item.keys().cloned().collect();
        names.sort_unstable();
        let name = names.swap_remove(at.index(names.len()));
        let before = item.remove(&name).unwrap();
        let missing = value.is_none();
        let alike = value.as_ref().is_some_and(|v| std::mem::discriminant(v) == std::mem::discriminant(&before));
        item.extend(value.map(|value| (name.clone(), value)));
        match record(&item, &AttributeNames::default()) {
            Ok(read) if missing => assert!(OPTIONAL.contains(&name.as_str()) && read != whole, "{name}"),
            Ok(read) => {
                assert!(alike, "{name} of another type was read");
                // What was read is what stands there: numbers in whatever form.
                let mut again = self::item(&read);
                let (seen, stood) = (again.remove(&name).unwrap(), item.remove(&name).unwrap());
                assert_eq!(again, item);
                let number = |v: &AttributeValue| v.as_n().ok().map(|n| n.parse::<u64>().unwrap());
                assert!(seen == stood || (number(&seen).is_some() && number(&seen) == number(&stood)), "{name}");
            }
            Err(error) => {
                assert!(!(missing && OPTIONAL.contains(&name.as_str())), "{name} may be missing");
                assert_eq!(error.kind(), StoreErrorKind::Corrupt);
                assert!(error.to_string().starts_with(&format!("a record's attribute `{name}` is missing")), "{error}");
            }
        }
    });
}

/// Any item whatsoever.
#[test]
fn any_item() {
    let name = select(ALL.as_slice()).prop_map(str::to_owned);
    let items = prop::collection::hash_map(name, any_value(), 0..15);
    hold("items of any kind", file!(), items, |item: Item| {
        if let Err(error) = record(&item, &AttributeNames::default()) {
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
            assert!(error.to_string().is_ascii(), "it shows what the item holds: {error}");
        }
    });
}
