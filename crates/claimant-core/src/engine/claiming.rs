//! Claiming: keys are claimed in requests for many; where the store gives no answer, again as long as a handler could start.

use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep, timeout};

use super::context::BatchContext;
use super::learned::DeliveryKind;
use super::slots::Permits;
use super::spans::{self, AnyStep, Within};
use super::tenants::TenantQueue;
use super::work::{Claimed, Work, add};
use crate::backoff;
use crate::claim::OwnerToken;
use crate::error::Chain;
use crate::invocation_time::time_until;
use crate::limits::STORE_BATCH_MAX;
use crate::options::Lease;
use crate::protocol::{Abandoned, ClaimRequest, Likely, Refusal};
use crate::spans::Step;
use crate::store::{BatchedClaim, ClaimAnswer, StoreError, StoreErrorKind};

/// What came of the claim of a key.
pub(crate) enum ClaimResult {
    Granted(Claimed),
    Refused(Work<()>, Refusal),
    /// The store gave no answer, and is not asked again.
    Unanswered(Work<()>, StoreError),
}

/// A claim on its way. The owner is the same at each try, so that a claim which applied although its answer was lost is
/// recognised.
struct Pending {
    work: Work,
    permits: Permits,
    owner: OwnerToken,
    likely: Likely,
}

/// How a call for claims ended.
enum CallEnd {
    Answered {
        answers: Vec<(Pending, Result<BatchedClaim, StoreError>)>,
        tries: u32,
        took: Duration,
    },
    /// They could not even be asked for, or no time was left for another try.
    GivenUp(Vec<(Work<()>, StoreError)>),
}

pub(crate) struct Claiming<'a> {
    cx: BatchContext<'a>,
    waiting: TenantQueue<Work>,
    /// Messages that wait until their keys, which others hold, are asked for again. They hold no slot.
    busy: FuturesUnordered<BoxFuture<'a, Work>>,
    /// Messages whose claims are on their way, or wait for their next try.
    in_flight: usize,
    /// Those of them whose first try got no answer.
    unanswered: usize,
    calls: FuturesUnordered<BoxFuture<'a, CallEnd>>,
    /// The longest that the claims of a message took, with the waits between their tries.
    longest: Duration,
}

impl<'a> Claiming<'a> {
    pub(crate) fn new(cx: BatchContext<'a>) -> Self {
        Self {
            cx,
            waiting: TenantQueue::new(),
            busy: FuturesUnordered::new(),
            in_flight: 0,
            unanswered: 0,
            calls: FuturesUnordered::new(),
            longest: Duration::ZERO,
        }
    }

    pub(crate) fn push(&mut self, work: Work) {
        let is_last = self.cx.shared.receives_max.is_last(work.delivery.message.receive_count());
        self.waiting.push(work.identity.tenant.clone(), is_last, work);
    }

    /// Returns the next message: of the tenant whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<Work> {
        self.waiting.take(self.waiting.next_claim(&self.cx.shared.slots.tenants)?)
    }

    /// Returns whether the next message is of a tenant that has far less in hand than others: slots would go to those.
    pub(crate) fn next_has_little(&self) -> bool {
        self.waiting.next_has_little(&self.cx.shared.slots.tenants)
    }

    /// Returns whether the next message came back: it was delivered, or its key was claimed, before.
    pub(crate) fn next_came_back(&self) -> bool {
        let next = self.waiting.next_claim(&self.cx.shared.slots.tenants);
        next.and_then(|next| self.waiting.get(next)).is_some_and(|work| {
            had_a_record(work) || matches!(DeliveryKind::of(&work.delivery.message), DeliveryKind::Later)
        })
    }

    /// Returns the message to see with whether a system is back: one on its last receive, which has nothing to lose, else the one
    /// with the fewest.
    pub(crate) fn pop_for_probe(&mut self) -> Option<Work> {
        let next = self.waiting.next_claim(&self.cx.shared.slots.tenants)?;
        let receives = self.waiting.get(next).map(|work| work.delivery.message.receive_count());
        let next_is_last = receives.is_some_and(|receives| self.cx.shared.receives_max.is_last(receives));
        if next_is_last { self.waiting.take(next) } else { self.waiting.take_last() }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns how many claims are on their way for the first time, and so are answered soon.
    pub(crate) fn asked_first(&self) -> usize {
        self.in_flight - self.unanswered
    }

    /// Returns whether messages wait for busy keys.
    pub(crate) fn waits_for_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.busy.is_empty()
    }

    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Claims these keys.
    pub(crate) fn start(&mut self, admitted: Vec<(Work, Permits)>) {
        let (mut new, mut done) = (Vec::new(), Vec::new());
        for (work, permits) in admitted {
            let owner = match OwnerToken::draw() {
                Ok(owner) => owner,
                Err(error) => {
                    let error = StoreError::new(StoreErrorKind::Other, error.to_string());
                    (self.in_flight, self.unanswered) = (self.in_flight + 1, self.unanswered + 1);
                    self.calls.push(Box::pin(ready(CallEnd::GivenUp(vec![(work.without_payload(), error)]))));
                    continue;
                }
            };
            let likely = self.likely(&work);
            let pending = Pending { work, permits, owner, likely };
            match likely {
                Likely::New => new.push(pending),
                Likely::Done => done.push(pending),
                // A batched claim cannot show the record that it has: it gets its own request.
                Likely::Known => self.ask(vec![pending]),
            }
        }
        for mut pending in [done, new] {
            while !pending.is_empty() {
                let rest = pending.split_off(pending.len().min(STORE_BATCH_MAX));
                self.ask(std::mem::replace(&mut pending, rest));
            }
        }
    }

    /// Returns what its key most likely has, by what others like it had.
    fn likely(&self, work: &Work) -> Likely {
        if had_a_record(work) {
            return Likely::Known;
        }
        let kind = DeliveryKind::of(&work.delivery.message);
        match kind {
            _ if self.cx.shared.learned.repeats.are_usual(kind) => Likely::Done,
            DeliveryKind::First => Likely::New,
            DeliveryKind::Later => Likely::Known,
        }
    }

    fn ask(&mut self, pending: Vec<Pending>) {
        self.in_flight += pending.len();
        self.calls.push(Box::pin(ask(self.cx, pending, (0, Instant::now()))));
    }

    /// Waits for a call, and gives what came of its claims, or for a busy key's next try, of which nothing came yet; `None` where
    /// there is neither. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Vec<ClaimResult>> {
        let end = tokio::select! {
            biased;
            Some(end) = self.calls.next() => end,
            Some(work) = self.busy.next() => {
                self.waiting.push_front(work.identity.tenant.clone(), work);
                return Some(Vec::new());
            }
            else => return None,
        };
        Some(match end {
            CallEnd::Answered { answers, tries, took } => self.answered(answers, tries, took),
            CallEnd::GivenUp(unanswered) => {
                (self.in_flight, self.unanswered) =
                    (self.in_flight - unanswered.len(), self.unanswered - unanswered.len());
                given_up(unanswered)
            }
        })
    }

    /// Sorts answers. Where there was none, and another try can get one, it is made after a while: an outage then costs time,
    /// and not a receive of each message.
    fn answered(
        &mut self,
        answers: Vec<(Pending, Result<BatchedClaim, StoreError>)>,
        tries: u32,
        took: Duration,
    ) -> Vec<ClaimResult> {
        self.in_flight -= answers.len();
        self.unanswered -= if tries > 1 { answers.len() } else { 0 };
        let (mut results, mut unanswered) = (Vec::with_capacity(answers.len()), Vec::new());
        for (mut pending, answer) in answers {
            self.longest = self.longest.max(add(&mut pending.work.delivery.details.claim, took));
            if let Ok(BatchedClaim::Answered(answer)) = &answer {
                let done = matches!(answer, ClaimAnswer::Refused(Refusal::Completed { .. }));
                self.cx.shared.learned.repeats.learn(DeliveryKind::of(&pending.work.delivery.message), done);
            }
            match answer {
                Ok(BatchedClaim::Answered(ClaimAnswer::Granted(claim))) => {
                    let Pending { mut work, permits, .. } = pending;
                    work.delivery.waited = None;
                    self.cx.log_claim(&work.delivery, &claim);
                    results.push(ClaimResult::Granted(Claimed { work, claim, permits }));
                }
                Ok(BatchedClaim::Answered(ClaimAnswer::Refused(refusal))) => {
                    let Pending { mut work, .. } = pending;
                    // A suspect would be claimed beside others after its wait: nothing else is claimed during its turn alone.
                    let may_wait = !work.its_turn;
                    match may_wait.then(|| self.cx.wait_while_busy(&mut work.delivery, &refusal)).flatten() {
                        Some(delay) => self.busy.push(Box::pin(async move {
                            sleep(delay).await;
                            work
                        })),
                        None => results.push(ClaimResult::Refused(work.without_payload(), refusal)),
                    }
                }
                Ok(BatchedClaim::ClaimAlone) => {
                    pending.likely = Likely::Known;
                    self.ask(vec![pending]);
                }
                Err(error) if error.kind().is_transient() => unanswered.push((pending, error)),
                Err(error) => results.push(ClaimResult::Unanswered(pending.work.without_payload(), error)),
            }
        }
        results.extend(self.try_again(unanswered, tries));
        results
    }

    fn try_again(&mut self, unanswered: Vec<(Pending, StoreError)>, tries: u32) -> Vec<ClaimResult> {
        let cx = self.cx;
        let Some((first, error)) = unanswered.first() else { return Vec::new() };
        let message_id = &first.work.delivery.message.id();
        let Some(delay) = backoff::store_delay(tries, message_id, time_until(cx.time.cancel_at)) else {
            return given_up(without_payloads(unanswered));
        };
        if tries == 1 {
            tracing::warn!(consumer = %cx.name(), message_id = %message_id, claims = unanswered.len(), error = %Chain(error), "the store {} claims: they are tried again while handlers can start", error.kind().said());
        }
        (self.in_flight, self.unanswered) = (self.in_flight + unanswered.len(), self.unanswered + unanswered.len());
        let since = Instant::now();
        self.calls.push(Box::pin(async move {
            sleep(delay).await;
            if !cx.fits() {
                return CallEnd::GivenUp(without_payloads(unanswered));
            }
            ask(cx, unanswered.into_iter().map(|(pending, _)| pending).collect(), (tries, since)).await
        }));
        Vec::new()
    }
}

fn without_payloads(unanswered: Vec<(Pending, StoreError)>) -> Vec<(Work<()>, StoreError)> {
    unanswered.into_iter().map(|(pending, error)| (pending.work.without_payload(), error)).collect()
}

fn given_up(unanswered: Vec<(Work<()>, StoreError)>) -> Vec<ClaimResult> {
    unanswered.into_iter().map(|(work, error)| ClaimResult::Unanswered(work, error)).collect()
}

/// Sends claims; `tries` calls for them gave no answer before, the last of them then.
async fn ask(cx: BatchContext<'_>, pending: Vec<Pending>, (tries, since): (u32, Instant)) -> CallEnd {
    let (within, call) = cx.store_call(cx.time.claims_by(cx.policy().abandoned == Abandoned::Park));
    let requests: Vec<_> = pending.iter().map(|pending| request(cx, pending)).collect();
    let steps = spans::open_all(cx, pending.iter().map(|pending| (&pending.work.delivery, Step::Claim)));
    let answers = match &requests[..] {
        [one] => {
            let span = steps.first().cloned().unwrap_or(AnyStep::NONE);
            let claim = Within { span, run: cx.store().claim(one, call) };
            timeout(within, claim).await.map(|answer| vec![answer.map(BatchedClaim::Answered)])
        }
        many => timeout(within, cx.store().claim_all(many, call)).await,
    };
    // The store bounds its own calls and answers each; this is for one that does not.
    let none = std::iter::repeat_with(|| Err(StoreError::no_answer(within)));
    let answers: Vec<_> = pending.into_iter().zip(answers.unwrap_or_default().into_iter().chain(none)).collect();
    spans::end_all(&steps, answers.iter().map(|(_, answer)| answer), spans::claimed);
    CallEnd::Answered { answers, tries: tries + 1, took: since.elapsed() }
}

/// Returns whether its key had a record that was not done: it waited for it, or has its turn as a suspect.
fn had_a_record(work: &Work) -> bool {
    work.its_turn || work.delivery.waited.is_some()
}

fn request(cx: BatchContext<'_>, pending: &Pending) -> ClaimRequest {
    let (identity, message, now) = (&pending.work.identity, &pending.work.delivery.message, cx.now());
    ClaimRequest {
        id: identity.record_id.clone(),
        owner: pending.owner.clone(),
        message_id: message.first_id(),
        fingerprint: identity.fingerprint,
        now,
        lease_until: match cx.options().lease {
            Lease::UntilDeadline => cx.time.lease_until(now),
            Lease::Renewed(lease) => now.plus(lease),
        },
        policy: cx.policy(),
        likely: pending.likely,
    }
}
