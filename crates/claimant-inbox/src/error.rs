//! Maps database errors to store errors.

use claimant_core::StoreErrorKind::{Corrupt, Misconfigured, Other, Unreachable};
use claimant_core::{Failure, StoreError};
use claimant_sql::parts::{self, Table};

/// The inbox's table.
pub(crate) const INBOX: Table =
    Table { name: "claimant_inbox", migrations: "claimant-inbox/migrations", is_migrated: false };

/// Returns the error of `operation`, and how to fix it.
pub(crate) fn explain(operation: &str, error: &sqlx::Error) -> StoreError {
    // A constraint can be that of another table which refers to this one.
    if let sqlx::Error::Database(answer) = error
        && let Some(code) = answer.code().filter(|code| code.starts_with("23"))
    {
        let what = format!("the server refused it (code {code}): a constraint is violated");
        return StoreError::new(Other, format!("{operation} failed: {what}"));
    }
    parts::explain(operation, error, &INBOX)
}

/// Returns the error of the statement that stores messages, and how to fix it. It is known that none was stored where a constraint or a
/// trigger refuses one, and the next try gets the same answer.
pub(crate) fn explain_store(operation: &str, error: &sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|answer| answer.code()).unwrap_or_default();
    if matches!(code.get(..2), Some("23" | "P0")) {
        let fix = "is there a constraint or a trigger on claimant_inbox that is not of its migrations?";
        return StoreError::new(
            Misconfigured,
            format!("{operation} failed: the server refused it (code {code}): {fix}"),
        );
    }
    explain(operation, error)
}

/// Returns the error of claimant's own statement in the transaction of a handler that has returned. Another one of claimant's has succeeded there
/// before: what has changed since is the handler's.
pub(crate) fn explain_after_handler(operation: &str, error: &sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|answer| answer.code()).unwrap_or_default();
    let fix = match (code.as_ref(), parts::fix_of_unread(&code)) {
        ("25006", _) => "did the handler make its transaction read-only?",
        ("42P01", _) => "the table claimant_inbox was not found: did the handler set a search_path without its schema?",
        ("42501", _) => "did the handler set a role that may not write the table claimant_inbox?",
        (_, Some(fix)) => fix,
        (_, None) => return explain(operation, error),
    };
    StoreError::new(Other, format!("{operation} failed: the server refused it (code {code}): {fix}"))
}

/// Returns the error of a commit, and how to fix it.
pub(crate) fn explain_commit(error: &sqlx::Error) -> StoreError {
    const OPERATION: &str = "committing";
    // Claimant's own statements have succeeded: what is checked only now is the handler's.
    let code = error.as_database_error().and_then(|answer| answer.code()).unwrap_or_default();
    if matches!(code.get(..2), Some("22" | "23" | "42")) {
        let fix = "see what is checked at the commit, such as a deferred constraint or its trigger";
        return StoreError::new(Other, format!("{OPERATION} failed: the server refused it (code {code}): {fix}"));
    }
    explain(OPERATION, error)
}

/// Returns the error of an operation without an answer in its time.
pub(crate) fn no_answer(operation: &str) -> StoreError {
    StoreError::new(Unreachable, format!("{operation} failed: the server gave no answer in time"))
}

/// Returns the failure of an attempt whose body did not come, as if its handler had returned it.
pub(crate) fn unread(error: &StoreError, is_late: bool) -> Failure {
    match error.kind() {
        Corrupt => Failure::terminal(error.to_string()),
        _ if is_late => Failure::retry(format!(
            "{error}: where its body is too large for the line to the database, give handlers more time (Worker::timeout)"
        )),
        _ => Failure::retry(error.to_string()),
    }
}

/// Returns whether the same can succeed later.
pub(crate) fn is_transient(error: &StoreError) -> bool {
    error.kind().is_transient()
}

/// Returns whether, of messages that are stored together, those could be stored that this is not of.
pub(crate) fn can_be_of_one(error: &StoreError) -> bool {
    is_transient(error) || error.kind() == Misconfigured
}

/// Returns whether a worker goes on after it: also after one of no known meaning, as a settlement is tried again after it.
pub(crate) fn may_pass(error: &StoreError) -> bool {
    is_transient(error) || error.kind() == Other
}

/// Returns the failure of an attempt whose transaction did not commit, as if its handler had returned it.
pub(crate) fn uncommitted(error: &StoreError) -> Failure {
    Failure::retry(format!("the handler returned, and its transaction did not commit: {error}"))
}

/// Returns the failure of an attempt whose commit met this, as if its handler had returned it.
pub(crate) fn commit_failed(error: &StoreError) -> Failure {
    if error.kind() != Unreachable {
        return uncommitted(error);
    }
    Failure::retry(format!("the handler returned, and it is not known whether its transaction committed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::error::Error;
    use std::fmt;

    use sqlx::error::{DatabaseError, ErrorKind};

    use super::*;

    /// An answer with this code.
    #[derive(Debug)]
    struct Answer(&'static str);

    impl fmt::Display for Answer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.message())
        }
    }

    impl Error for Answer {}

    impl DatabaseError for Answer {
        fn message(&self) -> &'static str {
            "secret"
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    /// A worker goes on after what an intake gives up: it is of one message.
    #[test]
    fn what_a_constraint_refuses_is_not_stored_by_another_try() {
        let own = "is there a constraint or a trigger on claimant_inbox";
        for (code, explain, kind, told) in [
            ("23514", explain_store as fn(&str, &sqlx::Error) -> StoreError, Misconfigured, own),
            ("P0001", explain_store, Misconfigured, own),
            ("57P01", explain_store, Unreachable, ""),
            ("23503", explain, Other, "a constraint is violated"),
        ] {
            let error = explain("storing", &sqlx::Error::Database(Box::new(Answer(code))));
            let text = error.to_string();
            assert_eq!(error.kind(), kind, "{text}");
            assert!(text.contains(told) && (kind == Unreachable || !text.contains("secret")), "{text}");
        }
    }

    #[test]
    fn only_a_commit_that_was_refused_is_said_not_to_have_happened() {
        let cut = sqlx::Error::Io(std::io::ErrorKind::UnexpectedEof.into());
        let refused = StoreError::new(claimant_core::StoreErrorKind::Throttled, "committing failed: a lock timeout");
        for (error, is_known) in [(explain_commit(&cut), false), (no_answer("committing"), false), (refused, true)] {
            let why = commit_failed(&error).why;
            assert_eq!(why.contains("did not commit"), is_known, "{why}");
        }
    }
}
