//! Keeps one row of each business event, in one DynamoDB transaction with its completion, however and however often it comes.

mod handler;

use claimant::dynamodb::LockTable;
use claimant::envelope::detect;
use handler::{Entries, EventDecoder};

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let entries = Entries::new(variables.text("AUDIT_TABLE"));
    let locks = LockTable::from_variables(variables).await?.optimistic_transactions();
    let consumer = claimant::decoded_by(EventDecoder).transactional("audit", locks, entries);
    claimant::lambda::run(consumer.envelope(detect()).key(|event| &event.event_id)).await
}
