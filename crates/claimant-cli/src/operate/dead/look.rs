//! `claimant dead list`, `group` and `show`.

use claimant_core::{Error, Timestamp};
use claimant_operate::dead::{self, DeadLetter, DeadLetterQueue, Groups, Report};
use claimant_operate::text::{harmless, typed};
use serde_json::{Value, json};

use super::seen::{Seen, end};
use super::several::{self, What};
use super::which::{self, Watch, Which, age};
use crate::exit::Ended;
use crate::operate::options::{OutputOptions, TargetOptions};
use crate::operate::parse;
use crate::operate::table::{Fit, Table, ago};
use crate::output::{note, say, say_json};

/// Letters that are listed unless more are asked for.
const LISTED: usize = 100;

/// The columns of a list of letters.
const LETTERS: [(&str, Fit); 6] = [
    ("ID", Fit::Whole),
    ("GROUP", Fit::Whole),
    ("CONSUMER", Fit::Middle),
    ("OUTCOME", Fit::Whole),
    ("AGE", Fit::Number),
    ("ERROR", Fit::End),
];

/// Letters that are shown at once.
const SHOWN_MAX: usize = 100;

/// Group dead letters by what they have in common: consumer, outcome, and error without numbers and ids.
///
/// Exit codes: 0 where there is none, 1 where there is one, 2 where a queue could not be read, or none was found and there may be one that
/// was not shown, 130 where Ctrl-C or SIGTERM ended it.
#[derive(Debug, clap::Args)]
pub(crate) struct Group {
    #[command(flatten)]
    which: Which,

    /// Read at most this many letters of each queue
    #[arg(long, value_name = "N", default_value_t = dead::LOOKED_AT_MAX, value_parser = limit)]
    limit: usize,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// List dead letters, one a line. Bodies are not shown.
///
/// Exit codes: 0 where there is none, 1 where there is one, 2 where a queue could not be read, or none was found and there may be one that
/// was not shown, 130 where Ctrl-C or SIGTERM ended it.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    which: Which,

    /// At most this many of each queue
    #[arg(long, value_name = "N", default_value_t = LISTED, value_parser = limit)]
    limit: usize,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// Show dead letters by their ids: where they came from, why, and what was tried.
///
/// Exit codes: 0 where all were found, 1 where one was not, 2 where one was not and a queue could not be read, 130 where Ctrl-C or SIGTERM ended it.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The ids: of the dead letters, or those that their messages had before; 100 at most
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,

    /// Show bodies, and the values of attributes
    #[arg(long)]
    show_body: bool,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(limit) if (1..=dead::LOOKED_AT_MAX).contains(&limit) => Ok(limit),
        _ => Err(format!("give a whole number from 1 to {}", dead::LOOKED_AT_MAX)),
    }
}

/// Groups the letters of each queue.
pub(super) async fn group(options: Group) -> Result<Ended, Error> {
    let (selection, output) = (options.which.selection(&[])?, options.output);
    let queues = which::open(&options.target, output).await?;
    let (stop, mut seen) = (which::stop(), Seen::of(&queues, "groups"));
    let add = |groups: &mut Groups, letter: &DeadLetter| {
        groups.add(letter);
        true
    };
    let what = What { selection: &selection, limit: options.limit, add };
    let shown = |seen: &mut Seen, queue: &DeadLetterQueue, report: &Report, groups: Groups| {
        let groups = groups.into_sorted();
        if options.output.json {
            seen.document(queue.name(), report, groups.iter().map(dead::Group::to_json).collect());
            note_more(queue, report);
        } else {
            say(headline(queue, report));
            print_groups(&groups);
        }
    };
    several::show(queues, &what, (&mut seen, &stop), shown).await?;
    Ok(end(options.output, seen, &stop))
}

fn print_groups(groups: &[dead::Group]) {
    let columns = [
        ("GROUP", Fit::Whole),
        ("LETTERS", Fit::Number),
        ("CONSUMER", Fit::Middle),
        ("OUTCOME", Fit::Whole),
        ("OLDEST", Fit::Number),
        ("NEWEST", Fit::Number),
    ];
    let mut table = Table::new(&columns);
    for group in groups {
        table.row([
            group.fingerprint.to_string(),
            group.count.to_string(),
            group.consumer.clone().unwrap_or_default(),
            group.outcome.clone().unwrap_or_default(),
            age(group.sent.map(|(oldest, _)| oldest)),
            age(group.sent.map(|(_, newest)| newest)),
        ]);
    }
    // A cause has a line of its own: in a column of a narrow terminal nothing would be left of it.
    let causes = groups.iter().map(|group| format!("          {}", harmless(&group.cause)));
    let mut lines = table.single_lines().into_iter();
    lines.next().filter(|_| !groups.is_empty()).iter().for_each(say);
    lines.zip(causes).for_each(|(line, cause)| say(format!("{line}\n{cause}")));
}

/// What is shown of a letter: its row of the table, or its JSON. Its body, which can be a megabyte, is not.
enum Shown {
    Row([String; 6]),
    Json(Value),
}

/// Lists the letters of each queue.
pub(super) async fn list(options: List) -> Result<Ended, Error> {
    let (selection, output) = (options.which.selection(&[])?, options.output);
    let queues = which::open(&options.target, output).await?;
    let (stop, mut seen) = (which::stop(), Seen::of(&queues, "letters"));
    let add = |letters: &mut Vec<Shown>, letter: &DeadLetter| {
        letters.push(if options.output.json { Shown::Json(letter.to_json(false)) } else { Shown::Row(row(letter)) });
        true
    };
    let what = What { selection: &selection, limit: options.limit, add };
    let shown = |seen: &mut Seen, queue: &DeadLetterQueue, report: &Report, letters: Vec<Shown>| {
        let (mut table, mut documents) = (Table::new(&LETTERS), Vec::new());
        let is_empty = letters.is_empty();
        for letter in letters {
            match letter {
                Shown::Row(row) => table.row(row),
                Shown::Json(document) => documents.push(document),
            }
        }
        if options.output.json {
            seen.document(queue.name(), report, documents);
            note_more(queue, report);
            return;
        }
        say(headline(queue, report));
        if !is_empty {
            table.lines().iter().for_each(say);
        }
    };
    several::show(queues, &what, (&mut seen, &stop), shown).await?;
    Ok(end(options.output, seen, &stop))
}

fn row(letter: &DeadLetter) -> [String; 6] {
    [
        letter.message_id.clone(),
        letter.fingerprint.to_string(),
        letter.source().or(letter.why.consumer.as_deref()).unwrap_or_default().to_owned(),
        letter.why.outcome.clone().unwrap_or_default(),
        age(letter.sent_at),
        letter.why.error.clone().unwrap_or_else(|| letter.cause()),
    ]
}

/// Shows the letters with these ids.
pub(super) async fn show(options: Show) -> Result<Ended, Error> {
    parse::at_most(SHOWN_MAX, "ids", &options.ids)?;
    let selection = Which::default().selection(&options.ids)?;
    let (mut letters, queues) = (Vec::new(), which::open(&options.target, options.output).await?);
    let (stop, mut seen) = (which::stop(), Seen::of(&queues, "letters"));
    let add = |letters: &mut Vec<DeadLetter>, letter: &DeadLetter| {
        letters.push(letter.clone());
        true
    };
    let mut watch = Watch::begin(0, true, &stop);
    let what = What { selection: &selection, limit: dead::LOOKED_AT_MAX, add };
    for (name, queue) in queues {
        if stop.is_asked() {
            seen.not_reached.push(name);
            continue;
        }
        // One after the other: what is found in one keeps the next from being received.
        let read = several::read(vec![(name, queue)], &what, &mut watch).await;
        if read.iter().any(|(_, _, read)| read.is_err()) {
            watch.end();
        }
        for (name, found, read) in read {
            letters.extend(found.into_iter().map(|letter| (name.clone(), letter)));
            seen.add(&name, read)?;
        }
        let is_met = |id: &String| letters.iter().any(|(_, letter)| letter.message_id == *id);
        if options.ids.iter().all(is_met) {
            break;
        }
    }
    watch.end();
    let all = !seen.more && seen.not_reached.is_empty();
    let missing: Vec<_> =
        options.ids.iter().filter(|id| !letters.iter().any(|(_, letter)| letter.has_id(id))).collect();
    if options.output.json {
        let letters = letters.iter().map(|(queue, letter)| {
            let mut json = letter.to_json(options.show_body);
            json["queue"] = queue.as_str().into();
            json
        });
        let letters: Vec<_> = letters.collect();
        let failed: Vec<_> =
            seen.documents.iter().map(|one| json!({ "queue": one["queue"], "failed": one["failed"] })).collect();
        say_json(&json!({ "letters": letters, "missing": missing, "complete": all, "failed": failed }));
    } else {
        for (number, (queue, letter)) in letters.iter().enumerate() {
            if number > 0 {
                say("");
            }
            for (name, text) in lines(queue, letter, options.show_body) {
                say(format!("{name:<14}{}", harmless(&text)));
            }
        }
        for id in &missing {
            let why = if all {
                "no dead letter has this id"
            } else {
                "not among the dead letters that were read; there are others"
            };
            say(format!("{}: {why}.", harmless(id)));
        }
    }
    Ok(match missing.is_empty() {
        true => Ended::Well,
        false if stop.is_asked() && !all => Ended::Interrupted,
        false if seen.failed => Ended::NotDone,
        false => Ended::WithFaults,
    })
}

/// A letter as lines: a word and what it is.
fn lines(queue: &str, letter: &DeadLetter, whole: bool) -> Vec<(&'static str, String)> {
    let sent = |at: Timestamp| format!("{}, {}", at.to_utc(), ago(at));
    let mut lines = vec![("id", letter.message_id.clone()), ("queue", queue.to_owned()), ("how", letter.how())];
    let why = &letter.why;
    let said = [
        ("consumer", why.consumer.clone()),
        ("outcome", why.outcome.clone()),
        ("error", why.error.clone()),
        ("record", why.record.as_deref().map(|record| typed(record).into_owned())),
        ("run", why.attempt.map(|attempt| attempt.to_string())),
        ("earlier ids", (!letter.earlier_ids.is_empty()).then(|| letter.earlier_ids.join(", "))),
        ("sent back", (letter.redrives > 0).then(|| format!("{} times", letter.redrives))),
        ("sent", letter.sent_at.map(sent)),
        ("received", Some(format!("{} times", letter.receives))),
        ("message group", letter.group.clone()),
        ("group", Some(letter.fingerprint.to_string())),
    ];
    lines.extend(said.into_iter().filter_map(|(name, text)| Some((name, text?))));
    for (name, kind, value) in letter.attributes() {
        let value = if whole { value.unwrap_or("(bytes)") } else { "not shown" };
        lines.push(("attribute", format!("{name} ({kind}): {value}")));
    }
    let body = if whole {
        letter.body().to_owned()
    } else {
        format!("{} bytes, not shown (--show-body)", letter.body().len())
    };
    lines.push(("body", body));
    lines
}

/// Says beside JSON that there may be more: who takes the letters from it does not look at each field.
fn note_more(queue: &DeadLetterQueue, report: &Report) {
    if report.unseen.any() {
        note(headline(queue, report));
    }
}

/// One line about a queue and what was read of it.
fn headline(queue: &DeadLetterQueue, report: &Report) -> String {
    let letters = which::letters(report.progress.selected);
    let more = if report.unseen.any() { ", and perhaps more" } else { "" };
    let not_shown = report.unseen.not_shown_in_words().map_or_else(String::new, |words| format!("; {words}"));
    let mut line = format!("{}: {letters}{more}{not_shown}", queue.name());
    if queue.is_fifo() && !queue.is_only_looked_at() {
        line.push_str("; of a message group SQS shows ten at a time");
    }
    if let Some(careful) = which::careful(queue) {
        line.push_str(&format!("; {careful}"));
    }
    line
}
