//! The embedded DynamoDB: one process-wide database, in memory or on disk, that speaks DynamoDB's HTTP API.
//!
//! The engine is `dynoxide-rs` (SQLite underneath). No name of it appears in this module's interface.

mod copies;
mod front;
mod lock;
mod look;

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use dynoxide::actions::create_table::CreateTableRequest;
use dynoxide::actions::delete_table::DeleteTableRequest;
use dynoxide::actions::describe_table::DescribeTableRequest;
use dynoxide::actions::scan::ScanRequest;
use dynoxide::actions::update_time_to_live::{TimeToLiveSpecification, UpdateTimeToLiveRequest};
use dynoxide::types::{AttributeDefinition, KeySchemaElement, KeyType, ScalarAttributeType};
use dynoxide::{AttributeValue, Database, DynoxideError};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;

use crate::Error;
use crate::endpoint;
use crate::faults::Faults;
use crate::journal::Journal;
use crate::stack::{KeyKind, KeySpec, TableSpec};
use front::Observed;

/// The database's file inside the data directory.
pub const FILE_NAME: &str = "dynamodb.sqlite";
/// Items that [`DynamoDb::items`] reads at most.
pub const ITEMS_MAX: usize = 100_000;
/// SQLite's codes `SQLITE_CORRUPT` and `SQLITE_NOTADB`.
const DAMAGED: [i32; 2] = [11, 26];
/// SQLite's codes `SQLITE_READONLY` and `SQLITE_CANTOPEN`.
const CLOSED: [i32; 2] = [8, 14];
/// How each of SQLite's files begins that is not empty.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Items of a page. Without a limit, the database reads all that is left of a table for each page.
const PAGE_MAX: usize = 1_000;

/// The embedded DynamoDB. Clones share one database.
#[derive(Clone)]
pub struct DynamoDb {
    database: Database,
    /// Where it is, for messages.
    place: String,
    /// Keeps other processes out of the data directory.
    _lock: Option<Arc<lock::Lock>>,
}

/// What became of a request to create a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// The table is new.
    Created,
    /// The table was there, with the same key, and is kept.
    Existing,
}

/// One item of a table, for reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Item(dynoxide::Item);

impl Item {
    /// The string attribute of this name, if there is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            AttributeValue::S(text) => Some(text),
            _ => None,
        }
    }

    /// The number attribute of this name, if there is one and it is a whole number that fits.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.0.get(name)? {
            AttributeValue::N(number) => number.parse().ok(),
            _ => None,
        }
    }
}

impl DynamoDb {
    /// An empty database that ends with the process.
    ///
    /// # Errors
    /// When the engine cannot start.
    pub fn in_memory() -> Result<Self, Error> {
        let database = Database::memory()
            .map_err(|e| Error::new("the embedded DynamoDB could not be opened in memory").caused_by(e))?;
        Ok(Self { database, place: "memory".into(), _lock: None })
    }

    /// The database in `directory` (file [`FILE_NAME`]); both are made where missing. No other can be opened there while this one or
    /// a clone of it is.
    ///
    /// # Errors
    /// When the directory cannot be made or is in use, or its file cannot be opened as a database.
    pub fn in_directory(directory: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(directory).map_err(|e| {
            let place = directory.display();
            Error::new(format!("the data directory {place} could not be created: use another one")).caused_by(e)
        })?;
        let lock = lock::take(directory)?;
        let file = directory.join(FILE_NAME);
        let place = file.display().to_string();
        let path =
            file.to_str().ok_or_else(|| Error::new(format!("the data directory's name must be UTF-8: {place}")))?;
        let database = Database::new(path).map_err(|e| {
            Error::new(format!("the embedded DynamoDB could not be opened in {place}{}", fix(&file, &e))).caused_by(e)
        })?;
        Ok(Self { database, place, _lock: Some(Arc::new(lock)) })
    }

    /// Creates the table of `spec` with its time-to-live attribute. A table that exists already is kept, with its items.
    ///
    /// # Errors
    /// When the table that is there has another key, or the engine refuses the table.
    pub fn create_table(&self, spec: &TableSpec) -> Result<Creation, Error> {
        let created = match self.database.create_table(create_request(spec)) {
            Ok(_) => Creation::Created,
            Err(DynoxideError::ResourceInUseException(_)) => {
                self.check_key(spec)?;
                Creation::Existing
            }
            Err(e) => return Err(self.refused(spec, "could not be created", e)),
        };
        if let Some(attribute) = &spec.ttl_attribute {
            let request = UpdateTimeToLiveRequest {
                table_name: spec.name.clone(),
                time_to_live_specification: TimeToLiveSpecification {
                    attribute_name: attribute.clone(),
                    enabled: true,
                },
            };
            self.database
                .update_time_to_live(request)
                .map_err(|e| self.refused(spec, "could not get its time-to-live attribute", e))?;
        }
        Ok(created)
    }

    /// Removes a table with everything in it.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn delete_table(&self, table: &str) -> Result<(), Error> {
        let deleted = self.database.delete_table(DeleteTableRequest { table_name: table.to_owned() });
        let place = &self.place;
        deleted.map(drop).map_err(|e| Error::new(format!("table {table} in {place} could not be deleted")).caused_by(e))
    }

    /// Everything in a table, in no order.
    ///
    /// # Errors
    /// When there is no such table, or it holds more than [`ITEMS_MAX`] items.
    pub fn items(&self, table: &str) -> Result<Vec<Item>, Error> {
        let mut items = Vec::new();
        self.pages(table, |page| {
            items.extend(page);
            if items.len() <= ITEMS_MAX {
                return Ok(());
            }
            Err(Error::new(format!(
                "table {table} in {} holds more than {ITEMS_MAX} items, too many to read: use a fresh data directory",
                self.place
            )))
        })?;
        Ok(items)
    }

    /// Passes everything in a table to `take`, in no order and in pages of at most 1,000 items and 1 MB, until that fails.
    ///
    /// # Errors
    /// When there is no such table, or that of `take`.
    pub fn pages(&self, table: &str, mut take: impl FnMut(Vec<Item>) -> Result<(), Error>) -> Result<(), Error> {
        let mut start = None;
        loop {
            let request = ScanRequest {
                table_name: table.to_owned(),
                limit: Some(PAGE_MAX),
                exclusive_start_key: start,
                ..ScanRequest::default()
            };
            let page = self
                .database
                .scan(request)
                .map_err(|e| Error::new(format!("table {table} in {} could not be read", self.place)).caused_by(e))?;
            take(page.items.unwrap_or_default().into_iter().map(Item).collect())?;
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(());
            }
        }
    }

    /// Serves DynamoDB's HTTP API on `listener` until `shutdown` resolves and the requests under way are answered. Requests that
    /// name another host than this machine are refused.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        self.serve_with(listener, None, shutdown.boxed()).await
    }

    /// Serves as [`serve`](Self::serve) does, to functions: the journal learns which message asks for which record, and the faults
    /// meet these requests.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve_observed(
        self,
        listener: TcpListener,
        (journal, faults): (Journal, Faults),
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        self.serve_with(listener, Some(Observed { journal, faults }), shutdown.boxed()).await
    }

    /// In a box, so that the server is compiled here alone.
    fn serve_with(
        self,
        listener: TcpListener,
        observed: Option<Observed>,
        shutdown: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            let stopped = || Error::new("the DynamoDB endpoint stopped: its listener failed");
            let hidden = front::hidden_listener().await.map_err(|e| stopped().caused_by(e))?;
            let router = front::router(hidden.local_addr().map_err(|e| stopped().caused_by(e))?, observed);
            let engine = dynoxide::server::serve_with_shutdown(hidden, self.database.clone(), std::future::pending());
            tokio::select! {
                served = endpoint::serve("DynamoDB endpoint", listener, router, shutdown) => served,
                Err(e) = engine => Err(Error::new(format!("the DynamoDB endpoint stopped: {e}"))),
            }
        })
    }

    fn check_key(&self, spec: &TableSpec) -> Result<(), Error> {
        let request = DescribeTableRequest { table_name: spec.name.clone() };
        let found =
            self.database.describe_table(request).map_err(|e| self.refused(spec, "could not be looked at", e))?.table;
        let wanted = create_request(spec);
        let kind = |attribute: &AttributeDefinition| wanted.attribute_definitions.contains(attribute);
        if found.key_schema == wanted.key_schema && found.attribute_definitions.iter().all(kind) {
            return Ok(());
        }
        Err(Error::new(format!(
            "table {} in {} has a key that differs from that of {} in the template: remove that file to start afresh, or use another data directory",
            spec.name, self.place, spec.logical_id
        )))
    }

    fn refused(&self, spec: &TableSpec, what: &str, cause: DynoxideError) -> Error {
        let (name, resource, place) = (&spec.name, &spec.logical_id, &self.place);
        Error::new(format!("table {name} ({resource} in the template) {what} in {place}")).caused_by(cause)
    }
}

/// Returns what helps where the file could not be opened; nothing where only the cause can say that, as of a database that a newer version wrote.
fn fix(file: &Path, error: &DynoxideError) -> &'static str {
    let code = match error {
        DynoxideError::SqliteError(e) => e.sqlite_error().map(|e| e.extended_code & 0xff),
        _ => None,
    };
    if code.is_some_and(|code| DAMAGED.contains(&code)) || is_no_database(file) {
        ": remove that file to start afresh, or use another data directory"
    } else if code.is_some_and(|code| CLOSED.contains(&code)) {
        ": use another data directory: one that can be written, and has a path of less than 500 bytes"
    } else {
        ""
    }
}

/// Returns whether something else than a database is in the file.
fn is_no_database(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    read.is_ok() && !start.is_empty() && start != MAGIC
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDb").field("place", &self.place).finish_non_exhaustive()
    }
}

fn create_request(spec: &TableSpec) -> CreateTableRequest {
    let keys = [(Some(&spec.partition_key), KeyType::HASH), (spec.sort_key.as_ref(), KeyType::RANGE)];
    let mut request = CreateTableRequest {
        table_name: spec.name.clone(),
        billing_mode: Some("PAY_PER_REQUEST".into()),
        ..CreateTableRequest::default()
    };
    for (key, key_type) in keys {
        let Some(KeySpec { name, kind }) = key else { continue };
        request.key_schema.push(KeySchemaElement { attribute_name: name.clone(), key_type });
        request.attribute_definitions.push(AttributeDefinition {
            attribute_name: name.clone(),
            attribute_type: match kind {
                KeyKind::S => ScalarAttributeType::S,
                KeyKind::N => ScalarAttributeType::N,
                KeyKind::B => ScalarAttributeType::B,
            },
        });
    }
    request
}
