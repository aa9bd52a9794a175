//! Tables that fit the terminal.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;

use claimant_core::{Clock as _, SystemClock, Timestamp};
use claimant_operate::keys;
use claimant_operate::text::harmless;
use unicode_width::UnicodeWidthChar as _;

/// Between two columns.
const GAP: &str = "  ";
/// A column that is cut keeps this many characters, where it has them.
const CUT_TO_MIN: usize = 10;
const ELLIPSIS: char = '…';

/// Returns how long ago this was, for a column, or how far a clock was ahead of this machine's when it was written.
pub(crate) fn age(time: Timestamp) -> String {
    keys::age(time, SystemClock.now())
}

/// Returns the same in a sentence.
pub(crate) fn ago(time: Timestamp) -> String {
    keys::when(time, SystemClock.now())
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

    /// Returns the lines, header first, as wide as the terminal at most; as wide as they are where there is none. Where a row has no room
    /// in one line, its first column has one of its own.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines_within(terminal_width(io::stdout()))
    }

    /// Returns the same, each row in one line, however narrow the terminal.
    pub(crate) fn single_lines(&self) -> Vec<String> {
        self.single_lines_within(terminal_width(io::stdout()))
    }

    fn lines_within(&self, width: Option<usize>) -> Vec<String> {
        let lines = self.single_lines_within(width);
        let has_room = |width: usize| lines.iter().all(|line| columns(line) <= width);
        match width {
            Some(width) if self.columns.len() > 2 && !has_room(width) => self.in_two(width),
            _ => lines,
        }
    }

    /// The rows with the first column in lines of its own, the others below it.
    fn in_two(&self, width: usize) -> Vec<String> {
        let rest = |row: &Vec<String>| row.iter().skip(1).cloned().collect();
        let others = Self { columns: self.columns[1..].to_vec(), rows: self.rows.iter().map(rest).collect() };
        let title = self.columns[0].0;
        let firsts = std::iter::once(title).chain(self.rows.iter().filter_map(|row| row.first()).map(String::as_str));
        let lines = firsts.zip(others.single_lines_within(Some(width.saturating_sub(GAP.len()))));
        lines.flat_map(|(first, others)| [first.to_owned(), format!("{GAP}{others}")]).collect()
    }

    fn single_lines_within(&self, width: Option<usize>) -> Vec<String> {
        let header: Vec<_> = self.columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        let rows: Vec<_> = std::iter::once(&header).chain(&self.rows).collect();
        let widths = self.widths(&rows, width);
        rows.into_iter().map(|row| self.line(row, &widths)).collect()
    }

    /// The width of each column: the widest that may be cut give way first.
    fn widths(&self, rows: &[&Vec<String>], width: Option<usize>) -> Vec<usize> {
        let longest = |column: usize| {
            let lengths = rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell));
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
            let text = match fit {
                Fit::Number | Fit::Whole => text.to_owned(),
                Fit::Middle => cut(text, width, width / 2),
                Fit::End => cut(text, width, width.saturating_sub(1)),
            };
            let room = " ".repeat(width.saturating_sub(columns(&text)));
            if fit == Fit::Number { room + &text } else { text + &room }
        };
        let cells: Vec<_> = (0..self.columns.len()).map(cell).collect();
        cells.join(GAP).trim_end().to_owned()
    }
}

/// The text in `width` columns, of which `head` are its first.
fn cut(text: &str, width: usize, head: usize) -> String {
    if columns(text) <= width || width == 0 {
        return text.to_owned();
    }
    let head = head.min(width - 1);
    let first = fitting(text.chars(), head);
    let last = fitting(text.chars().rev(), width - 1 - head);
    first.chain([ELLIPSIS]).chain(last.collect::<Vec<_>>().into_iter().rev()).collect()
}

/// The first of these that fit into so many columns.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> impl Iterator<Item = char> {
    let taken = move |used: &mut usize, c: char| {
        *used += columns_of(c);
        (*used <= room).then_some(c)
    };
    chars.scan(0, taken)
}

/// Returns how many columns of a terminal a text takes.
fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// As most terminals draw it: marks on the character before take no room, characters of East Asia and emoji twice that of others.
fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The columns of the terminal that is written to, if it is one.
pub(crate) fn terminal_width(written_to: impl AsFd) -> Option<usize> {
    if !written_to.as_fd().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(written_to).ok()?;
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
    fn what_is_ahead_of_this_clock_was_not_so_long_ago() {
        let (now, second) = (SystemClock.now(), std::time::Duration::from_secs(1));
        let of = |time: Timestamp| (age(time), ago(time));
        assert_eq!(of(now.minus(second * 600)), ("10 min".into(), "10 min ago".into()));
        let (age, ago) = of(now.plus(second * 3_600));
        assert!(age.ends_with(" ahead") && ago.ends_with(" ahead of this machine's clock"), "{age} {ago}");
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
    fn a_row_that_has_no_room_in_a_line_takes_two() {
        let mut letters = Table::new(&[("ID", Fit::Whole), ("GROUP", Fit::Whole), ("ERROR", Fit::End)]);
        letters.row([
            "08c998ba-d74c-4b7e-900a-14299fac2b5c".into(),
            "36c49163".into(),
            "the mailbox refuses it".into(),
        ]);
        let lines =
            ["ID", "  GROUP     ERROR", "08c998ba-d74c-4b7e-900a-14299fac2b5c", "  36c49163  the mailbox refuses it"];
        assert_eq!(letters.lines_within(Some(50)), lines);
        assert_eq!(letters.lines_within(Some(70)).len(), 2);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::new(&[("KEY", Fit::Middle), ("STATE", Fit::Whole)]);
        table.row(["東京東京東京東京".into(), "parked".into()]);
        table.row(["e\u{301}".into(), "stuck".into()]);
        table.row(["\u{1f600}\u{1f600}".into(), "failed".into()]);
        let lines = [
            "KEY               STATE",
            "東京東京東京東京  parked",
            "e\u{301}                 stuck",
            "\u{1f600}\u{1f600}              failed",
        ];
        assert_eq!(table.lines_within(None), lines);
        // A wide character that does not fit leaves a column free.
        assert_eq!(table.lines_within(Some(18))[1], "東京…東京   parked");
        for width in 18..30 {
            for line in table.lines_within(Some(width)) {
                assert!(columns(&line) <= width, "{width}: {line}");
            }
        }
    }
}
