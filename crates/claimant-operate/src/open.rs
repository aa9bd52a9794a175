//! Opens the stores of a place.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::{Error, Record, RecordId, Records};
use claimant_dynamodb::{LockTable, Tables, outranks};
use claimant_redis::RedisStore;
use claimant_sql::{MySqlStore, PostgresStore};

use crate::keys::Keys;
use crate::place::{Place, StoreAddress};

/// Connections to a database: an operator asks for one thing at a time, a list for a few parts.
const CONNECTIONS: u32 = 4;

/// A store of a place.
pub struct OpenStore {
    /// What it is called: the name of the table, of several all of them, or the kind of the database. Holds no credential.
    pub name: String,
    /// Its records.
    pub keys: Keys,
}

impl Place {
    /// Opens every store, in their order, with this clock-skew margin, or the default one.
    ///
    /// # Errors
    /// When there is none, a URL is none that a store has, or a database gives no answer.
    pub async fn open_stores(&self, skew: Option<Duration>) -> Result<Vec<OpenStore>, Error> {
        if self.stores.is_empty() {
            return Err(Error::invalid(format!(
                "{} has no store of records: name it with --table NAME or --store URL",
                self.name
            )));
        }
        let mut open = Vec::new();
        for address in &self.stores {
            let (name, records) = self.open_store(address).await?;
            let keys = Keys::new(records);
            let keys = match skew {
                Some(skew) => keys.skew(skew),
                None => keys,
            };
            open.push(OpenStore { name, keys });
        }
        Ok(open)
    }

    async fn open_store(&self, address: &StoreAddress) -> Result<(String, Arc<dyn Records>), Error> {
        let url = match address {
            StoreAddress::Table(name) => {
                let tables: Tables = name.parse()?;
                return Ok((name.clone(), Arc::new(LockTable::new(self.dynamodb(), tables))));
            }
            StoreAddress::Url(url) => url,
        };
        let exposed = url.expose();
        if url.has_scheme(&["postgres", "postgresql"]) {
            return Ok(("PostgreSQL".to_owned(), Arc::new(PostgresStore::connect(exposed, CONNECTIONS).await?)));
        }
        if url.has_scheme(&["mysql", "mariadb"]) {
            return Ok(("MySQL".to_owned(), Arc::new(MySqlStore::connect(exposed, CONNECTIONS).await?)));
        }
        if url.has_scheme(&["redis", "rediss"]) {
            return Ok(("Redis".to_owned(), Arc::new(RedisStore::open(exposed)?)));
        }
        for (cluster, plain) in [("redis-cluster://", "redis://"), ("rediss-cluster://", "rediss://")] {
            if let Some(rest) = exposed.strip_prefix(cluster) {
                let store = RedisStore::open_cluster(&format!("{plain}{rest}"))?;
                return Ok(("the Redis cluster".to_owned(), Arc::new(store)));
            }
        }
        Err(Error::invalid(
            "the store's URL begins with none of postgres://, mysql://, redis://, rediss://, redis-cluster://, rediss-cluster://",
        ))
    }
}

/// Returns the first of these records that is there, with its store; the first id and the first store where none is. Of two stores that
/// have one, as while records move from one set of tables to another, the store of the record that counts there.
///
/// # Errors
/// When a store gave no answer, or there is neither an id nor a store.
pub async fn find<'a>(stores: &'a [OpenStore], ids: &[RecordId]) -> Result<(RecordId, &'a OpenStore), Error> {
    let mut found: Option<(RecordId, Record, &OpenStore)> = None;
    for store in stores {
        let Some((id, record)) = store.keys.first(ids).await? else { continue };
        if found.as_ref().is_none_or(|(_, old, _)| !outranks(old, &record)) {
            found = Some((id, record, store));
        }
    }
    if let Some((id, _, store)) = found {
        return Ok((id, store));
    }
    match (ids.first(), stores.first()) {
        (Some(id), Some(store)) => Ok((id.clone(), store)),
        _ => Err(Error::invalid("there is no store of records")),
    }
}
