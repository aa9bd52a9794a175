//! The tables: claimant's records and the stock, each set of migrations noted in a table of its own.

use claimant::Error;
use claimant::postgres::PostgresStore;
use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// Where it is noted what was applied of ours.
const NOTED_IN: &str = "inventory_migrations";

const STOCK: &str = include_str!("../migrations/1_stock.sql");

/// Makes or renews all tables; any number of callers may do so at once.
pub(crate) async fn all(store: &PostgresStore) -> Result<(), Error> {
    let failed = |what: &str| Error::new(format!("the migrations of {what} could not be applied"));
    store.migrate().await.map_err(|e| failed("claimant's records").caused_by(e))?;
    let stock = Migration::new(1, "stock".into(), MigrationType::Simple, STOCK.into_sql_str(), false);
    let mut migrator = Migrator::with_migrations(vec![stock]);
    migrator.dangerous_set_table_name(NOTED_IN);
    migrator.run(store.pool()).await.map_err(|e| failed("the stock").caused_by(e))
}
