//! One attempt at one row: its transaction, its handler, its end.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::backoff;
use claimant_core::limits::{CANCEL_GRACE_MS, VISIBILITY_MAX_S};
use claimant_core::record::{ERROR_MAX_BYTES, bounded};
use claimant_core::{AnyTransaction, Failure, FailureKind, StoreError, StoreErrorKind, TransactionSlot};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Instrument as _;

use crate::context::InboxContext;
use crate::error;
use crate::inbox::close;
use crate::link::{self, BEGIN_MAX, STATEMENT_MAX, end_of};
use crate::rows::{self, Closing, Taken};
use crate::status::{EntryStatus, StateChange};
use crate::transaction::{self, Transaction};
use crate::values::column;
use crate::worker::{AfterDeath, Worker};

/// How much longer than its handler may take a transaction is let be by the server: a host that is gone locks no row for
/// ever.
const SERVER_GRACE: Duration = Duration::from_secs(5);

/// After how long a row whose handler could not be started is due again.
const NOT_STARTED: Duration = Duration::from_secs(1);

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    /// The handler's work and the end of the row are committed.
    Done,
    /// It is tried again later.
    Failed,
    /// It is left for a person to decide.
    Dead,
    /// Another worker had the row, or no transaction could begin; no handler ran.
    NotStarted,
    /// The server gave no answer. The row is as the last committed write left it: done, or due again after its backoff.
    Unknown,
}

/// The end of a handler's run.
enum HandlerRun {
    Returned(Result<(), Failure>),
    /// It was cancelled and did not stop. What it holds is given up when it ends, or by the server.
    StillRunning,
}

/// A transaction that holds a row, and its number.
struct Held {
    transaction: Transaction,
    number: i64,
}

impl Worker {
    /// Works on a row that was taken. Dropping the future cancels the handler and gives up what it did.
    pub(crate) async fn attempt(self: Arc<Self>, taken: Taken) -> AttemptOutcome {
        let taken = Arc::new(taken);
        let span = tracing::info_span!(
            "message", consumer = %taken.consumer, message_id = %taken.message_id, inbox_id = taken.id,
            attempt = taken.attempt, trace = taken.message.trace.as_deref()
        );
        self.work(&taken).instrument(span).await
    }

    async fn work(&self, taken: &Arc<Taken>) -> AttemptOutcome {
        if taken.attempt > self.attempts_max {
            let why = "its last attempt did not tell how it ended: the worker was killed, or lost its database";
            return self.mark_dead(taken, why).await;
        }
        let Held { transaction, number } = match self.hold(taken).await {
            Ok(Some(held)) => held,
            Ok(None) => {
                let error = StoreError::new(StoreErrorKind::Throttled, "another worker held its row for a moment");
                return self.give_back(taken, &error).await;
            }
            Err(error) => return self.give_back(taken, &error).await,
        };
        let home = TransactionSlot::of(Some(AnyTransaction::new(transaction)));
        let ran = self.run(taken, &home).await;
        let transaction = home.take().and_then(AnyTransaction::unpack::<Transaction>);
        match (ran, transaction) {
            (HandlerRun::StillRunning, _) => {
                tracing::error!(
                    "handler did not stop when cancelled: its row is locked until it does, or the server ends it"
                );
                AttemptOutcome::Unknown
            }
            (HandlerRun::Returned(Ok(())), Some(transaction)) => self.finish(taken, transaction, number).await,
            (HandlerRun::Returned(Ok(())), None) => {
                let why =
                    "the handler returned and kept its transaction: drop it, and whatever holds it, before returning";
                self.fail(taken, Failure::retry(why)).await
            }
            (HandlerRun::Returned(Err(failure)), transaction) => {
                if let Some(transaction) = transaction {
                    transaction::give_up(transaction, end_of(STATEMENT_MAX)).await;
                }
                self.fail(taken, failure).await
            }
        }
    }

    /// The row's lock, in a transaction of its own; `None` where it could not be had: a look of this worker or another one has
    /// the row for a moment, or it is no longer this attempt's. (Giving it back writes nothing then.)
    async fn hold(&self, taken: &Taken) -> Result<Option<Held>, StoreError> {
        let until = end_of(BEGIN_MAX);
        let mut transaction = transaction::begin(&self.pool, self.timeout + SERVER_GRACE, until).await?;
        let lock = rows::lock(taken.id, taken.fence);
        let rows = transaction::rows(&mut transaction, until, "locking a message", lock).await?;
        match rows.first() {
            Some(row) => Ok(Some(Held { number: column(row, "transaction")?, transaction })),
            None => {
                transaction::give_up(transaction, until).await;
                Ok(None)
            }
        }
    }

    /// Runs the handler until it ends or its time is over.
    async fn run(&self, taken: &Arc<Taken>, home: &TransactionSlot) -> HandlerRun {
        let cancel_at = Instant::now() + self.timeout;
        let cx = InboxContext::new(Arc::clone(taken), cancel_at);
        let run = match self.handlers.run(home.clone(), cx) {
            Ok(run) => run,
            Err(failure) => return HandlerRun::Returned(Err(failure)),
        };
        let mut task = AbortOnDrop(tokio::spawn(run.in_current_span()));
        if let Ok(joined) = timeout_at(cancel_at, &mut task.0).await {
            return HandlerRun::Returned(ended(joined));
        }
        task.0.abort();
        match timeout(Duration::from_millis(CANCEL_GRACE_MS), &mut task.0).await {
            Ok(joined) => HandlerRun::Returned(ended(joined)),
            Err(_) => HandlerRun::StillRunning,
        }
    }

    /// Ends the row in the handler's own transaction, and commits that.
    async fn finish(&self, taken: &Taken, mut transaction: Transaction, number: i64) -> AttemptOutcome {
        let until = end_of(STATEMENT_MAX);
        let closing = Closing { transaction: Some(number), ..self.closing(taken, EntryStatus::Done) };
        let closed = transaction::rows(&mut transaction, until, "ending a message", rows::close(closing)).await;
        match closed.and_then(|rows| rows::written(&rows)) {
            Ok(1) => {}
            Ok(_) => {
                transaction::give_up(transaction, until).await;
                let why = "the handler ended its transaction itself: leave COMMIT and ROLLBACK to the worker";
                return self.fail(taken, Failure::retry(why)).await;
            }
            Err(error) => {
                transaction::give_up(transaction, until).await;
                return self.fail(taken, error::uncommitted(&error)).await;
            }
        }
        match transaction::commit(transaction, until).await {
            Ok(()) => AttemptOutcome::Done,
            // If it was committed after all, the row is done, and this writes nothing.
            Err(error) => self.fail(taken, error::uncommitted(&error)).await,
        }
    }

    /// Notes why an attempt failed, and when the next one is due.
    async fn fail(&self, taken: &Taken, failure: Failure) -> AttemptOutcome {
        let Failure { why, kind, retry_after } = failure;
        let is_final = kind == FailureKind::Terminal;
        if is_final || taken.attempt >= self.attempts_max {
            return self.mark_dead(taken, &why).await;
        }
        tracing::warn!(error = why, "attempt failed");
        let now = self.clock.now();
        let delay = retry_after.unwrap_or_else(|| backoff::delay(taken.attempt, &taken.message_id));
        let delay = delay.min(Duration::from_secs(VISIBILITY_MAX_S));
        let error = bounded(&why, ERROR_MAX_BYTES);
        let statement = rows::again(taken, Some(error), false, now.plus(delay), now);
        match link::rows(&self.pool, end_of(STATEMENT_MAX), "noting a failure", statement).await {
            Ok(rows) if rows.is_empty() => AttemptOutcome::Unknown,
            Ok(_) => AttemptOutcome::Failed,
            Err(error) => unwritten(&error),
        }
    }

    /// Leaves a row for a person to decide.
    async fn mark_dead(&self, taken: &Taken, why: &str) -> AttemptOutcome {
        tracing::error!(error = why, "message is dead: it is not tried again until an operator retries it");
        let closing = Closing { error: Some(bounded(why, ERROR_MAX_BYTES)), ..self.closing(taken, EntryStatus::Dead) };
        match close(&self.pool, closing, end_of(STATEMENT_MAX)).await {
            Ok(StateChange::Applied) => AttemptOutcome::Dead,
            Ok(StateChange::WrongState) => AttemptOutcome::Unknown,
            Err(error) => unwritten(&error),
        }
    }

    /// An attempt without a transaction was none. Where this is not written either, it counts.
    async fn give_back(&self, taken: &Taken, error: &StoreError) -> AttemptOutcome {
        tracing::warn!(%error, "no attempt could be made");
        let now = self.clock.now();
        let statement = rows::again(taken, None, true, now.plus(NOT_STARTED), now);
        if let Err(error) = link::rows(&self.pool, end_of(STATEMENT_MAX), "giving an attempt back", statement).await {
            unwritten(&error);
        }
        AttemptOutcome::NotStarted
    }

    fn closing<'a>(&self, taken: &Taken, status: EntryStatus) -> Closing<'a> {
        Closing {
            id: taken.id,
            fence: Some(taken.fence),
            status,
            holds_group: status == EntryStatus::Dead && self.after_death == AfterDeath::GroupWaits,
            error: None,
            attempts_max: self.attempts_max,
            now: self.clock.now(),
            transaction: None,
        }
    }
}

/// The end of an attempt could not be written: the row is as it was when the attempt began, due again after its backoff.
fn unwritten(error: &StoreError) -> AttemptOutcome {
    tracing::warn!(%error, "how the attempt ended could not be noted");
    AttemptOutcome::Unknown
}

fn ended(joined: Result<Result<(), Failure>, JoinError>) -> Result<(), Failure> {
    joined.unwrap_or_else(|end| {
        Err(Failure::retry(if end.is_panic() {
            "the handler panicked"
        } else {
            "the handler was cancelled at its timeout"
        }))
    })
}

/// A handler's task, cancelled when this is dropped.
struct AbortOnDrop(JoinHandle<Result<(), Failure>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
