//! The event source mapping: receive from a queue, invoke the function, delete what succeeded.
//!
//! | module | holds |
//! | --- | --- |
//! | `switch` | [`MappingSwitch`]: what is asked of a running mapping, and what it does |
//! | `poller` | one mapping's loop: gather, invoke, delete |
//! | `source` | the queue: messages gathered into batches, through the [filters](Filter), and deleted |
//! | `event` | messages as the event a function gets, split where it would be too large |
//! | `verdict` | what an invocation's result means for each message |
//!
//! A failure stays in the queue as it is: it becomes visible again when its visibility timeout ends, or when the
//! function has said otherwise. Not imitated, on purpose: scaling up and down, provisioned mode.

mod counters;
mod event;
mod poller;
mod source;
mod switch;
mod verdict;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;

use crate::lambda::Function;
use crate::sqs::Sqs;
use crate::stack::MappingSpec;
use crate::sync::lock;

pub use claimant_template::Filter;
pub use counters::MappingCounters;
use poller::Poller;
use source::Source;
pub use switch::{MappingState, MappingSwitch};
pub use verdict::{Verdict, verdict};

/// A running event source mapping. Dropping it cuts what is in flight; [`stop`](Self::stop) lets it end.
pub struct Mapping {
    counters: Arc<Mutex<MappingCounters>>,
    held: Arc<Mutex<HashSet<String>>>,
    switch: MappingSwitch,
    task: JoinSet<()>,
}

impl Mapping {
    /// Starts to poll; once it is enabled, where the mapping is disabled. Must be called within a tokio runtime.
    pub fn start(spec: MappingSpec, sqs: Sqs, function: Function) -> Self {
        let counters = Arc::<Mutex<MappingCounters>>::default();
        let switch = MappingSwitch::new(&spec);
        let held = Arc::<Mutex<HashSet<String>>>::default();
        let journal = function.journal().clone();
        let (all, failed) = (Arc::clone(&counters), Mutex::default());
        let source = Source { spec, sqs, counters: all, held: Arc::clone(&held), journal, failed };
        let poller = Arc::new(Poller { source, function, switch: switch.clone() });
        let mut task = JoinSet::new();
        task.spawn(poller.run());
        Self { counters, held, switch, task }
    }

    /// Stops receiving and waits until every batch in flight has ended; stop the function to cut them.
    pub async fn stop(mut self) {
        self.switch.stop();
        // An error means that the poller panicked, which the runtime has reported; it has ended either way.
        let _ = self.task.join_next().await;
    }

    /// What has happened so far.
    pub fn counters(&self) -> MappingCounters {
        *lock(&self.counters)
    }

    /// The ids of the messages that are with the function, or gathered for it: received for an invocation that has not ended.
    pub fn held(&self) -> HashSet<String> {
        lock(&self.held).clone()
    }

    /// What pauses and resumes it.
    pub fn switch(&self) -> &MappingSwitch {
        &self.switch
    }
}
