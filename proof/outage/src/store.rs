//! The lock table, which takes its time, and counts what breakers and rates ask of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    BatchedClaim, BoxFuture, Call, Claim, ClaimAnswer, MemoryStore, Record, RecordId, Renewed, Settled, Store,
    StoreError,
};
use tokio::time::sleep;

use crate::setting::Setting;

/// The records of all processes.
#[derive(Clone, Default)]
pub(crate) struct Table {
    inner: Arc<MemoryStore>,
    reads: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

impl Table {
    /// Returns the reads and the writes of records that are no message's.
    pub(crate) fn asked(&self) -> (u64, u64) {
        (self.reads.load(Ordering::Relaxed), self.writes.load(Ordering::Relaxed))
    }

    async fn write(&self, id: &RecordId) {
        count(&self.writes, id);
        sleep(Setting::STORE).await;
    }
}

fn count(counter: &AtomicU64, id: &RecordId) {
    if id.as_str().starts_with("claimant-") {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Store for Table {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            self.write(&request.id).await;
            self.inner.claim(request, call).await
        })
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(async move {
            sleep(Setting::STORE).await;
            self.inner.claim_all(requests, call).await
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(async move {
            self.write(&claim.id).await;
            self.inner.renew(claim, renewal, call).await
        })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            self.write(&claim.id).await;
            self.inner.settle(claim, settlement, call).await
        })
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            sleep(Setting::STORE).await;
            self.inner.settle_all(settlements, call).await
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            count(&self.reads, id);
            sleep(Setting::STORE).await;
            self.inner.get(id, call).await
        })
    }
}
