//! What is different has different names, and only that.

use claimant_testkit::fuzz::{any_text, hold, json};
use proptest::prelude::*;
use serde_json::Value;

use crate::decode::of_content;
use crate::key::{KEY_MAX_BYTES, RECORD_ID_PLAIN_MAX_BYTES, hex};
use crate::record::bounded;
use crate::{ConsumerName, Fingerprint, Key, RecordId};

fn sha256(text: &str) -> String {
    hex(&<sha2::Sha256 as sha2::Digest>::digest(text.as_bytes()))
}

/// Names and keys that come close to those of others.
fn pairs() -> impl Strategy<Value = (ConsumerName, Key)> {
    let name = prop_oneof!["[ab]{1,3}", "[a-zA-Z0-9_-]{1,64}", "[a]{62,64}"];
    let key = prop_oneof![
        "[ab#~]{1,4}",
        // As a hashed one looks.
        "[ab]".prop_map(|text| sha256(&text)),
        any_text(1, KEY_MAX_BYTES),
        "[k]{330,402}",
    ];
    (name, key).prop_map(|(name, key)| (ConsumerName::new(name).unwrap(), Key::new(key).unwrap()))
}

#[test]
fn record_ids() {
    let ids = |(name, key): &(ConsumerName, Key)| RecordId::both(name, key);
    hold("names of records", file!(), (pairs(), pairs(), 0..4_u8), |(a, other, kinship)| {
        let key = |text: String| Key::new(bounded(&text, KEY_MAX_BYTES)).unwrap();
        let b = match kinship {
            0 => other,
            1 => (a.0.clone(), other.1),
            // Posing as the hashed one; and with the separator elsewhere.
            2 => (a.0.clone(), key(sha256(a.1.as_str()))),
            _ => (other.0, key(format!("{}#{}", a.0, a.1.as_str()))),
        };
        for one in ids(&a) {
            assert!((3..=RECORD_ID_PLAIN_MAX_BYTES).contains(&one.as_str().len()));
            assert_eq!(ids(&b).contains(&one), a == b);
        }
        let short = a.0.as_str().len() + 1 + a.1.as_str().len() <= RECORD_ID_PLAIN_MAX_BYTES;
        let [plain, hashed] = ids(&a);
        assert_eq!(plain != hashed, short);
        assert!(hashed.as_str().len() == a.0.as_str().len() + 65);
    });
}

#[test]
fn fingerprints_of_json() {
    // Of hardly any values, so that two have the same ones in other places.
    let few = || {
        let leaf = prop_oneof![Just(Value::Null), "[ab]?".prop_map(Value::from)];
        leaf.prop_recursive(3, 6, 2, |inner| prop::collection::vec(inner, 0..3).prop_map(Value::from))
    };
    let pairs = prop_oneof![(json(), json()), (few(), few())];
    hold("fingerprints of JSON values", file!(), pairs, |(a, b)| {
        assert_eq!(Fingerprint::of_json(&a) == Fingerprint::of_json(&b), a == b);
        assert_ne!(Fingerprint::of_json(&a), Fingerprint::of_bytes(a.to_string().as_bytes()));
    });
}

/// Numbers as JSON has them, of few digits, many, and many zeros; and what each is: its digits and their exponent.
fn numbers() -> impl Strategy<Value = (String, (bool, String, i64))> {
    let whole = prop_oneof!["0", "[1-9][0-9]{0,3}", "[1-9][0-9]{12,22}", "10{12,20}[0-9]"];
    let fraction = prop_oneof!["", "[0-9]{1,3}", "[0-9]{12,20}", "0{5,18}[0-9]"];
    let exponent = prop::option::of(-420..420_i64);
    (any::<bool>(), whole, fraction, exponent).prop_map(|(negative, whole, fraction, exponent)| {
        let dot = if fraction.is_empty() { "" } else { "." };
        let power = exponent.map_or_else(String::new, |e| format!("e{e}"));
        let text = format!("{}{whole}{dot}{fraction}{power}", if negative { "-" } else { "" });
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0').to_owned();
        // OK because a number of these has a few dozen digits.
        let ends = (all.len() - all.trim_end_matches('0').len()) as i64 - fraction.len() as i64;
        let exponent = if digits.is_empty() { 0 } else { exponent.unwrap_or(0) + ends };
        (text, (negative, digits, exponent))
    })
}

#[test]
fn fingerprints_of_numbers() {
    hold("fingerprints of numbers", file!(), (numbers(), numbers()), |((a, is_a), (b, is_b))| {
        let [first, second] = [a, b].map(|n| of_content(format!("{{\"amount\":{n}}}").as_bytes()));
        assert!(is_a == is_b || first != second);
    });
}

/// Two numbers that differ in one digit.
#[test]
fn fingerprints_of_neighbours() {
    let place = prop::option::of(any::<prop::sample::Index>());
    let inputs = (numbers(), place, b'1'..=b'9');
    hold("fingerprints of neighbours", file!(), inputs, |((a, _), at, digit)| {
        let mut b = a.clone().into_bytes();
        let places: Vec<_> = (0..b.len()).filter(|n| (b'1'..=b'9').contains(&b[*n])).collect();
        if places.is_empty() {
            return;
        }
        let place = at.map_or(places[places.len() - 1], |at| places[at.index(places.len())]);
        b[place] = digit;
        let b = String::from_utf8(b).expect("digits were put in the place of digits");
        let [first, second] = [&a, &b].map(|n| of_content(format!("[{n}]").as_bytes()));
        assert_eq!(first == second, a == b, "{a} {b}");
    });
}
