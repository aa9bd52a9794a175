//! `claimant dead redrive` and `discard`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use claimant_core::{Clock as _, Error, SystemClock};
use claimant_operate::dead::{
    Bounds, DeadLetterQueue, Edit, FieldPath, LOOKED_AT_MAX, RATE_MAX_PER_S, Report, Selection,
};
use serde_json::json;

use super::which::{self, Stop, Watch, Which, sibling};
use crate::exit::Ended;
use crate::operate::confirm;
use crate::operate::options::{OutputOptions, TargetOptions, WriteOptions};
use crate::operate::table::harmless;
use crate::output::{say, say_json};

/// Problems that are printed.
const SHOWN_MAX: usize = 10;

/// What a question about letters of a FIFO queue is about, too.
const BEHIND: &str = ", and what is behind them in their message groups, of which SQS shows ten at a time";

/// Send dead letters back to their queue: each is copied first, and deleted here once SQS has confirmed the copy.
///
/// A letter that SQS moved goes to the queue that it came from; one that a function copied, to the only queue of this dead-letter
/// queue, or to --to. What is completed is a duplicate then and does not run again. Parked work stays parked until its key is
/// released (claimant release RECORD). Another body under the same key is a conflict, until the key is forgotten (claimant forget
/// RECORD).
///
/// Exit codes: 0 where all that fit were sent back, 1 where none fits, a letter stayed, or the question was answered with no, 2
/// where nothing could be done.
#[derive(Debug, clap::Args)]
pub(crate) struct Redrive {
    #[command(flatten)]
    what: What,

    /// The queue to send to, by its name or URL [default: where each came from]
    #[arg(long, value_name = "QUEUE")]
    to: Option<String>,

    /// Send what is in this file instead of the body; for one letter
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    body: Option<PathBuf>,

    /// Set a field of JSON bodies, such as currency=EUR; the value is JSON, or else a text. May be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = which::field)]
    set: Vec<(FieldPath, String)>,
}

/// Delete dead letters, with a copy of them where one is asked for.
///
/// Exit codes: 0 where all that fit were discarded, 1 where none fits, a letter stayed, or the question was answered with no, 2
/// where nothing could be done.
#[derive(Debug, clap::Args)]
pub(crate) struct Discard {
    #[command(flatten)]
    what: What,

    /// First write each letter to this file, whole, as a line of JSON; the file must not exist yet
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// Which letters are meant, and how they are acted on.
// No doc comments that clap would show as the command's own: the one above is replaced by the command's.
#[derive(Debug, clap::Args)]
struct What {
    /// The ids of dead letters, or those that their messages had before
    #[arg(value_name = "ID", num_args = 0..=1_000)]
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
    write: WriteOptions,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

impl What {
    fn selection(&self) -> Result<Selection, Error> {
        let selection = self.which.selection(&self.ids);
        selection.check()?;
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

/// Sends letters back.
pub(super) async fn redrive(options: Redrive) -> Result<Ended, Error> {
    let Redrive { what, to, body, set } = options;
    let selection = what.selection()?;
    let edit = edit(body, set)?;
    let mut acts = Acts::new("Send back", "sent back");
    let queues = which::open(&what.target).await?;
    let stop = Stop::listen();
    for queue in queues {
        let to = to.as_ref().map(|to| if to.contains("://") { to.clone() } else { sibling(queue.url(), to) });
        let done = acts.done();
        let act = async |selection: &Selection, dry_run| {
            let mut watch = Watch::begin(queue.depth().visible, &stop);
            let bounds = what.bounds(done, dry_run);
            let mut step = |progress| watch.step(progress);
            let report = queue.redrive(selection, to.as_deref(), &edit, bounds, &mut step).await;
            watch.end();
            report
        };
        if stop.is_asked() || done > 0 && what.bounds(done, false).limit == 0 {
            break;
        }
        acts.one(&queue, (&what, &stop), &selection, act).await?;
    }
    acts.end(&what)
}

/// Discards letters.
pub(super) async fn discard(options: Discard) -> Result<Ended, Error> {
    let Discard { what, save } = options;
    let selection = what.selection()?;
    let mut file = match &save {
        Some(path) if !what.write.dry_run => {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            let failed =
                |e| Error::invalid(format!("{} cannot be made: it must not exist yet", path.display())).caused_by(e);
            Some(file.map_err(failed)?)
        }
        _ => None,
    };
    let done = discard_in(&what, &selection, file.as_mut()).await;
    // One in which nothing is stands in the way of the next try.
    if let Some((file, path)) = file.zip(save).filter(|(file, _)| file.metadata().is_ok_and(|file| file.len() == 0)) {
        drop(file);
        let removed = std::fs::remove_file(&path);
        removed.map_err(|e| Error::new(format!("{} is empty and stays", path.display())).caused_by(e))?;
    }
    done
}

/// Discards letters, each of which is first written to the file.
async fn discard_in(what: &What, selection: &Selection, mut file: Option<&mut File>) -> Result<Ended, Error> {
    let mut acts = Acts::new("Discard", "discarded");
    let queues = which::open(&what.target).await?;
    let stop = Stop::listen();
    for queue in queues {
        let done = acts.done();
        if stop.is_asked() || done > 0 && what.bounds(done, false).limit == 0 {
            break;
        }
        let act = async |selection: &Selection, dry_run| {
            let mut watch = Watch::begin(queue.depth().visible, &stop);
            let save = file.as_deref_mut().map(|file| file as &mut (dyn Write + Send));
            let bounds = what.bounds(done, dry_run);
            let report = queue.discard(selection, bounds, save, &mut |progress| watch.step(progress)).await;
            watch.end();
            report
        };
        acts.one(&queue, (what, &stop), selection, act).await?;
    }
    acts.end(what)
}

fn edit(body: Option<PathBuf>, set: Vec<(FieldPath, String)>) -> Result<Edit, Error> {
    if let Some(path) = body {
        let failed = |e| Error::invalid(format!("{} cannot be read as text", path.display())).caused_by(e);
        return Ok(Edit::Body(std::fs::read_to_string(&path).map_err(failed)?));
    }
    if set.is_empty() {
        return Ok(Edit::None);
    }
    let json = |text: String| {
        let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        if is_json { text } else { serde_json::Value::from(text).to_string() }
    };
    Ok(Edit::Fields(set.into_iter().map(|(path, value)| (path, json(value))).collect()))
}

/// The same act on several queues.
struct Acts {
    verb: &'static str,
    past: &'static str,
    reports: Vec<(String, Report)>,
    declined: bool,
}

impl Acts {
    fn new(verb: &'static str, past: &'static str) -> Self {
        Self { verb, past, reports: Vec::new(), declined: false }
    }

    fn done(&self) -> usize {
        self.reports.iter().map(|(_, report)| report.progress.done).sum()
    }

    /// Acts on one queue: asks first, unless that is not wanted.
    async fn one(
        &mut self,
        queue: &DeadLetterQueue,
        (what, stop): (&What, &Stop),
        selection: &Selection,
        mut act: impl AsyncFnMut(&Selection, bool) -> Result<Report, Error>,
    ) -> Result<(), Error> {
        let (dry_run, asks) = (what.write.dry_run, !what.write.yes);
        let mut report = act(selection, dry_run || asks).await?;
        if asks && !dry_run && report.progress.done > 0 {
            let (is_fifo, letters) = (queue.is_fifo(), which::letters(report.progress.done));
            let question = format!("{} {letters} of {}{}?", self.verb, queue.name(), if is_fifo { BEHIND } else { "" });
            if stop.is_asked() || !stop.at_question(|| confirm::confirmed(&question, &what.write))? {
                self.declined = true;
                return Ok(());
            }
            // What was confirmed, and nothing that came meanwhile.
            let (mut confirmed, mut look) = (selection.clone(), report);
            if is_fifo {
                let now = SystemClock.now();
                confirmed.sent_until = Some(confirmed.sent_until.map_or(now, |until| until.min(now)));
                // Those that stay are met again.
                (look.problems, look.problem_count) = (Vec::new(), 0);
            } else {
                confirmed.ids = look.done.iter().map(|done| done.message_id.clone()).collect();
            }
            report = act(&confirmed, false).await?.after(look);
        }
        if !what.output.json {
            self.print(queue, what, &report);
        }
        self.reports.push((queue.name().to_owned(), report));
        Ok(())
    }

    fn print(&self, queue: &DeadLetterQueue, what: &What, report: &Report) {
        let would = if what.write.dry_run { "would be " } else { "" };
        let mut to: Vec<&str> = report.done.iter().filter_map(|done| done.queue.as_deref()).collect();
        to.sort_unstable();
        to.dedup();
        let to = if to.is_empty() { String::new() } else { format!(" to {}", to.join(", ")) };
        let letters = which::letters(report.progress.done);
        say(format!("{}: {letters} {would}{}{to}.", queue.name(), self.past));
        if report.parked > 0 && !to.is_empty() {
            say(format!(
                "{} of them were parked, and stay so unless their keys have been released: claimant release RECORD",
                report.parked
            ));
        }
        for problem in report.problems.iter().take(SHOWN_MAX) {
            say(format!("  {}: {}", harmless(&problem.message_id), harmless(&problem.why)));
        }
        if report.problem_count > 0 {
            say(format!("{} stayed, for reasons such as these.", report.problem_count));
        }
        if report.came_back > 0 {
            say(format!("{} were given up on again at once, and stay: is the cause fixed?", report.came_back));
        }
        if what.write.dry_run && queue.is_fifo() {
            say("There may be more: SQS shows ten of a message group at a time.");
        }
        if let Some(why) = &report.failed {
            say(format!("It ended early: {}.", harmless(why)));
        } else if report.more {
            say("There may be more: the limit was reached, or the command was ended.");
        }
    }

    fn end(self, what: &What) -> Result<Ended, Error> {
        if what.output.json {
            let reports = self.reports.iter().map(|(queue, report)| {
                let mut json = report.to_json();
                json["dead_letter_queue"] = queue.as_str().into();
                json
            });
            say_json(&json!({ "dry_run": what.write.dry_run, "queues": reports.collect::<Vec<_>>() }));
        } else if self.done() == 0 && !self.declined {
            say("No dead letter fits, or none could go.");
        }
        // A limit that was asked for is no reason.
        let whole = |report: &Report| report.failed.is_none() && (!report.more || what.limit.is_some());
        let good = |(_, report): &(String, Report)| report.problem_count == 0 && report.came_back == 0 && whole(report);
        let good = !self.declined && self.done() > 0 && self.reports.iter().all(good);
        Ok(if good { Ended::Well } else { Ended::WithFaults })
    }
}
