//! What is asked of the store for a limit, and what its answers say.

use std::time::Duration;

use super::shared::{SharedLimit, now};
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::engine::asker::Asker;
use crate::engine::guarded::GuardedStore;
use crate::error::Chain;
use crate::limit::ends_too_late;
use crate::limits::{LIMIT_ASK_MS, LIMIT_LEASE_MS, LIMIT_PLAN_MS, LIMIT_WANTED_MS};
use crate::protocol::plan::{FoundPlan, SeenPlan};
use crate::protocol::rate::{Allowed, Plan};
use crate::protocol::slots::{Now, SlotAnswer, SlotRequest};
use crate::protocol::{ClaimPolicy, Refusal, Renewal, claim_of};
use crate::record::Record;
use crate::store::{ClaimAnswer, Renewed, StoreError, StoreErrorKind};

/// A request that is to be made, or under way: dropped without an answer, another one can be made, by whoever waits.
struct Asking<'a>(Option<&'a SharedLimit>);

impl Asking<'_> {
    /// Says that there is an answer, which is noted without another wait.
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(limit) = self.0 {
            limit.with(|slots| slots.unasked());
            limit.tell();
        }
    }
}

impl SharedLimit {
    /// Asks the store, and takes note of the answer.
    pub(crate) fn go<'a>(&'a self, request: SlotRequest, asker: Asker<'a>) -> impl Future<Output = ()> + 'a {
        // From now on, and not from the first poll, which what is dropped may never see.
        let is_guarded = !matches!(request, SlotRequest::Renew(_) | SlotRequest::Release(_));
        let asking = Asking(is_guarded.then_some(self));
        let asker = Asker { store: GuardedStore::new(self.store.as_ref()), ..asker };
        async move {
            match request {
                SlotRequest::Look => {
                    let seen = self.look(asker).await;
                    asking.answered();
                    self.looked(seen, asker);
                }
                SlotRequest::Listen => {
                    let for_time = self.listen(asker).await;
                    asking.answered();
                    self.with(|slots| slots.wanted(for_time, now(asker.clock)));
                }
                SlotRequest::Mark => {
                    let for_time = self.mark(asker).await;
                    asking.answered();
                    self.with(|slots| slots.wanted(for_time, now(asker.clock)));
                }
                SlotRequest::Claim(number) => {
                    let came = self.claim(number, asker).await;
                    asking.answered();
                    self.with(|slots| slots.claimed(number, came, now(asker.clock)));
                }
                SlotRequest::Renew(number) => self.renew(number, asker).await,
                SlotRequest::Release(number) => self.release(number, asker).await,
            }
            self.tell();
        }
    }

    /// Looks at the plan. In its second half it is renewed where it is what should hold; where there is none, that is claimed. `None` where none
    /// can be read.
    async fn look(&self, asker: Asker<'_>) -> Result<Option<SeenPlan>, StoreError> {
        let asked = now(asker.clock);
        let own = self.own().plan();
        let found = FoundPlan::of(asker.get(&self.records.plan).await?, asked.wall, self.policy.skew, own);
        if let FoundPlan::Fresh(record) | FoundPlan::Old(record) = &found {
            self.warn_of_clock(asker, record.lease_until, LIMIT_PLAN_MS);
        }
        match &found {
            FoundPlan::Fresh(record) if !self.may_be_of_another(record, own) => return Ok(SeenPlan::of(record, asked)),
            FoundPlan::Left => return Ok(None),
            FoundPlan::Fresh(_) | FoundPlan::Old(_) | FoundPlan::None => {}
        }
        let set = Allowed::set_by(asker.get(&self.records.set).await?.as_ref(), asker.clock.now());
        let plan = Plan { allowed: set.map_or(own.allowed, |set| set.over(own.allowed)), ..own };
        match found {
            FoundPlan::Old(record) if Plan::held_by(&record) == Some(plan) => {
                self.renew_plan(asker, plan, &record).await
            }
            FoundPlan::Fresh(record) | FoundPlan::Old(record) => {
                if Plan::held_by(&record) != Some(plan) && self.may_be_of_another(&record, own) {
                    self.warn_of_other(asker, &record);
                }
                Ok(SeenPlan::of(&record, asked))
            }
            FoundPlan::Left | FoundPlan::None => self.claim_plan(asker, plan).await,
        }
    }

    /// Renews the plan, whoever claimed it. Where it has changed since it was read, that is looked at next.
    async fn renew_plan(&self, asker: Asker<'_>, plan: Plan, held: &Record) -> Result<Option<SeenPlan>, StoreError> {
        let asked = now(asker.clock);
        let mut claim = claim_of(self.records.plan.clone(), held, 0);
        let renewed = asker.renew(&mut claim, self.renewal(asked, LIMIT_PLAN_MS)).await?;
        Ok((renewed == Renewed::Held).then_some(SeenPlan { plan, lease_until: claim.lease_until, asked }))
    }

    /// Claims the plan; where another process was faster, its plan holds.
    async fn claim_plan(&self, asker: Asker<'_>, plan: Plan) -> Result<Option<SeenPlan>, StoreError> {
        let asked = now(asker.clock);
        let lease_until = asked.wall.plus(Duration::from_millis(LIMIT_PLAN_MS));
        let Ok(text) = plan.text() else { return Ok(None) };
        let (what, times) = ((&self.records.plan, &text), (asked.wall, lease_until));
        match asker.claim_with(self.own().plan().fingerprint(), what, times, self.policy).await? {
            ClaimAnswer::Granted(claim) => Ok(Some(SeenPlan { plan, lease_until: claim.lease_until, asked })),
            ClaimAnswer::Refused(_) => {
                let asked = now(asker.clock);
                Ok(asker.get(&self.records.plan).await?.and_then(|record| SeenPlan::of(&record, asked)))
            }
        }
    }

    fn looked(&self, seen: Result<Option<SeenPlan>, StoreError>, asker: Asker<'_>) {
        let seen = seen.unwrap_or_else(|error| {
            self.warn(asker, &error);
            None
        });
        let mut state = self.state();
        let before = state.slots.plan();
        state.slots.looked(seen, now(asker.clock), self.policy.skew);
        let plan = state.slots.plan();
        drop(state);
        if plan != before {
            let (Allowed { calls, per_ms, at_once }, slots) = (plan.allowed, plan.used());
            tracing::info!(consumer = %asker.consumer, downstream = self.own().downstream, calls, per_ms, at_once, slots, "limit is changed");
        }
    }

    /// Returns for how long some process has no slot, as far as its mark says.
    async fn listen(&self, asker: Asker<'_>) -> Duration {
        let asked = asker.clock.now();
        let marked = asker.get(&self.records.wanted).await.ok().flatten();
        marked.map_or(Duration::ZERO, |record| record.lease_until.since(asked))
    }

    /// Says that this process has no slot; returns for how long the others know that, or until another try.
    async fn mark(&self, asker: Asker<'_>) -> Duration {
        let (asked, for_time) = (asker.clock.now(), Duration::from_millis(LIMIT_WANTED_MS));
        let mark = (&self.records.wanted, &self.by);
        // That there is one at a time matters to nobody, so it is seen without a gap.
        let policy = ClaimPolicy { skew: Duration::ZERO, ..self.policy };
        match asker.claim(mark, (asked, asked.plus(for_time)), policy).await {
            Ok(ClaimAnswer::Granted(_)) => for_time,
            // Another one has said so; this one says it when the others know it no more.
            Ok(ClaimAnswer::Refused(Refusal::Busy { until, .. })) => until.since(asked) + Duration::from_millis(1),
            Ok(ClaimAnswer::Refused(_)) | Err(_) => Duration::from_millis(LIMIT_ASK_MS),
        }
    }

    async fn claim(&self, number: u32, asker: Asker<'_>) -> SlotAnswer {
        let asked = now(asker.clock);
        let lease_until = asked.wall.plus(Duration::from_millis(LIMIT_LEASE_MS));
        let slot = (&self.records.slots[number as usize], &self.by);
        match asker.claim(slot, (asked.wall, lease_until), self.policy).await {
            Ok(ClaimAnswer::Granted(claim)) => {
                let held = SlotAnswer::Held { asked, lease_until: claim.lease_until };
                tracing::debug!(consumer = %asker.consumer, downstream = self.own().downstream, slot = number, "slot of the limit is held");
                let mut state = self.state();
                state.claims.retain(|(other, _)| *other != number);
                state.claims.push((number, claim));
                held
            }
            // A lease is over only after its last millisecond.
            Ok(ClaimAnswer::Refused(Refusal::Busy { until, .. })) => {
                self.warn_of_clock(asker, until, LIMIT_LEASE_MS);
                SlotAnswer::Busy(until.since(asker.clock.now()) + Duration::from_millis(1))
            }
            // By an operator.
            Ok(ClaimAnswer::Refused(_)) => SlotAnswer::Busy(self.policy.window),
            Err(error) => {
                self.warn(asker, &error);
                SlotAnswer::Unanswered
            }
        }
    }

    /// Returns what renews a lease of so many milliseconds, asked for at this time.
    fn renewal(&self, asked: Now, lease_ms: u64) -> Renewal {
        let lease_until = asked.wall.plus(Duration::from_millis(lease_ms));
        Renewal { lease_until, now: asked.wall, policy: self.policy }
    }

    fn take_claim(&self, number: u32) -> Option<Claim> {
        let mut state = self.state();
        let at = state.claims.iter().position(|(other, _)| *other == number)?;
        Some(state.claims.swap_remove(at).1)
    }

    async fn renew(&self, number: u32, asker: Asker<'_>) {
        let asked = now(asker.clock);
        let Some(mut claim) = self.take_claim(number) else {
            self.with(|slots| slots.renewed(number, asked, Ok(None)));
            return;
        };
        let answer = match asker.renew(&mut claim, self.renewal(asked, LIMIT_LEASE_MS)).await {
            Ok(Renewed::Held) => Ok(Some(claim.lease_until)),
            Ok(Renewed::Lost) => Ok(None),
            Err(_) => Err(()),
        };
        let mut state = self.state();
        if state.slots.renewed(number, asked, answer) {
            state.claims.push((number, claim));
        }
    }

    async fn release(&self, number: u32, asker: Asker<'_>) {
        if let Some(claim) = self.take_claim(number) {
            _ = asker.release(claim, self.policy).await;
        }
    }

    /// Logs once what another try does not fix.
    fn warn(&self, asker: Asker<'_>, error: &StoreError) {
        if !error.kind().is_transient() && !std::mem::replace(&mut self.state().warned.refused, true) {
            let why = match error.kind() {
                StoreErrorKind::Denied => {
                    "the store refuses the records of their limit: the role or user has to be allowed keys that begin with claimant-rate#"
                }
                _ => "the records of their limit cannot be used",
            };
            tracing::error!(consumer = %asker.consumer, downstream = self.own().downstream, error = %Chain(error), "messages wait, since {why}");
        }
    }

    /// Logs once that a lease, as was just answered, ends later than one of so many milliseconds does, whatever clocks within the margin say.
    fn warn_of_clock(&self, asker: Asker<'_>, until: Timestamp, lease_ms: u64) {
        if ends_too_late(until, lease_ms, (asker.clock.now(), self.policy.skew))
            && !std::mem::replace(&mut self.state().warned.far, true)
        {
            tracing::warn!(consumer = %asker.consumer, downstream = self.own().downstream, until = until.to_utc(), "a slot or the plan of the limit is held for longer than any lease lasts, so a clock is far off, this one or that of the process which wrote it; `claimant limit` shows which");
        }
    }

    /// Returns whether a plan was claimed by a process that sets the limit otherwise, and that was not logged.
    fn may_be_of_another(&self, held: &Record, own: Plan) -> bool {
        held.fingerprint != own.fingerprint() && !self.state().warned.differs
    }

    /// Logs once that others renew a plan which is not what this process would set. One that just ends is renewed by nobody.
    fn warn_of_other(&self, asker: Asker<'_>, held: &Record) {
        let mut state = self.state();
        let seen = (held.fence, held.lease_until);
        let before = state.warned.differs_from.replace(seen).filter(|(fence, _)| *fence == held.fence);
        if before.is_none_or(|before| seen <= before) || std::mem::replace(&mut state.warned.differs, true) {
            return;
        }
        drop(state);
        let plan = held.message_id.as_str();
        tracing::warn!(consumer = %asker.consumer, downstream = self.own().downstream, plan, "another function, or another version of this one, sets the limit otherwise, and its plan holds as long as it runs: set it alike in all of them");
    }
}
