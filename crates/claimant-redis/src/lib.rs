//! claimant's records in Redis or Valkey.
//!
//! | module | holds |
//! | --- | --- |
//! | `store` | [`RedisStore`]: the store |
//! | `attempts` | claims, renewals, settlements and reads: what is written, and what a reply means |
//! | `rounds` | many attempts at once, retried until they have their answers |
//! | `records` | what operators ask of the store |
//! | `write` | one guarded write as a script |
//! | `fields` | records as hashes |
//! | `link` | the connection: opened when it is needed, dropped when it fails |
//! | `eviction` | whether the server evicts records |
//! | `settings` | [`Settings`]: read from the environment |
//! | `error` | maps Redis's errors to store errors |
//!
//! ```no_run
//! # mod claimant { pub use claimant_core::*; pub mod redis { pub use claimant_redis::*; } }
//! # fn main() -> Result<(), claimant::Error> {
//! let store = claimant::redis::RedisStore::from_env()?;
//! # drop(store);
//! # Ok(())
//! # }
//! ```
//!
//! # What Redis does not promise
//!
//! A record is as safe as the server that holds it. The protocol's invariants hold as long as a write that was answered
//! stays there; Redis gives that up in more ways than a database does:
//!
//! | what happens | what is lost | what then can happen |
//! | --- | --- | --- |
//! | failover to a replica: replication is asynchronous, and `WAIT` only makes loss less likely | the last writes before it, often milliseconds, in a partition seconds of them | completed work runs again (S2, S5), two handlers run at once (S11), a fence is given out twice (S1) |
//! | a primary cut off from its replicas goes on answering until it notices, by `min-replicas-to-write`, which before Redis 6.2.7 does not stop scripts | all that it answered since | the same |
//! | a restart without persistence, or with `appendfsync everysec` | all records, or the last second | the same, for all keys |
//! | eviction: any `maxmemory-policy` but `noeviction`, which is not the default of Amazon ElastiCache | records, completed ones too | completed work runs again |
//! | `FLUSHALL`, `DEL`, a restored snapshot | what it says | the same |
//!
//! Of these only the policy can be read from outside: a new connection checks it, and logs a warning. What still holds
//! after each of them: renewals and settlements apply only under exactly their own claim (S3), a message is reported successful only if its key was
//! seen completed (S4), and no message is lost (S6).
//!
//! So use it where running some work twice in a rare hour is a nuisance, and the handler passes key and fence on to a
//! system that can refuse a repeat; with `noeviction`, persistence, and replicas. Do not use it where a duplicate costs
//! money and nothing behind the handler would notice: use DynamoDB or a database that answers after the write is durable.
//! Amazon MemoryDB answers after its log has the write, and loses nothing in a failover; Amazon ElastiCache does not.
//!
//! # What the server needs
//!
//! Redis 4 or newer (6.2.7, if `min-replicas-to-write` is to count), or Valkey. `maxmemory-policy noeviction`: when its memory is full, no new key is claimed; failed
//! and abandoned keys are, and all claims are renewed and settled, in memory beyond `maxmemory`, so leave the host room for that. The user needs `EVALSHA`, `EVAL`, `HGETALL`, `HGET`, `HSET`, `HDEL`
//! and `PEXPIRE` on the keys `claimant:*` (or the [prefix](RedisStore::prefix) chosen), and `INFO`, if the policy is to be checked; in a database other than 0 also `SELECT`; an operator's also `SCAN` and `DBSIZE`. Each script touches one key,
//! so a cluster may place keys anywhere: [`RedisStore::open_cluster`]. There the user also needs `CLUSTER|SLOTS` (before Redis 7
//! `CLUSTER`), `PING`, and `ASKING`, for keys whose slot is being moved to another node.
//!
//! A user that lacks one of these commands is refused before its first claim is written; but in Redis 6 one that lacks `HDEL` or `PEXPIRE` is
//! refused after it: the record does not expire, and at most once its work is parked unrun.

mod attempts;
mod error;
mod eviction;
mod fields;
#[cfg(test)]
mod fuzz;
mod link;
mod records;
mod rounds;
mod settings;
mod store;
mod write;

pub use settings::Settings;
pub use store::{PREFIX_DEFAULT, RedisStore};
