//! Every statement and its guard.

use claimant_core::protocol::{Renewal, Settlement, expiry, window_end};
use claimant_core::{Claim, Filter, Record, RecordId, Status, Timestamp};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Postgres, query};

use crate::dialect::{AtServer, Dialect};
use crate::error::SqlError;
use crate::range::{PAGE_RECORDS, Range};
use crate::record::{
    Listed, Seen, asked_for, bigint, bound, bytes, columns, ids, key, listed, listed_columns, number, seen, time,
};
use crate::session::Session;

type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// Returns statements and, behind them, those that end what a handler can leave in its session beside settings, also from inside a function,
/// where no guard sees it.
macro_rules! cleared {
    ($before:literal) => {
        concat!($before, "SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES; CLOSE ALL; UNLISTEN *")
    };
}

/// Ends what a handler can leave in its session beside settings, and beside what it prepares or loads.
pub const CLEAR: &str = cleared!("");

/// Both parts see the table as it was when the statement began: what the first inserts is not among what the second finds.
const OFFER: &str = concat!(
    "WITH offered AS (SELECT * FROM unnest($1::bytea[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], \
     $7::bytea[], $8::bytea[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bytea[], $14::bytea[], $15::bytea[]) AS o (",
    columns!(),
    ")), written AS (INSERT INTO claimant_records (",
    columns!(),
    ") SELECT * FROM offered ORDER BY id ON CONFLICT (id) DO NOTHING RETURNING ",
    columns!(),
    ") SELECT ",
    columns!(),
    " FROM written UNION ALL SELECT ",
    columns!(),
    " FROM claimant_records WHERE id = ANY($1)"
);

const READ: &str = concat!("SELECT ", columns!(), " FROM claimant_records WHERE id = ANY($1)");

const REPLACE: &str = "UPDATE claimant_records SET status = $2, owner = $3, fence = $4, lease_until = $5, attempts = $6, \
    message_id = $7, fingerprint = $8, created_at = $9, updated_at = $10, completed_at = $11, expires_at_s = $12, \
    result = $13, error = $14, note = $15 \
    WHERE id = $1 AND status = $16 AND owner = $17 AND fence = $18 AND lease_until = $19";

const LAST_OF_PAGE: &str = "SELECT id FROM claimant_records WHERE id > $1 AND id <= $2 ORDER BY id LIMIT 1 OFFSET $3";

const COUNT: &str = "SELECT count(*) FROM claimant_records WHERE id > $1 AND id <= $2";

const LIST: &str = concat!(
    "SELECT ",
    listed_columns!(),
    " FROM claimant_records WHERE id > $1 AND id <= $2 AND status = ANY($3) AND updated_at < $4"
);

/// A table that was never analysed has no pages, and -1 or 0 records: then they are as many as fit, at 250 bytes each.
const SIZE: &str = "SELECT (CASE WHEN relpages = 0 OR reltuples < 0 THEN pg_relation_size(oid) / 250 ELSE reltuples END)::bigint, \
    pg_total_relation_size(oid) FROM pg_class \
    WHERE oid = 'claimant_records'::regclass";

const RENEW: &str = "UPDATE claimant_records SET lease_until = $4, updated_at = $5, expires_at_s = $6 \
    WHERE id = $1 AND owner = $2 AND fence = $3 AND status = 'IN_PROGRESS' AND lease_until < $4";

/// The rows are locked in the order of their ids first, so that two batches do not wait for each other. A part that locks rows is never
/// merged into the statement; the word `MATERIALIZED`, which says so of others, is unknown to PostgreSQL 11.
const END: &str = "WITH ended AS (SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::text[], $5::bigint[], \
    $6::bigint[], $7::bigint[], $8::bytea[], $9::bytea[], $10::bigint[]) AS e (id, owner, fence, status, updated_at, \
    completed_at, expires_at_s, result, error, attempts_back)), \
    held AS (SELECT e.* FROM ended e JOIN claimant_records r ON r.id = e.id AND r.owner = e.owner \
    AND r.fence = e.fence AND r.status = 'IN_PROGRESS' ORDER BY r.id FOR UPDATE OF r) \
    UPDATE claimant_records r SET status = h.status, updated_at = h.updated_at, completed_at = h.completed_at, \
    expires_at_s = h.expires_at_s, result = h.result, error = h.error, \
    attempts = GREATEST(r.attempts - h.attempts_back, 0) \
    FROM held h WHERE r.id = h.id AND r.owner = h.owner AND r.fence = h.fence AND r.status = 'IN_PROGRESS'";

const DELETE_EXPIRED: &str = "DELETE FROM claimant_records WHERE id IN (SELECT id FROM claimant_records \
    WHERE expires_at_s < $1 AND (status <> 'IN_PROGRESS' OR lease_until < $2) ORDER BY expires_at_s LIMIT $3 \
    FOR UPDATE SKIP LOCKED)";

fn offer<'q>(records: &[(&RecordId, Record)]) -> Statement<'q> {
    query(OFFER)
        .bind(each(records, |(id, _)| key(id).to_vec()))
        .bind(each(records, |(_, r)| r.status.as_str()))
        .bind(each(records, |(_, r)| r.owner.as_str().as_bytes().to_vec()))
        .bind(each(records, |(_, r)| bigint(r.fence.get())))
        .bind(each(records, |(_, r)| time(r.lease_until)))
        .bind(each(records, |(_, r)| i64::from(r.attempts)))
        .bind(each(records, |(_, r)| r.message_id.as_str().as_bytes().to_vec()))
        .bind(each(records, |(_, r)| r.fingerprint.to_stored()))
        .bind(each(records, |(_, r)| time(r.created_at)))
        .bind(each(records, |(_, r)| time(r.updated_at)))
        .bind(each(records, |(_, r)| r.completed_at.map(time)))
        .bind(each(records, |(_, r)| bigint(r.expires_at_s)))
        .bind(each(records, |(_, r)| bytes(r.result.as_deref())))
        .bind(each(records, |(_, r)| bytes(r.error.as_deref())))
        .bind(each(records, |(_, r)| bytes(r.note.as_deref())))
}

pub(super) fn replace<'q>(id: &'q RecordId, seen: &'q Record, next: &'q Record) -> Statement<'q> {
    bound!(query(REPLACE).bind(key(id)), bind, next)
        .bind(seen.status.as_str())
        .bind(seen.owner.as_str().as_bytes())
        .bind(bigint(seen.fence.get()))
        .bind(time(seen.lease_until))
}

fn end<'q>(endings: &[&(Claim, Settlement)]) -> Statement<'q> {
    let completed = |s: &Settlement| (s.ending.status() == Status::Completed).then(|| time(s.now));
    query(END)
        .bind(each(endings, |(c, _)| key(&c.id).to_vec()))
        .bind(each(endings, |(c, _)| c.owner.as_str().as_bytes().to_vec()))
        .bind(each(endings, |(c, _)| bigint(c.fence.get())))
        .bind(each(endings, |(_, s)| s.ending.status().as_str()))
        .bind(each(endings, |(_, s)| time(s.now)))
        .bind(each(endings, |(_, s)| completed(s)))
        .bind(each(endings, |(_, s)| bigint(window_end(s.now, &s.policy))))
        .bind(each(endings, |(_, s)| bytes(s.ending.result())))
        .bind(each(endings, |(_, s)| bytes(s.ending.error().as_deref())))
        .bind(each(endings, |(_, s)| i64::from(s.ending.attempts_back())))
}

/// Returns one value of each, for an array.
fn each<T, V>(all: &[T], value: impl Fn(&T) -> V) -> Vec<V> {
    all.iter().map(value).collect()
}

impl Dialect for Postgres {
    const BEGIN: &'static str =
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '1s'; SET LOCAL statement_timeout = '5s'";
    const LOCK_TABLE: &'static str = "; LOCK TABLE claimant_records IN ROW EXCLUSIVE MODE";
    const COMMIT: &'static str = cleared!("COMMIT; ");
    const ROLLBACK: &'static str = cleared!("ROLLBACK; ");

    async fn hand_over(session: &mut Session<'_, Self>, lease: std::time::Duration) -> Result<AtServer, SqlError> {
        let idle = i32::try_from(lease.as_millis()).unwrap_or(i32::MAX).max(1);
        let text = format!(
            "SET LOCAL lock_timeout = DEFAULT; SET LOCAL statement_timeout = DEFAULT; \
             SET LOCAL idle_in_transaction_session_timeout = {idle}; SELECT pg_backend_pid()::bigint, txid_current()"
        );
        let rows = session.rows("handing over a transaction", sqlx::AssertSqlSafe(text)).await?;
        Ok(AtServer { connection: number(&rows, 0)?, transaction: number(&rows, 1)? })
    }

    fn kill(at: AtServer) -> String {
        // Its number counts further than the one that the server shows of each connection.
        let (connection, transaction) = (at.connection, at.transaction & i64::from(u32::MAX));
        format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE pid = {connection} AND backend_xid::text::bigint = {transaction}"
        )
    }

    async fn control(session: &mut Session<'_, Self>, operation: &str, text: String) -> Result<(), SqlError> {
        session.execute(operation, sqlx::AssertSqlSafe(text)).await.map(drop)
    }

    async fn offer(session: &mut Session<'_, Self>, records: &[(&RecordId, Record)]) -> Result<Seen, SqlError> {
        seen(&session.rows("claiming", offer(records)).await?)
    }

    async fn replace(
        session: &mut Session<'_, Self>,
        id: &RecordId,
        seen: &Record,
        next: &Record,
    ) -> Result<bool, SqlError> {
        Ok(session.execute("claiming", replace(id, seen, next)).await?.rows_affected() == 1)
    }

    async fn renew(session: &mut Session<'_, Self>, claim: &Claim, renewal: &Renewal) -> Result<bool, SqlError> {
        let statement = query(RENEW)
            .bind(key(&claim.id))
            .bind(claim.owner.as_str().as_bytes())
            .bind(bigint(claim.fence.get()))
            .bind(time(renewal.lease_until))
            .bind(time(renewal.now))
            .bind(bigint(expiry(renewal.now, renewal.lease_until, &renewal.policy)));
        Ok(session.execute("renewing a lease", statement).await?.rows_affected() == 1)
    }

    async fn end(session: &mut Session<'_, Self>, endings: &[&(Claim, Settlement)]) -> Result<usize, SqlError> {
        let ended = session.execute("settling", end(endings)).await?.rows_affected();
        // OK because it is at most the number of the endings.
        Ok(ended as usize)
    }

    async fn read(session: &mut Session<'_, Self>, ids: &[&RecordId]) -> Result<Seen, SqlError> {
        let statement = query(READ).bind(each(ids, |id| key(id).to_vec()));
        seen(&session.rows("reading records", statement).await?)
    }

    async fn last_of_page(session: &mut Session<'_, Self>, range: &Range) -> Result<Option<Vec<u8>>, SqlError> {
        let skipped = i64::from(PAGE_RECORDS - 1);
        let statement = query(LAST_OF_PAGE).bind(&*range.after).bind(&*range.until).bind(skipped);
        Ok(ids(&session.rows("listing records", statement).await?)?.pop())
    }

    async fn count(session: &mut Session<'_, Self>, range: &Range) -> Result<i64, SqlError> {
        let statement = query(COUNT).bind(&*range.after).bind(&*range.until);
        number(&session.rows("counting records", statement).await?, 0)
    }

    async fn list(session: &mut Session<'_, Self>, range: &Range, filter: &Filter) -> Result<Listed, SqlError> {
        let (statuses, before) = asked_for(filter);
        let statement = query(LIST).bind(&*range.after).bind(&*range.until).bind(statuses).bind(before);
        listed(&session.rows("listing records", statement).await?)
    }

    async fn size(session: &mut Session<'_, Self>) -> Result<(i64, i64), SqlError> {
        let rows = session.rows("measuring the table", query(SIZE)).await?;
        Ok((number(&rows, 0)?, number(&rows, 1)?))
    }

    async fn delete_expired(session: &mut Session<'_, Self>, before: Timestamp, portion: u32) -> Result<u64, SqlError> {
        let (window, lease) = (bigint(before.as_millis() / 1_000), time(before));
        let statement = query(DELETE_EXPIRED).bind(window).bind(lease).bind(i64::from(portion));
        Ok(session.execute("deleting expired records", statement).await?.rows_affected())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_can_settle_what_it_can_claim() {
        for statement in [OFFER, REPLACE, RENEW, END] {
            assert!(!statement.contains("MATERIALIZED"), "PostgreSQL 11 does not know the word: {statement}");
        }
    }

    #[test]
    fn only_the_transaction_is_ended_that_was_handed_over_whatever_its_connection_has_begun_since() {
        let kill = Postgres::kill(AtServer { connection: 7, transaction: (3 << 32) + 9 });
        assert!(kill.ends_with("WHERE pid = 7 AND backend_xid::text::bigint = 9"), "{kill}");
    }
}
