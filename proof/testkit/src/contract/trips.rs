//! How many requests the common calls take.

use std::sync::Arc;

use claimant_core::protocol::{ClaimRequest, Likely};
use claimant_core::{BatchedClaim, Claim, ClaimAnswer, Meter, Renewed, Settled, Store};

use super::examiner::ensure;
use super::scene::{call, fresh_id, renewal, request, settlement};
use super::watched::{Unanswered, Watched};
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
/// When an answer is none that the contract allows, or there is none.
pub async fn trips(store: Arc<dyn Store>) -> Trips {
    let unanswered = Unanswered::default();
    let counted = count(&Watched::new(store, unanswered.clone())).await;
    counted.unwrap_or_else(|seen| panic!("{}", unanswered.take().unwrap_or(seen)))
}

async fn count(store: &dyn Store) -> Result<Trips, String> {
    let first = request(&fresh_id("trips"), 0);
    let (fresh, _) = granted(store, &first).await?;
    let over = LEASE_MS + SKEW_MS + 1;
    let (takeover, mut claim) = granted(store, &known(request(&first.id, over))).await?;
    let meter = Meter::default();
    let renewed = store.renew(&mut claim, renewal(over, over + 5_000), call(&meter)).await;
    ensure(matches!(renewed, Ok(Renewed::Held)), || format!("a renewal came to {renewed:?}"))?;
    let renewal = meter.usage().requests;
    let meter = Meter::default();
    let settled = store.settle(claim, &settlement(done(), over), call(&meter)).await;
    ensure(matches!(settled, Settled::Done), || format!("a settlement came to {settled:?}"))?;
    let settle = meter.usage().requests;
    let (duplicate, _) = claim_one(store, &request(&first.id, over + 1)).await?;
    let requests: Vec<_> = (0..BATCH).map(|_| request(&fresh_id("trips"), 0)).collect();
    let (batch_claim, claims) = claim_all(store, &requests).await?;
    let all: Vec<_> = claims.iter().map(|claim| (copy(claim), settlement(done(), 5))).collect();
    ensure(all.len() == BATCH, || format!("of {BATCH} fresh keys, {} were granted", all.len()))?;
    let meter = Meter::default();
    let settled = store.settle_all(all, call(&meter)).await;
    let all_done = settled.iter().all(|settled| matches!(settled, Settled::Done));
    ensure(all_done, || format!("settlements came to {settled:?}"))?;
    let batch_settle = meter.usage().requests;
    let again: Vec<_> = requests.iter().map(|first| request(&first.id, 10)).collect();
    let (batch_duplicates, _) = claim_all(store, &again).await?;
    let mut looks: Vec<_> = again.into_iter().map(|again| ClaimRequest { likely: Likely::Done, ..again }).collect();
    let (look, _) = claim_one(store, &looks[0]).await?;
    looks[0].id = fresh_id("trips");
    let (batch_looks, claims) = claim_all(store, &looks).await?;
    ensure(claims.len() == 1, || format!("of one fresh key and completed ones, {} were granted", claims.len()))?;
    Ok(Trips {
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
    })
}

/// The request as the engine makes it for a key that has a record.
fn known(request: ClaimRequest) -> ClaimRequest {
    ClaimRequest { likely: Likely::Known, ..request }
}

/// The requests of a claim, and the claim if it was granted.
async fn claim_one(store: &dyn Store, request: &ClaimRequest) -> Result<(u64, Option<Claim>), String> {
    let meter = Meter::default();
    let claim = match store.claim(request, call(&meter)).await.map_err(|e| no_answer(&e))? {
        ClaimAnswer::Granted(claim) => Some(claim),
        ClaimAnswer::Refused(_) => None,
    };
    Ok((meter.usage().requests, claim))
}

async fn granted(store: &dyn Store, request: &ClaimRequest) -> Result<(u64, Claim), String> {
    let (requests, claim) = claim_one(store, request).await?;
    Ok((requests, claim.ok_or("a key was refused that is fresh, or whose lease is over")?))
}

/// The requests of batched claims, with those that followed for what could not be told there.
async fn claim_all(store: &dyn Store, requests: &[ClaimRequest]) -> Result<(u64, Vec<Claim>), String> {
    let meter = Meter::default();
    let mut claims = Vec::new();
    for (answer, request) in store.claim_all(requests, call(&meter)).await.into_iter().zip(requests) {
        let answer = match answer.map_err(|e| no_answer(&e))? {
            BatchedClaim::Answered(answer) => answer,
            BatchedClaim::ClaimAlone => {
                let alone = known(request.clone());
                store.claim(&alone, call(&meter)).await.map_err(|e| no_answer(&e))?
            }
        };
        if let ClaimAnswer::Granted(claim) = answer {
            claims.push(claim);
        }
    }
    Ok((meter.usage().requests, claims))
}
