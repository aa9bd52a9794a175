//! A store that answers claims made at the same time at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use claimant_core::protocol::{ClaimRequest, Settlement};
use claimant_core::{BatchedClaim, BoxFuture, Call, Claim, ClaimAnswer, Settled, Store, StoreError};
use tokio::sync::Notify;

/// Holds the answer of a claim back until no other claim is on its way.
///
/// Which messages a call of a batch handler gets depends on which claims are answered in time. With this before a store that
/// claims each key by itself, a call gets them all, on a slow machine too.
pub(super) struct AtOnce {
    inner: Arc<dyn Store>,
    claims: Claims,
}

/// The claims that are on their way.
#[derive(Default)]
struct Claims {
    count: AtomicUsize,
    none_left: Notify,
}

/// One of them; it is on its way until this is dropped.
struct OnItsWay<'a>(&'a Claims);

impl AtOnce {
    pub(super) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, claims: Claims::default() }
    }
}

impl Claims {
    fn begin(&self) -> OnItsWay<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        OnItsWay(self)
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.none_left.notify_waiters();
        }
    }
}

impl Store for AtOnce {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            let on_its_way = self.claims.begin();
            let answer = self.inner.claim(request, call).await;
            // From here on, it sees the last one end, be it this one.
            let none_left = self.claims.none_left.notified();
            drop(on_its_way);
            none_left.await;
            answer
        })
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        self.inner.claim_all(requests, call)
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        self.inner.settle_all(settlements, call)
    }

    crate::pass_on!(self => self.inner; claims_max, claims_outlive_owners, renew, settle, get);
}
