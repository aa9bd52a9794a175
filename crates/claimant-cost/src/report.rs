//! All that is computed of one deployment.

use std::collections::BTreeSet;

use claimant_doctor::model::System;

use crate::advice::{Advice, METRICS_OFF, advice};
use crate::batches;
use crate::bill::{CAPACITY, FunctionBill, INSTANCE, Line, OF_METRICS, OF_SCALING, bill, shared, store_of, take_free};
use crate::deployed::{Deployed, deployed, disabled, left_out};
use crate::limits::{Limit, SharedLimit, limits, never_enough, never_enough_shared, scaling_s, shared_limits};
use crate::load::Load;
use crate::plan::{Guarantee, Store};
use crate::prices::Prices;
use crate::records::Records;

/// Messages of a batch at most, of a FIFO queue and without a window.
const BATCH_MAX: f64 = 10.0;

/// What is to be computed.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Only these functions, or queues of them; all if there are none.
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
    /// The limit that lets through fewer messages than come, on the mean: the bill is then for a rate that is not reached.
    pub never_enough: Option<&'static str>,
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
    /// The limits of what its functions share, the nearest first; none where it has one function.
    pub limits: Vec<SharedLimit>,
    /// The one of these that lets through fewer messages than come, on the mean: the bills are then for a rate that is not reached.
    pub never_enough: Option<&'static str>,
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
        let disabled = disabled(system);
        let disabled = (!disabled.is_empty()).then(|| format!("{}: the mapping is disabled", disabled.join(", ")));
        let reasons: Vec<_> = left_out.into_iter().chain(disabled).collect();
        return Err(if reasons.is_empty() {
            "no function reads a queue: give the template that has the consumers".to_owned()
        } else {
            format!("no function is known to read a queue; {}", reasons.join("; "))
        });
    }
    if let Some(missing) = choice.functions.iter().find(|name| !found.iter().any(|one| one.is(name))) {
        let names: Vec<_> = found.iter().map(|one| one.name.as_str()).collect();
        let but = left_out.as_deref().unwrap_or("one whose condition does not hold is not there (--parameter)");
        return Err(format!("no function {missing} reads a queue; those that do: {}; {but}", names.join(", ")));
    }
    note_others(&mut found, choice);
    found.retain(|one| choice.functions.is_empty() || choice.functions.iter().any(|name| one.is(name)));
    if let Some(wrong) = found.iter().find(|one| !choice.guarantee.is_for(choice.store_of(one))) {
        return Err(format!(
            "{} is for DynamoDB, and {} has its records elsewhere",
            choice.guarantee.name(),
            wrong.name
        ));
    }
    for one in &mut found {
        set(one, &load, choice)?;
    }
    let watching = system.watching;
    let is_whole = choice.functions.is_empty();
    let mut functions: Vec<_> = found.iter().map(|one| detail(one, &load, &prices, choice)).collect();
    let mut of_stack = of_stores(&found, &mut functions);
    if is_whole {
        of_stack.extend(shared(watching.alarm_metrics, watching.dashboards, &prices));
    }
    let uncertain = (is_whole && watching.uncertain > 0).then(|| {
        let count = watching.uncertain;
        format!("alarms and dashboards of which it is not known whether they are there (--parameter): {count}")
    });
    let with_store: Vec<_> = found.iter().map(|one| (one, choice.store_of(one))).collect();
    let limits = shared_limits(&with_store, &load, choice.guarantee);
    let never_enough = never_enough_shared(&with_store, &load, choice.guarantee);
    let not_counted = not_counted(&load, is_whole, &found).into_iter().map(str::to_owned);
    let mut report = Report {
        not_counted: not_counted.chain(uncertain).chain(left_out).collect(),
        free_tier: choice.free_tier,
        instance_usd: choice.instance_usd,
        functions: Vec::new(),
        shared: of_stack,
        limits,
        never_enough,
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

/// Sets of a function what is tried instead of what the template says, and notes what is assumed of it.
///
/// # Errors
/// When it would have batches that Lambda does not make.
fn set(one: &mut Deployed, load: &Load, choice: &Choice) -> Result<(), String> {
    let most = if one.polled.fifo { BATCH_MAX } else { f64::INFINITY };
    one.polled.batch = choice.batch.unwrap_or(one.polled.batch).min(most);
    one.polled.window_s = choice.window_s.filter(|_| !one.polled.fifo).unwrap_or(one.polled.window_s);
    let is_tried = choice.batch.is_some() || choice.window_s.is_some();
    if is_tried && one.polled.batch > BATCH_MAX && one.polled.window_s < 1.0 {
        return Err(format!("batches of more than 10 need a window: {} with --batching-window 1 or more", one.name));
    }
    if one.polled.fifo && load.traffic.per_group <= 1.0 {
        one.assumed.push("each message of a batch is of a group of its own (--per-group)".to_owned());
    }
    let most = batches::most(&one.polled, load);
    if load.filled.is_some_and(|filled| filled > most) {
        one.assumed.push(format!("batches of {} messages: no more fit", most.floor()));
    }
    Ok(())
}

/// Notes of functions that were asked for which of their tables others write to, which were not: their limits are without these.
fn note_others(found: &mut [Deployed], choice: &Choice) {
    let is_chosen = |one: &Deployed| choice.functions.is_empty() || choice.functions.iter().any(|name| one.is(name));
    let names = |one: &Deployed| match &one.records {
        Records::Tables(of) if !matches!(choice.store_of(one), Store::Instance(_)) => of.names.clone(),
        _ => Vec::new(),
    };
    let others = found.iter().filter(|one| !is_chosen(one));
    let others: Vec<_> = others.map(|one| (one.function_id().to_owned(), names(one))).collect();
    for one in found.iter_mut().filter(|one| is_chosen(one)) {
        let own = names(one);
        let sharing = others.iter().filter(|(_, other)| other.iter().any(|name| own.contains(name)));
        let count = sharing.map(|(function, _)| function).collect::<BTreeSet<_>>().len();
        if count > 0 {
            let table = own.join(", ");
            one.assumed.push(format!("the limits of {table}: without the writes of the others that use it ({count})"));
        }
    }
}

/// Takes what several functions have only once off their bills. Returns what their stores have: the database, and of each table the
/// alarms and the capacity that does not scale. Metrics of a function with several queues stay with the first of these.
fn of_stores(found: &[Deployed], functions: &mut [Detail]) -> Vec<Line> {
    let mut once: Vec<Line> = Vec::new();
    if functions.len() < 2 {
        return once;
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut with_metrics: Vec<&Deployed> = Vec::new();
    for (deployed, detail) in found.iter().zip(functions) {
        // Tables whose names are not known are others.
        let tables = if let Records::Tables(tables) = &deployed.records { &tables.names[..] } else { &[] };
        let new = tables.iter().filter(|name| !seen.contains(&name.as_str())).count();
        let share = if tables.is_empty() { 1.0 } else { new as f64 / tables.len() as f64 };
        seen.extend(tables.iter().map(String::as_str));
        let is_fixed = matches!(detail.bill.store, Store::Fixed { .. });
        let is_of_table = |line: &Line| line.what == OF_SCALING || is_fixed && CAPACITY.contains(&line.what);
        let is_shared = |line: &Line| is_of_table(line) || line.price == INSTANCE && line.usd > 0.0;
        for mut line in detail.bill.lines.extract_if(.., |line| is_shared(line)) {
            if is_of_table(&line) {
                (line.quantity, line.usd) = (line.quantity * share, line.usd * share);
            }
            match once.iter_mut().find(|other| other.what == line.what) {
                None => once.push(line),
                Some(other) if is_of_table(&line) => {
                    other.quantity += line.quantity;
                    other.usd += line.usd;
                }
                Some(_) => {}
            }
        }
        match with_metrics.iter().find(|other| other.function_id() == deployed.function_id()) {
            None => with_metrics.push(deployed),
            Some(first) if deployed.function.metrics => {
                detail.bill.lines.retain(|line| line.what != OF_METRICS);
                detail.advice.retain(|one| one.setting != METRICS_OFF);
                let note = "at the rate of one queue; what is compared has its own";
                detail.assumed.push(format!("its metrics: those of {}, {note}", first.name));
            }
            Some(_) => {}
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
        never_enough: never_enough(deployed, load, guarantee, store),
        scaling_s: scaling_s(deployed, load, guarantee),
        advice: advice(&own, deployed, load, prices),
        assumed: deployed.assumed.clone(),
        bill: own,
    }
}

fn not_counted(load: &Load, is_whole: bool, found: &[Deployed]) -> Vec<&'static str> {
    let mut all = vec![
        "what handlers call and write themselves, but for the writes of their transactions",
        "dead letters, metrics of other outcomes and of mappings, keys of KMS, fair queues, traces",
        "data transfer, VPC endpoints and NAT, storage of logs, Lambda's init time",
    ];
    if load.traffic.sent_in.is_none() {
        all.insert(0, "sending (--sent-in)");
    }
    all.push(if is_whole {
        "composite alarms, and what an alarm of less than a minute costs more than another"
    } else {
        "alarms and dashboards: the bill of all functions has them"
    });
    if found.iter().any(|one| one.polled.pollers.is_some()) {
        all.push("provisioned pollers: their price; it is computed with as many as there are at least");
    }
    let tables =
        || found.iter().filter_map(|one| if let Records::Tables(tables) = &one.records { Some(tables) } else { None });
    if tables().any(|tables| tables.infrequent) {
        all.push("what STANDARD_INFREQUENT_ACCESS changes: dearer units, cheaper storage");
    }
    if tables().any(|tables| tables.moving) {
        all.push("CLAIMANT_TABLE_BEFORE: a read unit for each message, and what moves the records");
    }
    all
}
