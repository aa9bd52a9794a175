//! The protocol's values as small numbers, and as what the protocol itself takes.
//!
//! A state holds a record in eight bytes. Everything that decides gets real values: a [`Record`] and a [`ClaimRequest`],
//! of which the fields that no rule reads are constant.

use std::sync::LazyLock;

use claimant_core::protocol::{ClaimPolicy, ClaimRequest, Likely};
use claimant_core::{
    Claim, ConsumerName, Fence, Fingerprint, Key, MessageId, OwnerToken, Record, RecordId, Status, Timestamp,
};

/// Seconds since the model's epoch.
pub type Time = u8;

/// A window that ends here never ends.
pub const FOREVER: Time = Time::MAX;

/// Owner tokens that one state can name.
pub const OWNERS_MAX: u8 = 16;

/// Message ids that one state can name.
pub const MESSAGE_IDS_MAX: u8 = 16;

/// Payloads that messages can have.
pub const PAYLOADS_MAX: u8 = 2;

/// A record, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each field is the record's field of that name")]
pub struct Rec {
    pub status: Status,
    pub owner: u8,
    pub fence: u8,
    pub lease: Time,
    pub attempts: u8,
    pub message: u8,
    pub payload: u8,
    pub expires: Time,
}

/// A request to claim, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each field is the request's field of that name")]
pub struct Req {
    pub owner: u8,
    pub message: u8,
    pub payload: u8,
    pub now: Time,
    pub lease: Time,
}

/// A claim that was granted, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each field is the claim's field of that name")]
pub struct Held {
    pub owner: u8,
    pub fence: u8,
    pub lease: Time,
    pub attempt: u8,
    pub payload: u8,
    pub taken_over: bool,
}

/// The real values that stand behind the numbers.
struct Names {
    id: RecordId,
    owners: Vec<OwnerToken>,
    messages: Vec<MessageId>,
    fingerprints: Vec<Fingerprint>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let consumer = ConsumerName::new("c").expect("it is a name");
    let key = Key::new("k").expect("it is not empty");
    let letter = |prefix: char, n: u8| format!("{prefix}{}", char::from(b'a' + n));
    Names {
        id: RecordId::new(&consumer, &key),
        owners: (0..OWNERS_MAX).map(|n| OwnerToken::from_stored(letter('o', n))).collect(),
        messages: (0..MESSAGE_IDS_MAX).map(|n| MessageId::new(letter('m', n)).expect("it is not empty")).collect(),
        fingerprints: (0..PAYLOADS_MAX).map(|n| Fingerprint::of_bytes(&[n])).collect(),
    }
});

/// The number of a name: the place of its last letter.
fn number(name: &str) -> u8 {
    name.as_bytes()[1] - b'a'
}

/// The owner token of this number.
#[must_use]
pub fn owner(n: u8) -> OwnerToken {
    NAMES.owners[usize::from(n)].clone()
}

/// The fingerprint of the payload of this number.
#[must_use]
pub fn fingerprint(n: u8) -> Fingerprint {
    NAMES.fingerprints[usize::from(n)]
}

/// The message id of this number.
#[must_use]
pub fn message_id(n: u8) -> MessageId {
    NAMES.messages[usize::from(n)].clone()
}

/// The real time.
#[must_use]
pub fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_millis(u64::from(time) * 1_000)
}

/// The time in whole seconds; what is beyond the last one is [`FOREVER`].
#[must_use]
pub fn seconds(time: Timestamp) -> Time {
    Time::try_from(time.as_secs_rounded_up()).unwrap_or(FOREVER)
}

impl Rec {
    /// The real record.
    #[must_use]
    pub fn record(&self) -> Record {
        Record {
            status: self.status,
            owner: owner(self.owner),
            fence: Fence::new(self.fence.into()),
            lease_until: timestamp(self.lease),
            attempts: self.attempts.into(),
            message_id: message_id(self.message),
            fingerprint: fingerprint(self.payload),
            created_at: timestamp(0),
            updated_at: timestamp(0),
            completed_at: None,
            expires_at_s: self.expires.into(),
            result: None,
            error: None,
            note: None,
        }
    }

    /// The record by number; numbers that do not fit are as large as possible.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let payload = NAMES.fingerprints.iter().position(|f| *f == record.fingerprint);
        Self {
            status: record.status,
            owner: number(record.owner.as_str()),
            fence: u8::try_from(record.fence.get()).unwrap_or(u8::MAX),
            lease: seconds(record.lease_until),
            attempts: u8::try_from(record.attempts).unwrap_or(u8::MAX),
            message: number(record.message_id.as_str()),
            // OK because every fingerprint here is one of the few that are named.
            payload: payload.map_or(0, |place| place as u8),
            expires: Time::try_from(record.expires_at_s).unwrap_or(FOREVER),
        }
    }
}

impl Req {
    /// The real request of a consumer with this policy.
    #[must_use]
    pub fn request(&self, policy: ClaimPolicy) -> ClaimRequest {
        ClaimRequest {
            id: NAMES.id.clone(),
            owner: owner(self.owner),
            message_id: message_id(self.message),
            fingerprint: fingerprint(self.payload),
            now: timestamp(self.now),
            lease_until: timestamp(self.lease),
            policy,
            // A hint that changes no answer; the model chooses the requests that it leads to itself.
            likely: Likely::Known,
        }
    }
}

impl Held {
    /// The real claim.
    pub fn claim(&self) -> Claim {
        Claim {
            id: NAMES.id.clone(),
            owner: owner(self.owner),
            fence: Fence::new(self.fence.into()),
            lease_until: timestamp(self.lease),
            attempt: self.attempt.into(),
            interruptions: self.taken_over.into(),
            last_error: None,
            transaction: None,
        }
    }

    /// The claim that a granted request holds, by number.
    #[must_use]
    pub fn of(claim: &Claim, payload: u8) -> Self {
        Self {
            owner: number(claim.owner.as_str()),
            fence: u8::try_from(claim.fence.get()).unwrap_or(u8::MAX),
            lease: seconds(claim.lease_until),
            attempt: u8::try_from(claim.attempt).unwrap_or(u8::MAX),
            payload,
            taken_over: claim.is_taken_over(),
        }
    }
}
