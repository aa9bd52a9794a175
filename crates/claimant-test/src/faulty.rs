//! A store that fails as scripted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use claimant_core::protocol::{ClaimRequest, Refusal, Renewal, Settlement};
use claimant_core::{
    BatchedClaim, BoxFuture, Call as StoreCall, Claim, ClaimAnswer, Clock as _, Failure, Renewed, Settled, Store,
    StoreError, StoreErrorKind, Timestamp,
};

use crate::clock::MovableClock;

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
    /// It applies, and this error is its answer: with a kind that is not tried again, as if the caller had died.
    Applied(StoreErrorKind),
    /// It never ends, and never applies.
    Hangs,
    /// A claim or a renewal is passed on this much later.
    Late(Duration),
    /// A settlement's transaction does not commit; the claim is still held. Nothing happens to other calls.
    Aborts,
    /// A settlement finds the key completed by another owner. Nothing happens to other calls.
    Refuses,
}

/// When no call is answered, and how many were made then; a call for many counts once.
#[derive(Debug, Default)]
struct Outage {
    ends: Option<(Timestamp, StoreErrorKind)>,
    calls: usize,
}

/// A store in front of another one; each scripted fault hits the next call of its kind, once.
///
/// Clones share the script.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    script: Arc<Mutex<VecDeque<(Call, Fault)>>>,
    calls: Arc<Mutex<Vec<Call>>>,
    outage: Arc<Mutex<Outage>>,
    clock: MovableClock,
    /// Whether claims are said to end with their owner.
    fleeting: bool,
}

impl FaultyStore {
    /// Puts this before a store: everything is passed on until faults are scripted.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            script: Arc::default(),
            calls: Arc::default(),
            outage: Arc::default(),
            clock: MovableClock::start(),
            fleeting: false,
        }
    }

    /// Returns one with the same script before another store: the next call hits the fault, whichever of the two it is for.
    #[must_use]
    pub fn before(&self, inner: Arc<dyn Store>) -> Self {
        Self { inner, ..self.clone() }
    }

    /// Returns the same, which says that its claims end with their owner, as open transactions do.
    #[must_use]
    pub fn fleeting(self) -> Self {
        Self { fleeting: true, ..self }
    }

    /// Returns the same, whose outages end by this clock instead of Tokio's time.
    #[must_use]
    pub fn clock(self, clock: MovableClock) -> Self {
        Self { clock, ..self }
    }

    /// Lets the next call of this kind that has no fault yet go wrong. Whether there was one, [`left`](Self::left) says.
    pub fn fail_next(&self, call: Call, fault: Fault) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).push_back((call, fault));
    }

    /// Refuses each call at once with an error of this kind, from now on and for this long; nothing applies.
    pub fn away_for(&self, period: Duration, kind: StoreErrorKind) {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner).ends = Some((self.clock.now().plus(period), kind));
    }

    /// Returns how many calls were made while the store was away; one for many counts once.
    #[must_use]
    pub fn calls_while_away(&self) -> usize {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    /// The answer of a store that is away, if it is.
    fn away(&self) -> Option<StoreError> {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, kind) = outage.ends.filter(|(ends, _)| self.clock.now() < *ends)?;
        outage.calls += 1;
        Some(StoreError::new(kind, "scripted fault: the store is away"))
    }

    /// Returns every call so far, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a fault is scripted for a call of this kind: many keys then go one by one, so that it hits one.
    fn scripted(&self, call: Call) -> bool {
        self.left(call) > 0
    }

    /// Returns how many faults are scripted for calls of this kind that were not made yet: 0, once each has hit a call.
    #[must_use]
    pub fn left(&self, call: Call) -> usize {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|(c, _)| *c == call).count()
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    fn begin(&self, call: Call) -> Option<Fault> {
        self.note(call);
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
            Fault::Applied(kind) => {
                applied.await;
                Some(StoreError::new(kind, "scripted fault: applied"))
            }
            Fault::Hangs => std::future::pending().await,
            Fault::Late(by) => {
                sleep(by).await;
                None
            }
            Fault::Aborts | Fault::Refuses => None,
        }
    }
}

impl Store for FaultyStore {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: StoreCall<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            if let Some(error) = self.away() {
                return Err(error);
            }
            let fault = self.begin(Call::Claim);
            let apply = async {
                let _answer = self.inner.claim(request, call).await;
            };
            match Self::suffer(fault, apply).await {
                Some(error) => Err(error),
                None => self.inner.claim(request, call).await,
            }
        })
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: StoreCall<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        if let Some(error) = self.away() {
            let each = |_| Err(StoreError::new(error.kind(), error.to_string()));
            return Box::pin(std::future::ready(requests.iter().map(each).collect()));
        }
        if self.scripted(Call::Claim) {
            return Box::pin(std::future::ready(requests.iter().map(|_| Ok(BatchedClaim::ClaimAlone)).collect()));
        }
        requests.iter().for_each(|_| self.note(Call::Claim));
        self.inner.claim_all(requests, call)
    }

    fn settle_all<'a>(
        &'a self,
        settlements: Vec<(Claim, Settlement)>,
        call: StoreCall<'a>,
    ) -> BoxFuture<'a, Vec<Settled>> {
        if let Some(error) = self.away() {
            let each = |(claim, _)| Settled::unknown(claim, StoreError::new(error.kind(), error.to_string()));
            return Box::pin(std::future::ready(settlements.into_iter().map(each).collect()));
        }
        if self.scripted(Call::Settle) {
            return Box::pin(join_all(settlements.into_iter().map(move |(claim, settlement)| async move {
                let settled = timeout(call.within, self.settle(claim, &settlement, call)).await;
                settled.unwrap_or_else(|_| Settled::given_up(call.within))
            })));
        }
        settlements.iter().for_each(|_| self.note(Call::Settle));
        self.inner.settle_all(settlements, call)
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: StoreCall<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(async move {
            if let Some(error) = self.away() {
                return Err(error);
            }
            let fault = self.begin(Call::Renew);
            let before = claim.lease_until;
            let apply = async {
                let _answer = self.inner.renew(&mut *claim, renewal, call).await;
            };
            match Self::suffer(fault, apply).await {
                Some(error) => {
                    claim.lease_until = before;
                    Err(error)
                }
                None => self.inner.renew(claim, renewal, call).await,
            }
        })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: StoreCall<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            if let Some(error) = self.away() {
                return Settled::unknown(claim, error);
            }
            match self.begin(Call::Settle) {
                None => self.inner.settle(claim, settlement, call).await,
                Some(Fault::Refuses) => Settled::Refused(Refusal::Completed { result: None }),
                Some(Fault::Aborts) => Settled::Aborted { claim, failure: Failure::retry("scripted fault: aborted") },
                Some(Fault::NotApplied(kind)) => {
                    Settled::unknown(claim, StoreError::new(kind, "scripted fault: not applied"))
                }
                fault => {
                    let given_back = stale_copy(&claim);
                    let apply = async {
                        let _settled = self.inner.settle(claim, settlement, call).await;
                    };
                    let error = Self::suffer(fault, apply).await;
                    Settled::unknown(given_back, error.unwrap_or_else(|| StoreError::no_answer(call.within)))
                }
            }
        })
    }

    fn claims_outlive_owners(&self) -> bool {
        // The one behind is not asked: the outcomes of at-most-once consumers are shown on every store.
        !self.fleeting
    }

    crate::pass_on!(self => self.inner; claims_max, get);
}

/// Returns a claim of its own with the same contents, but its transaction: a stale claim, as a caller has that was given up.
pub fn stale_copy(claim: &Claim) -> Claim {
    Claim {
        id: claim.id.clone(),
        owner: claim.owner.clone(),
        fence: claim.fence,
        lease_until: claim.lease_until,
        attempt: claim.attempt,
        interruptions: claim.interruptions,
        last_error: claim.last_error.clone(),
        transaction: None,
    }
}
