//! Errors tell nothing of keys and payloads.

use std::error::Error as StdError;
use std::time::Duration;

use claimant_core::error::CAUSES_MAX;
use claimant_core::protocol::{ClaimRequest, Ending, Settlement};
use claimant_core::{
    Call, Claim, ClaimAnswer, Fence, Key, MessageId, Meter, RecordId, Renewed, Settled, Store, StoreError,
    StoreErrorKind,
};

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{answer, consumer, renewal, request, settlement, token};
use super::watched::{in_time, patience};
use crate::script::{copy, failed};

/// What must appear in no error: it is part of the key, the message id, the result and the error text.
const SECRET: &str = "s3cr3t-Ada-Lovelace";

/// More than any store here is asked to keep, and than some can.
const HUGE_BYTES: usize = 3 << 20;

/// How long a call to a server that cannot be reached may take.
const UNREACHABLE_WITHIN: Duration = Duration::from_millis(700);

/// How much longer the engine waits (`STORE_GUARD_MS`) before it drops a call, and with it the claim that would be given back: work that is
/// done could not be completed then.
const ENGINE_WAITS: Duration = Duration::from_millis(50);

pub(super) async fn check(examiner: &mut Examiner) {
    let store = examiner.store.clone();
    // Together one check, since it is the store's affair which of these calls fail, if any: all do where no server can be reached.
    examiner.hold(13, "errors for want of time, or of room", what_fails(store.as_ref()).await);
}

async fn what_fails(store: &dyn Store) -> Finding {
    for within in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(2)] {
        let errors =
            errors(store, within, patience(within)).await.map_err(|seen| format!("within {within:?}: {seen}"))?;
        errors.iter().try_for_each(|error| silent(error, &[SECRET]))?;
    }
    too_large(store).await
}

pub(super) async fn unreachable(examiner: &mut Examiner, hidden: &[&str]) {
    let words = [&[SECRET][..], hidden].concat();
    let store = examiner.store.clone();
    let errors = match errors(store.as_ref(), UNREACHABLE_WITHIN, UNREACHABLE_WITHIN + ENGINE_WAITS).await {
        Ok(errors) => errors,
        Err(seen) => return examiner.hold(11, "calls to a server that cannot be reached", Err(seen)),
    };
    let count = errors.len();
    examiner.hold(11, "each call fails", ensure(count == CALLS, || format!("{count} of {CALLS} calls failed")));
    for (n, error) in errors.iter().enumerate() {
        let kind = error.kind();
        let finding = ensure(kind == StoreErrorKind::Unreachable, || format!("the error is {kind:?}: {error}"));
        examiner.hold(11, format!("error {n} says that the server is unreachable"), finding);
        examiner.hold(13, format!("error {n} is silent"), silent(error, &words));
    }
}

/// How many calls [`errors`] makes, by the answers that they give.
const CALLS: usize = 8;

/// The errors of one call of each kind, and of two keys in one request; none of which may take longer than the patience.
async fn errors(store: &dyn Store, within: Duration, patience: Duration) -> Result<Vec<StoreError>, String> {
    let meter = Meter::default();
    let call = Call { within, meter: &meter };
    let requests = [secret_request(), secret_request()];
    let mut claim = claim_of(&requests[0]);
    let mut errors = Vec::new();
    errors.extend(in_time(patience, store.claim(&requests[0], call)).await?.err());
    errors.extend(in_time(patience, store.claim_all(&requests, call)).await?.into_iter().filter_map(Result::err));
    errors.extend(in_time(patience, store.renew(&mut claim, renewal(1, 5_000), call)).await?.err());
    let ending = secret_settlement();
    let both = vec![(copy(&claim), ending.clone()), (claim_of(&requests[1]), ending.clone())];
    let mut settled = in_time(patience, store.settle_all(both, call)).await?;
    settled.push(in_time(patience, store.settle(claim, &ending, call)).await?);
    for settled in settled {
        match settled {
            Settled::Unknown { claim: Some(_), error } => errors.push(error),
            Settled::Unknown { claim: None, .. } => {
                return Err("a settlement of which nothing is known keeps its claim".into());
            }
            _ => {}
        }
    }
    errors.extend(in_time(patience, store.get(&requests[0].id, call)).await?.err());
    Ok(errors)
}

fn secret_request() -> ClaimRequest {
    let key = Key::new(format!("{SECRET} {}", token().as_str())).expect("it is short");
    let message_id = MessageId::new(SECRET).expect("it is short");
    ClaimRequest { message_id, ..request(&RecordId::new(&consumer(), &key), 0) }
}

fn secret_settlement() -> Settlement {
    settlement(Ending::Rejected { error: SECRET.into() }, 5)
}

/// The claim that this request would get.
fn claim_of(request: &ClaimRequest) -> Claim {
    Claim {
        id: request.id.clone(),
        owner: request.owner.clone(),
        fence: Fence::FIRST,
        lease_until: request.lease_until,
        attempt: 1,
        interruptions: 0,
        last_error: None,
        transaction: None,
    }
}

/// An error that shows these words nowhere: not in itself, nor in its causes.
fn silent(error: &StoreError, words: &[&str]) -> Finding {
    let mut shown = format!("{error:?} {error:#?}");
    let first: &(dyn StdError + 'static) = error;
    for cause in std::iter::successors(Some(first), |error| (*error).source()).take(CAUSES_MAX) {
        shown.push_str(&format!(" {cause} {cause:?}"));
    }
    let leaks = |word: &&str| {
        // As text, as bytes in decimal, and in hexadecimal.
        let bytes = word.as_bytes();
        let decimal = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
        let hexadecimal: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        [(*word).to_owned(), decimal, hexadecimal].into_iter().any(|form| shown.contains(&form))
    };
    ensure(!words.iter().any(leaks), || format!("an error of the kind {:?} shows what it must not", error.kind()))
}

/// A result beyond what the engine allows is kept, or refused in silence; afterwards the claim can be settled.
async fn too_large(store: &dyn Store) -> Finding {
    let request = secret_request();
    let ClaimAnswer::Granted(mut claim) = answer(store, &request).await? else {
        return Err("a fresh key was refused".into());
    };
    let meter = Meter::default();
    let call = Call { within: Duration::from_secs(5), meter: &meter };
    let result = format!("\"{SECRET}{}\"", "x".repeat(HUGE_BYTES));
    let huge = settlement(Ending::Completed { result: Some(result) }, 5);
    match store.settle(copy(&claim), &huge, call).await {
        Settled::Done => return Ok(()),
        Settled::Unknown { error, .. } => silent(&error, &[SECRET])?,
        other => return Err(format!("a settlement of a claim that is held is {other:?}")),
    }
    let renewed = store.renew(&mut claim, renewal(5, 5_000), call).await;
    renewed.as_ref().err().map_or(Ok(()), |error| silent(error, &[SECRET]))?;
    ensure(matches!(renewed, Ok(Renewed::Held)), || "after a refusal, the claim is not held".into())?;
    let settled = store.settle(claim, &settlement(failed(), 6), call).await;
    ensure(matches!(settled, Settled::Done), || "after a refusal, the claim cannot be settled".into())
}
