//! Records within the bounds of every store.

use claimant_core::key::MESSAGE_ID_MAX_BYTES;
use claimant_core::limits::TIME_MAX_MS;
use claimant_core::record::{ERROR_MAX_BYTES, NOTE_MAX_BYTES, RESULT_MAX_BYTES, bounded};
use claimant_core::{Fence, Fingerprint, MessageId, OwnerToken, Record, Status, Timestamp};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Text of any characters, of `least` to `most` bytes; now and then of exactly as many as there may be.
pub fn any_text(least: usize, most: usize) -> impl Strategy<Value = String> {
    let fill = move |text: String| if text.len() < least { format!("{text}{}", "x".repeat(least)) } else { text };
    let some = any::<String>().prop_map(move |text| bounded(&fill(text), most).to_owned());
    let full = select(["x", "é", "🦀"].as_slice()).prop_map(move |piece| piece.repeat(most / piece.len()));
    prop_oneof![15 => some, 1 => full]
}

/// Times that every store keeps.
pub fn times() -> impl Strategy<Value = Timestamp> {
    prop_oneof![Just(0), 0..=TIME_MAX_MS, Just(TIME_MAX_MS)].prop_map(Timestamp::from_millis)
}

/// Records of every kind, whether or not any sequence of claims and endings leads to them.
pub fn records() -> impl Strategy<Value = Record> {
    let claim = (select(Status::ALL.as_slice()), "[0-9a-f]{32}", fences(), times(), any::<u32>());
    let work = (any_text(1, MESSAGE_ID_MAX_BYTES), any::<[u8; 32]>(), prop_oneof![Just(0), any::<u32>()]);
    let written = (times(), times(), option::of(times()), 0..=TIME_MAX_MS / 1_000);
    let notes = option::of(any_text(0, NOTE_MAX_BYTES));
    let texts = (option::of(any_text(0, RESULT_MAX_BYTES)), option::of(any_text(0, ERROR_MAX_BYTES)), notes);
    (claim, work, written, texts).prop_map(|(claim, work, written, (result, error, note))| {
        let ((status, owner, fence, lease_until, attempts), (message_id, digest, rule)) = (claim, work);
        let fingerprint = Fingerprint::from_stored(&digest).expect("as long as a hash");
        let (created_at, updated_at, completed_at, expires_at_s) = written;
        Record {
            status,
            owner: OwnerToken::from_stored(owner),
            fence,
            lease_until,
            attempts,
            message_id: MessageId::new(message_id).expect("of 1 to as many bytes as there may be"),
            fingerprint: fingerprint.of_rule(rule),
            created_at,
            updated_at,
            completed_at,
            expires_at_s,
            result,
            error,
            note,
        }
    })
}

/// As large as every store keeps them.
fn fences() -> impl Strategy<Value = Fence> {
    // OK because half of 64 bits fit an i64, which is what SQL has.
    prop_oneof![1..10_u64, Just(u64::MAX >> 1), 1..=u64::MAX >> 1].prop_map(Fence::new)
}
