//! Connections, logs, architecture, and concurrency without a limit.

use super::pair::Pair;
use super::scaling::{agreed, at_once};
use crate::fact::{self, Fact};
use crate::finding::{Answer, FINE, Level, Report, found};
use crate::model::{Function, Mapping, System};

/// Connections of a process, unless set.
const CONNECTIONS_DEFAULT: u64 = 10;

pub(super) fn connections(pair: &Pair<'_>) -> Option<Answer> {
    let has_database = |function: &Function| function.environment.has("CLAIMANT_DATABASE_URL");
    let function = pair.function.filter(|function| has_database(function) != Fact::Known(false))?;
    let answer = || {
        has_database(function).known()?;
        let each: Option<u64> = match function.environment.get("CLAIMANT_DATABASE_CONNECTIONS") {
            None => Some(CONNECTIONS_DEFAULT),
            Some(value) => value.known().and_then(|value| value.text().parse().ok()),
        };
        let limit = match (at_once(pair.mapping)?, *function.reserved.known()?) {
            (Some(limit), Some(reserved)) => limit.min(reserved),
            (Some(limit), None) | (None, Some(limit)) => limit,
            (None, None) => {
                let each = each.map_or_else(String::new, |each| format!("up to {each} "));
                return found(
                    Level::Warning,
                    format!("each process opens {each}connections, and the number of processes has no limit"),
                    "ScalingConfig: {MaximumConcurrency: …}: times the connections of a process, under max_connections",
                );
            }
        };
        let each = each?;
        let most = limit.saturating_mul(each);
        match *pair.system.database_connections.known()? {
            Some(allowed) if most > allowed => found(
                Level::Warning,
                format!("{limit} processes of {each} connections are {most}, and the database takes {allowed}"),
                format!(
                    "CLAIMANT_DATABASE_CONNECTIONS: {} or less, or less MaximumConcurrency",
                    (allowed / limit.max(1)).max(1)
                ),
            ),
            _ => FINE,
        }
    };
    Some(answer())
}

pub(super) fn check(system: &System, report: &mut Report) {
    for function in &system.functions {
        let all: Vec<_> = system.mappings_of(function).collect();
        if all.is_empty() {
            continue;
        }
        let limit = agreed(&all, |mappings| limit(function, are_limited(mappings)));
        for answer in [json(function), retention(function), arm64(function), limit] {
            report.answer(34, &function.place, answer);
        }
    }
}

fn are_limited(mappings: &[&Mapping]) -> Option<bool> {
    fact::all(
        mappings
            .iter()
            .map(|mapping| Some(mapping.concurrency.known()?.is_some() || mapping.pollers.known()?.is_some())),
    )
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
