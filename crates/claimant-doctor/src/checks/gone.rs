//! What something names, and what is not there.

use super::fix;
use crate::environment::{DEAD_LETTER_QUEUE, TABLE, TABLE_BEFORE};
use crate::fact::Fact;
use crate::finding::{Answer, FINE, Level, Report, found};
use crate::model::{Deleted, Gone, Link, Place, Redrive, System};

pub(super) fn check(system: &System, report: &mut Report) {
    let Gone { tables, queues, of_stack } = &system.home.gone;
    for gone in tables {
        report.answer(41, gone, table(system, gone));
    }
    for (gone, may_be_hidden) in queues {
        report.answer(41, gone, queue(system, gone, *may_be_hidden));
    }
    for gone in of_stack {
        report.answer(41, &gone.place, deleted(gone));
    }
    let there = system.queues.iter().map(|queue| &queue.place).chain(system.tables.iter().map(|table| &table.place));
    // A template does not say what is there.
    for place in there.filter(|place| place.file.is_none()) {
        report.answer(41, place, FINE);
    }
}

fn table(system: &System, gone: &Place) -> Answer {
    let (now, before) = (variables(system, TABLE, gone), variables(system, TABLE_BEFORE, gone));
    let fix = if now.is_empty() {
        "if it was deleted since all its records were over, deploy without CLAIMANT_TABLE_BEFORE; else restore it"
    } else {
        "stop the functions and restore it; an empty one lets done work run again: docs/operating.md, \"A lost lock table\""
    };
    let by = now.into_iter().chain(before).collect::<Vec<_>>().join(", ");
    found(Level::Error, format!("there is no table {}, which is named by {by}", gone.id), fix)
}

/// A queue or a table here is one that nothing names: only what is not examined can miss it.
fn deleted(gone: &Deleted) -> Answer {
    let Deleted { place, what, stack, logical_id } = gone;
    let (level, restore) = match *what {
        "table" => (Level::Warning, "restore it; or "),
        "queue" => (Level::Warning, ""),
        _ => (Level::Error, ""),
    };
    found(
        level,
        format!(
            "there is no {what} {}, which the stack {stack} has as {logical_id}: it was deleted by other means",
            place.id
        ),
        format!(
            "{restore}deploy the stack once without {logical_id}, and again with it: CloudFormation takes it for there"
        ),
    )
}

fn queue(system: &System, gone: &Place, may_be_hidden: bool) -> Answer {
    let is_it = |link: &Fact<Link>| link.known().is_some_and(|link| link.text() == &*gone.id);
    let mut by: Vec<_> = system
        .mappings
        .iter()
        .filter(|mapping| is_it(&mapping.queue))
        .map(|mapping| format!("the mapping {}", mapping.place.id))
        .collect();
    by.extend(variables(system, DEAD_LETTER_QUEUE, gone));
    let redrives = |redrive: &Fact<_>| matches!(redrive, Fact::Known(Some(Redrive { target, .. })) if is_it(target));
    let sources = system.queues.iter().filter(|queue| redrives(&queue.redrive));
    by.extend(sources.map(|queue| format!("the RedrivePolicy of {}", queue.place.id)));
    let (name, by) = (fix::queue_name(gone), by.join(", "));
    let (or, look) = match may_be_hidden {
        true => (
            ", or these credentials may not see it, which SQS answers alike",
            "look with credentials that have sqs:GetQueueUrl and sqs:GetQueueAttributes on it; if it is not there, ",
        ),
        false => ("", ""),
    };
    found(
        Level::Error,
        format!("there is no queue {name}{or}; it is named by {by}"),
        format!(
            "{look}a queue {name} of the settings and the policies that it had, or another one in each place that names it"
        ),
    )
}

/// The variables of this name that lead to what is gone.
fn variables(system: &System, variable: &str, gone: &Place) -> Vec<String> {
    let names = |link: &Link| link.each().any(|one| one.text() == &*gone.id);
    let has = |found: Option<&Fact<Link>>| found.and_then(Fact::known).is_some_and(names);
    let functions = system.functions.iter().filter(|function| has(function.environment.get(variable)));
    functions.map(|function| format!("{variable} of {}", function.place.id)).collect()
}
