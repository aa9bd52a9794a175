//! A report as text for a terminal, and as JSON for programs.

mod figures;
mod text;

use serde_json::{Value, json};

use crate::bill::Line;
use crate::limits::Limit;
use crate::prices::allowance;
use crate::report::{Detail, Report};
use figures::to;

pub use text::text;

/// Returns the report as JSON. Quantities and sums are of a month.
pub fn json(report: &Report) -> Value {
    let traffic = &report.load.traffic;
    let prices = report.prices.all().map(|(name, price)| {
        // The two that share it have it alike, so that these prices can be given again.
        let free = report.prices.of(allowance(name)).free;
        let value =
            json!({"usd": price.usd, "per": price.per, "unit": price.unit, "source": price.source, "free": free});
        (name.to_owned(), value)
    });
    json!({
        "per_second": traffic.per_second,
        "peak": traffic.peak,
        "duplicates": traffic.duplicates,
        "retries": traffic.retries,
        "month_days": crate::load::MONTH_DAYS,
        "region": report.prices.region,
        "date": report.prices.date,
        "free_tier": report.free_tier,
        "functions": report.functions.iter().map(|one| function(report, one)).collect::<Vec<_>>(),
        "shared": lines(&report.shared),
        "limits": report.limits.iter().map(|shared| {
            let mut limit = limit(&shared.limit);
            limit["table"] = shared.table.as_deref().into();
            limit
        }).collect::<Vec<_>>(),
        "never_enough": report.never_enough,
        "usd": to(report.usd(), 4),
        "not_counted": report.not_counted,
        "prices": prices.collect::<serde_json::Map<_, _>>(),
    })
}

fn function(report: &Report, detail: &Detail) -> Value {
    let bill = &detail.bill;
    let compared = detail.compared.iter().map(|(guarantee, [on_demand, provisioned, instance])| {
        let usd = |usd: &Option<f64>| usd.map(|usd| to(usd, 4));
        json!({
            "guarantee": guarantee.name(),
            "dynamodb_on_demand": usd(on_demand),
            "dynamodb_provisioned": usd(provisioned),
            "database": usd(instance),
        })
    });
    json!({
        "function": bill.name,
        "guarantee": bill.guarantee.name(),
        "store": bill.store.name(),
        "batch": to(bill.batches.fill, 3),
        "duration_ms": bill.batches.duration_ms,
        "at_once": to(bill.batches.at_once(), 4),
        "lines": lines(&bill.lines),
        "usd": to(bill.usd(), 4),
        "usd_per_million": to(bill.per_million(&report.load), 4),
        "compared": compared.collect::<Vec<_>>(),
        "limits": detail.limits.iter().map(limit).collect::<Vec<_>>(),
        "never_enough": detail.never_enough,
        "scaling_s": to(detail.scaling_s, 1),
        "advice": detail.advice.iter().map(|one| {
            json!({"setting": one.setting, "price": one.price, "saves_usd": to(one.saves_usd, 4)})
        }).collect::<Vec<_>>(),
        "assumed": detail.assumed,
    })
}

fn limit(limit: &Limit) -> Value {
    json!({"what": limit.what, "needed": to(limit.needed, 3), "limit": limit.limit, "then": limit.then})
}

fn lines(lines: &[Line]) -> Vec<Value> {
    let line = |line: &Line| json!({"what": line.what, "service": line.service, "price": line.price, "quantity": to(line.quantity, 3), "usd": to(line.usd, 4)});
    lines.iter().map(line).collect()
}
