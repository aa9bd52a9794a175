//! `claimant dead redrive` and `discard`: their options, and what each does to a queue.

use std::io::Write;
use std::path::PathBuf;

use claimant_core::Error;
use claimant_operate::dead::{Bounds, DeadLetterQueue, Edit, FieldPath, Observer, SaveFile, Selection};
use claimant_operate::target::sibling;
use claimant_operate::text::harmless;

use super::acts::{Acts, What};
use super::which;
use crate::exit::Ended;
use crate::operate::body;

/// Send dead letters back to their queue: each is copied first, and deleted here once SQS has confirmed the copy.
///
/// A letter that SQS moved goes to the queue that it came from; one that a function copied, to the only queue of this dead-letter
/// queue, or to --to. What is completed is a duplicate then and does not run again, where its key comes from the payload; where it is
/// the message's id, it runs again, since the copy has another one. Parked work stays parked until its key is released (claimant
/// release RECORD). Another body under the same key is a conflict, until the key is forgotten (claimant forget RECORD).
///
/// Exit codes: 0 where all that fit were sent back, or as many as --limit says, 1 where none fits, a letter stayed, one that was named was not
/// found, there may be more within the limit, or the question was answered with no, 2 where nothing could be done, 130 where Ctrl-C or SIGTERM ended it.
#[derive(Debug, clap::Args)]
pub(crate) struct Redrive {
    #[command(flatten)]
    what: What,

    /// The queue to send to, by its name or URL [default: where each came from]
    #[arg(long, value_name = "QUEUE")]
    to: Option<String>,

    /// Send the text in this file instead of the body, - for standard input; for one letter
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    body: Option<PathBuf>,

    /// Set a field of JSON bodies, such as currency=EUR: to the same value in every letter that is sent. The value is JSON, or else a
    /// text. May be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = which::field)]
    set: Vec<(FieldPath, String)>,
}

/// Delete dead letters, with a copy of them where one is asked for.
///
/// Exit codes: 0 where all that fit were discarded, or as many as --limit says, 1 where none fits, a letter stayed, one that was named was not
/// found, there may be more within the limit, or the question was answered with no, 2 where nothing could be done, 130 where Ctrl-C or SIGTERM ended it.
#[derive(Debug, clap::Args)]
pub(crate) struct Discard {
    #[command(flatten)]
    what: What,

    /// First write each letter to this file, whole, as a line of JSON, and on to the disk; the file must not exist yet, and is no output (-)
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// Sends letters back.
pub(super) async fn redrive(options: Redrive) -> Result<Ended, Error> {
    let Redrive { what, to, body, set } = options;
    let selection = what.selection()?;
    let sets = set.iter().map(|(path, value)| format!(", {path} set to {value} in each")).collect::<String>();
    let edit = edit(body, set)?;
    let act = async |queue: &DeadLetterQueue, selection: &Selection, bounds: Bounds, observer: Observer<'_>| {
        let to = to.as_ref().map(|to| if to.contains("://") { to.clone() } else { sibling(queue.url(), to) });
        queue.redrive(selection, to.as_deref(), &edit, bounds, observer).await
    };
    let acts = Acts::new("Send back", "sent back").goes(to.clone(), harmless(&sets));
    acts.on_each(&what, &selection, act).await
}

/// Discards letters.
pub(super) async fn discard(options: Discard) -> Result<Ended, Error> {
    let Discard { what, save } = options;
    let selection = what.selection()?;
    let mut file = match &save {
        Some(path) if path.as_os_str() == "-" => {
            return Err(Error::invalid(
                "--save - would not be on a disk before the letters are deleted: name a file; for one named -, write ./-",
            ));
        }
        Some(path) if !what.write.dry_run => {
            let failed =
                |e| Error::invalid(format!("{} cannot be made: it must not exist yet", path.display())).caused_by(e);
            Some(SaveFile::create(path).map_err(failed)?)
        }
        _ => None,
    };
    let act = async |queue: &DeadLetterQueue, selection: &Selection, bounds: Bounds, observer: Observer<'_>| {
        let save = file.as_mut().map(|file| file as &mut (dyn Write + Send));
        queue.discard(selection, bounds, save, observer).await
    };
    let done = Acts::new("Discard", "discarded").on_each(&what, &selection, act).await;
    // One in which nothing is stands in the way of the next try.
    if let Some((file, path)) = file.zip(save).filter(|(file, _)| file.is_empty()) {
        drop(file);
        let removed = std::fs::remove_file(&path);
        removed.map_err(|e| Error::new(format!("{} is empty and stays", path.display())).caused_by(e))?;
    }
    done
}

fn edit(body: Option<PathBuf>, set: Vec<(FieldPath, String)>) -> Result<Edit, Error> {
    if let Some(path) = body {
        return Ok(Edit::Body(body::read(&path)?));
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
