//! A store that fails as scripted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    Claim, ClaimAnswer, Record, RecordId, Renewed, Settled, Store, StoreError, StoreErrorKind, StoreFuture,
};

/// Which call of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// [`Store::claim`].
    Claim,
    /// [`Store::renew`].
    Renew,
    /// [`Store::settle`].
    Settle,
}

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is refused before it applies.
    NotApplied(StoreErrorKind),
    /// It applies, and its answer is lost.
    AnswerLost,
    /// It never ends, and never applies.
    Hangs,
}

/// A store in front of another one; each scripted fault hits the next call of its kind, once.
///
/// Clones share the script.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    script: Arc<Mutex<VecDeque<(Call, Fault)>>>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl FaultyStore {
    /// A store that passes everything on until faults are scripted.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, script: Arc::default(), calls: Arc::default() }
    }

    /// Lets the next call of this kind that has no fault yet go wrong.
    pub fn fail_next(&self, call: Call, fault: Fault) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).push_back((call, fault));
    }

    /// Every call so far, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn begin(&self, call: Call) -> Option<Fault> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let next = script.iter().position(|(c, _)| *c == call)?;
        script.remove(next).map(|(_, fault)| fault)
    }

    /// The outcome of a faulty call, or `None` where it is to be passed on.
    async fn suffer(fault: Option<Fault>, applied: impl Future<Output = ()>) -> Option<StoreError> {
        match fault? {
            Fault::NotApplied(kind) => Some(StoreError::new(kind, "scripted fault: not applied")),
            Fault::AnswerLost => {
                applied.await;
                Some(StoreError::new(StoreErrorKind::Unreachable, "scripted fault: answer lost"))
            }
            Fault::Hangs => std::future::pending().await,
        }
    }
}

impl Store for FaultyStore {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        within: Duration,
    ) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            let fault = self.begin(Call::Claim);
            let apply = async {
                let _answer = self.inner.claim(request, within).await;
            };
            match Self::suffer(fault, apply).await {
                Some(error) => Err(error),
                None => self.inner.claim(request, within).await,
            }
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        within: Duration,
    ) -> StoreFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(async move {
            let fault = self.begin(Call::Renew);
            let before = claim.lease_until;
            let apply = async {
                let _answer = self.inner.renew(&mut *claim, renewal, within).await;
            };
            match Self::suffer(fault, apply).await {
                Some(error) => {
                    claim.lease_until = before;
                    Err(error)
                }
                None => self.inner.renew(claim, renewal, within).await,
            }
        })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, within: Duration) -> StoreFuture<'a, Settled> {
        Box::pin(async move {
            match self.begin(Call::Settle) {
                None => self.inner.settle(claim, settlement, within).await,
                fault => {
                    let apply = async {
                        let _settled = self.inner.settle(claim, settlement, within).await;
                    };
                    let error = Self::suffer(fault, apply).await;
                    Settled::Unknown(error.unwrap_or_else(|| StoreError::no_answer(within)))
                }
            }
        })
    }

    fn look<'a>(&'a self, id: &'a RecordId, within: Duration) -> StoreFuture<'a, Result<Option<Record>, StoreError>> {
        self.inner.look(id, within)
    }
}
