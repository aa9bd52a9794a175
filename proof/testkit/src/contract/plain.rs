//! Whether a store works at all.

use std::time::Duration;

use claimant_core::{ClaimAnswer, Status, Store};
use tokio::time;

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{answers, fresh_id, granted, record, renewed, request, settle, settled_together};
use crate::script::{WITHIN, done};

/// Returns whether it does.
pub(super) async fn check(examiner: &mut Examiner) -> bool {
    let store = examiner.store.clone();
    examiner.works("a key is claimed, renewed, completed and read", in_turn(store.as_ref()).await)
        && examiner.works("two keys are claimed and completed together", together(store.as_ref()).await)
}

async fn in_turn(store: &dyn Store) -> Finding {
    let watch = Watch::new();
    let request = request(&fresh_id("plain"), 0);
    let claim = granted(store, &request).await.map_err(|seen| format!("`claim`: {seen}"))?;
    let held = renewed(store, &claim, 1, 2_000).await.map_err(|seen| format!("`renew`: {seen}"))?;
    ensure(held.is_some(), || "`renew`: the claim was lost".into())?;
    settle(store, &claim, done(), 5).await.map_err(|seen| format!("`settle`: {seen}"))?;
    let record = record(store, &request.id).await.map_err(|seen| format!("`get`: {seen}"))?;
    ensure(record.status == Status::Completed, || format!("`get`: the record is {:?}", record.status))?;
    watch.finding()
}

/// What was granted to whom is for the clauses.
async fn together(store: &dyn Store) -> Finding {
    let watch = Watch::new();
    let requests = [request(&fresh_id("plain"), 0), request(&fresh_id("plain"), 0)];
    let answers = answers(store, &requests).await.map_err(|seen| format!("`claim_all`: {seen}"))?;
    let granted = answers.into_iter().filter_map(|answer| match answer {
        ClaimAnswer::Granted(claim) => Some(claim),
        ClaimAnswer::Refused(_) => None,
    });
    let settled = settled_together(store, granted.collect(), &done(), 5).await;
    settled.map_err(|seen| format!("`settle_all`: {seen}"))?;
    watch.finding()
}

/// How long some calls took together: by the runtime's clock, which stands still while a thread blocks where it is a paused one, and by the
/// machine's.
struct Watch {
    begun: (std::time::Instant, time::Instant),
}

impl Watch {
    fn new() -> Self {
        Self { begun: (std::time::Instant::now(), time::Instant::now()) }
    }

    /// A store of which each call takes as long as it may would take hours for the checks.
    fn finding(&self) -> Finding {
        let took: Duration = self.begun.0.elapsed().max(self.begun.1.elapsed());
        ensure(took < WITHIN, || format!("its calls took {took:?} together, and may take {WITHIN:?}"))
    }
}
