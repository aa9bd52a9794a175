//! Scripts of store calls, run on one key, with everything that can be seen written down.

use std::collections::HashMap;
use std::time::Duration;

use claimant_core::protocol::{Abandoned, ClaimPolicy, ClaimRequest, Conflicts, Ending, Renewal, Settlement};
use claimant_core::{
    Call, Claim, ClaimAnswer, ConsumerName, Fingerprint, Key, MessageId, Meter, OwnerToken, Record, RecordId, Renewed,
    Settled, Store, StoreError, Timestamp,
};

use crate::clock::TEST_EPOCH;

/// Enough for any call in a test; what takes longer has failed.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

/// The clock-skew margin in scripts.
pub(crate) const SKEW_MS: u64 = 500;

/// The deduplication window in scripts.
pub(crate) const WINDOW_MS: u64 = 60_000;

/// One call. Times are in milliseconds after [`TEST_EPOCH`].
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Claim(ClaimStep),
    Settle { who: &'static str, ending: Ending, at: u64 },
    Renew { who: &'static str, at: u64, until: u64 },
}

/// One claim; `who` names the owner, and its claim if it is granted.
#[derive(Debug, Clone)]
pub(crate) struct ClaimStep {
    pub(crate) who: &'static str,
    pub(crate) message: &'static str,
    pub(crate) payload: &'static str,
    pub(crate) at: u64,
    pub(crate) until: u64,
    pub(crate) abandoned: Abandoned,
}

/// A claim of a fixed message and payload, with a lease of one second.
pub(crate) fn claim(who: &'static str, at: u64) -> ClaimStep {
    ClaimStep { who, message: "m1", payload: "p1", at, until: at + 1_000, abandoned: Abandoned::Rerun }
}

impl ClaimStep {
    pub(crate) fn message(self, message: &'static str) -> Self {
        Self { message, ..self }
    }

    pub(crate) fn payload(self, payload: &'static str) -> Self {
        Self { payload, ..self }
    }

    pub(crate) fn parking(self) -> Self {
        Self { abandoned: Abandoned::Park, ..self }
    }

    pub(crate) fn step(self) -> Step {
        Step::Claim(self)
    }
}

pub(crate) fn settle(who: &'static str, ending: Ending, at: u64) -> Step {
    Step::Settle { who, ending, at }
}

pub(crate) fn done() -> Ending {
    Ending::Completed { result: None }
}

pub(crate) fn failed() -> Ending {
    Ending::Failed { error: "it failed".into() }
}

pub(crate) fn rejected() -> Ending {
    Ending::Rejected { error: "never".into() }
}

fn time(after: u64) -> Timestamp {
    Timestamp::from_millis(TEST_EPOCH.as_millis() + after)
}

fn policy(abandoned: Abandoned) -> ClaimPolicy {
    ClaimPolicy {
        abandoned,
        conflicts: Conflicts::Reject,
        skew: Duration::from_millis(SKEW_MS),
        window: Duration::from_millis(WINDOW_MS),
    }
}

/// The owner token of `who`, always the same: what makes a step tried twice the same attempt.
fn owner(who: &str) -> OwnerToken {
    OwnerToken::from_stored(format!("{who:0>32}"))
}

/// One store and one key, and the claims held on it.
pub(crate) struct Player<'a> {
    store: &'a dyn Store,
    /// Whether claims and settlements go in company, so that a store takes its path for many.
    batched: bool,
    id: RecordId,
    meter: Meter,
    held: HashMap<&'static str, Claim>,
    /// Claims of other keys, made in company and not settled yet.
    company: Vec<Claim>,
}

impl<'a> Player<'a> {
    pub(crate) fn new(store: &'a dyn Store, id: RecordId, batched: bool) -> Self {
        Self { store, batched, id, meter: Meter::default(), held: HashMap::new(), company: Vec::new() }
    }

    fn call(&self) -> Call<'_> {
        Call { within: WITHIN, meter: &self.meter }
    }

    /// Plays a script and gives one line for each step, and one for the record at the end.
    ///
    /// # Errors
    /// When the store gave no answer to a claim, a renewal or a look.
    pub(crate) async fn play(&mut self, steps: &[Step]) -> Result<Vec<String>, StoreError> {
        let mut seen = Vec::with_capacity(steps.len() + 1);
        for step in steps {
            seen.push(self.step(step).await?);
        }
        seen.push(describe(self.store.look(&self.id, self.call()).await?.as_ref()));
        Ok(seen)
    }

    async fn step(&mut self, step: &Step) -> Result<String, StoreError> {
        match step {
            Step::Claim(step) => self.claim(step).await,
            Step::Settle { who, ending, at } => {
                let settlement =
                    Settlement { ending: ending.clone(), now: time(*at), policy: policy(Abandoned::Rerun) };
                Ok(match self.settle(self.copy(who), settlement).await {
                    Settled::Done => "done".into(),
                    Settled::Lost => "lost".into(),
                    Settled::Aborted { failure, .. } => format!("aborted: {}", failure.why),
                    Settled::Refused(refusal) => format!("refused: {refusal:?}"),
                    Settled::Unknown(error) => return Err(error),
                })
            }
            Step::Renew { who, at, until } => {
                let mut claim = self.copy(who);
                let renewal = Renewal { lease_until: time(*until), now: time(*at), policy: policy(Abandoned::Rerun) };
                let call = Call { within: WITHIN, meter: &self.meter };
                Ok(match self.store.renew(&mut claim, renewal, call).await? {
                    Renewed::Held => format!("held until {}", claim.lease_until),
                    Renewed::Lost => "lost".into(),
                })
            }
        }
    }

    async fn claim(&mut self, step: &ClaimStep) -> Result<String, StoreError> {
        let request = ClaimRequest {
            id: self.id.clone(),
            owner: owner(step.who),
            message_id: MessageId::new(step.message).expect("scripts name messages within the bounds"),
            fingerprint: Fingerprint::of_bytes(step.payload.as_bytes()),
            now: time(step.at),
            lease_until: time(step.until),
            policy: policy(step.abandoned),
            // A batched claim of a first delivery is the path that has to find out about a record by itself.
            first_delivery: self.batched,
        };
        Ok(match self.claim_once(request).await? {
            ClaimAnswer::Refused(refusal) => format!("refused: {refusal:?}"),
            ClaimAnswer::Granted(claim) => {
                let Claim { fence, attempt, taken_over, lease_until, .. } = &claim;
                let text =
                    format!("granted: fence {fence}, attempt {attempt}, taken over {taken_over}, until {lease_until}");
                self.held.insert(step.who, claim);
                text
            }
        })
    }

    async fn claim_once(&mut self, request: ClaimRequest) -> Result<ClaimAnswer, StoreError> {
        if !self.batched {
            return self.store.claim(&request, self.call()).await;
        }
        let token = OwnerToken::draw().expect("a test machine has random bytes");
        let key = Key::new(token.as_str()).expect("a token is a key");
        let consumer = ConsumerName::new("company").expect("it is a name");
        let other = ClaimRequest { id: RecordId::new(&consumer, &key), owner: token, ..request.clone() };
        let call = Call { within: WITHIN, meter: &self.meter };
        let requests = [request, other];
        let mut answers = self.store.claim_all(&requests, call).await.into_iter();
        let (Some(answer), Some(other), None) = (answers.next(), answers.next(), answers.next()) else {
            panic!("claim_all gives one answer for each request");
        };
        match other? {
            Some(ClaimAnswer::Granted(claim)) => self.company.push(claim),
            other => panic!("a fresh key in company was not granted: {other:?}"),
        }
        match answer? {
            Some(answer) => Ok(answer),
            None => self.store.claim(&requests[0], self.call()).await,
        }
    }

    async fn settle(&mut self, claim: Claim, settlement: Settlement) -> Settled {
        let Some(company) = self.company.pop() else {
            return self.store.settle(claim, &settlement, self.call()).await;
        };
        let both = vec![(company, settlement.clone()), (claim, settlement)];
        let mut settled = self.store.settle_all(both, self.call()).await.into_iter();
        let (Some(company), Some(settled), None) = (settled.next(), settled.next(), settled.next()) else {
            panic!("settle_all gives one answer for each claim");
        };
        match company {
            Settled::Done => settled,
            Settled::Unknown(error) => Settled::Unknown(error),
            other => panic!("a claim in company was not settled: {other:?}"),
        }
    }

    /// A claim as `who` once got it: scripts settle stale ones on purpose, so it is copied by hand.
    fn copy(&self, who: &str) -> Claim {
        let claim = self.held.get(who).expect("a script settles only claims that it was granted");
        Claim {
            id: claim.id.clone(),
            owner: claim.owner.clone(),
            fence: claim.fence,
            lease_until: claim.lease_until,
            attempt: claim.attempt,
            taken_over: claim.taken_over,
            carried: None,
        }
    }
}

fn describe(record: Option<&Record>) -> String {
    record.map_or_else(|| "no record".into(), |r| format!("{r:?} {}", r.owner.as_str()))
}
