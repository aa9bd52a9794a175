//! What stands between a consumer and its store: each call is a step, and what is claimed and completed is noted; and which records messages have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use claimant_core::protocol::{ClaimRequest, Ending, Renewal, Settlement};
use claimant_core::{
    BoxFuture, Call as StoreCall, Claim, ClaimAnswer, MessageId, RecordId, Renewed, Settled, Store, StoreError,
    Timestamp,
};

use crate::faulty::{Call, FaultyStore};
use crate::life::{self, Step};

/// What was claimed and completed, and which records messages have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    /// The records that each message has.
    records: BTreeMap<MessageId, BTreeSet<RecordId>>,
    /// How many claims were granted.
    granted: usize,
    /// Who completed each record, and until when that keeps others out.
    completed: BTreeMap<String, (String, Timestamp)>,
    /// Until when each record that was seen completed keeps others out, whoever completed it.
    windows: BTreeMap<String, Timestamp>,
    /// The records that were completed by another owner in that time.
    twice: Vec<String>,
}

impl Seen {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a message has this record, or an event in it.
    pub(crate) fn note_record(&self, message_id: &MessageId, record: &RecordId) {
        self.noted().records.entry(message_id.clone()).or_default().insert(record.clone());
    }

    /// Returns how many claims were granted: without one, no handler ran.
    pub(crate) fn granted(&self) -> usize {
        self.noted().granted
    }

    /// Returns the records that a message has: also of a copy in a batch, for which no claim is made.
    pub(crate) fn records_of(&self, message_id: &MessageId) -> Vec<RecordId> {
        self.noted().records.get(message_id).into_iter().flatten().cloned().collect()
    }

    fn note_completion(&self, record: String, owner: String, settlement: &Settlement) {
        let mut noted = self.noted();
        let before = noted.completed.get(&record);
        if before.is_some_and(|(other, until)| *other != owner && settlement.now < *until) {
            noted.twice.push(record.clone());
        }
        let until = settlement.now.plus(settlement.policy.window);
        noted.windows.insert(record.clone(), until);
        noted.completed.insert(record, (owner, until));
    }

    /// Notes until when a completed record keeps others out.
    pub(crate) fn note_window(&self, record: &RecordId, until: Timestamp) {
        self.noted().windows.insert(record.as_str().to_owned(), until);
    }

    /// Returns whether a record was completed, and its window is over.
    pub(crate) fn is_over(&self, record: &RecordId, now: Timestamp) -> bool {
        self.noted().windows.get(record.as_str()).is_some_and(|until| now >= *until)
    }

    /// Returns the records that two owners have completed within one window: nothing a store may let happen.
    pub(crate) fn completed_twice(&self) -> Vec<String> {
        self.noted().twice.clone()
    }
}

/// A store in front of the consumer's own. Calls for many keys go key by key, so that a process can die between any two.
pub(crate) struct Probe {
    faulty: FaultyStore,
    own: Arc<dyn Store>,
    seen: Seen,
}

impl Probe {
    pub(crate) fn new(faulty: FaultyStore, own: Arc<dyn Store>, seen: Seen) -> Self {
        Self { faulty, own, seen }
    }
}

impl Store for Probe {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: StoreCall<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            life::step(Step::Request(Call::Claim)).await;
            let answer = self.faulty.claim(request, call).await;
            if matches!(answer, Ok(ClaimAnswer::Granted(_))) {
                self.seen.noted().granted += 1;
            }
            life::step(Step::Answer(Call::Claim)).await;
            answer
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: StoreCall<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(async move {
            life::step(Step::Request(Call::Renew)).await;
            let answer = self.faulty.renew(claim, renewal, call).await;
            life::step(Step::Answer(Call::Renew)).await;
            answer
        })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: StoreCall<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            let (record, owner) = (claim.id.as_str().to_owned(), claim.owner.as_str().to_owned());
            life::step(Step::Request(Call::Settle)).await;
            let settled = self.faulty.settle(claim, settlement, call).await;
            if matches!((&settled, &settlement.ending), (Settled::Done, Ending::Completed { .. })) {
                self.seen.note_completion(record, owner, settlement);
            }
            life::step(Step::Answer(Call::Settle)).await;
            settled
        })
    }

    crate::pass_on!(self => self.own; claims_max, claims_outlive_owners, get);
}
