//! Runs one handler: in a task of its own, cancelled in time, its lease [renewed](super::renewal) meanwhile.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, Span};

use super::breaker::shared::SharedBreaker;
use super::context::BatchContext;
use super::renewal;
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
use crate::transaction::{AnyTransaction, TRANSACTION_KEPT, TransactionSlot};

/// Why a handler was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It took longer than its consumer allows, which is so long.
    AtTimeout(Duration),
    /// Its invocation had no more time, of which so much was left at its start.
    AtDeadline(Duration),
    /// Another owner may have its claim, or its message.
    LeaseLost,
    /// Another item of its call has lost its lease.
    NeighbourLost,
}

impl Cut {
    /// Returns the text for logs and records.
    pub(crate) fn why(self) -> String {
        match self {
            Self::AtTimeout(ran) => {
                format!("the handler was cancelled after {} ms, at its own timeout", ran.as_millis())
            }
            Self::AtDeadline(ran) => {
                let ms = ran.as_millis();
                format!("the handler was cancelled after {ms} ms, when its invocation had no more time")
            }
            Self::LeaseLost => "the lease was lost while the handler ran".to_owned(),
            Self::NeighbourLost => {
                "the call was cancelled, since the lease of another of its items was lost".to_owned()
            }
        }
    }
}

/// What a handler returned: the result to keep, as JSON.
pub(crate) type HandlerReturn = Result<Option<String>, Failure>;

/// How a handler's run ended, which returns `R`.
#[derive(Debug)]
pub(crate) enum RunEnd<R = HandlerReturn> {
    Returned(R),
    Panicked,
    /// It was cancelled, and stopped.
    Cancelled(Cut),
    /// It was cancelled, and did not stop.
    StillRunning(Cut),
    /// Its claim was lost, or its message, before it was started.
    LeaseLostUnstarted,
    /// No thread was free for it while there was time.
    NeverStarted,
    /// There was no time for it any more.
    NoTime,
    /// Its transaction could not be begun.
    NoTransaction,
}

impl<R> RunEnd<R> {
    /// Returns whether it was cut off at its own timeout.
    pub(crate) fn timed_out(&self) -> bool {
        matches!(self, Self::Cancelled(Cut::AtTimeout(_)) | Self::StillRunning(Cut::AtTimeout(_)))
    }

    /// Returns what it says of the system that the handler calls, where that has a breaker: what hangs is away, and of what was returned,
    /// as `returned` says.
    pub(crate) fn health(&self, cx: BatchContext<'_>, returned: impl FnOnce(&SharedBreaker, &R) -> Health) -> Health {
        match (&cx.shared.breaker, self) {
            (Some(breaker), Self::Returned(result)) => returned(breaker, result),
            (Some(_), end) if end.timed_out() => Health::Away,
            _ => Health::Unknown,
        }
    }

    /// Teaches how long a handler takes, from a run that took so long, and says this of the system.
    pub(crate) fn teach(&self, cx: BatchContext<'_>, took: Duration, seen: Health) {
        let learned = &cx.shared.learned;
        match (seen, self) {
            // How long it hung says nothing of the others.
            (Health::Away, _) => learned.hung(took),
            (_, Self::Returned(_)) => {
                learned.durations.learn(took);
                // One that began before the breaker opened says nothing of the time since.
                if seen == Health::Answered && !cx.shared.breaker.as_ref().is_some_and(SharedBreaker::is_open) {
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
            Self::Cancelled(Cut::LeaseLost) => ("lease_lost", true),
            Self::Cancelled(_) => ("cancelled", true),
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
    /// What it says of the system that the handler calls.
    health: Health,
}

impl Ran {
    /// Returns work whose run took so long: its slot is free for another handler, and its time is noted.
    pub(crate) fn new(cx: BatchContext<'_>, mut claimed: Claimed<()>, end: RunEnd, took: Duration) -> Self {
        claimed.permits.free_slot();
        add(&mut claimed.work.delivery.details.handle, took);
        let health = end.health(cx, SharedBreaker::health);
        Self { claimed, end, took, health }
    }

    pub(crate) fn health(&self) -> Health {
        self.health
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
    let mut transaction = if transactional { claim.transaction.take() } else { None };
    let remains = transaction.as_mut().and_then(AnyTransaction::take_remains);
    let home = TransactionSlot::of(transaction);
    let start = |context| handler.start(payload, &work.delivery.message, &home, context);
    let end = run_leased(cx, work, claim, start).await;
    if !transactional || matches!(end, RunEnd::StillRunning(_)) {
        return end;
    }
    let returned = home.take();
    let is_kept = returned.is_none();
    claim.transaction = returned.or(remains);
    match end {
        RunEnd::Returned(Ok(_)) if is_kept => RunEnd::Returned(Err(Failure::retry(TRANSACTION_KEPT).after_return())),
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
    let (cancel_at, cut) = cancellation(*cx);
    let step = spans::open(*cx, &work.delivery, Step::Handle { attempt });
    // So that what a tracing layer makes of the span of the logs is in that of the step.
    let logs = spans::within(&step, || span(*cx, &work.delivery.message, attempt));
    let run = start(context(*cx, work, (fence, attempt), cancel_at)).instrument(logs);
    let end = supervise(*cx, spans::run_within(&step, Box::pin(run)), (cancel_at, cut), lost).await;
    spans::end(&step, end.word(spans::returned));
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
/// continue the producer's trace from it. At `ERROR`, though it is none: no level that shows a line takes its span away.
fn span(cx: BatchContext<'_>, message: &Message, attempt: u32) -> Span {
    tracing::error_span!("message", consumer = %cx.name(), message_id = %message.id(), attempt, trace = message.trace())
}

/// Returns when a handler that starts now is cancelled, and why then.
pub(crate) fn cancellation(cx: BatchContext<'_>) -> (Instant, Cut) {
    let (now, cancel_at) = (Instant::now(), cx.time.cancel_at);
    match cx.options().timeout {
        Some(own) if now + own < cancel_at => (now + own, Cut::AtTimeout(own)),
        _ => (cancel_at, Cut::AtDeadline(cancel_at.saturating_duration_since(now))),
    }
}

/// Runs a handler until it ends, its time is over, or `lost` says that a lease is.
pub(crate) async fn supervise<R: Send + 'static>(
    cx: BatchContext<'_>,
    run: RunFuture<R>,
    (cancel_at, cut): (Instant, Cut),
    lost: impl Future<Output = ()>,
) -> RunEnd<R> {
    let mut task = Task::start(run, cx.shared.threads.as_ref());
    let (start, mut lost) = (Instant::now(), pin!(lost));
    loop {
        let look_at = Instant::now() + Duration::from_millis(THREADS_LOOK_MS);
        tokio::select! {
            // In this order, not at random: so a simulated run is the same each time. What the handler gave counts in any order, since a
            // task that is stopped gives it, too.
            biased;
            end = task.ended() => return end_of(end, cut),
            () = sleep_until(cancel_at) => return end_of(task.stop(cx.grace()).await, cut),
            () = &mut lost => return match end_of(task.stop(cx.grace()).await, Cut::LeaseLost) {
                RunEnd::NeverStarted => RunEnd::LeaseLostUnstarted,
                // The claim may still be held. Where it is not, owner and fence refuse what is settled.
                end @ (RunEnd::Returned(_) | RunEnd::StillRunning(_)) => end,
                _ => RunEnd::Cancelled(Cut::LeaseLost),
            },
            () = sleep_until(look_at), if task.is_movable() => {
                task.look(start.elapsed() >= Duration::from_millis(THREAD_WAIT_MS));
            }
        }
    }
}

fn end_of<R>(end: End<R>, cut: Cut) -> RunEnd<R> {
    match end {
        End::Returned(result) => RunEnd::Returned(result),
        End::Panicked => RunEnd::Panicked,
        End::Stopped => RunEnd::Cancelled(cut),
        End::NeverStarted => RunEnd::NeverStarted,
        End::StillRunning => RunEnd::StillRunning(cut),
    }
}
