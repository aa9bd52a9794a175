//! Books changes of loyalty points in each customer's order, each in one DynamoDB transaction with its completion.

mod handler;

use std::sync::Arc;

use claimant::{Consumer, LockTable};
use handler::{Books, Change};

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let books = Arc::new(Books::new(variables.text("LOYALTY_TABLE")));
    // Without a claim beforehand, which saves a request and a write unit for each change: the handler does nothing outside
    // its transaction, so one that loses the race for its key has done nothing. And races are rare, since a FIFO queue
    // hands out the changes of one customer to one invocation at a time.
    let locks = LockTable::from_variables(variables).await?.optimistic_transactions();
    let book = move |change, tx, cx| handler::book(Arc::clone(&books), change, tx, cx);
    let consumer = Consumer::transactional("loyalty", locks, book).key(|change: &Change| &change.change_id);
    claimant::lambda::run(consumer).await
}
