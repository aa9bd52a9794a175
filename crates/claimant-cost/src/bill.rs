//! The bill of a month: lines for each function, and for what its stack shares.

use std::collections::BTreeMap;

use crate::batches::Batches;
use crate::deployed::Deployed;
use crate::load::{Load, MONTH_DAYS};
use crate::plan::{Guarantee, Store};
use crate::prices::{Prices, allowance};
use crate::records::{Records, Tables};
use crate::units::{Units, stored_bytes};

/// Metrics of a batch of fresh messages, each of one consumer in one function. What is zero is no metric, so these have a value in
/// each hour that has messages; others only in hours in which they happen.
pub const METRICS: [&str; 7] =
    ["received", "completed", "claim_ms", "handle_ms", "settle_ms", "store_requests", "write_units"];

/// Bytes of the metric record with them, which is the line of a batch.
pub const RECORD_LOG_BYTES: f64 = 620.0;

/// Bytes of that line without metrics, in JSON.
pub const LINE_LOG_BYTES: f64 = 245.0;

/// Bytes that an invocation logs besides: not measured here, Lambda's three lines; and what CloudWatch adds to each of four.
const LAMBDA_LOG_BYTES: f64 = 800.0;
const EVENT_LOG_BYTES: f64 = 4.0 * 26.0;

/// Bytes that a message logs with `CLAIMANT_LOG_MESSAGES`: half a gigabyte for a million.
const MESSAGE_LOG_BYTES: f64 = 500.0;

/// Of provisioned capacity, how much is used where it follows the load: DynamoDB's default target.
const UTILIZATION: f64 = 0.7;

/// Alarms that auto scaling makes for a table: four for its reads, four for its writes.
const SCALING_ALARMS: f64 = 8.0;
pub(crate) const OF_SCALING: &str = "Alarms of auto scaling";

/// The lines of provisioned capacity, and of metrics.
pub(crate) const CAPACITY: [&str; 2] = ["Write capacity", "Read capacity"];
pub(crate) const OF_METRICS: &str = "Metrics";

/// The price of a database.
pub(crate) const INSTANCE: &str = "instance";

/// Days that DynamoDB takes at most, about, to delete what has expired.
const TTL_DAYS: f64 = 2.0;

const GB: f64 = 1_073_741_824.0;

/// Something that is paid for.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// In words.
    pub what: &'static str,
    /// The service.
    pub service: &'static str,
    /// The price's name.
    pub price: &'static str,
    /// How much of it in a month.
    pub quantity: f64,
    /// What that costs.
    pub usd: f64,
}

/// What one function costs a month.
#[derive(Debug, Clone)]
pub struct FunctionBill {
    /// The function's logical id.
    pub name: String,
    /// Its guarantee.
    pub guarantee: Guarantee,
    /// Its store.
    pub store: Store,
    /// Its batches at the mean rate.
    pub batches: Batches,
    /// What it asks of the table a second; of an instance, nothing is counted.
    pub units: Units,
    /// What is paid.
    pub lines: Vec<Line>,
}

impl FunctionBill {
    /// Returns the sum of its lines; an instance without a price counts as nothing.
    pub fn usd(&self) -> f64 {
        self.lines.iter().map(|line| line.usd).sum()
    }

    /// Returns what each service costs.
    pub fn services(&self) -> BTreeMap<&'static str, f64> {
        let mut services = BTreeMap::new();
        for line in &self.lines {
            *services.entry(line.service).or_insert(0.0) += line.usd;
        }
        services
    }

    /// Returns what a million of its messages cost.
    pub fn per_million(&self, load: &Load) -> f64 {
        per_million(self.usd(), load)
    }
}

/// Returns what a million messages cost, where those of a month cost so much.
pub(crate) fn per_million(usd: f64, load: &Load) -> f64 {
    usd / month(load.traffic.per_second) * 1e6
}

/// Returns the store that the template says.
pub(crate) fn store_of(deployed: &Deployed, instance_usd: Option<f64>) -> Store {
    match &deployed.records {
        Records::Tables(tables) => tables.store,
        Records::Instance => Store::Instance(instance_usd),
    }
}

/// Returns the bill of a function.
pub(crate) fn bill(
    deployed: &Deployed,
    load: &Load,
    guarantee: Guarantee,
    store: Store,
    prices: &Prices,
) -> FunctionBill {
    let batches = Batches::of(deployed, load, guarantee, 1.0);
    let units = Units::a_second(guarantee, load, batches.fill);
    let mut lines = Lines { prices, lines: Vec::new() };
    sqs(&mut lines, deployed, &batches);
    lambda(&mut lines, deployed, &batches);
    match store {
        Store::Instance(usd) => lines.lines.push(Line {
            what: if usd.is_some() { "The database, as given" } else { "The database: --instance-usd" },
            service: "store",
            price: INSTANCE,
            quantity: 1.0,
            usd: usd.unwrap_or(0.0),
        }),
        _ => dynamodb(&mut lines, deployed, load, store, units),
    }
    // Of an instance, no units are told.
    let told = if matches!(store, Store::Instance(_)) { Units::default() } else { units };
    cloudwatch(&mut lines, deployed, load, &batches, told);
    if store == Store::Provisioned {
        let (tables, replicas) = tables_and_replicas(deployed);
        lines.add("CloudWatch", OF_SCALING, "alarms", SCALING_ALARMS * tables * replicas);
    }
    let lines = lines.lines;
    FunctionBill { name: deployed.name.clone(), guarantee, store, batches, units, lines }
}

/// Lines that are being written.
struct Lines<'a> {
    prices: &'a Prices,
    lines: Vec<Line>,
}

impl Lines<'_> {
    fn add(&mut self, service: &'static str, what: &'static str, price: &'static str, quantity: f64) {
        // What rounds to nothing of anything is left out.
        if quantity > 0.005 {
            let usd = self.prices.of(price).of(quantity);
            self.lines.push(Line { what, service, price, quantity, usd });
        }
    }
}

/// A month of so many a second.
fn month(a_second: f64) -> f64 {
    a_second * 86_400.0 * MONTH_DAYS
}

fn sqs(lines: &mut Lines<'_>, deployed: &Deployed, batches: &Batches) {
    let price = if deployed.polled.fifo { "sqs_fifo" } else { "sqs_standard" };
    let requests = &batches.requests;
    for (what, a_second) in [
        ("Sends", requests.sends),
        ("Receives", requests.receives),
        ("Receives of an empty queue", requests.empty),
        ("Deletes", requests.deletes),
        ("Changes of visibility", requests.visibility),
    ] {
        lines.add("SQS", what, price, month(a_second));
    }
}

fn lambda(lines: &mut Lines<'_>, deployed: &Deployed, batches: &Batches) {
    let price = if deployed.function.arm64 { "lambda_arm64" } else { "lambda_x86" };
    lines.add("Lambda", "Invocations", "lambda_request", month(batches.a_second));
    lines.add("Lambda", "Duration", price, month(batches.at_once()) * deployed.function.memory_mb / 1_024.0);
}

/// How many tables records are in, and in how many Regions each is.
fn tables_and_replicas(deployed: &Deployed) -> (f64, f64) {
    match &deployed.records {
        Records::Tables(tables) => (tables.count(), tables.replicas),
        Records::Instance => (1.0, 1.0),
    }
}

fn dynamodb(lines: &mut Lines<'_>, deployed: &Deployed, load: &Load, store: Store, units: Units) {
    let (tables, replicas) = tables_and_replicas(deployed);
    // Each replica takes all writes, and keeps all records.
    let writes = units.writes * replicas;
    let capacity = match store {
        // Capacity follows the mean of minutes, not of seconds: what a peak takes is the target's headroom.
        Store::Provisioned => {
            let scaled = |a_second: f64, least: f64| (a_second / UTILIZATION).ceil().max(least);
            Some([scaled(writes, tables * replicas), scaled(units.reads, tables * replicas)])
        }
        Store::Fixed { writes, reads } => Some([writes, reads]),
        Store::OnDemand | Store::Instance(_) => None,
    };
    if let Some([writes, reads]) = capacity {
        let hours = MONTH_DAYS * 24.0;
        lines.add("DynamoDB", CAPACITY[0], "dynamodb_provisioned_write", writes * hours);
        lines.add("DynamoDB", CAPACITY[1], "dynamodb_provisioned_read", reads * hours);
    } else {
        lines.add("DynamoDB", "Write units", "dynamodb_write", month(writes));
        lines.add("DynamoDB", "Read units", "dynamodb_read", month(units.reads));
    }
    let stored = stored_gb(load) * replicas;
    lines.add("DynamoDB", "Storage", "dynamodb_storage", stored);
    let recovery = matches!(deployed.records, Records::Tables(Tables { recovery: true, .. }));
    lines.add("DynamoDB", "Point-in-time recovery", "dynamodb_recovery", if recovery { stored } else { 0.0 });
}

/// Gigabytes of the records that are there when as many go as come.
pub fn stored_gb(load: &Load) -> f64 {
    let keys = load.traffic.per_second * (1.0 - load.traffic.duplicates) * 86_400.0;
    keys * (load.window_days + TTL_DAYS) * stored_bytes(load) / GB
}

fn cloudwatch(lines: &mut Lines<'_>, deployed: &Deployed, load: &Load, batches: &Batches, units: Units) {
    let runs = &deployed.function;
    let line = if runs.metrics { RECORD_LOG_BYTES } else { LINE_LOG_BYTES };
    let own = load.work.log_bytes + if runs.message_lines { MESSAGE_LOG_BYTES } else { 0.0 };
    let bytes = batches.a_second * (line + LAMBDA_LOG_BYTES + EVENT_LOG_BYTES) + load.traffic.deliveries() * own;
    lines.add("CloudWatch", "Logs", "logs", month(bytes) / GB);
    lines.add("CloudWatch", OF_METRICS, "metrics", if runs.metrics { metrics(load, units) } else { 0.0 });
}

/// Returns how many metrics a month has: one is paid by the hour in which it has a value.
fn metrics(load: &Load, units: Units) -> f64 {
    // Of the hours, those with some of what comes so often, by chance.
    let hours_with = |a_second: f64| 1.0 - (-a_second * 3_600.0).exp();
    let traffic = &load.traffic;
    let without_units = if units.writes > 0.0 { 0.0 } else { 1.0 };
    let always = METRICS.len() as f64 - without_units;
    let now_and_then = [
        ("duplicate", traffic.per_second * traffic.duplicates),
        ("retry", traffic.per_second * traffic.retries),
        ("read_units", units.reads),
    ];
    always * hours_with(traffic.deliveries())
        + now_and_then.map(|(_, a_second)| hours_with(a_second)).iter().sum::<f64>()
}

/// Returns the lines of what a stack has once: its alarms and dashboards.
pub(crate) fn shared(alarm_metrics: usize, dashboards: usize, prices: &Prices) -> Vec<Line> {
    let mut lines = Lines { prices, lines: Vec::new() };
    // OK because a template has 500 resources at most.
    lines.add("CloudWatch", "Alarms", "alarms", alarm_metrics as f64);
    lines.add("CloudWatch", "Dashboards", "dashboards", dashboards as f64);
    lines.lines
}

/// Takes the free tier off the lines, in their order.
pub(crate) fn take_free<'a>(lines: impl Iterator<Item = &'a mut Line>, prices: &Prices) {
    let mut left = BTreeMap::new();
    for line in lines.filter(|line| line.price != INSTANCE) {
        let left = left.entry(allowance(line.price)).or_insert_with(|| prices.of(allowance(line.price)).free);
        let taken = left.min(line.quantity);
        *left -= taken;
        line.usd -= prices.of(line.price).of(taken);
    }
}
