//! Fingerprints: whether two messages with one key carry the same payload.

use std::fmt;

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

use crate::json::{JsonText, Place, after_scalar, after_string};
use crate::key::InvalidValue;

/// The length of a SHA-256, in bytes; a fingerprint of the first form and of the whole body is stored as that alone.
const DIGEST_BYTES: usize = 32;

/// The most bytes that a stored fingerprint has: the hash, its form, and the version of the consumer's rule.
pub const FINGERPRINT_MAX_BYTES: usize = DIGEST_BYTES + 1 + 4;

/// How values are fed to the hash. Any change to what the golden tests below pin needs a new form, with a new number: records of
/// the form before are then not compared, instead of all being conflicts.
const FORM: u8 = 1;

/// A SHA-256 of the payload that identifies the work, and by what rule it was made.
///
/// Two messages of one key whose fingerprints are of one rule and differ are a conflict, never a duplicate. Fingerprints of
/// two rules say nothing about each other: a deployment that changes the rule leaves the key to decide for the work that
/// is recorded already.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    digest: [u8; DIGEST_BYTES],
    form: u8,
    /// 0: of the whole body.
    rule: u32,
}

impl Fingerprint {
    /// Returns the fingerprint of exactly these bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"b");
        hash.update(bytes);
        Self::of_hash(hash)
    }

    /// Returns the fingerprint of a JSON value: white space and the order of an object's fields do not count.
    ///
    /// Numbers that are no `u64` or `i64` count as the nearest `f64`. Where a crate of the program switches on `serde_json`'s Cargo feature
    /// `arbitrary_precision`, values that differ can then be one: integers beyond 64 bits, more than 15 digits, all beyond the range of an
    /// `f64`. There, take the [bytes](Self::of_bytes) of the number's text.
    #[must_use]
    pub fn of_json(value: &Value) -> Self {
        let mut hash = Sha256::new();
        hash_value(value, &mut hash);
        Self::of_hash(hash)
    }

    /// Returns the fingerprint of a JSON text: of its value, as [`of_json`](Self::of_json) does; `None` where it is not JSON.
    pub(crate) fn of_json_text(text: &str) -> Option<Self> {
        let json = JsonText::new(text)?;
        let mut hash = Sha256::new();
        hash_text_value(&json, JsonText::ROOT, &mut hash);
        Some(Self::of_hash(hash))
    }

    fn of_hash(hash: Sha256) -> Self {
        Self { digest: hash.finalize().into(), form: FORM, rule: 0 }
    }

    /// Marks the fingerprint as made by this version of a consumer's rule; 0 means the whole body.
    #[must_use]
    pub const fn of_rule(self, version: u32) -> Self {
        Self { rule: version, ..self }
    }

    /// Returns whether both have the same rule and form, and different payloads. This alone makes a conflict.
    #[must_use]
    pub(crate) fn contradicts(&self, other: &Self) -> bool {
        (self.form, self.rule) == (other.form, other.rule) && self.digest != other.digest
    }

    /// Returns the bytes that a record holds, at most [`FINGERPRINT_MAX_BYTES`]: the hash, and unless it is of the first form
    /// and of the whole body, its form and the version of the rule. Equal exactly where the fingerprints are.
    #[must_use]
    pub fn to_stored(&self) -> Vec<u8> {
        let mut bytes = self.digest.to_vec();
        if (self.form, self.rule) != (1, 0) {
            bytes.push(self.form);
            bytes.extend(self.rule.to_be_bytes());
        }
        bytes
    }

    /// Returns the fingerprint that a record holds.
    ///
    /// # Errors
    /// When [`to_stored`](Self::to_stored) does not return such bytes.
    pub fn from_stored(bytes: &[u8]) -> Result<Self, InvalidValue> {
        let parsed = bytes.split_first_chunk().and_then(|(digest, rest)| match *rest {
            [] => Some(Self { digest: *digest, form: 1, rule: 0 }),
            [form, a, b, c, d] => Some(Self { digest: *digest, form, rule: u32::from_be_bytes([a, b, c, d]) }),
            _ => None,
        });
        let canonical = parsed.filter(|parsed| parsed.to_stored() == bytes);
        canonical.ok_or_else(|| InvalidValue("the fingerprint is not of the form that claimant writes".into()))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digest, form, rule } = self;
        write!(f, "Fingerprint({}…, form {form}, rule {rule})", crate::key::hex(&digest[..4]))
    }
}

/// Returns whether each number of a JSON text is one that a `u64`, an `i64` or an `f64` distinguishes from every other: else two
/// payloads that differ would have one fingerprint.
pub(crate) fn numbers_are_exact(json: &str) -> bool {
    let mut at = 0;
    while let [first, ..] = &json.as_bytes()[at..] {
        at = match first {
            b'"' => after_string(json, at),
            b'-' | b'0'..=b'9' => {
                let end = after_scalar(json, at);
                if !is_exact(&json[at..end]) {
                    return false;
                }
                end
            }
            _ => at + 1,
        };
    }
    true
}

/// Returns whether a number is exact: fifteen digits survive the conversion to an `f64` and back; with an exponent, a number
/// can also become zero.
fn is_exact(number: &str) -> bool {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    number.parse::<u64>().is_ok() || number.parse::<i64>().is_ok() || (digits <= 15 && !number.contains(['e', 'E']))
}

/// Feeds a value to the hash so that different values give different input: each has its kind and its length.
fn hash_value(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::String(text) => hash_text(b"s", text, hash),
        Value::Number(number) => hash_number(number, hash),
        Value::Array(items) => {
            hash_count(b"[", items.len(), hash);
            items.iter().for_each(|item| hash_value(item, hash));
        }
        Value::Object(fields) => {
            // Not in the order of the map, which a Cargo feature of serde_json can change.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            hash_count(b"{", fields.len(), hash);
            for (name, value) in fields {
                hash_text(b"s", name, hash);
                hash_value(value, hash);
            }
        }
    }
}

/// Feeds the same to the hash as [`hash_value`] of the value that a text has here.
fn hash_text_value(json: &JsonText<'_>, value: Place, hash: &mut Sha256) {
    match json.first(value) {
        literal @ (b'n' | b't' | b'f') => hash.update([literal]),
        b'"' => hash_text(b"s", &json.string(value), hash),
        b'[' => {
            hash_count(b"[", json.within(value).count(), hash);
            json.within(value).for_each(|item| hash_text_value(json, item, hash));
        }
        b'{' => {
            let fields = json.fields(value);
            hash_count(b"{", fields.count(), hash);
            for (name, value) in fields.iter() {
                hash_text(b"s", name, hash);
                hash_text_value(json, value, hash);
            }
        }
        _ => hash_number(&json.number(value), hash),
    }
}

/// Not by the number's own text, which a Cargo feature of `serde_json` can change.
fn hash_number(number: &Number, hash: &mut Sha256) {
    match (number.as_u64(), number.as_i64()) {
        (Some(n), _) => hash_text(b"#", &n.to_string(), hash),
        (None, Some(n)) => hash_text(b"#", &n.to_string(), hash),
        (None, None) => hash_text(b".", &number.as_f64().unwrap_or(f64::NAN).to_bits().to_string(), hash),
    }
}

fn hash_text(kind: &[u8], text: &str, hash: &mut Sha256) {
    hash_count(kind, text.len(), hash);
    hash.update(text.as_bytes());
}

fn hash_count(kind: &[u8], count: usize, hash: &mut Sha256) {
    hash.update(kind);
    hash.update((count as u64).to_be_bytes()); // OK because usize is at most 64 bits wide.
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
    fn a_text_has_the_fingerprint_of_its_value() {
        let texts = [
            r#"{"b":1,"a":{"d":[],"c":{}},"":null}"#,
            r#"{"a":1,"b":2,"a":3,"b":[4],"a":"last"}"#,
            r#"{"\u0061":"\u00df\n","ß":"\\","\ud83d\ude00":true}"#,
            r#"[-1,18446744073709551615,-9223372036854775808,1.5,-0.0,1e3,0]"#,
            r#"{"$serde_json::private::Number":"1"}"#,
        ];
        for text in texts {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(Fingerprint::of_json_text(text), Some(Fingerprint::of_json(&value)), "{text}");
        }
        assert_eq!(Fingerprint::of_json_text(r#"{"a":1,"a":2}"#), Fingerprint::of_json_text(r#"{"a":2}"#));
        let deep = "[".repeat(128) + &"]".repeat(128);
        for text in ["", "{", "1 2", "[1,]", &deep] {
            assert_eq!(Fingerprint::of_json_text(text), None, "{text}");
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

    #[test]
    fn fingerprints_of_two_rules_are_not_compared() {
        let [a, b] = [Fingerprint::of_bytes(b"a"), Fingerprint::of_bytes(b"b")];
        let other_form = |of: Fingerprint| Fingerprint { form: FORM + 1, ..of };
        let rows = [
            (a, a, false),
            (a, b, true),
            (a.of_rule(1), b.of_rule(1), true),
            (a.of_rule(1), a.of_rule(2), false),
            (a.of_rule(1), b.of_rule(2), false),
            (a, b.of_rule(1), false),
            (a, other_form(b), false),
            (other_form(a), other_form(b), true),
        ];
        for (one, other, wanted) in rows {
            assert_eq!((one.contradicts(&other), other.contradicts(&one)), (wanted, wanted), "{one:?} {other:?}");
        }
    }

    #[test]
    fn what_is_stored_is_read_back_and_nothing_else() {
        let whole = Fingerprint::of_bytes(b"a");
        // As it was before fingerprints had rules: the hash alone.
        assert_eq!(whole.to_stored(), whole.digest);
        for fingerprint in [whole, whole.of_rule(1), whole.of_rule(u32::MAX), Fingerprint { form: 2, ..whole }] {
            let stored = fingerprint.to_stored();
            assert!(stored.len() <= FINGERPRINT_MAX_BYTES);
            assert_eq!(Fingerprint::from_stored(&stored), Ok(fingerprint));
            for cut in [0, 31, 33, 36].into_iter().filter(|cut| *cut < stored.len()) {
                assert!(Fingerprint::from_stored(&stored[..cut]).is_err(), "{cut} bytes");
            }
        }
        let twice = [whole.to_stored(), vec![1, 0, 0, 0, 0]].concat();
        assert!(Fingerprint::from_stored(&twice).is_err(), "two ways to store one fingerprint");
    }

    /// What is in the tables of those who use claimant. These lines never change: another form of hashing gets another
    /// [`FORM`], and lines of its own.
    #[test]
    fn fingerprints_of_bodies_are_these_in_every_version() {
        let nested = "[".repeat(127) + &"]".repeat(127);
        let bodies = [
            ("", "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"),
            ("nonsense", "538d87b0bc0cfb0e72e8a146987e7cacae89096087af1f9562b24ad4a24b5c70"),
            ("{}", "5a3590fbe3ffbfe0a65167de3111dcd0cde5e8025d0fc5db3aec6ee0f4cedcfb"),
            ("[]", "63d63c64950f7d33cf10e33ecc46a9d76de68153d6c143b450c94aeb1c59479c"),
            ("null", "1b16b1df538ba12dc3f97edbb85caa7050d46c148134290feba80f8236c83db9"),
            ("true", "e3b98a4da31a127d4bde6e43033f66ba274cab0eb7eb1c70ec41402bf6273dd8"),
            ("0", "97658e31712767a9d308627ce36ec92ea8b7c10494bd2cc95b6fabaf71377dd6"),
            ("-1", "2f315a1d3f0ed2f4d722a3b2abcd0623705660ca3525f6acf0a56baff5c76176"),
            ("1.5", "9dd305b043088fc96f4fb589709b8a54530234d8b1d2cafff6bb8c350086128c"),
            ("-0.0", "a6565d288671d7ed3f506997190ad16495512d7a2d4a55a71cee2795344a6f21"),
            ("1e3", "f457a4288208e85f333d6fb162dc4ceb8c9985f2ba5f8020b31806f5068c7aad"),
            ("18446744073709551615", "500cba9f3c890a1c609a1bed37bc096c1863fc93a887ba36b4fbccc5841b82ce"),
            ("100000000000000000001", "b84c5a840db42cb053ed77281814868f69729c0aa1d305fd73e3b1469afc0099"),
            (r#""""#, "76ca65fa532efea2d73e4cb2775f96cfb650d5c8c9dbb78594a01f4cf8bb3bfe"),
            (r#""ß\n\u0000""#, "3ffbf79c28acc29782c9d1f54ad901d50a7c4e77b059c5ba65992484ca4f1a4e"),
            (r#"{"b":1,"a":{"d":[],"c":{}}}"#, "934d35277b6de9ef9f6e96e638cfbf2f4d3e05e774c00d8c7b39fe76d0c2993b"),
            (
                r#"{"order_id":"ord-1","items":[{"sku":"TEA","quantity":2,"price":12.50}],"note":null,"gift":false}"#,
                "24096e396f08ffddaeb681098b51bbe4e1de8f4fcc56ef679ca1e127654df94b",
            ),
            (r#"{"a":1,"b":2,"a":3}"#, "76be610f7da3093911945631a327aa11a544e0c319d4b1e9f6a11bc28aebc3fa"),
            (r#"{"\u0061":"\ud83d\ude00"}"#, "0938b093a722b152a90257896fb76b273aa45e7279d9c5c9cb7d0b453357bd67"),
            (&nested, "1ccb7039a36ab81e9b9ceeee285a27385530e84d4d6cf03e801383df4f4af5b7"),
            ("[-9223372036854775808]", "c676fcfaef93581a005d757059b9ba4d345536b195bae685276d2ba65e6b264b"),
            ("[1e400]", "3fb6c3466ec90f6e4cadb377ea7571fa2845711c77c2898f37fe7c71382686b9"),
        ];
        assert_eq!(FORM, 1);
        for (body, wanted) in bodies {
            assert_eq!(crate::key::hex(&crate::decode::of_content(body.as_bytes()).to_stored()), wanted, "{body}");
        }
        let bytes = Fingerprint::of_bytes(b"\0\xff");
        let wanted = "8449cfbf9eae11a1fd5fa9ffe08573a814d51678ae1cd2891093bb5d220c3633";
        assert_eq!(crate::key::hex(&bytes.to_stored()), wanted);
        assert_eq!(crate::key::hex(&bytes.of_rule(258).to_stored()), format!("{wanted}0100000102"));
    }
}
