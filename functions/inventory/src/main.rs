//! Reserves stock in PostgreSQL, once for each order line.
//!
//! `inventory migrate` makes the tables in the database that `CLAIMANT_DATABASE_URL` names, and ends: for whoever deploys.

mod handler;
mod migrate;

use claimant::Consumer;
use claimant::postgres::{PostgresStore, PostgresTransactions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), claimant::Error> {
    let store = PostgresStore::from_variables(claimant::variables()).await?;
    if std::env::args().nth(1).as_deref() == Some("migrate") {
        return migrate::all(&store).await;
    }
    let consumer = Consumer::transactional("inventory", PostgresTransactions::new(store), handler::reserve)
        .key(|line| &line.reservation_id);
    claimant::lambda::run(consumer).await
}
