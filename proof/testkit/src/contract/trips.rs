//! How many requests the common calls take.

use std::sync::Arc;

use claimant_core::protocol::{ClaimRequest, Likely};
use claimant_core::{BatchedClaim, Claim, ClaimAnswer, Meter, Renewed, Settled, Store};

use super::scene::{call, fresh_id, renewal, request, settlement};
use super::watched::{Late, Watched};
use crate::script::{LEASE_MS, SKEW_MS, copy, done, no_answer};

/// How many keys go in one batch.
const BATCH: usize = 25;

/// Requests to the store's server for each call, as its [`Meter`] counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trips {
    /// A claim of a key that has no record.
    pub fresh: u64,
    /// A claim of a completed key.
    pub duplicate: u64,
    /// A claim of a key whose owner's lease is over.
    pub takeover: u64,
    /// A renewal.
    pub renewal: u64,
    /// A completion.
    pub settle: u64,
    /// Claims of 25 fresh keys in one call.
    pub batch_claim: u64,
    /// Their 25 completions in one call.
    pub batch_settle: u64,
    /// Claims of 25 completed keys in one call.
    pub batch_duplicates: u64,
    /// Claims of 25 keys in one call that are most likely completed, of which 24 are, and one is fresh.
    pub batch_looks: u64,
    /// A claim of a key that is most likely completed, and is.
    pub look: u64,
}

/// Counts the requests of the common calls, each on keys of its own.
///
/// # Panics
/// When an answer is none that the contract allows.
pub async fn trips(store: Arc<dyn Store>) -> Trips {
    let watched = Watched::new(store, Late::default());
    let store: &dyn Store = &watched;
    let first = request(&fresh_id("trips"), 0);
    let (fresh, _) = granted(store, &first).await;
    let over = LEASE_MS + SKEW_MS + 1;
    let (takeover, mut claim) = granted(store, &known(request(&first.id, over))).await;
    let meter = Meter::default();
    let renewed = store.renew(&mut claim, renewal(over, over + 5_000), call(&meter)).await;
    assert!(matches!(renewed, Ok(Renewed::Held)), "a renewal came to {renewed:?}");
    let renewal = meter.usage().requests;
    let meter = Meter::default();
    let settled = store.settle(claim, &settlement(done(), over), call(&meter)).await;
    assert!(matches!(settled, Settled::Done), "a settlement came to {settled:?}");
    let settle = meter.usage().requests;
    let (duplicate, _) = claim_one(store, &request(&first.id, over + 1)).await;
    let requests: Vec<_> = (0..BATCH).map(|_| request(&fresh_id("trips"), 0)).collect();
    let (batch_claim, claims) = claim_all(store, &requests).await;
    let all: Vec<_> = claims.iter().map(|claim| (copy(claim), settlement(done(), 5))).collect();
    assert_eq!(all.len(), BATCH, "fresh keys were refused");
    let meter = Meter::default();
    let settled = store.settle_all(all, call(&meter)).await;
    assert!(settled.iter().all(|settled| matches!(settled, Settled::Done)), "settlements came to {settled:?}");
    let batch_settle = meter.usage().requests;
    let again: Vec<_> = requests.iter().map(|first| request(&first.id, 10)).collect();
    let (batch_duplicates, _) = claim_all(store, &again).await;
    let mut looks: Vec<_> = again.into_iter().map(|again| ClaimRequest { likely: Likely::Done, ..again }).collect();
    let (look, _) = claim_one(store, &looks[0]).await;
    looks[0].id = fresh_id("trips");
    let (batch_looks, claims) = claim_all(store, &looks).await;
    assert_eq!(claims.len(), 1, "the fresh key is granted, and no other");
    Trips {
        fresh,
        duplicate,
        takeover,
        renewal,
        settle,
        batch_claim,
        batch_settle,
        batch_duplicates,
        batch_looks,
        look,
    }
}

/// The request as the engine makes it for a key that has a record.
fn known(request: ClaimRequest) -> ClaimRequest {
    ClaimRequest { likely: Likely::Known, ..request }
}

/// The requests of a claim, and the claim if it was granted.
async fn claim_one(store: &dyn Store, request: &ClaimRequest) -> (u64, Option<Claim>) {
    let meter = Meter::default();
    let answer = store.claim(request, call(&meter)).await.unwrap_or_else(|e| panic!("{}", no_answer(&e)));
    let claim = match answer {
        ClaimAnswer::Granted(claim) => Some(claim),
        ClaimAnswer::Refused(_) => None,
    };
    (meter.usage().requests, claim)
}

async fn granted(store: &dyn Store, request: &ClaimRequest) -> (u64, Claim) {
    let (requests, claim) = claim_one(store, request).await;
    (requests, claim.expect("a key that is fresh, or whose lease is over, is granted"))
}

/// The requests of batched claims, with those that followed for what could not be told there.
async fn claim_all(store: &dyn Store, requests: &[ClaimRequest]) -> (u64, Vec<Claim>) {
    let meter = Meter::default();
    let mut claims = Vec::new();
    for (answer, request) in store.claim_all(requests, call(&meter)).await.into_iter().zip(requests) {
        let answer = match answer.unwrap_or_else(|e| panic!("{}", no_answer(&e))) {
            BatchedClaim::Answered(answer) => answer,
            BatchedClaim::ClaimAlone => {
                let alone = known(request.clone());
                store.claim(&alone, call(&meter)).await.unwrap_or_else(|e| panic!("{}", no_answer(&e)))
            }
        };
        if let ClaimAnswer::Granted(claim) = answer {
            claims.push(claim);
        }
    }
    (meter.usage().requests, claims)
}
