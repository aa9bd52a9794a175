//! An act on the dead letters of several queues: what is asked of it, the question before it, and what came of it.

use std::collections::BTreeSet;

use claimant_core::{Clock as _, Error, SystemClock};
use claimant_operate::dead::{
    Bounds, DeadLetterQueue, LOOKED_AT_MAX, Observer, RATE_MAX_PER_S, Report, Selection, Unseen,
};
use claimant_operate::text::harmless;
use serde_json::{Value, json};

use super::seen::failed;
use super::which::{self, Watch, Which};
use crate::exit::Ended;
use crate::operate::interrupt::{self, Stop};
use crate::operate::options::{OutputOptions, TargetOptions, WriteOptions};
use crate::operate::{confirm, parse};
use crate::output::{note, say, say_json};

/// Ids of one command.
const IDS_MAX: usize = 1_000;

/// Problems that are printed.
const SHOWN_MAX: usize = 10;

/// What a question about letters of a FIFO queue is about, too.
const BEHIND: &str = ", and what is behind them in their message groups, of which SQS shows ten at a time";

/// What a question says where the queue may be one whose messages are at work.
const NOT_KNOWN: &str = " (nothing says that it is a dead-letter queue)";

/// Which letters are meant, and how they are acted on.
// No doc comments that clap would show as the command's own: the one above is replaced by the command's.
#[derive(Debug, clap::Args)]
pub(super) struct What {
    /// The ids of dead letters, or those that their messages had before; 1,000 at most
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    /// All dead letters of the queues
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    which: Which,

    /// At most this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// At most this many a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(RATE_MAX_PER_S)))]
    rate: Option<u32>,

    #[command(flatten)]
    pub(super) write: WriteOptions,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

impl What {
    /// Returns the letters that are meant.
    pub(super) fn selection(&self) -> Result<Selection, Error> {
        parse::at_most(IDS_MAX, "ids", &self.ids)?;
        let selection = self.which.selection(&self.ids)?;
        selection.check_act()?;
        if selection.is_everything() != self.all {
            return Err(Error::invalid(if self.all {
                "--all is every dead letter: leave the other conditions out, or --all"
            } else {
                "say which dead letters are meant: ids, --group or another condition, or --all"
            }));
        }
        Ok(selection)
    }

    fn bounds(&self, done: usize, dry_run: bool) -> Bounds {
        let limit = self.limit.map_or(LOOKED_AT_MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Bounds { limit: limit.saturating_sub(done), per_s: self.rate.filter(|_| !dry_run), dry_run }
    }
}

/// The same act on several queues.
pub(super) struct Acts {
    verb: &'static str,
    past: &'static str,
    /// Where all letters go, as it was asked for.
    to: Option<String>,
    /// What is done to each letter on the way, for the question.
    with: String,
    done: Vec<Acted>,
    /// Whether a question was answered with no, or with Ctrl-C or SIGTERM.
    declined: bool,
}

/// What came of one queue.
struct Acted {
    queue: String,
    /// Whether the question was answered with no.
    declined: bool,
    report: Report,
}

impl Acted {
    fn of(queue: &str, report: Report) -> Self {
        Self { queue: queue.to_owned(), declined: false, report }
    }

    fn to_json(&self) -> Value {
        let mut json = self.report.to_json();
        json["queue"] = self.queue.as_str().into();
        json["declined"] = self.declined.into();
        json
    }
}

impl Acts {
    pub(super) fn new(verb: &'static str, past: &'static str) -> Self {
        Self { verb, past, to: None, with: String::new(), done: Vec::new(), declined: false }
    }

    /// Has the question say where letters go, if that was asked for, and what is done to each on the way.
    pub(super) fn goes(self, to: Option<String>, with: String) -> Self {
        Self { to, with, ..self }
    }

    /// Acts on each queue in turn. One that fails keeps none of the others from it, nor from being reported.
    pub(super) async fn on_each(
        mut self,
        what: &What,
        selection: &Selection,
        mut act: impl AsyncFnMut(&DeadLetterQueue, &Selection, Bounds, Observer<'_>) -> Result<Report, Error>,
    ) -> Result<Ended, Error> {
        // Of a dry run it is said for each queue.
        let output = (!what.write.dry_run).then_some(what.output);
        let (place, queues) = which::open_with_place(&what.target, output).await?;
        let (stop, mut not_reached, only) = (which::stop(), Vec::new(), queues.len() == 1);
        for (name, queue) in queues {
            let done = self.letters_done();
            if (done > 0 && what.bounds(done, false).limit == 0) || self.has_met_all(selection) {
                break;
            }
            if stop.is_asked() {
                not_reached.push(name);
                continue;
            }
            let queue = match queue {
                Ok(queue) => queue,
                Err(error) => {
                    self.done.push(Acted::of(&name, failed(&name, &error)));
                    continue;
                }
            };
            let watched = async |selection: &Selection, dry_run| {
                let mut watch = Watch::begin(queue.depth().visible, dry_run, &stop);
                let report =
                    act(&queue, selection, what.bounds(done, dry_run), &mut |progress| watch.step(progress)).await;
                watch.end();
                report.inspect(|report| which::note_stay_hidden(&name, report, &mut watch))
            };
            let whereabouts = place.whereabouts(queue.url());
            match self.one((&queue, whereabouts.as_deref()), (what, &stop), selection, watched).await {
                Err(error) if only => return Err(error),
                Err(error) => self.done.push(Acted::of(&name, failed(&name, &error))),
                Ok(true) => {}
                Ok(false) => not_reached.push(name),
            }
        }
        Ok(self.end(what, selection, &not_reached, stop.is_asked()))
    }

    fn reports(&self) -> impl Iterator<Item = &Report> {
        self.done.iter().map(|acted| &acted.report)
    }

    fn letters_done(&self) -> usize {
        self.reports().map(|report| report.progress.done).sum()
    }

    /// Returns whether letters were named by their ids, and each was met by the one that it has now: no other queue is looked through.
    fn has_met_all(&self, selection: &Selection) -> bool {
        let met = |report: &Report, id: &String| {
            report.problem_ids.contains(id) || report.done.iter().any(|done| done.message_id == *id)
        };
        let named = &selection.ids.named;
        !named.is_empty() && named.iter().all(|id| self.reports().any(|report| met(report, id)))
    }

    /// Returns the words that say where letters go: as it was asked for, or each to where it came from.
    fn to(&self, report: &Report) -> String {
        let came_from: BTreeSet<_> = report.done.iter().filter_map(|done| done.queue.as_deref()).collect();
        match &self.to {
            _ if came_from.is_empty() => String::new(),
            Some(to) => format!(" to {}", harmless(to)),
            None => format!(" to {}", came_from.into_iter().collect::<Vec<_>>().join(", ")),
        }
    }

    /// Returns what is asked before the act that a look has shown.
    fn question(&self, queue: &DeadLetterQueue, selection: &Selection, look: &Report) -> String {
        let (verb, letters, to, with) = (self.verb, which::letters(look.progress.done), self.to(look), &self.with);
        let not_known = if queue.is_known() { "" } else { NOT_KNOWN };
        let parked = match look.parked {
            parked @ 1.. if !to.is_empty() => {
                format!(", {parked} of them parked unless their keys have been released")
            }
            _ => String::new(),
        };
        let behind = if queue.is_fifo() && selection.ids.named.is_empty() { BEHIND } else { "" };
        format!("{verb} {letters} of {}{not_known}{to}{with}{parked}{behind}?", queue.name())
    }

    /// Acts on one queue: asks first, unless that is not wanted. Returns whether the queue was reached: neither Ctrl-C nor
    /// SIGTERM came first.
    async fn one(
        &mut self,
        (queue, whereabouts): (&DeadLetterQueue, Option<&str>),
        (what, stop): (&What, &Stop),
        selection: &Selection,
        mut act: impl AsyncFnMut(&Selection, bool) -> Result<Report, Error>,
    ) -> Result<bool, Error> {
        let (dry_run, asks) = (what.write.dry_run, !what.write.yes);
        if dry_run {
            whereabouts.iter().for_each(|at| note(format!("A dry run of {}, in {at}:", queue.name())));
        }
        let began = SystemClock.now();
        let mut report = act(selection, dry_run || asks).await?;
        if asks && !dry_run && report.progress.done > 0 {
            let is_fifo = queue.is_fifo();
            let question = confirm::at(&self.question(queue, selection, &report), whereabouts);
            let answer = confirm::answered(&question, &what.write, stop).await?;
            if answer != Some(true) {
                self.declined = true;
                let report = Report { unseen: Unseen { cut: true, ..report.unseen }, ..Report::default() };
                self.done.extend(answer.map(|_| Acted { declined: true, ..Acted::of(queue.name(), report) }));
                return Ok(answer.is_some());
            }
            // What was confirmed, and nothing that came meanwhile.
            let (confirmed, mut look) = (selection.shown(&report, is_fifo, began), report);
            if is_fifo {
                // Those that stay are met again.
                (look.problems, look.problem_count) = (Vec::new(), 0);
            }
            report = act(&confirmed, false).await?.after(look);
        }
        if !what.output.json {
            self.print(queue, what, selection, &report);
        }
        self.done.push(Acted::of(queue.name(), report));
        Ok(true)
    }

    fn print(&self, queue: &DeadLetterQueue, what: &What, selection: &Selection, report: &Report) {
        let would = if what.write.dry_run { "would be " } else { "" };
        let to = self.to(report);
        let letters = which::letters(report.progress.done);
        let copied = report.copied_in_words().map_or_else(String::new, |copied| format!(" {copied}"));
        say(format!("{}: {letters} {would}{}{to}.{copied}", queue.name(), self.past));
        if report.parked > 0 && !to.is_empty() {
            say(format!(
                "{} of them were parked, and stay so unless their keys have been released: claimant release RECORD",
                report.parked
            ));
        }
        for problem in report.problems.iter().take(SHOWN_MAX) {
            say(format!("  {}: {}", harmless(&problem.message_id), harmless(&problem.why)));
        }
        if report.stayed() > 0 {
            say(format!("{} stayed, for reasons such as these.", report.stayed()));
        }
        if let Some(said) = report.came_back_in_words() {
            say(said);
        }
        if let Some(why) = &report.failed {
            say(format!("It ended early: {}.", harmless(why)));
        }
        if let Some(said) = report.more_in_words(queue.is_fifo(), what.write.dry_run.then_some(&selection.ids.named)) {
            say(said);
        }
    }

    /// Returns the ids that were named and that no letter has which fits.
    fn missing(&self, selection: &Selection) -> BTreeSet<String> {
        let read = self.reports().filter(|report| report.failed.is_none());
        read.fold(selection.ids.named.clone(), |missing, report| &missing & &report.missing)
    }

    fn end(self, what: &What, selection: &Selection, not_reached: &[String], interrupted: bool) -> Ended {
        let missing = if self.declined { BTreeSet::new() } else { self.missing(selection) };
        if what.output.json {
            let queues: Vec<_> = self.done.iter().map(Acted::to_json).collect();
            let dry_run = what.write.dry_run;
            say_json(&json!({ "dry_run": dry_run, "queues": queues, "missing": missing, "not_reached": not_reached }));
        } else {
            let copied = self.reports().any(|report| report.progress.copied > 0);
            if self.letters_done() == 0 && !copied && !self.declined {
                say("No dead letter fits, or none could go.");
            }
            for id in &missing {
                say(format!("{}: no dead letter that was read has this id and fits.", harmless(id)));
            }
            if !not_reached.is_empty() {
                say(interrupt::ended_before(not_reached));
            }
        }
        // A limit that was asked for is no reason.
        let limited = what.limit.is_some() && what.bounds(self.letters_done(), false).limit == 0;
        let is_cut = !limited && self.reports().any(|report| report.unseen.cut);
        if interrupted && (is_cut || !not_reached.is_empty()) {
            return Ended::Interrupted;
        }
        let untouched = |report: &Report| report.progress.done == 0 && report.problem_count == 0;
        if self.reports().any(|report| report.failed.is_some()) && self.reports().all(untouched) {
            return Ended::NotDone;
        }
        let good = |report: &Report| {
            report.problem_count == 0
                && report.came_back == 0
                && report.failed.is_none()
                && (!report.unseen.any() || limited)
        };
        let good = !self.declined && self.letters_done() > 0 && missing.is_empty() && self.reports().all(good);
        if good { Ended::Well } else { Ended::WithFaults }
    }
}
