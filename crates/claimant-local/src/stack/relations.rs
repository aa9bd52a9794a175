//! What must hold between the resources of a stack. AWS refuses the same at deployment.

use std::collections::{BTreeMap, BTreeSet};

use super::spec::{FunctionSpec, MappingSpec, QueueSpec, Stack};
use super::template::Template;
use crate::arn::{self, ACCOUNT_ID, REGION};

/// The variables by which a function of ours knows its lock table, and the one that had its records before.
const LOCK_TABLES: [&str; 2] = ["CLAIMANT_TABLE", "CLAIMANT_TABLE_BEFORE"];

/// The largest batch that needs no window, and the largest of a FIFO queue.
const BATCH_SIZE_PLAIN_MAX: usize = 10;

/// Drops what names a queue that is not in the template, by its name or an ARN of another account or Region, and says so: it may well be
/// in the account.
pub(super) fn leave_out_foreign_queues(stack: &mut Stack, template: &Template<'_>) {
    let names: BTreeMap<String, String> =
        stack.queues.iter().map(|queue| (queue.name.clone(), queue.logical_id.clone())).collect();
    let why_not = |queue: &str| match arn::queue_name(queue).and_then(|name| names.get(name)) {
        None => "not in this template".to_owned(),
        Some(id) => {
            format!("not in {ACCOUNT_ID} and {REGION}, as {id} is here: write !GetAtt {id}.Arn if that is meant")
        }
    };
    for queue in &mut stack.queues {
        let Some(redrive) = queue.settings.redrive.take_if(|redrive| !names.contains_key(&redrive.dead_letter_queue))
        else {
            continue;
        };
        let why = format!(
            "the dead-letter queue {} is {}: its messages stay in the queue",
            redrive.dead_letter_queue,
            why_not(&redrive.dead_letter_queue)
        );
        template.findings.not_run(template.line_of(&queue.logical_id), &queue.logical_id, "RedrivePolicy", why);
    }
    for function in &mut stack.functions {
        for mapping in function.mappings.extract_if(.., |mapping| !names.contains_key(&mapping.queue)) {
            let why = format!("reads the queue {}, which is {}", mapping.queue, why_not(&mapping.queue));
            template.findings.not_run(mapping.line, &mapping.logical_id, "event source mapping", why);
        }
    }
}

/// Says of each function which lock table it names that is not in the template, by its name: what it asks of it fails here. A secret is not
/// shown.
pub(super) fn note_absent_tables(stack: &Stack, template: &Template<'_>) {
    for function in &stack.functions {
        for variable in LOCK_TABLES.iter().filter(|variable| !function.secrets.contains(**variable)) {
            let named = function.environment.get(*variable).map_or("", String::as_str);
            let is_there = |name: &&str| stack.tables.iter().any(|table| table.name == *name);
            let absent = named.split(',').map(str::trim).find(|name| !name.is_empty() && !is_there(name));
            if let Some(absent) = absent {
                let why = format!(
                    "{variable} names {absent}, and no table of the template has that name: what is asked of it fails here"
                );
                template.findings.not_run(
                    template.line_of(&function.logical_id),
                    &function.logical_id,
                    "lock table",
                    why,
                );
            }
        }
    }
}

pub(super) fn check(stack: &Stack, template: &Template<'_>) {
    names_differ("QueueName", stack.queues.iter().map(|q| (&q.logical_id, &q.name)), template);
    names_differ("TableName", stack.tables.iter().map(|t| (&t.logical_id, &t.name)), template);
    names_differ("FunctionName", stack.functions.iter().map(|f| (&f.logical_id, &f.name)), template);
    for queue in &stack.queues {
        check_redrive(stack, queue, template);
    }
    for function in &stack.functions {
        let mut readers = BTreeMap::new();
        for mapping in &function.mappings {
            if let Some(other) = readers.insert(&mapping.queue, &mapping.logical_id) {
                check_second(function, mapping, other, template);
            }
            if let Some(queue) = stack.queues.iter().find(|queue| queue.name == mapping.queue) {
                check_mapping(function, mapping, queue, template);
            }
        }
    }
}

fn names_differ<'a>(property: &str, names: impl Iterator<Item = (&'a String, &'a String)>, template: &Template<'_>) {
    let mut seen = BTreeSet::new();
    for (logical_id, name) in names {
        if !seen.insert(name) {
            template.findings.fault(
                template.line_of(logical_id),
                format!(
                    "{logical_id}.Properties.{property}: `{name}` is taken by another resource: give it its own name"
                ),
            );
        }
    }
}

fn check_redrive(stack: &Stack, queue: &QueueSpec, template: &Template<'_>) {
    let Some(redrive) = &queue.settings.redrive else { return };
    let target = &redrive.dead_letter_queue;
    let fault = |what: &str| {
        template.findings.fault(
            template.line_of(&queue.logical_id),
            format!(
                "{}.Properties.RedrivePolicy.deadLetterTargetArn: the dead-letter queue `{target}` {what}",
                queue.logical_id
            ),
        );
    };
    match stack.queues.iter().find(|other| other.name == *target) {
        Some(other) if other.name == queue.name => fault("is the queue itself: name another one"),
        Some(other) if other.settings.fifo != queue.settings.fifo => {
            fault("must be FIFO exactly if the queue is: change its `FifoQueue`");
        }
        Some(other) if !other.settings.redrive_allow.allows(&queue.name) => {
            fault("refuses this queue by its RedriveAllowPolicy: allow it there");
        }
        _ => {}
    }
}

/// Two mappings of one queue and function: each deletes what fits the other alone. For Lambda an alias counts as another function;
/// which of the two is of one is not known any more.
fn check_second(function: &FunctionSpec, mapping: &MappingSpec, other: &str, template: &Template<'_>) {
    let reads = format!("reads {}, as {other} does", mapping.queue);
    if template.has_aliases(&function.logical_id) {
        let why = format!("{reads}: each deletes what fits the other alone");
        template.findings.not_run(mapping.line, &mapping.logical_id, "event source mapping", why);
        return;
    }
    template.findings.fault(
        mapping.line,
        format!(
            "{}: {reads}: Lambda allows one event source mapping of a queue and a function; \
             remove one, and give the other the filters of both (a message needs to fit one filter), or none if one has none",
            mapping.logical_id
        ),
    );
}

fn check_mapping(function: &FunctionSpec, mapping: &MappingSpec, queue: &QueueSpec, template: &Template<'_>) {
    let fault = |what: String| template.findings.fault(mapping.line, format!("{}: {what}", mapping.logical_id));
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
