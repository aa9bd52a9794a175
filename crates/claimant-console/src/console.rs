//! What all pages share.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};

use claimant_core::{Clock as _, Error, SystemClock};
use claimant_operate::open::OpenStore;
use claimant_operate::target::Place;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, watch};

use crate::demo::Demo;
use crate::done::{Done, Notice};
use crate::fields::Fields;
use crate::history::History;
use crate::kept::Kept;
use crate::once::{Acts, Outcome};
use crate::source::Source;
use crate::sync::lock;

/// Notices that are kept: one is shown after its act, and again where its page is loaded anew.
const NOTICES_MAX: usize = 64;

/// What was typed into forms, kept for so many of them.
const DRAFTS_MAX: usize = 8;

/// Streams of events that stay open. A browser opens six connections to one address at most, for all its pages together.
const STREAMS_MAX: usize = 3;

/// The field of a form, or of a query, that names what was typed.
pub(crate) const DRAFT: &str = "draft";

/// The field of a form that tells it apart from all others.
pub(crate) const FORM: &str = "form";

/// A console over one source. Clones are the same console.
#[derive(Clone)]
pub struct Console(Arc<Inner>);

struct Inner {
    source: Arc<dyn Source>,
    history: Mutex<History>,
    demo: Mutex<Demo>,
    notices: Mutex<Kept<Notice>>,
    drafts: Mutex<Kept<Fields>>,
    acts: Mutex<Acts>,
    stopped: watch::Sender<bool>,
    /// Each act that is under way holds a receiver.
    under_way: watch::Sender<()>,
    streams: Arc<Semaphore>,
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
        // A page of an earlier console names nothing of this one.
        let began = SystemClock.now().as_millis();
        Self(Arc::new(Inner {
            source: Arc::new(source),
            history: Mutex::default(),
            demo: Mutex::default(),
            notices: Mutex::new(Kept::new(began, NOTICES_MAX)),
            drafts: Mutex::new(Kept::new(began, DRAFTS_MAX)),
            acts: Mutex::new(Acts::new(began)),
            stopped: watch::Sender::new(false),
            under_way: watch::Sender::new(()),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
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

    /// Returns how the demonstration goes.
    pub(crate) fn demo(&self) -> MutexGuard<'_, Demo> {
        lock(&self.0.demo)
    }

    /// Keeps a notice; returns the number by which a page shows it.
    pub(crate) fn keep(&self, notice: Notice) -> u64 {
        lock(&self.0.notices).keep(notice)
    }

    /// Returns the notice of this number, unless newer ones took its room.
    pub(crate) fn notice(&self, number: u64) -> Option<Notice> {
        lock(&self.0.notices).get(number).cloned()
    }

    /// Keeps what was typed into a form; returns the number by which a page has it again.
    pub(crate) fn keep_draft(&self, fields: Fields) -> u64 {
        lock(&self.0.drafts).keep(fields)
    }

    /// Returns what was typed into the form that a query names, unless newer ones took its room.
    pub(crate) fn draft(&self, query: &Fields) -> Option<Fields> {
        let number = query.get(DRAFT)?.parse().ok()?;
        lock(&self.0.drafts).get(number).cloned()
    }

    /// Returns the number of a form that is drawn now, for its field [`FORM`].
    pub(crate) fn new_form(&self) -> String {
        lock(&self.0.acts).new_form().to_string()
    }

    /// Returns what becomes of the act of this name: `work`, unless such an act is under way or was done.
    pub(crate) fn outcome(
        &self,
        name: u64,
        work: impl Future<Output = Result<Done, Error>> + Send + 'static,
    ) -> Outcome {
        lock(&self.0.acts).outcome(name, work)
    }

    /// Forgets an act that failed, so that it can be tried again.
    pub(crate) fn forget(&self, outcome: &Outcome) {
        lock(&self.0.acts).forget(outcome);
    }

    /// Returns the room of a stream of events that stays open, if there is any.
    pub(crate) fn stream(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.streams).try_acquire_owned().ok()
    }

    /// Ends the streams of events, and long acts at the next point where they are whole.
    pub(crate) fn stop(&self) {
        self.0.stopped.send_replace(true);
    }

    /// Returns what tells that the console stops.
    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.0.stopped.subscribe()
    }

    /// Returns whether the console stops.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.stopped.borrow()
    }

    /// Says to an act of many parts whether to go on.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.is_stopping() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Notes that an act is under way, until what this returns is dropped.
    pub(crate) fn under_way(&self) -> watch::Receiver<()> {
        self.0.under_way.subscribe()
    }

    /// Waits until no act is under way.
    pub(crate) async fn acts_ended(&self) {
        self.0.under_way.closed().await;
    }
}
