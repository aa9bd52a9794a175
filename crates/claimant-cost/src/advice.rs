//! What would lower the bill: each setting is tried, and the bill computed again.

use crate::batches::Batches;
use crate::bill::{FunctionBill, bill};
use crate::deployed::Deployed;
use crate::load::{Load, WINDOW_DEFAULT_DAYS};
use crate::plan::{Guarantee, Store};
use crate::prices::Prices;
use crate::records::{Records, Tables};

/// The setting that switches metrics off.
pub(crate) const METRICS_OFF: &str = "CLAIMANT_METRICS: off";

/// The window that is tried.
const WINDOW_S: f64 = 5.0;

const DAY_S: f64 = 86_400.0;

/// Of the bill, what is worth to be told.
const WORTH: f64 = 0.02;

/// How many are told.
const TOLD_MAX: usize = 3;

/// A setting that lowers the bill.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// What to set.
    pub setting: String,
    /// What it changes besides.
    pub price: &'static str,
    /// What it saves a month, alone, without the free tier.
    pub saves_usd: f64,
}

/// Returns the settings that lower this bill most.
pub(crate) fn advice(of: &FunctionBill, deployed: &Deployed, load: &Load, prices: &Prices) -> Vec<Advice> {
    let again =
        |deployed: &Deployed, load: &Load, guarantee, store| bill(deployed, load, guarantee, store, prices).usd();
    let (guarantee, store) = (of.guarantee, of.store);
    let mut found = Vec::new();
    let mut add = |setting: &str, price, usd: f64| {
        found.push(Advice { setting: setting.to_owned(), price, saves_usd: of.usd() - usd });
    };
    let polled = &deployed.polled;
    if !polled.fifo && polled.window_s < WINDOW_S && load.filled.is_none() {
        let mut windowed = deployed.clone();
        windowed.polled.window_s = WINDOW_S;
        add("MaximumBatchingWindowInSeconds: 5", "up to 5 s of delay", again(&windowed, load, guarantee, store));
    }
    if !polled.fifo && polled.batch < 100.0 && Batches::of(deployed, load, guarantee, 1.0).fill >= polled.batch {
        let mut larger = deployed.clone();
        (larger.polled.batch, larger.polled.window_s) = (100.0, polled.window_s.max(1.0));
        larger.function.at_once = larger.function.at_once.max(100.0);
        let setting = "BatchSize: 100, a window of 1 s, CLAIMANT_CONCURRENCY: 100";
        add(setting, "the memory of 100 handlers at once", again(&larger, load, guarantee, store));
    }
    if deployed.function.metrics {
        let mut quiet = deployed.clone();
        quiet.function.metrics = false;
        add(METRICS_OFF, "no metrics of outcomes, no alarms on them", again(&quiet, load, guarantee, store));
    }
    if !deployed.function.arm64 {
        let mut arm64 = deployed.clone();
        arm64.function.arm64 = true;
        add("Architectures: [arm64]", "a build for it", again(&arm64, load, guarantee, store));
    }
    if matches!(store, Store::OnDemand | Store::Fixed { .. }) {
        let provisioned = again(deployed, load, guarantee, Store::Provisioned);
        add("BillingMode: PROVISIONED with auto scaling", "throttled where load rises within minutes", provisioned);
    }
    if matches!(store, Store::Fixed { .. }) {
        let on_demand = again(deployed, load, guarantee, Store::OnDemand);
        add("BillingMode: PAY_PER_REQUEST", "a bill that grows with the load", on_demand);
    }
    if guarantee == Guarantee::Transactional && Guarantee::Optimistic.is_for(store) {
        let optimistic = again(deployed, load, Guarantee::Optimistic, store);
        add("optimistic_transactions()", "two copies may run at once, one has an effect", optimistic);
    }
    if let Records::Tables(tables) = &deployed.records
        && !matches!(store, Store::Instance(_))
    {
        // Longer than a message can live: what is redriven after its record is over runs again.
        // No shorter window is taken by a consumer that does its work at most once.
        let least = if guarantee == Guarantee::AtMostOnce { WINDOW_DEFAULT_DAYS } else { 0.0 };
        let days = polled.lives_s.map(|lives| least.max((lives / DAY_S).ceil() + 1.0));
        if let Some(days) = days.filter(|days| *days < load.window_days) {
            let shorter = Load { window_days: days, ..load.clone() };
            let price = "duplicates that come later run again";
            add(&format!("a window of {days} days"), price, again(deployed, &shorter, guarantee, store));
        }
        if tables.recovery {
            let mut without = deployed.clone();
            without.records = Records::Tables(Tables { recovery: false, ..tables.clone() });
            add(
                "PointInTimeRecoveryEnabled: false",
                "no way back to an earlier table",
                again(&without, load, guarantee, store),
            );
        }
    }
    found.retain(|one| one.saves_usd > of.usd() * WORTH);
    found.sort_by(|a, b| b.saves_usd.total_cmp(&a.saves_usd));
    found.truncate(TOLD_MAX);
    found
}
