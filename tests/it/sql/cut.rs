//! A line to a database that is cut once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use claimant_servers::relay::{Direction, Fate, Relay, Rule};

/// A relay in front of a database that cuts a connection at one piece of traffic, once; later ones stay whole.
pub(crate) struct Cut {
    /// The database's URL, over this line.
    pub(crate) url: String,
    script: Arc<Script>,
    _relay: Relay,
}

struct Script {
    /// Whether pieces are counted.
    counts: Arc<AtomicBool>,
    pieces: AtomicUsize,
    at: usize,
    arrives: bool,
}

impl Cut {
    /// Cuts at the `at`th piece, in either direction, which still arrives or does not: of an answer, half does.
    pub(crate) async fn start(url: &str, at: usize, arrives: bool) -> Self {
        Self::start_once(Arc::new(AtomicBool::new(true)), url, at, arrives).await
    }

    /// The same of the pieces from when this is so.
    pub(crate) async fn start_once(counts: Arc<AtomicBool>, url: &str, at: usize, arrives: bool) -> Self {
        let (before, database) = url.rsplit_once('/').unwrap();
        let (login, server) = before.rsplit_once('@').unwrap();
        let script = Arc::new(Script { counts, pieces: AtomicUsize::new(0), at, arrives });
        let relay = Relay::start(server, Arc::clone(&script)).await.unwrap();
        Self { url: format!("{login}@{}/{database}", relay.address), script, _relay: relay }
    }

    /// Waits until there was so much traffic.
    pub(crate) async fn reached(&self) {
        while !self.happened() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Returns whether there was so much traffic.
    pub(crate) fn happened(&self) -> bool {
        self.script.pieces.load(Ordering::SeqCst) >= self.script.at
    }
}

impl Rule for Script {
    async fn fate(&self, direction: Direction) -> Fate {
        if !self.counts.load(Ordering::SeqCst) {
            return Fate::Pass;
        }
        match (self.pieces.fetch_add(1, Ordering::SeqCst) + 1 == self.at, direction) {
            (false, _) => Fate::Pass,
            (true, _) if self.arrives => Fate::CutAfter,
            (true, Direction::Answer) => Fate::Half,
            (true, Direction::Request) => Fate::Cut,
        }
    }
}
