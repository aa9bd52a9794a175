//! Which limit is met first, at the busiest second.

use std::collections::BTreeMap;

use crate::batches::{Batches, Requests};
use crate::deployed::Deployed;
use crate::load::{Load, Traffic};
use crate::plan::{Guarantee, Store};
use crate::records::{Records, Tables};
use crate::units::Units;

/// Invocations at once: what an account has at first, and what one event source mapping works up to.
const ACCOUNT_CONCURRENCY: f64 = 1_000.0;
const MAPPING_CONCURRENCY: f64 = 1_250.0;

/// Invocations at once that cannot be reserved: where more of an account are, it has a higher quota.
const UNRESERVED: f64 = 100.0;

/// Invocations at once that a mapping begins with, and that it adds in a minute.
const AT_FIRST: f64 = 5.0;
const ADDED_PER_MINUTE: f64 = 300.0;

/// Invocations at once of a provisioned poller.
const PER_POLLER: f64 = 10.0;

/// Messages in flight of a queue.
const IN_FLIGHT: f64 = 120_000.0;

/// What becomes of messages that a mapping does not take, and what helps: in a busy time, and where the mean is beyond it, too.
const RAISE: [&str; 2] = [
    "messages wait in the queue, unharmed: raise it",
    "the queue grows, on the mean, too, and deletes unread what gets too old: raise it",
];
const PROVISION: [&str; 2] = [
    "messages wait: provisioned pollers",
    "the queue grows, on the mean, too, and deletes unread what gets too old: provisioned pollers",
];

/// Of which the bill can be beyond: the lease of an invocation, a time in which nothing succeeds, the first minutes of a table, and what is
/// reserved, used or not.
const NOT_OF_THE_RATE: [&str; 4] = [TIMEOUT, ALL_HIDDEN, NEW_TABLE, RESERVATIONS];
const TIMEOUT: &str = "seconds of an invocation, Timeout";
const ALL_HIDDEN: &str = "in flight while nothing succeeds";
const NEW_TABLE: &str = "write units a second, new table";
const RESERVATIONS: &str = "reserved, of the account's invocations";

/// Requests a second of each kind to a FIFO queue without high throughput.
const FIFO_A_SECOND: f64 = 300.0;

/// Write units a second of a new table on demand, and of a table in an account at first.
const NEW_TABLE_WRITES: f64 = 4_000.0;
const TABLE_WRITES: f64 = 40_000.0;

/// A limit, and how much of it is needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Of what.
    pub what: &'static str,
    /// At the busiest second; of what is behind a mapping, no more than the mapping lets through.
    pub needed: f64,
    /// How much there is.
    pub limit: f64,
    /// What happens beyond it, and what raises it.
    pub then: &'static str,
}

impl Limit {
    /// Returns how many times the limit is needed.
    pub fn share(&self) -> f64 {
        self.needed / self.limit
    }
}

/// Returns the limits of a function under its load, the nearest first.
pub(crate) fn limits(deployed: &Deployed, load: &Load, guarantee: Guarantee, store: Store) -> Vec<Limit> {
    let peak = load.traffic.peak;
    let batches = Batches::of(deployed, load, guarantee, peak);
    let deliveries = load.traffic.deliveries() * peak;
    let polled = &deployed.polled;
    let mut limits = of_invocations(deployed, load, guarantee, batches.at_once());
    let mut add = |what, needed, limit, then| limits.push(Limit { what, needed, limit, then });
    let seconds = batches.duration_ms / 1_000.0;
    add(TIMEOUT, seconds, deployed.timeout_s, "cut off, messages come again: raise it");
    let held_s = seconds + polled.window_s;
    add("messages in flight", deliveries * held_s, IN_FLIGHT, "nothing is received: shorter work, more queues");
    let all_hidden = deliveries * polled.visibility_s;
    add(ALL_HIDDEN, all_hidden, IN_FLIGHT, "nothing is received: a breaker pauses the intake");
    if polled.fifo && !polled.by_group {
        let Requests { receives, deletes, sends, .. } = batches.requests;
        let most = receives.max(deletes).max(sends);
        add("requests a second of a kind, FIFO", most, FIFO_A_SECOND, "throttled: high throughput mode, by group");
    }
    if let Records::Tables(tables) = &deployed.records {
        limits.extend(of_table(tables, store, units(tables, load, guarantee, batches.fill)));
    }
    limits.sort_by(|a, b| b.share().total_cmp(&a.share()));
    limits
}

/// Returns what the busiest second asks of each of these tables, in batches of `fill`.
fn units(tables: &Tables, load: &Load, guarantee: Guarantee, fill: f64) -> Units {
    let (Units { writes, reads }, share) = (Units::a_second(guarantee, load, fill), load.traffic.peak / tables.count());
    Units { writes: writes * share, reads: reads * share }
}

/// Returns the limits of each of these tables, of which so many units a second are needed.
fn of_table(tables: &Tables, store: Store, Units { writes, reads }: Units) -> Vec<Limit> {
    let mut limits = Vec::new();
    let mut add = |what, needed, limit, then| limits.push(Limit { what, needed, limit, then });
    match store {
        Store::OnDemand | Store::Provisioned => {
            if store == Store::OnDemand {
                let then = "throttled at first: set warm throughput";
                add(NEW_TABLE, writes, NEW_TABLE_WRITES, then);
                if let Some(most) = tables.most_writes {
                    add(
                        "write units a second, as set",
                        writes,
                        most / tables.count(),
                        "throttled: a higher MaxWriteRequestUnits, or none",
                    );
                }
            }
            add("write units a second, of a table", writes, TABLE_WRITES, "throttled: a higher quota, several tables");
        }
        Store::Fixed { writes: fixed_writes, reads: fixed_reads } => {
            let then = "throttled once five minutes of unused units are gone: more, or auto scaling";
            add("write units a second, provisioned", writes, fixed_writes / tables.count(), then);
            add("read units a second, provisioned", reads, fixed_reads / tables.count(), then);
        }
        Store::Instance(_) => {}
    }
    limits
}

/// A limit of what several functions share, and how much of it all of them need.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedLimit {
    /// The table, or those to each of which it applies; `None` of the account.
    pub table: Option<String>,
    /// The limit.
    pub limit: Limit,
}

/// Returns the limits of what these functions share, the nearest first: of each table that several of them write to, and of the account.
/// Each has this load, all of them their busiest second at the same time.
pub(crate) fn shared_limits(functions: &[(&Deployed, Store)], load: &Load, guarantee: Guarantee) -> Vec<SharedLimit> {
    if functions.len() < 2 {
        return Vec::new();
    }
    let of_account = of_account_shared(functions, load, guarantee).into_iter();
    let mut limits: Vec<_> = of_account.map(|limit| SharedLimit { table: None, limit }).collect();
    limits.extend(of_shared_tables(functions, load, guarantee));
    limits.sort_by(|a, b| b.limit.share().total_cmp(&a.limit.share()));
    limits
}

/// Returns what limits all invocations at once of these functions: what they reserve of the account, used or not, and what is left to the
/// others.
fn of_account_shared(functions: &[(&Deployed, Store)], load: &Load, guarantee: Guarantee) -> Vec<Limit> {
    let (mut others, mut reserved) = (None, BTreeMap::new());
    for (deployed, _) in functions {
        if let Some(all) = deployed.function.reserved {
            reserved.insert(deployed.function_id(), all);
            continue;
        }
        let at_once = Batches::of(deployed, load, guarantee, load.traffic.peak).at_once();
        *others.get_or_insert(0.0) += through_mapping(&of_mapping(deployed, load, guarantee), at_once);
    }
    let reserved: f64 = reserved.values().sum();
    let mut limits = Vec::new();
    if reserved > 0.0 {
        let then = "a deployment fails: raise the quota";
        let limit = ACCOUNT_CONCURRENCY - UNRESERVED;
        limits.push(Limit { what: RESERVATIONS, needed: reserved, limit, then });
    }
    limits.extend(others.map(|needed| of_account(needed, reserved)));
    limits
}

/// Returns the limits of the tables that several of these functions write to; of tables that have the same ones, once.
fn of_shared_tables(functions: &[(&Deployed, Store)], load: &Load, guarantee: Guarantee) -> Vec<SharedLimit> {
    // Tables whose names are not known are others.
    let mut by_name: BTreeMap<&str, (&Tables, Store, Vec<Units>)> = BTreeMap::new();
    for (deployed, store) in functions {
        let Records::Tables(of) = &deployed.records else { continue };
        let fill = Batches::of(deployed, load, guarantee, load.traffic.peak).fill;
        for name in &of.names {
            let (.., all) = by_name.entry(name).or_insert_with(|| (of, *store, Vec::new()));
            all.push(units(of, load, guarantee, fill));
        }
    }
    let mut limits: Vec<(Vec<&str>, Limit)> = Vec::new();
    for (name, (of, store, all)) in by_name.into_iter().filter(|(_, (.., all))| all.len() > 1) {
        let sum = |one: fn(&Units) -> f64| all.iter().map(one).sum();
        let units = Units { writes: sum(|one| one.writes), reads: sum(|one| one.reads) };
        for limit in of_table(of, store, units) {
            match limits.iter_mut().find(|(_, known)| *known == limit) {
                Some((names, _)) => names.push(name),
                None => limits.push((vec![name], limit)),
            }
        }
    }
    limits.into_iter().map(|(names, limit)| SharedLimit { table: Some(names.join(", ")), limit }).collect()
}

/// Returns the first of the limits of what functions share that lets through fewer messages than come, as [`never_enough`] does.
pub(crate) fn never_enough_shared(
    functions: &[(&Deployed, Store)],
    load: &Load,
    guarantee: Guarantee,
) -> Option<&'static str> {
    never_over(load, |load| shared_limits(functions, load, guarantee).into_iter().map(|shared| shared.limit).collect())
}

/// Returns the limit that lets through fewer messages than come, on the mean, if there is one: the rate is not reached then. With full
/// batches, too, since they fill once messages have to wait.
pub(crate) fn never_enough(
    deployed: &Deployed,
    load: &Load,
    guarantee: Guarantee,
    store: Store,
) -> Option<&'static str> {
    never_over(load, |load| limits(deployed, load, guarantee, store))
}

fn never_over(load: &Load, limits: impl Fn(&Load) -> Vec<Limit>) -> Option<&'static str> {
    let mean = Load { traffic: Traffic { peak: 1.0, ..load.traffic.clone() }, ..load.clone() };
    let full = Load { filled: Some(f64::INFINITY), ..mean.clone() };
    let over = |load| {
        let limits = limits(load).into_iter().filter(|limit| limit.share() > 1.0);
        limits.map(|limit| limit.what).filter(|what| !NOT_OF_THE_RATE.contains(what)).collect::<Vec<_>>()
    };
    let (usual, full) = (over(&mean), over(&full));
    usual.into_iter().find(|what| full.contains(what))
}

/// Returns what limits how many invocations run at once, of which so many would at the busiest second. What a mapping lets through is enough
/// where full batches are: they are full once messages have to wait.
fn of_invocations(deployed: &Deployed, load: &Load, guarantee: Guarantee, at_once: f64) -> Vec<Limit> {
    let mut limits = of_mapping(deployed, load, guarantee);
    let needed = through_mapping(&limits, at_once);
    limits.push(match deployed.function.reserved {
        Some(limit) => Limit {
            what: "invocations at once, reserved",
            needed,
            limit,
            then: "throttled, receives are spent: reserve more, or set MaximumConcurrency to it",
        },
        None => of_account(needed, 0.0),
    });
    limits
}

/// Returns what limits how many invocations a mapping has at once.
fn of_mapping(deployed: &Deployed, load: &Load, guarantee: Guarantee) -> Vec<Limit> {
    let polled = &deployed.polled;
    let mean = Batches::full_at_once(deployed, load, guarantee);
    let mut limits = Vec::new();
    let mut add = |what, limit, [busy, always]: [&'static str; 2]| {
        let then = if mean > limit { always } else { busy };
        limits.push(Limit { what, needed: mean * load.traffic.peak, limit, then });
    };
    if let Some(limit) = polled.concurrency {
        add("MaximumConcurrency", limit, RAISE);
    } else if polled.pollers.is_none() {
        add("invocations at once, of a mapping", MAPPING_CONCURRENCY, PROVISION);
    }
    if let Some((_, most)) = polled.pollers {
        add("invocations at once, MaximumPollers", most * PER_POLLER, RAISE);
    }
    limits
}

/// Returns how many of so many invocations at once a mapping with these limits lets through: what it holds back is neither reserved nor
/// taken from the account.
fn through_mapping(limits: &[Limit], at_once: f64) -> f64 {
    limits.iter().fold(at_once, |needed, of| needed.min(of.limit))
}

/// Returns the limit of the account, of which so many invocations at once are reserved, for functions that reserve none.
fn of_account(needed: f64, reserved: f64) -> Limit {
    let what = if reserved > 0.0 { "invocations at once, unreserved" } else { "invocations at once, of the account" };
    let limit = (ACCOUNT_CONCURRENCY - reserved).max(UNRESERVED);
    Limit { what, needed, limit, then: "throttled, receives are spent: raise the quota" }
}

/// Returns how long Lambda takes until enough invocations run at once, in seconds; 0 where provisioned pollers add them, and where
/// there are never enough.
pub(crate) fn scaling_s(deployed: &Deployed, load: &Load, guarantee: Guarantee) -> f64 {
    let at_once = Batches::of(deployed, load, guarantee, load.traffic.peak).at_once();
    let limits = of_invocations(deployed, load, guarantee, at_once);
    // Of the account's, or the reserved: as many as the mapping lets through.
    let needed = limits.last().map_or(0.0, |limit| limit.needed);
    let is_never = limits.iter().any(|limit| limit.share() > 1.0);
    if is_never || deployed.polled.pollers.is_some() {
        return 0.0;
    }
    (needed - AT_FIRST).max(0.0) / ADDED_PER_MINUTE * 60.0
}
