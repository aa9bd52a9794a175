//! Books changes of loyalty points in each customer's order, each in one DynamoDB transaction with its completion.

mod handler;
#[cfg(test)]
mod scenarios;

use claimant::Consumer;
use claimant::dynamodb::{LockTable, Transaction};
use claimant::store::Transactional;
use handler::{Books, Change};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let books = Books::new(variables.text("LOYALTY_TABLE"));
    // Without a claim beforehand, which saves a request and a write unit for each change: the handler does nothing outside
    // its transaction, so one that loses the race for its key has done nothing. And races are rare, since a FIFO queue
    // hands out the changes of one customer to one invocation at a time.
    let locks = LockTable::from_variables(variables).await?.optimistic_transactions();
    claimant::lambda::run(consumer(locks, books)).await
}

/// The consumer on any store of such transactions: the lock table, and the one of the tests.
fn consumer(locks: impl Transactional<Transaction = Transaction>, books: Books) -> Consumer<Change> {
    Consumer::transactional("loyalty", locks, books).key(|change: &Change| &change.change_id)
}
