//! Begins, hands over and ends the transaction of a session.

use std::time::Duration;

use sqlx::pool::PoolConnection;

use crate::dialect::{AtServer, Dialect};
use crate::error::SqlError;
use crate::session::Session;

impl<D: Dialect> Session<'_, D> {
    /// Begins a transaction that waits only a short while for locks, with this after it in the same request.
    pub(crate) async fn begin(&mut self, and: &'static str) -> Result<(), SqlError> {
        self.in_transaction = true;
        let begun = D::control(self, "beginning a transaction", [D::BEGIN, and].concat()).await;
        if begun.as_ref().is_err_and(SqlError::is_answer) {
            self.roll_back().await;
        }
        // What is locked by others is then a whole table, and no key is in use.
        begun.map_err(|error| SqlError { contended: false, ..error })
    }

    /// Hands the transaction over to the handler, with the server's own lock timeout; the server ends it if it is idle for
    /// as long as a lease. Returns the connection, and what the transaction is to the server.
    pub(crate) async fn hand_over(
        mut self,
        lease: Duration,
    ) -> Result<(Option<PoolConnection<D>>, AtServer), SqlError> {
        let at = D::hand_over(&mut self, lease).await?;
        Ok((self.connection.take(), at))
    }

    /// Commits; on an error the connection is closed when this is dropped.
    pub(crate) async fn commit(&mut self) -> Result<(), SqlError> {
        D::control(self, "the commit", D::COMMIT.to_owned()).await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Rolls back, here or by closing the connection.
    pub(crate) async fn roll_back(&mut self) {
        // A statement without an answer has closed it.
        if self.connection.is_none() {
            return;
        }
        if D::control(self, "a rollback", D::ROLLBACK.to_owned()).await.is_ok() {
            self.in_transaction = false;
        } else {
            self.close();
        }
    }
}
