//! Records in Redis for operators: compare and set, lists by `SCAN`, how much there is.

use std::time::Duration;

use claimant_core::limits::SKEW_DEFAULT_MS;
use claimant_core::{
    BoxFuture, Budget, Call, Cursor, Filter, Page, Record, RecordId, Records, Replaced, Size, StoreError,
    StoreErrorKind,
};
use redis::{Cmd, Value, cmd, from_redis_value};

use crate::attempts::Reading;
use crate::error::store_error;
use crate::rounds::{Attempt, Next, run_all, run_one};
use crate::store::RedisStore;
use crate::write::{Known, Reply, Write};

/// About how many keys a page is chosen from. With the longest results, their records take 16 MB.
const PAGE_KEYS: usize = 250;

/// A record's replacement. Not tried again where the guard does not hold: its caller decides.
struct Replacing {
    write: Write,
}

impl Attempt for Replacing {
    type Answer = Result<Replaced, StoreError>;

    fn command(&self, known: Known) -> Cmd {
        self.write.command(known)
    }

    fn on_reply(self, reply: Reply) -> Next<Self> {
        Next::Answer(Ok(match reply {
            Reply::Applied => Replaced::Done,
            Reply::Shown(_) => Replaced::Changed,
        }))
    }

    fn failed(self, error: StoreError) -> Self::Answer {
        Err(error)
    }
}

impl RedisStore {
    /// Sends one command and returns its answer.
    async fn ask<T: redis::FromRedisValue>(&self, command: Cmd, budget: Budget<'_>) -> Result<T, StoreError> {
        if self.link().is_cluster() {
            return Err(StoreError::new(
                StoreErrorKind::Misconfigured,
                "the keys of a cluster are listed node by node: give the URL of each primary, as of a single server",
            ));
        }
        let answer = self.link().send(&[command], budget, None).await.pop();
        let answer = answer.unwrap_or(Ok(Value::Nil)).map_err(|error| store_error(&error, false))?;
        from_redis_value(answer)
            .map_err(|_| StoreError::new(StoreErrorKind::Other, "the server's answer is of no known form"))
    }

    async fn list_page(&self, filter: &Filter, from: &Cursor, budget: Budget<'_>) -> Result<Page, StoreError> {
        let from: u64 = match from.as_str() {
            "" => 0,
            cursor => {
                cursor.parse().map_err(|_| StoreError::new(StoreErrorKind::Other, "the cursor is not one of Redis"))?
            }
        };
        let prefix = self.key_prefix();
        // Neither prefixes nor consumers' names have a character with a meaning in patterns.
        let pattern = match &filter.consumer {
            Some(consumer) => format!("{prefix}{consumer}[#~]*"),
            None => format!("{prefix}*"),
        };
        let mut scan = cmd("SCAN");
        scan.arg(from).arg("MATCH").arg(pattern).arg("COUNT").arg(PAGE_KEYS);
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask(scan, budget).await?;
        let next = (next != 0).then(|| Cursor::new(next.to_string()));
        let mut page = Page { next, looked_at: keys.len() as u64, ..Page::default() };
        let reads = keys.iter().map(|key| Reading::new(key.clone())).collect();
        for (key, read) in keys.iter().zip(run_all(self.link(), reads, budget).await) {
            let id = key.strip_prefix(prefix.as_bytes()).and_then(|id| std::str::from_utf8(id).ok());
            match (id.and_then(|id| RecordId::from_stored(id).ok()), read) {
                (Some(id), Ok(Some(record))) if filter.matches(&id, &record) => {
                    page.records.push((id, Record { result: None, ..record }));
                }
                // Deleted meanwhile, or of no interest.
                (_, Ok(None)) | (Some(_), Ok(Some(_))) => {}
                // It says nothing of the record.
                (_, Err(error)) if error.kind() != StoreErrorKind::Corrupt => return Err(error),
                _ => page.foreign += 1,
            }
        }
        Ok(page)
    }

    async fn count(&self, budget: Budget<'_>) -> Result<Size, StoreError> {
        let mut info = cmd("INFO");
        info.arg("memory");
        let info: String = self.ask(info, budget).await?;
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        let bytes = used.and_then(|used| used.trim().parse().ok()).unwrap_or_default();
        Ok(Size { records: self.ask(cmd("DBSIZE"), budget).await?, bytes, read_units: None })
    }
}

impl Records for RedisStore {
    fn replace<'a>(
        &'a self,
        id: &'a RecordId,
        seen: &'a Record,
        next: &'a Record,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        let skew = Duration::from_millis(SKEW_DEFAULT_MS);
        let write = Write::replace(&self.key(id), seen, next, next.updated_at, skew);
        Box::pin(run_one(self.link(), Replacing { write }, Budget::of(call)))
    }

    /// A part of `SCAN`, and the hashes that it names. Not for a cluster.
    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        from: &'a Cursor,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(self.list_page(filter, from, Budget::of(call)))
    }

    /// All keys of the database, and all memory of the server.
    fn size<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Size, StoreError>> {
        Box::pin(self.count(Budget::of(call)))
    }
}
