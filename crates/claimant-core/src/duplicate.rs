//! A duplicate of finished work, as a consumer's hook sees it.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::decode::read_json;
use crate::key::{InvalidValue, Key, MessageId};
use crate::panics::caught;

/// The results of duplicates that an invocation keeps for its end, at most.
const KEPT_MAX_BYTES: usize = 4 << 20;

/// What a consumer calls for each duplicate.
pub(crate) type DuplicateHook = Arc<dyn Fn(&Duplicate<'_>) + Send + Sync>;

/// A duplicate that is shown at the end of its invocation.
pub(crate) struct SeenDuplicate {
    pub(crate) hook: DuplicateHook,
    pub(crate) key: Key,
    pub(crate) message_id: MessageId,
    pub(crate) result: Option<String>,
}

/// The duplicates that an invocation has seen so far.
#[derive(Default)]
pub(crate) struct SeenDuplicates {
    seen: Vec<SeenDuplicate>,
    /// Of their results.
    bytes: usize,
}

impl SeenDuplicates {
    /// Keeps one for the end, or returns it where there is no room.
    pub(crate) fn keep(&mut self, duplicate: SeenDuplicate) -> Option<SeenDuplicate> {
        let bytes = self.bytes + duplicate.result.as_ref().map_or(0, String::len);
        if bytes > KEPT_MAX_BYTES {
            return Some(duplicate);
        }
        self.bytes = bytes;
        self.seen.push(duplicate);
        None
    }

    /// Shows all, as long as there is time; returns how many were not.
    pub(crate) fn show(&self, by: Instant) -> usize {
        let in_time = self.seen.iter().take_while(|_| Instant::now() < by);
        self.seen.len() - in_time.map(SeenDuplicate::show).count()
    }
}

impl SeenDuplicate {
    /// Calls the hook. One that panics changes nothing.
    pub(crate) fn show(&self) {
        let duplicate = Duplicate::new(self.key.as_str(), self.message_id.as_str(), self.result.as_deref());
        // The panic hook has logged it.
        let _ = caught(|| (self.hook)(&duplicate));
    }
}

/// A duplicate of finished work, as shown to [`Consumer::on_duplicate`](crate::Consumer::on_duplicate).
///
/// Its `Debug` shows neither the key nor the result: both can be personal data.
#[derive(Clone, Copy)]
pub struct Duplicate<'a> {
    key: &'a str,
    message_id: &'a str,
    result: Option<&'a str>,
}

impl<'a> Duplicate<'a> {
    /// Returns a duplicate of this work, with what was kept of its result, as JSON. The engine creates them; call this in
    /// tests of a hook.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::Duplicate;
    /// let duplicate = Duplicate::new("ord-1", "message-2", Some(r#"{"charge":"ch-7"}"#));
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Receipt { charge: String }
    ///
    /// let receipt = duplicate.result::<Receipt>().unwrap();
    /// assert_eq!(receipt.unwrap().charge, "ch-7");
    /// assert!(duplicate.result::<u8>().is_err(), "a result of another shape");
    /// ```
    #[must_use]
    pub const fn new(key: &'a str, message_id: &'a str, result: Option<&'a str>) -> Self {
        Self { key, message_id, result }
    }

    /// Returns the key of the work.
    #[must_use]
    pub const fn key(&self) -> &'a str {
        self.key
    }

    /// Returns the id of the message that is the duplicate.
    #[must_use]
    pub const fn message_id(&self) -> &'a str {
        self.message_id
    }

    /// Returns what the handler returned when it did the work. `Ok(None)` where nothing was kept: the handler returned `()`
    /// or `None`, or more than [`RESULT_MAX_BYTES`](crate::record::RESULT_MAX_BYTES).
    ///
    /// # Errors
    /// When what was kept does not decode as `R`, as after a deployment that changed what the handler returns. The error says
    /// where it differs, never its content.
    pub fn result<R: DeserializeOwned>(&self) -> Result<Option<R>, InvalidValue> {
        let wrong = |fault| InvalidValue(format!("the kept result {fault}"));
        self.result.map(|json| read_json(json).map_err(wrong)).transpose()
    }

    /// Returns the result as it was kept: JSON.
    #[must_use]
    pub const fn result_json(&self) -> Option<&'a str> {
        self.result
    }
}

impl std::fmt::Debug for Duplicate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Duplicate").field("message_id", &self.message_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_much_is_kept_for_the_end_and_shown_while_there_is_time() {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&shown);
        let hook: DuplicateHook = Arc::new(move |duplicate| sink.lock().unwrap().push(duplicate.key().to_owned()));
        let mut kept = SeenDuplicates::default();
        let duplicate = |key, bytes| SeenDuplicate {
            hook: Arc::clone(&hook),
            key: Key::new(key).unwrap(),
            message_id: MessageId::new("m").unwrap(),
            result: Some("x".repeat(bytes)),
        };
        assert!(kept.keep(duplicate("a", KEPT_MAX_BYTES - 1)).is_none() && kept.keep(duplicate("b", 1)).is_none());
        assert!(kept.keep(duplicate("c", 1)).is_some_and(|duplicate| duplicate.key.as_str() == "c"));
        assert_eq!((kept.show(Instant::now()), shown.lock().unwrap().len()), (2, 0), "there is no time");
        assert_eq!(kept.show(Instant::now() + Duration::from_millis(1)), 0);
        assert_eq!(*shown.lock().unwrap(), ["a", "b"]);
    }
}
