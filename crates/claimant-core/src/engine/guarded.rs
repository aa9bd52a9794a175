//! The store and the queue as the engine asks them: what they panic costs that call alone.

use std::future::Future;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::claim::Claim;
use crate::intake::Intake;
use crate::key::RecordId;
use crate::panics::{Caught, caught};
use crate::protocol::{ClaimRequest, Renewal, Settlement};
use crate::queue::{Confirmation, HideAnswer, Queue, SendAgain};
use crate::record::Record;
use crate::report::DeadLetter;
use crate::store::{BatchedClaim, Call, ClaimAnswer, Renewed, Settled, Store, StoreError};

/// A store whose panics are answers: after one, a claim is an error, and a settlement is [`Settled::Unknown`].
#[derive(Clone, Copy)]
pub(crate) struct GuardedStore<'s>(&'s dyn Store);

impl<'s> GuardedStore<'s> {
    pub(crate) fn new(store: &'s dyn Store) -> Self {
        Self(store)
    }

    pub(crate) fn claim(
        self,
        request: &'s ClaimRequest,
        call: Call<'s>,
    ) -> impl Future<Output = Result<ClaimAnswer, StoreError>> + Send + Unpin + 's {
        Caught::new(move || self.0.claim(request, call), || Err(StoreError::panicked()))
    }

    /// Claims several keys. Where the call panics, each is to be claimed by itself: the one that it panics for then costs no other one.
    pub(crate) fn claim_all(
        self,
        requests: &'s [ClaimRequest],
        call: Call<'s>,
    ) -> impl Future<Output = Vec<Result<BatchedClaim, StoreError>>> + Send + Unpin + 's {
        let alone = || {
            tracing::warn!(claims = requests.len(), "the store panicked over several claims: each is tried by itself");
            requests.iter().map(|_| Ok(BatchedClaim::ClaimAlone)).collect()
        };
        Caught::new(move || self.0.claim_all(requests, call), alone)
    }

    pub(crate) fn renew(
        self,
        claim: &'s mut Claim,
        renewal: Renewal,
        call: Call<'s>,
    ) -> impl Future<Output = Result<Renewed, StoreError>> + Send + Unpin + 's {
        Caught::new(move || self.0.renew(claim, renewal, call), || Err(StoreError::panicked()))
    }

    pub(crate) fn settle(
        self,
        claim: Claim,
        settlement: &'s Settlement,
        call: Call<'s>,
    ) -> impl Future<Output = Settled> + Send + Unpin + 's {
        Caught::new(move || self.0.settle(claim, settlement, call), Settled::panicked)
    }

    /// Settles several claims. All of them are lost with a call that panics, which is `noted`.
    pub(crate) fn settle_all(
        self,
        settlements: Vec<(Claim, Settlement)>,
        call: Call<'s>,
        noted: impl FnOnce() + Send + Unpin + 's,
    ) -> impl Future<Output = Vec<Settled>> + Send + Unpin + 's {
        let count = settlements.len();
        let panicked = move || {
            noted();
            Settled::all_panicked(count)
        };
        Caught::new(move || self.0.settle_all(settlements, call), panicked)
    }

    pub(crate) fn get(
        self,
        id: &'s RecordId,
        call: Call<'s>,
    ) -> impl Future<Output = Result<Option<Record>, StoreError>> + Send + Unpin + 's {
        Caught::new(move || self.0.get(id, call), || Err(StoreError::panicked()))
    }

    pub(crate) fn claims_max(self) -> Option<usize> {
        self.0.claims_max()
    }

    pub(crate) fn claims_outlive_owners(self) -> bool {
        self.0.claims_outlive_owners()
    }
}

/// A queue that confirms nothing where it panics.
#[derive(Clone, Copy)]
pub(crate) struct GuardedQueue<'q>(&'q dyn Queue);

impl<'q> GuardedQueue<'q> {
    pub(crate) fn new(queue: &'q dyn Queue) -> Self {
        Self(queue)
    }
}

fn guarded<'a, T: Send + Unpin + 'a>(call: impl FnOnce() -> BoxFuture<'a, T>, unconfirmed: T) -> BoxFuture<'a, T> {
    Box::pin(Caught::new(call, move || {
        tracing::warn!("the queue panicked: what was asked of it is not confirmed");
        unconfirmed
    }))
}

impl Queue for GuardedQueue<'_> {
    fn hide(&self, index: usize, period: Duration) -> BoxFuture<'_, HideAnswer> {
        guarded(|| self.0.hide(index, period), HideAnswer::Hidden)
    }

    fn delete<'a>(&'a self, indexes: &'a [usize]) -> BoxFuture<'a, Confirmation> {
        guarded(|| self.0.delete(indexes), Confirmation::Unconfirmed)
    }

    fn has_dead_letters(&self) -> bool {
        caught(|| self.0.has_dead_letters()).unwrap_or_default()
    }

    fn dead_letters<'a>(
        &'a self,
        dead_letters: &'a [DeadLetter],
        within: Duration,
    ) -> BoxFuture<'a, Vec<Confirmation>> {
        guarded(|| self.0.dead_letters(dead_letters, within), Vec::new())
    }

    fn intake(&self) -> Option<&dyn Intake> {
        caught(|| self.0.intake()).unwrap_or_default()
    }

    fn has_schedules(&self) -> bool {
        caught(|| self.0.has_schedules()).unwrap_or_default()
    }

    fn send_again<'a>(&'a self, messages: &'a [SendAgain], within: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        guarded(|| self.0.send_again(messages, within), Vec::new())
    }
}
