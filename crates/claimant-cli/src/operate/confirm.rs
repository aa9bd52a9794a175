//! Questions before something is written.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use claimant_core::Error;

use super::interrupt::Stop;
use super::options::WriteOptions;
use crate::output::{lines, note};

/// Returns a question with where it would be done, as far as that is known.
pub(crate) fn at(question: &str, whereabouts: Option<&str>) -> String {
    whereabouts.map_or_else(|| question.to_owned(), |at| format!("{question} ({at})"))
}

/// Says where a dry run has looked, as far as that is known.
pub(crate) fn note_at(whereabouts: Option<&str>) {
    whereabouts.into_iter().for_each(|at| note(format!("A dry run, in {at}:")));
}

/// Whether to go on: `--yes`, or the answer y or yes on the terminal; `None` where Ctrl-C or SIGTERM was the answer.
///
/// # Errors
/// When neither is to be had.
pub(crate) async fn answered(question: &str, options: &WriteOptions, stop: &Stop) -> Result<Option<bool>, Error> {
    if options.yes {
        return Ok(Some(true));
    }
    if stop.is_asked() {
        return Ok(None);
    }
    can_ask(question)?;
    let question = question.to_owned();
    // Reading from a terminal cannot be cancelled: after Ctrl-C its thread ends with the process.
    let answer = tokio::task::spawn_blocking(move || ask(&question));
    match stop.or_answer(answer).await {
        None => Ok(None),
        Some(Ok(answer)) => answer.map(Some),
        Some(Err(lost)) => Err(failed(io::Error::other(lost))),
    }
}

fn can_ask(question: &str) -> Result<(), Error> {
    match io::stdin().is_terminal() && io::stderr().is_terminal() {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "{question} There is no terminal to ask on: give --yes, or --dry-run to see what would be done"
        ))),
    }
}

fn ask(question: &str) -> Result<bool, Error> {
    let mut stderr = io::stderr();
    // Not locked any longer than that: what happens meanwhile, such as a Ctrl-C, has something to say, too.
    write!(stderr, "{} [y/N] ", lines(question)).and_then(|()| stderr.flush()).map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(&*answer.trim().to_ascii_lowercase(), "y" | "yes"))
}

fn failed(why: io::Error) -> Error {
    Error::new("the question could not be asked: give --yes").caused_by(why)
}
