//! A system that has a handler's effects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use claimant_core::HandlerError;
use tokio::task::yield_now;

/// A system outside of the function that has its effects, such as a mail service, and recognises a repeat by its key. It remembers
/// what it was asked for. Clones are the same system.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mails = claimant_test::Effects::new();
/// mails.request("ord-1", "a mail to ada").await.unwrap();
/// mails.request("ord-1", "a mail to ada").await.unwrap();
/// assert_eq!((mails.requests(), mails.once()), (2, vec!["ord-1: a mail to ada".to_owned()]));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Effects {
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Effects {
    /// Returns a system that was asked for nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for an effect, once for each key: hand it [`Context::key`](claimant_core::Context::key), or that and more where one
    /// message has several effects. A process can die while the request is on its way, which has no effect then, and while the
    /// answer is, which has.
    ///
    /// # Errors
    /// None: it returns what a handler does, so that a handler can end with it.
    pub async fn request(&self, key: &str, what: impl Into<String>) -> Result<(), HandlerError> {
        let what = what.into();
        yield_now().await;
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push((key.to_owned(), what));
        yield_now().await;
        Ok(())
    }

    /// Returns how many requests there were, repeats included.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns what was done, once for each key, as `key: what`, in the order of the keys.
    ///
    /// # Panics
    /// When a key was asked for with two different effects: such a system would do one and drop the other.
    #[must_use]
    pub fn once(&self) -> Vec<String> {
        let mut done: BTreeMap<String, String> = BTreeMap::new();
        for (key, what) in self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let first = done.entry(key.clone()).or_insert_with(|| what.clone());
            assert_eq!(first, what, "two different effects were asked for under the key {key}");
        }
        done.into_iter().map(|(key, what)| format!("{key}: {what}")).collect()
    }
}
