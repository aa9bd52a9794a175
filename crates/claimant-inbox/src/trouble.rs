//! What went wrong, in the words of a store.

use claimant_core::StoreErrorKind::{self, Denied, Misconfigured, Other, Throttled, TooLarge, Unreachable};
use claimant_core::{Failure, StoreError};

/// What mends a table that is missing or not as it should be.
const MIGRATE: &str = ": the table claimant_inbox is missing or not as claimant makes it; apply the migrations: call migrate() \
                       once, or run the files of claimant-inbox/migrations in this database";

/// What `operation` ran into.
///
/// Built from codes and from texts that cannot hold a value: `Debug` of a driver's error, and some messages of the server,
/// show keys.
pub(crate) fn explain(operation: &str, error: &sqlx::Error) -> StoreError {
    let (kind, what) = match error {
        sqlx::Error::Database(answer) => {
            let code = answer.code().unwrap_or_default();
            let (kind, telling, mend) = meaning(&code);
            let message = if telling { answer.message() } else { "the server refused it" };
            (kind, format!("{message} (code {code}){mend}"))
        }
        sqlx::Error::Io(error) => (Unreachable, format!("the connection failed: {error}")),
        sqlx::Error::Tls(error) => (
            Unreachable,
            format!(
                "no TLS with the server: {error}. Does the URL name the CA's file, and the host of the certificate?"
            ),
        ),
        sqlx::Error::Configuration(error) => (Misconfigured, format!("the URL or its options are wrong: {error}")),
        sqlx::Error::PoolTimedOut => (Unreachable, NO_CONNECTION.to_owned()),
        sqlx::Error::PoolClosed => (Misconfigured, "the pool was closed".to_owned()),
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::Decode(_) => (Misconfigured, MIGRATE.trim_start_matches([':', ' ']).to_owned()),
        sqlx::Error::Encode(_) => (TooLarge, "a value is too large to be sent".to_owned()),
        // Out of step after a broken connection; a fresh one starts anew.
        sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed | sqlx::Error::BeginFailed => {
            (Unreachable, "the connection was out of step with the server".to_owned())
        }
        _ => (Other, "the driver refused it".to_owned()),
    };
    StoreError::new(kind, format!("{operation} failed: {what}"))
}

/// Nobody gave a connection in time. The pool does not tell whether its connections are in use or could not be made.
pub(crate) const NO_CONNECTION: &str = "no connection to the database in time: is the server up, are host and port right, may \
    the function reach it, and has the pool a connection for each message that is worked on at once?";

/// No answer to this operation in the time it was given.
pub(crate) fn no_answer(operation: &str) -> StoreError {
    StoreError::new(Unreachable, format!("{operation} failed: the server gave no answer in time"))
}

/// Whether the same can succeed later.
pub(crate) fn passes(error: &StoreError) -> bool {
    matches!(error.kind(), Unreachable | Throttled)
}

/// Why a handler's transaction did not commit, as if the handler had said so.
pub(crate) fn uncommitted(error: &StoreError) -> Failure {
    Failure::retry(format!("the handler returned, and its transaction did not commit: {error}"))
}

/// What a code means, whether the server's message is worth showing and names no values, and how to mend it:
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn meaning(code: &str) -> (StoreErrorKind, bool, &'static str) {
    match code {
        "40001" | "40P01" | "55P03" => (Throttled, true, "; it can succeed later"),
        "57014" => (Unreachable, true, ": the statement took too long"),
        "25006" => (Unreachable, true, ": the server is a replica, or a failover is under way; name the writer"),
        "25P02" => (Other, true, ": an earlier statement of the handler failed; return its error instead of going on"),
        "3D000" | "3F000" => (Misconfigured, true, ". Create it, or name the one that exists"),
        "42501" => (Denied, true, ". The user needs SELECT, INSERT and UPDATE on the table claimant_inbox"),
        // Undefined table, column and type; operators and values of types that do not fit.
        "42P01" | "42703" | "42704" | "42804" | "42846" | "42883" => (Misconfigured, true, MIGRATE),
        "54000" => (TooLarge, false, ""),
        _ => match code.get(..2).unwrap_or_default() {
            "28" => (Denied, true, ". Are user and password right, and may the user connect from here?"),
            "53" => (Throttled, true, ". The server has no more connections, memory or disk to give"),
            "08" | "57" | "58" => (Unreachable, true, ""),
            "22" | "42" => (Misconfigured, false, MIGRATE),
            "23" => (Other, false, ": a constraint is violated"),
            _ => (Other, false, ""),
        },
    }
}
