//! Converts records to items and back.

use std::collections::HashMap;
use std::str::FromStr;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use claimant_core::{
    Fence, Fingerprint, MessageId, OwnerToken, Record, RecordId, StoreError, StoreErrorKind, Timestamp,
};

use crate::names::AttributeNames;

pub(crate) type Item = HashMap<String, AttributeValue>;

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(crate) fn time(value: Timestamp) -> AttributeValue {
    number(value.as_millis())
}

pub(crate) fn bytes(value: &Fingerprint) -> AttributeValue {
    AttributeValue::B(Blob::new(value.to_stored()))
}

/// Returns the record in an item. Ignores attributes that claimant does not know.
pub(crate) fn record(item: &Item, names: &AttributeNames) -> Result<Record, StoreError> {
    let fields = Fields { item };
    Ok(Record {
        status: fields.text(&names.status)?.parse().map_err(|_| corrupt(&names.status))?,
        owner: OwnerToken::from_stored(fields.text(&names.owner)?),
        fence: Fence::new(fields.number(&names.fence)?),
        lease_until: fields.time(&names.lease_until)?,
        attempts: fields.number(&names.attempts)?,
        message_id: MessageId::new(fields.text(&names.message_id)?).map_err(|_| corrupt(&names.message_id))?,
        fingerprint: fields.fingerprint(&names.fingerprint)?,
        created_at: fields.time(&names.created_at)?,
        updated_at: fields.time(&names.updated_at)?,
        completed_at: fields.optional(&names.completed_at, |f, n| f.time(n))?,
        expires_at_s: fields.number(&names.expires_at)?,
        result: fields.optional(&names.result, |f, n| f.text(n).map(str::to_owned))?,
        error: fields.optional(&names.error, |f, n| f.text(n).map(str::to_owned))?,
        note: fields.optional(&names.note, |f, n| f.text(n).map(str::to_owned))?,
    })
}

/// Returns a whole record as an item.
pub(crate) fn item(id: &RecordId, record: &Record, names: &AttributeNames) -> Item {
    let values = values(record, names);
    let mut item = HashMap::with_capacity(values.len() + 1);
    item.insert(names.id.clone(), text(id.as_str()));
    item.extend(values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    item
}

/// Returns a whole record as the values that a write sets; a field without a value is to be removed.
pub(crate) fn values<'a>(record: &Record, names: &'a AttributeNames) -> Vec<(&'a str, Option<AttributeValue>)> {
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
    vec![
        (&names.status, Some(text(status.as_str()))),
        (&names.owner, Some(text(owner.as_str()))),
        (&names.fence, Some(number(fence.get()))),
        (&names.lease_until, Some(time(*lease_until))),
        (&names.attempts, Some(number((*attempts).into()))),
        (&names.message_id, Some(text(message_id.as_str()))),
        (&names.fingerprint, Some(bytes(fingerprint))),
        (&names.created_at, Some(time(*created_at))),
        (&names.updated_at, Some(time(*updated_at))),
        (&names.completed_at, completed_at.map(time)),
        (&names.expires_at, Some(number(*expires_at_s))),
        (&names.result, result.as_deref().map(text)),
        (&names.error, error.as_deref().map(text)),
        (&names.note, note.as_deref().map(text)),
    ]
}

struct Fields<'a> {
    item: &'a Item,
}

impl<'a> Fields<'a> {
    fn text(&self, name: &str) -> Result<&'a str, StoreError> {
        match self.item.get(name) {
            Some(AttributeValue::S(text)) => Ok(text),
            _ => Err(corrupt(name)),
        }
    }

    fn number<N: FromStr>(&self, name: &str) -> Result<N, StoreError> {
        match self.item.get(name) {
            Some(AttributeValue::N(digits)) => digits.parse().map_err(|_| corrupt(name)),
            _ => Err(corrupt(name)),
        }
    }

    fn time(&self, name: &str) -> Result<Timestamp, StoreError> {
        self.number(name).map(Timestamp::from_millis)
    }

    fn fingerprint(&self, name: &str) -> Result<Fingerprint, StoreError> {
        match self.item.get(name) {
            Some(AttributeValue::B(blob)) => Fingerprint::from_stored(blob.as_ref()).map_err(|_| corrupt(name)),
            _ => Err(corrupt(name)),
        }
    }

    fn optional<T>(
        &self,
        name: &str,
        read: impl Fn(&Self, &str) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.item.contains_key(name) { read(self, name).map(Some) } else { Ok(None) }
    }
}

fn corrupt(attribute: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        format!(
            "a record's attribute `{attribute}` is missing or not of the form that claimant writes: is the table used \
             by something else, or are the attribute names set differently?"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use claimant_core::key::RECORD_ID_PLAIN_MAX_BYTES;
    use claimant_core::protocol::{Act, Operation};
    use claimant_core::record::ERROR_MAX_BYTES;
    use claimant_core::{ConsumerName, Key, RecordId, Status};

    use super::*;

    fn longest() -> Record {
        Record {
            status: Status::InProgress,
            owner: OwnerToken::draw().unwrap(),
            fence: Fence::new(u64::MAX),
            lease_until: Timestamp::from_millis(4_102_444_800_000),
            attempts: u32::MAX,
            message_id: MessageId::new("0".repeat(claimant_core::key::MESSAGE_ID_MAX_BYTES)).unwrap(),
            fingerprint: Fingerprint::of_bytes(b"x").of_rule(u32::MAX),
            created_at: Timestamp::from_millis(4_102_444_800_000),
            updated_at: Timestamp::from_millis(4_102_444_800_000),
            completed_at: Some(Timestamp::from_millis(4_102_444_800_000)),
            expires_at_s: 4_102_444_800,
            result: None,
            error: None,
            note: None,
        }
    }

    fn item_of(record: &Record) -> Item {
        let names = AttributeNames::default();
        let set = values(record, &names).into_iter().filter_map(|(n, v)| Some((n.to_owned(), v?)));
        set.collect()
    }

    /// The size that DynamoDB counts: names and values as UTF-8; a number takes a byte for each two digits, and one.
    fn size(item: &Item) -> usize {
        let value = |v: &AttributeValue| match v {
            AttributeValue::S(s) => s.len(),
            AttributeValue::N(n) => n.len().div_ceil(2) + 1,
            AttributeValue::B(b) => b.as_ref().len(),
            other => panic!("no record has {other:?}"),
        };
        item.iter().map(|(name, v)| name.len() + value(v)).sum()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let names = AttributeNames::default();
        for text in [None, Some("it failed".to_owned())] {
            let wanted = Record { error: text.clone(), note: text.clone(), result: text, ..longest() };
            assert_eq!(record(&item_of(&wanted), &names).unwrap(), wanted);
        }
    }

    #[test]
    fn a_record_stays_under_one_write_unit() {
        for key in [1, 200, 250, 300, RECORD_ID_PLAIN_MAX_BYTES - "c#".len()] {
            let operation = Operation {
                id: RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new("k".repeat(key)).unwrap()),
                act: Act::Release,
                owner: longest().owner,
                now: longest().updated_at,
                skew: Duration::ZERO,
                force: false,
                by: "ada".into(),
                why: "w".repeat(1_000),
            };
            let note = operation.note();
            assert!(note.starts_with("2100-01-01T00:00:00Z a"), "{note}");
            // As the next claim and its failure leave it.
            let failed = Record { error: Some("x".repeat(ERROR_MAX_BYTES)), note: Some(note), ..longest() };
            let bytes = size(&item_of(&failed)) + "id".len() + operation.id.as_str().len();
            assert!(bytes <= 1_024, "{bytes} bytes with a key of {key}");
        }
    }

    #[test]
    fn a_foreign_item_is_an_error_that_names_the_attribute() {
        let names = AttributeNames::default();
        for attribute in ["status", "fence", "fingerprint", "lease_until", "completed_at", "message_id"] {
            let mut item = item_of(&longest());
            item.insert(attribute.to_owned(), AttributeValue::Bool(true));
            let error = record(&item, &names).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
            assert!(error.to_string().contains(attribute), "{error}");
        }
    }
}
