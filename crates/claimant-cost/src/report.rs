//! All that is computed of one deployment.

use claimant_doctor::model::System;

use crate::advice::{Advice, advice};
use crate::bill::{FunctionBill, INSTANCE, Line, OF_SCALING, bill, shared, store_of, take_free};
use crate::deployed::{Deployed, Records, deployed, left_out};
use crate::limits::{Limit, limits, scaling_s};
use crate::load::Load;
use crate::plan::{Guarantee, Store};
use crate::prices::Prices;

/// Messages of a batch at most, of a FIFO queue and without a window.
const BATCH_MAX: f64 = 10.0;

/// What is to be computed.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Only these functions; all if there are none.
    pub functions: Vec<String>,
    /// The guarantee of all.
    pub guarantee: Guarantee,
    /// Messages of a batch at most, instead of what the template says.
    pub batch: Option<f64>,
    /// Seconds that a batch is waited for, instead of what the template says.
    pub window_s: Option<f64>,
    /// The store of all, instead of what the template says.
    pub store: Option<Store>,
    /// What an instance of a database costs a month.
    pub instance_usd: Option<f64>,
    /// Whether the free tier is taken off.
    pub free_tier: bool,
}

impl Choice {
    fn store_of(&self, deployed: &Deployed) -> Store {
        self.store.unwrap_or_else(|| store_of(deployed, self.instance_usd))
    }
}

/// What is told of one function.
#[derive(Debug, Clone)]
pub struct Detail {
    /// Its bill.
    pub bill: FunctionBill,
    /// What it costs by guarantee and store, without the free tier: on demand, provisioned, a database; nothing where there is no such
    /// consumer.
    pub compared: Vec<(Guarantee, [Option<f64>; 3])>,
    /// Its limits, the nearest first.
    pub limits: Vec<Limit>,
    /// Seconds until Lambda runs enough at once.
    pub scaling_s: f64,
    /// What would lower its bill.
    pub advice: Vec<Advice>,
    /// What was assumed.
    pub assumed: Vec<String>,
}

/// The bill of a deployment.
#[derive(Debug, Clone)]
pub struct Report {
    /// What comes to each of its functions.
    pub load: Load,
    /// The prices.
    pub prices: Prices,
    /// Whether the free tier was taken off.
    pub free_tier: bool,
    /// What an instance of a database costs a month, if that was given.
    pub instance_usd: Option<f64>,
    /// Its functions.
    pub functions: Vec<Detail>,
    /// What its stack has once.
    pub shared: Vec<Line>,
    /// What is not in it, though AWS charges for it.
    pub not_counted: Vec<String>,
}

impl Report {
    /// Returns what all of it costs a month.
    pub fn usd(&self) -> f64 {
        let functions: f64 = self.functions.iter().map(|one| one.bill.usd()).sum();
        functions + self.shared.iter().map(|line| line.usd).sum::<f64>()
    }
}

/// Returns the bill of what a template describes.
///
/// # Errors
/// It has no function that reads a queue, or none of a name that was asked for.
pub fn report(system: &System, load: Load, prices: Prices, choice: &Choice) -> Result<Report, String> {
    let mut found = deployed(system);
    let left_out = left_out(system);
    let left_out = (!left_out.is_empty())
        .then(|| format!("{}: its function, or whether it is there, is not known (--parameter)", left_out.join(", ")));
    if found.is_empty() {
        let but = left_out.map(|left_out| format!("; {left_out}")).unwrap_or_default();
        return Err(format!("it has no function that reads a queue{but}"));
    }
    let names: Vec<_> = found.iter().map(|one| one.name.clone()).collect();
    if let Some(missing) = choice.functions.iter().find(|name| !names.contains(name)) {
        let but = left_out.as_deref().unwrap_or("one whose condition does not hold is not there (--parameter)");
        return Err(format!("no function {missing} reads a queue; those that do: {}; {but}", names.join(", ")));
    }
    found.retain(|one| choice.functions.is_empty() || choice.functions.contains(&one.name));
    if let Some(wrong) = found.iter().find(|one| !choice.guarantee.is_for(choice.store_of(one))) {
        return Err(format!(
            "{} is for DynamoDB, and {} has its records elsewhere",
            choice.guarantee.name(),
            wrong.name
        ));
    }
    for one in &mut found {
        let most = if one.polled.fifo { BATCH_MAX } else { f64::INFINITY };
        one.polled.batch = choice.batch.unwrap_or(one.polled.batch).min(most);
        one.polled.window_s = choice.window_s.filter(|_| !one.polled.fifo).unwrap_or(one.polled.window_s);
        let is_tried = choice.batch.is_some() || choice.window_s.is_some();
        if is_tried && one.polled.batch > BATCH_MAX && one.polled.window_s < 1.0 {
            return Err(format!(
                "batches of more than 10 need a window: {} with --batching-window 1 or more",
                one.name
            ));
        }
    }
    let provisioned = found.iter().any(|one| one.polled.pollers.is_some());
    let watching = system.watching;
    let is_whole = choice.functions.is_empty();
    let mut functions: Vec<_> = found.iter().map(|one| detail(one, &load, &prices, choice)).collect();
    let mut of_stack = of_stores(&found, &mut functions);
    if is_whole {
        of_stack.extend(shared(watching.alarm_metrics, watching.dashboards, &prices));
    }
    let mut report = Report {
        not_counted: not_counted(&load, is_whole, provisioned).into_iter().map(str::to_owned).chain(left_out).collect(),
        free_tier: choice.free_tier,
        instance_usd: choice.instance_usd,
        functions: Vec::new(),
        shared: of_stack,
        load,
        prices,
    };
    if choice.free_tier {
        let lines = functions.iter_mut().flat_map(|one| one.bill.lines.iter_mut());
        take_free(lines.chain(report.shared.iter_mut()), &report.prices);
    }
    report.functions = functions;
    Ok(report)
}

/// Takes what the stores of several functions cost only once off their bills, and returns it: the database, and the alarms of each table.
fn of_stores(found: &[Deployed], functions: &mut [Detail]) -> Vec<Line> {
    let mut once: Vec<Line> = Vec::new();
    if functions.len() < 2 {
        return once;
    }
    let mut tables = Vec::new();
    for (deployed, detail) in found.iter().zip(functions) {
        let table = match &deployed.records {
            Records::Table { name: Some(name), .. } => Some(name),
            _ => None,
        };
        let is_new = table.is_none_or(|table| !tables.contains(&table));
        tables.extend(table);
        let is_shared = |line: &Line| line.what == OF_SCALING || line.price == INSTANCE && line.usd > 0.0;
        for line in detail.bill.lines.extract_if(.., |line| is_shared(line)) {
            match once.iter_mut().find(|other| other.what == line.what) {
                None => once.push(line),
                Some(other) if line.what == OF_SCALING && is_new => {
                    other.quantity += line.quantity;
                    other.usd += line.usd;
                }
                Some(_) => {}
            }
        }
    }
    once
}

fn detail(deployed: &Deployed, load: &Load, prices: &Prices, choice: &Choice) -> Detail {
    let guarantee = choice.guarantee;
    let store = choice.store_of(deployed);
    let own = bill(deployed, load, guarantee, store, prices);
    let stores = [Store::OnDemand, Store::Provisioned, Store::Instance(choice.instance_usd)];
    let usd = |guarantee: Guarantee| {
        stores.map(|store| guarantee.is_for(store).then(|| bill(deployed, load, guarantee, store, prices).usd()))
    };
    Detail {
        compared: Guarantee::ALL.map(|guarantee| (guarantee, usd(guarantee))).to_vec(),
        limits: limits(deployed, load, guarantee, store),
        scaling_s: scaling_s(deployed, load, guarantee),
        advice: advice(&own, deployed, load, prices),
        assumed: deployed.assumed.clone(),
        bill: own,
    }
}

fn not_counted(load: &Load, is_whole: bool, provisioned: bool) -> Vec<&'static str> {
    let mut all = vec![
        "what handlers call and write themselves, but for the writes of their transactions",
        "dead letters, metrics of other outcomes and of mappings, keys of KMS, fair queues, traces",
        "data transfer, VPC endpoints and NAT, storage of logs, Lambda's init time",
    ];
    if load.traffic.sent_in.is_none() {
        all.insert(0, "sending (--sent-in)");
    }
    if !is_whole {
        all.push("alarms and dashboards: the bill of all functions has them");
    }
    if provisioned {
        all.push("provisioned pollers: their price; it is computed with as many as there are at least");
    }
    all
}
