//! The records of messages, as the consumers' own stores have them: what stands before these hides nothing from it.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::{Call, MessageId, Meter, Record, RecordId, Status, Store, Timestamp};
use tokio::time::Instant;

use crate::probe::Seen;

/// How long a look at a record may take.
const LOOK: Duration = Duration::from_secs(20);

/// By how much Tokio's time is ahead where it does not pass by itself.
const AHEAD: Duration = Duration::from_millis(500);

/// What is wrong then.
const PAUSED: &str = "; Tokio's time is paused, so time limits for a server are over at once: leave out start_paused";

/// The consumers' own stores, and which records messages have.
pub(crate) struct Records {
    pub(crate) stores: Vec<Arc<dyn Store>>,
    pub(crate) seen: Seen,
}

impl Records {
    /// Looks in all stores: an id names its consumer, so one of them at most has it.
    pub(crate) async fn look(&self, id: &RecordId) -> Option<Record> {
        let meter = Meter::default();
        for store in &self.stores {
            let (begun, really) = (Instant::now(), std::time::Instant::now());
            let answer = store.get(id, Call { within: LOOK, meter: &meter }).await;
            let record = answer.unwrap_or_else(|error| {
                let paused = begun.elapsed() > really.elapsed() + AHEAD;
                panic!("the store does not answer: {error}{}", if paused { PAUSED } else { "" })
            });
            if record.is_some() {
                return record;
            }
        }
        None
    }

    /// Returns what is wrong where one of a message's records is not completed; `None` where all are, or were for their window: their keys
    /// can be used again then.
    pub(crate) async fn undone(&self, message_id: &MessageId, now: Timestamp) -> Option<String> {
        for id in self.seen.records_of(message_id).into_iter().filter(|id| !self.seen.is_over(id, now)) {
            match self.look(&id).await {
                Some(record) if record.status == Status::Completed => {
                    self.seen.note_window(&id, Timestamp::from_millis(record.expires_at_s.saturating_mul(1_000)));
                }
                record => return Some(format!("its record is not completed: {record:?}")),
            }
        }
        None
    }

    /// Returns the last error on a message's records.
    pub(crate) async fn error(&self, message_id: &MessageId) -> Option<String> {
        let mut error = None;
        for id in self.seen.records_of(message_id) {
            error = self.look(&id).await.and_then(|record| record.error).or(error);
        }
        error
    }
}
