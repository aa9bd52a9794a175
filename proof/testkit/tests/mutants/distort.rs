//! What a bug makes of keys, records, decisions and guards.

use std::time::Duration;

use claimant_core::protocol::{self, ClaimRequest, Decision};
use claimant_core::{Claim, Fence, Fingerprint, MessageId, Record, RecordId, Status, Timestamp};

use crate::bug::Bug;

/// The clock of the store that has one, in the year 2026.
const OWN_CLOCK: Timestamp = Timestamp::from_millis(1_790_000_000_000);

impl Bug {
    /// What keys the map: the bytes of the id, without a bug.
    pub(crate) fn name(self, id: &RecordId) -> String {
        let id = id.as_str();
        match self {
            Bug::FoldsCase => id.to_lowercase(),
            Bug::FoldsSharpS => id.replace('ß', "ss"),
            Bug::FoldsAccents => id.replace('\u{301}', "").replace('é', "e"),
            Bug::TrimsKeys => id.trim_end().into(),
            Bug::CutsKeys => id.chars().take(255).collect(),
            Bug::StopsAtNul => id.split('\0').next().unwrap().into(),
            _ => id.into(),
        }
    }

    /// A record as the store keeps it.
    pub(crate) fn kept(self, mut record: Record) -> Record {
        let time = |time: Timestamp, keep: fn(u64) -> u64| Timestamp::from_millis(keep(time.as_millis()));
        match self {
            Bug::ForgetsCreation => record.created_at = record.updated_at,
            Bug::CutsFingerprints => {
                record.fingerprint = Fingerprint::from_stored(&record.fingerprint.to_stored()[..32]).unwrap();
            }
            Bug::CutsResults => record.result = record.result.map(|text| text.chars().take(60_000).collect()),
            Bug::CutsErrors => record.error = record.error.map(|text| text.chars().take(255).collect()),
            Bug::StripsNul => record.error = record.error.map(|text| text.replace('\0', "")),
            Bug::TakesEmptyForNone => record.error = record.error.filter(|text| !text.is_empty()),
            Bug::LowersMessageIds => {
                record.message_id = MessageId::new(record.message_id.as_str().to_lowercase()).unwrap();
            }
            Bug::KeepsSeconds => record.lease_until = time(record.lease_until, |ms| ms / 1_000 * 1_000),
            Bug::KeepsDoubles => {
                record.lease_until = time(record.lease_until, |ms| (ms as f64 * 1e6) as u64 / 1_000_000)
            }
            _ => {}
        }
        record
    }

    /// What the store decides; `latest` is the latest time that it has seen.
    pub(crate) fn decide(self, seen: Option<&Record>, request: &ClaimRequest, latest: Timestamp) -> Decision {
        let mut request = request.clone();
        match self {
            Bug::IgnoresSkew => request.policy.skew = Duration::ZERO,
            Bug::HasAClock => request.now = OWN_CLOCK,
            Bug::ClockNeverGoesBack => request.now = latest,
            Bug::TrustsTtl | Bug::ExpiresASecondEarly => {
                let trusts = self == Bug::TrustsTtl;
                let seen = seen.cloned().map(|record| Record {
                    expires_at_s: if trusts { u64::MAX } else { record.expires_at_s.saturating_sub(1) },
                    ..record
                });
                return protocol::decide(seen.as_ref(), &request);
            }
            Bug::RerunsForAnotherMessage => {
                let other = seen.filter(|r| r.status == Status::Completed && r.message_id != request.message_id);
                let failed = other.cloned().map(|record| Record { status: Status::Failed, ..record });
                return protocol::decide(failed.as_ref().or(seen), &request);
            }
            Bug::ComparesAllRules => {
                // What differs by the rule alone differs in what is compared.
                let other = seen.filter(|record| record.fingerprint != request.fingerprint).cloned();
                let other = other.map(|record| Record { fingerprint: another(request.fingerprint), ..record });
                return protocol::decide(other.as_ref().or(seen), &request);
            }
            Bug::BlindPut => return protocol::decide(None, &request),
            _ => {}
        }
        let mut decision = protocol::decide(seen, &request);
        if let (Decision::Grant { next, .. }, Some(seen)) = (&mut decision, seen) {
            match self {
                Bug::FenceStays => next.fence = seen.fence,
                Bug::ForgetsInterruptions => next.error = None,
                Bug::FenceRestartsWithWindow if next.created_at == request.now => next.fence = Fence::FIRST,
                _ => {}
            }
        }
        decision
    }

    /// The claim as its guard compares it with the record.
    pub(crate) fn guarded(self, claim: Claim, seen: Option<&Record>) -> Claim {
        let Some(seen) = seen else { return claim };
        match self {
            Bug::SettlesUnguarded => Claim { owner: seen.owner.clone(), fence: seen.fence, ..claim },
            Bug::ChecksOwnerOnly => Claim { fence: seen.fence, ..claim },
            Bug::ChecksFenceOnly => Claim { owner: seen.owner.clone(), ..claim },
            _ => claim,
        }
    }
}

/// A fingerprint of the same rule, of another payload.
fn another(than: Fingerprint) -> Fingerprint {
    let mut bytes = than.to_stored();
    bytes[0] ^= 1;
    Fingerprint::from_stored(&bytes).unwrap()
}
