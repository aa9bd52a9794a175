//! Requests, claims and endings for the tests of the Redis store. Times are milliseconds after [`TEST_EPOCH`].

use std::sync::LazyLock;
use std::time::Duration;

use claimant_core::protocol::{ClaimPolicy, ClaimRequest, Ending, Likely, Renewal, Settlement};
use claimant_core::{
    Call, Claim, ClaimAnswer, ConsumerName, Fingerprint, Key, MessageId, Meter, OwnerToken, RecordId, Store, Timestamp,
};
use claimant_testkit::clock::TEST_EPOCH;

/// Enough for any call that gets its answer; what takes longer has failed.
pub(super) const WITHIN: Duration = Duration::from_secs(20);

/// The deduplication window.
pub(super) const WINDOW_S: u64 = 300;

/// What was asked for in all tests: nothing is checked by it but where a test makes its own.
static METER: LazyLock<Meter> = LazyLock::new(Meter::default);

pub(super) fn call() -> Call<'static> {
    Call { within: WITHIN, meter: &METER }
}

pub(super) fn id(key: &str) -> RecordId {
    RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new(key).unwrap())
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(TEST_EPOCH.as_millis() + ms)
}

fn policy() -> ClaimPolicy {
    ClaimPolicy { window: Duration::from_secs(WINDOW_S), ..ClaimPolicy::default() }
}

/// A claim with a lease of a second.
pub(super) fn request(key: &str, now: u64) -> ClaimRequest {
    ClaimRequest {
        id: id(key),
        owner: OwnerToken::draw().unwrap(),
        message_id: MessageId::new("m").unwrap(),
        fingerprint: Fingerprint::of_bytes(b"p"),
        now: at(now),
        lease_until: at(now + 1_000),
        policy: policy(),
        likely: Likely::New,
    }
}

pub(super) fn renewal(now: u64, until: u64) -> Renewal {
    Renewal { lease_until: at(until), now: at(now), policy: policy() }
}

pub(super) fn ending(ending: Ending) -> Settlement {
    Settlement { ending, now: at(500), policy: policy() }
}

pub(super) fn failed() -> Settlement {
    ending(Ending::Failed { error: "no luck".into() })
}

pub(super) async fn granted(store: &dyn Store, key: &str, now: u64) -> Claim {
    match store.claim(&request(key, now), call()).await.unwrap() {
        ClaimAnswer::Granted(claim) => claim,
        ClaimAnswer::Refused(refusal) => panic!("{key} at {now}: {refusal:?}"),
    }
}
