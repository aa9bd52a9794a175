//! Calls with hardly any time: they end, and what they say is true.

use std::time::Duration;

use claimant_core::{
    BatchedClaim, Call, Claim, ClaimAnswer, Meter, RecordId, Renewed, Settled, Status, Store, StoreError,
    StoreErrorKind,
};

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{fresh_id, granted, record, renewal, request, settle, settlement, time};
use crate::script::{copy, done, no_answer};

/// How many keys go in one request.
const COMPANY: usize = 30;

/// From none at all to what some stores need for an answer.
const TIMES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_micros(200),
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(10),
];

pub(super) async fn check(examiner: &mut Examiner) {
    let store = examiner.store.clone();
    for within in TIMES {
        examiner.hold(11, format!("claims within {within:?}"), claims(store.as_ref(), within).await);
        examiner.hold(11, format!("settlements within {within:?}"), settlements(store.as_ref(), within).await);
        examiner.hold(11, format!("renewals and looks within {within:?}"), others(store.as_ref(), within).await);
    }
    // A store that reckons when the time is over can overflow.
    examiner.hold(11, "calls with all the time there is", all_the_time(store.as_ref()).await);
}

async fn all_the_time(store: &dyn Store) -> Finding {
    let meter = Meter::default();
    let call = Call { within: Duration::MAX, meter: &meter };
    let answer = store.claim(&request(&fresh_id("for ever"), 0), call).await.map_err(|e| no_answer(&e))?;
    let ClaimAnswer::Granted(claim) = answer else { return Err("a fresh key was refused".into()) };
    match store.settle(claim, &settlement(done(), 5), call).await {
        Settled::Done => Ok(()),
        other => Err(format!("a settlement that must be done is {other:?}")),
    }
}

/// The error of a call that had no time: it says so, and claims to know nothing.
fn honest(error: &StoreError) -> Finding {
    ensure(error.kind() == StoreErrorKind::Unreachable, || format!("the error is {:?}: {error}", error.kind()))
}

async fn claims(store: &dyn Store, within: Duration) -> Finding {
    let meter = Meter::default();
    let call = Call { within, meter: &meter };
    let requests: Vec<_> = (0..=COMPANY).map(|_| request(&fresh_id("hurry"), 0)).collect();
    let Some((alone, company)) = requests.split_first() else { return Ok(()) };
    let mut answers = vec![store.claim(alone, call).await.map(BatchedClaim::Answered)];
    answers.extend(store.claim_all(company, call).await);
    ensure(answers.len() == requests.len(), || format!("{} answers to {COMPANY} claims", answers.len() - 1))?;
    for (answer, request) in answers.into_iter().zip(&requests) {
        match answer {
            Ok(BatchedClaim::Answered(ClaimAnswer::Granted(claim))) => is_held(store, &claim).await?,
            Ok(BatchedClaim::Answered(ClaimAnswer::Refused(why))) => {
                return Err(format!("a fresh key was refused: {why:?}"));
            }
            Ok(BatchedClaim::ClaimAlone) => {}
            Err(error) => honest(&error)?,
        }
        // Whether it applied or not, its owner gets it, as the first claim of the key.
        let claim = granted(store, request).await?;
        ensure(claim.fence.get() == 1, || format!("tried again, the claim has fence {}", claim.fence))?;
        is_held(store, &claim).await?;
    }
    Ok(())
}

async fn is_held(store: &dyn Store, claim: &Claim) -> Finding {
    let record = record(store, &claim.id).await?;
    let so = record.owner == claim.owner && record.fence == claim.fence && record.status == Status::InProgress;
    ensure(so, || format!("a claim was granted, and the record is {record:?}"))
}

async fn settlements(store: &dyn Store, within: Duration) -> Finding {
    let meter = Meter::default();
    let call = Call { within, meter: &meter };
    let mut claims = Vec::new();
    for _ in 0..=COMPANY {
        claims.push(granted(store, &request(&fresh_id("hurry"), 0)).await?);
    }
    let Some((alone, company)) = claims.split_first() else { return Ok(()) };
    let company = company.iter().map(|claim| (copy(claim), settlement(done(), 5))).collect();
    let mut all = vec![store.settle(copy(alone), &settlement(done(), 5), call).await];
    all.extend(store.settle_all(company, call).await);
    ensure(all.len() == claims.len(), || format!("{} answers to {COMPANY} settlements", all.len() - 1))?;
    for (settled, claim) in all.into_iter().zip(&claims) {
        match settled {
            Settled::Done => {
                let status = record(store, &claim.id).await?.status;
                ensure(status == Status::Completed, || format!("done, it says, and the record is {status}"))?;
            }
            Settled::Unknown { claim: again, error } => {
                honest(&error)?;
                is_given_back(again, claim)?;
            }
            other => return Err(format!("a settlement of a claim that is held is {other:?}")),
        }
        settle(store, claim, done(), 5).await?;
    }
    Ok(())
}

/// What was not settled for certain can be settled again: without its claim, no caller could.
fn is_given_back(again: Option<Claim>, claim: &Claim) -> Finding {
    let again = again.ok_or("a settlement of which nothing is known keeps its claim")?;
    let same = again.id == claim.id && again.owner == claim.owner && again.fence == claim.fence;
    ensure(same, || format!("the claim given back is {again:?}, not {claim:?}"))
}

async fn others(store: &dyn Store, within: Duration) -> Finding {
    let meter = Meter::default();
    let call = Call { within, meter: &meter };
    let mut claim = granted(store, &request(&fresh_id("hurry"), 0)).await?;
    match store.renew(&mut claim, renewal(5, 5_000), call).await {
        Ok(Renewed::Held) => {
            ensure(claim.lease_until == time(5_000), || format!("the lease ends at {}", claim.lease_until))?;
            ensure(record(store, &claim.id).await?.lease_until == time(5_000), || {
                "the record's lease is shorter".into()
            })?;
        }
        Ok(Renewed::Lost) => return Err("a claim that is held was lost".into()),
        Err(error) => honest(&error)?,
    }
    looks(store, &claim.id, call).await
}

async fn looks(store: &dyn Store, id: &RecordId, call: Call<'_>) -> Finding {
    match store.get(id, call).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err("a record that is there was not seen".into()),
        Err(error) => honest(&error),
    }
}
