//! What the role may do beyond what every claim needs, as far as it is known.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use claimant_core::StoreError;
use tokio::time::Instant;

/// How long no request for many is sent after one was denied: a role that is being changed is in order again by then.
const DENIED_FOR: Duration = Duration::from_secs(60);

/// The requests that are sent instead of others that do the same with more effort. What was refused once is not sent again, and a denied
/// request for many only after [`DENIED_FOR`].
#[derive(Debug)]
pub(crate) struct Permitted {
    /// Those for many records.
    batches: AtomicBool,
    /// When they were denied, if that is why none is sent.
    denied_at: Mutex<Option<Instant>>,
    /// Whether it was logged that they are denied.
    told: AtomicBool,
    /// Whether the last of them was refused as invalid.
    doubted: AtomicBool,
    /// The one that claims a key without a record.
    puts: AtomicBool,
}

impl Default for Permitted {
    fn default() -> Self {
        Self::new(true)
    }
}

impl Permitted {
    pub(crate) fn new(batches: bool) -> Self {
        Self {
            batches: AtomicBool::new(batches),
            denied_at: Mutex::default(),
            told: AtomicBool::new(false),
            doubted: AtomicBool::new(false),
            puts: AtomicBool::new(true),
        }
    }

    pub(crate) fn batches(&self) -> bool {
        self.batches.load(Ordering::Relaxed) || self.ask_again()
    }

    /// Returns whether requests for many were denied so long ago that they are sent again.
    fn ask_again(&self) -> bool {
        let mut denied_at = self.denied_at.lock().unwrap_or_else(PoisonError::into_inner);
        let asks = denied_at.take_if(|at| at.elapsed() >= DENIED_FOR).is_some();
        if asks {
            self.batches.store(true, Ordering::Relaxed);
        }
        asks
    }

    pub(crate) fn puts(&self) -> bool {
        self.puts.load(Ordering::Relaxed)
    }

    /// Sends a request for each key for a while, since one for many was denied on these tables.
    pub(crate) fn deny_batches(&self, tables: &str) {
        if !self.batches.swap(false, Ordering::Relaxed) {
            return;
        }
        *self.denied_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                tables,
                "batched claims are denied, so each key has a request of its own, and one for many is tried once a minute: give the function's role \
                 dynamodb:PartiQLInsert, PartiQLUpdate and BatchGetItem on each table (BatchGetItem alone on tables of \
                 CLAIMANT_TABLE_BEFORE), where a condition on dynamodb:LeadingKeys has to admit the records of each consumer, or \
                 set CLAIMANT_BATCH=off"
            );
        }
    }

    /// Takes note that a request for many was refused as invalid. One of its statements can be the reason, and the next request be without
    /// it: only the second in a row gives them up.
    pub(crate) fn doubt_batches(&self, error: &StoreError) {
        if self.doubted.swap(true, Ordering::Relaxed) {
            self.give_up_batches(error);
        }
    }

    /// Takes note that a request for many was taken.
    pub(crate) fn trust_batches(&self) {
        self.doubted.store(false, Ordering::Relaxed);
    }

    /// Sends a request for each key from now on, since this refused one for many as a whole, or each of its statements.
    pub(crate) fn give_up_batches(&self, error: &StoreError) {
        if self.batches.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                %error,
                "batched claims are refused, so until this process ends each key has a request of its own: where the table is another \
                 account's, which takes no PartiQL, or the endpoint has none, set CLAIMANT_BATCH=off"
            );
        }
    }

    /// Claims keys without a record as all others from now on.
    pub(crate) fn deny_puts(&self, table: &str) {
        if self.puts.swap(false, Ordering::Relaxed) {
            tracing::warn!(
                table,
                "dynamodb:PutItem is denied, so a new key that has a request of its own is claimed by dynamodb:UpdateItem, which \
                 takes more processor time: give the function's role dynamodb:PutItem on the table"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_batches_are_tried_again_after_a_while_and_refused_ones_are_not() {
        let permitted = Permitted::default();
        let pass = |time: Duration| {
            let mut denied_at = permitted.denied_at.lock().unwrap();
            *denied_at = denied_at.and_then(|at| at.checked_sub(time));
        };
        for _ in 0..2 {
            permitted.deny_batches("t");
            pass(DENIED_FOR / 2);
            assert!(!permitted.batches());
            // Of a request that was on its way.
            permitted.deny_batches("t");
            pass(DENIED_FOR / 2);
            assert!(permitted.batches());
        }
        permitted.give_up_batches(&StoreError::no_answer(Duration::ZERO));
        permitted.deny_batches("t");
        pass(DENIED_FOR);
        assert!(!permitted.batches());
    }
}
