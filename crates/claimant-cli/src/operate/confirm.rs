//! Questions before something is written.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use claimant_core::Error;

use super::options::WriteOptions;

/// Whether to go on: `--yes`, or an answer that begins with y on the terminal.
///
/// # Errors
/// When neither is to be had.
pub(crate) fn confirmed(question: &str, options: &WriteOptions) -> Result<bool, Error> {
    if options.yes {
        return Ok(true);
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Error::invalid(format!(
            "{question} There is no terminal to ask on: give --yes, or --dry-run to see what would be done"
        )));
    }
    let failed = |e| Error::new("the question could not be asked: give --yes").caused_by(e);
    let mut stderr = io::stderr();
    // Not locked any longer than that: what happens meanwhile, such as a Ctrl-C, has something to say, too.
    write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush()).map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}
