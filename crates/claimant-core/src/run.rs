//! One handler's run: in a task of its own, cancelled in time, its lease renewed meanwhile.

use std::pin::pin;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{Instrument as _, Span};

use crate::claim::{Claim, Fence};
use crate::clock::Clock;
use crate::consumer::Consumer;
use crate::context::{Context, Run as About};
use crate::deadline::{Schedule, until};
use crate::failure::{Failure, HandlerError};
use crate::identity::Identity;
use crate::key::ConsumerName;
use crate::limits::{CANCEL_GRACE_MS, THREAD_WAIT_MS, THREADS_LOOK_MS};
use crate::message::Message;
use crate::meter::Meter;
use crate::options::Lease;
use crate::protocol::Renewal;
use crate::queue::{HideAnswer, Queue};
use crate::store::{Call, Renewed};
use crate::task::{End, Task};
use crate::threads::HandlerThreads;
use crate::transaction::TransactionSlot;

/// How often a renewed lease is renewed while it lasts.
const RENEWALS_PER_LEASE: u32 = 3;

/// A renewal may take this part of the lease.
const RENEWAL_TRIES: u32 = 6;

/// How the handler's run ended.
#[derive(Debug)]
pub(crate) enum Ran {
    Returned(Result<Option<String>, Failure>),
    Panicked,
    /// It was told to stop, and did.
    Cancelled(&'static str),
    /// The claim was lost while it ran, or the message was; the handler was told to stop.
    LeaseLost,
    /// As [`LeaseLost`](Self::LeaseLost), before it was started.
    LeaseLostUnstarted,
    /// It was told to stop and did not.
    StillRunning,
    /// No thread was free for it while there was time.
    NeverStarted,
}

/// Everything about one run but the claim.
pub(crate) struct Runner<'a, T> {
    pub(crate) consumer: &'a Consumer<T>,
    pub(crate) name: &'a ConsumerName,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) threads: Option<&'a HandlerThreads>,
    pub(crate) queue: &'a dyn Queue,
    pub(crate) meter: &'a Meter,
    pub(crate) schedule: Schedule,
    pub(crate) place: usize,
    pub(crate) message: &'a Message,
    pub(crate) identity: &'a Identity,
}

impl<T: DeserializeOwned + Send + 'static> Runner<'_, T> {
    /// Runs the handler until it ends or is cancelled. Dropping the future cancels the handler.
    pub(crate) async fn run(&self, claim: &mut Claim) -> Ran {
        // A handler that asks for no transaction leaves it where it is.
        let home =
            TransactionSlot::of(if self.consumer.handler.transactional { claim.transaction.take() } else { None });
        let ran = self.run_leased(claim, &home).await;
        if !self.consumer.handler.transactional || matches!(ran, Ran::StillRunning) {
            return ran;
        }
        claim.transaction = home.take();
        match ran {
            Ran::Returned(Ok(_)) if claim.transaction.is_none() => Ran::Returned(Err(Failure::retry(
                "the handler returned and kept its transaction: drop it, and whatever holds it, before returning",
            ))),
            ran => ran,
        }
    }

    async fn run_leased(&self, claim: &mut Claim, home: &TransactionSlot) -> Ran {
        let start = Instant::now();
        let Lease::Renewed(lease) = self.consumer.options.lease else {
            return self.run_under(claim.fence, claim.attempt, home, std::future::pending()).await;
        };
        // A grant that came late has little left of its lease, or nothing.
        if claim.lease_until < self.clock.now().plus(lease / RENEWALS_PER_LEASE * 2) && !self.renew(claim, lease).await
        {
            return Ran::LeaseLostUnstarted;
        }
        let (fence, attempt) = (claim.fence, claim.attempt);
        let ran = self.run_under(fence, attempt, home, self.keep(claim, lease)).await;
        if start.elapsed() >= lease / RENEWALS_PER_LEASE {
            // It was hidden a little longer than its lease; from here on it must stay hidden until its batch is reported.
            let rest = until(self.schedule.lease_end);
            let _ = timeout(self.grace(), self.queue.hide(self.place, rest)).await;
        }
        ran
    }

    /// Runs the handler until it ends, its time is over, or `lost` says that its lease is.
    async fn run_under(
        &self,
        fence: Fence,
        attempt: u32,
        home: &TransactionSlot,
        lost: impl Future<Output = ()>,
    ) -> Ran {
        let (cancel_at, why) = self.cancellation();
        let context = Context::new(About {
            consumer: self.name.clone(),
            key: self.identity.key.clone(),
            fence,
            attempt,
            message_id: self.message.id.clone(),
            receive_count: self.message.receive_count,
            trace: self.message.trace.clone(),
            cancelled_at: cancel_at,
        });
        let run = match self.consumer.run(self.message, home, context) {
            Ok(run) => run,
            Err(rejection) => return Ran::Returned(Err(HandlerError::retry(rejection).into())),
        };
        let mut task = Task::start(Box::pin(run.instrument(self.span(attempt))), self.threads);
        let (start, mut lost) = (Instant::now(), pin!(lost));
        loop {
            let look_at = Instant::now() + Duration::from_millis(THREADS_LOOK_MS);
            tokio::select! {
                // In this order, not at random: what the handler gave counts, even where its time ends at the same moment.
                biased;
                end = task.ended() => return ran(end, why),
                () = sleep_until(cancel_at) => return ran(task.stop(self.grace()).await, why),
                () = &mut lost => return match ran(task.stop(self.grace()).await, why) {
                    Ran::NeverStarted => Ran::LeaseLostUnstarted,
                    Ran::StillRunning => Ran::StillRunning,
                    _ => Ran::LeaseLost,
                },
                () = sleep_until(look_at), if task.is_movable() => {
                    task.look(start.elapsed() >= Duration::from_millis(THREAD_WAIT_MS));
                }
            }
        }
    }

    /// Renews the lease as long as it can be; returns when it is lost.
    async fn keep(&self, claim: &mut Claim, lease: Duration) {
        loop {
            tokio::time::sleep(lease / RENEWALS_PER_LEASE).await;
            if !self.renew(claim, lease).await {
                return;
            }
        }
    }

    /// The span of the handler's run: what is logged in it says which message it is about, and a tracing layer can
    /// continue the producer's trace from it.
    fn span(&self, attempt: u32) -> Span {
        let Message { id, trace, .. } = self.message;
        tracing::info_span!("message", consumer = %self.name, message_id = %id, attempt, trace = trace.as_deref())
    }

    /// When the handler is cancelled, and the word for it.
    fn cancellation(&self) -> (Instant, &'static str) {
        let own = self.consumer.options.timeout.map(|timeout| Instant::now() + timeout);
        match own {
            Some(own) if own < self.schedule.cancel_at => (own, "the handler was cancelled at its time-out"),
            _ => (self.schedule.cancel_at, "the handler was cancelled at the deadline"),
        }
    }

    /// How long what comes after a handler may take: a cancelled one's going, a last word to the queue. Settling keeps its
    /// share of what is left.
    fn grace(&self) -> Duration {
        Duration::from_millis(CANCEL_GRACE_MS).min(until(self.schedule.return_by) / 2)
    }

    /// Renews the lease, and hides the message until another owner could take over; whether both are still held.
    ///
    /// A store that gives no answer is asked again at the next turn, as long as the lease lasts.
    async fn renew(&self, claim: &mut Claim, lease: Duration) -> bool {
        let now = self.clock.now();
        let renewal = Renewal { lease_until: now.plus(lease), now, policy: self.consumer.options.policy };
        // So that a request without an answer leaves time for another one before the lease ends.
        let within = lease / RENEWAL_TRIES;
        let renewing = self.consumer.store.renew(claim, renewal, Call { within, meter: self.meter });
        match timeout(within, renewing).await {
            Ok(Ok(Renewed::Lost)) => return false,
            Ok(Ok(Renewed::Held)) => {}
            Ok(Err(_)) | Err(_) => return self.clock.now().plus(lease / RENEWALS_PER_LEASE) < claim.lease_until,
        }
        // Back any earlier, it would be a receive for nothing.
        let hidden = lease + self.consumer.options.policy.skew;
        timeout(within, self.queue.hide(self.place, hidden)).await != Ok(HideAnswer::Lost)
    }
}

fn ran(end: End, why: &'static str) -> Ran {
    match end {
        End::Returned(result) => Ran::Returned(result),
        End::Panicked => Ran::Panicked,
        End::Stopped => Ran::Cancelled(why),
        End::NeverStarted => Ran::NeverStarted,
        End::StillRunning => Ran::StillRunning,
    }
}
