//! Many keys in one call.

use std::collections::HashSet;
use std::sync::Arc;

use claimant_core::protocol::{Abandoned, ClaimRequest, Ending, Likely, Refusal, Settlement};
use claimant_core::{Claim, ClaimAnswer, MemoryStore, Meter, Settled, Status, Store};

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{
    answers, call, fresh_id, granted, look, own_policy, own_request, record, request, settle, settlement, time,
};
use crate::script::{LEASE_MS, SKEW_MS, copy, endings, failed};

/// When all leases that began at 0 are over, in a batch whose keys have longer and longer ones.
const LATER_MS: u64 = 2 * (LEASE_MS + SKEW_MS);

/// Around what stores take in one request, and the largest batch of SQS's event source mapping but one.
const COUNTS: [usize; 6] = [2, 10, 25, 26, 101, 1_000];

pub(super) async fn check(examiner: &mut Examiner) {
    let store = examiner.store.clone();
    examiner.hold(1, "no keys, no answers", none(store.as_ref()).await);
    for count in COUNTS {
        examiner.hold(1, format!("{count} fresh keys in one call"), fresh(store.as_ref(), count).await);
    }
    examiner.hold(1, "records of every kind in one call", mixed(store.as_ref()).await);
    examiner.hold(1, "endings of every kind in one call", mixed_endings(store.as_ref()).await);
    for count in [2, 26] {
        examiner.hold(2, format!("one key {count} times in one call"), repeated(store.as_ref(), count).await);
    }
    let name = "two calls with the same keys, in opposite orders";
    examiner.hold(2, name, crossing(&store).await);
}

async fn none(store: &dyn Store) -> Finding {
    let (claims, settlements) = (
        store.claim_all(&[], call(&Meter::default())).await.len(),
        store.settle_all(Vec::new(), call(&Meter::default())).await.len(),
    );
    ensure((claims, settlements) == (0, 0), || format!("{claims} and {settlements} answers"))?;
    let absent = look(store, &fresh_id("absent")).await?;
    ensure(absent.is_none(), || format!("a key without a record has {absent:?}"))
}

/// Claimed, completed, and claimed again: one answer for each, in their order, and each with its own values.
async fn fresh(store: &dyn Store, count: usize) -> Finding {
    // Few results for many keys: a store may end those with the same values in one step.
    let result = |n: usize| format!("[{}]", n % 5);
    let requests: Vec<_> = (0..count).map(|n| own_request(n, &fresh_id("many"), 0)).collect();
    let mut claims: Vec<Claim> = Vec::with_capacity(count);
    for (answer, request) in answers(store, &requests).await?.into_iter().zip(&requests) {
        match answer {
            ClaimAnswer::Granted(claim)
                if (&claim.id, &claim.owner, claim.lease_until)
                    == (&request.id, &request.owner, request.lease_until) =>
            {
                claims.push(claim);
            }
            other => return Err(format!("a fresh key's answer is {other:?}")),
        }
    }
    let completed = |(n, claim)| (copy(claim), Ending::Completed { result: Some(result(n)) });
    all_done(store, claims.iter().enumerate().map(completed).collect()).await?;
    for n in (0..count).step_by(count.div_ceil(10)).chain([count - 1]) {
        let (record, request) = (record(store, &requests[n].id).await?, &requests[n]);
        let own = record.owner == request.owner
            && record.message_id == request.message_id
            && record.fingerprint == request.fingerprint
            && (record.created_at, record.lease_until) == (request.now, request.lease_until);
        ensure(own && record.status == Status::Completed, || format!("the record of key {n} is {record:?}"))?;
    }
    let again: Vec<_> = requests.iter().enumerate().map(|(n, first)| own_request(n, &first.id, 10)).collect();
    for (n, answer) in answers(store, &again).await?.into_iter().enumerate() {
        let (seen, wanted) = (format!("{answer:?}"), Refusal::Completed { result: Some(result(n)) });
        let wanted = format!("{:?}", ClaimAnswer::Refused(wanted));
        ensure(seen == wanted, || format!("the answer of completed key {n} is {seen}, not {wanted}"))?;
    }
    Ok(())
}

async fn all_done(store: &dyn Store, endings: Vec<(Claim, Ending)>) -> Finding {
    let count = endings.len();
    let all = endings.into_iter().map(|(claim, ending)| (claim, settlement(ending, 5))).collect();
    let settled = store.settle_all(all, call(&Meter::default())).await;
    ensure(settled.len() == count, || format!("{} answers to {count} settlements", settled.len()))?;
    match settled.into_iter().find(|settled| !matches!(settled, Settled::Done)) {
        None => Ok(()),
        Some(other) => Err(format!("a settlement that must be done is {other:?}")),
    }
}

/// The answers to a batch in which records of every kind stand among fresh keys are those of the reference store.
async fn mixed(store: &dyn Store) -> Finding {
    let reference = MemoryStore::new();
    let mut requests = Vec::new();
    for n in 0..40 {
        let first = own_request(n, &fresh_id("mixed"), 0);
        for store in [store, &reference] {
            // Every seventh is fresh, and every seventh abandoned; the others ended.
            if n % 7 == 0 {
                continue;
            }
            let claim = granted(store, &first).await?;
            if n % 7 < 6 {
                settle(store, &claim, worded(endings()[n % 7 - 1].clone(), n), 50).await?;
            }
        }
        let mut next = own_request(n, &first.id, LATER_MS);
        next.likely = [Likely::New, Likely::Known, Likely::Done][n % 3];
        requests.push(next);
    }
    let (wanted, seen) = (answers(&reference, &requests).await?, answers(store, &requests).await?);
    for (n, (wanted, seen)) in wanted.iter().zip(&seen).enumerate() {
        let (wanted, seen) = (format!("{wanted:?}"), format!("{seen:?}"));
        ensure(wanted == seen, || format!("answer {n} is {seen}, not {wanted}"))?;
    }
    same_records(store, &reference, requests.iter().map(|request| &request.id)).await
}

/// The ending with a text of its own, where it has one.
fn worded(ending: Ending, number: usize) -> Ending {
    let error = format!("error {number}");
    match ending {
        Ending::Completed { .. } => Ending::Completed { result: Some(format!("[{number}]")) },
        Ending::Failed { .. } => Ending::Failed { error },
        Ending::Rejected { .. } => Ending::Rejected { error },
        Ending::Parked { .. } => Ending::Parked { error },
        other => other,
    }
}

/// Endings of every kind, each with values of its own, and stale ones among them.
async fn mixed_endings(store: &dyn Store) -> Finding {
    let reference = MemoryStore::new();
    let mut all = Vec::new();
    for n in 0..40 {
        let first = own_request(n, &fresh_id("mixed"), 0);
        let taking = ClaimRequest { policy: own_policy(n, Abandoned::Rerun), ..own_request(n, &first.id, LATER_MS) };
        let mut claims = Vec::new();
        for store in [store, &reference] {
            claims.push(granted(store, &first).await?);
            if n % 6 == 5 {
                let _taken = granted(store, &taking).await?;
            }
        }
        let ending = worded(endings()[n % 5].clone(), n);
        let policy = own_policy(n, Abandoned::Rerun);
        let settlement = Settlement { policy, ..settlement(ending, LATER_MS + n as u64) };
        all.extend(claims.pop().map(|claim| (claim, settlement)));
    }
    let copies = all.iter().map(|(claim, settlement)| (copy(claim), settlement.clone())).collect();
    let wanted = format!("{:?}", reference.settle_all(copies, call(&Meter::default())).await);
    let copies = all.iter().map(|(claim, settlement)| (copy(claim), settlement.clone())).collect();
    let seen = format!("{:?}", store.settle_all(copies, call(&Meter::default())).await);
    ensure(wanted == seen, || format!("expected {wanted}, saw {seen}"))?;
    same_records(store, &reference, all.iter().map(|(claim, _)| &claim.id)).await
}

async fn same_records(
    store: &dyn Store,
    reference: &dyn Store,
    ids: impl Iterator<Item = &claimant_core::RecordId>,
) -> Finding {
    for (n, id) in ids.enumerate() {
        let (wanted, seen) = (look(reference, id).await?, look(store, id).await?);
        ensure(wanted == seen, || format!("record {n} is {seen:?}, not {wanted:?}"))?;
    }
    Ok(())
}

/// One key several times in one call, among others: one of its claims is granted, and no other key has to suffer.
async fn repeated(store: &dyn Store, count: usize) -> Finding {
    let (id, other) = (fresh_id("repeated"), fresh_id("other"));
    let mut requests: Vec<_> = (0..count).map(|_| request(&id, 0)).collect();
    requests.push(request(&other, 0));
    requests.push(request(&id, 0));
    let mut winners = HashSet::new();
    for answer in answers(store, &requests).await? {
        match answer {
            ClaimAnswer::Granted(claim) => ensure(winners.insert(claim.id), || "one key was granted twice".into())?,
            ClaimAnswer::Refused(why) => {
                ensure(format!("{why:?}").starts_with("Busy"), || format!("a copy was refused with {why:?}"))?;
            }
        }
    }
    ensure(winners == HashSet::from([id, other]), || format!("{} keys of 2 were granted", winners.len()))
}

/// Two calls for the same keys, of which one has them in the opposite order, as two instances with the same messages.
/// Locks taken in the order of the call would wait for each other.
async fn crossing(store: &Arc<dyn Store>) -> Finding {
    let ids: Vec<_> = (0..30).map(|_| fresh_id("crossing")).collect();
    for state in ["fresh", "failed"] {
        let at = u64::from(state == "failed") * 10;
        let tasks = [false, true].map(|backwards| {
            let (store, mut requests) = (Arc::clone(store), ids.iter().map(|id| request(id, at)).collect::<Vec<_>>());
            if backwards {
                requests.reverse();
            }
            tokio::spawn(async move { answers(store.as_ref(), &requests).await })
        });
        let mut winners = Vec::new();
        for task in tasks {
            for answer in task.await.map_err(|e| format!("a call panicked: {e}"))?? {
                if let ClaimAnswer::Granted(claim) = answer {
                    winners.push(claim);
                }
            }
        }
        let different: HashSet<_> = winners.iter().map(|claim| claim.id.clone()).collect();
        ensure(winners.len() == ids.len() && different.len() == ids.len(), || {
            format!("of {} {state} keys, {} were granted in {} claims", ids.len(), different.len(), winners.len())
        })?;
        all_done(store.as_ref(), winners.into_iter().map(|claim| (claim, failed())).collect()).await?;
    }
    let record = record(store.as_ref(), &ids[0]).await?;
    ensure(record.updated_at == time(5), || format!("the record is {record:?}"))
}
