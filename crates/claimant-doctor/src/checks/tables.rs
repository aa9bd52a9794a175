//! The lock table.

use super::records;
use crate::finding::{Answer, FINE, Level, Report, found, together};
use crate::model::{Function, System, Table, TableHistory};

/// What the lock table's key is.
const KEY: [&str; 1] = ["id S"];

const TTL: &str = "expires_at";

pub(super) fn check(system: &System, report: &mut Report) {
    for table in &system.tables {
        let mut consumers = system.consumers_of(table).peekable();
        if consumers.peek().is_none() {
            continue;
        }
        for function in consumers {
            let answer =
                if need_not_use(system, function, table) { None } else { records::in_batches(function, table) };
            report.answer(28, &function.place, answer);
        }
        report.answer(24, &table.place, together([key(table), time_to_live(table)]));
        report.answer(25, &table.place, protection(table));
        let seen = system.history.as_ref().and_then(|history| history.tables.get(&*table.place.id));
        report.answer(26, &table.place, capacity(table, seen));
        report.answer(27, &table.place, replicas(table));
        if let Some(seen) = seen {
            report.answer(29, &table.place, insights(table, seen));
        }
    }
}

/// Whether a function need not use the table that it has the name of. What is deployed does not show SAM's globals: there it is one
/// that reads no queue, and may do nothing with the table.
fn need_not_use(system: &System, function: &Function, table: &Table) -> bool {
    let is_aside = || function.place.file.is_none() && system.mappings_of(function).next().is_none();
    function.may_have_none(&table.place.id) || is_aside() && function.may_do_nothing_with(&table.place.id)
}

fn key(table: &Table) -> Answer {
    let key = table.key.known()?;
    if key == &KEY {
        return FINE;
    }
    found(
        Level::Error,
        format!("its key is {}", key.join(", ")),
        "KeySchema: [{AttributeName: id, KeyType: HASH}], AttributeDefinitions: [{AttributeName: id, AttributeType: S}]",
    )
}

fn time_to_live(table: &Table) -> Answer {
    match table.ttl.known()?.as_deref() {
        Some(TTL) => FINE,
        other => found(
            Level::Warning,
            match other {
                None => "it has no time to live: it grows for ever".to_owned(),
                Some(other) => format!("its time to live is on {other}, which records do not have"),
            },
            "TimeToLiveSpecification: {AttributeName: expires_at, Enabled: true}",
        ),
    }
}

fn protection(table: &Table) -> Answer {
    let (what, fix) = match (table.recovery.known(), table.protected.known()) {
        (Some(true), Some(true)) => return FINE,
        (Some(false), Some(false)) => (
            "it has no point-in-time recovery, and is deleted by an update that replaces it, or with its stack, or by both",
            "PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}, and DeletionPolicy and UpdateReplacePolicy: Retain",
        ),
        (Some(false), _) => {
            ("it has no point-in-time recovery", "PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}")
        }
        (_, Some(false)) => (
            "it is deleted by an update that replaces it, or with its stack, or by both",
            "DeletionProtectionEnabled: true, or DeletionPolicy and UpdateReplacePolicy: Retain",
        ),
        _ => return None,
    };
    if table.replicas.known().is_some_and(|replicas| *replicas > 1) {
        return found(
            Level::Warning,
            format!("in one of its Regions at least, {what}"),
            format!("{fix}, for each replica"),
        );
    }
    found(Level::Warning, what, fix)
}

fn capacity(table: &Table, seen: Option<&TableHistory>) -> Answer {
    if let Some(seen) = seen {
        let peak = seen.write_units_per_minute_max / 60.0;
        #[allow(clippy::cast_precision_loss, reason = "write units a second are far below 2^52")]
        let warm = table.capacity.warm_write_units.known().map(|warm| *warm as f64);
        if seen.throttled > 0.0 || warm.is_some_and(|warm| warm <= peak) {
            let warm_for = warm.map_or_else(String::new, |warm| format!(", and it is warm for {warm:.0}"));
            return found(
                Level::Warning,
                format!(
                    "{:.0} requests were throttled within the last day; its busiest minute had {peak:.0} write units a second{warm_for}",
                    seen.throttled
                ),
                format!(
                    "WarmThroughput: {{WriteUnitsPerSecond: {:.0}}}, two for each message of the peak",
                    2.0 * peak.max(warm.unwrap_or_default())
                ),
            );
        }
    }
    if let Some(most) = *table.capacity.most_write_units.known()?
        && !*table.capacity.provisioned.known()?
    {
        #[allow(clippy::cast_precision_loss, reason = "write units a second are far below 2^52")]
        if seen.is_some_and(|seen| seen.write_units_per_minute_max / 60.0 < most as f64) {
            return FINE;
        }
        return found(
            Level::Warning,
            format!(
                "it takes {most} write units a second at most, though it is on demand: two for each message, and no more"
            ),
            "a MaxWriteRequestUnits above the greatest peak, or none",
        );
    }
    if *table.capacity.fixed.known()? {
        return found(
            Level::Warning,
            "its capacity is provisioned and does not scale: two write units for each message, and no more",
            "BillingMode: PAY_PER_REQUEST",
        );
    }
    FINE
}

fn replicas(table: &Table) -> Answer {
    if !*table.eventual_replicas.known()? {
        return FINE;
    }
    found(
        Level::Warning,
        "it has replicas in several Regions, with eventual consistency",
        "MultiRegionConsistency: STRONG, or a lock table for each Region",
    )
}

fn insights(table: &Table, seen: &TableHistory) -> Answer {
    if seen.throttled == 0.0 || *table.capacity.insights.known()? {
        return FINE;
    }
    found(
        Level::Warning,
        format!("{:.0} requests were throttled within the last day, and nothing says which keys", seen.throttled),
        format!(
            "aws dynamodb update-contributor-insights --table-name {} --contributor-insights-action ENABLE \
             --contributor-insights-mode THROTTLED_KEYS",
            table.place.id
        ),
    )
}
