//! The lock table with claims that carry a [`Transaction`].

use std::ops::ControlFlow::{Break, Continue};

use claimant_core::protocol::{self, ClaimRequest, Ending, Renewal, SettleDecision, Settlement};
use claimant_core::{
    AnyTransaction, BatchedClaim, BoxFuture, Budget, Call, Claim, ClaimAnswer, Record, RecordId, Renewed, Settled,
    Store, StoreError, Transactional,
};
use futures_util::future::join_all;

use crate::commit::Seen;
use crate::optimistic::OptimisticTransactions;
use crate::table::LockTable;
use crate::transaction::Transaction;

/// A lock table whose completions commit together with the handler's writes, in one `TransactWriteItems`.
///
/// Keys are claimed as in the [`LockTable`], so a handler runs once at a time and may do things outside the transaction
/// too. Costs two write units for the completion instead of one, and DynamoDB's two for each unit of the handler's
/// writes.
#[derive(Debug, Clone)]
pub struct TableTransactions {
    table: LockTable,
}

impl LockTable {
    /// Returns this table with handlers that are lent a [`Transaction`]: for [`Consumer::transactional`](claimant_core::Consumer::transactional).
    ///
    /// The function's role needs `dynamodb:PutItem`, `UpdateItem`, `DeleteItem` and `ConditionCheckItem` on the handler's
    /// tables, each as far as it uses them.
    #[must_use]
    pub fn transactions(self) -> TableTransactions {
        TableTransactions { table: self }
    }

    /// Returns this table with transactions and without claims, see [`OptimisticTransactions`].
    #[must_use]
    pub fn optimistic_transactions(self) -> OptimisticTransactions {
        OptimisticTransactions::new(self)
    }
}

impl TableTransactions {
    async fn commit(&self, mut claim: Claim, settlement: &Settlement, budget: Budget<'_>) -> Settled {
        let Some(transaction) = claim.transaction.take().and_then(AnyTransaction::unpack::<Transaction>) else {
            return Settled::Lost;
        };
        let lock = |held: &Claim, seen| match seen {
            Seen::Nothing => Continue(self.table.requests.settle(held, settlement)),
            Seen::Refused(seen) | Seen::Read(seen) => match protocol::settle(seen.as_ref(), held, settlement) {
                SettleDecision::AlreadySettled => Break(Settled::Done),
                SettleDecision::Lost => Break(Settled::Lost),
                SettleDecision::Write(_) => Continue(self.table.requests.settle(held, settlement)),
            },
        };
        self.table.commit(claim, transaction, lock, budget).await
    }
}

fn with_transaction(answer: ClaimAnswer) -> ClaimAnswer {
    match answer {
        ClaimAnswer::Granted(claim) => {
            ClaimAnswer::Granted(Claim { transaction: Some(AnyTransaction::new(Transaction::default())), ..claim })
        }
        refused => refused,
    }
}

impl Store for TableTransactions {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move { self.table.claim(request, call).await.map(with_transaction) })
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(async move {
            let answers = self.table.claim_all(requests, call).await;
            answers.into_iter().map(|answer| answer.map(|answer| answer.map(with_transaction))).collect()
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        self.table.renew(claim, renewal, call)
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        match settlement.ending {
            Ending::Completed { .. } => Box::pin(self.commit(claim, settlement, Budget::of(call))),
            _ => self.table.settle(claim, settlement, call),
        }
    }

    /// Commits completions one by one, and settles everything else in one request.
    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            let is_commit = |s: &Settlement| matches!(s.ending, Ending::Completed { .. });
            let order: Vec<bool> = settlements.iter().map(|(_, settlement)| is_commit(settlement)).collect();
            let (commits, others): (Vec<_>, Vec<_>) = settlements.into_iter().partition(|(_, s)| is_commit(s));
            let commits = commits
                .into_iter()
                .map(|(claim, settlement)| async move { self.commit(claim, &settlement, Budget::of(call)).await });
            let (commits, others) = tokio::join!(join_all(commits), self.table.settle_all(others, call));
            let (mut commits, mut others) = (commits.into_iter(), others.into_iter());
            let answers = order.into_iter().map(|commit| if commit { commits.next() } else { others.next() });
            answers.map(|a| a.unwrap_or_else(|| Settled::given_up(call.within))).collect()
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.table.get(id, call)
    }
}

impl Transactional for TableTransactions {
    type Transaction = Transaction;
}
