//! What the error numbers of MySQL and MariaDB mean.

use claimant_core::StoreErrorKind::{Denied, Misconfigured, Other, Throttled, TooLarge, Unreachable};
use sqlx::MySql;
use sqlx::error::DatabaseError;
use sqlx::mysql::MySqlDatabaseError;

use crate::error::{ErrorCodes, Meaning, Table};

impl ErrorCodes for MySql {
    fn meaning(answer: &dyn DatabaseError, table: &Table) -> Meaning {
        meaning(number(answer), table)
    }

    /// Its own number: most errors share the SQLSTATE `HY000`.
    fn code(answer: &dyn DatabaseError) -> String {
        number(answer).to_string()
    }
}

fn number(answer: &dyn DatabaseError) -> u16 {
    answer.try_downcast_ref().map_or(0, MySqlDatabaseError::number)
}

/// Classifies an error by MySQL's own number, which is more specific than its SQLSTATE.
fn meaning(number: u16, table: &Table) -> Meaning {
    let migrate = || format!(": {}", table.migrate());
    match number {
        // Lock wait timeout, deadlock, and MariaDB's record that changed since it was read.
        1205 | 1213 | 1020 => Meaning::contended(),
        // Galera's node that is not ready, and group replication that rolled a commit back.
        1047 => Meaning::of(Unreachable, ": the server is not part of its cluster, or not yet").without_message(),
        3100 | 3101 | 1180 => Meaning::of(Throttled, ": its cluster did not take the commit").without_message(),
        1615 => Meaning::of(Throttled, "; it can succeed later").without_message(),
        1021 | 1037 | 1041 | 1114 => Meaning::of(Throttled, ". The server has no more memory or disk to give"),
        1040 | 1203 => Meaning::of(Throttled, ". The server or the user has no more connections to give"),
        1226 => Meaning::of(Throttled, ". Raise this limit of the user; one per hour ends by itself"),
        1461 => Meaning::of(Throttled, ". Raise max_prepared_stmt_count"),
        // Also passwords that have expired, accounts that are locked, and hosts and users that are blocked after too many failures.
        1044 | 1045 | 1129 | 1130 | 1251 | 1698 | 1820 | 1862 | 2061 | 3118 | 3955 | 4150 | 4151 => {
            Meaning::of(Denied, ". Are user and password right, and may the user connect from here?")
        }
        1142 | 1143 | 1227 | 1370 => Meaning::of(Denied, format!(". {}", table.rights())),
        1046 | 1049 => Meaning::of(Misconfigured, ". Create the database, or name the one that exists in the URL"),
        1665 => Meaning::of(Misconfigured, ": set its binlog_format to ROW or MIXED"),
        3159 => Meaning::of(Misconfigured, ". The URL's ssl-mode must not be DISABLED"),
        1128 | 1305 => Meaning::of(Misconfigured, ". The server has to be MySQL 5.7, MariaDB 10.5.2, or newer"),
        // A table or a column that is there.
        1050 | 1060 if table.is_migrated => Meaning::of(Misconfigured, format!(": {}", table.keep())),
        1146 | 1054 => Meaning::of(Misconfigured, migrate()),
        // Values that do not fit their column: these messages show them.
        1048 | 1062 | 1136 | 1264 | 1265 | 1292 | 1364 | 1366 | 3819 | 4025 => {
            Meaning::of(Misconfigured, migrate()).without_message()
        }
        1118 | 1153 | 1406 => Meaning::of(TooLarge, "").without_message(),
        1290 | 1792 | 1836 => Meaning::read_only(),
        1053 | 1077 | 1152 | 1158..=1161 | 1184 | 1317 | 1927 | 1969 | 3024 | 3032 | 3169 | 4031 => {
            Meaning::of(Unreachable, "")
        }
        _ => Meaning::of(Other, "").without_message(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RECORDS;

    #[test]
    fn what_a_server_has_no_more_of_or_lacks_is_told() {
        for (number, kind, told) in [
            (1040, Throttled, "no more connections"),
            (1226, Throttled, "limit of the user"),
            (1461, Throttled, "max_prepared_stmt_count"),
            (1128, Misconfigured, "MySQL 5.7"),
            (1305, Misconfigured, "MySQL 5.7"),
            (3159, Misconfigured, "ssl-mode"),
            (3032, Unreachable, ""),
        ] {
            let meaning = meaning(number, &RECORDS);
            assert!(meaning.kind == kind && meaning.shows_message, "{number}");
            assert!(meaning.fix.contains(told), "{number}: {}", meaning.fix);
        }
    }
}
