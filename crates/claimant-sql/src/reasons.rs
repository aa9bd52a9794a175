//! Says why a transaction did not commit: its completion, or the commit, was refused.

use crate::error::{RECORDS, SqlError};

/// Describes an error by its code alone, PostgreSQL's or MySQL's number: the server's message can be about the handler's own rows.
pub(crate) fn refused(what: &str, error: &SqlError) -> String {
    let table = RECORDS.name;
    match error.code.as_str() {
        // Some servers of MySQL and MariaDB end it without a word.
        "" => format!(
            "{what} had no answer: {}. If the transaction was idle for longer than its lease, leave .lease(…) out; or a proxy or load \
             balancer closed it meanwhile, whose idle limit has to be longer than a handler works",
            error.text
        ),
        "42P01" => {
            format!("{what} did not find the table {table}: did the handler set a search_path without its schema?")
        }
        "42501" => format!(
            "{what} was denied: did the handler set a role that may not write {table}, or has its user no UPDATE on it, or the table a \
             row-level policy against it?"
        ),
        // No statement of a handler can have changed the role.
        "1142" => format!("{what} was denied. {}", RECORDS.rights()),
        "25006" => format!("{what} was denied: did the handler make its transaction read-only?"),
        "25P04" => {
            "it was open for longer than its transaction_timeout, so the server ended it: leave that at 0".to_owned()
        }
        // Without a lease of its own, a consumer's handler is cancelled before that.
        "25P03" | "4031" => {
            "it was idle for too long, so the server ended it: leave .lease(…) out, and the connection's \
             time limits as they are"
                .to_owned()
        }
        "25P02" => "a statement of the handler had failed, and the handler continued".to_owned(),
        code => format!("the database refused {what} (code {code})"),
    }
}

/// Describes the error of a completion, as [`refused`] and by what the handler may have left behind.
pub(crate) fn incomplete(what: &str, error: &SqlError) -> String {
    let refused = refused(what, error);
    match fix_of_unread(&error.code) {
        Some(fix) => format!("{refused}: {fix}"),
        None => refused,
    }
}

/// Returns how to fix what PostgreSQL says by this SQLSTATE to a statement whose values fit: data, a constraint, an exception. The handler's
/// own statement said it, after its rows were no longer read; the answer then comes as that to the next one.
#[must_use]
pub fn fix_of_unread(code: &str) -> Option<&'static str> {
    // Not a number of MySQL.
    let is_such = code.len() == 5 && ["22", "23", "P0"].iter().any(|class| code.starts_with(class));
    is_such.then_some(
        "a statement of the handler failed after it had stopped reading its rows: read them to the end, or take one by fetch_optional; \
         or claimant's table has a trigger, which failed",
    )
}
