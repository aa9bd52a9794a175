//! Many at once: of all that want one key, one gets it.

use std::sync::Arc;

use claimant_core::protocol::Ending;
use claimant_core::{Claim, ClaimAnswer, RecordId, Status, Store};
use futures_util::future::join_all;
use tokio::task::JoinHandle;

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{
    answer, answers, fresh_id, granted, record, renewed, request, settle, settled, settled_together, time,
};
use crate::script::{LEASE_MS, SKEW_MS, WINDOW_MS, copy, done, failed};

/// How many claimants race for one key.
const RACERS: usize = 50;

/// How often a race of few is run: which of them wins is chance.
const ROUNDS: usize = 8;

/// How many claims one call completes while their keys are taken over.
const BATCH: usize = 8;

/// When a lease that began at 0 is over.
const OVER_MS: u64 = LEASE_MS + SKEW_MS + 1;

pub(super) async fn check(examiner: &mut Examiner) {
    let store = examiner.store.clone();
    for (state, ending, at, fence) in [
        ("fresh", None, 0, 1),
        ("failed", Some(failed()), 10, 2),
        ("released", Some(Ending::Released), 10, 2),
        ("abandoned", None, OVER_MS, 2),
        ("completed but past its window", Some(done()), 2 * WINDOW_MS, 2),
    ] {
        for keys in [1, 5] {
            let name = format!("{RACERS} claimants, every second in batches, of {keys} {state} keys: one winner each");
            let ending = ending.clone();
            let finding = async {
                let ids: Vec<_> = (0..keys).map(|_| fresh_id("race")).collect();
                for id in ids.iter().filter(|_| fence > 1) {
                    let claim = granted(store.as_ref(), &request(id, 0)).await?;
                    if let Some(ending) = &ending {
                        settle(store.as_ref(), &claim, ending.clone(), 5).await?;
                    }
                }
                one_winner_each(&store, &ids, at).await
            };
            hold_fences(examiner, &name, finding.await, &vec![fence; keys]);
        }
    }
    hold_fences(
        examiner,
        "five races, one after the other: one winner each",
        five_races(&store).await,
        &[1, 2, 3, 4, 5],
    );
    for round in 1..=ROUNDS {
        for batched in [false, true] {
            let company = if batched { ", batched" } else { "" };
            let name = format!("two endings of one claim{company}, round {round}: one is written");
            examiner.hold(2, name, two_endings(&store, batched).await);
        }
        let name = format!("a completion against a takeover, round {round}: one of them");
        examiner.hold(3, name, against_takeover(&store, false).await);
        let name = format!("{BATCH} completions in one call against takeovers, round {round}: one of each two");
        examiner.hold(3, name, batch_against_takeovers(&store, round).await);
        let name = format!("a renewal against a takeover, round {round}: one of them");
        examiner.hold(3, name, against_takeover(&store, true).await);
    }
    examiner.hold(7, "of renewals at once the longest lasts", renewals_at_once(&store).await);
}

/// A race is held to clause 2 and, where it has its winners, their fences to clause 5.
fn hold_fences(examiner: &mut Examiner, race: &str, seen: Result<Vec<u64>, String>, wanted: &[u64]) {
    match seen {
        Err(seen) => examiner.hold(2, race, Err(seen)),
        Ok(seen) => {
            examiner.hold(2, race, Ok(()));
            let finding = ensure(seen == wanted, || format!("the fences are {seen:?}, not {wanted:?}"));
            examiner.hold(5, format!("{race}, and its fence"), finding);
        }
    }
}

/// Every second racer claims all of `ids` and a fresh key in one call, and each of the others one of them by itself; each key has one
/// winner. Returns their fences.
async fn one_winner_each(store: &Arc<dyn Store>, ids: &[RecordId], at: u64) -> Result<Vec<u64>, String> {
    let racers: Vec<_> = (0..RACERS)
        .map(|n| {
            let store = Arc::clone(store);
            if n % 2 == 0 {
                let request = request(&ids[n / 2 % ids.len()], at);
                return tokio::spawn(async move { Ok(vec![answer(store.as_ref(), &request).await?]) });
            }
            let beside = fresh_id("beside");
            let requests: Vec<_> = ids.iter().chain([&beside]).map(|id| request(id, at)).collect();
            tokio::spawn(async move {
                let mut answers = answers(store.as_ref(), &requests).await?;
                match answers.pop() {
                    Some(ClaimAnswer::Granted(claim)) if claim.id == beside => Ok(answers),
                    other => Err(format!("beside contended keys, a fresh one's answer is {other:?}")),
                }
            })
        })
        .collect();
    let mut winners: Vec<Claim> = Vec::new();
    for racer in racers {
        for answer in returned(racer).await? {
            match answer {
                ClaimAnswer::Granted(claim) => winners.push(claim),
                ClaimAnswer::Refused(why) => {
                    ensure(format!("{why:?}").starts_with("Busy"), || format!("a loser was refused with {why:?}"))?;
                }
            }
        }
    }
    let mut fences = Vec::with_capacity(ids.len());
    for id in ids {
        let won: Vec<_> = winners.iter().filter(|claim| claim.id == *id).collect();
        let [winner] = won.as_slice() else { return Err(format!("{} of {RACERS} claims were granted", won.len())) };
        let record = record(store.as_ref(), id).await?;
        ensure(record.owner == winner.owner, || "the record shows another owner than the winner".into())?;
        fences.push(winner.fence.get());
    }
    Ok(fences)
}

/// Each race is for the key that the winner before has failed. Returns the winners' fences.
async fn five_races(store: &Arc<dyn Store>) -> Result<Vec<u64>, String> {
    let id = fresh_id("fences");
    let mut fences = Vec::new();
    for round in 0..5 {
        let requests: Vec<_> = (0..RACERS).map(|_| request(&id, round)).collect();
        let mut winners = Vec::new();
        for answer in join_all(requests.iter().map(|request| answer(store.as_ref(), request))).await {
            if let ClaimAnswer::Granted(claim) = answer? {
                winners.push(claim);
            }
        }
        let [winner] = winners.as_slice() else {
            return Err(format!("{} of {RACERS} claims were granted", winners.len()));
        };
        fences.push(winner.fence.get());
        settle(store.as_ref(), winner, failed(), round).await?;
    }
    Ok(fences)
}

/// Two endings of one claim at once, each by itself or beside another key's: one is done and the record shows it, the other is lost.
async fn two_endings(store: &Arc<dyn Store>, batched: bool) -> Finding {
    let id = fresh_id("endings");
    let claim = granted(store.as_ref(), &request(&id, 0)).await?;
    let mut company = Vec::new();
    for _ in 0..if batched { 2 } else { 0 } {
        company.push(granted(store.as_ref(), &request(&fresh_id("beside"), 0)).await?);
    }
    let mut end = |ending: Ending| {
        let (store, claims) = (Arc::clone(store), [company.pop(), Some(copy(&claim))]);
        tokio::spawn(async move {
            let claims: Vec<_> = claims.into_iter().flatten().collect();
            if let [claim] = claims.as_slice() {
                return settled(store.as_ref(), claim, ending, 5).await;
            }
            let all = settled_together(store.as_ref(), claims, &ending, 5).await?;
            ensure(all[0], || "the other key's ending was lost".into())?;
            Ok(all[1])
        })
    };
    let (completed, failed) = (end(done()), end(failed()));
    let (completed, failed) = (returned(completed).await?, returned(failed).await?);
    let status = record(store.as_ref(), &id).await?.status;
    let wanted = if completed { Status::Completed } else { Status::Failed };
    ensure(completed != failed && status == wanted, || {
        format!("completed: {completed}, failed: {failed}, and the record is {status}")
    })
}

/// A late completion, or a late renewal, and a takeover at once: what succeeds is what the record shows.
async fn against_takeover(store: &Arc<dyn Store>, renews: bool) -> Finding {
    let id = fresh_id("takeover");
    let claim = granted(store.as_ref(), &request(&id, 0)).await?;
    let taking = {
        let (store, request) = (Arc::clone(store), request(&id, OVER_MS));
        tokio::spawn(async move { answer(store.as_ref(), &request).await })
    };
    let ending = {
        let (store, claim) = (Arc::clone(store), copy(&claim));
        tokio::spawn(async move {
            if renews {
                return Ok(renewed(store.as_ref(), &claim, OVER_MS, 9_000).await?.is_some());
            }
            settled(store.as_ref(), &claim, done(), OVER_MS).await
        })
    };
    let taken = matches!(returned(taking).await?, ClaimAnswer::Granted(_));
    let kept = returned(ending).await?;
    let record = record(store.as_ref(), &id).await?;
    ensure(taken != kept && (record.owner == claim.owner) == kept, || {
        format!("taken over: {taken}, kept: {kept}, and the record is {record:?}")
    })
}

/// As [`against_takeover`], of many claims that are completed in one call: each has its own rival, and one of the two succeeds.
async fn batch_against_takeovers(store: &Arc<dyn Store>, round: usize) -> Finding {
    let ids: Vec<_> = (0..BATCH).map(|_| fresh_id("takeover")).collect();
    let mut claims = Vec::new();
    for answer in answers(store.as_ref(), &ids.iter().map(|id| request(id, 0)).collect::<Vec<_>>()).await? {
        let ClaimAnswer::Granted(claim) = answer else { return Err("a fresh key was refused".into()) };
        claims.push(claim);
    }
    let take = || {
        let (store, requests) = (Arc::clone(store), ids.iter().map(|id| request(id, OVER_MS)).collect::<Vec<_>>());
        tokio::spawn(async move {
            if round.is_multiple_of(4) {
                return answers(store.as_ref(), &requests).await;
            }
            join_all(requests.iter().map(|request| answer(store.as_ref(), request))).await.into_iter().collect()
        })
    };
    let end = || {
        let (store, claims) = (Arc::clone(store), claims.iter().map(copy).collect());
        tokio::spawn(async move { settled_together(store.as_ref(), claims, &done(), OVER_MS).await })
    };
    // Which of them begins is chance, but for a moment.
    let (taking, ending) = if round.is_multiple_of(2) {
        let taking = take();
        (taking, end())
    } else {
        let ending = end();
        (take(), ending)
    };
    for ((taking, kept), claim) in returned(taking).await?.into_iter().zip(returned(ending).await?).zip(&claims) {
        let taken = matches!(taking, ClaimAnswer::Granted(_));
        let record = record(store.as_ref(), &claim.id).await?;
        ensure(taken != kept && (record.owner == claim.owner) == kept, || {
            format!("taken over: {taken}, kept: {kept}, and the record is {record:?}")
        })?;
    }
    Ok(())
}

/// What the task of a call returns.
async fn returned<T>(task: JoinHandle<Result<T, String>>) -> Result<T, String> {
    task.await.map_err(|e| format!("a call panicked: {e}"))?
}

async fn renewals_at_once(store: &Arc<dyn Store>) -> Finding {
    let id = fresh_id("renewals");
    let claim = granted(store.as_ref(), &request(&id, 0)).await?;
    // A few: an owner renews its lease again while an answer is late, and a store need not try for ever.
    let ends = [3_000, 3_900, 2_000];
    let renewals = join_all(ends.map(|until| renewed(store.as_ref(), &claim, 10, until))).await;
    for end in renewals {
        ensure(end?.is_some(), || "a renewal by the owner was lost".into())?;
    }
    let end = record(store.as_ref(), &id).await?.lease_until;
    ensure(end == time(3_900), || format!("the lease ends at {end}, not at {}", time(3_900)))
}
