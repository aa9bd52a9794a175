//! What a storm came to, for the terminal.

use std::fmt;

use crate::storm::{Outcome, Row};

impl Outcome {
    /// Whether nothing is wrong.
    pub(crate) fn is_sound(&self) -> bool {
        let faulty = self.rows.iter().any(|row| !row.verdict.faults.is_empty());
        !faulty && self.drained.is_some() && self.found.leaks == 0 && self.found.lines > 0 && self.search_sees
    }

    fn kills(&self) -> u64 {
        self.strikes.kills.values().sum()
    }

    fn stops(&self) -> u64 {
        self.strikes.stops.values().sum()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<20}{:>6}{:>7}{:>12}{:>6}{:>8}{:>9}{:>8}{:>7}{:>7}{:>8}{:>10}",
            "",
            "work",
            "sent",
            "deliveries",
            "runs",
            "effects",
            "repeated",
            "letters",
            "kills",
            "stops",
            "crashes",
            "timeouts"
        )?;
        for row in &self.rows {
            self.row(f, row)?;
        }
        let line = &self.line;
        writeln!(f, "\n{} kills, {} stops", self.kills(), self.stops())?;
        writeln!(
            f,
            "line to DynamoDB: {} pieces passed, {} of them late; {} requests lost, {} answers lost",
            line.passed, line.delayed, line.requests_lost, line.answers_lost
        )?;
        let redriven: u64 = self.redriven.values().sum();
        writeln!(f, "{redriven} messages that the queues gave up on were moved back by the operator")?;
        match self.drained {
            Some(time) => writeln!(f, "the queues drained {:.1} s after the storm", time.as_secs_f64())?,
            None => writeln!(f, "FAULT: the queues did not drain in time")?,
        }
        writeln!(f, "{} lines printed, {} of them with a planted secret", self.found.lines, self.found.leaks)?;
        for line in &self.found.shown {
            writeln!(f, "FAULT: a secret was printed: {line}")?;
        }
        if !self.search_sees {
            writeln!(f, "FAULT: the search for secrets does not see the one that it was shown")?;
        }
        for row in &self.rows {
            for fault in &row.verdict.faults {
                writeln!(f, "FAULT: {}: {fault}", row.function)?;
            }
        }
        if self.is_sound() {
            writeln!(f, "Nothing was lost, doubled or unexpected; mails may be repeated, and never overlapped.")?;
        }
        Ok(())
    }
}

impl Outcome {
    fn row(&self, f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
        let of = |strikes: &std::collections::BTreeMap<&str, u64>| strikes.get(row.function).copied().unwrap_or(0);
        let Row { function, verdict, traffic, counters } = row;
        writeln!(
            f,
            "{function:<20}{:>6}{:>7}{:>12}{:>6}{:>8}{:>9}{:>8}{:>7}{:>7}{:>8}{:>10}",
            verdict.work,
            traffic.sent,
            traffic.deliveries,
            verdict.runs,
            verdict.effects,
            verdict.repeated,
            traffic.dead_letters.len(),
            of(&self.strikes.kills),
            of(&self.strikes.stops),
            counters.crashes,
            counters.timeouts,
        )
    }
}
