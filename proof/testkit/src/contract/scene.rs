//! What most checks are made of: a fresh key, one request for it, one call.

use std::time::Duration;

use claimant_core::protocol::{Abandoned, ClaimPolicy, ClaimRequest, Conflicts, Ending, Likely, Renewal, Settlement};
use claimant_core::{
    BatchedClaim, Call, Claim, ClaimAnswer, ConsumerName, Fingerprint, Key, MessageId, Meter, OwnerToken, Record,
    RecordId, Renewed, Settled, Store, Timestamp,
};

use crate::clock::TEST_EPOCH;
use crate::player::Player;
use crate::script::{LEASE_MS, Step, WINDOW_MS, WITHIN, copy, no_answer, policy};

pub(super) fn consumer() -> ConsumerName {
    ConsumerName::new("contract").expect("it is a name")
}

pub(super) fn token() -> OwnerToken {
    OwnerToken::draw().expect("a test machine has random bytes")
}

/// A record id that no other check and no earlier run has used.
pub(super) fn fresh_id(name: &str) -> RecordId {
    let key = Key::new(format!("{name} {}", token().as_str())).expect("names of checks are short");
    RecordId::new(&consumer(), &key)
}

/// So many milliseconds after the epoch of tests.
pub(super) fn time(after: u64) -> Timestamp {
    TEST_EPOCH.plus(Duration::from_millis(after))
}

/// A claim of this record by a new owner.
pub(super) fn request(id: &RecordId, at: u64) -> ClaimRequest {
    ClaimRequest {
        id: id.clone(),
        owner: token(),
        message_id: MessageId::new("m1").expect("it is short"),
        fingerprint: Fingerprint::of_bytes(b"p1"),
        now: time(at),
        lease_until: time(at + LEASE_MS),
        policy: policy(Abandoned::Rerun, Conflicts::Reject),
        likely: Likely::New,
    }
}

/// A claim of this record that is like no other of a batch: of its own message, payload, times and policy, all by its number. What is
/// written of another one then shows.
pub(super) fn own_request(number: usize, id: &RecordId, at: u64) -> ClaimRequest {
    // OK because it is no wider.
    let after = number as u64;
    let abandoned = if number.is_multiple_of(2) { Abandoned::Park } else { Abandoned::Rerun };
    ClaimRequest {
        message_id: MessageId::new(format!("m{number}")).expect("it is short"),
        fingerprint: Fingerprint::of_bytes(format!("p{number}").as_bytes()),
        lease_until: time(at + 3 * after + LEASE_MS),
        policy: own_policy(number, abandoned),
        ..request(id, at + after)
    }
}

/// The policy of a batch's key with this number.
pub(super) fn own_policy(number: usize, abandoned: Abandoned) -> ClaimPolicy {
    // OK because it is no wider.
    let window = Duration::from_millis(WINDOW_MS) + Duration::from_secs(number as u64);
    ClaimPolicy { window, ..policy(abandoned, Conflicts::Reject) }
}

pub(super) fn settlement(ending: Ending, at: u64) -> Settlement {
    Settlement { ending, now: time(at), policy: policy(Abandoned::Rerun, Conflicts::Reject) }
}

pub(super) fn renewal(at: u64, until: u64) -> Renewal {
    Renewal { lease_until: time(until), now: time(at), policy: policy(Abandoned::Rerun, Conflicts::Reject) }
}

/// Time enough, counted nowhere.
pub(super) fn call(meter: &Meter) -> Call<'_> {
    Call { within: WITHIN, meter }
}

/// The answer to a claim.
pub(super) async fn answer(store: &dyn Store, request: &ClaimRequest) -> Result<ClaimAnswer, String> {
    store.claim(request, call(&Meter::default())).await.map_err(|e| no_answer(&e))
}

/// The claim that must be granted, for exactly what was asked.
pub(super) async fn granted(store: &dyn Store, request: &ClaimRequest) -> Result<Claim, String> {
    match answer(store, request).await? {
        ClaimAnswer::Granted(claim) if claim.id == request.id && claim.owner == request.owner => Ok(claim),
        ClaimAnswer::Granted(_) => Err("the claim granted is another one than was asked for".into()),
        ClaimAnswer::Refused(why) => Err(format!("a claim that must be granted was refused: {why:?}")),
    }
}

/// The answers to batched claims, each `None` followed up by itself as the engine does.
pub(super) async fn answers(store: &dyn Store, requests: &[ClaimRequest]) -> Result<Vec<ClaimAnswer>, String> {
    let given = store.claim_all(requests, call(&Meter::default())).await;
    if given.len() != requests.len() {
        return Err(format!("{} answers to {} requests", given.len(), requests.len()));
    }
    let mut all = Vec::with_capacity(given.len());
    for (given, request) in given.into_iter().zip(requests) {
        all.push(match given.map_err(|e| no_answer(&e))? {
            BatchedClaim::Answered(given) => given,
            BatchedClaim::ClaimAlone => answer(store, request).await?,
        });
    }
    Ok(all)
}

/// A settlement under a copy of the claim: whether it was done, or else lost.
pub(super) async fn settled(store: &dyn Store, claim: &Claim, ending: Ending, at: u64) -> Result<bool, String> {
    is_done(store.settle(copy(claim), &settlement(ending, at), call(&Meter::default())).await)
}

/// The same ending of all of these claims in one call: of each whether it was done, or else lost.
pub(super) async fn settled_together(
    store: &dyn Store,
    claims: Vec<Claim>,
    ending: &Ending,
    at: u64,
) -> Result<Vec<bool>, String> {
    let count = claims.len();
    let all = claims.into_iter().map(|claim| (claim, settlement(ending.clone(), at))).collect();
    let settled = store.settle_all(all, call(&Meter::default())).await;
    if settled.len() != count {
        return Err(format!("{} answers to {count} settlements", settled.len()));
    }
    settled.into_iter().map(is_done).collect()
}

fn is_done(settled: Settled) -> Result<bool, String> {
    match settled {
        Settled::Done => Ok(true),
        Settled::Lost => Ok(false),
        Settled::Unknown { error, .. } => Err(no_answer(&error)),
        other => Err(format!("without a transaction, a settlement is {other:?}")),
    }
}

/// A settlement that must be done.
pub(super) async fn settle(store: &dyn Store, claim: &Claim, ending: Ending, at: u64) -> Result<(), String> {
    let done = settled(store, claim, ending, at).await?;
    if done { Ok(()) } else { Err("a settlement that must be done was lost".into()) }
}

/// A renewal under a copy of the claim: the end of the lease as the claim then has it, or `None` where it was lost.
pub(super) async fn renewed(
    store: &dyn Store,
    claim: &Claim,
    at: u64,
    until: u64,
) -> Result<Option<Timestamp>, String> {
    let mut claim = copy(claim);
    let renewed = store.renew(&mut claim, renewal(at, until), call(&Meter::default())).await;
    match renewed.map_err(|e| no_answer(&e))? {
        Renewed::Held => Ok(Some(claim.lease_until)),
        Renewed::Lost => Ok(None),
    }
}

pub(super) async fn look(store: &dyn Store, id: &RecordId) -> Result<Option<Record>, String> {
    store.get(id, call(&Meter::default())).await.map_err(|e| no_answer(&e))
}

/// The record that must be there.
pub(super) async fn record(store: &dyn Store, id: &RecordId) -> Result<Record, String> {
    look(store, id).await?.ok_or_else(|| "there is no record".into())
}

/// The lines of a script on a fresh key.
pub(super) async fn play(store: &dyn Store, name: &str, steps: &[Step], batched: bool) -> Result<Vec<String>, String> {
    Player::new(store, fresh_id(name), batched).play(steps).await
}
