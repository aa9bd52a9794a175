//! A connection beside the pool's, which handlers can have all: to end a transaction that one has kept, and to write that it failed.

use std::time::Duration;

use claimant_core::{Budget, Call};
use sqlx::{Database, Pool};
use tokio::time::timeout;

use crate::dialect::{AtServer, Dialect};
use crate::error::SqlError;
use crate::session::Session;

/// The longest that it takes to end a transaction; the next try to settle its claim asks again.
const END_MAX: Duration = Duration::from_secs(2);

/// Returns a pool of a single connection, as those of this pool, which is opened when it is needed.
pub(crate) fn open<D: Database>(pool: &Pool<D>) -> Pool<D> {
    let options = pool.options().clone().min_connections(0).max_connections(1);
    options.connect_lazy_with((*pool.connect_options()).clone())
}

/// Ends the statement that was cut off in this transaction, or the transaction that a handler has kept: what it has locked would be locked
/// until it ends by itself.
///
/// # Errors
/// Where the server did not answer. If it refuses, no other try is of use.
pub(crate) async fn end<D: Dialect>(beside: &Pool<D>, at: AtServer, budget: Budget<'_>) -> Result<(), SqlError> {
    let budget = Budget::of(Call { within: budget.left().min(END_MAX), meter: budget.meter() });
    let mut session = Session::open(beside, budget).await?;
    match D::control(&mut session, "ending a transaction", D::kill(at)).await {
        Err(error) if !error.is_answer() => Err(error),
        _ => Ok(()),
    }
}

/// Closes it. Nobody waits for that.
pub(crate) fn close<D: Database>(beside: Pool<D>) {
    tokio::spawn(timeout(END_MAX, async move { beside.close().await }));
}
