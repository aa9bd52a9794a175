//! A store in memory with transactions for batches, for the tests of batch handlers that work in one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claimant_core::protocol::{self, SettleDecision, Settlement};
use claimant_core::{
    BatchTransactional, BoxFuture, Call, Claim, Failure, MemoryStore, Settled, Store, StoreError, StoreErrorKind,
};
use tokio::time::sleep;

/// The entries that a handler wants to make.
#[derive(Debug, Default)]
pub struct Draft {
    /// What they say.
    pub entries: Vec<String>,
    /// Lets the commit fail, as a condition of the handler's own would.
    pub objection: Option<Failure>,
}

/// What goes wrong with a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionFault {
    /// It cannot be begun.
    NotBegun,
    /// It is begun this much later.
    BegunLate(Duration),
    /// Its commit applies, and the answer is lost.
    AnswerLost,
    /// Its commit never arrives.
    NeverArrived,
}

/// Records and a list of entries; the entries of a transaction are made with all of its completions, or not at all. Clones share
/// all of it.
#[derive(Debug, Clone, Default)]
pub struct BatchLedger {
    records: Arc<MemoryStore>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<String>,
    faults: VecDeque<TransactionFault>,
    begun: usize,
    rolled_back: usize,
}

impl BatchLedger {
    /// One whose transactions fail like this, one after the other; the others do not.
    #[must_use]
    pub fn failing(faults: &[TransactionFault]) -> Self {
        let state = State { faults: faults.iter().copied().collect(), ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), ..Self::default() }
    }

    /// The entries made so far, sorted.
    #[must_use]
    pub fn entries(&self) -> Vec<String> {
        let mut entries = self.lock().entries.clone();
        entries.sort();
        entries
    }

    /// How many transactions were begun.
    #[must_use]
    pub fn begun(&self) -> usize {
        self.lock().begun
    }

    /// How many of them were rolled back.
    #[must_use]
    pub fn rolled_back(&self) -> usize {
        self.lock().rolled_back
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, is_one: impl Fn(&TransactionFault) -> bool) -> Option<TransactionFault> {
        self.lock().faults.pop_front_if(|fault| is_one(fault))
    }

    /// What the record says of a completion that was not written by this call.
    async fn found(&self, claim: Claim, settlement: &Settlement, call: Call<'_>, failure: &Failure) -> Settled {
        let record = self.records.get(&claim.id, call).await.expect("memory answers");
        match protocol::settle(record.as_ref(), &claim, settlement) {
            SettleDecision::AlreadySettled => Settled::Done,
            SettleDecision::Lost => Settled::Lost,
            SettleDecision::Write(_) => Settled::Aborted { claim, failure: failure.clone() },
        }
    }
}

impl Store for BatchLedger {
    crate::pass_on!(self => self.records; claim, renew, settle, get);
}

impl BatchTransactional for BatchLedger {
    type Transaction = Draft;

    fn begin<'a>(&'a self, _: Duration, _: Call<'a>) -> BoxFuture<'a, Result<Draft, StoreError>> {
        Box::pin(async {
            match self.fault(|fault| matches!(fault, TransactionFault::NotBegun | TransactionFault::BegunLate(_))) {
                Some(TransactionFault::BegunLate(by)) => sleep(by).await,
                Some(_) => return Err(StoreError::new(StoreErrorKind::Unreachable, "scripted: no transaction")),
                None => {}
            }
            self.lock().begun += 1;
            Ok(Draft::default())
        })
    }

    fn commit<'a>(
        &'a self,
        draft: Draft,
        completions: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            let fault =
                self.fault(|fault| matches!(fault, TransactionFault::AnswerLost | TransactionFault::NeverArrived));
            let mut held = true;
            for (claim, settlement) in &completions {
                let record = self.records.get(&claim.id, call).await.expect("memory answers");
                held &= matches!(protocol::settle(record.as_ref(), claim, settlement), SettleDecision::Write(_));
            }
            let failure = draft.objection.clone().unwrap_or_else(|| Failure::retry("another item's claim was lost"));
            let applies = held && draft.objection.is_none() && fault != Some(TransactionFault::NeverArrived);
            let mut answers = Vec::new();
            for (claim, settlement) in completions {
                let unknown = |claim| Settled::unknown(claim, StoreError::new(StoreErrorKind::Unreachable, "scripted"));
                if applies {
                    let copy = crate::script::copy(&claim);
                    assert!(matches!(self.records.settle(claim, &settlement, call).await, Settled::Done));
                    answers.push(if fault.is_some() { unknown(copy) } else { Settled::Done });
                } else if fault.is_some() {
                    answers.push(unknown(claim));
                } else {
                    answers.push(self.found(claim, &settlement, call, &failure).await);
                }
            }
            if applies {
                self.lock().entries.extend(draft.entries);
            }
            answers
        })
    }

    fn roll_back<'a>(&'a self, _: Draft, _: Call<'a>) -> BoxFuture<'a, ()> {
        self.lock().rolled_back += 1;
        Box::pin(std::future::ready(()))
    }

    fn resolve<'a>(&'a self, completions: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for (claim, settlement) in completions {
                answers.push(self.found(claim, &settlement, call, &Failure::retry("it never arrived")).await);
            }
            answers
        })
    }
}
