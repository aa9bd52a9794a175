//! Claims, settlements, renewals and reads of one record: the commands, and what the replies mean by the protocol.

use claimant_core::protocol::{
    self, ClaimRequest, Decision, Refusal, RenewDecision, Renewal, SettleDecision, Settlement,
};
use claimant_core::{Claim, ClaimAnswer, Record, Renewed, Settled, StoreError, StoreErrorKind, Timestamp};
use redis::Cmd;

use crate::rounds::{Attempt, Next};
use crate::write::{self, Known, Reply, Write};

/// A claim. The first write is blind: it claims a key without a record, and returns any other record. What follows is the
/// protocol's decision on that.
pub(crate) struct Claiming<'a> {
    key: Vec<u8>,
    request: &'a ClaimRequest,
    write: Write,
    /// The decision that `write` carries out.
    decided: Decision,
}

impl<'a> Claiming<'a> {
    pub(crate) fn new(key: Vec<u8>, request: &'a ClaimRequest) -> Self {
        Self { write: Write::fresh(&key, request), decided: protocol::decide(None, request), key, request }
    }

    /// Returns the answer once the decided record is written.
    fn done(&self) -> Result<ClaimAnswer, StoreError> {
        match &self.decided {
            Decision::Grant { next, interruptions } => Ok(self.granted(next, *interruptions)),
            Decision::Park { .. } => Ok(ClaimAnswer::Refused(Refusal::Parked)),
            // Cannot happen, since neither writes.
            Decision::Held | Decision::Refuse(_) => {
                Err(StoreError::new(StoreErrorKind::Other, "a write without a decision applied"))
            }
        }
    }

    fn granted(&self, record: &Record, interruptions: u32) -> ClaimAnswer {
        ClaimAnswer::Granted(protocol::claim_of(self.request.id.clone(), record, interruptions))
    }
}

impl Attempt for Claiming<'_> {
    type Answer = Result<ClaimAnswer, StoreError>;

    fn command(&self, known: Known) -> Cmd {
        self.write.command(known)
    }

    fn on_reply(self, reply: Reply) -> Next<Self> {
        let seen = match reply {
            Reply::Applied => return Next::Answer(self.done()),
            Reply::Shown(seen) => seen,
        };
        let decided = protocol::decide(seen.as_ref(), self.request);
        match (&decided, &seen) {
            // An earlier write applied and its answer was lost.
            (Decision::Held, Some(seen)) => {
                let claim = protocol::held(self.request.id.clone(), seen, Some(&self.decided));
                Next::Answer(Ok(ClaimAnswer::Granted(claim)))
            }
            (Decision::Refuse(refusal), _) => Next::Answer(Ok(ClaimAnswer::Refused(refusal.clone()))),
            (Decision::Grant { next, .. } | Decision::Park { next }, Some(seen)) => {
                let (now, skew) = (self.request.now, self.request.policy.skew);
                Next::Again(Self { write: Write::replace(&self.key, seen, next, now, skew), decided, ..self })
            }
            // Deleted since the last read: the blind claim takes an absent key.
            (_, None) => Next::Again(Self::new(self.key, self.request)),
        }
    }

    fn failed(self, error: StoreError) -> Self::Answer {
        Err(error)
    }
}

/// The end of a claim. The first write is blind; what follows is the protocol's decision on the record.
pub(crate) struct Settling<'a> {
    key: Vec<u8>,
    claim: &'a Claim,
    settlement: &'a Settlement,
    write: Write,
}

impl<'a> Settling<'a> {
    pub(crate) fn new(key: Vec<u8>, claim: &'a Claim, settlement: &'a Settlement) -> Self {
        Self { write: Write::settle(&key, claim, settlement), key, claim, settlement }
    }
}

impl Attempt for Settling<'_> {
    type Answer = Result<Settled, StoreError>;

    fn command(&self, known: Known) -> Cmd {
        self.write.command(known)
    }

    fn on_reply(self, reply: Reply) -> Next<Self> {
        let seen = match reply {
            Reply::Applied => return Next::Answer(Ok(Settled::Done)),
            Reply::Shown(seen) => seen,
        };
        match (protocol::settle(seen.as_ref(), self.claim, self.settlement), seen) {
            (SettleDecision::AlreadySettled, _) => Next::Answer(Ok(Settled::Done)),
            (SettleDecision::Write(next), Some(seen)) => {
                let (now, skew) = (self.settlement.now, self.settlement.policy.skew);
                Next::Again(Self { write: Write::replace(&self.key, &seen, &next, now, skew), ..self })
            }
            (SettleDecision::Lost | SettleDecision::Write(_), _) => Next::Answer(Ok(Settled::Lost)),
        }
    }

    fn failed(self, error: StoreError) -> Self::Answer {
        Err(error)
    }
}

/// A renewal. Returns the end of the lease, if the claim is still held.
pub(crate) struct Renewing<'a> {
    key: Vec<u8>,
    claim: &'a Claim,
    renewal: Renewal,
    /// The end of the lease that the record is assumed to have; if it has another, the protocol decides on that.
    lease_seen: Timestamp,
}

impl<'a> Renewing<'a> {
    pub(crate) fn new(key: Vec<u8>, claim: &'a Claim, renewal: Renewal) -> Self {
        Self { key, claim, renewal, lease_seen: claim.lease_until }
    }
}

impl Attempt for Renewing<'_> {
    type Answer = Result<(Renewed, Timestamp), StoreError>;

    fn command(&self, known: Known) -> Cmd {
        if self.lease_seen >= self.renewal.lease_until {
            // Nothing to write, but the claim may be lost.
            return write::read(&self.key);
        }
        Write::renew(&self.key, self.claim, self.lease_seen, &self.renewal).command(known)
    }

    fn on_reply(self, reply: Reply) -> Next<Self> {
        let seen = match reply {
            Reply::Applied => return Next::Answer(Ok((Renewed::Held, self.renewal.lease_until))),
            Reply::Shown(seen) => seen,
        };
        match (protocol::renew(seen.as_ref(), self.claim, &self.renewal), seen) {
            (RenewDecision::AlreadyLonger, Some(seen)) => Next::Answer(Ok((Renewed::Held, seen.lease_until))),
            (RenewDecision::Write(_), Some(seen)) => Next::Again(Self { lease_seen: seen.lease_until, ..self }),
            _ => Next::Answer(Ok((Renewed::Lost, self.lease_seen))),
        }
    }

    fn failed(self, error: StoreError) -> Self::Answer {
        Err(error)
    }
}

/// A read of a record.
pub(crate) struct Reading {
    key: Vec<u8>,
}

impl Reading {
    pub(crate) fn new(key: Vec<u8>) -> Self {
        Self { key }
    }
}

impl Attempt for Reading {
    type Answer = Result<Option<Record>, StoreError>;

    fn command(&self, _: Known) -> Cmd {
        write::read(&self.key)
    }

    fn on_reply(self, reply: Reply) -> Next<Self> {
        match reply {
            Reply::Shown(record) => Next::Answer(Ok(record)),
            Reply::Applied => {
                Next::Answer(Err(StoreError::new(StoreErrorKind::Other, "Redis answered a read as if it were a write")))
            }
        }
    }

    fn failed(self, error: StoreError) -> Self::Answer {
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use claimant_core::protocol::{ClaimPolicy, Likely, fresh_claim};
    use claimant_core::{ConsumerName, Fence, Fingerprint, Key, MessageId, OwnerToken, RecordId, Status};

    use super::*;

    fn request(now: u64) -> ClaimRequest {
        let now = Timestamp::from_millis(now);
        ClaimRequest {
            id: RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new("k").unwrap()),
            owner: OwnerToken::draw().unwrap(),
            message_id: MessageId::new("m").unwrap(),
            fingerprint: Fingerprint::of_bytes(b"p"),
            now,
            lease_until: now.plus(Duration::from_secs(1)),
            policy: ClaimPolicy::default(),
            likely: Likely::Known,
        }
    }

    /// A claim over a failed record that is deleted just then is the first of its key, by the fence that is written (F17).
    #[test]
    fn a_record_deleted_in_the_middle_of_a_claim_is_absent() {
        let (first, second) = (request(0), request(10));
        let failed = Record { status: Status::Failed, fence: Fence::new(7), attempts: 3, ..fresh_claim(&first) };
        let mut claiming = Claiming::new(b"k".to_vec(), &second);
        for reply in [Reply::Shown(Some(failed)), Reply::Shown(None)] {
            let Next::Again(again) = claiming.on_reply(reply) else { panic!("it is to be written again") };
            claiming = again;
        }
        let Next::Answer(Ok(ClaimAnswer::Granted(claim))) = claiming.on_reply(Reply::Applied) else {
            panic!("granted")
        };
        assert_eq!((claim.fence, claim.attempt), (Fence::FIRST, 1));
    }
}
