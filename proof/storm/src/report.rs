//! What a storm came to, for the terminal.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::storm::{Outcome, Row};

/// In storms of at least this length, each function has been killed and stopped; in shorter ones, some has.
const EACH_IN: Duration = Duration::from_secs(60);

impl Outcome {
    /// Whether nothing is wrong, and it was a storm.
    pub(crate) fn is_sound(&self) -> bool {
        let faulty = self.rows.iter().any(|row| !row.verdict.faults.is_empty());
        let drained = self.drained.is_some();
        let quiet = self.found.leaks == 0 && self.found.lines > 0 && self.search_sees;
        !faulty && drained && quiet && self.calm().is_empty()
    }

    fn kills(&self) -> u64 {
        self.strikes.kills.values().sum()
    }

    fn stops(&self) -> u64 {
        self.strikes.stops.values().sum()
    }

    /// What did not happen, though it is what a storm is: a calm run shows nothing.
    fn calm(&self) -> Vec<String> {
        let mut calm = Vec::new();
        let line = &self.line;
        for (times, what) in [
            (self.kills(), "no process was killed"),
            (self.stops(), "no process was stopped"),
            (line.requests_lost, "no request to DynamoDB was lost"),
            (line.answers_lost, "no answer of DynamoDB was lost"),
        ] {
            calm.extend((times == 0).then(|| what.to_owned()));
        }
        if self.storm >= EACH_IN {
            for (strikes, what) in [(&self.strikes.kills, "killed"), (&self.strikes.stops, "stopped")] {
                let spared = self.rows.iter().filter(|row| of(strikes, row.function) == 0);
                calm.extend(spared.map(|row| format!("{}: no process of it was {what}", row.function)));
            }
        }
        calm
    }
}

fn of(strikes: &BTreeMap<&'static str, u64>, function: &str) -> u64 {
    strikes.get(function).copied().unwrap_or(0)
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
        for what in self.calm() {
            writeln!(f, "FAULT: {what}: this was no storm")?;
        }
        if self.is_sound() {
            writeln!(f, "Nothing was lost, doubled or unexpected; mails may be repeated, and never overlapped.")?;
        }
        Ok(())
    }
}

impl Outcome {
    fn row(&self, f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
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
            of(&self.strikes.kills, function),
            of(&self.strikes.stops, function),
            counters.crashes,
            counters.timeouts,
        )
    }
}

#[cfg(test)]
mod tests {
    use claimant_local::lambda::FunctionCounters;

    use super::*;
    use crate::check::{Traffic, Verdict};
    use crate::killer::Strikes;
    use crate::line::LineCounts;
    use crate::transcript::Found;

    const FUNCTIONS: [&str; 2] = ["payment", "loyalty"];

    type Change = fn(&mut Outcome);

    fn storm(seconds: u64) -> Outcome {
        let verdict = Verdict { work: 1, runs: 1, effects: 1, repeated: 0, letters_repeated: 0, faults: Vec::new() };
        let row = |function| {
            let (traffic, counters) = (Traffic::default(), FunctionCounters::default());
            Row { function, verdict: verdict.clone(), traffic, counters }
        };
        let each = || FUNCTIONS.map(|function| (function, 3)).into();
        Outcome {
            storm: Duration::from_secs(seconds),
            rows: FUNCTIONS.map(row).into(),
            strikes: Strikes { kills: each(), stops: each() },
            line: LineCounts { passed: 90, delayed: 5, requests_lost: 4, answers_lost: 5 },
            redriven: BTreeMap::new(),
            drained: Some(Duration::ZERO),
            found: Found { lines: 7, ..Found::default() },
            search_sees: true,
        }
    }

    #[test]
    fn a_calm_run_is_not_sound() {
        assert!(storm(15).is_sound() && storm(60).is_sound());
        let table: [(u64, Change, &str); 6] = [
            (15, |storm| storm.strikes.kills.clear(), "no process was killed"),
            (15, |storm| storm.strikes.stops.clear(), "no process was stopped"),
            (15, |storm| storm.line.requests_lost = 0, "no request to DynamoDB was lost"),
            (15, |storm| storm.line.answers_lost = 0, "no answer of DynamoDB was lost"),
            (60, |storm| _ = storm.strikes.kills.remove("loyalty"), "loyalty: no process of it was killed"),
            (60, |storm| _ = storm.strikes.stops.remove("payment"), "payment: no process of it was stopped"),
        ];
        for (seconds, change, expected) in table {
            let mut calm = storm(seconds);
            change(&mut calm);
            let shown = calm.to_string();
            assert!(!calm.is_sound() && shown.contains(&format!("FAULT: {expected}")), "{expected}: {shown}");
            assert!(!shown.contains("Nothing was lost"), "{shown}");
        }
        let mut short = storm(15);
        short.strikes.kills.remove("loyalty");
        assert!(short.is_sound(), "a short storm need not hit each function");
    }
}
