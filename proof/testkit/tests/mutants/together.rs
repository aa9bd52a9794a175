//! Stores that complete claims in transactions, one or many, with a bug each.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Ending, Settlement};
use claimant_core::{
    AnyTransaction, BatchTransactional, BoxFuture, Call, Claim, ClaimAnswer, Failure, Settled, Store, StoreError,
    Transactional,
};
use claimant_testkit::MemoryTransactions;
use claimant_testkit::batch_ledger::{BatchLedger, Draft};
use claimant_testkit::contract::{self, Effects};
use tokio::time::sleep;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    /// Each claim is completed by itself.
    Apart,
    /// Nothing is written.
    NotWritten,
    /// What became of a commit is not looked at: it counts as applied.
    FoundDone,
    /// And here as not applied.
    FoundOpen,
    /// Answers are in another order.
    OutOfOrder,
    /// What is written is there at once, in no transaction.
    WritesApart,
    /// No commit ends.
    Hangs,
}

/// The entries of a ledger, or those that were made beside it.
pub(crate) struct Entries {
    ledger: BatchLedger,
    apart: Option<Mutex<Vec<String>>>,
}

impl Entries {
    pub(crate) fn of(ledger: &BatchLedger) -> Self {
        Self { ledger: ledger.clone(), apart: None }
    }
}

impl Effects<Draft> for Entries {
    async fn write(&self, draft: &mut Draft, text: &str) {
        match &self.apart {
            Some(apart) => apart.lock().unwrap().push(text.to_owned()),
            None => draft.entries.push(text.to_owned()),
        }
    }

    async fn count(&self, text: &str) -> usize {
        let entries = self.apart.as_ref().map_or_else(|| self.ledger.entries(), |apart| apart.lock().unwrap().clone());
        entries.iter().filter(|entry| *entry == text).count()
    }
}

struct Wrong {
    inner: BatchLedger,
    bug: Bug,
}

impl Store for Wrong {
    claimant_testkit::pass_on!(self => self.inner; claim, renew, settle, get);
}

fn aborted(claim: Claim) -> Settled {
    Settled::Aborted { claim, failure: Failure::retry("a bug") }
}

impl BatchTransactional for Wrong {
    type Transaction = Draft;

    fn begin<'a>(&'a self, lasts: Duration, call: Call<'a>) -> BoxFuture<'a, Result<Draft, StoreError>> {
        self.inner.begin(lasts, call)
    }

    fn commit<'a>(
        &'a self,
        draft: Draft,
        completions: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            match self.bug {
                Bug::Apart => {
                    let mut answers = Vec::new();
                    for (claim, settlement) in completions {
                        answers.push(self.inner.settle(claim, &settlement, call).await);
                    }
                    answers
                }
                Bug::NotWritten => completions.iter().map(|_| Settled::Done).collect(),
                Bug::OutOfOrder => {
                    let mut answers = self.inner.commit(draft, completions, call).await;
                    answers.reverse();
                    answers
                }
                Bug::Hangs => pending().await,
                Bug::FoundDone | Bug::FoundOpen | Bug::WritesApart => self.inner.commit(draft, completions, call).await,
            }
        })
    }

    fn resolve<'a>(&'a self, completions: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        match self.bug {
            Bug::FoundDone => Box::pin(async move { completions.iter().map(|_| Settled::Done).collect() }),
            Bug::FoundOpen => {
                Box::pin(async move { completions.into_iter().map(|(claim, _)| aborted(claim)).collect() })
            }
            _ => self.inner.resolve(completions, call),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_transactions_of_many_claims_are_caught() {
    for (clause, bug) in [
        (18, Bug::Apart),
        (18, Bug::NotWritten),
        (18, Bug::OutOfOrder),
        (18, Bug::WritesApart),
        (18, Bug::Hangs),
        (19, Bug::FoundDone),
        (19, Bug::FoundOpen),
    ] {
        let inner = BatchLedger::default();
        let apart = (bug == Bug::WritesApart).then(Mutex::default);
        let entries = Entries { ledger: inner.clone(), apart };
        let findings = contract::survey_transactions(Arc::new(Wrong { inner, bug }), &entries).await;
        let broken: BTreeSet<_> = findings.broken().iter().filter_map(|broken| broken.clause).collect();
        assert!(broken.contains(&clause), "{bug:?} breaks {broken:?}");
    }
}

/// What is wrong with a store whose claims carry a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slip {
    None,
    /// Nothing: a claim of a key that is held waits for the end of the transaction, and gets no answer.
    Waits,
    /// What is written is there at once, in no transaction.
    WritesApart,
    /// The transaction is committed before the claim is looked at.
    CommitsFirst,
    /// A failure commits, too.
    CommitsFailures,
    /// A claim is completed whose transaction is gone.
    DoneWithout,
    /// The same, and the answer is that it was lost.
    LostButDone,
}

/// What the transactions of a store in memory have made.
#[derive(Clone, Default)]
struct Rows(Arc<Mutex<Vec<String>>>);

pub(crate) struct Slipping {
    inner: MemoryTransactions<Vec<String>>,
    rows: Rows,
    slip: Slip,
    /// The ids of claims that are not settled.
    open: Mutex<BTreeSet<String>>,
}

impl Slipping {
    pub(crate) fn new(slip: Slip) -> Self {
        let rows = Rows::default();
        let table = rows.clone();
        let inner = MemoryTransactions::new(move |made: Vec<String>| {
            table.0.lock().unwrap().extend(made);
            Ok(())
        });
        Self { inner, rows, slip, open: Mutex::default() }
    }
}

impl Effects<Vec<String>> for Slipping {
    async fn write(&self, transaction: &mut Vec<String>, text: &str) {
        if self.slip == Slip::WritesApart {
            self.rows.0.lock().unwrap().push(text.to_owned());
        } else {
            transaction.push(text.to_owned());
        }
    }

    async fn count(&self, text: &str) -> usize {
        self.rows.0.lock().unwrap().iter().filter(|row| *row == text).count()
    }
}

impl Store for Slipping {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        let is_new = self.open.lock().unwrap().insert(request.id.as_str().to_owned());
        if is_new || self.slip != Slip::Waits {
            return self.inner.claim(request, call);
        }
        Box::pin(async move {
            sleep(call.within).await;
            Err(StoreError::no_answer(call.within))
        })
    }

    fn settle<'a>(&'a self, mut claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        let commits = match settlement.ending {
            Ending::Completed { .. } => self.slip == Slip::CommitsFirst,
            Ending::Failed { .. } => self.slip == Slip::CommitsFailures,
            _ => false,
        };
        let made =
            if commits { claim.transaction.take().and_then(AnyTransaction::unpack::<Vec<String>>) } else { None };
        if let Some(made) = made {
            self.rows.0.lock().unwrap().extend(made);
            claim.transaction = Some(AnyTransaction::new(Vec::<String>::new()));
        }
        let completes = claim.transaction.is_none() && matches!(self.slip, Slip::DoneWithout | Slip::LostButDone);
        if completes {
            claim.transaction = Some(AnyTransaction::new(Vec::<String>::new()));
        }
        let settled = self.inner.settle(claim, settlement, call);
        if completes && self.slip == Slip::LostButDone {
            return Box::pin(async move {
                settled.await;
                Settled::Lost
            });
        }
        settled
    }

    claimant_testkit::pass_on!(self => self.inner; renew, get);
}

impl Transactional for Slipping {
    type Transaction = Vec<String>;
}

#[tokio::test(start_paused = true)]
async fn wrong_transactions_of_a_claim_are_caught() {
    for slip in [Slip::WritesApart, Slip::CommitsFirst, Slip::CommitsFailures, Slip::DoneWithout, Slip::LostButDone] {
        let store = Arc::new(Slipping::new(slip));
        let findings = contract::survey_transactional(store.clone(), store.as_ref()).await;
        assert!(findings.broken().iter().any(|broken| broken.clause == Some(20)), "{slip:?}: {findings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_whose_claims_wait_for_a_transaction_keeps_the_contract() {
    let store = Arc::new(Slipping::new(Slip::Waits));
    contract::check_transactional(store.clone(), store.as_ref()).await;
}
