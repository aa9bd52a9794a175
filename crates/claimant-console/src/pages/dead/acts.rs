//! `POST /dead/redrive` and `POST /dead/discard`, as `claimant dead redrive` and `claimant dead discard` do.

use std::collections::BTreeSet;
use std::path::PathBuf;

use axum::extract::State;
use axum::response::Response;
use claimant_core::{Clock as _, Error, SystemClock, Timestamp};
use claimant_operate::dead::{Bounds, DeadLetterQueue, Edit, Ids, LOOKED_AT_MAX, Report, SaveFile, Selection};

use super::letters::{self, AFTER, UNTIL};
use crate::act::Act;
use crate::console::{Console, DRAFT};
use crate::done::Done;
use crate::fields::{BODY, Fields};
use crate::timeline::words::sentence;
use crate::ui::nav::Tab;
use crate::ui::text;

/// The field of letters that are meant, which comes once for each.
const ID: &str = "id";

/// What sending back is asked for with.
const REDRIVEN: [&str; 7] = ["queue", "group", ID, UNTIL, "to", BODY, "dry_run"];

pub(super) async fn redrive(State(console): State<Console>, act: Act) -> Response {
    let (act, done) = act.once(&console, |console, act| async move { redriven(&console, &act).await }).await;
    act.ask.done_at(&console, Tab::Dead, done, || form(&console, &act.fields))
}

pub(super) async fn discard(State(console): State<Console>, act: Act) -> Response {
    let (act, done) = act.once(&console, |console, act| async move { discarded(&console, &act).await }).await;
    act.ask.done_at(&console, Tab::Dead, done, || see(&act.fields))
}

/// Returns where the letters are.
fn see(fields: &Fields) -> String {
    match (fields.get("group"), fields.get("queue")) {
        (Some(group), Some(queue)) => letters::path(group, queue),
        _ => letters::CAUSES.to_owned(),
    }
}

/// Returns where the form is with what was typed; where nothing was, where the letters are.
fn form(console: &Console, fields: &Fields) -> String {
    match (fields.all(BODY).next(), fields.get(ID), fields.get("group")) {
        (Some(_), Some(id), Some(_)) => {
            let after =
                fields.get(AFTER).map_or_else(String::new, |after| format!("&{AFTER}={}", text::encoded(after)));
            let draft = console.keep_draft(fields.clone());
            format!("{}{after}&edit={}&{DRAFT}={draft}", see(fields), text::encoded(id))
        }
        _ => see(fields),
    }
}

async fn redriven(console: &Console, act: &Act) -> Result<Done, Error> {
    console.check_writes()?;
    let fields = &act.fields;
    // Where a page began is a field of the form of one letter, to which it goes back.
    if fields.came(BODY) {
        act.takes(&[&REDRIVEN[..], &[AFTER]].concat(), Some(ID))?
    } else {
        act.takes(&REDRIVEN, Some(ID))?
    }
    let place = console.place();
    let dead = letters::open(place, fields.required("queue")?).await?;
    let (selection, bounds) = (selection(fields)?, bounds(fields)?);
    let to = match fields.all("to").next().map(str::trim) {
        None | Some("") if fields.came("to") => {
            return Err(Error::invalid("choose the queue that the message goes to"));
        }
        name => name.map(|name| letters::destination(place, &dead, name)).transpose()?,
    };
    let edit = act.body(true)?.map(if act.is_typed { Edit::Typed } else { Edit::Body }).unwrap_or_default();
    let report = dead.redrive(&selection, to.as_deref(), &edit, bounds, &mut |_| console.go_on()).await?;
    let mut said = format!("{} {}sent back", counted(&report), would_be(bounds));
    let queues: BTreeSet<_> = report.done.iter().filter_map(|done| done.queue.as_deref()).collect();
    if !queues.is_empty() {
        said.push_str(&format!(" to {}", queues.into_iter().collect::<Vec<_>>().join(", ")));
    }
    said.push('.');
    if report.parked > 0 {
        said.push_str(" Parked work runs again only once its key is released.");
    }
    // A letter that is still here, and was not sent, is edited on.
    let kept = report.progress.done == 0 && report.stayed() > 0;
    let see = if kept { form(console, fields) } else { see(fields) };
    Ok(done(console, see, said, (&dead, &report, bounds.dry_run.then_some(&selection.ids.named))))
}

async fn discarded(console: &Console, act: &Act) -> Result<Done, Error> {
    console.check_writes()?;
    act.takes(&["queue", "group", ID, UNTIL, "dry_run"], Some(ID))?;
    let fields = &act.fields;
    let dead = letters::open(console.place(), fields.required("queue")?).await?;
    let (selection, bounds) = (selection(fields)?, bounds(fields)?);
    let (path, mut file) = saved(dead.name())?;
    let report = dead.discard(&selection, bounds, Some(&mut file), &mut |_| console.go_on()).await;
    // Where it failed, nothing was deleted; what was saved otherwise may be all that is left of a letter.
    let is_saved = report.is_ok() && !file.is_empty();
    if !is_saved {
        // OK to fail: a file of ours that nobody needs, in a directory for such files.
        let _ = std::fs::remove_file(&path);
    }
    let report = report?;
    let saved = match (is_saved, report.progress.done) {
        (false, _) => String::new(),
        (true, 0) => format!("; a copy is in {}", path.display()),
        (true, _) => format!("; saved in {}", path.display()),
    };
    let said = format!("{} {}discarded{saved}.", counted(&report), would_be(bounds));
    let mut done = done(console, see(fields), said, (&dead, &report, bounds.dry_run.then_some(&selection.ids.named)));
    if is_saved {
        done.value["saved"] = path.display().to_string().into();
    }
    Ok(done)
}

/// Returns which letters are meant: those of a group, or some of them, by the ids that they have now. A letter that was sent back, and is
/// here again as another, is none that the page showed.
fn selection(fields: &Fields) -> Result<Selection, Error> {
    let ids = Ids::now(fields.all(ID).filter(|id| !id.is_empty()));
    if ids.named.is_empty() && fields.came(ID) {
        return Err(Error::invalid("id names no letter: leave it out to mean all letters of the group"));
    }
    let group = if ids.named.is_empty() { Some(fields.required("group")?) } else { fields.get("group") };
    fields.narrowing(UNTIL)?;
    let until = fields.number(UNTIL, u64::MAX, 0..=u64::MAX)?;
    let sent_until = (until != u64::MAX).then(|| Timestamp::from_millis(until));
    let selection = Selection { ids, sent_until, ..Selection::groups(group) };
    selection.check_act()?;
    Ok(selection)
}

fn bounds(fields: &Fields) -> Result<Bounds, Error> {
    Ok(Bounds { limit: LOOKED_AT_MAX, per_s: None, dry_run: fields.flag("dry_run")? })
}

fn counted(report: &Report) -> String {
    text::counted(report.progress.done as u64, "dead letter", "dead letters")
}

const fn would_be(bounds: Bounds) -> &'static str {
    if bounds.dry_run { "would be " } else { "" }
}

/// Returns what was done, or would be, and what was not; `looked_for` are the ids that were named where it was a dry run.
fn done(
    console: &Console,
    see: String,
    mut said: String,
    (dead, report, looked_for): (&DeadLetterQueue, &Report, Option<&BTreeSet<String>>),
) -> Done {
    let why = |copied: bool| report.problems.iter().find(|problem| (problem.copied == Some(true)) == copied);
    if let Some(problem) = why(false) {
        let letters = text::counted(report.stayed() as u64, "letter was", "letters were");
        said.push_str(&format!(" {letters} not: {}", problem.why));
    }
    if let Some(copied) = report.copied_in_words() {
        let why = why(true).map_or_else(String::new, |problem| format!(" {}", sentence(&problem.why)));
        said.push_str(&format!(" {copied}{why}"));
    }
    if let Some(why) = &report.failed {
        said.push_str(&format!(" It ended early: {why}."));
    }
    let more = report.more_in_words(dead.is_fifo(), looked_for);
    let more = match more.as_deref().filter(|_| report.unseen.cut && console.is_stopping()) {
        Some(_) => Some("The console was stopped: there may be more of them, which stayed.".to_owned()),
        None => more,
    };
    let stay_hidden = report.unseen.stay_hidden_in_words();
    for sentence in report.came_back_in_words().into_iter().chain(more).chain(stay_hidden) {
        said.push_str(&format!(" {sentence}"));
    }
    if !report.missing.is_empty() {
        said.push_str(&format!(
            " {} not met: {}sent back or discarded meanwhile, or read by something else.",
            text::counted(report.missing.len() as u64, "letter was", "letters were"),
            if report.unseen.cut { "not reached, " } else { "" }
        ));
    }
    let is_done = report.progress.done > 0;
    if !is_done && report.problem_count == 0 {
        said = none(console, dead, report);
    }
    let mut value = report.to_json();
    value["missing"] = report.missing.iter().map(String::as_str).collect();
    value["dry_run"] = looked_for.is_some().into();
    Done::of(is_done, said, see, value)
}

/// Says why no letter was met that was meant.
fn none(console: &Console, dead: &DeadLetterQueue, report: &Report) -> String {
    if report.unseen.cut {
        let among = text::counted(report.progress.looked_at as u64, "letter", "letters");
        return match console.is_stopping() {
            true => format!("The console was stopped before a letter was met that fits: the {among} looked at stayed."),
            false => format!("No letter fits among the {among} looked at, and there are more."),
        };
    }
    match report.unseen.not_shown_in_words() {
        None => format!("No letter fits: it was {} meanwhile.", letters::gone(dead)),
        Some(not_shown) => format!("No letter fits that can be read now. {not_shown}. Try again."),
    }
}

/// Opens a new file for letters that are discarded: only its owner can read it.
fn saved(queue: &str) -> Result<(PathBuf, SaveFile), Error> {
    let name = format!("claimant-discarded-{queue}-{}.jsonl", SystemClock.now().as_millis());
    let path = std::env::temp_dir().join(name);
    let file = SaveFile::create(&path).map_err(|e| {
        Error::new(format!("nothing was discarded: {} cannot be made, to save the letters in", path.display()))
            .caused_by(e)
    })?;
    Ok((path, file))
}
