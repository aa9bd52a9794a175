//! Settling: claims end in requests for many; where it is not known whether one did, again until the report is due.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep, timeout};

use super::admission;
use super::context::BatchContext;
use super::slots::Permits;
use super::spans::{self, AnyStep, Within};
use super::unsettled::{Then, Unsettled};
use super::work::{Claimed, Work, add};
use crate::backoff;
use crate::claim::Claim;
use crate::clock::Timestamp;
use crate::error::Chain;
use crate::invocation_time::time_until;
use crate::key::MessageId;
use crate::limits::{REFUSED_RETRY_MAX_MS, SETTLE_LINGER_MS};
use crate::protocol::{Abandoned, Settlement};
use crate::spans::Step;
use crate::store::{Settled, StoreError};

/// How long what must not stay unwritten is tried again that the store refuses.
const REFUSED_MAX: Duration = Duration::from_millis(REFUSED_RETRY_MAX_MS);

/// What came of the settlement of a claim.
pub(crate) struct SettleResult {
    pub(super) pending: Pending,
    pub(super) settled: Settled,
}

/// A settlement on its way, without its claim: the same at each try, so that one which applied although its answer was lost
/// is recognised.
pub(crate) struct Pending {
    pub(super) work: Work<()>,
    pub(super) permits: Permits,
    pub(super) then: Then,
    pub(super) attempt: u32,
    pub(super) lease_end: Timestamp,
    settlement: Settlement,
}

impl Pending {
    /// Returns the settlement that is on its way.
    pub(crate) fn settlement(&self) -> Settlement {
        self.settlement.clone()
    }

    pub(crate) fn message_id(&self) -> &MessageId {
        self.work.delivery.message.id()
    }

    /// Returns whether it must not stay unwritten: what was done would be done again, and what may not be would be parked, though it is known
    /// what became of it. All else is run again, or was never run.
    fn is_lasting(&self) -> bool {
        self.then.is_completion() || self.settlement.policy.abandoned == Abandoned::Park
    }

    /// Returns what came of it, after this long.
    pub(crate) fn settled(mut self, settled: Settled, took: Duration) -> SettleResult {
        add(&mut self.work.delivery.details.settle, took);
        SettleResult { pending: self, settled }
    }

    /// Returns the work of a settlement that did not apply, with its claim, for another run.
    pub(crate) fn into_claimed(self, claim: Claim) -> Claimed<()> {
        Claimed { work: self.work, claim, permits: self.permits }
    }
}

/// How a call for settlements ended.
enum CallEnd {
    Answered {
        results: Vec<SettleResult>,
        tries: u32,
    },
    /// No time was left to find out.
    GivenUp(Vec<(Claim, Pending, StoreError)>),
}

pub(crate) struct Settling<'a> {
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
    /// Since when the store refuses them.
    refused_since: Option<Instant>,
    /// The longest that the settlements of a message took, with the waits between their tries.
    longest: Duration,
}

impl<'a> Settling<'a> {
    pub(crate) fn new(cx: BatchContext<'a>) -> Self {
        Self {
            cx,
            waiting: Vec::new(),
            since: None,
            hurries: false,
            in_flight: 0,
            unanswered: 0,
            calls: FuturesUnordered::new(),
            refused_since: None,
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
        Some((since + linger).min(self.cx.time.cancel_at))
    }

    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Notes how long the settlements of a message took up to this one.
    pub(crate) fn note(&mut self, settled: &SettleResult) {
        self.longest = self.longest.max(settled.pending.work.delivery.details.settle.unwrap_or_default());
    }

    /// Settles claims: together, but none waits long for others.
    pub(crate) fn start(&mut self, others_will_end: bool) {
        let lingered = self.linger_until().is_some_and(|at| time_until(at).is_zero());
        let mut count = admission::to_settle(self.waiting.len(), others_will_end, lingered);
        if count == 0 {
            return;
        }
        let cx = self.cx;
        let together = cx.shared.learned.settled_together();
        while count > 0 {
            let chunk: Vec<_> = self.waiting.drain(..count.min(together)).collect();
            count -= chunk.len();
            self.in_flight += chunk.len();
            let now = cx.now();
            let chunk = chunk.into_iter().map(|unsettled| prepare(cx, unsettled, now)).collect();
            self.calls.push(Box::pin(settle(cx, chunk, (0, Instant::now()))));
        }
        self.since = (!self.waiting.is_empty()).then(Instant::now);
        self.hurries &= self.since.is_some();
    }

    /// Waits for a call, and gives what came of its settlements; `None` where there is none. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Vec<SettleResult>> {
        let end = self.calls.next().await?;
        Some(match end {
            CallEnd::Answered { results, tries } => self.answered(results, tries),
            CallEnd::GivenUp(unknown) => {
                self.in_flight -= unknown.len();
                self.unanswered -= unknown.len();
                give_up(unknown)
            }
        })
    }

    /// Sorts answers. What is not known, and another try can find out, is tried again after a while, until the report is due, and what was
    /// refused and must not stay unwritten for a shorter time.
    fn answered(&mut self, answers: Vec<SettleResult>, tries: u32) -> Vec<SettleResult> {
        self.in_flight -= answers.len();
        self.unanswered -= if tries > 1 { answers.len() } else { 0 };
        let (mut results, mut unknown) = (Vec::with_capacity(answers.len()), Vec::new());
        for answer in answers {
            self.note(&answer);
            let SettleResult { pending, settled } = answer;
            match settled {
                Settled::Unknown { claim: Some(claim), error } if self.goes_on(&pending, &error) => {
                    unknown.push((claim, pending, error));
                }
                settled => {
                    if matches!(settled, Settled::Done) {
                        self.refused_since = None;
                    }
                    results.push(SettleResult { pending, settled });
                }
            }
        }
        results.extend(self.try_again(unknown, tries));
        results
    }

    /// Returns whether a settlement is tried again after this error.
    fn goes_on(&mut self, pending: &Pending, error: &StoreError) -> bool {
        if error.kind().may_pass() {
            return true;
        }
        let is_one = pending.is_lasting() && error.kind().may_be_put_right();
        is_one && self.refused_since.get_or_insert_with(Instant::now).elapsed() < REFUSED_MAX
    }

    fn try_again(&mut self, unknown: Vec<(Claim, Pending, StoreError)>, tries: u32) -> Vec<SettleResult> {
        let cx = self.cx;
        let Some((_, first, error)) = unknown.first() else { return Vec::new() };
        let message_id = &first.work.delivery.message.id();
        let Some(delay) = backoff::store_delay(tries, message_id, time_until(cx.time.return_by)) else {
            return give_up(unknown);
        };
        if tries == 1 {
            tracing::warn!(consumer = %cx.name(), message_id = %message_id, claims = unknown.len(), error = %Chain(error), "whether claims were settled is not known: they are tried again, at most until the report is due");
        }
        self.in_flight += unknown.len();
        self.unanswered += unknown.len();
        let since = Instant::now();
        self.calls.push(Box::pin(async move {
            sleep(delay).await;
            if time_until(cx.time.return_by).is_zero() {
                return CallEnd::GivenUp(unknown);
            }
            settle(cx, unknown.into_iter().map(|(claim, pending, _)| (claim, pending)).collect(), (tries, since)).await
        }));
        Vec::new()
    }
}

/// Returns a claim that is to be settled now, and its settlement.
pub(crate) fn prepare(cx: BatchContext<'_>, unsettled: Unsettled, now: Timestamp) -> (Claim, Pending) {
    let Unsettled { claimed: Claimed { work, claim, permits }, ending, then } = unsettled;
    let settlement = Settlement { ending, now, policy: cx.policy() };
    let (attempt, lease_end) = (claim.attempt, claim.lease_until);
    (claim, Pending { work, permits, then, attempt, lease_end, settlement })
}

fn give_up(unknown: Vec<(Claim, Pending, StoreError)>) -> Vec<SettleResult> {
    let result = |(claim, pending, error)| SettleResult { pending, settled: Settled::unknown(claim, error) };
    unknown.into_iter().map(result).collect()
}

/// Sends settlements; `tries` calls for them gave no answer before, the last of them then.
async fn settle(cx: BatchContext<'_>, chunk: Vec<(Claim, Pending)>, (tries, since): (u32, Instant)) -> CallEnd {
    let (within, call) = cx.store_call(cx.time.return_by);
    let parts = |(claim, pending): (Claim, Pending)| ((claim, pending.settlement.clone()), pending);
    let (claims, chunk): (Vec<_>, Vec<_>) = chunk.into_iter().map(parts).unzip();
    let steps = open_spans(cx, &chunk);
    let run = cx.store().settle_all(claims, call, || cx.shared.learned.settle_alone());
    let alone = steps.first().filter(|_| chunk.len() == 1).cloned();
    let settled = timeout(within, Within { span: alone.unwrap_or(AnyStep::NONE), run }).await;
    // As for claims: what is not answered is not known.
    let none = std::iter::repeat_with(|| Settled::given_up(within));
    let (settled, took) = (settled.unwrap_or_default().into_iter().chain(none), since.elapsed());
    let results: Vec<_> = chunk.into_iter().zip(settled).map(|(one, settled)| one.settled(settled, took)).collect();
    spans::end_all(&steps, results.iter().map(|result| &result.settled), spans::settled);
    CallEnd::Answered { results, tries: tries + 1 }
}

/// Opens the spans of these settlements.
pub(crate) fn open_spans(cx: BatchContext<'_>, all_pending: &[Pending]) -> Vec<AnyStep> {
    let step = |pending: &Pending| Step::Settle { wanted: pending.then.word() };
    spans::open_all(cx, all_pending.iter().map(|pending| (&pending.work.delivery, step(pending))))
}
