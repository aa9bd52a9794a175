//! Tables that fit the terminal, and text that cannot harm it.

use std::io::{self, IsTerminal as _};

use claimant_core::{Clock as _, SystemClock, Timestamp};
use claimant_operate::keys::span;

/// Between two columns.
const GAP: &str = "  ";
/// A column that is cut keeps this many characters, where it has them.
const CUT_TO_MIN: usize = 10;
const ELLIPSIS: char = '…';

/// Returns how long ago this was.
pub(crate) fn age(time: Timestamp) -> String {
    span(SystemClock.now().since(time).as_secs())
}

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Never cut, and set to the right.
    Number,
    /// Never cut.
    Whole,
    /// Cut in the middle where there is no room: the ends of keys differ.
    Middle,
    /// Cut at its end where there is no room.
    End,
}

/// A table of text.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Fit)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with these columns.
    pub(crate) fn new(columns: &[(&'static str, Fit)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, one text for each column. What could harm a terminal is escaped.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.iter().map(|cell| harmless(cell)).collect());
    }

    /// Returns the lines, header first, as wide as the terminal at most; as wide as they are where there is none.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines_within(terminal_width())
    }

    fn lines_within(&self, width: Option<usize>) -> Vec<String> {
        let header: Vec<_> = self.columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        let rows: Vec<_> = std::iter::once(&header).chain(&self.rows).collect();
        let widths = self.widths(&rows, width);
        rows.into_iter().map(|row| self.line(row, &widths)).collect()
    }

    /// The width of each column: the widest that may be cut give way first.
    fn widths(&self, rows: &[&Vec<String>], width: Option<usize>) -> Vec<usize> {
        let longest = |column: usize| {
            let lengths = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            lengths.max().unwrap_or(0)
        };
        let mut widths: Vec<_> = (0..self.columns.len()).map(longest).collect();
        let Some(width) = width else { return widths };
        let gaps = GAP.len() * self.columns.len().saturating_sub(1);
        loop {
            let total = widths.iter().sum::<usize>() + gaps;
            if total <= width {
                return widths;
            }
            let can_be_cut = |column: &usize| {
                matches!(self.columns[*column].1, Fit::Middle | Fit::End) && widths[*column] > CUT_TO_MIN
            };
            let Some(widest) = (0..widths.len()).filter(can_be_cut).max_by_key(|column| widths[*column]) else {
                return widths;
            };
            widths[widest] = widths[widest].saturating_sub(total - width).max(CUT_TO_MIN).max(widths[widest] * 9 / 10);
        }
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cell = |column: usize| {
            let ((_, fit), width) = (self.columns[column], widths[column]);
            let text = row.get(column).map_or("", String::as_str);
            match fit {
                Fit::Number => format!("{text:>width$}"),
                Fit::Whole => format!("{text:<width$}"),
                Fit::Middle => format!("{:<width$}", cut(text, width, width / 2)),
                Fit::End => format!("{:<width$}", cut(text, width, width.saturating_sub(1))),
            }
        };
        let cells: Vec<_> = (0..self.columns.len()).map(cell).collect();
        cells.join(GAP).trim_end().to_owned()
    }
}

/// The text in `width` characters, of which `head` are its first.
fn cut(text: &str, width: usize, head: usize) -> String {
    let length = text.chars().count();
    if length <= width || width == 0 {
        return text.to_owned();
    }
    let tail = width - 1 - head.min(width - 1);
    let first = text.chars().take(head.min(width - 1));
    first.chain([ELLIPSIS]).chain(text.chars().skip(length - tail)).collect()
}

/// Returns the text with everything escaped that a terminal does not print: control characters, and those that change the
/// direction of what follows.
pub(crate) fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let harms = c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if harms { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// The columns of the terminal on standard output, if it is one.
pub(crate) fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::new(&[("KEY", Fit::Middle), ("STATUS", Fit::Whole), ("AGE", Fit::Number), ("ERROR", Fit::End)]);
        table.row([
            "order-confirmation#ord-1001".into(),
            "parked".into(),
            "3 min".into(),
            "the mailbox refuses".into(),
        ]);
        table.row(["a#b".into(), "in progress".into(), "12 h".into(), String::new()]);
        table
    }

    #[test]
    fn a_table_is_as_wide_as_it_must_be() {
        let lines = [
            "KEY                          STATUS         AGE  ERROR",
            "order-confirmation#ord-1001  parked       3 min  the mailbox refuses",
            "a#b                          in progress   12 h",
        ];
        assert_eq!(table().lines_within(None), lines);
        assert_eq!(table().lines_within(Some(200)), lines);
    }

    #[test]
    fn a_table_fits_the_terminal() {
        let lines = [
            "KEY               STATUS         AGE  ERROR",
            "order-co…rd-1001  parked       3 min  the mailbox re…",
            "a#b               in progress   12 h",
        ];
        assert_eq!(table().lines_within(Some(55))[2], lines[2], "{:#?}", table().lines_within(Some(55)));
        for width in 43..80 {
            for line in table().lines_within(Some(width)) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
        // What may not be cut stays whole, however narrow the terminal.
        assert!(table().lines_within(Some(10)).iter().any(|line| line.contains("in progress")));
    }

    #[test]
    fn text_does_no_harm() {
        assert_eq!(harmless("a\x1b[31mb\r\n\u{202e}c"), "a\\u{1b}[31mb\\r\\n\\u{202e}c");
        assert_eq!(harmless("Grüße, 東京"), "Grüße, 東京");
    }
}
