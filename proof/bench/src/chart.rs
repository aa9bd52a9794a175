//! The charts of the page, as SVG for light and dark pages: a row for each contestant, a panel for each size of a batch.

use std::fmt::Write as _;

use crate::field::{CLAIMANT, FIELD};
use crate::figures::Figures;
use crate::measure::{Cell, Results};
use crate::tables::{GLANCE, at_a_glance};

/// Narrow, so that words can be read on a phone; a page shows it this many times as wide at most.
const WIDTH: f64 = 470.0;
const SHOWN_WIDTH: f64 = 658.0;
const LEFT: f64 = 182.0;
const RIGHT: f64 = 412.0;
const TOP: f64 = 46.0;
const ROW: f64 = 22.0;
/// Above the rows of a panel, for its title; and below, for its scale.
const HEAD: f64 = 26.0;
const FOOT: f64 = 34.0;

const STYLE: &str = "\
svg { --paper: #ffffff; --ink: #1b1f24; --faint: #59636e; --grid: #e3e6ea; --ours: #c2410c; --hand: #8b96a3; --peer: #1d4ed8; }
@media (prefers-color-scheme: dark) {
svg { --paper: #14171c; --ink: #e8ebef; --faint: #9aa4b0; --grid: #2b3038; --ours: #fb923c; --hand: #7a8592; --peer: #7aa7ff; }
}
text { fill: var(--faint); }
.title { fill: var(--ink); font-size: 14px; font-weight: 600; }
.value, .ours { fill: var(--ink); }
.ours { font-weight: 600; }
.grid { stroke: var(--grid); }
";

/// What a chart shows of a contestant.
struct Chart {
    file: &'static str,
    title: &'static str,
    note: &'static str,
    measure: fn(&Figures) -> f64,
    /// Each mark of the scale ten times the one before; or else two and four parts of the largest value, from 0 on.
    by_tens: bool,
    digits: usize,
}

const CHARTS: [Chart; 3] = [
    Chart {
        file: "performance-speed.svg",
        title: "Messages per second",
        note: "more is better; each mark is ten times the one before",
        measure: |figures| figures.messages_per_s,
        by_tens: true,
        digits: 0,
    },
    Chart {
        file: "performance-processor.svg",
        title: "Processor time per message, µs",
        note: "less is better; each mark is ten times the one before",
        measure: |figures| figures.cpu_us,
        by_tens: true,
        digits: 0,
    },
    Chart {
        file: "performance-requests.svg",
        title: "Requests to the store per message",
        note: "less is better",
        measure: |figures| figures.requests,
        by_tens: false,
        digits: 2,
    },
];

/// Each chart: its file, what it shows in words, and the SVG.
pub(crate) fn all(results: &Results) -> Vec<(&'static str, String, String)> {
    let (latency_ms, sizes, _) = GLANCE;
    let panels = sizes.map(|size| (size, at_a_glance(results, size)));
    CHARTS
        .iter()
        .map(|chart| {
            let alt = format!(
                "{} by contestant, fresh messages at {latency_ms} ms, in batches of {} and {}",
                chart.title, sizes[0], sizes[1]
            );
            (chart.file, alt, draw(chart, results, &panels))
        })
        .collect()
}

/// Values to lengths.
struct Scale {
    marks: Vec<f64>,
    by_tens: bool,
}

impl Scale {
    fn new(values: &[f64], by_tens: bool) -> Self {
        let (least, most) = values.iter().fold((f64::MAX, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
        let marks = if by_tens {
            // OK because the values are between a millionth and a million million.
            let (from, to) = (least.max(1e-6).log10().floor() as i32, most.clamp(1e-6, 1e12).log10().ceil() as i32);
            (from..=to.max(from + 1)).map(|power| 10_f64.powi(power)).collect()
        } else {
            (0..=4).map(|n| f64::from(n) * most.max(1.0) / 4.0).collect()
        };
        Self { marks, by_tens }
    }

    fn x(&self, value: f64) -> f64 {
        let (first, last) = (self.marks[0], self.marks[self.marks.len() - 1]);
        let part = if self.by_tens { (value / first).log10() / (last / first).log10() } else { value / last };
        LEFT + part.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }
}

fn draw(chart: &Chart, results: &Results, panels: &[(usize, Vec<Cell>)]) -> String {
    let value = |cell: &Cell| results.figures(*cell).map(|figures| (chart.measure)(&figures));
    let values: Vec<f64> = panels.iter().flat_map(|(_, cells)| cells).filter_map(value).collect();
    let scale = Scale::new(&values, chart.by_tens);
    let rows: usize = panels.iter().map(|(_, cells)| cells.len()).sum();
    let height = TOP + rows as f64 * ROW + panels.len() as f64 * (HEAD + FOOT);
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{SHOWN_WIDTH}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>\n\
         <text class=\"title\" x=\"12\" y=\"22\">{title}</text>\n<text x=\"12\" y=\"40\">{note}</text>\n",
        title = chart.title,
        note = chart.note,
    );
    let mut top = TOP;
    for (size, cells) in panels {
        let _ = writeln!(
            svg,
            "<text class=\"value\" x=\"12\" y=\"{}\">batch of {}</text>",
            top + 18.0,
            grouped(*size as f64, 0)
        );
        top += HEAD;
        let bottom = top + cells.len() as f64 * ROW;
        for mark in &scale.marks {
            let (x, name) = (scale.x(*mark), grouped(*mark, usize::from(!chart.by_tens)));
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{x:.1} {top}V{bottom}\"/>");
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>", bottom + 15.0);
        }
        for (index, cell) in cells.iter().enumerate() {
            row(&mut svg, chart, &scale, cell.contestant, value(cell), top + index as f64 * ROW);
        }
        top = bottom + FOOT;
    }
    svg.push_str("</svg>\n");
    svg
}

fn row(svg: &mut String, chart: &Chart, scale: &Scale, contestant: usize, value: Option<f64>, top: f64) {
    let entry = &FIELD[contestant];
    let (class, colour) = match (contestant, entry.ours) {
        (CLAIMANT, _) => ("ours", "ours"),
        (_, true) => ("", "hand"),
        (_, false) => ("", "peer"),
    };
    let (middle, text) = (top + ROW / 2.0, top + ROW / 2.0 + 4.0);
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>",
        LEFT - 8.0,
        entry.title
    );
    let Some(value) = value else {
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{text}\">not measured</text>", LEFT + 8.0);
        return;
    };
    let end = scale.x(value);
    let _ = writeln!(
        svg,
        "<path d=\"M{LEFT} {middle}H{end:.1}\" stroke=\"var(--{colour})\" stroke-width=\"{}\"/>",
        if chart.by_tens { 2 } else { 11 }
    );
    if chart.by_tens {
        // The length of a line says nothing on such a scale: its end is what is read.
        let _ = writeln!(svg, "<circle cx=\"{end:.1}\" cy=\"{middle}\" r=\"5\" fill=\"var(--{colour})\"/>");
    }
    let value = grouped(value, chart.digits);
    let _ = writeln!(svg, "<text class=\"value\" x=\"{:.1}\" y=\"{text}\">{value}</text>", end + 9.0);
}

/// A number with so many digits after its point, and a comma before each three of the others.
fn grouped(value: f64, digits: usize) -> String {
    let plain = format!("{value:.digits$}");
    let whole = plain.split('.').next().unwrap_or_default().len();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && index < whole && (whole - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_hold_what_they_show() {
        let tens = Scale::new(&[74.0, 8_589.0], true);
        assert_eq!(tens.marks, [10.0, 100.0, 1_000.0, 10_000.0]);
        assert!((tens.x(10.0) - LEFT).abs() < 1e-9 && (tens.x(10_000.0) - RIGHT).abs() < 1e-9);
        assert_eq!(Scale::new(&[0.2, 2.0], false).marks, [0.0, 0.5, 1.0, 1.5, 2.0]);
        for nothing in [&[][..], &[0.0]] {
            assert!(Scale::new(nothing, true).x(1.0).is_finite() && Scale::new(nothing, false).x(1.0).is_finite());
        }
    }

    #[test]
    fn numbers_are_grouped() {
        for (value, digits, wanted) in
            [(8_589.4, 0, "8,589"), (770.0, 0, "770"), (0.08, 2, "0.08"), (1e6, 0, "1,000,000")]
        {
            assert_eq!(grouped(value, digits), wanted);
        }
    }
}
