//! Names and keys: what makes two messages the same piece of work.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::error::Error;

/// The longest key, in bytes of UTF-8: the longest that every store can look up.
pub const KEY_MAX_BYTES: usize = 2_048;

/// The longest consumer name, in bytes.
pub const CONSUMER_NAME_MAX_BYTES: usize = 64;

/// The longest message id, in bytes.
pub const MESSAGE_ID_MAX_BYTES: usize = 100;

/// Record ids up to this many bytes show the key in the clear; longer ones hold its hash, so that an item of
/// the default shape stays under 1 KB whatever the key.
pub const RECORD_ID_PLAIN_MAX_BYTES: usize = 400;

const _: () = assert!(CONSUMER_NAME_MAX_BYTES + 1 + 64 <= RECORD_ID_PLAIN_MAX_BYTES);

/// Why a value was refused at the edge. `Display` says what is wrong and what is allowed, never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue(pub(crate) String);

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidValue {}

impl From<InvalidValue> for Error {
    fn from(fault: InvalidValue) -> Self {
        Self::invalid(fault.0)
    }
}

/// What makes two messages the same piece of work.
///
/// Compared byte by byte: never trimmed, folded or truncated. 1 to [`KEY_MAX_BYTES`] bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// Creates a key from this text, unchanged.
    ///
    /// # Errors
    /// When it is empty or longer than [`KEY_MAX_BYTES`].
    pub fn new(key: impl Into<String>) -> Result<Self, InvalidValue> {
        let key = key.into();
        match key.len() {
            0 => Err(InvalidValue("the key is empty: messages without a key would all be the same work".into())),
            n if n > KEY_MAX_BYTES => Err(InvalidValue(format!(
                "the key has {n} bytes; at most {KEY_MAX_BYTES} are allowed: hash it, or choose a shorter one"
            ))),
            _ => Ok(Self(key.into())),
        }
    }

    /// Returns the key itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// Keys can be personal data, so `Debug`, which ends up in logs, shows only their length.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.0.len())
    }
}

/// The name of a consumer: letters, digits, `-` and `_`, 1 to [`CONSUMER_NAME_MAX_BYTES`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsumerName(Arc<str>);

impl ConsumerName {
    /// Creates a name from this text, unchanged.
    ///
    /// # Errors
    /// When it is empty, too long, or has another character.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidValue> {
        let name = name.into();
        let fits = (1..=CONSUMER_NAME_MAX_BYTES).contains(&name.len());
        if fits && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return Ok(Self(name.into()));
        }
        Err(InvalidValue(format!(
            "the consumer name {name:?} is not 1 to {CONSUMER_NAME_MAX_BYTES} letters, digits, '-' or '_'"
        )))
    }

    /// Returns the name itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConsumerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of one message as its queue gave it: 1 to [`MESSAGE_ID_MAX_BYTES`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(Arc<str>);

impl MessageId {
    /// Creates an id from this text, unchanged.
    ///
    /// # Errors
    /// When it is empty or longer than [`MESSAGE_ID_MAX_BYTES`].
    pub fn new(id: impl Into<String>) -> Result<Self, InvalidValue> {
        let id = id.into();
        if (1..=MESSAGE_ID_MAX_BYTES).contains(&id.len()) {
            return Ok(Self(id.into()));
        }
        Err(InvalidValue(format!("the message id has {} bytes; 1 to {MESSAGE_ID_MAX_BYTES} are allowed", id.len())))
    }

    /// Returns the id itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a record in its store: one for each (consumer, key).
///
/// `consumer#key` in the clear, or `consumer~sha256` where the key is hidden or long. A consumer name has
/// neither `#` nor `~`, so no two pairs share an id, and no clear id equals a hashed one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(Arc<str>);

impl RecordId {
    /// Creates the id with the key in the clear, or hashed where that is longer than [`RECORD_ID_PLAIN_MAX_BYTES`].
    #[must_use]
    pub fn new(consumer: &ConsumerName, key: &Key) -> Self {
        if consumer.0.len() + 1 + key.0.len() > RECORD_ID_PLAIN_MAX_BYTES {
            return Self::hashed(consumer, key);
        }
        Self(format!("{}#{}", consumer.0, key.0).into())
    }

    /// Creates the id with a SHA-256 of the key, for keys that are personal data. A hash hides a key only as far as
    /// keys cannot be guessed.
    #[must_use]
    pub fn hashed(consumer: &ConsumerName, key: &Key) -> Self {
        Self(format!("{}~{}", consumer.0, hex(&Sha256::digest(key.0.as_bytes()))).into())
    }

    /// Returns the ids that a key's record can have, as [`new`](Self::new) and as [`hashed`](Self::hashed) make them: for who looks for it
    /// without knowing which its consumer writes.
    #[must_use]
    pub fn both(consumer: &ConsumerName, key: &Key) -> [Self; 2] {
        [Self::new(consumer, key), Self::hashed(consumer, key)]
    }

    /// Returns the id that a store holds.
    ///
    /// # Errors
    /// When it is not one that [`new`](Self::new) or [`hashed`](Self::hashed) returns.
    pub fn from_stored(id: impl Into<String>) -> Result<Self, InvalidValue> {
        let id = Self(id.into().into());
        let (consumer, key) = id.0.split_at(id.consumer().len());
        let hash = |key: &str| key.len() == 64 && key.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let valid = match key.split_at_checked(1) {
            Some(("#", key)) => !key.is_empty() && id.0.len() <= RECORD_ID_PLAIN_MAX_BYTES,
            Some((_, key)) => hash(key),
            None => false,
        };
        if valid && ConsumerName::new(consumer).is_ok() {
            return Ok(id);
        }
        Err(InvalidValue(
            "the record id is not one that claimant writes: consumer#key, or consumer~hash of the key".into(),
        ))
    }

    /// Returns the id as the store holds it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the consumer.
    #[must_use]
    pub fn consumer(&self) -> &str {
        // OK because every record id has one of the two, and a consumer's name has neither.
        self.0.split(['#', '~']).next().unwrap_or_default()
    }

    /// Returns the key; `None` where the id has only its hash.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.0[self.consumer().len()..].strip_prefix('#')
    }
}

// As for `Key`.
impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordId({} bytes)", self.0.len())
    }
}

/// Returns the bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, b| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{b:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_byte_by_byte_within_bounds() {
        assert!(Key::new("").is_err());
        assert!(Key::new("k".repeat(KEY_MAX_BYTES)).is_ok());
        assert!(Key::new("k".repeat(KEY_MAX_BYTES + 1)).is_err());
        for odd in [" ", "a#b", "\0", "ß", "ẞ", "K", "k"] {
            assert_eq!(Key::new(odd).unwrap().as_str(), odd);
        }
    }

    #[test]
    fn consumer_names_have_no_separator() {
        for (name, ok) in [("orders", true), ("a-b_9", true), ("", false), ("a#b", false), ("a~b", false), ("ä", false)]
        {
            assert_eq!(ConsumerName::new(name).is_ok(), ok, "{name:?}");
        }
        assert!(ConsumerName::new("x".repeat(CONSUMER_NAME_MAX_BYTES + 1)).is_err());
    }

    #[test]
    fn record_ids_of_different_pairs_differ_and_stay_short() {
        let (a, ab) = (ConsumerName::new("a").unwrap(), ConsumerName::new("a-b").unwrap());
        let key = |k: &str| Key::new(k).unwrap();
        assert_eq!(RecordId::new(&a, &key("1#2")).as_str(), "a#1#2");
        assert_ne!(RecordId::new(&a, &key("b#1")), RecordId::new(&ab, &key("1")));
        // In every version: all work would be done once more that was done under another id.
        let hash = "da724c619bef80eed591da798d33cf9336311d8931e7d64e1a732d9ea4860999";
        assert_eq!(RecordId::hashed(&ab, &key("ord-1")).as_str(), format!("a-b~{hash}"), "printf ord-1 | sha256sum");
        let long = key(&"k".repeat(KEY_MAX_BYTES));
        assert_eq!(RecordId::new(&a, &long), RecordId::hashed(&a, &long));
        assert!(RecordId::new(&a, &long).as_str().len() <= RECORD_ID_PLAIN_MAX_BYTES);
        let posing = key(&RecordId::hashed(&a, &long).as_str()["a~".len()..]);
        assert_ne!(RecordId::new(&a, &posing), RecordId::hashed(&a, &long));
    }

    #[test]
    fn stored_ids_are_read_back_and_others_refused() {
        let (a, key) = (ConsumerName::new("a").unwrap(), Key::new("1#2~3").unwrap());
        let (clear, hashed) = (RecordId::new(&a, &key), RecordId::hashed(&a, &key));
        for id in [&clear, &hashed] {
            assert_eq!(RecordId::from_stored(id.as_str()).as_ref(), Ok(id));
            assert_eq!(id.consumer(), "a");
        }
        assert_eq!((clear.key(), hashed.key()), (Some("1#2~3"), None));
        let long = format!("a#{}", "k".repeat(RECORD_ID_PLAIN_MAX_BYTES));
        for foreign in ["", "a", "a#", "#k", "a b#k", "a~", "a~abc", "ä#k", "~", &hashed.as_str().to_uppercase(), &long]
        {
            assert!(RecordId::from_stored(foreign).is_err(), "{foreign}");
        }
    }

    #[test]
    fn debug_hides_the_key() {
        let key = Key::new("ada@example.com").unwrap();
        let id = RecordId::new(&ConsumerName::new("c").unwrap(), &key);
        assert!(!format!("{key:?} {id:?}").contains("ada"));
    }
}
