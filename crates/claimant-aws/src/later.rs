//! Clients that are made at their first use, or while the function waits for its first message.
//!
//! Each SDK reads its list of AWS partitions and compiles the regular expressions in it when its first client is made: half a million
//! instructions, a quarter of what a function with one client takes to start.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// Those that nobody has made yet, as far as is known.
static UNMADE: Mutex<Vec<Weak<dyn Made>>> = Mutex::new(Vec::new());

/// A client that is made at its first use. Clones share it.
pub struct Later<C>(Arc<Client<C>>);

type Client<C> = LazyLock<C, Box<dyn FnOnce() -> C + Send>>;

impl<C: Send + Sync + 'static> Later<C> {
    /// Makes the client with `make`: at its first use, or [while the function waits](crate::prepare).
    pub fn new(make: impl FnOnce() -> C + Send + 'static) -> Self {
        let client: Arc<Client<C>> = Arc::new(LazyLock::new(Box::new(make)));
        let made: Arc<dyn Made> = Arc::<Client<C>>::clone(&client);
        let mut unmade = UNMADE.lock().unwrap_or_else(PoisonError::into_inner);
        // A program that never waits for a message can make and drop any number of them.
        unmade.retain(|client| client.strong_count() > 0);
        unmade.push(Arc::downgrade(&made));
        Self(client)
    }
}

impl<C> Deref for Later<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C> Clone for Later<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for Later<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Later").finish_non_exhaustive()
    }
}

trait Made: Send + Sync {
    fn make(&self);
}

impl<C: Send + Sync> Made for Client<C> {
    fn make(&self) {
        LazyLock::force(self);
    }
}

/// Makes those that are in use and not made yet.
pub(crate) fn make_all() {
    let unmade = std::mem::take(&mut *UNMADE.lock().unwrap_or_else(PoisonError::into_inner));
    unmade.iter().filter_map(Weak::upgrade).for_each(|client| client.make());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_client_is_made_once_when_it_is_used_or_there_is_time() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let client = || Later::new(|| MADE.fetch_add(1, Ordering::SeqCst));
        let (used, waits) = (client(), client());
        drop(client());
        assert_eq!(MADE.load(Ordering::SeqCst), 0);
        assert_eq!((*used, *used.clone()), (0, 0));
        make_all();
        make_all();
        assert_eq!((*waits, MADE.load(Ordering::SeqCst)), (1, 2));
    }
}
