//! What handlers do: as the scenario says.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant_core::{Context, HandlerError, Items, Terminal as _, TransactionGuard};
use claimant_dynamodb::Transaction;
use futures_util::future::join_all;
use serde::Deserialize;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::calls::EFFECTS;
use crate::expected;
use crate::history::{End, Event, InvocationNo, RunNo};
use crate::mutant::Mutant;
use crate::process::{self, Gated, Process};
use crate::scenario::Work;
use crate::threads::HandlerThread;
use crate::world::World;

/// What panicking handlers say.
pub const PANIC: &str = "simulated: the handler panics";

/// What handlers call.
pub const DOWNSTREAM: &str = "mail";

/// How long it takes to see that it is away.
const AWAY_MS: u64 = 50;

/// Larger than any result that is kept.
const LARGE_BYTES: usize = 70_000;

/// Longer than a queue can hide a message.
const DAY: Duration = Duration::from_secs(86_400);

/// What a message asks for.
#[derive(Debug, Deserialize)]
pub struct Payload {
    /// Which work.
    pub key: String,
    /// Tells two payloads of one key apart.
    pub variant: u32,
    /// Of the message, where a wrong runtime makes its key from it.
    #[serde(default)]
    pub message_id: String,
    /// The invocation that decoded it, and runs its handler: a handler itself runs on threads that are no invocation's.
    #[serde(skip, default = "process::current")]
    pub invocation: Option<InvocationNo>,
}

/// Does what the scenario says.
pub struct Actor {
    /// Where.
    pub world: World,
    /// In which process.
    pub process: Arc<Process>,
}

impl Actor {
    /// One run of the handler.
    pub fn act(
        &self,
        payload: &Payload,
        cx: &Context,
        tx: Option<TransactionGuard<Transaction>>,
    ) -> impl Future<Output = Result<Option<String>, HandlerError>> + Send + use<> {
        let about = self.about(payload, cx);
        let (world, process) = (self.world.clone(), Arc::clone(&self.process));
        let again = (world.mutant == Some(Mutant::RunsTwice) && tx.is_none()).then(|| about.clone());
        let untried = world.mutant == Some(Mutant::RejectedUntried) && expected::gives_up(&world.scenario);
        Gated::handler(&self.process, about.invocation, async move {
            if untried {
                return Err(HandlerError::terminal("it was tried too often"));
            }
            let result = run(world.clone(), Arc::clone(&process), about, tx).await;
            match again {
                Some(about) if result.is_ok() => run(world, process, about, None).await,
                _ => result,
            }
        })
    }

    /// One call for many: their runs begin and end together.
    pub fn act_on_all(
        &self,
        items: Items<Payload>,
    ) -> impl Future<Output = Result<Vec<Result<Option<String>, HandlerError>>, HandlerError>> + Send + use<> {
        let abouts: Vec<_> = items.iter().map(|item| self.about(&item.payload, &item.cx)).collect();
        let invocation = abouts.first().map(|about| about.invocation).unwrap_or_default();
        let (world, process) = (self.world.clone(), Arc::clone(&self.process));
        Gated::handler(&self.process, invocation, async move { call(world, process, abouts).await })
    }

    fn about(&self, payload: &Payload, cx: &Context) -> About {
        let invocation = payload.invocation.unwrap_or_default();
        let key: usize = payload.key.trim_start_matches('k').parse().unwrap_or_default();
        let works = self.world.scenario.keys.get(key).map_or(&[][..], Vec::as_slice);
        // Not by the attempt: that begins again with each deduplication window.
        let place = self.world.state().next_run_of(key).min(works.len().saturating_sub(1));
        let work = works.get(place).copied().unwrap_or(Work::Good { before_ms: 0, after_ms: 0 });
        let work = self.process.blocked_ms.map_or(work, Work::Block);
        About { invocation, key, work, cx: cx.clone() }
    }
}

/// What is known of a run before it begins.
#[derive(Clone)]
struct About {
    invocation: InvocationNo,
    key: usize,
    work: Work,
    cx: Context,
}

/// A run that goes on; notes when it ends, however it does.
struct Running {
    world: World,
    run: RunNo,
    end: End,
}

impl Running {
    fn start(world: &World, process: &Process, about: &About) -> Self {
        let run = world.state().next_run();
        let About { invocation, key, work, ref cx, .. } = *about;
        world.note(Event::RunStarted {
            run,
            invocation,
            process_run: process.process_run,
            key,
            message_id: cx.message_id().to_owned(),
            attempt: cx.attempt(),
            fence: cx.fence().get(),
            work,
            blocked: matches!(work, Work::Block(_)),
        });
        Self { world: world.clone(), run, end: End::Dropped }
    }

    fn returned<R>(&mut self, result: &Result<R, HandlerError>) {
        self.end = if result.is_ok() { End::Good } else { End::Failed };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let end = if std::thread::panicking() { End::Panicked } else { self.end };
        self.world.note(Event::RunEnded { run: self.run, end });
    }
}

async fn run(
    world: World,
    process: Arc<Process>,
    about: About,
    tx: Option<TransactionGuard<Transaction>>,
) -> Result<Option<String>, HandlerError> {
    let mut running = Running::start(&world, &process, &about);
    let result = work(&world, &process, running.run, &about, tx).await;
    running.returned(&result);
    result
}

async fn call(
    world: World,
    process: Arc<Process>,
    abouts: Vec<About>,
) -> Result<Vec<Result<Option<String>, HandlerError>>, HandlerError> {
    let mut runs: Vec<_> = abouts.iter().map(|about| Running::start(&world, &process, about)).collect();
    world.note(Event::Called { runs: runs.iter().map(|running| running.run).collect() });
    let works = abouts.iter().zip(&runs).map(|(about, running)| work(&world, &process, running.run, about, None));
    let mut results = join_all(works).await;
    runs.iter_mut().zip(&results).for_each(|(running, result)| running.returned(result));
    if world.mutant == Some(Mutant::ResultsMixedUp) {
        results.reverse();
    }
    Ok(results)
}

async fn work(
    world: &World,
    process: &Process,
    run: RunNo,
    about: &About,
    tx: Option<TransactionGuard<Transaction>>,
) -> Result<Option<String>, HandlerError> {
    let pause = |ms: u64| sleep(Duration::from_millis(ms));
    if world.is_away() && !matches!(about.work, Work::Abort(_) | Work::Block(_)) {
        pause(AWAY_MS).await;
        return Err(HandlerError::retry("it is away").downstream(DOWNSTREAM));
    }
    match about.work {
        Work::Good { before_ms, after_ms } => {
            pause(before_ms).await;
            effect(world, run, about.key, tx)?;
            pause(after_ms).await;
            Ok(None)
        }
        Work::Fail(ms) => {
            pause(ms).await;
            let error = HandlerError::retry("no luck");
            Err(if world.mutant == Some(Mutant::SchedulesUnasked) { error.after(DAY) } else { error })
        }
        Work::FailFor(s) => Err(HandlerError::retry("not now").after(Duration::from_secs(s))),
        Work::Panic(ms) => {
            pause(ms).await;
            panic!("{PANIC}")
        }
        Work::Permanent => Err(HandlerError::terminal("no use")),
        Work::Hang => pending().await,
        Work::Large => {
            effect(world, run, about.key, tx)?;
            if world.mutant == Some(Mutant::LargeRejected) {
                return Err(HandlerError::terminal("its result is too large"));
            }
            Ok(Some("x".repeat(LARGE_BYTES)))
        }
        Work::Abort(ms) => {
            pause(ms).await;
            process.kill("aborted");
            pending().await
        }
        Work::Block(ms) => {
            block(world, process, ms).await;
            effect(world, run, about.key, tx)?;
            Ok(None)
        }
    }
}

/// Blocks the handler's thread; a handler without one never returns.
async fn block(world: &World, process: &Process, ms: u64) {
    world.note(Event::Blocked { process_run: process.process_run });
    if HandlerThread::block(ms) != Some(true) || process.is_dead() {
        return pending().await;
    }
    world.note(Event::Unblocked { process_run: process.process_run });
    while process.is_frozen() {
        yield_now().await;
    }
}

/// The effect: at once, or with the transaction.
fn effect(
    world: &World,
    run: RunNo,
    key: usize,
    tx: Option<TransactionGuard<Transaction>>,
) -> Result<(), HandlerError> {
    let Some(mut tx) = tx else {
        world.note(Event::Effect { run, key });
        return Ok(());
    };
    let number = |n: String| AttributeValue::N(n);
    let put = Put::builder()
        .table_name(EFFECTS)
        .item("id", AttributeValue::S(format!("run-{run}")))
        .item("run", number(run.to_string()))
        .item("key", number(key.to_string()));
    tx.put(put.build().terminal()?);
    Ok(())
}
