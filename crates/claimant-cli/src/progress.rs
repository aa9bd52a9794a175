//! The progress of long work on standard error.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use claimant_local::workload::Progress;

use crate::operate::table::terminal_width;
use crate::output::{is_note_read, note_as_it_is};

/// Between two looks on a terminal.
const REFRESH: Duration = Duration::from_millis(100);
/// Between two lines elsewhere, where something has changed.
const LINE: Duration = Duration::from_secs(1);
/// Between two lines elsewhere, where nothing has.
const SAME_LINE: Duration = Duration::from_secs(5);

/// Columns of the time before the figures.
const TIME_WIDTH: usize = 9;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// One line, written over again and again.
    Refreshed,
    /// A line now and then.
    Lines,
    Hidden,
}

/// Returns whether standard error is a terminal that can write over a line.
fn can_be_refreshed() -> bool {
    io::stderr().is_terminal() && writes_over(std::env::var_os("TERM").as_deref())
}

/// Returns whether a terminal of this kind can: Emacs' shell and the consoles of some CI systems cannot.
fn writes_over(term: Option<&OsStr>) -> bool {
    term.is_none_or(|term| term != "dumb")
}

/// Shows progress, not too often.
pub(crate) struct Display {
    style: Style,
    shown_at: Option<Duration>,
    shown: String,
}

impl Display {
    /// `alone` means that nothing else writes to the terminal meanwhile.
    pub(crate) fn new(quiet: bool, alone: bool) -> Self {
        let style = match (quiet, alone && can_be_refreshed()) {
            (true, _) => Style::Hidden,
            (false, true) => Style::Refreshed,
            (false, false) => Style::Lines,
        };
        Self { style, shown_at: None, shown: String::new() }
    }

    /// On a terminal that can write over a line only: for work that is quick most of the time.
    pub(crate) fn when_long() -> Self {
        let style = if can_be_refreshed() { Style::Refreshed } else { Style::Hidden };
        Self { style, shown_at: None, shown: String::new() }
    }

    /// Shows the progress of a workload.
    pub(crate) fn show(&mut self, progress: &Progress) {
        self.show_text(progress.elapsed, progress.to_string());
    }

    /// Shows how far something is after this time.
    pub(crate) fn show_text(&mut self, elapsed: Duration, figures: String) {
        let (start, end, every) = match self.style {
            Style::Refreshed => ("\r", "\x1b[K", REFRESH),
            Style::Lines if figures == self.shown => ("", "\n", SAME_LINE),
            Style::Lines => ("", "\n", LINE),
            Style::Hidden => return,
        };
        if self.shown_at.is_some_and(|at| elapsed < at + every) || !is_note_read() {
            return;
        }
        let elapsed_s = elapsed.as_secs_f64();
        let room = self.style == Style::Refreshed;
        // A line that wraps could not be written over.
        let room =
            terminal_width(io::stderr()).filter(|_| room).map_or(usize::MAX, |width| width.saturating_sub(TIME_WIDTH));
        let shown: String = figures.chars().take(room).collect();
        note_as_it_is(&format!("{start}{elapsed_s:5.1} s  {shown}{end}"));
        self.shown_at = Some(elapsed);
        self.shown = figures;
    }

    /// Ends the refreshed line, if there is one.
    pub(crate) fn end(&mut self) {
        if self.shown_at.take().is_some() && self.style == Style::Refreshed {
            note_as_it_is("\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_gets_lines() {
        for (term, is_refreshed) in [(None, true), (Some("xterm-256color"), true), (Some("dumb"), false)] {
            assert_eq!(writes_over(term.map(OsStr::new)), is_refreshed, "{term:?}");
        }
    }
}
