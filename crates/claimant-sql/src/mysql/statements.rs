//! Every statement and its guard: those that MySQL and MariaDB have in common.

use std::borrow::Cow;

use claimant_core::protocol::{Renewal, Settlement, expiry, window_end};
use claimant_core::{Claim, Filter, Record, RecordId, Status, Timestamp};
use sqlx::mysql::MySqlArguments;
use sqlx::query::Query;
use sqlx::{MySql, QueryBuilder, query};

use crate::dialect::{AtServer, Dialect};
use crate::error::SqlError;
use crate::range::{PAGE_RECORDS, Range};
use crate::record::{
    Listed, Seen, asked_for, bigint, bound, bytes, columns, ids, key, listed, listed_columns, number, seen, time,
};
use crate::session::Session;

type Statement<'q> = Query<'q, MySql, MySqlArguments>;

const INSERT: &str = concat!("INSERT INTO claimant_records (", columns!(), ") ");

const READ: &str = concat!("SELECT ", columns!(), " FROM claimant_records WHERE id IN (");

const REPLACE: &str = "UPDATE claimant_records SET status = ?, owner = ?, fence = ?, lease_until = ?, attempts = ?, \
    message_id = ?, fingerprint = ?, created_at = ?, updated_at = ?, completed_at = ?, expires_at_s = ?, result = ?, \
    error = ?, note = ? WHERE id = ? AND status = ? AND owner = ? AND fence = ? AND lease_until = ?";

const LAST_OF_PAGE: &str = "SELECT id FROM claimant_records WHERE id > ? AND id <= ? ORDER BY id LIMIT 1 OFFSET ?";

const COUNT: &str = "SELECT COUNT(*) FROM claimant_records WHERE id > ? AND id <= ?";

const LIST: &str = concat!(
    "SELECT ",
    listed_columns!(),
    " FROM claimant_records WHERE id > ? AND id <= ? AND FIND_IN_SET(status, ?) AND updated_at < ?"
);

const SIZE: &str = "SELECT CAST(table_rows AS SIGNED), CAST(data_length + index_length AS SIGNED) \
    FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'claimant_records'";

const RENEW: &str = "UPDATE claimant_records SET lease_until = ?, updated_at = ?, expires_at_s = ? \
    WHERE id = ? AND owner = ? AND fence = ? AND status = 'IN_PROGRESS' AND lease_until < ?";

const DELETE_EXPIRED: &str = "DELETE FROM claimant_records \
    WHERE expires_at_s < ? AND (status <> 'IN_PROGRESS' OR lease_until < ?) ORDER BY expires_at_s LIMIT ?";

const FIND_EXPIRED: &str = "SELECT id FROM claimant_records \
    WHERE expires_at_s < ? AND (status <> 'IN_PROGRESS' OR lease_until < ?) ORDER BY expires_at_s, id LIMIT ? OFFSET ?";

/// By the key alone: an expression keeps the server from the index of the expiry, by which it would wait for other rows.
const DELETE_ONE_EXPIRED: &str = "DELETE FROM claimant_records \
    WHERE expires_at_s + 0 < ? AND (status <> 'IN_PROGRESS' OR lease_until < ?) AND id = ?";

const DELETING: &str = "deleting expired records";

fn insert(records: &[(&RecordId, Record)]) -> QueryBuilder<MySql> {
    let mut text = QueryBuilder::new(INSERT);
    text.push_values(records, |mut row, (id, r)| {
        row.push_bind(key(id));
        bound!(row, push_bind, r);
    });
    text
}

pub(super) fn replace<'q>(id: &'q RecordId, seen: &'q Record, next: &'q Record) -> Statement<'q> {
    bound!(query(REPLACE), bind, next)
        .bind(key(id))
        .bind(seen.status.as_str())
        .bind(seen.owner.as_str().as_bytes())
        .bind(bigint(seen.fence.get()))
        .bind(time(seen.lease_until))
}

/// The values that an ending writes: claims with the same values share a statement.
#[derive(PartialEq)]
struct Written<'a> {
    status: Status,
    now: Timestamp,
    expires_at_s: u64,
    result: Option<&'a str>,
    error: Option<Cow<'a, str>>,
    attempts_back: u32,
}

impl<'a> Written<'a> {
    fn by(settlement: &'a Settlement) -> Self {
        Self {
            status: settlement.ending.status(),
            now: settlement.now,
            expires_at_s: window_end(settlement.now, &settlement.policy),
            result: settlement.ending.result(),
            error: settlement.ending.error(),
            attempts_back: settlement.ending.attempts_back(),
        }
    }
}

fn end(written: &Written<'_>, claims: &[&Claim]) -> QueryBuilder<MySql> {
    let mut text = QueryBuilder::new("UPDATE claimant_records SET status = ");
    text.push_bind(written.status.as_str());
    text.push(", updated_at = ").push_bind(time(written.now));
    text.push(", completed_at = ").push_bind((written.status == Status::Completed).then(|| time(written.now)));
    text.push(", expires_at_s = ").push_bind(bigint(written.expires_at_s));
    text.push(", result = ").push_bind(bytes(written.result));
    text.push(", error = ").push_bind(bytes(written.error.as_deref()));
    text.push(", attempts = GREATEST(attempts - ").push_bind(i64::from(written.attempts_back));
    // By the key alone, so that the index is read in the same order everywhere.
    text.push(", 0) WHERE status = 'IN_PROGRESS' AND id IN (");
    list(&mut text, claims.iter().map(|claim| &claim.id));
    text.push(") AND (id, owner, fence) IN ");
    text.push_tuples(claims, |mut row, claim| {
        row.push_bind(key(&claim.id).to_vec())
            .push_bind(claim.owner.as_str().as_bytes().to_vec())
            .push_bind(bigint(claim.fence.get()));
    });
    text
}

fn list<'a>(text: &mut QueryBuilder<MySql>, ids: impl Iterator<Item = &'a RecordId>) {
    let mut list = text.separated(", ");
    for id in ids {
        list.push_bind(key(id).to_vec());
    }
}

/// Builds a statement. Its text depends on the number of records; for many records it is not kept prepared, since a server's
/// prepared statements are limited.
fn prepared(text: &mut QueryBuilder<MySql>, records: usize) -> Statement<'_> {
    text.build().persistent(records == 1)
}

impl Dialect for MySql {
    // Without autocommit, so that nothing commits by itself after an error that made the server roll back. And the server rolls back
    // what a process leaves before it is handed over. A lock of the whole table is nobody's claim of the key: it outlasts the client's
    // limit, so that the claim is tried again, where that of a row answers that the key is busy.
    const BEGIN: &'static str = "SET SESSION autocommit = 0, innodb_lock_wait_timeout = 1, lock_wait_timeout = 3, wait_timeout = 5; \
                                 SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
    const LOCK_TABLE: &'static str = "";
    const COMMIT: &'static str = "COMMIT; SET SESSION autocommit = 1, innodb_lock_wait_timeout = 1, lock_wait_timeout = 1, \
                                  wait_timeout = DEFAULT; DO RELEASE_ALL_LOCKS()";
    const ROLLBACK: &'static str = "ROLLBACK; SET SESSION autocommit = 1, innodb_lock_wait_timeout = 1, lock_wait_timeout = 1, \
                                  wait_timeout = DEFAULT; DO RELEASE_ALL_LOCKS()";

    async fn hand_over(session: &mut Session<'_, Self>, lease: std::time::Duration) -> Result<AtServer, SqlError> {
        let text = format!(
            "SET SESSION innodb_lock_wait_timeout = DEFAULT, lock_wait_timeout = DEFAULT, wait_timeout = {}; \
             SELECT CAST(CONNECTION_ID() AS SIGNED)",
            lease.as_millis().div_ceil(1_000).max(1)
        );
        let rows = session.rows("handing over a transaction", sqlx::AssertSqlSafe(text)).await?;
        Ok(AtServer { connection: number(&rows, 0)?, transaction: 0 })
    }

    fn kill(at: AtServer) -> String {
        format!("KILL CONNECTION {}", at.connection)
    }

    async fn control(session: &mut Session<'_, Self>, operation: &str, text: String) -> Result<(), SqlError> {
        session.execute(operation, sqlx::AssertSqlSafe(text)).await.map(drop)
    }

    /// A plain INSERT, which applies if all keys are fresh; if one is not, inserts the fresh ones, and then reads all.
    async fn offer(session: &mut Session<'_, Self>, records: &[(&RecordId, Record)]) -> Result<Seen, SqlError> {
        let mut text = insert(records);
        match session.execute("claiming", prepared(&mut text, records.len())).await {
            Ok(_) => return Ok(records.iter().map(|(id, record)| (key(id).to_vec(), record.clone())).collect()),
            Err(error) if !error.duplicate => return Err(error),
            Err(_) if records.len() > 1 => {
                let mut text = insert(records);
                text.push(" ON DUPLICATE KEY UPDATE id = VALUES(id)");
                session.execute("claiming", prepared(&mut text, records.len())).await?;
            }
            Err(_) => {}
        }
        let ids: Vec<_> = records.iter().map(|(id, _)| *id).collect();
        read(session, &ids).await
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
            .bind(time(renewal.lease_until))
            .bind(time(renewal.now))
            .bind(bigint(expiry(renewal.now, renewal.lease_until, &renewal.policy)))
            .bind(key(&claim.id))
            .bind(claim.owner.as_str().as_bytes())
            .bind(bigint(claim.fence.get()))
            .bind(time(renewal.lease_until));
        Ok(session.execute("renewing a lease", statement).await?.rows_affected() == 1)
    }

    async fn end(session: &mut Session<'_, Self>, endings: &[&(Claim, Settlement)]) -> Result<usize, SqlError> {
        let mut alike: Vec<(Written<'_>, Vec<&Claim>)> = Vec::new();
        for (claim, settlement) in endings {
            let written = Written::by(settlement);
            match alike.iter_mut().find(|(other, _)| *other == written) {
                Some((_, claims)) => claims.push(claim),
                None => alike.push((written, vec![claim])),
            }
        }
        let mut ended = 0;
        for (written, claims) in alike {
            let mut text = end(&written, &claims);
            ended += session.execute("settling", prepared(&mut text, claims.len())).await?.rows_affected();
        }
        // OK because it is at most the number of the endings: a row counts where it was found, as sqlx asks for.
        Ok(ended as usize)
    }

    async fn read(session: &mut Session<'_, Self>, ids: &[&RecordId]) -> Result<Seen, SqlError> {
        read(session, ids).await
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
        let statement = query(LIST).bind(&*range.after).bind(&*range.until).bind(statuses.join(",")).bind(before);
        listed(&session.rows("listing records", statement).await?)
    }

    async fn size(session: &mut Session<'_, Self>) -> Result<(i64, i64), SqlError> {
        let rows = session.rows("measuring the table", query(SIZE)).await?;
        if rows.is_empty() {
            // The server says why: no database is chosen, it has no such table, or the user may not see it.
            session.rows("measuring the table", query("SELECT 1 FROM claimant_records LIMIT 0")).await?;
            return Ok((0, 0));
        }
        Ok((number(&rows, 0)?, number(&rows, 1)?))
    }

    async fn delete_expired(session: &mut Session<'_, Self>, before: Timestamp, portion: u32) -> Result<u64, SqlError> {
        let (window, lease) = (bigint(before.as_millis() / 1_000), time(before));
        let statement = query(DELETE_EXPIRED).bind(window).bind(lease).bind(i64::from(portion));
        match session.execute(DELETING, statement).await {
            Err(error) if error.contended => delete_each(session, (window, lease), portion).await,
            deleted => Ok(deleted?.rows_affected()),
        }
    }
}

/// Deletes expired records one by one, without those that a transaction holds: MySQL 5.7 and MariaDB 10.5 have no `SKIP LOCKED`.
async fn delete_each(
    session: &mut Session<'_, MySql>,
    (window, lease): (i64, i64),
    portion: u32,
) -> Result<u64, SqlError> {
    let (portion, mut deleted, mut held) = (u64::from(portion), 0, 0_i64);
    while deleted < portion {
        let found = query(FIND_EXPIRED).bind(window).bind(lease).bind(bigint(portion - deleted)).bind(held);
        let ids = ids(&session.rows(DELETING, found).await?)?;
        if ids.is_empty() {
            break;
        }
        for id in ids {
            let statement = query(DELETE_ONE_EXPIRED).bind(window).bind(lease).bind(id);
            match session.execute(DELETING, statement).await {
                Ok(one) => deleted += one.rows_affected(),
                Err(error) if error.contended => held += 1,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(deleted)
}

async fn read(session: &mut Session<'_, MySql>, ids: &[&RecordId]) -> Result<Seen, SqlError> {
    let mut text = QueryBuilder::new(READ);
    list(&mut text, ids.iter().copied());
    text.push(")");
    seen(&session.rows("reading records", prepared(&mut text, ids.len())).await?)
}
