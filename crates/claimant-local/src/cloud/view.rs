//! What a page sees of a cloud, from within its process.

use std::collections::BTreeMap;

use super::running::Cloud;
use crate::journal::Journal;
use crate::lambda::Function;
use crate::mapping::MappingSwitch;
use crate::scheduler::Scheduler;
use crate::sqs::Sqs;

/// What a page sees of a cloud. Clones share it; it keeps nothing running.
#[derive(Clone)]
pub struct View {
    /// Where the control endpoint listens.
    pub control: String,
    /// The values that the template's parameters were given, some of which may be secrets.
    pub parameters: BTreeMap<String, String>,
    /// The names of the template's queues, each after its dead-letter queue.
    pub queues: Vec<String>,
    /// What happened.
    pub journal: Journal,
    /// The queues.
    pub sqs: Sqs,
    /// What sends later, and switches mappings on again.
    pub scheduler: Scheduler,
    /// The functions.
    pub functions: Vec<FunctionView>,
}

/// A function, and what lets messages into it.
#[derive(Clone)]
pub struct FunctionView {
    /// The function.
    pub function: Function,
    /// The queue of each mapping, and what pauses and resumes it.
    pub mappings: Vec<(String, MappingSwitch)>,
}

impl Cloud {
    /// Returns what a page sees of this cloud.
    pub fn view(&self) -> View {
        let functions = self.functions.iter().map(|running| {
            let queues = running.spec.mappings.iter().map(|mapping| mapping.queue.clone());
            let switches = running.mappings.iter().map(|mapping| mapping.switch().clone());
            FunctionView { function: running.function.clone(), mappings: queues.zip(switches).collect() }
        });
        View {
            control: self.endpoints.control.clone(),
            parameters: self.parameters.clone(),
            queues: self.stack.queues.iter().map(|queue| queue.name.clone()).collect(),
            journal: self.services.journal.clone(),
            sqs: self.services.sqs.clone(),
            scheduler: self.services.scheduler.clone(),
            functions: functions.collect(),
        }
    }
}
