//! One claim, and how ambiguous answers to it are resolved.

use claimant_core::protocol::{self, ClaimRequest, Decision, Likely, Refusal};
use claimant_core::{Budget, ClaimAnswer, Record, StoreError, StoreErrorKind};

use crate::batch::inserted;
use crate::item::{self, Item};
use crate::table::{LockTable, ROUNDS_MAX, Written};

impl LockTable {
    pub(crate) async fn claim_one(
        &self,
        request: &ClaimRequest,
        budget: Budget<'_>,
    ) -> Result<ClaimAnswer, StoreError> {
        let (mut being_written, mut put_was_denied) = (None, false);
        // Without an answer, the blind claim finds out.
        let mut seen = match request.likely {
            Likely::Done => self.read(&request.id, budget).await.ok().flatten(),
            Likely::New | Likely::Known => None,
        };
        // A claim of a new key is refused where there is a record, which comes with the refusal.
        if request.likely == Likely::New && self.permitted.puts() {
            match self.claim_new(request, budget).await? {
                Some(Written::Applied(_)) => return Ok(inserted(request)),
                Some(Written::Refused(shown)) => seen = self.refused_by(&request.id, shown, budget).await?,
                None => put_was_denied = true,
            }
        }
        for round in 0..=ROUNDS_MAX {
            let (write, decision) = match &seen {
                // Nothing is known of the key, or it was deleted between a refusal and the read: the blind claim takes it.
                None => (self.requests.claim(request), None),
                Some(seen) => {
                    let decision = protocol::decide(Some(seen), request);
                    let write = match &decision {
                        Decision::Held => {
                            let claim = protocol::held(request.id.clone(), seen, being_written.as_ref());
                            return Ok(ClaimAnswer::Granted(claim));
                        }
                        Decision::Refuse(refusal) => return Ok(ClaimAnswer::Refused(refusal.clone())),
                        Decision::Grant { next, .. } | Decision::Park { next } => {
                            self.requests.replace(&request.id, seen, next)
                        }
                    };
                    (write, Some(decision))
                }
            };
            if round == ROUNDS_MAX {
                break;
            }
            being_written = decision;
            let written = self.send(&request.id, write, budget).await?;
            // The role may write this key, and not put it.
            if put_was_denied {
                self.permitted.deny_puts(self.name());
            }
            seen = match written {
                Written::Applied(before) => return self.granted(request, being_written, before.as_ref()),
                Written::Refused(shown) => self.refused_by(&request.id, shown, budget).await?,
            };
        }
        Err(StoreError::new(StoreErrorKind::Throttled, "the record changed each time it was to be claimed"))
    }

    /// Returns the answer to a write that applied: the decision that it carried out, or, for the blind claim, the decision on
    /// the record that it replaced.
    fn granted(
        &self,
        request: &ClaimRequest,
        written: Option<Decision>,
        before: Option<&Item>,
    ) -> Result<ClaimAnswer, StoreError> {
        let decision = match written {
            Some(decision) => decision,
            None => {
                let names = &self.requests.names;
                // Before a new item there was nothing; the embedded DynamoDB then sends the key alone.
                let before = before.filter(|item| item.keys().any(|name| *name != names.id));
                let before = before.map(|item| item::record(item, names)).transpose()?;
                protocol::decide(before.as_ref(), request)
            }
        };
        match decision {
            Decision::Grant { next, interruptions } => Ok(grant(request, &next, interruptions)),
            Decision::Park { .. } => Ok(ClaimAnswer::Refused(Refusal::Parked)),
            // Cannot happen, since the blind condition is narrower than the decision. If it were, the claim runs out unused.
            Decision::Held | Decision::Refuse(_) => {
                Err(StoreError::new(StoreErrorKind::Other, "the claim's condition and the protocol disagree"))
            }
        }
    }
}

fn grant(request: &ClaimRequest, record: &Record, interruptions: u32) -> ClaimAnswer {
    ClaimAnswer::Granted(protocol::claim_of(request.id.clone(), record, interruptions))
}
