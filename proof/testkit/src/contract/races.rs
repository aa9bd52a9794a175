//! Many at once: of all that want one key, one gets it.

use std::collections::BTreeSet;
use std::sync::Arc;

use claimant_core::protocol::{ClaimRequest, Ending};
use claimant_core::{Claim, ClaimAnswer, RecordId, Status, Store};
use futures_util::future::join_all;

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{answer, answers, fresh_id, granted, record, renewed, request, settle, settled, time};
use crate::script::{LEASE_MS, SKEW_MS, WINDOW_MS, copy, done, failed};

/// How many claimants race for one key.
const RACERS: usize = 50;

/// How often a race of few is run: which of them wins is chance.
const ROUNDS: usize = 8;

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
        for company in [1, 5] {
            let name = format!("{RACERS} claimants of a {state} key, {company} keys a call: one winner");
            let ending = ending.clone();
            let finding = async {
                let ids: Vec<_> = (0..company).map(|_| fresh_id("race")).collect();
                for id in ids.iter().filter(|_| fence > 1) {
                    let claim = granted(store.as_ref(), &request(id, 0)).await?;
                    if let Some(ending) = &ending {
                        settle(store.as_ref(), &claim, ending.clone(), 5).await?;
                    }
                }
                one_winner_each(&store, &ids, at, fence).await
            };
            examiner.hold(2, name, finding.await);
        }
    }
    examiner.hold(5, "the winners of five races have five fences", five_fences(&store).await);
    for round in 1..=ROUNDS {
        examiner.hold(2, format!("two endings of one claim, round {round}: one is written"), two_endings(&store).await);
        let name = format!("a completion against a takeover, round {round}: one of them");
        examiner.hold(3, name, against_takeover(&store, false).await);
        let name = format!("a renewal against a takeover, round {round}: one of them");
        examiner.hold(3, name, against_takeover(&store, true).await);
    }
    examiner.hold(7, "of renewals at once the longest lasts", renewals_at_once(&store).await);
}

/// Every racer claims all of `ids`, in one call where they are several; each key has one winner, with this fence.
async fn one_winner_each(store: &Arc<dyn Store>, ids: &[RecordId], at: u64, fence: u64) -> Finding {
    let racers: Vec<_> = (0..RACERS)
        .map(|_| {
            let (store, requests) = (Arc::clone(store), ids.iter().map(|id| request(id, at)).collect::<Vec<_>>());
            tokio::spawn(async move { claim_together(store.as_ref(), &requests).await })
        })
        .collect();
    let mut winners: Vec<Claim> = Vec::new();
    for racer in racers {
        for answer in racer.await.map_err(|e| format!("a call panicked: {e}"))?? {
            match answer {
                ClaimAnswer::Granted(claim) => winners.push(claim),
                ClaimAnswer::Refused(why) => {
                    ensure(format!("{why:?}").starts_with("Busy"), || format!("a loser was refused with {why:?}"))?;
                }
            }
        }
    }
    for id in ids {
        let won: Vec<_> = winners.iter().filter(|claim| claim.id == *id).collect();
        let [winner] = won.as_slice() else { return Err(format!("{} of {RACERS} claims were granted", won.len())) };
        ensure(winner.fence.get() == fence, || format!("the winner's fence is {}, not {fence}", winner.fence))?;
        let record = record(store.as_ref(), id).await?;
        ensure(record.owner == winner.owner, || "the record shows another owner than the winner".into())?;
    }
    Ok(())
}

async fn claim_together(store: &dyn Store, requests: &[ClaimRequest]) -> Result<Vec<ClaimAnswer>, String> {
    match requests {
        [one] => Ok(vec![answer(store, one).await?]),
        many => answers(store, many).await,
    }
}

async fn five_fences(store: &Arc<dyn Store>) -> Finding {
    let id = fresh_id("fences");
    let mut fences = BTreeSet::new();
    for round in 0..5 {
        let requests: Vec<_> = (0..RACERS).map(|_| request(&id, round)).collect();
        let claims = join_all(requests.iter().map(|request| answer(store.as_ref(), request))).await;
        for claim in claims {
            if let ClaimAnswer::Granted(claim) = claim? {
                fences.insert(claim.fence.get());
                settle(store.as_ref(), &claim, failed(), round).await?;
            }
        }
    }
    ensure(fences == BTreeSet::from([1, 2, 3, 4, 5]), || format!("fences {fences:?}"))
}

/// Two endings of one claim at once: one is done and the record shows it, the other is lost.
async fn two_endings(store: &Arc<dyn Store>) -> Finding {
    let id = fresh_id("endings");
    let claim = granted(store.as_ref(), &request(&id, 0)).await?;
    let end = |ending| {
        let (store, claim) = (Arc::clone(store), copy(&claim));
        tokio::spawn(async move { settled(store.as_ref(), &claim, ending, 5).await })
    };
    let (completed, failed) = (end(done()), end(failed()));
    let panicked = |e: tokio::task::JoinError| format!("a call panicked: {e}");
    let (completed, failed) = (completed.await.map_err(panicked)??, failed.await.map_err(panicked)??);
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
    let panicked = |e: tokio::task::JoinError| format!("a call panicked: {e}");
    let taken = matches!(taking.await.map_err(panicked)??, ClaimAnswer::Granted(_));
    let kept = ending.await.map_err(panicked)??;
    let record = record(store.as_ref(), &id).await?;
    ensure(taken != kept && (record.owner == claim.owner) == kept, || {
        format!("taken over: {taken}, kept: {kept}, and the record is {record:?}")
    })
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
