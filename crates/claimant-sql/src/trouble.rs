//! What went wrong, in the words of a store.

use claimant_core::{StoreError, StoreErrorKind};

/// Why a statement gave no answer.
///
/// Built from codes and from texts that cannot hold a value: `Debug` of a driver's error, and some messages of the servers,
/// show keys.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub(crate) kind: StoreErrorKind,
    pub(crate) text: String,
    /// The server's code, where it gave an answer.
    pub(crate) code: String,
    /// Somebody else's lock was in the way: the same statement for fewer records can go through.
    pub(crate) contended: bool,
    /// A record with this key is there already.
    #[cfg_attr(not(feature = "mysql"), expect(dead_code, reason = "PostgreSQL has ON CONFLICT for it"))]
    pub(crate) duplicate: bool,
}

/// What a server's error code means.
pub(crate) struct Meaning {
    pub(crate) kind: StoreErrorKind,
    /// How to mend it.
    pub(crate) mend: &'static str,
    /// Whether the server's message is worth showing, and names no values.
    pub(crate) telling: bool,
    pub(crate) contended: bool,
}

impl Meaning {
    /// A meaning of this kind, shown with the server's message.
    pub(crate) const fn of(kind: StoreErrorKind, mend: &'static str) -> Self {
        Self { kind, mend, telling: true, contended: false }
    }

    /// The same without the server's message, which can show values.
    pub(crate) const fn silent(self) -> Self {
        Self { telling: false, ..self }
    }

    /// A lock of somebody else.
    pub(crate) const fn contended() -> Self {
        Self { kind: StoreErrorKind::Throttled, mend: "; it can succeed later", telling: true, contended: true }
    }
}

impl Trouble {
    pub(crate) fn new(kind: StoreErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), code: String::new(), contended: false, duplicate: false }
    }

    /// What `operation` ran into; `meaning` explains the server's own code.
    pub(crate) fn of(operation: &str, error: &sqlx::Error, meaning: impl Fn(&str, u16) -> Meaning) -> Self {
        use StoreErrorKind::{Misconfigured, Other, TooLarge, Unreachable};
        let (kind, what) = match error {
            sqlx::Error::Database(answer) => {
                let code = answer.code().unwrap_or_default();
                let meaning = meaning(&code, number(answer.as_ref()));
                let message = if meaning.telling { answer.message() } else { "the server refused it" };
                let text = format!("{operation} failed: {message} (code {code}){}", meaning.mend);
                return Self {
                    kind: meaning.kind,
                    text,
                    code: code.into_owned(),
                    contended: meaning.contended,
                    duplicate: answer.is_unique_violation(),
                };
            }
            sqlx::Error::Io(error) => (Unreachable, format!("the connection failed: {error}")),
            sqlx::Error::Tls(error) => (
                Unreachable,
                format!(
                    "no TLS with the server: {error}. Does the URL name the CA's file, and the host of the certificate?"
                ),
            ),
            sqlx::Error::Configuration(error) => (Misconfigured, format!("the URL or its options are wrong: {error}")),
            sqlx::Error::PoolClosed => (Misconfigured, "the pool was closed".to_owned()),
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::Decode(_) => (Misconfigured, MIGRATE.trim_start_matches([':', ' ']).to_owned()),
            sqlx::Error::Encode(_) => (TooLarge, "a value is too large to be sent".to_owned()),
            // Out of step after a broken connection; a fresh one starts anew.
            sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
                (Unreachable, "the connection was out of step with the server".to_owned())
            }
            _ => (Other, "the driver refused it".to_owned()),
        };
        Self::new(kind, format!("{operation} failed: {what}"))
    }

    /// Whether trying again is of no use.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self.kind, StoreErrorKind::Unreachable | StoreErrorKind::Throttled)
    }
}

/// What mends a table that is missing or not as it should be.
pub(crate) const MIGRATE: &str = ": the table claimant_records is missing or not as claimant makes it; apply the migrations: call migrate() once, or run \
     the files of claimant-sql/migrations in this database";

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        Self::new(trouble.kind, trouble.text)
    }
}

/// MySQL's own number of an error, which says more than its SQLSTATE; 0 for other servers.
fn number(error: &dyn sqlx::error::DatabaseError) -> u16 {
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return error.number();
    }
    let _ = error;
    0
}
