//! Moves records from the tables that had them before: see [`LockTable::before`].
//!
//! A record is in one table at any time: one transaction deletes it where it was and writes it where it is to be, unless either has
//! changed meanwhile. An owner from before, whose lease goes on, can neither renew nor settle then.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, TransactWriteItem};
use claimant_core::{Budget, Fence, Record, RecordId, Status, StoreError, StoreErrorKind};
use futures_util::future::join_all;

use crate::batch::READ_MAX;
use crate::commit::{TransactionCanceled, as_update, canceled};
use crate::error::{consumed_by_all, error_before, error_moving};
use crate::item;
use crate::table::{LockTable, ROUNDS_MAX};

/// The result of one try to move a record.
enum Moved {
    Done,
    /// The record was another one, or the answer is not known: what is there now tells.
    Again(StoreError),
    /// There is a record of this key already.
    There(Record),
}

impl LockTable {
    /// Moves the record of this key to its table, if it is in another one still. Only then may the key be claimed.
    pub(crate) async fn bring(&self, id: &RecordId, budget: Budget<'_>) -> Result<(), StoreError> {
        let Some(before) = self.requests.before(id) else { return Ok(()) };
        let read = self.read_before(before, id, budget).await?;
        self.bring_read((before, id), read, budget).await
    }

    /// Reads a record in the table that had it before.
    async fn read_before(&self, before: &str, id: &RecordId, budget: Budget<'_>) -> Result<Option<Record>, StoreError> {
        self.read_in(before, id, budget, error_before).await
    }

    /// Moves what was read of this key in the table before.
    async fn bring_read(
        &self,
        (before, id): (&str, &RecordId),
        mut read: Option<Record>,
        budget: Budget<'_>,
    ) -> Result<(), StoreError> {
        let (mut there, mut again) = (None, None);
        for round in 0..ROUNDS_MAX {
            if round > 0 {
                if !budget.wait(round).await {
                    break;
                }
                read = self.read_before(before, id, budget).await?;
            }
            let Some(old) = read.take() else { return Ok(()) };
            if there.as_ref().is_some_and(|there| !outranks(&old, there)) {
                return Ok(());
            }
            match self.move_record((before, id), old, there.take(), budget).await? {
                Moved::Done => return Ok(()),
                Moved::Again(error) => again = Some(error),
                Moved::There(record) => there = Some(record),
            }
        }
        let changed = || StoreError::new(StoreErrorKind::Throttled, "the record changed each time it was to be moved");
        Err(again.unwrap_or_else(changed))
    }

    /// Moves the records of these keys, which are different ones; returns for each whether it may be claimed. What was not found
    /// out may not.
    pub(crate) async fn bring_all(&self, ids: &[&RecordId], budget: Budget<'_>) -> Vec<bool> {
        if self.requests.before.is_none() {
            return vec![true; ids.len()];
        }
        let wanted: Vec<_> = ids.iter().filter_map(|id| Some((self.requests.before(id)?, *id))).collect();
        let reads = wanted.chunks(READ_MAX).map(|some| self.read_many(some.iter().copied(), budget));
        let read: Vec<_> = join_all(reads).await;
        join_all(ids.iter().map(async |id| {
            let found = || read.iter().find_map(|found| found.get(id.as_str()));
            match (self.requests.before(id), found()) {
                (None, _) => true,
                (Some(before), Some(read)) => self.bring_read((before, id), read.clone(), budget).await.is_ok(),
                (Some(_), None) => false,
            }
        }))
        .await
    }

    /// Reads a record for operators, where it was before too. In this order, as it can be moved meanwhile.
    pub(crate) async fn read_anywhere(&self, id: &RecordId, budget: Budget<'_>) -> Result<Option<Record>, StoreError> {
        let old = match self.requests.before(id) {
            Some(before) => self.read_before(before, id, budget).await?,
            None => None,
        };
        Ok(match (self.read(id, budget).await?, old) {
            (Some(there), Some(old)) if !outranks(&old, &there) => Some(there),
            (there, old) => old.or(there),
        })
    }

    /// Tries to move a record that was read in the table before, over the one that is there.
    async fn move_record(
        &self,
        (before, id): (&str, &RecordId),
        old: Record,
        there: Option<Record>,
        budget: Budget<'_>,
    ) -> Result<Moved, StoreError> {
        let delete = self.requests.delete(before, id, &old).build();
        let write = match &there {
            None => self.requests.create(id, &old),
            Some(there) => {
                let fence = Fence::new(there.fence.get().max(old.fence.get()));
                self.requests.replace(id, there, &Record { fence, ..old })
            }
        };
        let incomplete = |e| StoreError::new(StoreErrorKind::Other, "a request is incomplete").caused_by(e);
        let items = [
            TransactWriteItem::builder().update(as_update(&write)?).build(),
            TransactWriteItem::builder().delete(delete.map_err(incomplete)?).build(),
        ];
        let request = self.requests.client.transact_write_items().set_transact_items(Some(items.into()));
        let request = request.return_consumed_capacity(ReturnConsumedCapacity::Total);
        let error = match budget.send(Box::pin(request.send())).await? {
            Ok(output) => match consumed_by_all(self.requests.tables.of(id), &output) {
                Ok(units) => {
                    budget.meter().units(units, 0.0);
                    return Ok(Moved::Done);
                }
                Err(error) => return Ok(Moved::Again(error)),
            },
            Err(error) => error,
        };
        if let Some(TransactionCanceled(reasons)) = canceled(&error) {
            let refused = reasons.first().filter(|reason| reason.code() == Some("ConditionalCheckFailed"));
            let shown = match refused {
                None => None,
                Some(reason) => {
                    let shown = reason.item().map(|shown| item::record(shown, &self.requests.names)).transpose()?;
                    self.refused_by(id, shown, budget).await?
                }
            };
            let again =
                || Moved::Again(StoreError::new(StoreErrorKind::Throttled, "the record could not be moved yet"));
            return Ok(shown.map_or_else(again, Moved::There));
        }
        let is_known = matches!(error, SdkError::ServiceError(_));
        let error = error_moving((before, self.requests.tables.of(id)), &error);
        if is_known && !error.kind().is_transient() { Err(error) } else { Ok(Moved::Again(error)) }
    }
}

/// Returns whether, of two records of a key, an old one counts, of the tables [before](crate::LockTable::before), and not the one that is
/// there. Both are there only if keys were claimed with two sets of tables at once: then the one counts that lets its key be claimed
/// the least, unless it ends earlier.
#[must_use]
pub fn outranks(old: &Record, there: &Record) -> bool {
    let rank = |record: &Record| match record.status {
        Status::Failed => 0,
        Status::InProgress => 1,
        Status::Rejected => 2,
        Status::Parked => 3,
        Status::Completed => 4,
    };
    rank(old) > rank(there) && old.expires_at_s >= there.expires_at_s
}
