//! Keeps one row of each business event, in one DynamoDB transaction with its completion, however and however often it comes.

mod handler;
#[cfg(test)]
mod scenarios;

use claimant::Consumer;
use claimant::dynamodb::{LockTable, Transaction};
use claimant::envelope::detect;
use claimant::store::Transactional;
use handler::{AuditEvent, Entries, EventDecoder};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let entries = Entries::new(variables.text("AUDIT_TABLE"));
    let locks = LockTable::from_variables(variables).await?.optimistic_transactions();
    claimant::lambda::run(consumer(locks, entries)).await
}

/// The consumer on any store of such transactions: the lock table, and the one of the tests.
fn consumer(locks: impl Transactional<Transaction = Transaction>, entries: Entries) -> Consumer<AuditEvent> {
    let consumer = claimant::decoded_by(EventDecoder).transactional("audit", locks, entries);
    consumer.envelope(detect()).key(|event: &AuditEvent| &event.event_id)
}
