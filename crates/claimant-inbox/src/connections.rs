//! The connections of an inbox, which all of its workers share.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgPool};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::error::{explain, no_answer};

/// How many handlers may have a connection, and who may have the one beside the pool.
pub(crate) struct Connections {
    /// One for each connection of the pool, for the handlers of all workers.
    of_handlers: Arc<Semaphore>,
    /// Held while the one beside the pool is open.
    beside: Mutex<()>,
}

/// A transaction as the server knows it: its number, and that of its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtServer {
    pub(crate) transaction: i64,
    pub(crate) backend: i64,
}

impl Connections {
    pub(crate) fn of(pool: &PgPool) -> Self {
        // OK because a u32 fits any usize.
        let most = (pool.options().get_max_connections() as usize).clamp(1, Semaphore::MAX_PERMITS);
        Self { of_handlers: Arc::new(Semaphore::new(most)), beside: Mutex::new(()) }
    }

    /// Takes one for a handler, if one is free.
    pub(crate) fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.of_handlers).try_acquire_owned().ok()
    }

    /// Waits until there is one for a handler.
    pub(crate) async fn has_one(&self) {
        // It is never closed.
        let _ = self.of_handlers.acquire().await;
    }

    /// Ends a transaction at the server, together with its connection, whatever that does; where it is over, does nothing. By a connection
    /// beside the pool's, which handlers can have all: one for all that are to be ended at that moment.
    pub(crate) async fn end(&self, pool: &PgPool, at: AtServer, until: Instant) {
        const OPERATION: &str = "ending the transaction of a handler";
        // Its number counts further than the one that the server shows of each connection.
        let end = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE pid = {} AND backend_xid::text::bigint = {} & 4294967295",
            at.backend, at.transaction
        );
        let options = pool.connect_options();
        let end = async {
            let _one = self.beside.lock().await;
            let mut own = options.connect().await?;
            own.execute(AssertSqlSafe(end)).await?;
            own.close().await
        };
        let error = match timeout_at(until, end).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => explain(OPERATION, &error),
            Err(_) => no_answer(OPERATION),
        };
        tracing::warn!(%error, "the server may go on with the transaction of a handler: its row is locked until that ends");
    }
}
