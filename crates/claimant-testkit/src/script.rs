//! Scripts of store calls, run on one key, with everything that can be seen written down.

use std::collections::HashMap;
use std::time::Duration;

use claimant_core::protocol::{Abandoned, ClaimPolicy, ClaimRequest, Conflicts, Ending, Renewal, Settlement};
use claimant_core::{
    Call, Claim, ClaimAnswer, ConsumerName, Fence, Fingerprint, Key, MessageId, Meter, OwnerToken, Record, RecordId,
    Renewed, Settled, Store, StoreError, Timestamp,
};

use crate::clock::TEST_EPOCH;

/// Enough for any call in a test; what takes longer has failed.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

/// The clock-skew margin in scripts.
pub(crate) const SKEW_MS: u64 = 500;

/// The deduplication window in scripts: longer than a script takes, since a store may delete by a clock of its own what
/// is older than this.
pub(crate) const WINDOW_MS: u64 = 60_000;

/// The lease of a claim in scripts, unless it says otherwise.
pub(crate) const LEASE_MS: u64 = 1_000;

/// One call. Times are in milliseconds after the player's epoch.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Claim(ClaimStep),
    Settle {
        who: &'static str,
        ending: Ending,
        at: u64,
    },
    Renew {
        who: &'static str,
        at: u64,
        until: u64,
    },
    /// `who` comes by a claim that the store never granted.
    Forge {
        who: &'static str,
        owner: &'static str,
        fence: u64,
    },
    /// The record as it is.
    Look,
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
    pub(crate) conflicts: Conflicts,
    /// The hint, which changes no answer.
    pub(crate) first_delivery: bool,
}

/// A claim of a fixed message and payload, with a lease of one second.
pub(crate) fn claim(who: &'static str, at: u64) -> ClaimStep {
    ClaimStep {
        who,
        message: "m1",
        payload: "p1",
        at,
        until: at + LEASE_MS,
        abandoned: Abandoned::Rerun,
        conflicts: Conflicts::Reject,
        first_delivery: false,
    }
}

impl ClaimStep {
    pub(crate) fn message(self, message: &'static str) -> Self {
        Self { message, ..self }
    }

    pub(crate) fn payload(self, payload: &'static str) -> Self {
        Self { payload, ..self }
    }

    pub(crate) fn until(self, until: u64) -> Self {
        Self { until, ..self }
    }

    pub(crate) fn parking(self) -> Self {
        Self { abandoned: Abandoned::Park, ..self }
    }

    pub(crate) fn by_key_alone(self) -> Self {
        Self { conflicts: Conflicts::Ignore, ..self }
    }

    pub(crate) fn step(self) -> Step {
        Step::Claim(self)
    }
}

pub(crate) fn settle(who: &'static str, ending: Ending, at: u64) -> Step {
    Step::Settle { who, ending, at }
}

pub(crate) fn renew(who: &'static str, at: u64, until: u64) -> Step {
    Step::Renew { who, at, until }
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

/// All of them.
pub(crate) fn endings() -> [Ending; 5] {
    [done(), failed(), rejected(), Ending::Parked, Ending::Released]
}

pub(crate) fn policy(abandoned: Abandoned, conflicts: Conflicts) -> ClaimPolicy {
    ClaimPolicy { abandoned, conflicts, skew: Duration::from_millis(SKEW_MS), window: Duration::from_millis(WINDOW_MS) }
}

/// The owner token of `who`, always the same: what makes a step tried twice the same attempt.
fn owner(who: &str) -> OwnerToken {
    OwnerToken::from_stored(format!("{who:0>32}"))
}

/// A claim of its own with the same contents: tests use stale claims on purpose.
pub(crate) fn copy(claim: &Claim) -> Claim {
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

/// What is said of a call that the store did not answer.
pub(crate) fn no_answer(error: &StoreError) -> String {
    format!("the store gave no answer: {error} ({error:?})")
}

/// One store and one key, and the claims held on it.
pub(crate) struct Player<'a> {
    store: &'a dyn Store,
    /// Whether claims and settlements go in company, so that a store takes its path for many.
    pub(crate) batched: bool,
    id: RecordId,
    epoch: Timestamp,
    meter: Meter,
    held: HashMap<&'static str, Claim>,
    /// Claims of other keys, made in company and not settled yet.
    company: Vec<Claim>,
}

impl<'a> Player<'a> {
    pub(crate) fn new(store: &'a dyn Store, id: RecordId, batched: bool) -> Self {
        let (held, company) = (HashMap::new(), Vec::new());
        Self { store, batched, id, epoch: TEST_EPOCH, meter: Meter::default(), held, company }
    }

    /// The same player at another time.
    pub(crate) fn at(self, epoch: Timestamp) -> Self {
        Self { epoch, ..self }
    }

    /// Whether `who` was ever granted a claim.
    pub(crate) fn has(&self, who: &str) -> bool {
        self.held.contains_key(who)
    }

    fn call(&self) -> Call<'_> {
        Call { within: WITHIN, meter: &self.meter }
    }

    fn time(&self, after: u64) -> Timestamp {
        self.epoch.plus(Duration::from_millis(after))
    }

    /// Plays a script and gives one line for each step, and one for the record at the end.
    ///
    /// # Errors
    /// When the store gave no answer, or one that cannot be.
    pub(crate) async fn play(&mut self, steps: &[Step]) -> Result<Vec<String>, String> {
        let mut seen = Vec::with_capacity(steps.len() + 1);
        for step in steps {
            seen.push(self.step(step).await?);
        }
        seen.push(self.look().await?);
        Ok(seen)
    }

    /// Plays one step and gives its line.
    ///
    /// # Errors
    /// When the store gave no answer, or one that cannot be.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<String, String> {
        match step {
            Step::Claim(step) => self.claim(step).await,
            Step::Settle { who, ending, at } => {
                let policy = policy(Abandoned::Rerun, Conflicts::Reject);
                let settlement = Settlement { ending: ending.clone(), now: self.time(*at), policy };
                match self.settle(self.copy(who)?, settlement).await? {
                    Settled::Done => Ok("done".into()),
                    Settled::Lost => Ok("lost".into()),
                    Settled::Aborted { failure, .. } => Ok(format!("aborted: {}", failure.why)),
                    Settled::Refused(refusal) => Ok(format!("refused: {refusal:?}")),
                    Settled::Unknown(error) => Err(no_answer(&error)),
                }
            }
            Step::Renew { who, at, until } => {
                let mut claim = self.copy(who)?;
                let policy = policy(Abandoned::Rerun, Conflicts::Reject);
                let renewal = Renewal { lease_until: self.time(*until), now: self.time(*at), policy };
                let renewed = self.store.renew(&mut claim, renewal, self.call()).await.map_err(|e| no_answer(&e))?;
                Ok(match renewed {
                    Renewed::Held => format!("held until {}", claim.lease_until.since(self.epoch).as_millis()),
                    Renewed::Lost => "lost".into(),
                })
            }
            Step::Forge { who, owner: name, fence } => {
                let (id, fence) = (self.id.clone(), Fence::new(*fence));
                let lease_until = self.time(LEASE_MS);
                let claim =
                    Claim { id, owner: owner(name), fence, lease_until, attempt: 1, taken_over: false, carried: None };
                self.held.insert(who, claim);
                Ok("forged".into())
            }
            Step::Look => self.look().await,
        }
    }

    async fn look(&self) -> Result<String, String> {
        let record = self.store.look(&self.id, self.call()).await.map_err(|e| no_answer(&e))?;
        Ok(describe(record.as_ref()))
    }

    async fn claim(&mut self, step: &ClaimStep) -> Result<String, String> {
        let request = ClaimRequest {
            id: self.id.clone(),
            owner: owner(step.who),
            message_id: MessageId::new(step.message).expect("scripts name messages within the bounds"),
            fingerprint: Fingerprint::of_bytes(step.payload.as_bytes()),
            now: self.time(step.at),
            lease_until: self.time(step.until),
            policy: policy(step.abandoned, step.conflicts),
            // A batched claim of a first delivery is the path that has to find out about a record by itself.
            first_delivery: self.batched || step.first_delivery,
        };
        Ok(match self.claim_once(request).await? {
            ClaimAnswer::Refused(refusal) => format!("refused: {refusal:?}"),
            ClaimAnswer::Granted(claim) => {
                let Claim { fence, attempt, taken_over, .. } = &claim;
                let until = claim.lease_until.since(self.epoch).as_millis();
                let text = format!("granted: fence {fence}, attempt {attempt}, taken over {taken_over}, until {until}");
                if (&claim.id, &claim.owner) != (&self.id, &owner(step.who)) {
                    return Err("the claim granted is another one than was asked for".into());
                }
                self.held.insert(step.who, claim);
                text
            }
        })
    }

    async fn claim_once(&mut self, request: ClaimRequest) -> Result<ClaimAnswer, String> {
        if !self.batched {
            return self.store.claim(&request, self.call()).await.map_err(|e| no_answer(&e));
        }
        let token = OwnerToken::draw().expect("a test machine has random bytes");
        let key = Key::new(token.as_str()).expect("a token is a key");
        let consumer = ConsumerName::new("company").expect("it is a name");
        let other = ClaimRequest { id: RecordId::new(&consumer, &key), owner: token, ..request.clone() };
        let requests = [request, other];
        let mut answers = self.store.claim_all(&requests, self.call()).await.into_iter();
        let (Some(answer), Some(other), None) = (answers.next(), answers.next(), answers.next()) else {
            return Err("claim_all gives one answer for each request".into());
        };
        let other = other.map_err(|e| no_answer(&e))?;
        let answer = answer.map_err(|e| no_answer(&e))?;
        let other = match other {
            Some(other) => other,
            None => self.store.claim(&requests[1], self.call()).await.map_err(|e| no_answer(&e))?,
        };
        match other {
            ClaimAnswer::Granted(claim) => self.company.push(claim),
            ClaimAnswer::Refused(why) => return Err(format!("a fresh key in company was refused: {why:?}")),
        }
        match answer {
            Some(answer) => Ok(answer),
            None => self.store.claim(&requests[0], self.call()).await.map_err(|e| no_answer(&e)),
        }
    }

    async fn settle(&mut self, claim: Claim, settlement: Settlement) -> Result<Settled, String> {
        let company = if self.batched { self.company.pop() } else { None };
        let Some(company) = company else {
            return Ok(self.store.settle(claim, &settlement, self.call()).await);
        };
        let both = vec![(company, settlement.clone()), (claim, settlement)];
        let mut settled = self.store.settle_all(both, self.call()).await.into_iter();
        let (Some(company), Some(settled), None) = (settled.next(), settled.next(), settled.next()) else {
            return Err("settle_all gives one answer for each claim".into());
        };
        match company {
            Settled::Unknown(error) => Err(no_answer(&error)),
            Settled::Done => Ok(settled),
            other => Err(format!("a claim in company was not settled: {other:?}")),
        }
    }

    fn copy(&self, who: &str) -> Result<Claim, String> {
        self.held.get(who).map(copy).ok_or_else(|| format!("{who:?} was not granted the claim that it is to use"))
    }
}

fn describe(record: Option<&Record>) -> String {
    record.map_or_else(|| "no record".into(), |r| format!("{r:?} {}", r.owner.as_str()))
}
