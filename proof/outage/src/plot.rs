//! What was measured, as a plot for the book: a chart for each measure, a line for each run.

use std::fmt::Write as _;

use crate::seen::{Sample, Seen};
use crate::setting::{Means, Setting};
use crate::table::number;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 32.0;
const TOP: f64 = 60.0;
const CHART: f64 = 150.0;
const GAP: f64 = 56.0;

/// Seconds that are one point of a line.
const POINT_S: usize = 10;

/// What a second shows; a point of a line is the most of its seconds.
type Measure = fn(&Sample) -> u64;

struct Chart {
    title: &'static str,
    measure: Measure,
    /// Each ten times the one before, from 1 on; or else from 0 on, each as far from the one before.
    by_tens: bool,
    /// A line that is not to be crossed.
    limit: Option<(u32, &'static str)>,
}

/// Returns the plot, as SVG, for light and dark pages.
#[must_use]
pub fn plot(setting: &Setting, runs: &[(Means, Seen)]) -> String {
    let charts = [
        Chart {
            title: "Messages in flight",
            measure: |sample| sample.in_flight as u64,
            by_tens: false,
            limit: Some((setting.in_flight_max as u32, "the queue's limit")),
        },
        Chart {
            title: "Calls of the system in a second",
            measure: |sample| sample.calls.into(),
            by_tens: true,
            limit: Some((setting.limit_per_s, "what the system is good for")),
        },
        Chart {
            title: "Messages visible in the queue",
            measure: |sample| sample.visible as u64,
            by_tens: false,
            limit: None,
        },
        Chart {
            title: "Messages in the dead-letter queue",
            measure: |sample| sample.dead as u64,
            by_tens: false,
            limit: None,
        },
    ];
    let height = TOP + charts.len() as f64 * (CHART + GAP);
    let mut svg = head(height);
    legend(&mut svg, runs);
    let seconds = runs.iter().map(|(_, seen)| seen.samples.len()).max().unwrap_or(1);
    let axis = Axis { seconds: seconds.next_multiple_of(600) as f64, away: setting.away.clone() };
    for (index, chart) in charts.iter().enumerate() {
        draw(&mut svg, chart, &axis, runs, TOP + index as f64 * (CHART + GAP) + 24.0);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Time, to the right.
struct Axis {
    seconds: f64,
    away: std::ops::Range<std::time::Duration>,
}

impl Axis {
    fn x(&self, second: f64) -> f64 {
        LEFT + second / self.seconds * (WIDTH - LEFT - RIGHT)
    }
}

fn head(height: f64) -> String {
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">
<title>An outage of half an hour, with each means against it</title>
<style>
svg {{ --paper: #ffffff; --ink: #1b1f24; --faint: #59636e; --grid: #e3e6ea; --away: #f3f0e6; --c0: #c2410c; --c1: #1d4ed8; --c2: #047857; --c3: #9333ea; }}
@media (prefers-color-scheme: dark) {{
svg {{ --paper: #14171c; --ink: #e8ebef; --faint: #9aa4b0; --grid: #2b3038; --away: #24241d; --c0: #fb923c; --c1: #7aa7ff; --c2: #4ade9f; --c3: #d4a5ff; }}
}}
text {{ fill: var(--faint); }}
.title {{ fill: var(--ink); font-size: 14px; font-weight: 600; }}
.grid {{ stroke: var(--grid); }}
.limit {{ stroke: var(--ink); stroke-dasharray: 2 3; }}
.line {{ fill: none; stroke-width: 1.8; stroke-linejoin: round; }}
</style>
<rect width="100%" height="100%" fill="var(--paper)"/>
"##
    )
}

/// Lines differ by more than their colour.
fn stroke(index: usize) -> String {
    let dashes = ["", "7 3", "2 2", "10 3 2 3"][index % 4];
    format!(r#"stroke="var(--c{})" stroke-dasharray="{dashes}""#, index % 4)
}

fn legend(svg: &mut String, runs: &[(Means, Seen)]) {
    let mut x = LEFT;
    for (index, (means, _)) in runs.iter().enumerate() {
        let (name, stroke) = (means.name(), stroke(index));
        let (end, text) = (x + 34.0, x + 42.0);
        put(svg, format_args!(r#"<path class="line" d="M{x} 24H{end}" {stroke}/>"#));
        put(svg, format_args!(r#"<text x="{text}" y="28">{name}</text>"#));
        x += 70.0 + 7.0 * name.len() as f64;
    }
}

fn draw(svg: &mut String, chart: &Chart, axis: &Axis, runs: &[(Means, Seen)], top: f64) {
    let bottom = top + CHART;
    let most = runs.iter().flat_map(|(_, seen)| &seen.samples).map(chart.measure).max().unwrap_or(0);
    let most = most.max(chart.limit.map_or(1, |(limit, _)| limit).into());
    let marks = if chart.by_tens { tens(most) } else { even(most) };
    let full = *marks.last().unwrap_or(&1) as f64;
    let y = |value: f64| {
        let part = if chart.by_tens { value.max(1.0).log10() / full.log10().max(1.0) } else { value / full };
        bottom - part * CHART
    };
    let (from, to) = (axis.x(axis.away.start.as_secs_f64()), axis.x(axis.away.end.as_secs_f64()));
    let width = to - from;
    put(svg, format_args!(r#"<rect x="{from:.1}" y="{top}" width="{width:.1}" height="{CHART}" fill="var(--away)"/>"#));
    put(svg, format_args!(r#"<text class="title" x="{LEFT}" y="{}">{}</text>"#, top - 10.0, chart.title));
    put(svg, format_args!(r#"<text x="{}" y="{}">away</text>"#, from + 6.0, top + 16.0));
    for mark in &marks {
        let (at, end) = (y(*mark as f64), WIDTH - RIGHT);
        put(svg, format_args!(r#"<path class="grid" d="M{LEFT} {at:.1}H{end}"/>"#));
        put(
            svg,
            format_args!(r#"<text x="{}" y="{:.1}" text-anchor="end">{}</text>"#, LEFT - 8.0, at + 4.0, short(*mark)),
        );
    }
    for minute in (0..=axis.seconds as usize / 60).step_by(10) {
        let x = axis.x(minute as f64 * 60.0);
        put(svg, format_args!(r#"<text x="{x:.1}" y="{}" text-anchor="middle">{minute} min</text>"#, bottom + 16.0));
    }
    if let Some((limit, what)) = chart.limit {
        let (at, end) = (y(limit.into()), WIDTH - RIGHT);
        put(svg, format_args!(r#"<path class="limit" d="M{LEFT} {at:.1}H{end}"/>"#));
        put(svg, format_args!(r#"<text x="{end}" y="{:.1}" text-anchor="end">{what}</text>"#, at - 5.0));
    }
    for (index, (_, seen)) in runs.iter().enumerate() {
        let mut path = String::new();
        for (n, samples) in seen.samples.chunks(POINT_S).enumerate() {
            let value = samples.iter().map(chart.measure).max().unwrap_or(0);
            let letter = if n == 0 { 'M' } else { 'L' };
            let x = axis.x((n * POINT_S) as f64);
            put_part(&mut path, format_args!("{letter}{x:.1} {:.1}", y(value as f64)));
        }
        put(svg, format_args!(r#"<path class="line" d="{path}" {}/>"#, stroke(index)));
    }
}

fn put(svg: &mut String, line: std::fmt::Arguments<'_>) {
    put_part(svg, line);
    svg.push('\n');
}

fn put_part(svg: &mut String, part: std::fmt::Arguments<'_>) {
    svg.write_fmt(part).expect("a string takes what is written");
}

/// Returns 0, and up to five numbers that are far enough apart for so much.
fn even(most: u64) -> Vec<u64> {
    let rough = (most / 4).max(1);
    let ten = 10_u64.pow(rough.ilog10());
    let step = [1, 2, 5, 10].map(|n| n * ten).into_iter().find(|step| *step >= rough).unwrap_or(10 * ten);
    (0..=most.div_ceil(step)).map(|n| n * step).collect()
}

fn tens(most: u64) -> Vec<u64> {
    (0..=(most.max(2) - 1).ilog10() + 1).map(|n| 10_u64.pow(n)).collect()
}

fn short(n: u64) -> String {
    match n {
        1_000_000.. if n.is_multiple_of(100_000) => format!("{} M", n as f64 / 1e6),
        _ => number(n),
    }
}
