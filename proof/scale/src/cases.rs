//! The cases of the book's table.

use std::time::Duration;

use crate::capacity::Rules;
use crate::case::{Case, TableSpec};

/// The quota for write units of one table in a second, unless raised.
const QUOTA: u64 = 40_000;

/// Returns every case. Those in which much is throttled are a fiftieth of the size, or less: a try that is throttled costs as much to
/// simulate as one that is not, and there are many, for many minutes.
#[must_use]
pub fn cases() -> Vec<Case> {
    let mut cases = throttled();
    cases.extend(enough());
    cases
}

fn throttled() -> Vec<Case> {
    let tables = |name, units: &[u64]| {
        Case::new(name).tables(&units.iter().map(|units| TableSpec::on_demand(*units)).collect::<Vec<_>>())
    };
    let new = |name| tables(name, &[Case::NEW_TABLE_UNITS]);
    let case = new("a new table");
    let held = Rules { partition_holds_s: 300, ..case.rules.clone() };
    let quota = Rules { quota: QUOTA, ..case.rules.clone() };
    let above = |case| Case { sent_per_s: 22_000, rules: quota.clone(), ..case };
    [
        case,
        Case { rules: held, ..new("the same, where partitions hold unused units for 300 s") },
        Case { invocations: 100, ..new("the same, 100 invocations at once") },
        Case { invocations: 100, limit_per_s: Some(1_900), ..new("and a limit of 1,900 messages a second") },
        Case { batch: 25, ..new("a new table, batches of 25") },
        Case { batch: 100, ..new("a new table, batches of 100") }.divided(2),
        Case { batch: 100, invocations: 100, ..new("the same, 100 invocations at once") },
        tables("four new tables", &[Case::NEW_TABLE_UNITS; 4]),
        tables("warm throughput of 20,000", &[20_000]),
        tables("warm throughput of 40,000", &[40_000]),
        tables("four tables, each warm for 10,000", &[10_000; 4]),
        above(tables("22,000 messages a second, a quota of 40,000", &[80_000])),
        above(tables("the same in two tables", &[40_000; 2])),
    ]
    .map(|case| case.divided(50))
    .into()
}

fn enough() -> Vec<Case> {
    let warm = |name, units| Case::new(name).tables(&[TableSpec::on_demand(units)]);
    let steady = |name| warm(name, 80_000);
    [
        warm("warm throughput of 60,000", 60_000),
        steady("a table that had this load before"),
        Case { hot_percent: 1, ..steady("the same, 1 % of messages have one key") },
        Case { hot_percent: 5, ..steady("the same, 5 % have one key") },
    ]
    .map(|case| Case { sent_for: Duration::from_secs(10), ..case })
    .into()
}

/// Returns the load that stays, on a new table: a hundredth of it, for it takes more than an hour.
#[must_use]
pub fn staying() -> Case {
    Case { sent_for: Duration::from_secs(3_600), ..Case::new("a new table, and the load stays") }.divided(100)
}
