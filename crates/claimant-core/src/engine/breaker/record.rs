//! The record of a breaker, by which all processes share it; it also tells when a paused intake comes back.

use std::time::Duration;

use super::pauses::Pauses;
use crate::breaker::{BREAKER_CONSUMER, Breaker};
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::engine::asker::{Asker, policy};
use crate::key::{ConsumerName, InvalidValue, Key, MessageId, RecordId};
use crate::limits::BREAKER_WINDOW_S;
use crate::protocol::breaker::{Shown, back, shown, window};
use crate::protocol::{ClaimPolicy, Renewal};
use crate::store::{ClaimAnswer, Renewed, Settled, StoreError, StoreErrorKind};

#[derive(Debug)]
pub(crate) struct BreakerRecord {
    id: RecordId,
    /// In place of a message: who opened it.
    by: MessageId,
    policy: ClaimPolicy,
    pub(crate) pauses: Pauses,
}

impl BreakerRecord {
    pub(crate) fn new(breaker: &Breaker, consumer: &ConsumerName, skew: Duration) -> Result<Self, InvalidValue> {
        Ok(Self {
            id: RecordId::new(&ConsumerName::new(BREAKER_CONSUMER)?, &Key::new(breaker.downstream.as_str())?),
            by: MessageId::new(consumer.as_str())?,
            policy: policy(skew, BREAKER_WINDOW_S),
            pauses: Pauses::default(),
        })
    }

    /// Returns when a claim whose lease ends then can be claimed again: the clock skew later.
    pub(crate) fn end(&self, lease_until: Timestamp) -> Timestamp {
        lease_until.plus(self.policy.skew)
    }

    /// Returns the policy by which it is kept, and tells when a paused intake comes back.
    fn policy(&self, now: Timestamp, lease_until: Timestamp) -> ClaimPolicy {
        let window = window(self.end(lease_until), self.pauses.back(now));
        ClaimPolicy { window, ..self.policy }
    }

    /// Returns what is wrong with it where it was answered like this.
    pub(crate) fn lacks(error: &StoreError) -> &'static str {
        match error.kind() {
            StoreErrorKind::Denied => {
                "the store refuses its record: the role or user has to be allowed keys that begin with claimant-breaker#"
            }
            StoreErrorKind::Throttled => "the store put it off",
            StoreErrorKind::Unreachable => "the store gave no answer",
            _ => "its record cannot be written",
        }
    }

    /// Reads it.
    pub(crate) async fn look(&self, asker: Asker<'_>) -> Result<Shown, StoreError> {
        let record = asker.get(&self.id).await?;
        self.pauses.learn(record.as_ref().and_then(|record| back(record, self.policy.skew)));
        Ok(shown(record.as_ref(), asker.clock.now(), self.policy.skew))
    }

    /// Claims it for so long.
    pub(crate) async fn claim(&self, asker: Asker<'_>, lasts: Duration) -> Result<ClaimAnswer, StoreError> {
        let now = asker.clock.now();
        let lease_until = now.plus(lasts);
        asker.claim((&self.id, &self.by), (now, lease_until), self.policy(now, lease_until)).await
    }

    /// Renews a claim, to last so long from now on; in any case it writes. Without an answer it is half open a little earlier.
    pub(crate) async fn renew(
        &self,
        asker: Asker<'_>,
        claim: &mut Claim,
        lasts: Duration,
    ) -> Result<Renewed, StoreError> {
        let now = asker.clock.now();
        let lease_until = now.plus(lasts).max(claim.lease_until.plus(Duration::from_millis(1)));
        asker.renew(claim, Renewal { lease_until, now, policy: self.policy(now, lease_until) }).await
    }

    /// Releases a claim.
    pub(crate) async fn release(&self, asker: Asker<'_>, claim: Claim) -> Settled {
        asker.release(claim, self.policy).await
    }
}
