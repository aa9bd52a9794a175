//! What a function's role may do with its records.

use super::fix;
use super::rights::{key_right, lacking};
use crate::environment::{BATCH, TABLE, TABLE_BEFORE};
use crate::fact::Fact;
use crate::finding::{Answer, FINE, Found, Level, Report, found, together};
use crate::model::{Function, Link, System, Table};

/// What is done in a table, and what becomes of the function's messages without it.
type Wanted = [(&'static str, Level, &'static str); 2];

/// What a consumer does with its records.
const ON_RECORDS: Wanted = [
    ("dynamodb:UpdateItem", Level::Error, "nothing that is done is recorded, and its messages end as dead letters"),
    ("dynamodb:GetItem", Level::Warning, "what became of a write without an answer is not known"),
];

/// What it does in a table that its records are moved from.
const ON_MOVED: Wanted = [
    (
        "dynamodb:GetItem",
        Level::Error,
        "no key is claimed that may have a record there, and messages end as dead letters",
    ),
    (
        "dynamodb:DeleteItem",
        Level::Error,
        "no key is claimed that has a record there, and its messages end as dead letters",
    ),
];

/// What takes a request for each record without.
const FOR_MANY: [&str; 3] = ["dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", "dynamodb:BatchGetItem"];

/// Asks once for each function that reads a queue, whether that is described here or not.
pub(super) fn check(system: &System, report: &mut Report) {
    for function in &system.functions {
        let table = function.environment.get(TABLE);
        let Some(table) = table.filter(|_| !function.has_records_elsewhere()) else { continue };
        if system.mappings_of(function).next().is_none() {
            continue;
        }
        // They can be in another store, too.
        let known = |tables: &Fact<Link>| tables.known().cloned().filter(|_| !function.environment.is_open);
        let answer = |tables: Vec<Link>, wanted| records(system, function, &tables, wanted);
        let now = known(table);
        let all = now.as_ref().map(|now| now.each().cloned().collect());
        report.answer(18, &function.place, all.and_then(|tables| answer(tables, &ON_RECORDS)));
        let Some(before) = function.environment.get(TABLE_BEFORE) else { continue };
        let old = known(before).zip(now.as_ref()).map(|(before, now)| moved(&before, now));
        for table in old.iter().flatten().filter_map(|old| described(system, old)) {
            // What is a lock table still is asked about as one.
            if !now.as_ref().is_some_and(|now| now.is(&table.place.id)) {
                report.answer(28, &function.place, moved_in_batches(function, table));
            }
        }
        report.answer(18, &function.place, old.and_then(|tables| answer(tables, &ON_MOVED)));
    }
}

/// The tables that records are moved from. Where there is no new one, each record of a table that stays is where it was.
fn moved(before: &Link, now: &Link) -> Vec<Link> {
    let has = |tables: &Link, one: &Link| tables.each().any(|other| other == one);
    let none_is_new = now.each().all(|new| has(before, new));
    let stays = |old: &Link| old.text().is_empty() || none_is_new && has(now, old);
    before.each().filter(|old| !stays(old)).cloned().collect()
}

/// Whether a consumer may do what is wanted in each of these tables, and use the keys that they are encrypted with.
fn records(system: &System, function: &Function, tables: &[Link], wanted: &Wanted) -> Answer {
    let role = format!("the role of {}", function.place.id);
    let keys = tables.iter().filter(|table| !function.may_have_none(table.text()));
    let keys = keys.map(|table| match described(system, table) {
        Some(table) => key_right((&role, &function.rights), &table.place.id, &table.access.key, "kms:Decrypt"),
        None => FINE,
    });
    let actions = wanted.iter().flat_map(|one| tables.iter().map(move |table| (one, table)));
    let allowed =
        |action, table: &Link| decided(system, function, (action, table), function.rights.allow(action, table.text()));
    let actions = actions.map(|((action, level, then), table)| match allowed(action, table) {
        Fact::Known(true) => FINE,
        Fact::Known(false) => {
            let id = table.text();
            found(
                if function.may_have_none(id) { Level::Warning } else { *level },
                format!("{role} may not {action} on {id}: {then}"),
                format!("Effect: Allow, Action: [{}, {}], Resource: the ARN of {id}", wanted[0].0, wanted[1].0),
            )
        }
        Fact::Unknown => None,
    });
    together(actions.chain(keys))
}

fn described<'s>(system: &'s System, table: &Link) -> Option<&'s Table> {
    system.tables.iter().find(|one| table.is(&one.place.id))
}

/// What the role's policies say of an action on a table, as far as that decides: the table's own policy may do what the role's do not, and
/// one that is named here may be described under another name.
pub(super) fn decided(
    system: &System,
    function: &Function,
    (action, table): (&str, &Link),
    by_role: Fact<bool>,
) -> Fact<bool> {
    let may_be_allowed = || match described(system, table) {
        Some(table) => table.access.has_policy,
        None => function.rights.allow_somewhere(action) != Fact::Known(false),
    };
    match by_role {
        Fact::Known(false) if may_be_allowed() => Fact::Unknown,
        by_role => by_role,
    }
}

/// Whether the role may do in one request what takes many without.
pub(super) fn in_batches(function: &Function, table: &Table) -> Answer {
    const ALL: [&str; 4] = ["dynamodb:PutItem", FOR_MANY[0], FOR_MANY[1], FOR_MANY[2]];
    match function.has_value(BATCH, "off") {
        Fact::Known(true) => may_all(function, table, &ALL[..1]),
        Fact::Known(false) => may_all(function, table, &ALL),
        Fact::Unknown => {
            together([may_all(function, table, &ALL[..1]), may_all(function, table, &FOR_MANY).filter(is_fine)])
        }
    }
}

/// As [`in_batches`], of a table that records are moved from.
fn moved_in_batches(function: &Function, table: &Table) -> Answer {
    let answer = || may_all(function, table, &["dynamodb:BatchGetItem"]);
    match function.has_value(BATCH, "off") {
        Fact::Known(true) => FINE,
        Fact::Known(false) => answer(),
        Fact::Unknown => answer().filter(is_fine),
    }
}

fn is_fine(found: &Option<Found>) -> bool {
    found.is_none()
}

fn may_all(function: &Function, table: &Table, actions: &[&str]) -> Answer {
    let id = &*table.place.id;
    let lacking = lacking(actions, |action| function.rights.allow(action, id))?;
    if lacking.is_empty() {
        return FINE;
    }
    // It may do what the role's does not.
    if table.access.has_policy {
        return None;
    }
    found(
        Level::Warning,
        format!("the role of {} may not {} on {id}", function.place.id, lacking.join(", ")),
        fix::allow(&lacking, &table.place, &function.place),
    )
}
