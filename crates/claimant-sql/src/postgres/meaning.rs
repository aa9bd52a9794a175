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
        meaning(answer, table)
    }
}

fn meaning(answer: &dyn DatabaseError, table: &Table) -> Meaning {
    let migrate = || format!(": {}", table.migrate());
    let code = answer.code().unwrap_or_default();
    match &*code {
        "40001" | "40P01" | "55P03" => Meaning::contended(),
        "57014" => Meaning::of(Unreachable, ": the statement took too long"),
        "25006" => Meaning::of(Unreachable, ": the server is a replica, or a failover is under way; name the writer"),
        "25P02" => {
            Meaning::of(Other, ": an earlier statement of the handler failed; return its error instead of going on")
        }
        "25P03" => Meaning::of(Unreachable, ": the transaction was idle for too long"),
        "3D000" | "3F000" => Meaning::of(Misconfigured, ". Create it, or name the one that exists"),
        "42501" => Meaning::of(Denied, format!(". {}", table.rights())),
        // Undefined table, column and type; operators and values of types that do not fit.
        "42P01" | "42703" | "42704" | "42804" | "42846" | "42883" => Meaning::of(Misconfigured, migrate()),
        // A prepared statement that is there already, or is not there. On another connection it can succeed, so completions are
        // tried again.
        "42P05" | "26000" => Meaning::of(
            Other,
            ": a pooler gives each transaction another connection; use one that keeps a client's connection, such as PgBouncer in \
             session mode, or the server itself",
        ),
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
