//! The statements of one database.

use crate::error::{ErrorCodes, SqlError};
use crate::range::Range;
use crate::record::{Listed, Seen};
use crate::session::Session;
use claimant_core::protocol::{Renewal, Settlement};
use claimant_core::{Claim, Filter, Record, RecordId, Timestamp};

/// A transaction as the server knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtServer {
    /// The number of its connection.
    pub(crate) connection: i64,
    /// Its own, where numbers of connections are used again; 0 elsewhere.
    pub(crate) transaction: i64,
}

/// What differs between databases. Each statement is one step: it applies as a whole or not at all.
pub(crate) trait Dialect: ErrorCodes {
    /// Inserts those records whose ids have none, and returns the records that then exist, as far as the statement saw them.
    fn offer(
        session: &mut Session<'_, Self>,
        records: &[(&RecordId, Record)],
    ) -> impl Future<Output = Result<Seen, SqlError>> + Send;

    /// Writes `next` where the record still has the status, owner, fence and lease of `seen`. Returns whether it did.
    fn replace(
        session: &mut Session<'_, Self>,
        id: &RecordId,
        seen: &Record,
        next: &Record,
    ) -> impl Future<Output = Result<bool, SqlError>> + Send;

    /// Extends the lease of a claim if that is held and ends earlier. Returns whether it did.
    fn renew(
        session: &mut Session<'_, Self>,
        claim: &Claim,
        renewal: &Renewal,
    ) -> impl Future<Output = Result<bool, SqlError>> + Send;

    /// Ends those claims, of different keys and in the order of their ids, that are held. Returns how many.
    fn end(
        session: &mut Session<'_, Self>,
        endings: &[&(Claim, Settlement)],
    ) -> impl Future<Output = Result<usize, SqlError>> + Send;

    /// Begins a transaction that sees what was committed before each statement, and waits a second for locks.
    const BEGIN: &'static str;

    /// Follows it where a claim is written in the transaction: waits while others lock the whole table, which is no claim of the key.
    /// The claim's own statements then wait for locks of its record alone.
    const LOCK_TABLE: &'static str;

    /// Commits, and resets the connection for the pool.
    const COMMIT: &'static str;

    /// Rolls back, and resets the connection for the pool.
    const ROLLBACK: &'static str;

    /// Hands the open transaction over to a handler: it waits for locks as the server's settings say, and is ended by the server
    /// when it is idle for as long as a lease lasts. Returns what it is to the server.
    fn hand_over(
        session: &mut Session<'_, Self>,
        lease: std::time::Duration,
    ) -> impl Future<Output = Result<AtServer, SqlError>> + Send;

    /// Returns the statement that ends this transaction and its connection, whose client is gone, or has kept it; of another transaction
    /// it ends nothing.
    fn kill(at: AtServer) -> String;

    /// Sends one of these.
    fn control(
        session: &mut Session<'_, Self>,
        operation: &str,
        text: String,
    ) -> impl Future<Output = Result<(), SqlError>> + Send;

    /// Reads the records of these ids.
    fn read(session: &mut Session<'_, Self>, ids: &[&RecordId]) -> impl Future<Output = Result<Seen, SqlError>> + Send;

    /// Returns the last id of the next [`PAGE_RECORDS`](crate::range::PAGE_RECORDS) in this range; `None` where there are fewer.
    fn last_of_page(
        session: &mut Session<'_, Self>,
        range: &Range,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, SqlError>> + Send;

    /// Returns how many records are in this range.
    fn count(session: &mut Session<'_, Self>, range: &Range) -> impl Future<Output = Result<i64, SqlError>> + Send;

    /// Reads the records in this range that have the filter's statuses and age, without their results.
    fn list(
        session: &mut Session<'_, Self>,
        range: &Range,
        filter: &Filter,
    ) -> impl Future<Output = Result<Listed, SqlError>> + Send;

    /// Returns about how many records and bytes there are.
    fn size(session: &mut Session<'_, Self>) -> impl Future<Output = Result<(i64, i64), SqlError>> + Send;

    /// Deletes at most `portion` records whose window ended before this time. Returns how many.
    fn delete_expired(
        session: &mut Session<'_, Self>,
        before: Timestamp,
        portion: u32,
    ) -> impl Future<Output = Result<u64, SqlError>> + Send;
}
