//! How claims and settlements go on until their answer is clear: the same for every database.
//!
//! A statement writes only under its guard. Whatever did not write, or gave no answer, is resolved from the record as it
//! then stands, by the same pure functions that every store calls.

use std::collections::HashSet;
use std::time::Duration;

use claimant_core::protocol::{self, ClaimRequest, Decision, Renewal, SettleDecision, Settlement};
use claimant_core::{Call, Claim, ClaimAnswer, Record, RecordId, Renewed, Settled, StoreError, StoreErrorKind};
use futures_util::future::join_all;

use crate::record::{Seen, key};
use crate::session::Budget;
use crate::trouble::Trouble;

/// Records in one statement.
const BATCH_MAX: usize = 50;

/// How often a call is tried anew where the record changed in between, or where no answer came.
const ROUNDS_MAX: u32 = 4;

/// The base of the waits before a statement is tried again.
const RETRY_BASE_MS: u64 = 12;

/// The statements of one database. Each is one step: it applies as a whole or not at all.
pub(crate) trait Statements: Sync {
    /// Inserts those records whose ids have none, and shows what then is there, as far as the statement saw it.
    fn offer(
        &self,
        records: &[(&RecordId, Record)],
        budget: Budget<'_>,
    ) -> impl Future<Output = Result<Seen, Trouble>> + Send;

    /// Writes `next` where the record still has the status, owner, fence and lease of `seen`. Gives whether it did.
    fn replace(
        &self,
        id: &RecordId,
        seen: &Record,
        next: &Record,
        budget: Budget<'_>,
    ) -> impl Future<Output = Result<bool, Trouble>> + Send;

    /// Makes the lease of a claim longer where that is held and ends earlier. Gives whether it did.
    fn renew(
        &self,
        claim: &Claim,
        renewal: &Renewal,
        budget: Budget<'_>,
    ) -> impl Future<Output = Result<bool, Trouble>> + Send;

    /// Ends those claims, of different keys and in the order of their ids, that are held. Gives how many.
    fn end(
        &self,
        endings: &[&(Claim, Settlement)],
        budget: Budget<'_>,
    ) -> impl Future<Output = Result<usize, Trouble>> + Send;

    /// The records of these ids, as they are now.
    fn read(&self, ids: &[&RecordId], budget: Budget<'_>) -> impl Future<Output = Result<Seen, Trouble>> + Send;
}

/// What a claim is about to write over what it saw.
struct Wish {
    seen: Record,
    next: Record,
    taken_over: bool,
}

pub(crate) async fn claim(
    store: &impl Statements,
    request: &ClaimRequest,
    mut budget: Budget<'_>,
) -> Result<ClaimAnswer, StoreError> {
    let mut wish: Option<Wish> = None;
    let mut trouble = Trouble::new(StoreErrorKind::Throttled, "the record changed each time it was to be claimed");
    for round in 0..ROUNDS_MAX {
        let shown = match &wish {
            None => store.offer(&[(&request.id, protocol::fresh_claim(request))], budget).await,
            Some(wish) => match store.replace(&request.id, &wish.seen, &wish.next, budget).await {
                Ok(true) => Ok(Seen::from([(key(&request.id).to_vec(), wish.next.clone())])),
                Ok(false) => store.read(&[&request.id], budget).await,
                Err(trouble) => Err(trouble),
            },
        };
        let seen = match shown {
            Ok(mut seen) => seen.remove(key(&request.id)),
            Err(new) if new.is_final() || !wait(round, budget).await => return Err(new.into()),
            Err(new) => {
                (trouble, budget) = (new, budget.wary());
                continue;
            }
        };
        // Absent: deleted, or inserted by another one, in between.
        let Some(seen) = seen else {
            wish = None;
            continue;
        };
        wish = match protocol::decide(Some(&seen), request) {
            Decision::Held => return Ok(granted(request, &seen, wish.is_some_and(|wish| wish.taken_over))),
            Decision::Refuse(refusal) => return Ok(ClaimAnswer::Refused(refusal)),
            Decision::Grant { next, taken_over } => Some(Wish { seen, next, taken_over }),
            Decision::Park { next } => Some(Wish { seen, next, taken_over: false }),
        };
    }
    Err(trouble.into())
}

/// Claims keys in company: one statement for all that have no record. A key that has one and can be claimed all the same is
/// left to be claimed by itself, as is a key's second request, and everything where somebody's lock is in the way.
pub(crate) async fn claim_all(
    store: &impl Statements,
    requests: &[ClaimRequest],
    call: Call<'_>,
) -> Vec<Result<Option<ClaimAnswer>, StoreError>> {
    let budget = Budget::of(call);
    let mut named = HashSet::new();
    let mut together: Vec<usize> = (0..requests.len()).filter(|place| named.insert(&requests[*place].id)).collect();
    // In one order everywhere, so that two batches with the same keys do not wait for each other.
    together.sort_unstable_by_key(|place| &requests[*place].id);
    let mut answers: Vec<_> = requests.iter().map(|_| Ok(None)).collect();
    let chunks = together.chunks(BATCH_MAX).map(|places| async move {
        let fresh = |place: &usize| (&requests[*place].id, protocol::fresh_claim(&requests[*place]));
        (places, store.offer(&places.iter().map(fresh).collect::<Vec<_>>(), budget).await)
    });
    for (places, shown) in join_all(chunks).await {
        for place in places {
            answers[*place] = match &shown {
                Ok(seen) => Ok(in_company(&requests[*place], seen)),
                Err(trouble) if trouble.contended => Ok(None),
                Err(trouble) => Err(trouble.clone().into()),
            };
        }
    }
    answers
}

fn in_company(request: &ClaimRequest, seen: &Seen) -> Option<ClaimAnswer> {
    let record = seen.get(key(&request.id))?;
    match protocol::decide(Some(record), request) {
        Decision::Held => Some(granted(request, record, false)),
        Decision::Refuse(refusal) => Some(ClaimAnswer::Refused(refusal)),
        Decision::Grant { .. } | Decision::Park { .. } => None,
    }
}

pub(crate) async fn renew(
    store: &impl Statements,
    claim: &mut Claim,
    renewal: Renewal,
    mut budget: Budget<'_>,
) -> Result<Renewed, StoreError> {
    let mut trouble = None;
    for round in 0..ROUNDS_MAX {
        let seen = match store.renew(claim, &renewal, budget).await {
            Ok(true) => {
                claim.lease_until = renewal.lease_until;
                return Ok(Renewed::Held);
            }
            Ok(false) => store.read(&[&claim.id], budget).await,
            Err(new) => Err(new),
        };
        match seen.map(|mut seen| seen.remove(key(&claim.id))) {
            Ok(seen) => match (protocol::renew(seen.as_ref(), claim, &renewal), seen) {
                (SettleDecision::Already, Some(seen)) => {
                    claim.lease_until = seen.lease_until;
                    return Ok(Renewed::Held);
                }
                (SettleDecision::Write(_), _) => {}
                _ => return Ok(Renewed::Lost),
            },
            Err(new) if new.is_final() => return Err(new.into()),
            Err(new) => (trouble, budget) = (Some(new), budget.wary()),
        }
        if !wait(round, budget).await {
            break;
        }
    }
    Err(trouble.map_or_else(|| StoreError::no_answer(budget.left()), StoreError::from))
}

pub(crate) async fn settle(store: &impl Statements, ending: &(Claim, Settlement), mut budget: Budget<'_>) -> Settled {
    let (claim, settlement) = ending;
    let mut unknown = StoreError::no_answer(budget.left());
    for round in 0..ROUNDS_MAX {
        let seen = match store.end(&[ending], budget).await {
            Ok(1) => return Settled::Done,
            Ok(_) => store.read(&[&claim.id], budget).await,
            Err(trouble) => Err(trouble),
        };
        let seen = seen.map(|mut seen| seen.remove(key(&claim.id)));
        match seen.map(|seen| protocol::settle(seen.as_ref(), claim, settlement)) {
            Ok(SettleDecision::Already) => return Settled::Done,
            Ok(SettleDecision::Lost) => return Settled::Lost,
            Ok(SettleDecision::Write(_)) => {}
            // No try can mend these, and they say that nothing was written.
            Err(trouble) if trouble.is_final() => return Settled::Unknown(trouble.into()),
            // No answer: the next round finds the record as the lost write left it.
            Err(trouble) => (unknown, budget) = (trouble.into(), budget.wary()),
        }
        if !wait(round, budget).await {
            break;
        }
    }
    Settled::Unknown(unknown)
}

/// Ends claims in company; where not all of them were held, or no answer came, each is ended by itself, which tells.
pub(crate) async fn settle_all(
    store: &impl Statements,
    endings: Vec<(Claim, Settlement)>,
    call: Call<'_>,
) -> Vec<Settled> {
    let budget = Budget::of(call);
    let chunks = endings.chunks(BATCH_MAX).map(|chunk| async move {
        let mut together: Vec<&(Claim, Settlement)> = chunk.iter().collect();
        together.sort_unstable_by_key(|(claim, _)| &claim.id);
        match store.end(&together, budget).await {
            Ok(count) if count == chunk.len() => return chunk.iter().map(|_| Settled::Done).collect(),
            Err(trouble) if trouble.is_final() => {
                return chunk.iter().map(|_| Settled::Unknown(trouble.clone().into())).collect();
            }
            _ => {}
        }
        join_all(chunk.iter().map(|ending| settle(store, ending, budget))).await
    });
    join_all(chunks).await.into_iter().flatten().collect()
}

pub(crate) async fn look(
    store: &impl Statements,
    id: &RecordId,
    budget: Budget<'_>,
) -> Result<Option<Record>, StoreError> {
    Ok(store.read(&[id], budget).await?.remove(key(id)))
}

fn granted(request: &ClaimRequest, record: &Record, taken_over: bool) -> ClaimAnswer {
    ClaimAnswer::Granted(protocol::claim_of(request.id.clone(), record, taken_over))
}

/// Waits before the round after this one, doubling, and spread over its upper half by the clock's last digits. Gives whether
/// there is one.
async fn wait(round: u32, budget: Budget<'_>) -> bool {
    let left = budget.left();
    let full = RETRY_BASE_MS << round.min(8);
    let spread = u64::from(left.subsec_nanos()) % (full / 2 + 1);
    let wait = Duration::from_millis(full / 2 + spread);
    let again = round + 1 < ROUNDS_MAX && wait < left;
    if again {
        tokio::time::sleep(wait).await;
    }
    again
}
