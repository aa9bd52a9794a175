//! What the lock table says of one consumer's keys, by the default attribute names of the claim protocol.

use std::collections::BTreeMap;

use crate::Error;
use crate::cloud::Cloud;
use crate::stack::FunctionSpec;

/// The variable that names a function's lock table.
const TABLE_VARIABLE: &str = "CLAIMANT_TABLE";

/// The records of one consumer, by key.
#[derive(Debug, Clone, Default)]
pub(super) struct Records(pub(super) BTreeMap<String, Record>);

/// Where a key stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) status: String,
    pub(super) attempts: u64,
}

impl Records {
    /// Those of this consumer in its function's lock table.
    pub(super) fn in_lock_table(cloud: &Cloud, function: &FunctionSpec, consumer: &str) -> Result<Self, Error> {
        let table = super::table_of(function, TABLE_VARIABLE)?;
        let items = cloud.dynamodb().items(table)?;
        let records = items.iter().filter_map(|item| {
            let key = item.text("id")?.strip_prefix(consumer)?.strip_prefix('#')?;
            let attempts = item.number("attempts").and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
            Some((key.to_owned(), Record { status: item.text("status")?.to_owned(), attempts }))
        });
        Ok(Self(records.collect()))
    }

    /// The status of a key; empty where it has no record.
    pub(super) fn status(&self, key: &str) -> &str {
        self.0.get(key).map_or("", |record| record.status.as_str())
    }

    /// How often a key's handler was run.
    pub(super) fn attempts(&self, key: &str) -> u64 {
        self.0.get(key).map_or(0, |record| record.attempts)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
