//! A tap in the line to a server: it passes bytes on, and loses the next request or answer when told to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use claimant_servers::relay::{Direction, Fate, Relay, Rule};

/// What is lost next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The server never sees it; its connection is closed.
    Request,
    /// The server has done what it was asked for; the connection is closed.
    Answer,
    /// As for an answer, but half of it arrives.
    Half,
    /// As for an answer, but the connection stays open and nothing comes over it any more.
    Silence,
}

/// A tap that passes connections on to one server. Clones are the same tap.
#[derive(Clone)]
pub struct Tap {
    /// `127.0.0.1:port`, to be used in place of the server's.
    pub address: String,
    next: Arc<Next>,
    relay: Arc<Relay>,
}

/// The loss that is scripted, until it has happened; and whether nothing passes.
#[derive(Default)]
struct Next(Mutex<Option<Loss>>, AtomicBool);

impl Tap {
    /// Starts a tap in front of the server at this address.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn before(server: &str) -> Self {
        let next = Arc::<Next>::default();
        let relay = Relay::start(server, Arc::clone(&next)).await.expect("a free port");
        Self { address: relay.address.to_string(), next, relay: Arc::new(relay) }
    }

    /// Cuts every connection, and refuses new ones until it is opened again: the server is away.
    pub fn shut(&self, shut: bool) {
        self.relay.shut(shut);
    }

    /// Lets nothing pass, or all again that comes over new connections: the server is silent.
    pub fn hush(&self, silent: bool) {
        self.next.1.store(silent, Ordering::SeqCst);
    }

    /// Loses this next, once.
    pub fn lose(&self, loss: Loss) {
        *self.next.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(loss);
    }

    /// Returns whether what was to be lost is lost.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.next.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl Rule for Next {
    async fn fate(&self, direction: Direction) -> Fate {
        if self.1.load(Ordering::SeqCst) {
            return Fate::Silence;
        }
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match next.take_if(|loss| (*loss == Loss::Request) == (direction == Direction::Request)) {
            None => Fate::Pass,
            Some(Loss::Request | Loss::Answer) => Fate::Cut,
            Some(Loss::Half) => Fate::Half,
            Some(Loss::Silence) => Fate::Silence,
        }
    }
}
