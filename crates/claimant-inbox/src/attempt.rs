//! One attempt at one row: begins a transaction, runs the handler, and writes how it ended.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::backoff;
use claimant_core::breaker::Health;
use claimant_core::limits::CANCEL_GRACE_MS;
use claimant_core::record::{ERROR_MAX_BYTES, shortened};
use claimant_core::{AnyTransaction, Failure, FailureKind, StoreError, StoreErrorKind, TransactionSlot};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{Instrument as _, Span};

use crate::connections::AtServer;
use crate::context::InboxContext;
use crate::downstream::Turn;
use crate::error;
use crate::handlers::guarded;
use crate::limits::AFTER_MAX_S;
use crate::link::{self, BEGIN_MAX, STATEMENT_MAX, end_of};
use crate::rows::{self, Closing, Taken};
use crate::status::EntryStatus;
use crate::transaction::{self, Transaction};
use crate::values::bigint;
use crate::worker::{Slot, Worker};

/// How much longer than the handler's timeout the server keeps a transaction open. It then ends it, so that a lost host does
/// not lock a row for ever.
const SERVER_GRACE: Duration = Duration::from_secs(5);

/// When a row whose handler could not be started is due again.
const NOT_STARTED_DELAY: Duration = Duration::from_secs(1);

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    /// The handler's work and the end of the row are committed.
    Done,
    /// The row is tried again later.
    Failed,
    /// The row waits for an operator's decision.
    Dead,
    /// Another worker had the row, an earlier one of its group was open again, or no transaction could begin; no handler ran.
    NotStarted,
    /// The server gave no answer. The row is in the state of the last committed write: done, or due again after the longest
    /// that an attempt takes, or its backoff if that is longer.
    Unknown,
}

/// What an attempt came to, and what it says of the system that the handler calls.
pub(crate) struct Attempt {
    pub(crate) outcome: AttemptOutcome,
    pub(crate) health: Health,
    pub(crate) took: Duration,
}

/// What was seen of the system that a handler calls, since its run began.
struct Seen {
    began: Instant,
    health: Health,
}

/// How a handler's run ended.
enum HandlerRun {
    Returned(Result<(), Failure>),
    TimedOut,
    /// It was cancelled and did not stop. Its locks are released when it ends, or by the server.
    StillRunning,
}

/// A transaction that has locked a row.
struct LockedRow {
    transaction: Transaction,
    at_server: AtServer,
}

impl Worker {
    /// Makes one attempt at a row, when it has its turn. Dropping the future cancels the handler and rolls back its work. A handler that does not
    /// stop has its connection still, and so the attempt's slot, until it does.
    pub(crate) async fn attempt(self: Arc<Self>, taken: Taken, turn: Turn, slot: Slot) -> Attempt {
        let (taken, slot) = (Arc::new(taken), Arc::new(slot));
        // At `ERROR`, though it is none: no level that shows a line takes its span away.
        let span = tracing::error_span!(
            "message", consumer = taken.consumer(), message_id = %taken.message_id, inbox_id = taken.id,
            attempt = taken.attempt, trace = taken.trace.as_deref()
        );
        let mut seen = Seen { began: Instant::now(), health: Health::Unknown };
        let outcome = self.work(&taken, turn, &slot, &mut seen).instrument(span).await;
        Attempt { outcome, health: seen.health, took: seen.began.elapsed() }
    }

    async fn work(&self, taken: &Arc<Taken>, mut turn: Turn, slot: &Arc<Slot>, seen: &mut Seen) -> AttemptOutcome {
        if taken.attempt > self.attempts_max {
            let why = "how its last attempt ended is not known: the worker was killed, or lost its database";
            return self.mark_dead(taken.id, bigint(taken.fence), why, end_of(STATEMENT_MAX)).await;
        }
        let (downstream, begin_by) = (&self.shared.downstream, end_of(BEGIN_MAX));
        let (LockedRow { transaction, at_server }, body) = match self.lock_row(taken, begin_by).await {
            Ok(locked) => locked,
            Err(outcome) => return outcome,
        };
        if !downstream.may_begin(&mut turn).await {
            transaction::give_up(transaction, end_of(STATEMENT_MAX)).await;
            let error =
                StoreError::new(StoreErrorKind::Throttled, "the limit or the breaker of what it calls gave it no turn");
            return self.give_back(taken, &error).await;
        }
        let lent = TransactionSlot::of(Some(AnyTransaction::new(transaction)));
        seen.began = Instant::now();
        // The attempt takes no longer for a body that came late.
        let cancel_at = seen.began.min(begin_by + downstream.turn_max()) + self.timeout;
        let cx = InboxContext::new(Arc::clone(taken), body, cancel_at);
        let ran = self.run(cx, cancel_at, &lent, Arc::clone(slot)).await;
        drop(turn);
        let transaction = lent.take().and_then(AnyTransaction::unpack::<Transaction>);
        let locked = transaction.map(|transaction| LockedRow { transaction, at_server });
        seen.health = match &ran {
            HandlerRun::Returned(Ok(())) => Health::Answered,
            HandlerRun::Returned(Err(failure)) => downstream.health_in(failure),
            HandlerRun::TimedOut | HandlerRun::StillRunning if cancel_at < seen.began + self.timeout => Health::Unknown,
            HandlerRun::TimedOut | HandlerRun::StillRunning => Health::Away,
        };
        let ran = match ran {
            HandlerRun::TimedOut => {
                let ms = cancel_at.saturating_duration_since(seen.began).as_millis();
                let why = format!("the handler was cancelled after {ms} ms, at its own timeout");
                HandlerRun::Returned(Err(Failure::retry(why)))
            }
            ran => ran,
        };
        match (ran, locked) {
            (HandlerRun::StillRunning | HandlerRun::TimedOut, _) => {
                tracing::error!(
                    "handler did not stop when cancelled: its row is locked until it does, or the server ends it"
                );
                AttemptOutcome::Unknown
            }
            (HandlerRun::Returned(Ok(())), Some(locked)) => self.finish(taken, locked).await,
            (HandlerRun::Returned(Err(failure)), Some(locked)) => {
                self.roll_back(taken, locked, end_of(STATEMENT_MAX), failure).await
            }
            (HandlerRun::Returned(result), None) => {
                let why =
                    "the handler returned and kept its transaction: drop it, and whatever holds it, before returning";
                let failure = result.err().unwrap_or_else(|| Failure::retry(why));
                self.end_and_fail(taken, at_server, failure, end_of(2 * STATEMENT_MAX)).await
            }
        }
    }

    /// Locks the row in a transaction of its own, and reads its body, which has the handler's time, too. Gives the attempt back if an earlier row
    /// of its group is open again, or if the row is no longer this attempt's, where giving it back writes nothing.
    ///
    /// Whatever keeps the body of a locked row from coming counts as a failure, so that one that never comes is dead at last.
    async fn lock_row(&self, taken: &Taken, begin_by: Instant) -> Result<(LockedRow, String), AttemptOutcome> {
        const OPERATION: &str = "locking a message and reading its body";
        let within = self.shared.downstream.turn_max() + self.timeout + SERVER_GRACE;
        let mut transaction = match transaction::begin(&self.pool, taken.group_lock, within, begin_by).await {
            Ok(transaction) => transaction,
            Err(error) => return Err(self.give_back(taken, &error).await),
        };
        let (lock, read_by) = (rows::lock(taken.id, taken.fence), begin_by + self.timeout);
        let (mut locked_by, mut body) = (None, None);
        let read = transaction::each_row(&mut transaction, read_by, OPERATION, lock, |row| {
            match locked_by {
                None => locked_by = Some(rows::locked_by(&row)?),
                Some(_) => body = Some(rows::body(&row)?),
            }
            Ok(())
        });
        let (read, is_late) = (read.await, Instant::now() >= read_by);
        Err(match (locked_by, body, read) {
            (Some(at_server), Some(body), Ok(())) => return Ok((LockedRow { transaction, at_server }, body)),
            // The server may still send it, and has the row locked until the last of it is on its way. Or it is the body that has ended it.
            (at_server, _, Err(error)) if is_late || error.kind() == StoreErrorKind::Unreachable => {
                drop(transaction);
                let failure = error::unread(&error, is_late);
                match at_server {
                    Some(at) => self.end_and_fail(taken, at, failure, end_of(2 * STATEMENT_MAX)).await,
                    None => self.fail(taken, failure, end_of(STATEMENT_MAX)).await,
                }
            }
            (Some(at_server), _, Err(error)) => {
                let locked = LockedRow { transaction, at_server };
                self.roll_back(taken, locked, end_of(STATEMENT_MAX), error::unread(&error, false)).await
            }
            (None, _, Err(error)) => {
                drop(transaction);
                self.give_back(taken, &error).await
            }
            (_, _, Ok(())) => {
                transaction::give_up(transaction, end_of(STATEMENT_MAX)).await;
                let why = "an earlier message of its group is to be processed first, or another worker has its row";
                self.give_back(taken, &StoreError::new(StoreErrorKind::Throttled, why)).await
            }
        })
    }

    /// Runs the handler until it ends or times out. It has the slot for as long as it runs.
    async fn run(&self, cx: InboxContext, cancel_at: Instant, lent: &TransactionSlot, slot: Arc<Slot>) -> HandlerRun {
        let run = match self.handlers.run(lent.clone(), cx) {
            Ok(run) => run,
            Err(failure) => return HandlerRun::Returned(Err(failure)),
        };
        let run = guarded(run, Span::current());
        let mut task = AbortOnDrop(tokio::spawn(async move {
            let _slot = slot;
            run.await
        }));
        if let Ok(joined) = timeout_at(cancel_at, &mut task.0).await {
            return HandlerRun::Returned(ended(joined));
        }
        task.0.abort();
        match timeout(Duration::from_millis(CANCEL_GRACE_MS), &mut task.0).await {
            // What it returned at the last moment counts.
            Ok(joined) if joined.as_ref().is_err_and(JoinError::is_cancelled) => HandlerRun::TimedOut,
            Ok(joined) => HandlerRun::Returned(ended(joined)),
            Err(_) => HandlerRun::StillRunning,
        }
    }

    /// Marks the row done in the handler's own transaction, and commits that.
    async fn finish(&self, taken: &Taken, mut locked: LockedRow) -> AttemptOutcome {
        let until = end_of(STATEMENT_MAX);
        let closing = self.closing(taken.id, bigint(taken.fence), EntryStatus::Done);
        let closing = Closing { transaction: Some(locked.at_server.transaction), ..closing };
        let (own, close) = (&mut locked.transaction, rows::close(closing));
        let closed = transaction::rows_after_handler(own, until, "ending a message", close).await;
        match closed.and_then(|rows| rows::written(&rows)) {
            Ok(1) => {}
            Ok(_) => {
                let why = "the transaction ended before its handler did, or is that of another message";
                return self.roll_back(taken, locked, until, Failure::retry(why)).await;
            }
            Err(error) => return self.roll_back(taken, locked, until, error::uncommitted(&error)).await,
        }
        match transaction::commit(locked.transaction, until).await {
            Ok(()) => AttemptOutcome::Done,
            // If it was committed after all, the row is done, and this writes nothing.
            Err(error) => self.fail(taken, error::commit_failed(&error), end_of(STATEMENT_MAX)).await,
        }
    }

    /// Rolls back, and records why the attempt failed. A rollback waits behind a statement whose answer the handler did not wait for. Where that
    /// does not end in time, the server is to end it: the row is locked until then.
    async fn roll_back(&self, taken: &Taken, locked: LockedRow, until: Instant, failure: Failure) -> AttemptOutcome {
        if transaction::give_up(locked.transaction, until).await {
            return self.fail(taken, failure, end_of(STATEMENT_MAX)).await;
        }
        self.end_and_fail(taken, locked.at_server, failure, end_of(STATEMENT_MAX)).await
    }

    /// Has the server end the transaction, which has the row locked, and records why the attempt failed, also where the server gave no answer
    /// to the first: the row can be free.
    async fn end_and_fail(
        &self,
        taken: &Taken,
        at_server: AtServer,
        failure: Failure,
        until: Instant,
    ) -> AttemptOutcome {
        self.shared.connections.end(&self.pool, at_server, until - STATEMENT_MAX / 4).await;
        self.fail(taken, failure, until).await
    }

    /// Records why an attempt failed, and when the next one is due.
    async fn fail(&self, taken: &Taken, failure: Failure, until: Instant) -> AttemptOutcome {
        let Failure { why, kind, retry_after, .. } = failure;
        if kind == FailureKind::Terminal || taken.attempt >= self.attempts_max {
            return self.mark_dead(taken.id, bigint(taken.fence), &why, until).await;
        }
        let (error, now) = (shortened(&why, ERROR_MAX_BYTES), self.clock.now());
        let delay = retry_after.unwrap_or_else(|| backoff::delay(taken.attempt, &taken.message_id));
        let delay = delay.min(Duration::from_secs(AFTER_MAX_S));
        let statement = rows::again(taken, Some(&error), false, now.plus(delay), now);
        match link::rows(&self.pool, until, "recording a failure", statement).await {
            Ok(rows) if rows.is_empty() => {
                tracing::warn!(
                    error = why,
                    "the attempt's failure was not recorded: its message is done all the same, discarded, or taken again"
                );
                AttemptOutcome::Unknown
            }
            Ok(_) => {
                tracing::warn!(error = why, "attempt failed");
                AttemptOutcome::Failed
            }
            Err(error) => {
                tracing::warn!(error = why, "the attempt's failure could not be recorded");
                outcome_not_written(&error)
            }
        }
    }

    /// Does not count an attempt for which no transaction could begin. If this write fails too, the attempt counts.
    async fn give_back(&self, taken: &Taken, error: &StoreError) -> AttemptOutcome {
        tracing::warn!(%error, "the attempt could not begin");
        let now = self.clock.now();
        let statement = rows::again(taken, None, true, now.plus(NOT_STARTED_DELAY), now);
        if let Err(error) = link::rows(&self.pool, end_of(STATEMENT_MAX), "giving an attempt back", statement).await {
            outcome_not_written(&error);
        }
        AttemptOutcome::NotStarted
    }
}

/// Logs that the end of an attempt could not be written: the row is then due again after the longest that an attempt takes, or
/// its backoff if that is longer.
pub(crate) fn outcome_not_written(error: &StoreError) -> AttemptOutcome {
    tracing::warn!(%error, "how the attempt ended could not be recorded");
    AttemptOutcome::Unknown
}

/// Returns how the handler ended. Its panic was caught in its task.
fn ended(joined: Result<Result<(), Failure>, JoinError>) -> Result<(), Failure> {
    joined.unwrap_or_else(|_| Err(Failure::retry("the handler was cancelled when its runtime ended")))
}

/// A handler's task, cancelled when this is dropped.
struct AbortOnDrop(JoinHandle<Result<(), Failure>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
