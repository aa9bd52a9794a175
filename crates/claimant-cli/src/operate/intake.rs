//! `claimant pause` and `resume`: event source mappings.

use std::time::Duration;

use claimant_core::Error;
use claimant_core::error::Chain;
use claimant_operate::intake::{Change, ComesBack, Intake, Mapping};
use serde_json::json;

use super::confirm;
use super::options::{OutputOptions, TargetOptions, WriteOptions};
use super::table::{Fit, Table};
use crate::exit::Ended;
use crate::output::{note, say, say_json};

/// How long a change may take to take effect, unless said otherwise.
const WAIT_S: u64 = 60;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The event source mappings of SQS queues are switched; messages stay in their queues meanwhile, for as long as these retain them. A \
deployment that changes a mapping sets it to what the template says. A mapping that an open breaker has paused is switched on by a \
schedule; `pause` deletes that, and the mapping stays off until `resume`.

Exit codes: 0 where all is as asked for, 1 where it is not so within --wait or the question was answered with no, 2 where it could \
not be done.")]
pub(crate) struct OnFunction {
    /// The function, by its name or ARN; of a local cloud its logical id will do
    #[arg(value_name = "FUNCTION")]
    function: String,

    /// Only the mapping of this queue, by its name
    #[arg(long, value_name = "QUEUE")]
    of: Option<String>,

    /// Have the function's answer name the messages that failed (ReportBatchItemFailures); without it Lambda deletes them with the others
    #[arg(long)]
    report_failures: bool,

    /// How long to wait until it is so, in seconds; 0 does not wait
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT_S, value_parser = clap::value_parser!(u64).range(0..=900))]
    wait: u64,

    #[command(flatten)]
    write: WriteOptions,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// Has the function's mappings poll, or not.
pub(crate) async fn run(enabled: bool, options: OnFunction) -> Result<Ended, Error> {
    let place = options.target.open().await?;
    let name = place.function(&options.function).map_or(options.function.as_str(), |function| &function.name);
    let intake = Intake::of(&place);
    let mut mappings = intake.list(Some(name)).await?;
    mappings.retain(|mapping| options.of.as_ref().is_none_or(|queue| mapping.queue == *queue));
    if mappings.is_empty() {
        let known: Vec<_> = place.functions.iter().map(|function| function.name.as_str()).collect();
        let known = if known.is_empty() { String::new() } else { format!("; {} has {}", place.name, known.join(", ")) };
        return Err(Error::invalid(format!("{name} has no such event source mapping of an SQS queue{known}")));
    }
    let change = Change { enabled: Some(enabled), reports_failures: options.report_failures.then_some(true) };
    if !options.write.dry_run {
        let verb = if enabled { "Let messages in to" } else { "Stop messages to" };
        let queues: Vec<_> = mappings.iter().map(|mapping| mapping.queue.as_str()).collect();
        if !enabled && !confirm::confirmed(&format!("{verb} {name}, from {}?", queues.join(", ")), &options.write)? {
            return Ok(Ended::WithFaults);
        }
        for mapping in &mut mappings {
            let changed = intake.change(mapping, change).await?;
            *mapping = intake.settled(&changed, Duration::from_secs(options.wait)).await?;
            if !enabled {
                keep_off(&intake, mapping).await;
            }
        }
    }
    let mut back = Vec::new();
    for mapping in &mappings {
        // Whoever may not ask for schedules sees the state alone.
        back.push(intake.comes_back(mapping).await.unwrap_or_default());
    }
    let wanted = if enabled { "Enabled" } else { "Disabled" };
    print(&mappings, &back, wanted, &options);
    let good = options.write.dry_run || mappings.iter().all(|mapping| mapping.state == wanted);
    Ok(if good { Ended::Well } else { Ended::WithFaults })
}

/// Deletes what would switch a mapping on that was paused by a person.
async fn keep_off(intake: &Intake, mapping: &Mapping) {
    match intake.keep_off(mapping).await {
        Ok(deleted) => deleted.iter().for_each(|planned| {
            note(format!(
                "A breaker had paused {} from {} until {}; it now stays off.",
                mapping.function,
                mapping.queue,
                planned.at.to_utc()
            ));
        }),
        Err(error) => note(format!(
            "Where a breaker has paused {}, a schedule switches it on again: {}",
            mapping.function,
            Chain(&error)
        )),
    }
}

fn print(mappings: &[Mapping], back: &[Option<ComesBack>], wanted: &str, options: &OnFunction) {
    if options.output.json {
        let shown = |(mapping, back): (&Mapping, &Option<ComesBack>)| {
            let mut shown = mapping.to_json();
            shown["on_again"] = back.as_ref().map(ComesBack::to_json).into();
            shown
        };
        let mappings: Vec<_> = mappings.iter().zip(back).map(shown).collect();
        return say_json(&json!({ "dry_run": options.write.dry_run, "mappings": mappings }));
    }
    let columns =
        [("FUNCTION", Fit::Middle), ("QUEUE", Fit::Middle), ("STATE", Fit::Whole), ("REPORTS FAILURES", Fit::Whole)];
    let mut table = Table::new(&columns);
    for mapping in mappings {
        let reports = if mapping.reports_failures { "yes" } else { "no" };
        table.row([mapping.function.clone(), mapping.queue.clone(), mapping.state.clone(), reports.to_owned()]);
    }
    table.lines().iter().for_each(say);
    for (mapping, back) in mappings.iter().zip(back) {
        if let Some(back) = back {
            say(format!("{} from {} is on again at {back}.", mapping.function, mapping.queue));
        }
    }
    if options.write.dry_run {
        for mapping in mappings {
            let would =
                if mapping.state == wanted { format!("is {wanted} already") } else { format!("would be {wanted}") };
            say(format!("{} from {} {would}.", mapping.function, mapping.queue));
        }
    }
}
