//! `claimant pause` and `resume`: event source mappings.

use std::time::Duration;

use claimant_core::Error;
use claimant_core::error::Chain;
use claimant_operate::intake::{Change, ComesBack, Intake, Mapping};
use claimant_operate::switch::{Switched, switch};
use claimant_operate::text::harmless;
use serde_json::json;

use super::confirm;
use super::interrupt::Stop;
use super::options::{OutputOptions, TargetOptions, WriteOptions};
use super::table::{Fit, Table};
use crate::exit::Ended;
use crate::output::{note, say, say_json};

/// How long a change may take to take effect, unless said otherwise.
const WAIT_S: u64 = 60;

/// When a mapping that is off is switched on, if a breaker has paused it; or why that is not known.
type Back = Result<Option<ComesBack>, Error>;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The event source mappings of SQS queues are switched, those of the queues that --queue names or all of them; messages stay in their queues meanwhile, for as long as these retain them. A \
deployment that changes a mapping sets it to what the template says. A mapping that an open breaker has paused is switched on by a \
schedule; `pause` deletes that, and the mapping stays off until `resume`. All mappings are changed before any is waited for, and what \
fails at one is said beside what was done to the others. Ctrl-C or SIGTERM ends the wait, not the change.

Exit codes: 0 where all is as asked for, 1 where it is not so within --wait, where another one has changed it back, where it is so of \
some mappings only, where it is not known whether a schedule switches one that was paused on again, or the question was answered with \
no, 2 where nothing could be done, 130 where Ctrl-C or SIGTERM ended it before all was so.")]
pub(crate) struct OnFunction {
    /// The function, by its name, its ARN or its logical id; of a local cloud also by its program's name. Of a stack or a local cloud it
    /// is one of its own
    #[arg(value_name = "FUNCTION")]
    function: String,

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
    let place = options.target.open_unchecked().await?;
    let intake = Intake::of(&place);
    let (name, mut mappings) = intake.list_called(&place, &options.function).await?;
    let named = &options.target.queues;
    let of_none = |queue: &&String| !mappings.iter().any(|mapping| mapping.reads(queue));
    let none = match named.iter().find(of_none) {
        Some(queue) => Some(format!("the SQS queue {queue}")),
        None => mappings.is_empty().then(|| "an SQS queue".to_owned()),
    };
    if let Some(of) = none {
        return Err(Error::invalid(format!("{name} has no event source mapping of {of}")));
    }
    if !named.is_empty() {
        mappings.retain(|mapping| named.iter().any(|queue| mapping.reads(queue)));
    }
    let wanted = if enabled { "Enabled" } else { "Disabled" };
    let change = Change { enabled: Some(enabled), reports_failures: options.report_failures.then_some(true) };
    let whereabouts = mappings.first().and_then(|mapping| place.whereabouts(&mapping.function_arn));
    if options.write.dry_run {
        confirm::note_at(whereabouts.as_deref());
        let all: Vec<_> = mappings.into_iter().map(Switched::untouched).collect();
        print(&all, &come_back(&intake, &all).await, change, &options);
        return Ok(Ended::Well);
    }
    options.output.note_where(&place);
    let stop = Stop::listen("Not waiting any longer. Ctrl-C again ends at once.");
    if !options.write.yes && is_so(&intake, &mappings, change).await {
        note("Nothing to change: it is so already.");
        if mappings.iter().all(|mapping| mapping.state == wanted) {
            let all: Vec<_> = mappings.into_iter().map(Switched::untouched).collect();
            print(&all, &come_back(&intake, &all).await, change, &options);
            return Ok(Ended::Well);
        }
    } else {
        let queues: Vec<_> = mappings.iter().map(|mapping| mapping.queue.as_str()).collect();
        let asks = if enabled { "Let messages in to" } else { "Stop messages to" };
        let reports = if options.report_failures { ", and have it report failures" } else { "" };
        let question = format!("{asks} {name}, from {}{reports}?", queues.join(", "));
        let question = confirm::at(&question, whereabouts.as_deref());
        match confirm::answered(&question, &options.write, &stop).await? {
            Some(true) => {}
            Some(false) => return Ok(Ended::WithFaults),
            None => return Ok(Ended::Interrupted),
        }
    }
    let within = Duration::from_secs(options.wait);
    let stopped = async {
        if !stop.is_asked() {
            let most = options.wait;
            note(format!("Waiting until it is {wanted}, {most} s at most. Ctrl-C ends the wait, not the change."));
        }
        stop.until_asked().await;
    };
    let all = switch(&intake, mappings, change, within, stopped).await;
    let back = come_back(&intake, &all).await;
    print(&all, &back, change, &options);
    let is_good = |(one, back): (&Switched, &Back)| {
        let stays = enabled || (one.not_kept_off.is_none() && matches!(back, Ok(None)));
        one.is_changed() && one.failed.is_none() && one.mapping.state == wanted && stays
    };
    if all.iter().zip(&back).all(is_good) {
        return Ok(Ended::Well);
    }
    if stop.is_asked() {
        return Ok(Ended::Interrupted);
    }
    let is_changed = all.iter().any(Switched::is_changed);
    match all.into_iter().find_map(|one| one.failed).filter(|_| !is_changed) {
        Some(error) => Err(error),
        None => Ok(Ended::WithFaults),
    }
}

/// Returns whether all of these are as asked for, and nothing is planned that ends that: there is nothing to ask.
async fn is_so(intake: &Intake, mappings: &[Mapping], change: Change) -> bool {
    let mut all_are = mappings.iter().all(|mapping| mapping.has(change));
    for mapping in mappings {
        all_are = all_are && (change.enabled == Some(true) || matches!(intake.comes_back(mapping).await, Ok(None)));
    }
    all_are
}

/// Returns of each of these when it is on again, and says what became of the schedules that would do that, and what is not known of them.
async fn come_back(intake: &Intake, all: &[Switched]) -> Vec<Back> {
    let mut all_back = Vec::new();
    for one in all {
        note_schedules(one);
        let back = intake.comes_back(&one.mapping).await;
        if let (Err(error), None) = (&back, &one.not_kept_off) {
            let Mapping { function, queue, .. } = &one.mapping;
            let why = Chain(error);
            note(harmless(&format!("Whether a breaker has paused {function} from {queue} is not known: {why}.")));
        }
        all_back.push(back);
    }
    all_back
}

/// Says what became of the schedules that would switch a mapping on that was paused by a person.
fn note_schedules(one: &Switched) {
    let Switched { mapping, deleted, not_kept_off, .. } = one;
    let (Mapping { function, queue, .. }, is_off) = (mapping, !mapping.is_on() && !mapping.has_unknown_state());
    for planned in deleted {
        let at = planned.at.to_utc();
        note(if is_off {
            format!("A breaker had paused {function} from {queue} until {at}; it now stays off.")
        } else {
            format!("The schedule of a breaker that was to switch {function} from {queue} on at {at} is deleted.")
        });
    }
    if let Some(error) = not_kept_off {
        note(format!("Where a breaker has paused {function}, a schedule switches it on again: {}", Chain(error)));
    }
}

fn print(all: &[Switched], back: &[Back], change: Change, options: &OnFunction) {
    if options.output.json {
        let shown = |(one, back): (&Switched, &Back)| {
            let mut shown = one.to_json();
            shown["on_again"] = back.as_ref().ok().and_then(Option::as_ref).map(ComesBack::to_json).into();
            shown["on_again_not_known"] = back.as_ref().err().map(|error| Chain(error).to_string()).into();
            if options.write.dry_run {
                shown["would_change"] = (!one.mapping.has(change)).into();
            }
            shown
        };
        let mappings: Vec<_> = all.iter().zip(back).map(shown).collect();
        return say_json(&json!({ "dry_run": options.write.dry_run, "mappings": mappings }));
    }
    let columns =
        [("FUNCTION", Fit::Middle), ("QUEUE", Fit::Middle), ("STATE", Fit::Whole), ("REPORTS FAILURES", Fit::Whole)];
    let mut table = Table::new(&columns);
    for Switched { mapping, .. } in all {
        let reports = if mapping.reports_failures { "yes" } else { "no" };
        table.row([mapping.function.clone(), mapping.queue.clone(), mapping.state.clone(), reports.to_owned()]);
    }
    table.lines().iter().for_each(say);
    for (one, back) in all.iter().zip(back) {
        let Mapping { function, queue, .. } = &one.mapping;
        if let Ok(Some(back)) = back {
            say(format!("{function} from {queue} is on again at {back}."));
        }
        if let Some(why) = one.why_not() {
            say(harmless(&format!("{function} from {queue}: {why}")));
        }
    }
    if options.write.dry_run {
        for Switched { mapping, .. } in all {
            say(format!("{} from {} {}.", mapping.function, mapping.queue, would(mapping, change)));
        }
    }
}

/// Says what would come of a mapping.
fn would(mapping: &Mapping, change: Change) -> String {
    let is_on = Change { reports_failures: None, ..change };
    let state = match change.enabled {
        _ if mapping.has(is_on) => format!("is {} already", mapping.state),
        Some(true) => "would be Enabled".to_owned(),
        _ => "would be Disabled".to_owned(),
    };
    let reports = Change { enabled: None, ..change };
    if mapping.has(reports) { state } else { format!("{state}, and would report failures") }
}
