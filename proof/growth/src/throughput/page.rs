//! What was measured, for the book.

use std::time::Duration;

use claimant_outage::{markdown, number};

use super::way::{FUNCTION_PART, PARTS, Sample};
use super::{Outcome, Settings, Tried};

/// Rows of the table of minutes.
const ROWS: usize = 10;
/// Memory is flat where it is not more than so many times what it was.
const MEMORY_MOST: f64 = 1.1;

/// Returns the part of the page.
#[must_use]
pub fn page(settings: &Settings, outcome: &Outcome) -> String {
    let Some(whole) = Span::of(&outcome.samples) else { return "Nothing was measured.".to_owned() };
    let tried = outcome.tried.iter().map(|(rate, came)| {
        let stayed_empty = match came {
            Tried::Held => "yes",
            Tried::Filled => "no",
            Tried::NotSent => "not sent",
        };
        format!("{} {stayed_empty}", number(*rate))
    });
    let tried = tried.collect::<Vec<_>>().join(", ");
    let (first, last) = (&outcome.samples[0], whole.last);
    let cores: f64 = whole.cores().iter().sum();
    let mut lines = vec![
        format!("- {} invocations at once at most, held for {} s", settings.concurrency, whole.seconds.round()),
        format!("- Rates tried, in messages a second, and whether the queue stayed empty: {tried}"),
        format!("- Held: {} messages a second at first, {} at the end", number(first.rate), number(last.rate)),
        format!(
            "- Done: {} messages a second, with {cores:.2} cores in use: {} messages a second per core",
            number(whole.per_second() as u64),
            number((whole.per_second() / cores) as u64)
        ),
        format!(
            "- Waiting in the queue: {} messages at most, {} in the median second",
            number(outcome.samples.iter().map(|sample| sample.visible).max().unwrap_or(0) as u64),
            number(median(outcome.samples.iter().map(|sample| sample.visible as u64)))
        ),
        format!(
            "- Sent in all, the search included: {} messages; received {} times, deleted {}, in the dead-letter queue {}",
            number(outcome.sent),
            number(outcome.queue.received),
            number(outcome.queue.deleted),
            outcome.dead
        ),
        format!(
            "- Mails: {}. In the lock table: {} completed records, {} runs of handlers, {} other records",
            number(outcome.mails),
            number(outcome.found.completed),
            number(outcome.found.attempts),
            outcome.found.strange
        ),
    ];
    lines.extend(outcome.faults().iter().map(|fault| format!("- **Wrong**: {fault}")));
    if outcome.faults().is_empty() {
        lines.push("- Lost: 0. Done twice: 0".to_owned());
    }
    [lines.join("\n"), minutes(&outcome.samples), parts(&whole), memory(outcome, &whole)].join("\n\n")
}

/// From one sample to a later one.
struct Span<'a> {
    first: &'a Sample,
    last: &'a Sample,
    seconds: f64,
}

impl<'a> Span<'a> {
    fn of(samples: &'a [Sample]) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        let seconds = (last.at - first.at).as_secs_f64();
        (seconds > 0.0).then_some(Self { first, last, seconds })
    }

    fn messages(&self) -> u64 {
        self.last.queue.deleted - self.first.queue.deleted
    }

    fn per_second(&self) -> f64 {
        self.messages() as f64 / self.seconds
    }

    fn cpu(&self) -> [Duration; PARTS.len()] {
        std::array::from_fn(|part| self.last.cpu[part].saturating_sub(self.first.cpu[part]))
    }

    fn cores(&self) -> [f64; PARTS.len()] {
        self.cpu().map(|cpu| cpu.as_secs_f64() / self.seconds)
    }
}

fn minutes(samples: &[Sample]) -> String {
    let by = samples.len().div_ceil(ROWS).max(2);
    // The last sample of one row is the first of the next.
    let rows = (0..samples.len() - 1).step_by(by).filter_map(|from| {
        let part = &samples[from..(from + by + 1).min(samples.len())];
        let span = Span::of(part)?;
        let waiting = part.iter().map(|sample| sample.visible).max().unwrap_or(0);
        let mut cells = vec![number(span.per_second() as u64), number(waiting as u64)];
        cells.extend(span.cores().map(|cores| format!("{cores:.2}")));
        cells.extend(span.last.memory_kb.map(mib));
        Some((format!("{:.0} s", span.last.at.as_secs_f64()), cells))
    });
    let names = ["done, a second", "waiting, at most"].map(str::to_owned).into_iter();
    let of = |what: &str| PARTS.map(|part| format!("{part}, {what}"));
    markdown("until", names.chain(of("cores")).chain(of("MiB")), rows)
}

fn parts(whole: &Span<'_>) -> String {
    let all: Duration = whole.cpu().iter().sum();
    let rows = PARTS.into_iter().zip(whole.cpu()).map(|(part, cpu)| {
        let each = cpu.as_secs_f64() * 1e6 / whole.messages().max(1) as f64;
        let share = cpu.as_secs_f64() / all.as_secs_f64() * 100.0;
        (part.to_owned(), [format!("{each:.0}"), format!("{share:.0} %")])
    });
    markdown("part", ["processor time of a message, µs", "share"], rows)
}

/// What became of memory from the first tenth of the time to its end.
fn memory(outcome: &Outcome, whole: &Span<'_>) -> String {
    let settled = &outcome.samples[outcome.samples.len() / ROWS];
    let messages = (whole.last.queue.deleted - settled.queue.deleted).max(1);
    let rows = PARTS.into_iter().enumerate().map(|(part, name)| {
        let (before, after) = (settled.memory_kb[part], whole.last.memory_kb[part]);
        let ratio = after as f64 / before.max(1) as f64;
        let each = (after as f64 - before as f64) * 1024.0 / messages as f64;
        let verdict =
            if ratio <= MEMORY_MOST { "flat".to_owned() } else { format!("grows: {each:.0} bytes a message") };
        (name.to_owned(), [mib(before), mib(after), format!("{ratio:.2} ×"), verdict])
    });
    let function = format!(
        "The function has at most {} MiB, in all its processes.",
        mib(outcome.samples.iter().map(|sample| sample.memory_kb[FUNCTION_PART]).max().unwrap_or(0))
    );
    let table = markdown("part", ["after a tenth, MiB", "at the end, MiB", "ratio", "verdict"], rows);
    format!("{table}\n\n{function} Up to {MEMORY_MOST} × is called flat.")
}

fn mib(kb: u64) -> String {
    format!("{:.1}", kb as f64 / 1024.0)
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
