//! What a function's role may do with its records.

use crate::fact::Fact;
use crate::finding::{Answer, FINE, Level, Report, found};
use crate::model::{Function, Link, System, Table};
use crate::rights::ON_TABLES;

/// What a consumer does with its records, and what becomes of its messages without it.
const ON_RECORDS: [(&str, Level, &str); 2] = [
    ("dynamodb:UpdateItem", Level::Error, "nothing that is done is recorded, and its messages end as dead letters"),
    ("dynamodb:GetItem", Level::Warning, "what became of a write without an answer is not known"),
];

/// Asks once for each function that reads a queue, whether that is described here or not.
pub(super) fn check(system: &System, report: &mut Report) {
    for function in &system.functions {
        let has_table = !function.has_records_elsewhere() && function.environment.get("CLAIMANT_TABLE").is_some();
        if has_table && system.mappings_of(function).next().is_some() {
            report.answer(18, &function.place, records(system, function));
        }
    }
}

/// Whether a consumer may use its records, in each of its lock tables.
fn records(system: &System, function: &Function) -> Answer {
    // They can be in another store, too.
    let tables = function.environment.get("CLAIMANT_TABLE")?.known().filter(|_| !function.environment.is_open)?;
    let mut all_known = true;
    for (action, level, then) in ON_RECORDS {
        for table in tables.each() {
            match on_records(system, function, action, table) {
                Fact::Known(true) => {}
                Fact::Known(false) => {
                    let (name, id) = (&function.place.id, table.text());
                    return found(
                        if may_have_none(function, id) { Level::Warning } else { level },
                        format!("the role of {name} may not {action} on {id}: {then}"),
                        format!(
                            "Effect: Allow, Action: [dynamodb:UpdateItem, dynamodb:GetItem], Resource: the ARN of {id}"
                        ),
                    );
                }
                Fact::Unknown => all_known = false,
            }
        }
    }
    all_known.then_some(None)
}

/// Whether a function may have no records: SAM's globals name the table for each, and its role may do nothing with that one.
fn may_have_none(function: &Function, table: &str) -> bool {
    let may_do_nothing = || ON_TABLES.iter().all(|one| function.rights.allow(one, table) == Fact::Known(false));
    function.environment.is_inherited && may_do_nothing()
}

fn on_records(system: &System, function: &Function, action: &str, table: &Link) -> Fact<bool> {
    let described = system.tables.iter().find(|one| table.is(&one.place.id));
    // The table's own policy may do what the role's does not; and one that is named here may be described under another name.
    let may_be_allowed = || match described {
        Some(table) => table.has_policy,
        None => function.rights.allow_somewhere(action) != Fact::Known(false),
    };
    match function.rights.allow(action, table.text()) {
        Fact::Known(false) if may_be_allowed() => Fact::Unknown,
        known => known,
    }
}

/// Whether the role may do in one request what takes many without.
pub(super) fn in_batches(function: &Function, table: &Table) -> Answer {
    let for_many = ["dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", "dynamodb:BatchGetItem"];
    let batched = !function.is_set("CLAIMANT_BATCH", "off");
    let id = &*table.place.id;
    let mut lacking = Vec::new();
    for action in ["dynamodb:PutItem"].into_iter().chain(for_many.into_iter().filter(|_| batched)) {
        if !*function.rights.allow(action, id).known()? {
            lacking.push(action);
        }
    }
    if lacking.is_empty() {
        return FINE;
    }
    // It may do what the role's does not.
    if table.has_policy {
        return None;
    }
    found(
        Level::Warning,
        format!("the role of {} may not {} on {id}", function.place.id, lacking.join(", ")),
        format!("Effect: Allow, Action: [{}], Resource: !GetAtt {id}.Arn", lacking.join(", ")),
    )
}
