//! Maps a database's errors to store errors.

use claimant_core::{Claim, Settled, StoreError, StoreErrorKind};
use sqlx::Database;
use sqlx::error::DatabaseError;

/// Why a statement gave no answer.
///
/// Built from codes and from texts that cannot hold a value: `Debug` of a driver's error, and some messages of the servers,
/// contain keys.
#[derive(Debug, Clone)]
pub(crate) struct SqlError {
    pub(crate) kind: StoreErrorKind,
    pub(crate) text: String,
    /// The server's code, where it gave an answer: PostgreSQL's SQLSTATE, MySQL's number.
    pub(crate) code: String,
    /// Another transaction's lock was in the way: the same statement for fewer records can go through.
    pub(crate) contended: bool,
    /// The connection has to be closed: it broke, or leads to a server that takes no writes.
    pub(crate) ends_connection: bool,
    /// There is a record with this key already.
    #[cfg_attr(not(feature = "mysql"), expect(dead_code, reason = "PostgreSQL has ON CONFLICT for it"))]
    pub(crate) duplicate: bool,
    /// The login was refused: the password that a process has does not become right, and the server may count the tries and lock the user.
    pub(crate) is_login: bool,
}

/// A table of claimant's, as errors about it name it.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The directory of the files that create it.
    pub migrations: &'static str,
    /// Whether it is these files that meet the error: they need other rights than the statements that use it.
    pub is_migrated: bool,
}

/// The table of the stores.
pub(crate) const RECORDS: Table =
    Table { name: "claimant_records", migrations: "claimant-sql/migrations", is_migrated: false };

impl Table {
    /// Returns how to fix a table that is missing or has the wrong columns.
    pub(crate) fn migrate(&self) -> String {
        format!("the table {} is missing or not as claimant makes it; {}", self.name, self.apply())
    }

    /// Returns how to fix a table that PostgreSQL does not find. A second one, elsewhere, would know no key of the first.
    #[cfg(feature = "postgres")]
    pub(crate) fn find(&self) -> String {
        format!(
            "the table {} is missing, or in no schema of search_path that the user may use. Where it is missing, {}",
            self.name,
            self.apply()
        )
    }

    /// Returns how to fix a migration of what is there already.
    pub(crate) fn keep(&self) -> String {
        format!(
            "it is there, but migrate() did not make it. Go on with what made the table {}, such as the files of {} or a tool of your own, in \
             place of migrate(). Do not drop the table: its records say what is done",
            self.name, self.migrations
        )
    }

    fn apply(&self) -> String {
        format!("apply the migrations: call migrate() once, or run the files of {} in this database", self.migrations)
    }

    /// Returns the rights that a refused user needs.
    pub(crate) fn rights(&self) -> String {
        if self.is_migrated {
            return "Who migrates has to be allowed to create tables (in PostgreSQL USAGE and CREATE on the first schema of search_path), and to \
                    change those that are there (in PostgreSQL to own them)"
                .to_owned();
        }
        format!(
            "The user needs SELECT, INSERT and UPDATE on the table {}; who deletes from it, SELECT, UPDATE and DELETE",
            self.name
        )
    }
}

/// A write that its guard let through left the record as it was, or an insertion left none.
pub(crate) const IGNORED: &str = "the server accepted a write and did not make it: has the table claimant_records a trigger or a row-level \
    policy, or does a standby answer what is read?";

/// What a database's error codes mean.
pub(crate) trait ErrorCodes: Database {
    /// Returns what an error of the server means for a statement on this table.
    fn meaning(answer: &dyn DatabaseError, table: &Table) -> Meaning;

    /// Returns the code that says most about an error.
    fn code(answer: &dyn DatabaseError) -> String {
        answer.code().unwrap_or_default().into_owned()
    }
}

/// What a server's error code means.
pub(crate) struct Meaning {
    pub(crate) kind: StoreErrorKind,
    /// How to fix it: follows the server's message.
    pub(crate) fix: String,
    /// Whether the server's message is worth showing, and names no values.
    pub(crate) shows_message: bool,
    pub(crate) contended: bool,
    /// Whether another connection may lead to a server that takes it.
    pub(crate) ends_connection: bool,
}

impl Meaning {
    /// Returns a meaning of this kind, shown with the server's message.
    pub(crate) fn of(kind: StoreErrorKind, fix: impl Into<String>) -> Self {
        let ends_connection = kind == StoreErrorKind::Unreachable;
        Self { kind, fix: fix.into(), shows_message: true, contended: false, ends_connection }
    }

    /// Hides the server's message, which can contain values.
    pub(crate) fn without_message(self) -> Self {
        Self { shows_message: false, ..self }
    }

    /// Returns the meaning of a lock that another transaction holds.
    pub(crate) fn contended() -> Self {
        Self { contended: true, ..Self::of(StoreErrorKind::Throttled, "; it can succeed later") }
    }

    /// Returns the meaning of a server that takes no writes: nothing was written, and by now its name can lead to another one.
    pub(crate) fn read_only() -> Self {
        let fix = ": the server is a replica, or a failover is under way; name the writer";
        Self { ends_connection: true, ..Self::of(StoreErrorKind::Throttled, fix) }.without_message()
    }
}

impl SqlError {
    pub(crate) fn new(kind: StoreErrorKind, text: impl Into<String>) -> Self {
        let ends_connection = kind == StoreErrorKind::Unreachable;
        let (text, code) = (text.into(), String::new());
        Self { kind, text, code, contended: false, ends_connection, duplicate: false, is_login: false }
    }

    /// Returns the error of `operation` on this table.
    pub(crate) fn of<D: ErrorCodes>(operation: &str, error: &sqlx::Error, table: &Table) -> Self {
        use StoreErrorKind::{Misconfigured, Other, TooLarge, Unreachable};
        let (kind, what) = match error {
            sqlx::Error::Database(answer) => {
                let code = D::code(answer.as_ref());
                let meaning = D::meaning(answer.as_ref(), table);
                let message = if meaning.shows_message { answer.message() } else { "the server refused it" };
                let text = format!("{operation} failed: {message} (code {code}){}", meaning.fix);
                return Self {
                    kind: meaning.kind,
                    text,
                    code,
                    contended: meaning.contended,
                    ends_connection: meaning.ends_connection,
                    duplicate: answer.is_unique_violation(),
                    is_login: false,
                };
            }
            // rustls returns its own errors as invalid data.
            sqlx::Error::Io(error) if error.kind() != std::io::ErrorKind::InvalidData => {
                (Unreachable, format!("the connection failed: {error}"))
            }
            sqlx::Error::Io(error) => (Unreachable, no_tls(error)),
            sqlx::Error::Tls(error) => (Unreachable, no_tls(error)),
            // What it says is how to build the driver.
            sqlx::Error::Configuration(error) if error.to_string().contains("mysql-rsa") => {
                (Misconfigured, CACHING_SHA2.to_owned())
            }
            sqlx::Error::Configuration(error) => (Misconfigured, format!("the URL or its options are wrong: {error}")),
            sqlx::Error::PoolTimedOut => (Unreachable, NO_CONNECTION.to_owned()),
            sqlx::Error::PoolClosed => (Misconfigured, "the pool was closed".to_owned()),
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::Decode(_) => (Misconfigured, table.migrate()),
            sqlx::Error::Encode(_) => (TooLarge, "a value is too large to be sent".to_owned()),
            sqlx::Error::Protocol(text) if is_no_method(text) => (Misconfigured, NO_METHOD.to_owned()),
            // The protocol is out of step after a broken connection; a new connection is not.
            sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed | sqlx::Error::BeginFailed => {
                (Unreachable, "the connection was out of step with the server".to_owned())
            }
            _ => (Other, "the driver refused it".to_owned()),
        };
        Self::new(kind, format!("{operation} failed: {what}"))
    }

    /// Returns the error of a commit of which it could not be found out whether it applied.
    pub(crate) fn in_doubt() -> Self {
        Self::new(StoreErrorKind::Unreachable, "no time was left to find out whether the commit applied")
    }

    /// Returns the error of a connection that could not be opened.
    pub(crate) fn of_connecting<D: ErrorCodes>(error: &sqlx::Error) -> Self {
        const CONNECTING: &str = "connecting to the database";
        if is_closed(error) {
            return Self::new(StoreErrorKind::Unreachable, format!("{CONNECTING} failed: {CLOSED}"));
        }
        let error = Self::of::<D>(CONNECTING, error, &RECORDS);
        Self { is_login: error.kind == StoreErrorKind::Denied, ..error }
    }

    /// Returns what is known of a settlement that met this. Without its claim, which the engine would settle again by another login.
    pub(crate) fn unsettled(self, claim: Claim) -> Settled {
        Settled::Unknown { claim: (!self.is_login).then_some(claim), error: self.into() }
    }

    /// Returns whether the server said it, on a connection that goes on.
    pub(crate) fn is_answer(&self) -> bool {
        !self.code.is_empty() && !self.ends_connection
    }

    /// Returns whether trying again is of no use.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self.kind, StoreErrorKind::Unreachable | StoreErrorKind::Throttled)
    }
}

/// No connection in time. The pool does not tell whether its connections are in use or could not be made.
const NO_CONNECTION: &str = "no connection to the database in time: is the server up, are host and port right, may the \
    function reach it, and has the pool a connection for each message that is worked on at once?";

/// As what is between does whose own server is down, in a failover.
const CLOSED: &str = "what answers at host and port closed the connection before the login, or is no such database: is it a load balancer \
    or a proxy whose server is down?";

const NO_METHOD: &str = "the user's way to authenticate is none that the driver has: give the user a password of scram-sha-256 (PostgreSQL), \
    mysql_native_password or caching_sha2_password";

/// As sqlx says it.
fn is_no_method(text: &str) -> bool {
    let begins = [
        "unsupported authentication method",
        "unsupported SASL",
        "unknown authentication plugin",
        "mysql_cleartext_plugin",
    ];
    begins.iter().any(|begin| text.starts_with(begin))
}

fn is_closed(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Protocol(text) => text.starts_with("unexpected response from SSLRequest"),
        sqlx::Error::Io(error) => {
            matches!(error.kind(), std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset)
        }
        _ => false,
    }
}

const CACHING_SHA2: &str = "the user's caching_sha2_password needs TLS: the URL's ssl-mode must not be DISABLED, and the server has to offer it";

fn no_tls(error: &impl std::fmt::Display) -> String {
    format!("no TLS with the server: {error}. Does the URL name the CA's file, and the host of the certificate?")
}

impl From<SqlError> for StoreError {
    fn from(error: SqlError) -> Self {
        Self::new(error.kind, error.text)
    }
}

#[cfg(all(test, feature = "mysql"))]
mod tests {
    use super::*;

    /// As sqlx says it of a user of MariaDB with ed25519.
    #[test]
    fn a_way_to_authenticate_that_the_driver_lacks_is_no_lost_connection() {
        let error = sqlx::Error::Protocol("unknown authentication plugin: client_ed25519 (auth.rs:36)".to_owned());
        let error = SqlError::of_connecting::<sqlx::MySql>(&error);
        assert_eq!(error.kind, StoreErrorKind::Misconfigured);
        assert!(error.text.contains("mysql_native_password"), "{}", error.text);
    }

    /// As sqlx says it of a password for which it would have to encrypt by RSA.
    #[test]
    fn a_password_that_needs_tls_is_told_without_the_drivers_features() {
        let error =
            sqlx::Error::Configuration("RSA auth backend disabled; enable feature `mysql-rsa` or use TLS.".into());
        let error = SqlError::of_connecting::<sqlx::MySql>(&error);
        assert_eq!(error.kind, StoreErrorKind::Misconfigured);
        assert!(
            error.text.contains("ssl-mode must not be DISABLED") && !error.text.contains("feature"),
            "{}",
            error.text
        );
    }
}
