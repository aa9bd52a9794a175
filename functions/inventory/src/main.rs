//! Reserves stock in PostgreSQL, once for each order line.
//!
//! `inventory migrate` makes the tables in the database that `CLAIMANT_DATABASE_URL` names, and ends: for whoever deploys.

mod handler;
mod migrate;

use claimant::{Consumer, PostgresStore, PostgresTransactions, Settings};
use handler::Reservation;

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let settings = Settings::from_env(&["CLAIMANT_DATABASE_URL"])?;
    let store = PostgresStore::from_settings(&settings).await?;
    if std::env::args().nth(1).as_deref() == Some("migrate") {
        return migrate::all(&store).await;
    }
    let consumer = Consumer::transactional("inventory", PostgresTransactions::new(store), handler::reserve)
        .key(|reservation: &Reservation| &reservation.reservation_id);
    claimant::lambda::run(&settings, consumer).await
}
