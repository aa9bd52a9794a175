//! Settling: claims end in requests for many; where it is not known whether one did, again until the report is due.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep, timeout};

use super::admission;
use super::context::BatchContext;
use super::exit::Exit;
use super::settlement::{Then, Unsettled};
use super::slots::Held;
use super::spans::{self, Within};
use super::work::{Answer, Claimed, Work, add};
use crate::backoff;
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::deadline::{store_time, until};
use crate::error::Chain;
use crate::key::MessageId;
use crate::limits::{SETTLE_LINGER_MS, STORE_BATCH_MAX};
use crate::payload::Payload;
use crate::protocol::Settlement;
use crate::report::Outcome;
use crate::spans::{Step, StepSpan};
use crate::store::{Call, Settled, StoreError};

/// What came of the settlement of a claim.
pub(crate) struct SettleResult {
    settling: Settling,
    settled: Settled,
}

/// What that leaves to be done.
pub(crate) enum AfterSettling {
    /// The claim is to be settled in another way.
    Settle(Unsettled),
    /// It is claimed again when its turn comes; it was claimed this often.
    LaterTurn(Work<Payload>, u32),
    /// It is claimed again as if it had not been.
    Wait(Work<Payload>),
    /// The message leaves the batch.
    Leave(Work<()>, Exit),
}

/// A settlement on its way, without its claim: the same at each try, so that one which applied although its answer was lost
/// is recognised.
pub(crate) struct Settling {
    work: Work<()>,
    held: Held,
    then: Then,
    attempt: u32,
    lease_end: Timestamp,
    settlement: Settlement,
}

impl Settling {
    /// Returns the settlement that is on its way.
    pub(crate) fn settlement(&self) -> Settlement {
        self.settlement.clone()
    }

    pub(crate) fn message_id(&self) -> &MessageId {
        self.work.delivery.message.id()
    }

    /// Returns what came of it, after this long.
    pub(crate) fn settled(mut self, settled: Settled, took: Duration) -> SettleResult {
        add(&mut self.work.delivery.details.settle, took);
        SettleResult { settling: self, settled }
    }

    /// Returns the work of a settlement that did not apply, with its claim, for another run.
    pub(crate) fn into_claimed(self, claim: Claim) -> Claimed<()> {
        Claimed { work: self.work, claim, held: self.held }
    }
}

/// How a call for settlements ended.
enum CallEnd {
    Answered {
        results: Vec<SettleResult>,
        tries: u32,
        took: Duration,
    },
    /// No time was left to find out.
    GivenUp(Vec<(Claim, Settling, StoreError)>),
}

pub(crate) struct SettleStage<'a> {
    cx: BatchContext<'a>,
    /// Claims that wait to be settled with others.
    waiting: Vec<Unsettled>,
    /// Since when the oldest of them waits.
    since: Option<Instant>,
    /// Whether something waits for one of them.
    hurries: bool,
    /// Claims whose settlements are on their way, or wait for their next try.
    in_flight: usize,
    /// Of those: how many went without an answer at least once.
    unanswered: usize,
    calls: FuturesUnordered<BoxFuture<'a, CallEnd>>,
    /// The longest that a call took.
    longest: Duration,
}

impl<'a> SettleStage<'a> {
    pub(crate) fn new(cx: BatchContext<'a>) -> Self {
        Self {
            cx,
            waiting: Vec::new(),
            since: None,
            hurries: false,
            in_flight: 0,
            unanswered: 0,
            calls: FuturesUnordered::new(),
            longest: Duration::ZERO,
        }
    }

    /// Adds a claim that is to be settled; whether another message `waits` for it.
    pub(crate) fn push(&mut self, unsettled: Unsettled, waits: bool) {
        self.waiting.push(unsettled);
        self.since.get_or_insert_with(Instant::now);
        self.hurries |= waits;
    }

    /// Returns how many claims are to be settled.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.in_flight
    }

    /// Returns how many effects may have to be repeated: all that are not settled, while the store leaves settlements without
    /// an answer.
    pub(crate) fn in_doubt(&self) -> usize {
        if self.unanswered > 0 { self.len() } else { 0 }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns when those that wait have waited long enough for others.
    pub(crate) fn linger_until(&self) -> Option<Instant> {
        let since = self.since?;
        let linger = if self.hurries { Duration::from_millis(SETTLE_LINGER_MS) } else { self.cx.shared.linger() };
        Some((since + linger).min(self.cx.schedule.cancel_at))
    }

    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Settles claims: together, but none waits long for others.
    pub(crate) fn start(&mut self, others_will_end: bool) {
        let lingered = self.linger_until().is_some_and(|at| until(at).is_zero());
        let mut count = admission::to_settle(self.waiting.len(), others_will_end, lingered);
        if count == 0 {
            return;
        }
        let cx = self.cx;
        while count > 0 {
            let chunk: Vec<_> = self.waiting.drain(..count.min(STORE_BATCH_MAX)).collect();
            count -= chunk.len();
            self.in_flight += chunk.len();
            let now = cx.now();
            let chunk = chunk.into_iter().map(|unsettled| settling(cx, unsettled, now)).collect();
            self.calls.push(Box::pin(settle(cx, chunk, 0)));
        }
        self.since = (!self.waiting.is_empty()).then(Instant::now);
        self.hurries &= self.since.is_some();
    }

    /// Waits for a call, and gives what came of its settlements; `None` where there is none. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Vec<SettleResult>> {
        let end = self.calls.next().await?;
        Some(match end {
            CallEnd::Answered { results, tries, took } => self.answered(results, tries, took),
            CallEnd::GivenUp(unknown) => {
                self.in_flight -= unknown.len();
                self.unanswered -= unknown.len();
                give_up(unknown)
            }
        })
    }

    /// Sorts answers. What is not known, and another try can find out, is tried again after a while, until the report is due:
    /// what was done and not written would be done again.
    fn answered(&mut self, answers: Vec<SettleResult>, tries: u32, took: Duration) -> Vec<SettleResult> {
        self.longest = self.longest.max(took);
        self.in_flight -= answers.len();
        self.unanswered -= if tries > 1 { answers.len() } else { 0 };
        let (mut results, mut unknown) = (Vec::with_capacity(answers.len()), Vec::new());
        for SettleResult { mut settling, settled } in answers {
            add(&mut settling.work.delivery.details.settle, took);
            match settled {
                Settled::Unknown { claim: Some(claim), error } if error.kind().may_pass() => {
                    unknown.push((claim, settling, error));
                }
                settled => results.push(SettleResult { settling, settled }),
            }
        }
        results.extend(self.try_again(unknown, tries));
        results
    }

    fn try_again(&mut self, unknown: Vec<(Claim, Settling, StoreError)>, tries: u32) -> Vec<SettleResult> {
        let cx = self.cx;
        let Some((_, first, error)) = unknown.first() else { return Vec::new() };
        let message_id = &first.work.delivery.message.id();
        let Some(delay) = backoff::store_delay(tries, message_id, until(cx.schedule.return_by)) else {
            return give_up(unknown);
        };
        if tries == 1 {
            tracing::warn!(consumer = %cx.name(), message_id = %message_id, claims = unknown.len(), error = %Chain(error), "whether claims were settled is not known: they are tried again until the report is due");
        }
        self.in_flight += unknown.len();
        self.unanswered += unknown.len();
        self.calls.push(Box::pin(async move {
            sleep(delay).await;
            if until(cx.schedule.return_by).is_zero() {
                return CallEnd::GivenUp(unknown);
            }
            settle(cx, unknown.into_iter().map(|(claim, settling, _)| (claim, settling)).collect(), tries).await
        }));
        Vec::new()
    }
}

/// Returns a claim that is to be settled now, and its settlement.
pub(crate) fn settling<'a>(cx: BatchContext<'a>, unsettled: Unsettled, now: Timestamp) -> (Claim, Settling) {
    let Unsettled { claimed: Claimed { work, claim, held }, ending, then } = unsettled;
    let settlement = Settlement { ending, now, policy: cx.policy() };
    let (attempt, lease_end) = (claim.attempt, claim.lease_until);
    (claim, Settling { work, held, then, attempt, lease_end, settlement })
}

fn give_up(unknown: Vec<(Claim, Settling, StoreError)>) -> Vec<SettleResult> {
    let result = |(claim, settling, error)| SettleResult { settling, settled: Settled::unknown(claim, error) };
    unknown.into_iter().map(result).collect()
}

/// Sends settlements; `tries` calls for them gave no answer before.
async fn settle<'a>(cx: BatchContext<'a>, chunk: Vec<(Claim, Settling)>, tries: u32) -> CallEnd {
    let start = Instant::now();
    let (within, guarded) = store_time(cx.schedule.return_by);
    let parts = |(claim, settling): (Claim, Settling)| ((claim, settling.settlement.clone()), settling);
    let (claims, chunk): (Vec<_>, Vec<_>) = chunk.into_iter().map(parts).unzip();
    let steps = open_spans(cx, &chunk);
    let settling = cx.store().settle_all(claims, Call { within: guarded, meter: cx.meter });
    let alone = steps.first().filter(|_| chunk.len() == 1).cloned();
    let settled = timeout(within, Within { span: alone, run: settling }).await;
    // As for claims: what is not answered is not known.
    let none = std::iter::repeat_with(|| Settled::given_up(within));
    let settled = settled.unwrap_or_default().into_iter().chain(none);
    let results = chunk.into_iter().zip(settled).map(|(settling, settled)| SettleResult { settling, settled });
    let results: Vec<_> = results.collect();
    spans::end_all(&steps, results.iter().map(|result| &result.settled), spans::settled);
    CallEnd::Answered { results, tries: tries + 1, took: start.elapsed() }
}

/// Opens the spans of these settlements.
pub(crate) fn open_spans(cx: BatchContext<'_>, settlings: &[Settling]) -> Vec<Arc<dyn StepSpan>> {
    let step = |settling: &Settling| Step::Settle { wanted: settling.then.word() };
    spans::open_all(cx, settlings.iter().map(|settling| (&settling.work.delivery, step(settling))))
}

/// Decides what follows a settlement.
pub(crate) fn after_settling<'a>(cx: BatchContext<'a>, result: SettleResult) -> AfterSettling {
    let SettleResult { settling: Settling { work, held, then, attempt, lease_end, .. }, settled } = result;
    let (message_id, word) = (&work.delivery.message.id(), then.word());
    let exit = match settled {
        Settled::Done => match then {
            Then::LaterTurn(payload) => return AfterSettling::LaterTurn(work.with(payload), attempt),
            Then::Wait(payload) => return AfterSettling::Wait(work.with(payload)),
            Then::Exit(exit) => exit,
            Then::Park { error, attempt } => cx.parked(&work.delivery, error, Some(attempt)),
        },
        Settled::Aborted { claim, failure } if then.is_completion() => {
            return AfterSettling::Settle(Unsettled::returned(cx, Claimed { work, claim, held }, Err(failure)));
        }
        Settled::Refused(refusal) if then.is_completion() => cx.refused(&work, refusal),
        Settled::Lost | Settled::Aborted { .. } | Settled::Refused(_) => {
            tracing::warn!(consumer = %cx.name(), message_id = %message_id, attempt, wanted = word, "claim was lost before it was settled");
            let delay = backoff::delay(attempt, message_id);
            Exit::Answered(Answer::failure(Outcome::LeaseLost, delay))
        }
        Settled::Unknown { error, .. } => {
            tracing::warn!(consumer = %cx.name(), message_id = %message_id, attempt, wanted = word, error = %Chain(&error), "whether the claim was settled is not known");
            let delay = cx.after_lease(message_id, lease_end.plus(cx.policy().skew));
            Exit::Answered(Answer::failure(Outcome::SettleUnknown, delay))
        }
    };
    AfterSettling::Leave(work, exit)
}
