//! Text for a terminal: no line is wider than 100 columns, names aside.

use std::fmt::{Display, Write as _};

use super::figures::{number, rate, usd};
use crate::bill::{Line, per_million};
use crate::deployed::READS;
use crate::limits::Limit;
use crate::plan::Store;
use crate::prices::Prices;
use crate::report::{Detail, Report};

/// The services that a table has a column for, and `store` for a database.
const SERVICES: [&str; 4] = ["SQS", "Lambda", "DynamoDB", "CloudWatch"];

const ASSUMED: &str = "Not in the template, assumed: ";

/// Over what is computed without the free tier, where the bill is after it.
const BEFORE_FREE: &str = ", without the free tier";

/// A text that grows by lines. Nothing can go wrong: a text takes what is written to it.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.0, "{}", line.as_ref().trim_end());
    }
}

/// Returns the report as text: of one function its lines, of several a table.
pub fn text(report: &Report) -> String {
    let mut out = Text::default();
    head(&mut out, report);
    match &report.functions[..] {
        [one] => whole(&mut out, report, one),
        several => table(&mut out, report, several),
    }
    for (index, what) in report.not_counted.iter().enumerate() {
        let label = if index == 0 { "Not counted: " } else { "             " };
        out.line(format!("{label}{what}"));
    }
    out.0
}

fn head(out: &mut Text, report: &Report) {
    let Prices { date, region, are_own, .. } = &report.prices;
    let traffic = &report.load.traffic;
    let share = |share: f64| number(share * 100.0, 2);
    let is_queue = |one: &Detail| one.bill.name.contains(READS);
    let each = match &report.functions[..] {
        [_] => "",
        several if several.iter().any(is_queue) => " to each queue",
        _ => " to each function",
    };
    out.line(format!("{}{each}; USD for a month of 30 days", rate(traffic.per_second)));
    let free = if report.free_tier { "after the free tier" } else { "without the free tier" };
    let but = if *are_own { "yours where you gave one" } else { "they may have changed: --prices FILE" };
    out.line(format!("List prices of {region}, {date}, {free}; {but}"));
    let work = &report.load.work;
    out.line(format!(
        "Assumed: {} % copies of completed work, {} % fail once, handlers of {} ms, messages of {} KB",
        share(traffic.duplicates),
        share(traffic.retries),
        number(work.handler_ms, 1),
        number(work.body_bytes / 1_024.0, 1)
    ));
    out.line("");
}

/// A row of the table: its name, and a cell for each of the services, the database and the total.
type Row = (String, [String; SERVICES.len() + 2]);

fn table(out: &mut Text, report: &Report, several: &[Detail]) {
    rows(report, several).into_iter().for_each(|line| out.line(line));
    if let Some(limit) = &report.never_enough {
        out.line(format!("this rate is not reached, and these bills neither: see {limit} among the limits below"));
    }
    for one in several {
        never_enough(out, one, &format!("{}: ", one.bill.name));
    }
    out.line("");
    shared_limits(out, report);
    let each = several.iter().filter(|one| !one.assumed.is_empty());
    assumed(out, each.map(|one| format!("{}: {}", one.bill.name, one.assumed.join("; "))));
    out.line("--function NAME has the lines of one of them, its own limits, and what would lower its bill.");
    out.line("");
}

/// Returns the lines of the table. Each column is as wide as it must be, and one with nothing in it is left out.
fn rows(report: &Report, several: &[Detail]) -> Vec<String> {
    let empty = || [const { String::new() }; SERVICES.len() + 2];
    let (database, total) = (SERVICES.len(), SERVICES.len() + 1);
    let mut titles = empty();
    for (cell, title) in titles.iter_mut().zip(SERVICES.iter().chain(&["database", "total"])) {
        (*title).clone_into(cell);
    }
    let mut rows: Vec<Row> = Vec::new();
    for one in several {
        let services = one.bill.services();
        let mut cells = empty();
        for (cell, service) in cells.iter_mut().zip(SERVICES) {
            *cell = usd(services.get(service).copied().unwrap_or(0.0));
        }
        // One with a price is there once, below.
        if matches!(one.bill.store, Store::Instance(None)) {
            "yours".clone_into(&mut cells[database]);
        }
        cells[total] = usd(one.bill.usd());
        rows.push((one.bill.name.clone(), cells));
    }
    for line in &report.shared {
        let mut cells = empty();
        let column = SERVICES.iter().position(|service| *service == line.service);
        cells[column.unwrap_or(database)] = usd(line.usd);
        cells[total] = usd(line.usd);
        rows.push((line.what.to_owned(), cells));
    }
    let mut cells = empty();
    cells[total] = usd(report.usd());
    rows.push(("total".to_owned(), cells));
    let widths: Vec<_> = (0..=total)
        .map(|column| {
            let longest = rows.iter().map(|(_, cells)| cells[column].len()).max().unwrap_or(0);
            if longest == 0 { 0 } else { longest.max(titles[column].len()) + 2 }
        })
        .collect();
    rows.insert(0, (String::new(), titles));
    let names = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, cells): Row| {
        let cells = cells.iter().zip(&widths).filter(|(_, width)| **width > 0);
        cells.fold(format!("{name:<names$}"), |line, (cell, width)| format!("{line}{cell:>width$}"))
    };
    rows.into_iter().map(line).collect()
}

fn whole(out: &mut Text, report: &Report, detail: &Detail) {
    let bill = &detail.bill;
    out.line(format!("{}: {}, {}", bill.name, bill.guarantee.name(), bill.store.name()));
    out.line(format!(
        "Batches of {} message{}, {} ms each; {} invocations at once",
        number(bill.batches.fill, 1),
        if bill.batches.fill < 1.05 { "" } else { "s" },
        number(bill.batches.duration_ms, 0),
        number(bill.batches.at_once(), 2)
    ));
    out.line("");
    out.line(format!("{:<12}{:<30}{:>18}  {:<26}{:>12}", "", "", "a month", "at", "USD"));
    for line in bill.lines.iter().chain(&report.shared) {
        out.line(bill_line(line, &report.prices));
    }
    out.line(format!("{:<12}{:<76}{:>12}", "total", "", usd(report.usd())));
    out.line(format!("{:<12}{:<76}{:>12}", "", "for a million messages", usd(per_million(report.usd(), &report.load))));
    never_enough(out, detail, "");
    out.line("");
    most(out, report, detail);
    limits(out, report, detail);
    compared(out, report, detail);
    assumed(out, detail.assumed.iter());
}

/// Says where the bill is for more messages than the function ever gets.
fn never_enough(out: &mut Text, detail: &Detail, name: &str) {
    if let Some(limit) = detail.never_enough {
        out.line(format!("{name}this rate is not reached, and its bill neither: see {limit} among its limits"));
    }
}

fn assumed(out: &mut Text, what: impl Iterator<Item = impl Display>) {
    for (index, what) in what.enumerate() {
        let label = if index == 0 { ASSUMED } else { "" };
        out.line(format!("{label:<width$}{what}", width = ASSUMED.len()));
    }
}

fn bill_line(line: &Line, prices: &Prices) -> String {
    let price = prices.of(line.price);
    let at = match price.per {
        _ if line.price == "instance" => String::new(),
        per if per >= 1e6 => format!("{} a million", number(price.usd, 4)),
        _ => number(price.usd, 5),
    };
    let quantity =
        if line.price == "instance" { String::new() } else { format!("{} {}", number(line.quantity, 2), price.unit) };
    format!("{:<12}{:<26}{quantity:>28}  {at:<20}{:>12}", line.service, line.what, usd(line.usd))
}

fn most(out: &mut Text, report: &Report, detail: &Detail) {
    let all = detail.bill.lines.iter().chain(&report.shared);
    let Some(most) = all.max_by(|a, b| a.usd.total_cmp(&b.usd)).filter(|line| line.usd > 0.0) else {
        return;
    };
    let share = most.usd / report.usd() * 100.0;
    out.line(format!(
        "Most of it: {}, {} ({} %). What would lower it, each alone{}:",
        most.service,
        most.what,
        number(share, 0),
        if report.free_tier { BEFORE_FREE } else { "" }
    ));
    for one in &detail.advice {
        out.line(format!("  {:<61}saves {:>10}", one.setting, usd(one.saves_usd)));
        out.line(format!("    for {}", one.price));
    }
    if detail.advice.is_empty() {
        out.line("  nothing that this command knows");
    }
    out.line("");
}

/// Writes a limit; of which table, where that is to be said.
fn limit(out: &mut Text, limit: &Limit, of: &str) {
    let mark = if limit.share() > 1.0 { "over" } else { "" };
    let (needed, most) = (number(limit.needed, 1), number(limit.limit, 0));
    out.line(format!("  {:<38}{needed:>12} of {most:>8}  {mark:<6}{of}", limit.what));
    if limit.share() > 0.5 {
        out.line(format!("    beyond it {}", limit.then));
    }
}

/// Writes the limits of what several functions share.
fn shared_limits(out: &mut Text, report: &Report) {
    let peak = number(report.load.traffic.peak, 1);
    out.line(format!("Limits of what they share, at {peak} times the mean rate of all, the nearest first"));
    for one in &report.limits {
        limit(out, &one.limit, one.table.as_deref().unwrap_or_default());
    }
    out.line("");
}

fn limits(out: &mut Text, report: &Report, detail: &Detail) {
    out.line(format!("Limits, at {} times the mean rate, the nearest first", number(report.load.traffic.peak, 1)));
    for one in &detail.limits {
        limit(out, one, "");
    }
    if detail.scaling_s >= 60.0 {
        out.line(format!(
            "  Lambda adds 300 invocations a minute: {} s until there are enough",
            number(detail.scaling_s, 0)
        ));
    }
    out.line("");
}

fn compared(out: &mut Text, report: &Report, detail: &Detail) {
    let row = |name: &str, cells: [String; 3]| {
        let [on_demand, provisioned, instance] = cells;
        format!("{name:<31}{on_demand:>20}{provisioned:>23}{instance:>26}")
    };
    let titles = ["DynamoDB on demand", "DynamoDB provisioned", "PostgreSQL, MySQL, Redis"];
    if report.free_tier {
        out.line(format!("By guarantee and store{BEFORE_FREE}:"));
    }
    let title = if report.free_tier { "" } else { "By guarantee and store" };
    out.line(row(title, titles.map(str::to_owned)));
    for (guarantee, cells) in &detail.compared {
        out.line(row(guarantee.name(), cells.map(|cell| cell.map_or("–".to_owned(), usd))));
    }
    if matches!(detail.bill.store, Store::Fixed { .. }) {
        out.line("Provisioned is with auto scaling here.");
    }
    match report.instance_usd {
        Some(price) => out.line(format!("The last column has {} for the database.", usd(price))),
        None => out.line("The last column is without the database itself: --instance-usd. Redis has no transactions."),
    }
    out.line("");
}
