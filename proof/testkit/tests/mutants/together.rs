//! Stores that complete many claims in one transaction, with a bug each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use claimant_core::protocol::Settlement;
use claimant_core::{BatchTransactional, Call, Claim, Failure, Settled, Store, StoreError, StoreFuture};
use claimant_testkit::batch_ledger::{BatchLedger, Draft};
use claimant_testkit::contract;

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

    fn begin<'a>(&'a self, lasts: Duration, call: Call<'a>) -> StoreFuture<'a, Result<Draft, StoreError>> {
        self.inner.begin(lasts, call)
    }

    fn commit<'a>(
        &'a self,
        draft: Draft,
        completions: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> StoreFuture<'a, Vec<Settled>> {
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
                Bug::FoundDone | Bug::FoundOpen => self.inner.commit(draft, completions, call).await,
            }
        })
    }

    fn resolve<'a>(&'a self, completions: Vec<(Claim, Settlement)>, call: Call<'a>) -> StoreFuture<'a, Vec<Settled>> {
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
    for (clause, bug) in
        [(18, Bug::Apart), (18, Bug::NotWritten), (18, Bug::OutOfOrder), (19, Bug::FoundDone), (19, Bug::FoundOpen)]
    {
        let wrong = Wrong { inner: BatchLedger::default(), bug };
        let findings = contract::survey_transactions(Arc::new(wrong)).await;
        let broken: BTreeSet<_> = findings.broken().iter().map(|broken| broken.clause).collect();
        assert!(broken.contains(&clause), "{bug:?} breaks {broken:?}");
    }
}
