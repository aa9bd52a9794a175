//! Rows that are tried no more, until an operator decides.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::breaker::Health;
use claimant_core::record::{ERROR_MAX_BYTES, shortened};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::attempt::{Attempt, AttemptOutcome, outcome_not_written};
use crate::inbox::close;
use crate::link::{STATEMENT_MAX, end_of};
use crate::rows::{Closing, Unreadable};
use crate::status::{EntryStatus, StateChange};
use crate::worker::{AfterDeath, Slot, Worker};

impl Worker {
    /// Marks a row dead that was taken and cannot be read: no other attempt would read it.
    pub(crate) async fn give_up(self: Arc<Self>, row: Unreadable, _slot: Slot) -> Attempt {
        let span = tracing::error_span!("message", consumer = self.consumer, inbox_id = row.id);
        let why = row.error.to_string();
        let marked = self.mark_dead(row.id, row.fence, &why, end_of(STATEMENT_MAX)).instrument(span);
        Attempt { outcome: marked.await, health: Health::Unknown, took: Duration::ZERO }
    }

    /// Marks a row dead, for an operator to decide.
    pub(crate) async fn mark_dead(&self, id: i64, fence: i64, why: &str, until: Instant) -> AttemptOutcome {
        let error = shortened(why, ERROR_MAX_BYTES);
        let closing = Closing { error: Some(&error), ..self.closing(id, fence, EntryStatus::Dead) };
        match close(&self.pool, closing, until).await {
            Ok(StateChange::Applied) => {
                tracing::error!(error = why, "message is dead: it is not tried again until an operator retries it");
                AttemptOutcome::Dead
            }
            Ok(StateChange::WrongState) => {
                tracing::warn!(
                    error = why,
                    "the message could not be marked dead: it is done all the same, discarded, or taken again"
                );
                AttemptOutcome::Unknown
            }
            Err(error) => {
                tracing::warn!(error = why, "the message could not be marked dead");
                outcome_not_written(&error)
            }
        }
    }

    /// Returns how the attempt with this fence ends its row.
    pub(crate) fn closing<'a>(&self, id: i64, fence: i64, status: EntryStatus) -> Closing<'a> {
        Closing {
            id,
            fence: Some(fence),
            status,
            holds_group: status == EntryStatus::Dead && self.after_death == AfterDeath::GroupWaits,
            error: None,
            attempts_max: self.attempts_max,
            now: self.clock.now(),
            transaction: None,
        }
    }
}
