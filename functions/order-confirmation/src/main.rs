//! Sends one confirmation e-mail per order, through Amazon SES.

mod handler;
#[cfg(test)]
mod scenarios;

use std::time::Duration;

use aws_sdk_sesv2::Client;
use claimant::aws::Later;
use claimant::dynamodb::LockTable;
use claimant::store::Store;
use claimant::{Consumer, Lease};
use handler::{Mailer, Order};

/// How long after a process died another one may take its mails over. Mails that take less than a third of it cost no renewal.
const LEASE: Duration = Duration::from_secs(4);

/// How long a copy of an order that is being confirmed waits for that, instead of coming back half a minute later.
const BUSY_WAIT: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let sender = variables.text("SENDER_ADDRESS");
    let table = LockTable::from_variables(variables).await?;
    // A retry inside the SDK could send a mail twice in one run, and SES cannot tell.
    let config = claimant::aws::config_without_retries().await?;
    let ses = Later::new(move || Client::new(config));
    claimant::lambda::run(consumer(table, Mailer::new(ses, sender))).await
}

/// The consumer on any store: the lock table, and the one of the tests.
fn consumer(store: impl Store, mailer: Mailer) -> Consumer<Order> {
    let consumer = Consumer::new("order-confirmation", store, mailer).key(|order: &Order| &order.order_id);
    consumer.lease(Lease::Renewed(LEASE)).wait_while_busy(BUSY_WAIT)
}
