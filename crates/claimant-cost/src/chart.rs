//! A chart of a bill against the rate: what a million messages cost, and what the bill is made of.

use std::fmt::Write as _;

use claimant_doctor::model::System;

use crate::load::{Load, MONTH_DAYS};
use crate::plan::{Guarantee, Store};
use crate::prices::Prices;
use crate::report::{Choice, Report, report};

/// Messages a day of the first and the last point, as powers of ten, and points for each of them.
const DECADES: (i32, i32) = (3, 9);
const POINTS: i32 = 20;

/// USD at the bottom and the top, as powers of ten.
const USD: (i32, i32) = (-1, 3);

const LEFT: f64 = 72.0;
const RIGHT: f64 = 928.0;
const HEIGHT: f64 = 250.0;
/// The tops of the two panels.
const TOPS: [f64; 2] = [88.0, 464.0];

/// The lines: a guarantee, the column of its store, and their name.
const LINES: [(Guarantee, usize, &str, &str); 5] = [
    (Guarantee::Transactional, 0, "transactional", "10 3 2 3"),
    (Guarantee::Optimistic, 0, "transactional, no claim", "2 2"),
    (Guarantee::AtLeastOnce, 0, "at least once", ""),
    (Guarantee::AtLeastOnce, 1, "at least once, provisioned", "7 3"),
    (Guarantee::AtLeastOnce, 2, "without the store", "1 4"),
];

const SERVICES: [&str; 4] = ["DynamoDB", "SQS", "Lambda", "CloudWatch"];

const STYLE: &str = "\
svg { --paper: #ffffff; --ink: #1b1f24; --faint: #59636e; --grid: #e3e6ea; --c0: #c2410c; --c1: #9333ea; --c2: #1d4ed8; --c3: #047857; --c4: #59636e; }
@media (prefers-color-scheme: dark) {
svg { --paper: #14171c; --ink: #e8ebef; --faint: #9aa4b0; --grid: #2b3038; --c0: #fb923c; --c1: #d4a5ff; --c2: #7aa7ff; --c3: #4ade9f; --c4: #9aa4b0; }
}
text { fill: var(--faint); }
.title { fill: var(--ink); font-size: 14px; font-weight: 600; }
.grid { stroke: var(--grid); }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.area { opacity: 0.55; stroke: var(--paper); }
";

/// Returns the chart of the first function of a choice, as SVG for light and dark pages.
///
/// # Errors
/// As [`report`] has them.
pub fn chart(system: &System, load: &Load, prices: &Prices, choice: &Choice) -> Result<String, String> {
    // A store of one size would not follow the rate.
    let choice = &Choice { instance_usd: None, ..choice.clone() };
    let mut points = Vec::new();
    for step in 0..=(DECADES.1 - DECADES.0) * POINTS {
        let decades = f64::from(DECADES.0) + f64::from(step) / f64::from(POINTS);
        let mut load = load.clone();
        load.traffic.per_second = 10_f64.powf(decades) / 86_400.0;
        points.push((x(decades), report(system, load, prices.clone(), choice)?));
    }
    let name = points[0].1.functions[0].bill.name.clone();
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 760\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>What {name} costs, against messages a day</title>\n<style>\n{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>\n"
    );
    per_million(&mut svg, &points);
    shares(&mut svg, &points);
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn x(decades: f64) -> f64 {
    LEFT + (decades - f64::from(DECADES.0)) / f64::from(DECADES.1 - DECADES.0) * (RIGHT - LEFT)
}

/// The title of a panel, its legend, and the rates below it.
fn panel(svg: &mut String, top: f64, title: &str, legend: &[(&str, String)]) {
    let _ = writeln!(svg, "<text class=\"title\" x=\"{LEFT}\" y=\"{}\">{title}</text>", top - 44.0);
    let mut at = LEFT;
    for (name, mark) in legend {
        let _ = writeln!(svg, "<path d=\"M{at:.0} {y}h26\" {mark}/>", y = top - 22.0);
        let _ = writeln!(svg, "<text x=\"{:.0}\" y=\"{}\">{name}</text>", at + 31.0, top - 18.0);
        // As wide as wide letters of this size are on the mean.
        at += 46.0 + 7.0 * name.len() as f64;
    }
    for decade in DECADES.0..=DECADES.1 {
        let (at, bottom) = (x(f64::from(decade)), top + HEIGHT);
        let name = ["1,000", "10,000", "100,000", "1 million", "10 million", "100 million", "1 billion"];
        let name = name[usize::try_from(decade - DECADES.0).unwrap_or(0)];
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{at:.1} {top}V{bottom}\"/>");
        let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>", bottom + 18.0);
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    let _ = writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">messages a day</text>",
        top + HEIGHT + 34.0
    );
}

fn scale(svg: &mut String, at: f64, name: &str) {
    let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>");
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>", LEFT - 8.0, at + 4.0);
}

fn per_million(svg: &mut String, points: &[(f64, Report)]) {
    let top = TOPS[0];
    let marks = LINES.iter().enumerate().map(|(index, (_, _, name, dashes))| {
        (*name, format!("class=\"line\" stroke=\"var(--c{index})\" stroke-dasharray=\"{dashes}\""))
    });
    panel(
        svg,
        top,
        "USD for a million messages; DynamoDB on demand, where nothing else is said",
        &marks.collect::<Vec<_>>(),
    );
    let y = |usd: f64| top + HEIGHT * (f64::from(USD.1) - usd.log10()) / f64::from(USD.1 - USD.0);
    for (power, name) in (USD.0..=USD.1).zip(["0.10", "1", "10", "100", "1,000"]) {
        scale(svg, y(10_f64.powi(power)), name);
    }
    for (index, (guarantee, store, _, dashes)) in LINES.iter().enumerate() {
        let mut path = String::new();
        for (x, report) in points {
            let rows = &report.functions[0].compared;
            let usd = rows.iter().find(|row| row.0 == *guarantee).and_then(|row| row.1[*store]).unwrap_or(0.0);
            let million = usd / (report.load.traffic.per_second * 86_400.0 * MONTH_DAYS) * 1e6;
            let _ = write!(path, "{}{x:.1} {:.1}", if path.is_empty() { 'M' } else { 'L' }, y(million));
        }
        let _ = writeln!(
            svg,
            "<path class=\"line\" d=\"{path}\" stroke=\"var(--c{index})\" stroke-dasharray=\"{dashes}\"/>"
        );
    }
}

fn shares(svg: &mut String, points: &[(f64, Report)]) {
    let top = TOPS[1];
    let bill = &points[0].1.functions[0].bill;
    let but = if matches!(bill.store, Store::Fixed { .. }) { ", as if it were enough" } else { "" };
    let title = format!("What the bill is made of: {}, {}{but}", bill.guarantee.name(), bill.store.name());
    let mark = |index: usize| format!("class=\"area\" stroke-width=\"12\" style=\"stroke: var(--c{index})\"");
    let legend = SERVICES.iter().enumerate().map(|(index, name)| (*name, mark(index)));
    panel(svg, top, &title, &legend.collect::<Vec<_>>());
    let y = |share: f64| top + HEIGHT * (1.0 - share);
    for percent in [0, 25, 50, 75, 100] {
        scale(svg, y(f64::from(percent) / 100.0), &format!("{percent} %"));
    }
    // From the bottom up: how much of a bill the services before one are, and with it.
    let up_to = |report: &Report, count: usize| {
        let services = report.functions[0].bill.services();
        let of = |names: &[&str]| names.iter().filter_map(|name| services.get(name)).sum::<f64>();
        of(&SERVICES[..count]) / of(&SERVICES).max(f64::MIN_POSITIVE)
    };
    for index in 0..SERVICES.len() {
        let upper = points.iter().map(|(x, report)| (x, y(up_to(report, index + 1))));
        let lower = points.iter().rev().map(|(x, report)| (x, y(up_to(report, index))));
        let outline = upper.chain(lower).map(|(x, y)| format!("{x:.1} {y:.1}"));
        let outline = outline.collect::<Vec<_>>().join("L");
        let _ = writeln!(svg, "<path class=\"area\" d=\"M{outline}Z\" fill=\"var(--c{index})\"/>");
    }
}
