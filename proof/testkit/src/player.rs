//! Plays scripts on a store, with everything that can be seen written down.

use std::collections::HashMap;
use std::time::Duration;

use claimant_core::protocol::{Abandoned, ClaimPolicy, ClaimRequest, Conflicts, Ending, Likely, Renewal, Settlement};
use claimant_core::{
    BatchedClaim, Call, Claim, ClaimAnswer, ConsumerName, Fence, Fingerprint, Key, MessageId, Meter, OwnerToken,
    Record, RecordId, Renewed, Settled, Store, Timestamp,
};

use crate::clock::TEST_EPOCH;
use crate::script::{ClaimStep, LEASE_MS, Step, WITHIN, beside, copy, no_answer, owner, policy};

/// One store and one key, and the claims held on it.
pub(crate) struct Player<'a> {
    store: &'a dyn Store,
    /// Whether claims and settlements go in one request, so that a store takes its path for many.
    pub(crate) batched: bool,
    id: RecordId,
    epoch: Timestamp,
    meter: Meter,
    held: HashMap<&'static str, Claim>,
    /// Claims of other keys, made in one request and not settled yet.
    company: Vec<Claim>,
    /// Whether the other key comes first in the next request of claims, and of settlements: in each in turn, as the two alternate.
    company_first: [bool; 2],
}

impl<'a> Player<'a> {
    pub(crate) fn new(store: &'a dyn Store, id: RecordId, batched: bool) -> Self {
        let (held, company) = (HashMap::new(), Vec::new());
        let (epoch, meter, company_first) = (TEST_EPOCH, Meter::default(), [true, false]);
        Self { store, batched, id, epoch, meter, held, company, company_first }
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
                let (claim, settlement) = self.settlement(who, ending, *at)?;
                ended(self.settle(claim, settlement).await?)
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
                let claim = Claim {
                    id,
                    owner: owner(name),
                    fence,
                    lease_until,
                    attempt: 1,
                    interruptions: 0,
                    last_error: None,
                    transaction: None,
                };
                self.held.insert(who, claim);
                Ok("forged".into())
            }
            Step::Look => self.look().await,
        }
    }

    async fn look(&self) -> Result<String, String> {
        let record = self.store.get(&self.id, self.call()).await.map_err(|e| no_answer(&e))?;
        Ok(describe(record.as_ref()))
    }

    async fn claim(&mut self, step: &ClaimStep) -> Result<String, String> {
        let answer = self.claim_once(self.request(step)).await?;
        self.answered(step, answer)
    }

    /// What is asked of the store for this claim.
    pub(crate) fn request(&self, step: &ClaimStep) -> ClaimRequest {
        ClaimRequest {
            id: self.id.clone(),
            owner: owner(step.who),
            message_id: MessageId::new(step.message).expect("scripts name messages within the bounds"),
            fingerprint: fingerprint(step.payload),
            now: self.time(step.at),
            lease_until: self.time(step.until),
            policy: policy(step.abandoned, step.conflicts),
            // A batched claim of a first delivery is the path that has to find out about a record by itself.
            likely: if self.batched && step.likely == Likely::Known { Likely::New } else { step.likely },
        }
    }

    /// Keeps what was granted, and gives the line of the answer.
    ///
    /// # Errors
    /// When the claim is another one than was asked for.
    pub(crate) fn answered(&mut self, step: &ClaimStep, answer: ClaimAnswer) -> Result<String, String> {
        Ok(match answer {
            ClaimAnswer::Refused(refusal) => format!("refused: {refusal:?}"),
            ClaimAnswer::Granted(claim) => {
                let Claim { fence, attempt, interruptions, last_error, .. } = &claim;
                let until = claim.lease_until.since(self.epoch).as_millis();
                let last_error = last_error.as_ref().map_or(String::new(), |error| format!(", last error {error:?}"));
                let text = format!(
                    "granted: fence {fence}, attempt {attempt}, interruptions {interruptions}{last_error}, until {until}"
                );
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
        let (other, first) = (company_of(&request), self.turn(0));
        let requests = if first { [other, request] } else { [request, other] };
        let given = self.store.claim_all(&requests, self.call()).await;
        if given.len() != requests.len() {
            return Err("claim_all gives one answer for each request".into());
        }
        let mut answers = Vec::with_capacity(requests.len());
        for (given, request) in given.into_iter().zip(&requests) {
            answers.push(match given.map_err(|e| no_answer(&e))? {
                BatchedClaim::Answered(answer) => answer,
                BatchedClaim::ClaimAlone => self.store.claim(request, self.call()).await.map_err(|e| no_answer(&e))?,
            });
        }
        // Of the two answers, that of the other key stays.
        let own = answers.swap_remove(usize::from(first));
        match answers.pop() {
            Some(ClaimAnswer::Granted(claim)) if is_first_of(&claim, &requests[usize::from(!first)]) => {
                self.company.push(claim);
            }
            other => return Err(format!("in one request, the answer for a fresh key is {other:?}")),
        }
        Ok(own)
    }

    /// Whether the other key comes first in this request; not so in the next of its kind.
    fn turn(&mut self, kind: usize) -> bool {
        self.company_first[kind] = !self.company_first[kind];
        !self.company_first[kind]
    }

    /// The claim of `who`, and the settlement that ends it so.
    ///
    /// # Errors
    /// When it was not granted one.
    pub(crate) fn settlement(&self, who: &str, ending: &Ending, at: u64) -> Result<(Claim, Settlement), String> {
        let policy = policy(Abandoned::Rerun, Conflicts::Reject);
        Ok((self.copy(who)?, Settlement { ending: ending.clone(), now: self.time(at), policy }))
    }

    async fn settle(&mut self, claim: Claim, settlement: Settlement) -> Result<Settled, String> {
        let company = if self.batched { self.company.pop() } else { None };
        let Some(company) = company else {
            return Ok(self.store.settle(claim, &settlement, self.call()).await);
        };
        let other = (company, Settlement { ending: beside(&settlement.ending), ..settlement.clone() });
        let (own, first) = ((claim, settlement), self.turn(1));
        let both = if first { vec![other, own] } else { vec![own, other] };
        let mut settled = self.store.settle_all(both, self.call()).await;
        if settled.len() != 2 {
            return Err("settle_all gives one answer for each claim".into());
        }
        let own = settled.swap_remove(usize::from(first));
        match settled.pop() {
            Some(Settled::Done) => Ok(own),
            Some(Settled::Unknown { error, .. }) => Err(no_answer(&error)),
            other => Err(format!("a claim in one request was not settled: {other:?}")),
        }
    }

    fn copy(&self, who: &str) -> Result<Claim, String> {
        self.held.get(who).map(copy).ok_or_else(|| format!("{who:?} was not granted the claim that it is to use"))
    }
}

/// A claim of a fresh key, to go in one request with this one: of another message with another payload, and at other times.
fn company_of(request: &ClaimRequest) -> ClaimRequest {
    let token = OwnerToken::draw().expect("a test machine has random bytes");
    let key = Key::new(token.as_str()).expect("a token is a key");
    let consumer = ConsumerName::new("company").expect("it is a name");
    ClaimRequest {
        id: RecordId::new(&consumer, &key),
        owner: token,
        message_id: MessageId::new("company").expect("it is short"),
        fingerprint: fingerprint("company"),
        now: request.now.plus(Duration::from_millis(1)),
        lease_until: request.lease_until.plus(Duration::from_millis(7)),
        policy: ClaimPolicy { window: request.policy.window + Duration::from_secs(1), ..request.policy },
        ..request.clone()
    }
}

/// Whether the claim is what this request of a fresh key asks for.
fn is_first_of(claim: &Claim, request: &ClaimRequest) -> bool {
    (&claim.id, &claim.owner, claim.lease_until) == (&request.id, &request.owner, request.lease_until)
        && (claim.fence, claim.attempt, claim.interruptions) == (Fence::FIRST, 1, 0)
        && claim.last_error.is_none()
}

/// The line of a settlement.
///
/// # Errors
/// When the store gave no answer.
pub(crate) fn ended(settled: Settled) -> Result<String, String> {
    match settled {
        Settled::Done => Ok("done".into()),
        Settled::Lost => Ok("lost".into()),
        Settled::Aborted { failure, .. } => Ok(format!("aborted: {}", failure.why)),
        Settled::Refused(refusal) => Ok(format!("refused: {refusal:?}")),
        Settled::Unknown { error, .. } => Err(no_answer(&error)),
    }
}

fn describe(record: Option<&Record>) -> String {
    record.map_or_else(|| "no record".into(), |r| format!("{r:?} {}", r.owner.as_str()))
}

/// The fingerprint of a payload `text`, or of `text/2` by that version of a rule.
fn fingerprint(payload: &str) -> Fingerprint {
    let (text, rule) = payload.split_once('/').unwrap_or((payload, "0"));
    Fingerprint::of_bytes(text.as_bytes()).of_rule(rule.parse().expect("scripts name rules by number"))
}
