//! Claims of keys, and what is asked of a store. Times are milliseconds after [`TEST_EPOCH`].

use std::sync::LazyLock;
use std::time::Duration;

use claimant_core::protocol::{ClaimPolicy, ClaimRequest, Ending, Likely, Renewal, Settlement};
use claimant_core::{
    Call, Claim, ClaimAnswer, ConsumerName, Fingerprint, Key, MessageId, Meter, OwnerToken, RecordId, Store, Timestamp,
};
use claimant_testkit::clock::TEST_EPOCH;

/// Enough for any call that gets its answer; what takes longer has failed.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

/// The deduplication window.
pub(crate) const WINDOW_S: u64 = 60;

/// What was asked for in all tests: nothing is checked by it but where a test makes its own.
pub(crate) static METER: LazyLock<Meter> = LazyLock::new(Meter::default);

pub(crate) fn call() -> Call<'static> {
    Call { within: WITHIN, meter: &METER }
}

pub(crate) fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(TEST_EPOCH.as_millis() + ms)
}

pub(crate) fn id(key: &str) -> RecordId {
    RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new(key).unwrap())
}

fn policy() -> ClaimPolicy {
    ClaimPolicy { window: Duration::from_secs(WINDOW_S), ..ClaimPolicy::default() }
}

/// A claim with a lease of a second.
pub(crate) fn request(key: &str, now: u64) -> ClaimRequest {
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

pub(crate) fn renewal(now: u64, until: u64) -> Renewal {
    Renewal { lease_until: at(until), now: at(now), policy: policy() }
}

pub(crate) fn ending(ending: Ending) -> Settlement {
    Settlement { ending, now: at(500), policy: policy() }
}

pub(crate) fn failed() -> Settlement {
    ending(Ending::Failed { error: "no luck".into() })
}

pub(crate) async fn granted(store: &dyn Store, key: &str, now: u64) -> Claim {
    taken(store, &request(key, now)).await
}

pub(crate) async fn taken(store: &dyn Store, request: &ClaimRequest) -> Claim {
    match store.claim(request, call()).await.unwrap() {
        ClaimAnswer::Granted(claim) => claim,
        ClaimAnswer::Refused(refusal) => panic!("{request:?}: {refusal:?}"),
    }
}
