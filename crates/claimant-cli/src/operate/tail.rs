//! `claimant tail`: outcomes as they happen.

use std::collections::HashMap;

use claimant_core::Error;
use claimant_core::report::OUTCOME_WORDS;
use claimant_local::journal::outcomes::{Seen, read};
use claimant_operate::log_lines::LogLine;
use claimant_operate::text::harmless;
use serde_json::json;

use super::options::{OutputOptions, TargetOptions};
use super::parse;
use crate::exit::Ended;
use crate::output::{self, say, say_json_line};

/// Show outcomes as they happen, until Ctrl-C: what became of each message, or, of consumers that log no messages, of each batch.
///
/// A function logs each message where CLAIMANT_LOG_MESSAGES=on is set, for it or for `claimant local`. Lines of deployed functions
/// (--stack NAME) come from CloudWatch, some ten seconds late.
#[derive(Debug, clap::Args)]
pub(crate) struct Tail {
    /// Only of this consumer
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,

    /// Only messages with one of these outcomes; batches that have one
    #[arg(long = "outcome", value_name = "OUTCOME", value_parser = OUTCOME_WORDS)]
    outcomes: Vec<String>,

    /// Also every other log line
    #[arg(long)]
    all: bool,

    /// End after this many
    #[arg(long, value_name = "N", value_parser = parse::limit)]
    limit: Option<usize>,

    /// Print a JSON document in a line of its own for each
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    target: TargetOptions,
}

/// Shows outcomes until the cloud stops, the limit is reached, or the reader is gone.
pub(crate) async fn run(options: Tail) -> Result<Ended, Error> {
    let place = options.target.open().await?;
    OutputOptions { json: options.json }.note_where(&place);
    let mut lines = place.log_lines(options.all).await?;
    let (mut left, mut messages) = (options.limit.unwrap_or(usize::MAX), Messages::default());
    while left > 0 {
        let Some(line) = lines.next().await? else { break };
        if line.missed > 0 {
            output::note(format!("{} lines were missed: they come faster than they are read.", line.missed));
            messages = Messages::default();
            continue;
        }
        let seen = read(&line.text, &OUTCOME_WORDS);
        let is_again = seen.as_ref().is_some_and(|seen| messages.make_up(&line, seen));
        if is_again || !wanted(&options, seen.as_ref()) {
            continue;
        }
        left -= 1;
        if options.json {
            let (seen, text) = (seen.as_ref().map(Seen::to_json), seen.is_none().then_some(&line.text));
            say_json_line(&json!({ "time": line.at.to_utc(), "function": line.function, "seen": seen, "line": text }));
        } else {
            let text = seen.as_ref().map_or_else(|| line.text.clone(), Seen::to_string);
            say(format!("{}  {:<24}  {}", line.at.to_utc(), line.function, harmless(&text)));
        }
        if output::check(output::Reader::MustStay).is_err() {
            break;
        }
    }
    Ok(Ended::Well)
}

fn wanted(options: &Tail, seen: Option<&Seen>) -> bool {
    let Some(seen) = seen else { return options.all && options.consumer.is_none() && options.outcomes.is_empty() };
    options.consumer.as_ref().is_none_or(|name| seen.consumer == *name)
        && (options.outcomes.is_empty() || seen.outcomes.iter().any(|(outcome, _)| options.outcomes.contains(outcome)))
}

/// Messages that were seen, and whose batch was not yet: how many of each function, process and consumer. One process logs messages or does
/// not: another's lines, as of the version before, say nothing of its batches.
#[derive(Default)]
struct Messages(HashMap<(String, String, String), u64>);

impl Messages {
    /// Notes a message; returns of a batch whether all its messages were seen before it, as those of a consumer are that logs them.
    fn make_up(&mut self, line: &LogLine, seen: &Seen) -> bool {
        let of = (line.function.clone(), line.stream.clone(), seen.consumer.clone());
        if seen.message_id.is_some() {
            *self.0.entry(of).or_default() += 1;
            return false;
        }
        let batch = seen.outcomes.iter().fold(0_u64, |sum, (_, messages)| sum.saturating_add(*messages));
        let left = self.0.remove(&of).and_then(|count| count.checked_sub(batch)).filter(|_| batch > 0);
        // In a local cloud they may be of another process. A process of which it is known has them of a batch whose line was not read.
        if let Some(left) = left.filter(|left| *left > 0 && line.stream.is_empty()) {
            self.0.insert(of, left);
        }
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::Timestamp;

    use super::*;

    /// Anything can print such a line.
    #[test]
    fn counts_that_no_batch_has_are_of_no_messages() {
        let mut messages = Messages::default();
        let most = u64::MAX;
        for (text, is_again) in [
            ("message done consumer=c message_id=m outcome=retry".to_owned(), false),
            (format!("batch done consumer=c completed={most} retry={most}"), false),
        ] {
            let (function, stream, at) = ("f".to_owned(), String::new(), Timestamp::from_millis(0));
            let line = LogLine { function, stream, at, text, missed: 0 };
            assert_eq!(messages.make_up(&line, &read(&line.text, &OUTCOME_WORDS).unwrap()), is_again);
        }
    }
}
