//! What must hold between the resources of a stack. AWS refuses the same at deployment.

use std::collections::BTreeSet;

use super::template::Faults;
use super::{FunctionSpec, MappingSpec, QueueSpec, Stack};

/// The largest batch that needs no window, and the largest of a FIFO queue.
const BATCH_SIZE_PLAIN_MAX: usize = 10;

pub(super) fn check(stack: &Stack, faults: &Faults) {
    names_differ("QueueName", stack.queues.iter().map(|q| (&q.logical_id, &q.name)), faults);
    names_differ("TableName", stack.tables.iter().map(|t| (&t.logical_id, &t.name)), faults);
    names_differ("FunctionName", stack.functions.iter().map(|f| (&f.logical_id, &f.name)), faults);
    for queue in &stack.queues {
        check_redrive(stack, queue, faults);
    }
    for function in &stack.functions {
        for mapping in &function.mappings {
            match stack.queues.iter().find(|queue| queue.name == mapping.queue) {
                Some(queue) => check_mapping(function, mapping, queue, faults),
                None => faults.add(format!(
                    "{}: reads the queue `{}`, which is not in this template: add it, or write !GetAtt Orders.Arn",
                    mapping.logical_id, mapping.queue
                )),
            }
        }
    }
}

fn names_differ<'a>(property: &str, names: impl Iterator<Item = (&'a String, &'a String)>, faults: &Faults) {
    let mut seen = BTreeSet::new();
    for (logical_id, name) in names {
        if !seen.insert(name) {
            faults.add(format!(
                "{logical_id}.Properties.{property}: `{name}` is taken by another resource: give it its own name"
            ));
        }
    }
}

fn check_redrive(stack: &Stack, queue: &QueueSpec, faults: &Faults) {
    let Some(redrive) = &queue.settings.redrive else { return };
    let target = &redrive.dead_letter_queue;
    let fault = |what: &str| {
        faults.add(format!(
            "{}.Properties.RedrivePolicy.deadLetterTargetArn: the dead-letter queue `{target}` {what}",
            queue.logical_id
        ));
    };
    match stack.queues.iter().find(|other| other.name == *target) {
        None => fault("is not in this template: add it, or correct the ARN"),
        Some(other) if other.name == queue.name => fault("is the queue itself: name another one"),
        Some(other) if other.settings.fifo != queue.settings.fifo => {
            fault("must be FIFO exactly if the queue is: change its `FifoQueue`");
        }
        Some(_) => {}
    }
}

fn check_mapping(function: &FunctionSpec, mapping: &MappingSpec, queue: &QueueSpec, faults: &Faults) {
    let fault = |what: String| faults.add(format!("{}: {what}", mapping.logical_id));
    if queue.settings.fifo {
        if mapping.batch_size > BATCH_SIZE_PLAIN_MAX {
            fault(format!(
                "BatchSize is {}, but a FIFO queue allows {BATCH_SIZE_PLAIN_MAX} at most: lower it",
                mapping.batch_size
            ));
        }
        if !mapping.window.is_zero() {
            fault("MaximumBatchingWindowInSeconds is not for FIFO queues: remove it".to_owned());
        }
    } else if mapping.batch_size > BATCH_SIZE_PLAIN_MAX && mapping.window.is_zero() {
        fault(format!(
            "BatchSize is {}, but over {BATCH_SIZE_PLAIN_MAX} needs a window: \
             set MaximumBatchingWindowInSeconds to 1 or more",
            mapping.batch_size
        ));
    }
    let visible_s = queue.settings.visibility_timeout.as_secs();
    let timeout_s = function.timeout.as_secs();
    if visible_s < timeout_s {
        fault(format!(
            "VisibilityTimeout of {} is {visible_s} s, less than the Timeout of {}, {timeout_s} s: \
             raise it to {} s, six times the timeout and the window",
            queue.logical_id,
            function.logical_id,
            6 * timeout_s + mapping.window.as_secs()
        ));
    }
}
