//! The records of one consumer's keys, by the default names of the claim protocol.

use std::collections::BTreeMap;

use sqlx::postgres::PgConnection;

use crate::dynamodb::Item;

/// The records of one consumer, by key.
#[derive(Debug, Clone, Default)]
pub(super) struct Records(pub(super) BTreeMap<String, Record>);

/// One key's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) status: Status,
    /// Claims so far. Unlike the attempts, they go on where rejected work is claimed by another message.
    pub(super) fence: u64,
}

/// Where a key stands, as the claim protocol writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    Completed,
    Failed,
    Rejected,
    Parked,
}

impl Status {
    /// Reads a record's status; `None` for a word that is not one.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "IN_PROGRESS" => Some(Self::InProgress),
            "COMPLETED" => Some(Self::Completed),
            "FAILED" => Some(Self::Failed),
            "REJECTED" => Some(Self::Rejected),
            "PARKED" => Some(Self::Parked),
            _ => None,
        }
    }
}

impl Records {
    /// Those of this consumer among the items of a lock table.
    pub(super) fn of_items(items: &[Item], consumer: &str) -> Self {
        let records = items.iter().filter_map(|item| {
            let key = item.text("id")?.strip_prefix(consumer)?.strip_prefix('#')?;
            let fence = item.number("fence").and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
            Some((key.to_owned(), Record { status: Status::parse(item.text("status")?)?, fence }))
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
        let records = rows.into_iter().filter_map(|(key, status, fence)| {
            let fence = u64::try_from(fence).unwrap_or_default();
            Some((key, Record { status: Status::parse(&status)?, fence }))
        });
        Ok(Self(records.collect()))
    }

    /// The status of a key; `None` where it has no record.
    pub(super) fn status(&self, key: &str) -> Option<Status> {
        self.0.get(key).map(|record| record.status)
    }

    /// How often a key was claimed: at least as often as its handler was run, and as often unless the time ran out before a run.
    pub(super) fn claims(&self, key: &str) -> u64 {
        self.0.get(key).map_or(0, |record| record.fence)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
