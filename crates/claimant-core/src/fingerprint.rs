//! Fingerprints: whether two messages with one key carry the same payload.

use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A SHA-256 of the payload that identifies the work.
///
/// Two messages with the same key and different fingerprints are a conflict, never a duplicate.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of these very bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"b");
        hash.update(bytes);
        Self(hash.finalize().into())
    }

    /// The fingerprint of a JSON value: white space and the order of an object's fields do not count.
    #[must_use]
    pub fn of_json(value: &Value) -> Self {
        let mut hash = Sha256::new();
        hash_json(value, &mut hash);
        Self(hash.finalize().into())
    }

    /// The 32 bytes that a record holds.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The fingerprint that a record holds.
    #[must_use]
    pub const fn from_stored(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({}…)", crate::key::hex(&self.0[..4]))
    }
}

/// Whether each number of a JSON text is one that a `u64`, an `i64` or an `f64` tells from every other: else two
/// payloads that differ would have one fingerprint.
pub(crate) fn numbers_are_exact(json: &str) -> bool {
    let mut rest = json.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = match first {
            b'"' => after_string(tail),
            b'-' | b'0'..=b'9' => {
                let end = rest.iter().position(|b| !matches!(b, b'+' | b'-' | b'.' | b'0'..=b'9' | b'e' | b'E'));
                let (number, tail) = rest.split_at(end.unwrap_or(rest.len()));
                if !is_exact(number) {
                    return false;
                }
                tail
            }
            _ => tail,
        };
    }
    true
}

/// What follows the string whose opening quote was just passed.
fn after_string(mut rest: &[u8]) -> &[u8] {
    loop {
        rest = match rest {
            [] | [b'\\'] => return &[],
            [b'"', tail @ ..] => return tail,
            [b'\\', _, tail @ ..] | [_, tail @ ..] => tail,
        };
    }
}

/// Fifteen digits survive the way into an `f64` and back; with an exponent, a number can also become zero.
fn is_exact(number: &[u8]) -> bool {
    let text = std::str::from_utf8(number).unwrap_or_default();
    let digits = number.iter().filter(|b| b.is_ascii_digit()).count();
    text.parse::<u64>().is_ok() || text.parse::<i64>().is_ok() || (digits <= 15 && !text.contains(['e', 'E']))
}

/// Feeds a value to the hash so that different values give different input: each has its kind and its length.
///
/// Recursion is bounded: `serde_json` refuses text nested deeper than 128.
fn hash_json(value: &Value, hash: &mut Sha256) {
    let mut text = |kind: &[u8], s: &str| {
        hash.update(kind);
        hash.update((s.len() as u64).to_be_bytes()); // OK because usize is at most 64 bits wide.
        hash.update(s.as_bytes());
    };
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::String(s) => text(b"s", s),
        // Not by the number's own text, which a Cargo feature of serde_json can change.
        Value::Number(n) => match (n.as_u64(), n.as_i64()) {
            (Some(n), _) => text(b"#", &n.to_string()),
            (None, Some(n)) => text(b"#", &n.to_string()),
            (None, None) => text(b".", &n.as_f64().unwrap_or(f64::NAN).to_bits().to_string()),
        },
        Value::Array(items) => {
            hash.update(b"[");
            hash.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| hash_json(item, hash));
        }
        Value::Object(fields) => {
            // Sorted here, not by the map's own order, which a Cargo feature of serde_json can change.
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            hash.update(b"{");
            hash.update((names.len() as u64).to_be_bytes());
            for name in names {
                hash_json(&Value::String(name.clone()), hash);
                hash_json(&fields[name], hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_differs_exactly_where_the_values_do() {
        let of = |text: &str| Fingerprint::of_json(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"a":1,"b":[true,null]}"#), of(r#" { "b" : [ true , null ] , "a" : 1 } "#));
        let different = [
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":2}"#,
            r#"{"b":1}"#,
            r#"[]"#,
            r#"{}"#,
            r#""""#,
            "null",
            "0",
            "false",
            "true",
            r#"[["a"],"b"]"#,
            r#"[["a","b"]]"#,
            r#"["ab"]"#,
            r#"["a","b"]"#,
            "18446744073709551614",
            "18446744073709551615",
        ];
        for (i, a) in different.iter().enumerate() {
            for b in &different[i + 1..] {
                assert_ne!(of(a), of(b), "{a} {b}");
            }
        }
    }

    #[test]
    fn bytes_are_not_json() {
        assert_ne!(Fingerprint::of_bytes(b"null"), Fingerprint::of_json(&Value::Null));
        assert_ne!(Fingerprint::of_bytes(b"a"), Fingerprint::of_bytes(b"b"));
    }

    #[test]
    fn numbers_that_only_look_the_same_are_found() {
        let rows = [
            (r#"{"a":1,"b":[-2.50,0.1]}"#, true),
            (r#"{"a":18446744073709551615,"b":-9223372036854775808}"#, true),
            (r#"{"a":"1e400 \" 100000000000000000001"}"#, true),
            (r#"{"a":100000000000000000001}"#, false),
            (r#"{"a":0.10000000000000000001}"#, false),
            (r#"[1e-400]"#, false),
            ("", true),
        ];
        for (json, exact) in rows {
            assert_eq!(numbers_are_exact(json), exact, "{json}");
        }
    }
}
