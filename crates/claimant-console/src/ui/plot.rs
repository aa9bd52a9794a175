//! Plots of values over time, as SVG in the page.

use std::fmt::Write as _;

use maud::{Markup, html};

/// The height of a plot in its own units.
const HEIGHT: u64 = 100;

/// Values over time, and how they are drawn.
pub(crate) struct Series {
    /// The class that has its colour.
    pub(crate) class: &'static str,
    /// The values, the oldest first.
    pub(crate) values: Vec<u64>,
}

/// Draws areas on top of each other, the first at the bottom, the newest values at the right, over a width of so many values. The label
/// says in words what is seen.
pub(crate) fn areas(label: &str, width: usize, series: &[Series]) -> Markup {
    let length = series.iter().map(|one| one.values.len()).max().unwrap_or_default();
    let mut below = vec![0; length];
    let mut tops = Vec::new();
    for one in series {
        let top: Vec<u64> = below.iter().zip(&one.values).map(|(below, value)| below + value).collect();
        tops.push((one.class, std::mem::replace(&mut below, top.clone()), top));
    }
    let most = below.iter().copied().max().unwrap_or_default().max(1);
    html! {
        svg .plot viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
            @for (class, bottom, top) in &tops { path class=(class) d=(area(width, bottom, top, most)) {} }
        }
    }
}

/// Draws the parts of a whole, side by side, for the eye alone: their figures are beside it.
pub(crate) fn share(parts: impl Iterator<Item = (&'static str, u64)> + Clone) -> Markup {
    let all = parts.clone().map(|(_, value)| value).sum::<u64>().max(1);
    let placed = parts.scan(0, |from, (class, value)| {
        let x = *from * 1_000 / all;
        *from += value;
        Some((class, x, value * 1_000 / all))
    });
    html! {
        svg .share viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
            @for (class, x, width) in placed { rect class=(class) x=(x) y="0" width=(width) height="10" {} }
        }
    }
}

/// The outline of what is between two lines.
fn area(width: usize, bottom: &[u64], top: &[u64], most: u64) -> String {
    let from = width.saturating_sub(top.len());
    // In tenths, so that small differences are seen.
    let y = |value: u64| {
        let tenths = HEIGHT * 10 - value * HEIGHT * 10 / most;
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    let mut path = String::new();
    let points = top.iter().enumerate().chain(bottom.iter().enumerate().rev());
    for (at, (index, value)) in points.enumerate() {
        // A String takes everything that is written to it.
        let _ = write!(path, "{}{} {}", if at == 0 { 'M' } else { 'L' }, from + index, y(*value));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_stand_on_each_other_with_the_newest_at_the_right() {
        assert_eq!(area(4, &[0, 0], &[1, 4], 4), "M2 75.0L3 0.0L3 100.0L2 100.0");
        let series = [Series { class: "a", values: vec![1, 1] }, Series { class: "b", values: vec![0, 3] }];
        let drawn = areas("two", 2, &series).into_string();
        assert!(drawn.contains(r#"class="b" d="M0 75.0L1 0.0L1 75.0L0 75.0""#), "{drawn}");
        assert!(areas("none", 2, &[]).into_string().contains("<svg"));
    }

    #[test]
    fn shares_are_of_the_whole() {
        let drawn = share([("a", 1), ("b", 3)].into_iter()).into_string();
        assert!(drawn.contains(r#"class="b" x="250" y="0" width="750""#), "{drawn}");
        assert!(share([("a", 0)].into_iter()).into_string().contains(r#"width="0""#));
    }
}
