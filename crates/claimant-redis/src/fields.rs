//! Converts records to hashes and back.

use std::collections::HashMap;
use std::str::FromStr;

use claimant_core::{Fence, Fingerprint, MessageId, OwnerToken, Record, StoreError, StoreErrorKind, Timestamp};
use redis::Value;

pub(crate) const STATUS: &str = "status";
pub(crate) const OWNER: &str = "owner";
pub(crate) const FENCE: &str = "fence";
pub(crate) const LEASE_UNTIL: &str = "lease_until";
pub(crate) const ATTEMPTS: &str = "attempts";
pub(crate) const MESSAGE_ID: &str = "message_id";
pub(crate) const FINGERPRINT: &str = "fingerprint";
pub(crate) const CREATED_AT: &str = "created_at";
pub(crate) const UPDATED_AT: &str = "updated_at";
pub(crate) const COMPLETED_AT: &str = "completed_at";
pub(crate) const EXPIRES_AT: &str = "expires_at";
pub(crate) const RESULT: &str = "result";
pub(crate) const ERROR: &str = "error";
pub(crate) const NOTE: &str = "note";

/// One field with its value.
pub(crate) type Field = (&'static str, Vec<u8>);

pub(crate) fn text(value: &str) -> Vec<u8> {
    value.as_bytes().to_vec()
}

pub(crate) fn number(value: u64) -> Vec<u8> {
    value.to_string().into_bytes()
}

pub(crate) fn time(value: Timestamp) -> Vec<u8> {
    number(value.as_millis())
}

/// Returns a whole record as the fields that a write sets and those without a value, which it removes.
pub(crate) fn values(record: &Record) -> (Vec<Field>, Vec<&'static str>) {
    // Without `..`: the compiler names each place that writes a record and lacks a field.
    let Record {
        status,
        owner,
        fence,
        lease_until,
        attempts,
        message_id,
        fingerprint,
        created_at,
        updated_at,
        completed_at,
        expires_at_s,
        result,
        error,
        note,
    } = record;
    let optional = [
        (COMPLETED_AT, completed_at.map(time)),
        (RESULT, result.as_deref().map(text)),
        (ERROR, error.as_deref().map(text)),
        (NOTE, note.as_deref().map(text)),
    ];
    let mut set = vec![
        (STATUS, text(status.as_str())),
        (OWNER, text(owner.as_str())),
        (FENCE, number(fence.get())),
        (LEASE_UNTIL, time(*lease_until)),
        (ATTEMPTS, number((*attempts).into())),
        (MESSAGE_ID, text(message_id.as_str())),
        (FINGERPRINT, fingerprint.to_stored()),
        (CREATED_AT, time(*created_at)),
        (UPDATED_AT, time(*updated_at)),
        (EXPIRES_AT, number(*expires_at_s)),
    ];
    let mut remove = Vec::new();
    for (name, value) in optional {
        match value {
            Some(value) => set.push((name, value)),
            None => remove.push(name),
        }
    }
    (set, remove)
}

/// Returns the record in a hash; `None` if the hash is empty. Ignores fields that claimant does not know.
pub(crate) fn record(hash: Value) -> Result<Option<Record>, StoreError> {
    // Names as bytes: those of foreign fields need not be text.
    let fields: HashMap<Vec<u8>, Vec<u8>> = redis::from_redis_value(hash).map_err(|_| corrupt("any"))?;
    if fields.is_empty() {
        return Ok(None);
    }
    let fields = Fields(fields);
    Ok(Some(Record {
        status: fields.parsed(STATUS)?,
        owner: OwnerToken::from_stored(fields.text(OWNER)?),
        fence: Fence::new(fields.parsed(FENCE)?),
        lease_until: fields.time(LEASE_UNTIL)?,
        attempts: fields.parsed(ATTEMPTS)?,
        message_id: MessageId::new(fields.text(MESSAGE_ID)?).map_err(|_| corrupt(MESSAGE_ID))?,
        fingerprint: fields.fingerprint()?,
        created_at: fields.time(CREATED_AT)?,
        updated_at: fields.time(UPDATED_AT)?,
        completed_at: fields.optional(COMPLETED_AT, Fields::time)?,
        expires_at_s: fields.parsed(EXPIRES_AT)?,
        result: fields.optional(RESULT, |f, n| f.text(n).map(str::to_owned))?,
        error: fields.optional(ERROR, |f, n| f.text(n).map(str::to_owned))?,
        note: fields.optional(NOTE, |f, n| f.text(n).map(str::to_owned))?,
    }))
}

struct Fields(HashMap<Vec<u8>, Vec<u8>>);

impl Fields {
    fn bytes(&self, name: &str) -> Result<&[u8], StoreError> {
        self.0.get(name.as_bytes()).map(Vec::as_slice).ok_or_else(|| corrupt(name))
    }

    fn text(&self, name: &str) -> Result<&str, StoreError> {
        std::str::from_utf8(self.bytes(name)?).map_err(|_| corrupt(name))
    }

    fn parsed<T: FromStr>(&self, name: &str) -> Result<T, StoreError> {
        self.text(name)?.parse().map_err(|_| corrupt(name))
    }

    fn time(&self, name: &str) -> Result<Timestamp, StoreError> {
        self.parsed(name).map(Timestamp::from_millis)
    }

    fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        Fingerprint::from_stored(self.bytes(FINGERPRINT)?).map_err(|_| corrupt(FINGERPRINT))
    }

    fn optional<T>(
        &self,
        name: &str,
        read: impl Fn(&Self, &str) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.0.contains_key(name.as_bytes()) { read(self, name).map(Some) } else { Ok(None) }
    }
}

fn corrupt(field: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        format!(
            "a record's field `{field}` is missing or not of the form that claimant writes: does something else write \
             keys of this prefix?"
        ),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

    use super::*;

    fn full() -> Record {
        Record {
            status: claimant_core::Status::Completed,
            owner: OwnerToken::draw().unwrap(),
            fence: Fence::new(u64::MAX),
            lease_until: Timestamp::from_millis(4_102_444_800_000),
            attempts: u32::MAX,
            message_id: MessageId::new("ü").unwrap(),
            fingerprint: Fingerprint::of_bytes(b"\0"),
            created_at: Timestamp::from_millis(1),
            updated_at: Timestamp::from_millis(2),
            completed_at: Some(Timestamp::from_millis(3)),
            expires_at_s: 4_102_444_800,
            result: Some("[\"ß\\u0000\"]".into()),
            error: Some("no luck".into()),
            note: Some("by hand".into()),
        }
    }

    fn hash(record: &Record) -> Vec<(Value, Value)> {
        let bulk = |bytes: &[u8]| Value::BulkString(bytes.to_vec());
        values(record).0.iter().map(|(name, value)| (bulk(name.as_bytes()), bulk(value))).collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let bare = Record { completed_at: None, result: None, error: None, note: None, ..full() };
        for wanted in [full(), bare] {
            let pairs = hash(&wanted);
            // As protocol 2 and as protocol 3 send it.
            let flat = pairs.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect();
            assert_eq!(record(Value::Array(flat)).unwrap().unwrap(), wanted);
            assert_eq!(record(Value::Map(pairs)).unwrap().unwrap(), wanted);
        }
        assert_eq!(record(Value::Array(vec![])).unwrap(), None);
    }

    #[test]
    fn a_foreign_field_whose_name_is_no_text_is_left_alone() {
        let foreign = (Value::BulkString(vec![0xff]), Value::BulkString(vec![]));
        let pairs = hash(&full()).into_iter().chain([foreign]).collect();
        assert_eq!(record(Value::Map(pairs)).unwrap().unwrap().fence, full().fence);
    }

    #[test]
    fn a_foreign_hash_is_an_error_that_names_the_field() {
        for field in [STATUS, FENCE, FINGERPRINT, LEASE_UNTIL, COMPLETED_AT, MESSAGE_ID, RESULT] {
            let mut pairs = hash(&full());
            for (name, value) in &mut pairs {
                if *name == Value::BulkString(text(field)) {
                    *value = Value::BulkString(vec![0xff; 101]);
                }
            }
            let error = record(Value::Map(pairs)).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
            assert!(error.to_string().contains(field), "{error}");
        }
        assert_eq!(record(Value::Int(1)).unwrap_err().kind(), StoreErrorKind::Corrupt);
    }
}
