//! The statement that stores messages, and their rows as records.

use std::collections::HashMap;

use claimant_core::protocol::Settlement;
use claimant_core::{Fence, Fingerprint, MessageId, OwnerToken, Record, RecordId, Status, StoreError, Timestamp};
use sqlx::postgres::PgRow;
use sqlx::query;

use crate::link::Statement;
use crate::pending::{MessageRow, PendingRow};
use crate::values::{column, corrupt, one, text, time, timestamp};

macro_rules! shown {
    () => {
        "record_id, owner, message_id, fingerprint, received_at"
    };
}

/// Both parts see the table as it was when the statement began: what the first inserts is not among what the second finds.
/// In one order everywhere, so that two batches with the same keys do not wait for each other.
const OFFER: &str = concat!(
    "WITH offered AS (SELECT * FROM unnest($1::bytea[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], \
     $7::bytea[], $8::bytea[], $9::bytea[], $10::bigint[]) AS o (record_id, consumer, group_name, event_type, body, \
     fingerprint, message_id, trace, owner, at)), \
     written AS (INSERT INTO claimant_inbox (record_id, consumer, group_name, event_type, body, fingerprint, message_id, \
     trace, owner, next_attempt_at, received_at, updated_at) SELECT record_id, consumer, group_name, event_type, body, \
     fingerprint, message_id, trace, owner, at, at, at FROM offered ORDER BY record_id \
     ON CONFLICT (record_id) DO NOTHING RETURNING ",
    shown!(),
    ") SELECT ",
    shown!(),
    " FROM written UNION ALL SELECT ",
    shown!(),
    " FROM claimant_inbox WHERE record_id = ANY($1)"
);

const GET: &str = concat!("SELECT ", shown!(), " FROM claimant_inbox WHERE record_id = $1");

pub(crate) fn offer<'q>(rows: &[(PendingRow, Settlement)]) -> Statement<'q> {
    let id = |(row, _): &(PendingRow, Settlement)| row.request.id.as_str().as_bytes().to_vec();
    let requests = || rows.iter().map(|(row, _)| &row.request);
    let bytes = |text: &str| text.as_bytes().to_vec();
    let texts = |part: fn(&MessageRow) -> Option<&str>| -> Vec<Option<Vec<u8>>> {
        rows.iter().map(|(row, _)| row.message.as_ref().and_then(part).map(bytes)).collect()
    };
    query(OFFER)
        .bind(rows.iter().map(id).collect::<Vec<_>>())
        .bind(requests().map(|request| parts(request.id.as_str()).0.to_owned()).collect::<Vec<_>>())
        .bind(texts(|message| message.group.as_deref()))
        .bind(texts(|message| Some(&message.event_type)))
        .bind(texts(|message| Some(&message.body)))
        .bind(requests().map(|request| request.fingerprint.to_stored()).collect::<Vec<_>>())
        .bind(requests().map(|request| bytes(request.message_id.as_str())).collect::<Vec<_>>())
        .bind(texts(|message| message.trace.as_deref()))
        .bind(requests().map(|request| bytes(request.owner.as_str())).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, settlement)| time(settlement.now)).collect::<Vec<_>>())
}

pub(crate) fn get(id: &RecordId) -> Statement<'_> {
    query(GET).bind(id.as_str().as_bytes())
}

/// Returns the consumer and the key of a record id; the key's hash if the record id has only that.
pub(crate) fn parts(record_id: &str) -> (&str, &str) {
    // OK because every record id has one of the two, and a consumer's name has neither.
    record_id.split_once(['#', '~']).unwrap_or((record_id, ""))
}

/// Committed rows by record id; an error where one cannot be read, which says nothing of the others.
pub(crate) type Records = HashMap<Vec<u8>, Result<Record, StoreError>>;

/// Converts rows to records of completed work: for the consumer that stores messages, a stored one is done.
pub(crate) fn records(rows: &[PgRow]) -> Result<Records, StoreError> {
    let read = |row: &PgRow| {
        let fingerprint: Vec<u8> = column(row, "fingerprint")?;
        let received_at: Timestamp = timestamp(row, "received_at")?;
        Ok(Record {
            status: Status::Completed,
            owner: OwnerToken::from_stored(text(row, "owner")?),
            fence: Fence::FIRST,
            lease_until: received_at,
            attempts: 1,
            message_id: MessageId::new(text(row, "message_id")?).map_err(|_| corrupt("message_id"))?,
            fingerprint: Fingerprint::from_stored(&fingerprint).map_err(|_| corrupt("fingerprint"))?,
            created_at: received_at,
            updated_at: received_at,
            completed_at: Some(received_at),
            // Until the row is cleaned up.
            expires_at_s: u64::MAX,
            result: None,
            error: None,
            note: None,
        })
    };
    rows.iter().map(|row| Ok((column(row, "record_id")?, one(read(row))?))).collect()
}
