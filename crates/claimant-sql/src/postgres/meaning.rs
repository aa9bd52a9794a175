//! What PostgreSQL's error codes mean: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.

use claimant_core::StoreError;
use claimant_core::StoreErrorKind::{Denied, Misconfigured, Other, Throttled, TooLarge, Unreachable};
use sqlx::Postgres;
use sqlx::error::DatabaseError;

use crate::error::{ErrorCodes, Meaning, SqlError, Table};

/// Returns the store error of `operation` on this table in PostgreSQL.
#[must_use]
pub fn explain(operation: &str, error: &sqlx::Error, table: &Table) -> StoreError {
    SqlError::of::<Postgres>(operation, error, table).into()
}

impl ErrorCodes for Postgres {
    fn meaning(answer: &dyn DatabaseError, table: &Table) -> Meaning {
        meaning(&answer.code().unwrap_or_default(), answer.message(), table)
    }
}

/// What is told of a statement that is not there, or is another client's: on another connection it can succeed, so completions are tried again.
const POOLED: &str = ": a pooler gives each transaction another connection; use one that keeps a client's connection, such as PgBouncer in \
    session mode, or the server itself";

fn meaning(code: &str, message: &str, table: &Table) -> Meaning {
    let migrate = || format!(": {}", table.migrate());
    match code {
        "40001" | "40P01" | "55P03" => Meaning::contended(),
        "57014" => Meaning::of(Unreachable, ": the statement took too long"),
        "25006" => Meaning::read_only(),
        "25P02" => {
            Meaning::of(Other, ": an earlier statement of the handler failed; return its error instead of going on")
        }
        "25P03" => Meaning::of(Unreachable, ": the transaction was idle for too long"),
        "25P04" => Meaning::of(Unreachable, ": the connection has a transaction_timeout, which has to be 0"),
        // Of a search_path, the schemas that the user may not use count as missing.
        "3F000" if table.is_migrated => {
            Meaning::of(Denied, format!(": search_path names none that is there and may be used. {}", table.rights()))
        }
        "3D000" | "3F000" => Meaning::of(Misconfigured, ". Create it, or name the one that exists"),
        "42501" if message.contains("row-level security") => Meaning::of(
            Denied,
            format!(". Its policies have to let this user read and write all rows of the table {}", table.name),
        ),
        "42501" => Meaning::of(Denied, format!(". {}", table.rights())),
        // One that another client has prepared, with other parameters.
        "08P01" if message.contains("bind message supplies") => Meaning::of(Other, POOLED),
        "42804" if message.contains("binary data has array element type") => Meaning::of(Other, POOLED),
        "42P01" => Meaning::of(Misconfigured, format!(": {}", table.find())),
        // A table, an index or a column that is there.
        "42P07" | "42701" if table.is_migrated => Meaning::of(Misconfigured, format!(": {}", table.keep())),
        // Undefined column and type; operators and values of types that do not fit.
        "42703" | "42704" | "42804" | "42846" | "42883" => Meaning::of(Misconfigured, migrate()),
        // A prepared statement that is there already, or is not there.
        "42P05" | "26000" => Meaning::of(Other, POOLED),
        "08P01" if message.contains("unsupported startup parameter") => {
            Meaning::of(Misconfigured, ": a pooler refuses it; add it to PgBouncer's ignore_startup_parameters")
        }
        "54000" => Meaning::of(TooLarge, "").without_message(),
        _ => match code.get(..2).unwrap_or_default() {
            "28" => Meaning::of(Denied, ". Are user and password right, and may the user connect from here?"),
            "53" => Meaning::of(Throttled, ". The server has no more connections, memory or disk to give"),
            "08" | "57" | "58" => Meaning::of(Unreachable, ""),
            "22" | "23" | "42" => Meaning::of(Misconfigured, migrate()).without_message(),
            _ => Meaning::of(Other, "").without_message(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RECORDS;

    #[test]
    fn what_a_pooler_or_a_time_limit_does_is_told() {
        for (code, message, kind, told) in [
            ("08P01", "unsupported startup parameter: extra_float_digits", Misconfigured, "ignore_startup_parameters"),
            (
                "08P01",
                "bind message supplies 3 parameters, but prepared statement \"a\" requires 2",
                Other,
                "session mode",
            ),
            (
                "42804",
                "binary data has array element type 25 (text) instead of expected 17 (bytea)",
                Other,
                "session mode",
            ),
            ("42P05", "prepared statement \"a\" already exists", Other, "session mode"),
            ("42804", "column \"a\" is of type bytea but expression is of type text", Misconfigured, "migrate()"),
            ("08P01", "invalid message format", Unreachable, ""),
            ("25P04", "terminating connection due to transaction timeout", Unreachable, "transaction_timeout"),
        ] {
            let meaning = meaning(code, message, &RECORDS);
            assert_eq!(meaning.kind, kind, "{message}");
            assert!(
                meaning.fix.contains(told) && (meaning.fix.is_empty() == told.is_empty()),
                "{message}: {}",
                meaning.fix
            );
        }
    }
}
