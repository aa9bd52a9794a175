//! Connections, logs, architecture, and concurrency without a limit.

use claimant::postgres::CONNECTIONS_DEFAULT;

use super::scaling::{agreed, at_once, sum_of};
use crate::environment::{CONNECTIONS, DATABASE};
use crate::fact::{self, Fact};
use crate::finding::{Answer, FINE, Level, Report, found};
use crate::model::{Function, Mapping, System};

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
    match function.environment.get(CONNECTIONS) {
        None => Some(CONNECTIONS_DEFAULT.into()),
        Some(value) => value.known()?.text().parse().ok(),
    }
}

/// Processes of a function at most, for these mappings: `None` if that is not known, `Some(None)` if there is no limit.
fn processes(function: &Function, mappings: &[&Mapping]) -> Option<Option<u64>> {
    let of_all = sum_of(mappings.iter().map(|mapping| at_once(mapping)))?;
    Some(match (of_all, *function.reserved.known()?) {
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
    let (with, in_each) = match names.join(", ") {
        names if names.is_empty() => (String::new(), String::new()),
        names => (format!(", with those of {names},"), format!(" in each of {}, {names}", function.place.id)),
    };
    let all = others.iter().fold(own, |all, (_, more, _)| all.saturating_add(*more));
    let fix = match allowed.checked_div(all) {
        Some(each @ 1..) => {
            format!("{CONNECTIONS}: {each} or less{in_each}, or less MaximumConcurrency")
        }
        // Not even with one connection each.
        _ => format!(
            "{CONNECTIONS}: 1{in_each}, and MaximumConcurrency (of provisioned pollers MaximumPollers, times 10) \
             of {allowed} in all; or a pooler such as RDS Proxy"
        ),
    };
    found(
        Level::Warning,
        format!("{own} processes of {each} connections{with} are {sum}, and the database takes {allowed}"),
        fix,
    )
}

/// What opens connections to the same server beside a function: names, processes and connections of each, as far as these are certain; and
/// whether that is all that can do so.
fn beside<'s>(system: &'s System, function: &Function) -> (Vec<(&'s str, u64, u64)>, bool) {
    let (mut found, mut are_all) = (Vec::new(), true);
    for other in system.functions.iter().filter(|other| has_database(other) != Fact::Known(false)) {
        let (certain, perhaps): (Vec<_>, Vec<_>) =
            system.mappings_of(other).partition(|mapping| other.place.certain && mapping.place.certain);
        let is_same = is_same(function, other);
        if other.place.id == function.place.id || is_same == Fact::Known(false) || certain.len() + perhaps.len() == 0 {
            continue;
        }
        let opened = processes(other, &certain).flatten().zip(of_each(other));
        let opened = opened.filter(|_| is_same == Fact::Known(true) && !certain.is_empty());
        are_all &= perhaps.is_empty() && opened.is_some();
        found.extend(opened.map(|(processes, each)| (&*other.place.id, processes, each)));
    }
    (found, are_all)
}

/// Whether two functions' databases are of one server.
fn is_same(function: &Function, other: &Function) -> Fact<bool> {
    let servers = function.environment.database.as_ref().zip(other.environment.database.as_ref());
    servers.map_or(Fact::Unknown, |(own, other)| own.is(other))
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
    if *function.machine.arm64.known()? {
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
