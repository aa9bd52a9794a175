//! A transactional store in memory, for the tests of transactional handlers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use claimant_core::protocol::{ClaimRequest, Ending, Renewal, Settlement};
use claimant_core::{
    AnyTransaction, Call, Claim, ClaimAnswer, Failure, MemoryStore, Record, RecordId, Renewed, Settled, Store,
    StoreError, StoreFuture, Transactional,
};

/// Records and a list of entries, which change together or not at all. Clones share both.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    records: Arc<MemoryStore>,
    entries: Arc<Mutex<Vec<String>>>,
}

/// The entries that a handler wants to make.
#[derive(Debug, Default)]
pub struct Draft {
    entries: Vec<String>,
    objection: Option<Failure>,
}

impl Draft {
    /// Adds an entry, made when the transaction commits.
    pub fn enter(&mut self, entry: impl Into<String>) {
        self.entries.push(entry.into());
    }

    /// Lets the commit fail, as a condition of the handler's own would.
    pub fn object(&mut self, failure: Failure) {
        self.objection = Some(failure);
    }
}

impl Ledger {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The entries made so far, sorted.
    #[must_use]
    pub fn entries(&self) -> Vec<String> {
        let mut entries = self.lock().clone();
        entries.sort();
        entries
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn commit(&self, mut claim: Claim, settlement: &Settlement, call: Call<'_>) -> Settled {
        let Some(draft) = claim.transaction.take().and_then(AnyTransaction::unpack::<Draft>) else {
            return Settled::Lost;
        };
        if let Some(failure) = draft.objection {
            return Settled::Aborted { claim, failure };
        }
        let settled = self.records.settle(claim, settlement, call).await;
        if matches!(settled, Settled::Done) {
            self.lock().extend(draft.entries);
        }
        settled
    }
}

impl Store for Ledger {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            let mut answer = self.records.claim(request, call).await;
            if let Ok(ClaimAnswer::Granted(claim)) = &mut answer {
                claim.transaction = Some(AnyTransaction::new(Draft::default()));
            }
            answer
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<Renewed, StoreError>> {
        self.records.renew(claim, renewal, call)
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> StoreFuture<'a, Settled> {
        match settlement.ending {
            Ending::Completed { .. } => Box::pin(self.commit(claim, settlement, call)),
            _ => self.records.settle(claim, settlement, call),
        }
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> StoreFuture<'a, Result<Option<Record>, StoreError>> {
        self.records.get(id, call)
    }
}

impl Transactional for Ledger {
    type Transaction = Draft;
}
