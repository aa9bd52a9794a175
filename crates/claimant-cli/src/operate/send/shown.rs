//! What is said of samples, of messages that would be sent, and of what became of a sending.

use claimant_operate::send::{NUMBER, Planned, Sample, Samples, SentReport};
use claimant_operate::target::Queue;
use claimant_operate::text::harmless;
use serde_json::{Value, json};

use crate::operate::options::OutputOptions;
use crate::operate::table::{Fit, Table};
use crate::output::{say, say_json};

/// Messages of a dry run that are printed as text, and problems.
const SHOWN_MAX: usize = 10;

/// Lists the samples of a queue, or all of them.
pub(super) fn list(samples: &Samples, queue: Option<&Queue>, output: OutputOptions) {
    let found: Vec<_> = match queue {
        Some(queue) => samples.of_queue(queue).collect(),
        None => samples.found.iter().collect(),
    };
    if output.json {
        let sample = |sample: &&Sample| {
            json!({
                "queue": sample.queue,
                "title": sample.title,
                "envelope": sample.envelope.as_str(),
                "group": sample.group,
                "body": sample.body,
            })
        };
        say_json(&json!({ "samples": found.iter().map(sample).collect::<Vec<_>>() }));
        return;
    }
    if found.is_empty() {
        say("No sample was found: --directory says where the template is, and --help where samples are.");
        return;
    }
    let mut table =
        Table::new(&[("QUEUE", Fit::Whole), ("SAMPLE", Fit::Whole), ("ENVELOPE", Fit::Whole), ("BODY", Fit::End)]);
    for sample in found {
        table.row([sample.queue.clone(), sample.title.clone(), sample.envelope.to_string(), sample.body.clone()]);
    }
    table.lines().iter().for_each(say);
}

/// Shows what would be sent.
pub(super) fn plan(messages: &[Planned], queue: &Queue, output: OutputOptions) {
    if output.json {
        let message = |message: &Planned| json!({ "body": message.body, "group": message.group });
        let messages: Vec<Value> = messages.iter().map(message).collect();
        say_json(&json!({ "queue": queue.name, "messages": messages }));
        return;
    }
    say(format!("{} would go to {}:", counted(messages.len()), queue.name));
    for message in messages.iter().take(SHOWN_MAX) {
        let group = message.group.as_ref().map_or_else(String::new, |group| format!("[{}] ", harmless(group)));
        say(format!("{group}{}", harmless(&message.body)));
    }
    if messages.len() > SHOWN_MAX {
        say(format!("… and {} more.", messages.len() - SHOWN_MAX));
    }
}

/// Shows what was sent, and what was not.
pub(super) fn report(report: &SentReport, queue: &Queue, number: &str) {
    let number = if number == NUMBER { String::new() } else { format!(", number {}", harmless(number)) };
    let sent = if report.unknown > 0 { "confirmed by" } else { "sent to" };
    say(format!("{} {sent} {}{number}.", counted(report.sent), queue.name));
    if let [id] = report.ids.as_slice() {
        say(format!("message id  {id}"));
    }
    report.problems.iter().take(SHOWN_MAX).for_each(|why| say(harmless(why)));
    if report.failed > 0 {
        let unknown = match report.unknown {
            0 => String::new(),
            unknown => format!(" It is not known whether {} arrived.", counted(unknown)),
        };
        say(format!("{} not confirmed, {} not tried.{unknown}", counted(report.failed), report.left));
    } else if report.left > 0 {
        say(format!("Ended before {}.", counted(report.left)));
    }
}

/// Returns so many messages in words.
pub(super) fn counted(messages: usize) -> String {
    if messages == 1 { "1 message".to_owned() } else { format!("{messages} messages") }
}
