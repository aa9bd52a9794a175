//! What PostgreSQL's error codes mean: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.

use claimant_core::StoreErrorKind::{Denied, Misconfigured, Other, Throttled, TooLarge, Unreachable};

use crate::trouble::{MIGRATE, Meaning};

pub(crate) fn meaning(code: &str, _: u16) -> Meaning {
    match code {
        "40001" | "40P01" | "55P03" => Meaning::contended(),
        "57014" => Meaning::of(Unreachable, ": the statement took too long"),
        "25006" => Meaning::of(Unreachable, ": the server is a replica, or a failover is under way; name the writer"),
        "3D000" | "3F000" => Meaning::of(Misconfigured, ". Create it, or name the one that exists"),
        "42501" => Meaning::of(Denied, ". The user needs SELECT, INSERT and UPDATE on the table claimant_records"),
        // Undefined table, column and type; operators and values of types that do not fit.
        "42P01" | "42703" | "42704" | "42804" | "42846" | "42883" => Meaning::of(Misconfigured, MIGRATE),
        "54000" => Meaning::of(TooLarge, "").silent(),
        _ => match code.get(..2).unwrap_or_default() {
            "28" => Meaning::of(Denied, ". Are user and password right, and may the user connect from here?"),
            "53" => Meaning::of(Throttled, ". The server has no more connections, memory or disk to give"),
            "08" | "57" | "58" => Meaning::of(Unreachable, ""),
            "22" | "23" | "42" => Meaning::of(Misconfigured, MIGRATE).silent(),
            _ => Meaning::of(Other, "").silent(),
        },
    }
}
