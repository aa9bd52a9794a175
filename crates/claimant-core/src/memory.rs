//! The reference store: one map behind one lock.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use crate::claim::Claim;
use crate::key::RecordId;
use crate::protocol::{self, ClaimRequest, Decision, Refusal, RenewDecision, Renewal, SettleDecision, Settlement};
use crate::record::Record;
use crate::records::{Cursor, Filter, Page, Records, Replaced, Size};
use crate::store::{Call, ClaimAnswer, Renewed, Settled, Store, StoreError, StoreErrorKind};

/// A store in memory: the shortest implementation of the contract, for tests and experiments.
///
/// It does not deduplicate across processes, of which a function has many: one that runs on it says so in a warning.
#[derive(Debug, Default)]
pub struct MemoryStore {
    records: Mutex<HashMap<RecordId, Record>>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn records(&self) -> MutexGuard<'_, HashMap<RecordId, Record>> {
        // A poisoned lock is fine to use: each section below is one insert, which a panic cannot split.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claim_now(&self, request: &ClaimRequest) -> ClaimAnswer {
        let mut records = self.records();
        let (next, interruptions) = match protocol::decide(records.get(&request.id), request) {
            Decision::Grant { next, interruptions } => (next, interruptions),
            Decision::Held => {
                return ClaimAnswer::Granted(protocol::held(request.id.clone(), &records[&request.id], None));
            }
            Decision::Park { next } => {
                records.insert(request.id.clone(), next);
                return ClaimAnswer::Refused(Refusal::Parked);
            }
            Decision::Refuse(refusal) => return ClaimAnswer::Refused(refusal),
        };
        let claim = protocol::claim_of(request.id.clone(), &next, interruptions);
        records.insert(request.id.clone(), next);
        ClaimAnswer::Granted(claim)
    }
}

impl Store for MemoryStore {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            call.meter.request();
            Ok(self.claim_now(request))
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(async move {
            call.meter.request();
            let mut records = self.records();
            match protocol::renew(records.get(&claim.id), claim, &renewal) {
                RenewDecision::Lost => return Ok(Renewed::Lost),
                RenewDecision::AlreadyLonger => {}
                RenewDecision::Write(next) => {
                    records.insert(claim.id.clone(), *next);
                }
            }
            claim.lease_until = records[&claim.id].lease_until;
            Ok(Renewed::Held)
        })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            call.meter.request();
            let mut records = self.records();
            match protocol::settle(records.get(&claim.id), &claim, settlement) {
                SettleDecision::Lost => Settled::Lost,
                SettleDecision::AlreadySettled => Settled::Done,
                SettleDecision::Write(next) => {
                    records.insert(claim.id, *next);
                    Settled::Done
                }
            }
        })
    }

    fn records_outlive_process(&self) -> bool {
        false
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            call.meter.request();
            Ok(self.records().get(id).cloned())
        })
    }
}

/// How many records a page has been chosen from at most.
const PAGE_RECORDS: usize = 1_000;

impl Records for MemoryStore {
    fn replace<'a>(
        &'a self,
        id: &'a RecordId,
        seen: &'a Record,
        next: &'a Record,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        Box::pin(async move {
            call.meter.request();
            match self.records().get_mut(id) {
                Some(record) if record.is_same_write(seen) => {
                    record.clone_from(next);
                    Ok(Replaced::Done)
                }
                _ => Ok(Replaced::Changed),
            }
        })
    }

    /// The cursor is the last id of the page before.
    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        from: &'a Cursor,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            call.meter.request();
            if !from.as_str().is_empty() && RecordId::from_stored(from.as_str()).is_err() {
                return Err(StoreError::new(StoreErrorKind::Other, "the cursor is not one of a store in memory"));
            }
            let records = self.records();
            let mut ids: Vec<_> = records.keys().filter(|id| id.as_str() > from.as_str()).collect();
            ids.sort_unstable();
            let next = ids.get(PAGE_RECORDS).map(|_| Cursor::new(ids[PAGE_RECORDS - 1].as_str()));
            ids.truncate(PAGE_RECORDS);
            let matching = ids.iter().map(|id| (*id, &records[*id])).filter(|(id, record)| filter.matches(id, record));
            let listed = matching.map(|(id, record)| (id.clone(), Record { result: None, ..record.clone() }));
            Ok(Page { records: listed.collect(), next, looked_at: ids.len() as u64, foreign: 0 })
        })
    }

    fn size<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Size, StoreError>> {
        Box::pin(async move {
            call.meter.request();
            let records = self.records();
            let bytes: usize = records.iter().map(|(id, record)| id.as_str().len() + size_of_val(record)).sum();
            Ok(Size { records: records.len() as u64, bytes: bytes as u64, read_units: None })
        })
    }
}
