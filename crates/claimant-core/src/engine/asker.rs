//! Who asks for the record of a breaker or of a limit, and of the intake: an invocation, or a worker.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::guarded::GuardedStore;
use crate::claim::{Claim, OwnerToken};
use crate::clock::{Clock, Timestamp};
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::intake::Intake;
use crate::invocation_time::{answered, store_call};
use crate::key::{ConsumerName, MessageId, RecordId};
use crate::meter::Meter;
use crate::protocol::breaker::Expected;
use crate::protocol::{Abandoned, ClaimPolicy, ClaimRequest, Conflicts, Ending, Likely, Renewal, Settlement};
use crate::record::Record;
use crate::store::{Call, ClaimAnswer, Renewed, Settled, Store, StoreError, StoreErrorKind};

/// An invocation or a worker that asks.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) consumer: &'a ConsumerName,
    pub(crate) store: GuardedStore<'a>,
    /// What lets messages in, where that is to be paused.
    pub(crate) intake: Option<&'a dyn Intake>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) meter: &'a Meter,
    /// When it has to have its answers.
    pub(crate) by: Instant,
    pub(crate) expected: Expected,
}

impl<'a> Asker<'a> {
    fn call(&self) -> (Duration, Call<'a>) {
        store_call(self.by, self.meter)
    }

    /// Reads a record.
    pub(crate) async fn get(&self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        let (within, call) = self.call();
        answered(within, self.store.get(id, call)).await
    }

    /// Claims a record until then, with the name of who does it in place of a message.
    pub(crate) async fn claim(
        &self,
        what: (&RecordId, &MessageId),
        times: (Timestamp, Timestamp),
        policy: ClaimPolicy,
    ) -> Result<ClaimAnswer, StoreError> {
        self.claim_with(Fingerprint::of_bytes(&[]), what, times, policy).await
    }

    /// Claims one, with the fingerprint of what it is claimed for.
    pub(crate) async fn claim_with(
        &self,
        fingerprint: Fingerprint,
        (id, by): (&RecordId, &MessageId),
        (now, lease_until): (Timestamp, Timestamp),
        policy: ClaimPolicy,
    ) -> Result<ClaimAnswer, StoreError> {
        let request = ClaimRequest {
            id: id.clone(),
            owner: OwnerToken::draw().map_err(|error| StoreError::new(StoreErrorKind::Other, error.to_string()))?,
            message_id: by.clone(),
            fingerprint,
            now,
            lease_until,
            policy,
            likely: Likely::Known,
        };
        let (within, call) = self.call();
        answered(within, self.store.claim(&request, call)).await
    }

    /// Renews a claim.
    pub(crate) async fn renew(&self, claim: &mut Claim, renewal: Renewal) -> Result<Renewed, StoreError> {
        let (within, call) = self.call();
        answered(within, self.store.renew(claim, renewal, call)).await
    }

    /// Releases a claim. Without an answer it ends with its lease.
    pub(crate) async fn release(&self, claim: Claim, policy: ClaimPolicy) -> Settled {
        let settlement = Settlement { ending: Ending::Released, now: self.clock.now(), policy };
        let (within, call) = self.call();
        let settled = timeout(within, self.store.settle(claim, &settlement, call)).await;
        settled.unwrap_or_else(|_| Settled::given_up(within))
    }
}

/// Returns the policy of a record that processes share: no work is lost with its owner, and every request is the same.
pub(crate) const fn policy(skew: Duration, window_s: u64) -> ClaimPolicy {
    let window = Duration::from_secs(window_s);
    ClaimPolicy { abandoned: Abandoned::Rerun, conflicts: Conflicts::Ignore, skew, window }
}

/// A worker that takes its work by itself and not in batches, as one that asks.
pub(crate) struct Worker {
    pub(crate) name: ConsumerName,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    meter: Meter,
    /// How long one of its runs can take.
    longest: Duration,
}

impl Worker {
    /// Returns the worker of this name, with a store whose claims outlive it.
    ///
    /// # Errors
    /// With these faults of its `setting`, and if the store's claims end with their owners, so that no other process would see them.
    pub(crate) fn new(
        (name, setting, mut faults): (&str, &str, Vec<String>),
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        longest: Duration,
    ) -> Result<Self, Error> {
        if !store.claims_outlive_owners() {
            faults.push(format!("a {setting} needs a store whose claims outlive their owners"));
        }
        Error::unless_empty(&format!("the worker's {setting} is not usable"), &faults)?;
        Ok(Self { name: ConsumerName::new(name)?, store, clock, meter: Meter::default(), longest })
    }

    /// Returns it as one that asks, with its answers within this time.
    pub(crate) fn asker(&self, within: Duration) -> Asker<'_> {
        let Self { name, store, clock, meter, longest } = self;
        let (store, clock) = (GuardedStore::new(store.as_ref()), clock.as_ref());
        let by = Instant::now() + within;
        let expected = Expected { turn: Duration::ZERO, run: *longest };
        Asker { consumer: name, store, intake: None, clock, meter, by, expected }
    }
}
