//! What all pages share.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use claimant_core::Error;
use claimant_operate::open::OpenStore;
use claimant_operate::target::Place;
use serde::Serialize;
use tokio::sync::{OnceCell, watch};

use crate::history::History;
use crate::source::Source;

/// Notices that are kept: one is shown after its act, and again where its page is loaded anew.
const NOTICES_MAX: usize = 64;

/// A console over one source. Clones are the same console.
#[derive(Clone)]
pub struct Console(Arc<Inner>);

struct Inner {
    source: Arc<dyn Source>,
    history: Mutex<History>,
    notices: Mutex<Notices>,
    stopped: watch::Sender<bool>,
    stores: OnceCell<Vec<OpenStore>>,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("name", &self.source().name()).finish_non_exhaustive()
    }
}

impl Console {
    /// Returns a console over this source.
    #[must_use]
    pub fn new(source: impl Source + 'static) -> Self {
        Self(Arc::new(Inner {
            source: Arc::new(source),
            history: Mutex::default(),
            notices: Mutex::default(),
            stopped: watch::Sender::new(false),
            stores: OnceCell::new(),
        }))
    }

    /// Returns what the pages are about.
    pub(crate) fn source(&self) -> &dyn Source {
        &*self.0.source
    }

    /// Returns what acts work on.
    pub(crate) fn place(&self) -> &Place {
        self.source().place()
    }

    /// Returns the stores of records, opened when they are first asked for.
    ///
    /// # Errors
    /// When there is none, or one gives no answer.
    pub(crate) async fn stores(&self) -> Result<&[OpenStore], Error> {
        self.0.stores.get_or_try_init(|| self.place().open_stores(self.source().skew())).await.map(Vec::as_slice)
    }

    /// Checks that acts are allowed; every act begins with it.
    ///
    /// # Errors
    /// When the console is read-only.
    pub(crate) fn check_writes(&self) -> Result<(), Error> {
        if self.source().allows_writes() {
            return Ok(());
        }
        Err(Error::invalid("this console is read-only: start it with --allow-writes to change things"))
    }

    /// Returns what was sampled.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.0.history)
    }

    /// Keeps a notice; returns the number by which a page shows it.
    pub(crate) fn keep(&self, notice: Notice) -> u64 {
        lock(&self.0.notices).keep(notice)
    }

    /// Returns the notice of this number, unless newer ones took its room.
    pub(crate) fn notice(&self, number: u64) -> Option<Notice> {
        lock(&self.0.notices).kept.iter().find(|(known, _)| *known == number).map(|(_, notice)| notice.clone())
    }

    /// Ends the streams of events.
    pub(crate) fn stop(&self) {
        self.0.stopped.send_replace(true);
    }

    /// Returns what tells that the console stops.
    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.0.stopped.subscribe()
    }
}

/// What became of an act, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Notice {
    /// Whether it was done.
    pub(crate) done: bool,
    /// The sentence. It may have names and keys of messages, never a body.
    pub(crate) text: String,
}

#[derive(Default)]
struct Notices {
    last: u64,
    kept: VecDeque<(u64, Notice)>,
}

impl Notices {
    fn keep(&mut self, notice: Notice) -> u64 {
        self.last += 1;
        if self.kept.len() == NOTICES_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((self.last, notice));
        self.last
    }
}

/// Locks plain data that is whole after every statement, so that a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
