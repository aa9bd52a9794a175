//! The connections of an inbox, which all of its workers share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection, PgPool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::{explain, no_answer};

/// How many handlers may have a connection, and who may have the one beside the pool.
pub(crate) struct Connections {
    /// One for each connection of the pool, for the handlers of all workers.
    of_handlers: Arc<Semaphore>,
    /// Held while the one beside the pool is open.
    beside: tokio::sync::Mutex<()>,
    /// What is to be ended by it.
    waiting: Mutex<Vec<AtServer>>,
}

/// A transaction as the server knows it: its number, and that of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AtServer {
    pub(crate) transaction: i64,
    pub(crate) backend: i64,
}

impl Connections {
    pub(crate) fn of(pool: &PgPool) -> Self {
        // OK because a u32 fits any usize.
        let most = (pool.options().get_max_connections() as usize).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            of_handlers: Arc::new(Semaphore::new(most)),
            beside: tokio::sync::Mutex::default(),
            waiting: Mutex::default(),
        }
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
    /// beside the pool's, which handlers can have all: one for all that wait for it.
    pub(crate) async fn end(&self, pool: &PgPool, at: AtServer, until: Instant) {
        const OPERATION: &str = "ending the transaction of an attempt";
        self.waiting().push(at);
        let error = match timeout_at(until, self.end_waiting(pool, at, until)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => explain(OPERATION, &error),
            Err(_) => no_answer(OPERATION),
        };
        self.waiting().retain(|waits| *waits != at);
        tracing::warn!(%error, "the server may go on with the transaction of an attempt: its row is locked until that ends");
    }

    /// Ends all that wait, when it has its turn; nothing if another one has ended this one by then.
    async fn end_waiting(&self, pool: &PgPool, at: AtServer, until: Instant) -> Result<(), sqlx::Error> {
        let _one = self.beside.lock().await;
        let all = self.waiting().clone();
        if !all.contains(&at) {
            return Ok(());
        }
        // Its number counts further than the one that the server shows of each connection.
        let numbers = all.iter().map(|at| format!("({}, {})", at.backend, at.transaction & i64::from(u32::MAX)));
        let end = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE (pid, backend_xid::text::bigint) IN ({})",
            Vec::from_iter(numbers).join(", ")
        );
        let mut own = connect(pool, until).await?;
        own.execute(AssertSqlSafe(end)).await?;
        self.waiting().retain(|waits| !all.contains(waits));
        own.close().await
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<AtServer>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a connection, also where a server that is full has to be rid of others first, as the pool does.
async fn connect(pool: &PgPool, until: Instant) -> Result<PgConnection, sqlx::Error> {
    const TOO_MANY: &str = "53300";
    const PAUSE: Duration = Duration::from_millis(50);
    let options = pool.connect_options();
    loop {
        match options.connect().await {
            Err(sqlx::Error::Database(error))
                if error.code().as_deref() == Some(TOO_MANY) && Instant::now() + 2 * PAUSE < until =>
            {
                sleep(PAUSE).await;
            }
            connected => return connected,
        }
    }
}
