//! How a run ended, as a table for people.

use std::fmt;
use std::time::Duration;

use super::summary::{Figures, Summary};

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Report {
    /// One for each function that there is a sample for and that runs.
    pub summaries: Vec<Summary>,
    /// What is wrong with the run as a whole.
    pub faults: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
    /// When the first message was done, from the first one sent, to the nearest look.
    pub first_done: Option<Duration>,
}

impl Report {
    /// Whether anything went wrong.
    pub fn has_faults(&self) -> bool {
        !self.faults.is_empty() || self.summaries.iter().any(|summary| !summary.faults.is_empty())
    }
}

impl fmt::Display for Report {
    /// The figures, a line for each function; without the faults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEADS: [&str; 8] = ["work", "sent", "runs", "duplicates", "retries", "dead-lettered", "parked", "lost"];
        let names = self.summaries.iter().map(|summary| summary.function.len()).max().unwrap_or_default();
        let effects: Vec<_> =
            self.summaries.iter().map(|s| format!("{} {}", s.figures.effects, s.effects_are)).collect();
        let wide = effects.iter().map(String::len).chain(["effects".len()]).max().unwrap_or_default();
        let [work, sent, runs, rest @ ..] = HEADS;
        write!(f, "  {:names$}  {work:>5}  {sent:>5}  {runs:>5}  {:>wide$}", "", "effects")?;
        rest.iter().try_for_each(|head| write!(f, "  {head}"))?;
        for (summary, effects) in self.summaries.iter().zip(effects) {
            let Summary { function, figures, .. } = summary;
            let Figures { work, sent, runs, duplicates, retries, dead_lettered, parked, lost, .. } = figures;
            write!(f, "\n  {function:names$}  {work:>5}  {sent:>5}  {runs:>5}  {effects:>wide$}")?;
            let figures = [
                duplicates.to_string(),
                retries.to_string(),
                dead_lettered.to_string(),
                parked.to_string(),
                lost.to_string(),
            ];
            rest.iter()
                .zip(figures)
                .try_for_each(|(head, figure)| write!(f, "  {figure:>width$}", width = head.len()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_stand_under_their_heads() {
        let orders = Summary {
            function: "order-confirmation",
            effects_are: "mails",
            all_well: "",
            figures: Figures {
                work: 60,
                sent: 91,
                runs: 63,
                effects: 60,
                duplicates: 27,
                retries: 7,
                dead_lettered: 4,
                parked: 0,
                lost: -1,
            },
            faults: vec![],
        };
        let payments = Summary {
            function: "payment",
            effects_are: "charges",
            figures: Figures { work: 10_000, sent: 15_000, runs: 12_345, ..orders.figures },
            ..orders.clone()
        };
        let summaries = vec![orders, payments];
        let report = Report { summaries, faults: vec![], elapsed: Duration::ZERO, first_done: None };
        let table =
            "                       work   sent   runs     effects  duplicates  retries  dead-lettered  parked  lost
  order-confirmation     60     91     63    60 mails          27        7              4       0    -1
  payment             10000  15000  12345  60 charges          27        7              4       0    -1";
        assert_eq!(report.to_string(), table);
        assert!(!report.has_faults());
        assert!(Report { faults: vec!["late".into()], ..report }.has_faults());
    }
}
