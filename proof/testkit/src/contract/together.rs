//! Many claims completed in one transaction: clauses 18 and 19.

use std::time::Duration;

use claimant_core::protocol::Settlement;
use claimant_core::{BatchTransactional, Call, Claim, Meter, Settled, Status};
use tokio::time::timeout;

use super::effects::{Effects, are_there, wrote};
use super::examiner::{Examiner, Finding, ensure};
use super::scene::{call, fresh_id, granted, record, request, settle, settlement};
use crate::script::{LEASE_MS, SKEW_MS, copy, done, failed, no_answer};

/// How long a transaction may stay open.
const LASTS: Duration = Duration::from_secs(30);

/// When a lease that began at 0 is over.
const OVER_MS: u64 = LEASE_MS + SKEW_MS + 1;

/// When claims are completed.
const LATER_MS: u64 = OVER_MS + 10;

/// After how many microseconds a commit is dropped.
pub(super) const DROPPED_US: [u64; 8] = [0, 50, 100, 200, 500, 1_000, 2_000, 5_000];

pub(super) async fn check<S: BatchTransactional>(
    examiner: &mut Examiner,
    store: &S,
    effects: &impl Effects<S::Transaction>,
) {
    for count in [1, 2, 26] {
        examiner.hold(18, format!("{count} claims in one commit"), committed(store, effects, count).await);
    }
    for (way, rob) in [("taken over", true), ("settled before", false)] {
        for place in 0..3 {
            let name = format!("claim {} of 3 is {way}: none is completed", place + 1);
            examiner.hold(18, name, robbed(store, effects, place, rob).await);
        }
    }
    examiner.hold(18, "a transaction that is dropped", left(store, effects, false).await);
    examiner.hold(18, "a transaction that is rolled back", left(store, effects, true).await);
    examiner.hold(19, "what was committed is found out", found_done(store, effects).await);
    examiner.hold(19, "what was not committed is still held", found_open(store).await);
    for us in DROPPED_US {
        let name = format!("a commit that is dropped after {us} µs is found out, whichever way");
        examiner.hold(19, name, dropped(store, effects, Duration::from_micros(us)).await);
    }
}

async fn claims<S: BatchTransactional>(store: &S, count: usize) -> Result<Vec<Claim>, String> {
    let mut claims = Vec::new();
    for _ in 0..count {
        claims.push(granted(store, &request(&fresh_id("together"), 0)).await?);
    }
    Ok(claims)
}

fn completions(claims: &[Claim]) -> Vec<(Claim, Settlement)> {
    claims.iter().map(|claim| (copy(claim), settlement(done(), LATER_MS))).collect()
}

/// A transaction in which something was written under each of these claims.
async fn written<S: BatchTransactional>(
    store: &S,
    effects: &impl Effects<S::Transaction>,
    claims: &[Claim],
) -> Result<S::Transaction, String> {
    let mut transaction = store.begin(LASTS, call(&Meter::default())).await.map_err(|e| no_answer(&e))?;
    for text in texts(claims) {
        wrote(effects, &mut transaction, text).await?;
    }
    Ok(transaction)
}

/// What is written under each claim.
fn texts(claims: &[Claim]) -> impl Iterator<Item = &str> {
    claims.iter().map(|claim| claim.owner.as_str())
}

async fn commit<S: BatchTransactional>(
    store: &S,
    effects: &impl Effects<S::Transaction>,
    claims: &[Claim],
) -> Result<Vec<&'static str>, String> {
    let transaction = written(store, effects, claims).await?;
    let meter = Meter::default();
    answers(claims, store.commit(transaction, completions(claims), call(&meter)).await)
}

async fn resolve<S: BatchTransactional>(store: &S, claims: &[Claim]) -> Result<Vec<&'static str>, String> {
    let meter = Meter::default();
    answers(claims, store.resolve(completions(claims), call(&meter)).await)
}

/// The answers, each in a word, where there is one for each claim and it is about that.
fn answers(claims: &[Claim], settled: Vec<Settled>) -> Result<Vec<&'static str>, String> {
    ensure(settled.len() == claims.len(), || format!("{} answers for {} claims", settled.len(), claims.len()))?;
    let word = |(asked, settled): (&Claim, Settled)| match settled {
        Settled::Done => Ok("done"),
        Settled::Lost => Ok("lost"),
        Settled::Aborted { claim, .. } if claim.id == asked.id && claim.owner == asked.owner => Ok("aborted"),
        Settled::Aborted { .. } => Err("the claim that comes back is another one".to_owned()),
        Settled::Unknown { error, .. } => Err(no_answer(&error)),
        other => Err(format!("the answer is {other:?}")),
    };
    claims.iter().zip(settled).map(word).collect()
}

/// Whether each record is as the claim left it, or else completed by it.
async fn is_completed<S: BatchTransactional>(store: &S, claim: &Claim) -> Result<bool, String> {
    let record = record(store, &claim.id).await?;
    ensure(record.owner == claim.owner && record.fence == claim.fence, || format!("the record is {record:?}"))?;
    match record.status {
        Status::Completed => Ok(true),
        Status::InProgress => Ok(false),
        other => Err(format!("the record is {other}")),
    }
}

/// Each claim is held as if nothing had happened, and can be ended.
async fn all_held<S: BatchTransactional>(store: &S, claims: impl IntoIterator<Item = &Claim>) -> Finding {
    for claim in claims {
        ensure(!is_completed(store, claim).await?, || "the record is completed".into())?;
        settle(store, claim, failed(), LATER_MS).await?;
    }
    Ok(())
}

async fn committed<S: BatchTransactional>(store: &S, effects: &impl Effects<S::Transaction>, count: usize) -> Finding {
    let claims = claims(store, count).await?;
    let answers = commit(store, effects, &claims).await?;
    ensure(answers.iter().all(|answer| *answer == "done"), || format!("answered {answers:?}"))?;
    for claim in &claims {
        ensure(is_completed(store, claim).await?, || "the record is in progress".into())?;
    }
    are_there(effects, texts(&claims), 1).await
}

/// One of three claims is no longer held: the others are, and none is completed.
async fn robbed<S: BatchTransactional>(
    store: &S,
    effects: &impl Effects<S::Transaction>,
    place: usize,
    taken_over: bool,
) -> Finding {
    let claims = claims(store, 3).await?;
    if taken_over {
        drop(granted(store, &request(&claims[place].id, OVER_MS)).await?);
    } else {
        settle(store, &claims[place], failed(), 1).await?;
    }
    let before = record(store, &claims[place].id).await?;
    let answers = commit(store, effects, &claims).await?;
    are_there(effects, texts(&claims), 0).await?;
    let wanted: Vec<_> = (0..3).map(|n| if n == place { "lost" } else { "aborted" }).collect();
    ensure(answers == wanted, || format!("answered {answers:?}"))?;
    let after = record(store, &claims[place].id).await?;
    ensure(before == after, || format!("the record of the lost claim goes from {before:?} to {after:?}"))?;
    all_held(store, claims.iter().enumerate().filter(|(n, _)| *n != place).map(|(_, claim)| claim)).await
}

async fn left<S: BatchTransactional>(store: &S, effects: &impl Effects<S::Transaction>, rolled_back: bool) -> Finding {
    let claims = claims(store, 2).await?;
    let transaction = written(store, effects, &claims).await?;
    if rolled_back {
        let meter = Meter::default();
        let call: Call<'_> = call(&meter);
        store.roll_back(transaction, call).await;
    } else {
        drop(transaction);
    }
    all_held(store, &claims).await?;
    are_there(effects, texts(&claims), 0).await
}

async fn found_done<S: BatchTransactional>(store: &S, effects: &impl Effects<S::Transaction>) -> Finding {
    let claims = claims(store, 3).await?;
    commit(store, effects, &claims).await?;
    let found = resolve(store, &claims).await?;
    ensure(found == ["done"; 3], || format!("found {found:?}"))
}

async fn found_open<S: BatchTransactional>(store: &S) -> Finding {
    let claims = claims(store, 3).await?;
    drop(granted(store, &request(&claims[1].id, OVER_MS)).await?);
    let found = resolve(store, &claims).await?;
    ensure(found == ["aborted", "lost", "aborted"], || format!("found {found:?}"))?;
    all_held(store, [&claims[0], &claims[2]]).await
}

async fn dropped<S: BatchTransactional>(store: &S, effects: &impl Effects<S::Transaction>, after: Duration) -> Finding {
    let claims = claims(store, 3).await?;
    let transaction = written(store, effects, &claims).await?;
    let meter = Meter::default();
    let cut = timeout(after, store.commit(transaction, completions(&claims), call(&meter))).await;
    let found = resolve(store, &claims).await?;
    let all_done = found == ["done"; 3];
    ensure(all_done || found == ["aborted"; 3], || format!("found {found:?}"))?;
    let answered = cut.is_ok_and(|settled| settled.iter().all(|settled| matches!(settled, Settled::Done)));
    ensure(all_done || !answered, || "an answered commit is not there".into())?;
    are_there(effects, texts(&claims), usize::from(all_done)).await?;
    if !all_done {
        return all_held(store, &claims).await;
    }
    for claim in &claims {
        ensure(is_completed(store, claim).await?, || "found done, and not completed".into())?;
    }
    Ok(())
}
