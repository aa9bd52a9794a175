//! Runs one handler: in a task of its own, cancelled in time, its lease renewed meanwhile.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use tracing::{Instrument as _, Span};

use super::context::BatchContext;
use super::shared_breaker::SharedBreaker;
use super::spans;
use super::task::{End, Task};
use super::work::{Claimed, Delivery, Work, add};
use crate::claim::{Claim, Fence};
use crate::clock::Timestamp;
use crate::context::{About, Context};
use crate::deadline::until;
use crate::failure::Failure;
use crate::handler::{AnyHandler, HandlerFuture, RunFuture};
use crate::key::Key;
use crate::limits::{CANCEL_GRACE_MS, THREAD_WAIT_MS, THREADS_LOOK_MS};
use crate::options::Lease;
use crate::payload::Payload;
use crate::protocol::Renewal;
use crate::protocol::breaker::Health;
use crate::queue::HideAnswer;
use crate::spans::Step;
use crate::store::{Call, Renewed};
use crate::transaction::{TRANSACTION_KEPT, TransactionSlot};

/// How often a renewed lease is renewed while it lasts.
pub(crate) const RENEWALS_PER_LEASE: u32 = 3;

/// A renewal may take this part of the lease.
const RENEWAL_TRIES: u32 = 6;

/// Why a handler was cancelled that took longer than its consumer allows.
const AT_TIMEOUT: &str = "the handler was cancelled at its timeout";

/// Why one was cancelled whose claim, or whose message, another owner may have.
pub(crate) const LEASE_LOST: &str = "the lease was lost while the handler ran";

/// What a handler returned: the result to keep, as JSON.
pub(crate) type HandlerReturn = Result<Option<String>, Failure>;

/// How a handler's run ended, which returns `R`.
#[derive(Debug)]
pub(crate) enum RunEnd<R = HandlerReturn> {
    Returned(R),
    Panicked,
    /// It was cancelled, and stopped.
    Cancelled(&'static str),
    /// The claim was lost while it ran, or the message was; it was cancelled.
    LeaseLost,
    /// As [`LeaseLost`](Self::LeaseLost), before it was started.
    LeaseLostUnstarted,
    /// It was cancelled, and did not stop.
    StillRunning(&'static str),
    /// No thread was free for it while there was time.
    NeverStarted,
    /// There was no time for it any more.
    NoTime,
    /// Its transaction could not be begun.
    NoTransaction,
}

impl<R> RunEnd<R> {
    /// Returns what it says of the system that the handler calls; of what was returned, as `returned` says.
    pub(crate) fn health(&self, returned: impl FnOnce(&R) -> Health) -> Health {
        match self {
            Self::Returned(result) => returned(result),
            Self::Cancelled(why) | Self::StillRunning(why) if *why == AT_TIMEOUT => Health::Away,
            _ => Health::Unknown,
        }
    }

    /// Teaches how long a handler takes, from a run that took so long.
    pub(crate) fn teach(&self, cx: BatchContext<'_>, took: Duration, says: impl Fn(&SharedBreaker, &R) -> Health) {
        let (learned, breaker) = (&cx.shared.learned, cx.shared.breaker.as_ref());
        let seen = breaker.map_or(Health::Unknown, |breaker| self.health(|result| says(breaker, result)));
        match (seen, self) {
            // How long it hung says nothing of the others.
            (Health::Away, _) => learned.hung(took),
            (_, Self::Returned(_)) => {
                learned.durations.learn(took);
                // One that began before the breaker opened says nothing of the time since.
                if seen == Health::Answered && !breaker.is_some_and(SharedBreaker::is_open) {
                    learned.forget_hangs();
                }
            }
            _ => {}
        }
    }

    /// Returns a word for it, and whether it is a failure; of what was returned, as `returned` says.
    pub(crate) fn word(&self, returned: impl FnOnce(&R) -> (&'static str, bool)) -> (&'static str, bool) {
        match self {
            Self::Returned(result) => returned(result),
            Self::Panicked => ("panicked", true),
            Self::Cancelled(_) => ("cancelled", true),
            Self::LeaseLost => ("lease_lost", true),
            Self::StillRunning(_) => ("stuck", true),
            Self::LeaseLostUnstarted | Self::NeverStarted | Self::NoTime | Self::NoTransaction => ("not_started", true),
        }
    }
}

/// Work whose handler was run; the payload went to the handler.
pub(crate) struct Ran {
    pub(crate) claimed: Claimed<()>,
    pub(crate) end: RunEnd,
    pub(crate) took: Duration,
}

impl Ran {
    /// Returns it with its slot free for another handler, and with its time noted.
    pub(crate) fn ended(mut self) -> Self {
        self.claimed.permits.free_slot();
        add(&mut self.claimed.work.delivery.details.handle, self.took);
        self
    }
}

/// One run of a handler: everything about it but its claim and its payload.
pub(crate) struct Run<'a> {
    cx: BatchContext<'a>,
    delivery: &'a Delivery,
    key: &'a Key,
}

impl<'a> Run<'a> {
    /// Returns a run of the handler for this work.
    pub(crate) fn of<P>(cx: BatchContext<'a>, work: &'a Work<P>) -> Self {
        Self { cx, delivery: &work.delivery, key: &work.identity.key }
    }

    /// Runs the handler until it ends or is cancelled. Dropping the future cancels the handler.
    pub(crate) async fn to_end(&self, handler: &AnyHandler, claim: &mut Claim, payload: Payload) -> RunEnd {
        // A handler that asks for no transaction leaves it where it is.
        let transactional = handler.transactional;
        let home = TransactionSlot::of(if transactional { claim.transaction.take() } else { None });
        let start = |context| handler.start(payload, &self.delivery.message, &home, context);
        let end = self.run_leased(claim, start).await;
        if !transactional || matches!(end, RunEnd::StillRunning(_)) {
            return end;
        }
        claim.transaction = home.take();
        match end {
            RunEnd::Returned(Ok(_)) if claim.transaction.is_none() => {
                RunEnd::Returned(Err(Failure::retry(TRANSACTION_KEPT)))
            }
            end => end,
        }
    }

    async fn run_leased(&self, claim: &mut Claim, start: impl FnOnce(Context) -> HandlerFuture) -> RunEnd {
        let began = Instant::now();
        let Lease::Renewed(lease) = self.cx.options().lease else {
            return self.run_under(claim.fence, claim.attempt, start, std::future::pending()).await;
        };
        if self.renew_late(claim, lease).await == Renewed::Lost {
            return RunEnd::LeaseLostUnstarted;
        }
        let end = self.run_under(claim.fence, claim.attempt, start, self.renew_until_lost(claim, lease)).await;
        self.stay_hidden(began, lease).await;
        end
    }

    /// Runs the handler until it ends, its time is over, or `lost` says that its lease is.
    async fn run_under(
        &self,
        fence: Fence,
        attempt: u32,
        start: impl FnOnce(Context) -> HandlerFuture,
        lost: impl Future<Output = ()>,
    ) -> RunEnd {
        let (cancel_at, why) = cancellation(self.cx);
        let step = spans::open(self.cx, self.delivery, Step::Handle { attempt });
        // So that what a tracing layer makes of the span of the logs is in that of the step.
        let logs = spans::within(&step, || self.span(attempt));
        let run = start(self.context(fence, attempt, cancel_at)).instrument(logs);
        let end = supervise(self.cx, spans::run_within(&step, Box::pin(run)), (cancel_at, why), lost).await;
        if let Some(step) = step {
            let (word, failed) = end.word(spans::returned);
            step.end(word, failed);
        }
        end
    }

    /// Returns what the handler is told about its run.
    pub(crate) fn context(&self, fence: Fence, attempt: u32, cancelled_at: Instant) -> Context {
        let (consumer, key) = (self.cx.shared.name.clone(), self.key.clone());
        Context::new(About { consumer, key, fence, attempt, message: self.delivery.message.clone(), cancelled_at })
    }

    /// Renews the lease of a grant that came late, and has little left of it or nothing; hides its message until the batch is reported:
    /// where its handler is quick, or does not start, nothing renews it again.
    pub(crate) async fn renew_late(&self, claim: &mut Claim, lease: Duration) -> Renewed {
        if is_little(self.cx, claim, lease) { self.renew(claim, lease, None).await } else { Renewed::Held }
    }

    /// Hides the message until its batch is reported, if its lease was renewed while its handler ran, which began then: until here it
    /// was hidden a little longer than that.
    pub(crate) async fn stay_hidden(&self, began: Instant, lease: Duration) {
        if began.elapsed() >= lease / RENEWALS_PER_LEASE {
            let rest = until(self.cx.schedule.lease_end);
            let _ = timeout(grace(self.cx), self.cx.queue().hide(self.delivery.index, rest)).await;
        }
    }

    /// Renews the lease as long as it can be; returns when it is lost.
    async fn renew_until_lost(&self, claim: &mut Claim, lease: Duration) {
        loop {
            tokio::time::sleep(lease / RENEWALS_PER_LEASE).await;
            let by = claim.lease_until;
            if self.renew(claim, lease, Some(by)).await == Renewed::Lost {
                return;
            }
        }
    }

    /// Returns the span of the handler's run: what is logged in it says which message it is about, and a tracing layer can
    /// continue the producer's trace from it.
    fn span(&self, attempt: u32) -> Span {
        let message = &self.delivery.message;
        tracing::info_span!("message", consumer = %self.cx.name(), message_id = %message.id(), attempt, trace = message.trace())
    }

    /// Renews the lease, and hides the message until another owner could take over; before its handler runs, until the batch is reported.
    /// Held only where both are.
    ///
    /// A store that gives no answer is asked again at the next turn, as long as the lease lasts. While the handler runs, an answer is waited
    /// for until `by`, if that is to come: one that goes on after the end of its lease would run beside that of another owner.
    pub(crate) async fn renew(&self, claim: &mut Claim, lease: Duration, by: Option<Timestamp>) -> Renewed {
        let (cx, now) = (self.cx, self.cx.now());
        let renewal = Renewal { lease_until: now.plus(lease), now, policy: cx.policy() };
        // So that a request without an answer leaves time for another one before the lease ends, and never longer than handlers have.
        let within = || (lease / RENEWAL_TRIES).min(until(cx.schedule.cancel_at));
        let rest = by.map(|by| by.since(now)).filter(|rest| !rest.is_zero());
        let most = rest.map_or_else(within, |rest| within().min(rest));
        let renewing = cx.store().renew(claim, renewal, Call { within: most, meter: cx.meter });
        match timeout(most, renewing).await {
            Ok(Ok(Renewed::Lost)) => return Renewed::Lost,
            Ok(Ok(Renewed::Held)) => {}
            Ok(Err(_)) | Err(_) => {
                let lasts = cx.now().plus(lease / RENEWALS_PER_LEASE) < claim.lease_until;
                return if lasts { Renewed::Held } else { Renewed::Lost };
            }
        }
        // Back any earlier, it would be a receive for nothing.
        let lasts = lease + cx.policy().skew;
        let hidden = if by.is_some() { lasts } else { lasts.max(until(cx.schedule.lease_end)) };
        match timeout(within(), cx.queue().hide(self.delivery.index, hidden)).await {
            Ok(HideAnswer::Lost) => Renewed::Lost,
            Ok(HideAnswer::Hidden) | Err(_) => Renewed::Held,
        }
    }
}

/// Returns whether a claim has little left of its lease, or nothing.
pub(crate) fn is_little(cx: BatchContext<'_>, claim: &Claim, lease: Duration) -> bool {
    claim.lease_until < cx.now().plus(lease / RENEWALS_PER_LEASE * 2)
}

/// Returns when a handler that starts now is cancelled, and the word for it.
pub(crate) fn cancellation(cx: BatchContext<'_>) -> (Instant, &'static str) {
    let own = cx.options().timeout.map(|timeout| Instant::now() + timeout);
    match own {
        Some(own) if own < cx.schedule.cancel_at => (own, AT_TIMEOUT),
        _ => (cx.schedule.cancel_at, "the handler was cancelled at the deadline"),
    }
}

/// Returns how long a cancelled handler may take to stop, and a last call to the queue may take. Settling keeps its share of
/// what is left.
pub(crate) fn grace(cx: BatchContext<'_>) -> Duration {
    Duration::from_millis(CANCEL_GRACE_MS).min(until(cx.schedule.return_by) / 2)
}

/// Runs a handler until it ends, its time is over, or `lost` says that a lease is.
pub(crate) async fn supervise<R: Send + 'static>(
    cx: BatchContext<'_>,
    run: RunFuture<R>,
    (cancel_at, why): (Instant, &'static str),
    lost: impl Future<Output = ()>,
) -> RunEnd<R> {
    let mut task = Task::start(run, cx.shared.threads.as_ref());
    let (start, mut lost) = (Instant::now(), pin!(lost));
    loop {
        let look_at = Instant::now() + Duration::from_millis(THREADS_LOOK_MS);
        tokio::select! {
            // In this order, not at random: what the handler gave counts, even where its time ends at the same moment.
            biased;
            end = task.ended() => return end_of(end, why),
            () = sleep_until(cancel_at) => return end_of(task.stop(grace(cx)).await, why),
            () = &mut lost => return match end_of(task.stop(grace(cx)).await, LEASE_LOST) {
                RunEnd::NeverStarted => RunEnd::LeaseLostUnstarted,
                // The claim may still be held. Where it is not, owner and fence refuse what is settled.
                end @ (RunEnd::Returned(_) | RunEnd::StillRunning(_)) => end,
                _ => RunEnd::LeaseLost,
            },
            () = sleep_until(look_at), if task.is_movable() => {
                task.look(start.elapsed() >= Duration::from_millis(THREAD_WAIT_MS));
            }
        }
    }
}

fn end_of<R>(end: End<R>, why: &'static str) -> RunEnd<R> {
    match end {
        End::Returned(result) => RunEnd::Returned(result),
        End::Panicked => RunEnd::Panicked,
        End::Stopped => RunEnd::Cancelled(why),
        End::NeverStarted => RunEnd::NeverStarted,
        End::StillRunning => RunEnd::StillRunning(why),
    }
}
