//! Opens the stores of a place.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use claimant_core::{Error, Record, RecordId, Records, State};
use claimant_dynamodb::{LockTable, Tables, outranks};
use claimant_redis::{PREFIX_DEFAULT, RedisStore};
use claimant_sql::{MySqlStore, PostgresStore};
use futures_util::future::try_join_all;

use crate::keys::{Inspection, Keys, Listed, Query};
use crate::place::{Place, StoreAddress};
use crate::text::typed;

/// Connections to a database: an operator asks for one thing at a time, a list for a few parts.
const CONNECTIONS: u32 = 4;

/// A store of a place.
pub struct OpenStore {
    /// What it is called: the name of the table, of several all of them, or the kind of the database, of Redis with the pattern of its keys.
    /// Holds no credential.
    pub name: String,
    /// The prefix of its keys, in Redis: those of functions can have another one.
    pub prefix: Option<String>,
    /// Whether it is a table in DynamoDB, of which functions can give the attributes other names.
    pub is_table: bool,
    /// Its records.
    pub keys: Keys,
}

impl OpenStore {
    /// Checks that a list that found nothing says something: keys can be there that are not seen as such.
    ///
    /// # Errors
    /// When it is not known whether all is well, since the store has records that claimant did not write, or Redis has keys, of which none
    /// has the prefix; or the store gave no answer.
    pub async fn check_known(&self, listed: &Listed) -> Result<(), Error> {
        if listed.foreign > 0 {
            let are = match listed.foreign {
                1 => "1 of its records is".to_owned(),
                many => format!("{many} of its records are"),
            };
            let renamed = if self.is_table {
                ", or have functions given a lock table's attributes other names (LockTable::attribute_names), which no command knows"
            } else {
                ""
            };
            return Err(Error::invalid(format!(
                "it is not known whether all is well in {}: {are} not of the form that claimant writes. Does something else write there{renamed}?",
                self.name
            )));
        }
        let (Some(prefix), 0) = (&self.prefix, listed.looked_at) else { return Ok(()) };
        let has = self.keys.cost().await?.size.records;
        let any = Query { states: Vec::new(), consumer: None, older_than: None, text: None, limit: 1 };
        if has > 0 && self.keys.list(&any, |_| ControlFlow::Continue(())).await?.looked_at == 0 {
            return Err(Error::invalid(format!(
                "it is not known whether all is well: the database has {has} keys, of which none begins with {prefix}:. Have functions set \
                 another prefix (RedisStore::prefix)? Then name it with --prefix"
            )));
        }
        Ok(())
    }
}

impl Place {
    /// Opens every store, in their order, with this clock-skew margin, or the default one.
    ///
    /// # Errors
    /// When there is none, a URL is none that a store has, or a database gives no answer.
    pub async fn open_stores(&self, skew: Option<Duration>) -> Result<Vec<OpenStore>, Error> {
        if self.stores.is_empty() {
            let (name, absent) = (&self.name, self.absent_tables());
            return Err(Error::invalid(match absent.is_empty() {
                true => format!("{name} has no store of records: name it with --table NAME or --store URL"),
                false if self.other_tables.is_empty() => {
                    format!("{name} has no table of records: {}", absent.join("; "))
                }
                false => format!(
                    "{name} has no table of records: {}; a table that is there is read with --table NAME, of {}",
                    absent.join("; "),
                    self.other_tables.join(", ")
                ),
            }));
        }
        let mut open = Vec::new();
        for address in &self.stores {
            let mut store = self.open_store(address).await?;
            if let Some(skew) = skew {
                store.keys = store.keys.skew(skew);
            }
            open.push(store);
        }
        Ok(open)
    }

    async fn open_store(&self, address: &StoreAddress) -> Result<OpenStore, Error> {
        let (url, prefix) = match address {
            StoreAddress::Table(name) => {
                let tables: Tables = name.parse()?;
                // A lock table's requests have little time.
                claimant_aws::sign_in(&self.aws).await;
                let opened = store(name, Arc::new(LockTable::new(self.dynamodb(), tables)));
                return Ok(OpenStore { is_table: true, ..opened });
            }
            StoreAddress::Url { url, prefix } => (url, prefix.as_deref()),
        };
        let exposed = url.expose();
        if url.has_scheme(&["redis", "rediss", "valkey", "valkeys", "redis+unix", "valkey+unix", "unix"]) {
            return in_redis("Redis", RedisStore::open(exposed)?, prefix);
        }
        for (cluster, plain) in [("redis-cluster://", "redis://"), ("rediss-cluster://", "rediss://")] {
            if let Some(rest) = exposed.strip_prefix(cluster) {
                return in_redis("the Redis cluster", RedisStore::open_cluster(&format!("{plain}{rest}"))?, prefix);
            }
        }
        if prefix.is_some() {
            return Err(Error::invalid("keys have a prefix in Redis alone: leave --prefix out"));
        }
        if url.has_scheme(&["postgres", "postgresql"]) {
            return Ok(store("PostgreSQL", Arc::new(PostgresStore::connect(exposed, CONNECTIONS).await?)));
        }
        if url.has_scheme(&["mysql", "mariadb"]) {
            return Ok(store("MySQL", Arc::new(MySqlStore::connect(exposed, CONNECTIONS).await?)));
        }
        Err(Error::invalid(
            "the store's URL begins with none of postgres://, mysql://, redis://, rediss://, valkey://, valkeys://, \
             redis-cluster://, rediss-cluster://",
        ))
    }
}

fn store(name: &str, records: Arc<dyn Records>) -> OpenStore {
    OpenStore { name: name.to_owned(), prefix: None, is_table: false, keys: Keys::new(records) }
}

fn in_redis(kind: &str, opened: RedisStore, prefix: Option<&str>) -> Result<OpenStore, Error> {
    let prefix = prefix.unwrap_or(PREFIX_DEFAULT);
    let opened = store(&format!("{kind} {prefix}:*"), Arc::new(opened.prefix(prefix)?));
    Ok(OpenStore { prefix: Some(prefix.to_owned()), ..opened })
}

/// A record, or where it would be.
pub struct Located<'a> {
    /// Its id.
    pub id: RecordId,
    /// What is there, if anything.
    pub record: Option<Record>,
    /// The store that has it; where none has, the first one.
    pub store: &'a OpenStore,
}

impl Located<'_> {
    /// Returns what is known of it, and what would come next, without another request.
    ///
    /// # Errors
    /// When the operating system has no random numbers.
    pub fn inspect(&self) -> Result<Inspection, Error> {
        self.store.keys.explain(&self.id, self.record.clone())
    }

    /// Returns what the record means now; `None` where there is none.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        let (now, skew) = self.store.keys.now();
        self.record.as_ref().map(|record| State::of(record, now, skew))
    }

    /// Returns whether there is a record within its window: one that is over counts as absent.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.state().is_some_and(|state| state != State::Over)
    }
}

/// The records that an operator's text means: two where a key has one in the clear and one that is hashed, since `.hashed_keys()` was added
/// to its consumer or removed, and neither is over. Which of them its functions go by is not known here.
pub struct Meant<'a> {
    /// The one in the clear where it counts; else the hashed one, where that counts; else what is there of them and is over, the one in the
    /// clear first, or none, by the first of the ids.
    pub first: Located<'a>,
    /// The hashed one, beside one in the clear, where both count.
    pub other: Option<Located<'a>>,
}

impl<'a> Meant<'a> {
    /// Returns each of them.
    pub fn all(&self) -> impl Iterator<Item = &Located<'a>> {
        std::iter::once(&self.first).chain(&self.other)
    }

    /// Returns the ids of both with their states, in words; `None` where there is one or none.
    #[must_use]
    pub fn two(&self) -> Option<String> {
        let named = |one: &Located<'_>| {
            let state = one.state().map_or("absent", State::as_str);
            format!("{} ({state})", typed(one.id.as_str()))
        };
        let other = self.other.as_ref()?;
        Some(format!("{} and {}", named(&self.first), named(other)))
    }
}

/// Finds a record. Of two stores that have it, as while records move from one set of tables to another, the one counts whose record counts
/// there.
///
/// # Errors
/// When a store gave no answer, or there is none.
pub async fn find<'a>(stores: &'a [OpenStore], id: &RecordId) -> Result<Located<'a>, Error> {
    let store = stores.first().ok_or_else(|| Error::invalid("there is no store of records"))?;
    let mut found = Located { id: id.clone(), record: None, store };
    for store in stores {
        let Some(record) = store.keys.get(id).await? else { continue };
        if found.record.as_ref().is_none_or(|old| !outranks(old, &record)) {
            found = Located { record: Some(record), store, ..found };
        }
    }
    Ok(found)
}

/// Finds the records of these ids, one or two, as [`Keys::ids`] returns them. All are read, at the same time. A record that is over counts as
/// absent, and is meant only where no other one counts.
///
/// # Errors
/// As for [`find`], or when there is no id.
pub async fn find_meant<'a>(stores: &'a [OpenStore], ids: &[RecordId]) -> Result<Meant<'a>, Error> {
    let found = try_join_all(ids.iter().map(|id| find(stores, id))).await?;
    let ranks: Vec<_> = found.iter().map(|one| (one.counts(), one.record.is_some())).collect();
    let best = ranks.iter().max();
    let mut meant = found.into_iter().zip(&ranks).filter(|(_, rank)| Some(*rank) == best).map(|(one, _)| one);
    let first = meant.next().ok_or_else(|| Error::invalid("there is no id of a record"))?;
    Ok(Meant { first, other: meant.next().filter(Located::counts) })
}
