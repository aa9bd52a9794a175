//! What went wrong, in the words of a store.

use claimant_core::StoreErrorKind::{Other, Unreachable};
use claimant_core::{Failure, StoreError};
use claimant_sql::parts::{self, Table};

/// The inbox's table.
const INBOX: Table = Table { name: "claimant_inbox", migrations: "claimant-inbox/migrations" };

/// What `operation` ran into.
pub(crate) fn explain(operation: &str, error: &sqlx::Error) -> StoreError {
    // Handlers' tables have constraints, too, and a commit can be the first to look at them.
    if let sqlx::Error::Database(answer) = error
        && let Some(code) = answer.code().filter(|code| code.starts_with("23"))
    {
        let what = format!("the server refused it (code {code}): a constraint is violated");
        return StoreError::new(Other, format!("{operation} failed: {what}"));
    }
    parts::explain(operation, error, &INBOX)
}

/// No answer to this operation in the time it was given.
pub(crate) fn no_answer(operation: &str) -> StoreError {
    StoreError::new(Unreachable, format!("{operation} failed: the server gave no answer in time"))
}

/// Whether the same can succeed later.
pub(crate) fn passes(error: &StoreError) -> bool {
    error.kind().is_transient()
}

/// Why a handler's transaction did not commit, as if the handler had said so.
pub(crate) fn uncommitted(error: &StoreError) -> Failure {
    Failure::retry(format!("the handler returned, and its transaction did not commit: {error}"))
}
