//! Where the messages of a function go.

use super::plan::Planned;
use crate::Error;
use crate::cloud::Cloud;
use crate::sqs::NewMessage;
use crate::stack::{FunctionSpec, Stack};

/// A function with its queue and its dead-letter queue.
#[derive(Debug, Clone, Copy)]
pub struct Route<'a> {
    /// The function.
    pub function: &'a FunctionSpec,
    /// The name of its queue.
    pub queue: &'a str,
    /// The name of the queue's dead-letter queue.
    pub dead_letter_queue: &'a str,
    /// Whether the queue is FIFO.
    pub fifo: bool,
}

impl<'a> Route<'a> {
    /// Finds the queues of a function.
    ///
    /// # Errors
    /// When it has no enabled SQS event, or the queue of that has no dead-letter queue: the error names it.
    pub fn of(stack: &'a Stack, function: &'a FunctionSpec) -> Result<Self, Error> {
        let name = &function.binary;
        let needs = |what: &str| Error::new(format!("the sample workload needs {what}: give it one in the template"));
        let mapping = function.mappings.iter().find(|mapping| mapping.enabled);
        let mapping = mapping.ok_or_else(|| needs(&format!("an enabled SQS event of the function {name}")))?;
        let queue = stack.queues.iter().find(|queue| queue.name == mapping.queue);
        let queue = queue.ok_or_else(|| needs(&format!("the queue of the SQS event of {name}")))?;
        let redrive = queue.settings.redrive.as_ref();
        let redrive =
            redrive.ok_or_else(|| needs(&format!("a dead-letter queue (RedrivePolicy) of {}", queue.name)))?;
        let (queue, fifo) = (&queue.name, queue.settings.fifo);
        Ok(Self { function, queue, dead_letter_queue: &redrive.dead_letter_queue, fifo })
    }

    /// Sends a message to the queue. On a FIFO queue each copy is a message of its own, by its number, so that it gets through to the
    /// function.
    ///
    /// # Errors
    /// When the queue refuses it.
    pub fn send(&self, cloud: &Cloud, planned: &Planned, number: usize) -> Result<(), Error> {
        let message = NewMessage {
            group_id: self.fifo.then(|| planned.group.clone()),
            deduplication_id: self.fifo.then(|| format!("workload-{number}")),
            ..NewMessage::new(&planned.body)
        };
        cloud.sqs().send(self.queue, message)?;
        Ok(())
    }
}
