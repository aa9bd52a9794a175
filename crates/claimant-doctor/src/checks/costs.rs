//! Connections, logs, architecture, and concurrency without a limit.

use super::scaling::{agreed, at_once};
use crate::fact::{self, Fact};
use crate::finding::{Answer, FINE, Level, Report, found};
use crate::model::{Function, Mapping, System};

/// Set where claimant's records are in a database.
const DATABASE: &str = "CLAIMANT_DATABASE_URL";

/// Connections of a process, unless set.
const CONNECTIONS_DEFAULT: u64 = 10;

pub(super) fn check(system: &System, report: &mut Report) {
    for function in &system.functions {
        let all: Vec<_> = system.mappings_of(function).collect();
        if all.is_empty() {
            continue;
        }
        if has_database(function) != Fact::Known(false) {
            let answer = || {
                has_database(function).known()?;
                agreed(&all, |mappings| connections(system, function, mappings))
            };
            report.answer(33, &function.place, answer());
        }
        let limit = agreed(&all, |mappings| limit(function, are_limited(mappings)));
        for answer in [json(function), retention(function), arm64(function), limit] {
            report.answer(34, &function.place, answer);
        }
    }
}

fn has_database(function: &Function) -> Fact<bool> {
    function.environment.has(DATABASE)
}

/// Connections of each of a function's processes.
fn of_each(function: &Function) -> Option<u64> {
    match function.environment.get("CLAIMANT_DATABASE_CONNECTIONS") {
        None => Some(CONNECTIONS_DEFAULT),
        Some(value) => value.known()?.text().parse().ok(),
    }
}

/// Processes of a function at most, for these mappings: `None` if that is not known, `Some(None)` if there is no limit.
fn processes(function: &Function, mappings: &[&Mapping]) -> Option<Option<u64>> {
    let of_all = mappings.iter().try_fold(Some(0_u64), |sum, mapping| {
        let limit = at_once(mapping)?;
        Some(sum.zip(limit).map(|(sum, limit)| sum.saturating_add(limit)))
    });
    Some(match (of_all?, *function.reserved.known()?) {
        (Some(limit), Some(reserved)) => Some(limit.min(reserved)),
        (limit, reserved) => limit.or(reserved),
    })
}

fn connections(system: &System, function: &Function, mappings: &[&Mapping]) -> Answer {
    let each = of_each(function);
    let Some(own) = processes(function, mappings)? else {
        let each = each.map_or_else(String::new, |each| format!("up to {each} "));
        return found(
            Level::Warning,
            format!("each process opens {each}connections, and the number of processes has no limit"),
            "ScalingConfig: {MaximumConcurrency: …}: times the connections of a process, under max_connections",
        );
    };
    let each = each?;
    let Some(allowed) = *system.database_connections.known()? else { return FINE };
    let (others, are_all) = beside(system, function);
    let sum = others
        .iter()
        .fold(own.saturating_mul(each), |sum, (_, more, each)| sum.saturating_add(more.saturating_mul(*each)));
    if sum <= allowed {
        return are_all.then_some(None);
    }
    let names: Vec<_> = others.iter().map(|(name, ..)| *name).collect();
    let with = if names.is_empty() { String::new() } else { format!(", with those of {},", names.join(", ")) };
    let all = others.iter().fold(own, |all, (_, more, _)| all.saturating_add(*more));
    found(
        Level::Warning,
        format!("{own} processes of {each} connections{with} are {sum}, and the database takes {allowed}"),
        format!("CLAIMANT_DATABASE_CONNECTIONS: {} or less, or less MaximumConcurrency", (allowed / all.max(1)).max(1)),
    )
}

/// What opens connections beside a function, where it is not known to do so in another database: names, processes and connections of each,
/// as far as these are certain; and whether that is all.
fn beside<'s>(system: &'s System, function: &Function) -> (Vec<(&'s str, u64, u64)>, bool) {
    let database = |of: &Function| of.environment.get(DATABASE).and_then(Fact::known).cloned();
    let own = database(function);
    let (mut found, mut are_all) = (Vec::new(), true);
    for other in system.functions.iter().filter(|other| has_database(other) == Fact::Known(true)) {
        let is_another = own.as_ref().zip(database(other)).is_some_and(|(own, other)| *own != other);
        let (certain, perhaps): (Vec<_>, Vec<_>) =
            system.mappings_of(other).partition(|mapping| other.place.certain && mapping.place.certain);
        if other.place.id == function.place.id || is_another || certain.len() + perhaps.len() == 0 {
            continue;
        }
        are_all &= perhaps.is_empty();
        match processes(other, &certain).flatten().zip(of_each(other)) {
            Some((processes, each)) if !certain.is_empty() => found.push((&*other.place.id, processes, each)),
            _ => are_all = false,
        }
    }
    (found, are_all)
}

fn are_limited(mappings: &[&Mapping]) -> Option<bool> {
    fact::all(mappings.iter().map(|mapping| {
        Some(mapping.scaling.concurrency.known()?.is_some() || mapping.scaling.pollers.known()?.is_some())
    }))
}

fn json(function: &Function) -> Answer {
    if *function.logs.json.known()? {
        return FINE;
    }
    found(Level::Note, "its logs are plain text", "LoggingConfig: {LogFormat: JSON}")
}

fn retention(function: &Function) -> Answer {
    if *function.logs.retention.known()? {
        return FINE;
    }
    found(
        Level::Note,
        "its logs never expire",
        "LoggingConfig: {LogGroup: !Ref Logs}, with an AWS::Logs::LogGroup that has RetentionInDays",
    )
}

fn arm64(function: &Function) -> Answer {
    if *function.arm64.known()? {
        return FINE;
    }
    found(Level::Note, "it runs on x86_64, which costs a quarter more", "Architectures: [arm64]")
}

fn limit(function: &Function, is_limited: Option<bool>) -> Answer {
    if is_limited? || function.reserved.known()?.is_some() {
        return FINE;
    }
    found(
        Level::Note,
        "nothing limits its concurrency: a backlog starts as many executions as the account allows",
        "ScalingConfig: {MaximumConcurrency: …}, what the systems that it calls can take",
    )
}
