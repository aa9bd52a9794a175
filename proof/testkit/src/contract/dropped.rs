//! Calls that are dropped on their way, as the engine does at a deadline: what they left is mended by the next call, and
//! no other call is hurt.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Ending};
use claimant_core::{BoxFuture, Claim, Meter, Status, Store};
use futures_util::future::join_all;
use tokio::time::timeout;

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{
    answer, answers, call, fresh_id, granted, record, renewal, renewed, request, settle, settled, settlement, time,
};
use crate::script::{copy, done, failed};

/// How many keys go in one request.
const COMPANY: usize = 4;

/// How many calls are under way at once, of which every second one is dropped.
const CROWD: usize = 16;

/// Where a call is dropped.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// After it was polled so often.
    Polls(u32),
    /// After this time.
    After(Duration),
}

/// From before it began to after most stores have answered. Which step of a call a point meets is chance; whatever it
/// meets, the check must hold.
fn points() -> impl Iterator<Item = Point> {
    let times = [100, 300, 700, 1_500, 3_000];
    (0..8).map(Point::Polls).chain(times.into_iter().map(|micros| Point::After(Duration::from_micros(micros))))
}

pub(super) async fn check(examiner: &mut Examiner) {
    let store = examiner.store.clone();
    for point in points() {
        let name = |what: &str| format!("{what} dropped at {point:?}");
        examiner.hold(12, name("a claim"), claim(store.as_ref(), point).await);
        examiner.hold(12, name("batched claims"), claims(store.as_ref(), point).await);
        for ending in [done(), failed(), Ending::Released] {
            let name = name(&format!("{ending:?}"));
            examiner.hold(12, name, settlement_of(store.as_ref(), ending, point).await);
        }
        examiner.hold(12, name("batched completions"), settlements(store.as_ref(), point).await);
        examiner.hold(12, name("a renewal"), renewal_of(store.as_ref(), point).await);
        examiner.hold(12, name("every second of many calls"), crowd(&store, point).await);
    }
}

/// Goes on with a call up to a point, and then drops it; whether it had ended before.
async fn up_to<T>(point: Point, mut future: BoxFuture<'_, T>) -> bool {
    let mut polls = match point {
        Point::Polls(polls) => polls,
        Point::After(time) => return timeout(time, future).await.is_ok(),
    };
    poll_fn(|cx| {
        if polls == 0 {
            return Poll::Ready(false);
        }
        polls -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if polls == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// The claim that its owner gets after it was dropped: the first one, whether it had applied or not; and its completion.
async fn mended(store: &dyn Store, request: &ClaimRequest) -> Finding {
    let claim = granted(store, request).await?;
    let so = claim.fence.get() == 1 && claim.attempt == 1 && claim.interruptions == 0;
    ensure(so, || format!("tried again, the claim is {claim:?}"))?;
    settle(store, &claim, done(), 5).await?;
    let record = record(store, &request.id).await?;
    ensure(record.status == Status::Completed && record.owner == request.owner, || format!("the record is {record:?}"))
}

async fn claim(store: &dyn Store, point: Point) -> Finding {
    let request = request(&fresh_id("dropped"), 0);
    up_to(point, store.claim(&request, call(&Meter::default()))).await;
    mended(store, &request).await
}

async fn claims(store: &dyn Store, point: Point) -> Finding {
    let requests: Vec<_> = (0..COMPANY).map(|_| request(&fresh_id("dropped"), 0)).collect();
    up_to(point, store.claim_all(&requests, call(&Meter::default()))).await;
    // Tried again by the same owners, in one request and then each by itself.
    answers(store, &requests).await?;
    for request in &requests {
        mended(store, request).await?;
    }
    Ok(())
}

async fn settlement_of(store: &dyn Store, ending: Ending, point: Point) -> Finding {
    let first = request(&fresh_id("dropped"), 0);
    let claim = granted(store, &first).await?;
    let settlement = settlement(ending.clone(), 5);
    up_to(point, store.settle(copy(&claim), &settlement, call(&Meter::default()))).await;
    settle(store, &claim, ending.clone(), 5).await?;
    let record = record(store, &claim.id).await?;
    let attempts = 1 - ending.attempts_back();
    let so = record.status == ending.status() && record.attempts == attempts && record.updated_at == time(5);
    ensure(so, || format!("tried again, the record is {record:?}"))
}

async fn settlements(store: &dyn Store, point: Point) -> Finding {
    let mut claims: Vec<Claim> = Vec::new();
    for _ in 0..COMPANY {
        claims.push(granted(store, &request(&fresh_id("dropped"), 0)).await?);
    }
    let all = claims.iter().map(|claim| (copy(claim), settlement(done(), 5))).collect();
    up_to(point, store.settle_all(all, call(&Meter::default()))).await;
    for claim in &claims {
        settle(store, claim, done(), 5).await?;
        let status = record(store, &claim.id).await?.status;
        ensure(status == Status::Completed, || format!("tried again, the record is {status}"))?;
    }
    Ok(())
}

async fn renewal_of(store: &dyn Store, point: Point) -> Finding {
    let claim = granted(store, &request(&fresh_id("dropped"), 0)).await?;
    let mut dropped = copy(&claim);
    up_to(point, store.renew(&mut dropped, renewal(5, 5_000), call(&Meter::default()))).await;
    let end = renewed(store, &claim, 6, 4_000).await?;
    ensure(end == Some(time(5_000)) || end == Some(time(4_000)), || format!("tried again, the lease ends at {end:?}"))?;
    let ended = settled(store, &claim, done(), 7).await?;
    ensure(ended, || "the claim was lost".into())
}

/// Calls side by side, as on one connection: those that are not dropped get their own answers.
async fn crowd(store: &Arc<dyn Store>, point: Point) -> Finding {
    let requests: Vec<_> = (0..CROWD).map(|_| request(&fresh_id("crowd"), 0)).collect();
    let calls = requests.iter().enumerate().map(|(n, request)| async move {
        if n % 2 == 0 {
            up_to(point, store.claim(request, call(&Meter::default()))).await;
            return Ok(());
        }
        let claim = granted(store.as_ref(), request).await?;
        let end = renewed(store.as_ref(), &claim, 1, 2_000).await?;
        ensure(end == Some(time(2_000)), || format!("the lease ends at {end:?}"))?;
        settle(store.as_ref(), &claim, done(), 5).await
    });
    for finding in join_all(calls).await {
        finding?;
    }
    for (n, request) in requests.iter().enumerate() {
        if n % 2 == 0 {
            mended(store.as_ref(), request).await?;
        } else {
            let record = record(store.as_ref(), &request.id).await?;
            ensure(record.owner == request.owner && record.status == Status::Completed, || format!("{record:?}"))?;
            answer(store.as_ref(), request).await?;
        }
    }
    Ok(())
}
