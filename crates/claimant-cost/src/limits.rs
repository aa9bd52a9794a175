//! Which limit is met first, at the busiest second.

use crate::batches::{Batches, Requests};
use crate::deployed::Deployed;
use crate::load::{Load, Traffic};
use crate::plan::{Guarantee, Store};
use crate::records::{Records, Tables};
use crate::units::Units;

/// Invocations at once: what an account has at first, and what one event source mapping works up to.
const ACCOUNT_CONCURRENCY: f64 = 1_000.0;
const MAPPING_CONCURRENCY: f64 = 1_250.0;

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

/// Of which the bill can be beyond: the lease of an invocation, a time in which nothing succeeds, and the first minutes of a table.
const NOT_OF_THE_RATE: [&str; 3] = [TIMEOUT, ALL_HIDDEN, NEW_TABLE];
const TIMEOUT: &str = "seconds of an invocation, Timeout";
const ALL_HIDDEN: &str = "in flight while nothing succeeds";
const NEW_TABLE: &str = "write units a second, new table";

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
    let Units { writes, reads } = Units::a_second(guarantee, load, batches.fill);
    let (writes, reads) = (writes * peak, reads * peak);
    match store {
        Store::OnDemand | Store::Provisioned => {
            if store == Store::OnDemand {
                let then = "throttled at first: set warm throughput";
                add(NEW_TABLE, writes, NEW_TABLE_WRITES, then);
                if let Records::Tables(Tables { most_writes: Some(most), .. }) = deployed.records {
                    add(
                        "write units a second, as set",
                        writes,
                        most,
                        "throttled: a higher MaxWriteRequestUnits, or none",
                    );
                }
            }
            add("write units a second, of a table", writes, TABLE_WRITES, "throttled: a higher quota, several tables");
        }
        Store::Fixed { writes: fixed_writes, reads: fixed_reads } => {
            let then = "throttled once five minutes of unused units are gone: more, or auto scaling";
            add("write units a second, provisioned", writes, fixed_writes, then);
            add("read units a second, provisioned", reads, fixed_reads, then);
        }
        Store::Instance(_) => {}
    }
    limits.sort_by(|a, b| b.share().total_cmp(&a.share()));
    limits
}

/// Returns the limit that lets through fewer messages than come, on the mean, if there is one: the rate is not reached then. With full
/// batches, too, since they fill once messages have to wait.
pub(crate) fn never_enough(
    deployed: &Deployed,
    load: &Load,
    guarantee: Guarantee,
    store: Store,
) -> Option<&'static str> {
    let mean = Load { traffic: Traffic { peak: 1.0, ..load.traffic.clone() }, ..load.clone() };
    let full = Load { filled: Some(f64::INFINITY), ..mean.clone() };
    let over = |load| {
        let limits = limits(deployed, load, guarantee, store).into_iter().filter(|limit| limit.share() > 1.0);
        limits.map(|limit| limit.what).filter(|what| !NOT_OF_THE_RATE.contains(what)).collect::<Vec<_>>()
    };
    let (usual, full) = (over(&mean), over(&full));
    usual.into_iter().find(|what| full.contains(what))
}

/// Returns what limits how many invocations run at once, of which so many would at the busiest second. What a mapping lets through is enough
/// where full batches are: they are full once messages have to wait.
fn of_invocations(deployed: &Deployed, load: &Load, guarantee: Guarantee, at_once: f64) -> Vec<Limit> {
    let Deployed { polled, function, .. } = deployed;
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
    // What the mapping holds back is neither reserved nor taken from the account.
    let needed = limits.iter().fold(at_once, |needed, of| needed.min(of.limit));
    let (what, limit, then) = match function.reserved {
        Some(reserved) => (
            "invocations at once, reserved",
            reserved,
            "throttled, receives are spent: reserve more, or set MaximumConcurrency to it",
        ),
        None => (
            "invocations at once, of the account",
            ACCOUNT_CONCURRENCY,
            "throttled, receives are spent: raise the quota",
        ),
    };
    limits.push(Limit { what, needed, limit, then });
    limits
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
