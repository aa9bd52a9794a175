//! Draws charts as SVG.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::Metrics;
use crate::body::{Body, Line, Operand, Widget};

/// Of one cell of the grid, in pixels.
const CELL: (f64, f64) = (52.0, 38.0);
const GAP: f64 = 8.0;
const NOTE: f64 = 34.0;

/// How much one point stands for.
const PERIOD_MS: u64 = 1_000;

/// Of a legend's letters, about.
const LETTER: f64 = 6.2;

/// Values by the number of their period.
type Series = BTreeMap<u64, f64>;

/// Returns the picture.
pub(crate) fn svg(body: &Body, metrics: &Metrics, note: &str) -> Result<String, fmt::Error> {
    let most = |edge: fn(&[f64; 4]) -> f64| body.widgets.iter().map(|widget| edge(&widget.place)).fold(0.0, f64::max);
    let (width, height) = (most(|[x, _, width, _]| x + width) * CELL.0, most(|[_, y, _, height]| y + height) * CELL.1);
    let (first, last) = metrics.span_ms();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#f2f3f3\"/>\n",
        height + NOTE
    );
    for widget in &body.widgets {
        let [x, y, w, h] = widget.place;
        let panel = Panel {
            x: x * CELL.0 + GAP,
            y: y * CELL.1 + GAP,
            width: w * CELL.0 - 2.0 * GAP,
            height: h * CELL.1 - GAP,
            periods: (last - first) / PERIOD_MS + 1,
        };
        panel.draw(&mut out, widget, &series(widget, metrics, first))?;
    }
    writeln!(
        out,
        "<text x=\"{GAP}\" y=\"{}\" fill=\"#545b64\">{}</text>\n</svg>",
        height + NOTE - 12.0,
        escaped(note)
    )?;
    Ok(out)
}

/// Returns the values of each line of a chart.
fn series(widget: &Widget, metrics: &Metrics, first: u64) -> Vec<Series> {
    let of_metric = |line: &Line| {
        let mut series = Series::new();
        for (at, value) in metrics.points(&line.metric) {
            let known = series.entry((at - first) / PERIOD_MS).or_default();
            *known = if line.is_maximum { known.max(*value) } else { *known + value };
        }
        series
    };
    let own: Vec<_> = widget.lines.iter().map(of_metric).collect();
    let (_, last) = metrics.span_ms();
    let of = |operand: &Operand| {
        let place = widget.lines.iter().position(|line| line.id == operand.id)?;
        let mut values = own[place].clone();
        if operand.filled && !values.is_empty() {
            (0..=(last - first) / PERIOD_MS).for_each(|period| {
                values.entry(period).or_default();
            });
        }
        Some(values)
    };
    let all = widget.lines.iter().zip(&own).map(|(line, own)| {
        let Some(expression) = &line.expression else { return own.clone() };
        let above = of(&expression.above).unwrap_or_default();
        let Some(below) = &expression.below else { return above };
        let below = of(below).unwrap_or_default();
        let each = above.iter().filter_map(|(period, value)| {
            let by = below.get(period).filter(|by| **by > 0.0)?;
            Some((*period, value / by))
        });
        each.collect()
    });
    all.collect()
}

/// Where a chart is.
struct Panel {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    periods: u64,
}

impl Panel {
    fn draw(&self, out: &mut String, widget: &Widget, series: &[Series]) -> fmt::Result {
        let Self { x, y, width, height, .. } = *self;
        writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"#fff\" stroke=\"#d5dbdb\"/>"
        )?;
        let title = escaped(&widget.title);
        writeln!(out, "<text x=\"{}\" y=\"{}\" font-size=\"13\" fill=\"#16191f\">{title}</text>", x + 10.0, y + 19.0)?;
        let shown: Vec<_> = widget.lines.iter().zip(series).filter(|(line, _)| line.is_visible).collect();
        let bottom = self.legend(out, &shown)?;
        let plot = Panel { x: x + 46.0, y: y + 32.0, width: width - 60.0, height: bottom - y - 54.0, ..*self };
        let tops =
            if widget.stacked { stacked(&shown) } else { shown.iter().map(|(_, series)| (*series).clone()).collect() };
        let most = tops.iter().flat_map(BTreeMap::values).copied().fold(0.0, f64::max);
        let top = round_up(most.max(widget.limit.as_ref().map_or(0.0, |(_, value)| *value)));
        plot.axes(out, top)?;
        if let Some((label, value)) = &widget.limit {
            let at = plot.at(value / top);
            let right = plot.x + plot.width;
            writeln!(out, "<path d=\"M{} {at}H{right}\" stroke=\"#d62728\" stroke-dasharray=\"4 3\"/>", plot.x)?;
            writeln!(
                out,
                "<text x=\"{right}\" y=\"{}\" text-anchor=\"end\" fill=\"#d62728\">{}</text>",
                at - 4.0,
                escaped(label)
            )?;
        }
        // Of a stack, the whole first, so that each is seen down to the one below it.
        for ((line, _), top_of) in shown.iter().zip(&tops).rev() {
            plot.line(out, line, top_of, top, widget.stacked)?;
        }
        Ok(())
    }

    /// Draws the names of lines at the bottom, and returns where they begin.
    fn legend(&self, out: &mut String, shown: &[(&Line, &Series)]) -> Result<f64, fmt::Error> {
        let name = |(line, series): &(&Line, &Series)| {
            if series.is_empty() { format!("{} (no data here)", line.label) } else { line.label.clone() }
        };
        let (mut rows, mut at) = (vec![Vec::new()], self.x + 12.0);
        for line in shown {
            let name = name(line);
            let width = name.chars().count() as f64 * LETTER + 26.0;
            if at + width > self.x + self.width && at > self.x + 12.0 {
                rows.push(Vec::new());
                at = self.x + 12.0;
            }
            if let Some(row) = rows.last_mut() {
                row.push((at, name, &line.0.color));
            }
            at += width;
        }
        let top = self.y + self.height - rows.len() as f64 * 15.0 - 4.0;
        for (number, row) in rows.iter().enumerate() {
            let y = top + number as f64 * 15.0 + 10.0;
            for (x, name, color) in row {
                writeln!(out, "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{color}\"/>", y - 9.0)?;
                writeln!(out, "<text x=\"{}\" y=\"{y}\" fill=\"#545b64\">{}</text>", x + 14.0, escaped(name))?;
            }
        }
        Ok(top)
    }

    fn axes(&self, out: &mut String, top: f64) -> fmt::Result {
        for part in [0.0, 0.5, 1.0] {
            let (at, left) = (self.at(part), self.x);
            writeln!(out, "<path d=\"M{left} {at}h{}\" stroke=\"#eaeded\"/>", self.width)?;
            let value = number(top * part);
            writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#545b64\">{value}</text>",
                left - 5.0,
                at + 4.0
            )?;
        }
        for (anchor, part) in [("start", 0.0), ("middle", 0.5), ("end", 1.0)] {
            let seconds = number(part * self.periods as f64 * PERIOD_MS as f64 / 1_000.0);
            let (x, y) = (self.x + part * self.width, self.y + self.height + 14.0);
            writeln!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"#545b64\">{seconds} s</text>")?;
        }
        Ok(())
    }

    fn line(&self, out: &mut String, line: &Line, values: &Series, top: f64, filled: bool) -> fmt::Result {
        if values.is_empty() {
            return Ok(());
        }
        let step = self.width / self.periods.max(2) as f64;
        let point = |(period, value): (&u64, &f64)| {
            format!("{:.1} {:.1}", self.x + (*period as f64 + 0.5) * step, self.at(value / top))
        };
        // What has no value is a gap, and what stands between two gaps is a dot.
        let mut path = String::new();
        for (period, value) in values {
            let is_next = *period > 0 && values.contains_key(&(period - 1));
            path += if is_next || (filled && !path.is_empty()) { "L" } else { "M" };
            path += &point((period, value));
            if !is_next && !values.contains_key(&(period + 1)) {
                path += "h0";
            }
        }
        if let (true, Some((first, _)), Some((last, _))) = (filled, values.first_key_value(), values.last_key_value()) {
            let [first, last] = [first, last].map(|period| self.x + (*period as f64 + 0.5) * step);
            let ground = self.at(0.0);
            writeln!(
                out,
                "<path d=\"M{first:.1} {ground:.1}L{}L{last:.1} {ground:.1}Z\" fill=\"{}\"/>",
                path.trim_start_matches('M'),
                line.color
            )?;
        } else {
            writeln!(
                out,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-linecap=\"round\"/>",
                line.color
            )?;
        }
        Ok(())
    }

    /// Returns the height of a part of the whole.
    fn at(&self, part: f64) -> f64 {
        self.y + self.height * (1.0 - part)
    }
}

/// Returns each line on top of those before it.
fn stacked(shown: &[(&Line, &Series)]) -> Vec<Series> {
    let mut sum = Series::new();
    let tops = shown.iter().map(|(_, series)| {
        series.iter().for_each(|(period, value)| *sum.entry(*period).or_default() += value);
        sum.clone()
    });
    tops.collect()
}

/// Returns the next number that is 1, 2, 4, 5 or 10 times a power of ten, and 1 at least.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1.0).log10().floor());
    [1.0, 2.0, 4.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|top| *top >= value).unwrap_or(power * 10.0)
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
