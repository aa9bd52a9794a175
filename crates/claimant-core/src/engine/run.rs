//! Runs one handler: in a task of its own, cancelled in time, its lease [renewed](super::renewal) meanwhile.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, Span};

use super::context::BatchContext;
use super::renewal;
use super::shared_breaker::SharedBreaker;
use super::spans;
use super::task::{End, Task};
use super::work::{Claimed, Work, add};
use crate::claim::{Claim, Fence};
use crate::context::{About, Context};
use crate::failure::Failure;
use crate::handler::{AnyHandler, HandlerFuture, RunFuture};
use crate::limits::{THREAD_WAIT_MS, THREADS_LOOK_MS};
use crate::message::Message;
use crate::options::Lease;
use crate::payload::Payload;
use crate::protocol::breaker::Health;
use crate::spans::Step;
use crate::store::Renewed;
use crate::transaction::{TRANSACTION_KEPT, TransactionSlot};

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

// The context by reference, here and in `renewal`: each future within a future would keep a copy of it.

/// Runs the handler until it ends or is cancelled. Dropping the future cancels the handler.
pub(crate) async fn to_end(
    cx: &BatchContext<'_>,
    work: &Work<()>,
    handler: &AnyHandler,
    claim: &mut Claim,
    payload: Payload,
) -> RunEnd {
    // A handler that asks for no transaction leaves it where it is.
    let transactional = handler.transactional;
    let home = TransactionSlot::of(if transactional { claim.transaction.take() } else { None });
    let start = |context| handler.start(payload, &work.delivery.message, &home, context);
    let end = run_leased(cx, work, claim, start).await;
    if !transactional || matches!(end, RunEnd::StillRunning(_)) {
        return end;
    }
    claim.transaction = home.take();
    match end {
        RunEnd::Returned(Ok(_)) if claim.transaction.is_none() => {
            RunEnd::Returned(Err(Failure::retry(TRANSACTION_KEPT).after_return()))
        }
        end => end,
    }
}

async fn run_leased(
    cx: &BatchContext<'_>,
    work: &Work<()>,
    claim: &mut Claim,
    start: impl FnOnce(Context) -> HandlerFuture,
) -> RunEnd {
    let (began, delivery, run) = (Instant::now(), &work.delivery, (claim.fence, claim.attempt));
    let Lease::Renewed(lease) = cx.options().lease else {
        return run_under(cx, work, run, start, std::future::pending()).await;
    };
    if renewal::renew_late(cx, delivery, claim, lease).await == Renewed::Lost {
        return RunEnd::LeaseLostUnstarted;
    }
    let end = run_under(cx, work, run, start, renewal::until_lost(cx, delivery, claim, lease)).await;
    renewal::stay_hidden(cx, delivery, began, lease).await;
    end
}

/// Runs the handler until it ends, its time is over, or `lost` says that its lease is.
async fn run_under(
    cx: &BatchContext<'_>,
    work: &Work<()>,
    (fence, attempt): (Fence, u32),
    start: impl FnOnce(Context) -> HandlerFuture,
    lost: impl Future<Output = ()>,
) -> RunEnd {
    let (cancel_at, why) = cancellation(*cx);
    let step = spans::open(*cx, &work.delivery, Step::Handle { attempt });
    // So that what a tracing layer makes of the span of the logs is in that of the step.
    let logs = spans::within(&step, || span(*cx, &work.delivery.message, attempt));
    let run = start(context(*cx, work, (fence, attempt), cancel_at)).instrument(logs);
    let end = supervise(*cx, spans::run_within(&step, Box::pin(run)), (cancel_at, why), lost).await;
    if let Some(step) = step {
        let (word, failed) = end.word(spans::returned);
        step.end(word, failed);
    }
    end
}

/// Returns what the handler is told about its run.
pub(crate) fn context(
    cx: BatchContext<'_>,
    work: &Work<()>,
    (fence, attempt): (Fence, u32),
    cancelled_at: Instant,
) -> Context {
    let (consumer, key) = (cx.name().clone(), work.identity.key.clone());
    Context::new(About { consumer, key, fence, attempt, message: work.delivery.message.clone(), cancelled_at })
}

/// Returns the span of the handler's run: what is logged in it says which message it is about, and a tracing layer can
/// continue the producer's trace from it.
fn span(cx: BatchContext<'_>, message: &Message, attempt: u32) -> Span {
    tracing::info_span!("message", consumer = %cx.name(), message_id = %message.id(), attempt, trace = message.trace())
}

/// Returns when a handler that starts now is cancelled, and the word for it.
pub(crate) fn cancellation(cx: BatchContext<'_>) -> (Instant, &'static str) {
    let own = cx.options().timeout.map(|timeout| Instant::now() + timeout);
    match own {
        Some(own) if own < cx.schedule.cancel_at => (own, AT_TIMEOUT),
        _ => (cx.schedule.cancel_at, "the handler was cancelled at the deadline"),
    }
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
            () = sleep_until(cancel_at) => return end_of(task.stop(cx.grace()).await, why),
            () = &mut lost => return match end_of(task.stop(cx.grace()).await, LEASE_LOST) {
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
