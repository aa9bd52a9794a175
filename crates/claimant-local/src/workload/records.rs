//! What the records say of one consumer's keys, by the default names of the claim protocol.

use std::collections::BTreeMap;

use sqlx::postgres::PgConnection;

use crate::dynamodb::Item;

/// The records of one consumer, by key.
#[derive(Debug, Clone, Default)]
pub(super) struct Records(pub(super) BTreeMap<String, Record>);

/// Where a key stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) status: String,
    /// Claims so far. Unlike the attempts, they go on where rejected work is claimed by another message.
    pub(super) fence: u64,
}

impl Records {
    /// Those of this consumer among the items of a lock table.
    pub(super) fn of_items(items: &[Item], consumer: &str) -> Self {
        let records = items.iter().filter_map(|item| {
            let key = item.text("id")?.strip_prefix(consumer)?.strip_prefix('#')?;
            let fence = item.number("fence").and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
            Some((key.to_owned(), Record { status: item.text("status")?.to_owned(), fence }))
        });
        Self(records.collect())
    }

    /// Those of this consumer in PostgreSQL, where `claimant_records` has them.
    pub(super) async fn in_postgres(database: &mut PgConnection, consumer: &str) -> Result<Self, sqlx::Error> {
        let rows: Vec<(String, String, i64)> = sqlx::query_as(
            "SELECT convert_from(substr(id, octet_length($1) + 1), 'UTF8'), status, fence FROM claimant_records \
             WHERE substr(id, 1, octet_length($1)) = $1",
        )
        .bind(format!("{consumer}#").into_bytes())
        .fetch_all(database)
        .await?;
        let record = |status, fence: i64| Record { status, fence: u64::try_from(fence).unwrap_or_default() };
        Ok(Self(rows.into_iter().map(|(key, status, fence)| (key, record(status, fence))).collect()))
    }

    /// The status of a key; empty where it has no record.
    pub(super) fn status(&self, key: &str) -> &str {
        self.0.get(key).map_or("", |record| record.status.as_str())
    }

    /// How often a key was claimed: at least as often as its handler was run, and as often unless the time ran out before a run.
    pub(super) fn claims(&self, key: &str) -> u64 {
        self.0.get(key).map_or(0, |record| record.fence)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
