//! What a handler wrote and the completion of its claim, in one transaction or not at all: clause 20.

use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Ending};
use claimant_core::{AnyTransaction, Call, Claim, ClaimAnswer, Meter, RecordId, Settled, Status, Transactional};
use tokio::time::timeout;

use super::effects::{BESIDE_OPEN, Effects, are_there, counted, wrote};
use super::examiner::{Examiner, Finding, ensure};
use super::scene::{call, fresh_id, granted, look, record, request, settlement, time};
use super::together::DROPPED_US;
use crate::script::{SKEW_MS, done, failed, no_answer, rejected};

/// How long a lease is here: a database may end a transaction that is open for longer.
const LASTS_MS: u64 = 30_000;

/// When a lease that began at 0 is over.
const OVER_MS: u64 = LASTS_MS + SKEW_MS + 1;

/// How often it is looked at whether a completion was dropped in time.
const LOOKS_MAX: usize = 100;

pub(super) async fn check<S: Transactional>(
    examiner: &mut Examiner,
    store: &S,
    effects: &impl Effects<S::Transaction>,
) {
    examiner.hold(20, "a completion commits what was written", completed(store, effects).await);
    for ending in [failed(), rejected(), Ending::Released] {
        let name = format!("{ending:?} leaves nothing of what was written");
        examiner.hold(20, name, ended(store, effects, ending).await);
    }
    examiner.hold(20, "a claim that is dropped leaves nothing", given_up(store, effects).await);
    let name = "a completion without its transaction is lost, and leaves nothing";
    examiner.hold(20, name, without(store, effects).await);
    examiner.hold(20, "of two claims of a key, one commits", rivals(store, effects).await);
    for us in DROPPED_US {
        let name = format!("a completion that is dropped after {us} µs commits both or neither");
        examiner.hold(20, name, dropped(store, effects, Duration::from_micros(us)).await);
    }
}

fn lasting(id: &RecordId, at: u64) -> ClaimRequest {
    ClaimRequest { lease_until: time(at + LASTS_MS), ..request(id, at) }
}

/// The claim again, after something was written in its transaction.
async fn written<S: Transactional>(
    effects: &impl Effects<S::Transaction>,
    mut claim: Claim,
    text: &str,
) -> Result<Claim, String> {
    let transaction = claim.transaction.take().and_then(AnyTransaction::unpack::<S::Transaction>);
    let mut transaction = transaction.ok_or("the claim carries no transaction of the store's")?;
    wrote(effects, &mut transaction, text).await?;
    claim.transaction = Some(AnyTransaction::new(transaction));
    Ok(claim)
}

/// A claim of a fresh key under which something was written, and what.
async fn begun<S: Transactional>(store: &S, effects: &impl Effects<S::Transaction>) -> Result<(Claim, String), String> {
    let claim = granted(store, &lasting(&fresh_id("transaction"), 0)).await?;
    let text = claim.owner.as_str().to_owned();
    Ok((written::<S>(effects, claim, &text).await?, text))
}

async fn settle<S: Transactional>(store: &S, claim: Claim, ending: Ending) -> Settled {
    store.settle(claim, &settlement(ending, OVER_MS), call(&Meter::default())).await
}

/// The record is not completed: its key can be claimed again, or is held still.
async fn is_open<S: Transactional>(store: &S, id: &RecordId) -> Finding {
    let status = look(store, id).await?.map(|record| record.status);
    ensure(status != Some(Status::Completed), || "the record is completed".into())
}

/// The answer, if it is this one.
fn is(settled: &Settled, wanted: fn(&Settled) -> bool) -> Finding {
    match settled {
        Settled::Unknown { error, .. } => Err(no_answer(error)),
        settled => ensure(wanted(settled), || format!("the answer is {settled:?}")),
    }
}

async fn completed<S: Transactional>(store: &S, effects: &impl Effects<S::Transaction>) -> Finding {
    let (claim, text) = begun(store, effects).await?;
    let id = claim.id.clone();
    are_there(effects, [&*text], 0).await?;
    is(&settle(store, claim, done()).await, |settled| matches!(settled, Settled::Done))?;
    let status = look(store, &id).await?.map(|record| record.status);
    ensure(status == Some(Status::Completed), || format!("the record is {status:?}"))?;
    are_there(effects, [&*text], 1).await
}

async fn ended<S: Transactional>(store: &S, effects: &impl Effects<S::Transaction>, ending: Ending) -> Finding {
    let (claim, text) = begun(store, effects).await?;
    let id = claim.id.clone();
    is(&settle(store, claim, ending).await, |settled| matches!(settled, Settled::Done))?;
    is_open(store, &id).await?;
    are_there(effects, [&*text], 0).await
}

async fn given_up<S: Transactional>(store: &S, effects: &impl Effects<S::Transaction>) -> Finding {
    let (claim, text) = begun(store, effects).await?;
    let id = claim.id.clone();
    drop(claim);
    is_open(store, &id).await?;
    are_there(effects, [&*text], 0).await
}

async fn without<S: Transactional>(store: &S, effects: &impl Effects<S::Transaction>) -> Finding {
    let (mut claim, text) = begun(store, effects).await?;
    drop(claim.transaction.take());
    let id = claim.id.clone();
    is(&settle(store, claim, done()).await, |settled| matches!(settled, Settled::Lost))?;
    is_open(store, &id).await?;
    are_there(effects, [&*text], 0).await
}

/// The second claim comes when the lease of the first is over; it is refused, or gets no answer, where the first keeps others out by its
/// transaction.
async fn rivals<S: Transactional>(store: &S, effects: &impl Effects<S::Transaction>) -> Finding {
    let (first, text) = begun(store, effects).await?;
    let (id, owner) = (first.id.clone(), first.owner.clone());
    let taking = lasting(&id, OVER_MS);
    let other = taking.owner.as_str().to_owned();
    let answered = store.claim(&taking, Call { within: BESIDE_OPEN, ..call(&Meter::default()) }).await;
    let taken = match answered {
        Ok(ClaimAnswer::Granted(second)) => {
            let second = written::<S>(effects, second, &other).await?;
            is(&settle(store, second, done()).await, |settled| matches!(settled, Settled::Done))?;
            is(&settle(store, first, done()).await, |settled| !matches!(settled, Settled::Done))?;
            true
        }
        Err(error) if !error.kind().is_transient() => return Err(no_answer(&error)),
        Ok(ClaimAnswer::Refused(_)) | Err(_) => {
            is(&settle(store, first, done()).await, |settled| matches!(settled, Settled::Done))?;
            false
        }
    };
    let record = record(store, &id).await?;
    let winner = if taken { taking.owner } else { owner };
    ensure(record.status == Status::Completed && record.owner == winner, || {
        format!("taken over: {taken}, and the record is {record:?}")
    })?;
    are_there(effects, [&*text], usize::from(!taken)).await?;
    are_there(effects, [&*other], usize::from(taken)).await
}

/// At some time, what was written is there exactly if the record is completed, and it is if that was answered. Not at each time: the two
/// are read one after the other, and where a read sees a commit by halves, so does this.
async fn dropped<S: Transactional>(store: &S, effects: &impl Effects<S::Transaction>, after: Duration) -> Finding {
    let (claim, text) = begun(store, effects).await?;
    let id = claim.id.clone();
    let cut = timeout(after, settle(store, claim, done())).await;
    let answered = matches!(cut, Ok(Settled::Done));
    let completed = async || {
        let record = look(store, &id).await?;
        Ok::<_, String>(record.is_some_and(|record| record.status == Status::Completed))
    };
    let mut now = completed().await?;
    let mut count = 0;
    for _ in 0..LOOKS_MAX {
        let before = now;
        count = counted(effects, &text).await?;
        now = completed().await?;
        if now == before && count == usize::from(now) && (now || !answered) {
            return Ok(());
        }
    }
    Err(format!("answered as done: {answered}, completed: {now}, and what was written is there {count} times"))
}
