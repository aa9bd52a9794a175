//! Stores that do not keep their contract, and are found out.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};

use claimant_core::protocol::{ClaimRequest, Ending, Refusal, Settlement};
use claimant_core::{
    BoxFuture, Call as StoreCall, Claim, ClaimAnswer, Consumer, Context, HandlerError, MemoryStore, Record, RecordId,
    Settled, Status, Store, StoreError,
};
use claimant_test::{Scenario, TestQueue};
use futures_util::FutureExt as _;

use super::scenarios::{Order, order, panic_text};

/// A store that lets whoever says that an attempt failed write that over what another owner has completed.
#[derive(Default)]
struct Careless {
    inner: MemoryStore,
    overwritten: AtomicBool,
}

impl Store for Careless {
    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: StoreCall<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            let settled = self.inner.settle(claim, settlement, call).await;
            let failed = matches!((&settled, &settlement.ending), (Settled::Lost, Ending::Failed { .. }));
            self.overwritten.fetch_or(failed, Ordering::Relaxed);
            if failed { Settled::Done } else { settled }
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: StoreCall<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            let overwritten = self.overwritten.load(Ordering::Relaxed);
            let seen = |record: Record| if overwritten { Record { status: Status::Failed, ..record } } else { record };
            Ok(self.inner.get(id, call).await?.map(seen))
        })
    }

    claimant_test::pass_on!(self => self.inner; claims_max, claims_outlive_owners, claim, renew);
}

/// The process that stood still is the last one to write.
#[tokio::test(start_paused = true)]
async fn a_store_whose_record_a_former_owner_can_overwrite_is_found() {
    let mut found = BTreeSet::new();
    for scenario in Scenario::all() {
        let handler = |_: Order, cx: Context| async move {
            if cx.attempt() == 1 { Err(HandlerError::retry("no luck")) } else { Ok(()) }
        };
        let queue = TestQueue::new(Consumer::new("c", Careless::default(), handler).key(|order: &Order| &order.id));
        if let Err(panic) = AssertUnwindSafe(queue.play(&scenario, &[order("a")])).catch_unwind().await {
            let why = panic_text(panic);
            assert!(why.contains("m-1 was reported as done, and its record is not completed"), "{why}");
            found.insert(scenario.to_string());
        }
    }
    // Before its handler runs, and before its failure is written.
    assert_eq!(Vec::from_iter(found), ["stopped at step 2", "stopped at step 3"]);
}

/// A store that takes what another owner works on for done.
#[derive(Default)]
struct Hasty(MemoryStore);

impl Store for Hasty {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: StoreCall<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            Ok(match self.0.claim(request, call).await? {
                ClaimAnswer::Refused(Refusal::Busy { .. }) => ClaimAnswer::Refused(Refusal::Completed { result: None }),
                answer => answer,
            })
        })
    }

    claimant_test::pass_on!(self => self.0; claims_max, claims_outlive_owners, renew, settle, get);
}

/// Also where the first message is done in the end.
#[tokio::test(start_paused = true)]
async fn a_store_that_says_done_too_early_is_found() {
    let mut found = BTreeSet::new();
    for scenario in Scenario::all() {
        let handler = |_: Order, _: Context| async {
            tokio::task::yield_now().await;
            Ok(())
        };
        let consumer = Consumer::new("c", Hasty::default(), handler).key(|order: &Order| &order.id);
        let (queue, orders) = (TestQueue::new(consumer).batch_max(1), [order("a"), order("a")]);
        if let Err(panic) = AssertUnwindSafe(queue.play(&scenario, &orders)).catch_unwind().await {
            let why = panic_text(panic);
            assert!(why.contains("m-2 was reported as done, and its record is not completed"), "{why}");
            found.insert(scenario.to_string());
        }
    }
    // From the answer to the claim of the first one on, until it is settled.
    let steps = ["killed at step 2", "killed at step 3", "killed at step 4"];
    assert_eq!(
        Vec::from_iter(found),
        [steps, ["stopped at step 2", "stopped at step 3", "stopped at step 4"]].concat()
    );
}
