//! The consumer of a run: its settings, and a handler that does what the scenario says.

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_config::{Region, SdkConfig};
use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant_core::{
    Conflicts, Consumer, Context, HandlerError, Lease, Lent, Settings, Store, Terminal as _, Transactional,
};
use claimant_dynamodb::{LockTable, Transaction};
use claimant_lambda::Service;
use serde::Deserialize;
use tokio::time::sleep;

use crate::calls::{EFFECTS, LOCKS};
use crate::history::{End, Event, InvocationNo, RunNo};
use crate::mutant::{Bent, Mutant};
use crate::process::{self, Gated, Process};
use crate::scenario::{Guarantee, Scenario, Work};
use crate::world::World;

/// What panicking handlers say.
pub const PANIC: &str = "simulated: the handler panics";

/// Larger than any result that is kept.
const LARGE_BYTES: usize = 70_000;

/// What a message asks for.
#[derive(Debug, Deserialize)]
pub struct Payload {
    key: String,
    #[allow(dead_code, reason = "only tells two payloads of one key apart")]
    variant: u32,
}

/// The service of one process.
///
/// # Panics
/// When the scenario's settings are none that claimant takes.
#[must_use]
pub fn service(world: &World, process: &Arc<Process>, aws: &SdkConfig) -> Service<Payload> {
    let scenario = &world.scenario;
    let aws = &own_process(aws);
    // Nobody here looks at signatures, which take a third of a request's time.
    let config = aws_sdk_dynamodb::config::Builder::from(aws).allow_no_auth().build();
    let client = aws_sdk_dynamodb::Client::from_conf(config);
    let table = LockTable::new(client, LOCKS).batched(scenario.consumer.batched);
    let consumer = match scenario.consumer.guarantee {
        Guarantee::Transactional => transactional(world, process, table.transactions()),
        Guarantee::Optimistic => transactional(world, process, table.optimistic_transactions()),
        _ => leased(world, process, table),
    };
    let service = Service::with_aws(&settings(scenario), consumer, Some(aws));
    let clock: Arc<Process> = Arc::clone(process);
    service.expect("scenarios keep within the bounds of the settings").clock(clock)
}

/// The same configuration with retries of its own. The SDK counts them for a whole process, by service and Region: runs
/// would change each other, and one process would leave its successor none.
fn own_process(aws: &SdkConfig) -> SdkConfig {
    static PROCESSES: AtomicU64 = AtomicU64::new(0);
    let region = format!("sim-{}", PROCESSES.fetch_add(1, Ordering::Relaxed));
    aws.clone().into_builder().region(Region::new(region)).build()
}

fn settings(scenario: &Scenario) -> Settings {
    let switch = |on: bool| if on { "on" } else { "off" };
    let mut vars = vec![
        ("CLAIMANT_METRICS", "off"),
        ("CLAIMANT_VISIBILITY", switch(scenario.queue.changes_visibility)),
        ("CLAIMANT_MAPPING_CHECK", if scenario.function.mapping_reports.is_some() { "refuse" } else { "off" }),
    ];
    if scenario.queue.letters {
        let name = if scenario.queue.fifo_groups.is_some() { "dead.fifo" } else { "dead" };
        let url = if name == "dead" {
            "https://sqs.us-east-1.amazonaws.com/123456789012/dead"
        } else {
            "https://sqs.us-east-1.amazonaws.com/123456789012/dead.fifo"
        };
        vars.push(("CLAIMANT_DEAD_LETTER_QUEUE_URL", url));
    }
    let vars = vars.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Settings::from_vars(vars.collect(), &[]).expect("these variables are all known")
}

fn leased(world: &World, process: &Arc<Process>, table: LockTable) -> Consumer<Payload> {
    let actor = Actor { world: world.clone(), process: Arc::clone(process) };
    let handler = move |payload: Payload, cx: Context| actor.act(&payload, &cx, None);
    let consumer = match bent(world) {
        Some(mutant) => Consumer::new("sim", Bent { inner: table, mutant }, handler),
        None => Consumer::new("sim", table, handler),
    };
    set_up(world, consumer)
}

fn transactional<S>(world: &World, process: &Arc<Process>, store: S) -> Consumer<Payload>
where
    S: Transactional<Transaction = Transaction> + Store + Clone,
{
    let actor = Actor { world: world.clone(), process: Arc::clone(process) };
    let handler = move |payload: Payload, tx: Lent<Transaction>, cx: Context| actor.act(&payload, &cx, Some(tx));
    let consumer = match bent(world) {
        Some(mutant) => Consumer::transactional("sim", Bent { inner: store, mutant }, handler),
        None => Consumer::transactional("sim", store, handler),
    };
    set_up(world, consumer)
}

fn bent(world: &World) -> Option<Mutant> {
    world.mutant.filter(|mutant| mutant.bends_answers())
}

fn set_up(world: &World, consumer: Consumer<Payload>) -> Consumer<Payload> {
    let spec = &world.scenario.consumer;
    let mut consumer = consumer.key(|payload: &Payload| &payload.key).concurrency(spec.concurrency);
    if let Guarantee::Renewed(ms) = spec.guarantee {
        consumer = consumer.lease(Lease::Renewed(Duration::from_millis(ms)));
    }
    if spec.guarantee == Guarantee::AtMostOnce && world.mutant != Some(Mutant::AbandonedRerun) {
        consumer = consumer.at_most_once();
    }
    if spec.ignores_conflicts || world.mutant == Some(Mutant::ConflictsIgnored) {
        consumer = consumer.conflicts(Conflicts::Ignore);
    }
    if let Some(max) = spec.attempts_max {
        consumer = consumer.attempts_max(max);
    }
    if let Some(ms) = spec.timeout_ms {
        consumer = consumer.timeout(Duration::from_millis(ms));
    }
    let window = if world.mutant == Some(Mutant::WindowForgotten) { Some(60) } else { spec.window_s };
    window.into_iter().fold(consumer, |consumer, s| consumer.window(Duration::from_secs(s)))
}

/// Does what the scenario says.
struct Actor {
    world: World,
    process: Arc<Process>,
}

impl Actor {
    fn act(
        &self,
        payload: &Payload,
        cx: &Context,
        tx: Option<Lent<Transaction>>,
    ) -> impl Future<Output = Result<Option<String>, HandlerError>> + Send + use<> {
        let invocation = process::current().unwrap_or_default();
        let key: usize = payload.key.trim_start_matches('k').parse().unwrap_or_default();
        let works = self.world.scenario.keys.get(key).map_or(&[][..], Vec::as_slice);
        // Not by the attempt: that begins again with each deduplication window.
        let place = self.world.state().next_run_of(key).min(works.len().saturating_sub(1));
        let work = works.get(place).copied().unwrap_or(Work::Good { before_ms: 0, after_ms: 0 });
        let blocked = self.process.blocked_ms;
        let about = About { invocation, key, work, cx: cx.clone(), blocked: blocked.is_some() };
        let (world, process) = (self.world.clone(), Arc::clone(&self.process));
        if let Some(ms) = blocked {
            // It runs on a thread of its own, which nobody can stop; what is returned is never polled.
            tokio::spawn(on_its_thread(world.clone(), Arc::clone(&process), about.clone(), ms));
        }
        let gate = Arc::clone(&process);
        Gated::handler(&gate, invocation, async move {
            if about.blocked {
                return pending().await;
            }
            run(world, process, about, tx).await
        })
    }
}

/// What is known of a run before it begins.
#[derive(Clone)]
struct About {
    invocation: InvocationNo,
    key: usize,
    work: Work,
    cx: Context,
    blocked: bool,
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
        let About { invocation, key, work, ref cx, blocked } = *about;
        world.note(Event::RunStarted {
            run,
            invocation,
            life: process.life,
            key,
            message_id: cx.message_id().to_owned(),
            attempt: cx.attempt(),
            fence: cx.fence().get(),
            work,
            blocked,
        });
        Self { world: world.clone(), run, end: End::Dropped }
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
    tx: Option<Lent<Transaction>>,
) -> Result<Option<String>, HandlerError> {
    let mut running = Running::start(&world, &process, &about);
    let result = work(&world, running.run, &about, tx).await;
    running.end = if result.is_ok() { End::Good } else { End::Failed };
    result
}

async fn work(
    world: &World,
    run: RunNo,
    about: &About,
    tx: Option<Lent<Transaction>>,
) -> Result<Option<String>, HandlerError> {
    let pause = |ms: u64| sleep(Duration::from_millis(ms));
    match about.work {
        Work::Good { before_ms, after_ms } => {
            pause(before_ms).await;
            effect(world, run, about.key, tx)?;
            pause(after_ms).await;
            Ok(None)
        }
        Work::Fail(ms) => {
            pause(ms).await;
            Err(HandlerError::retry("no luck"))
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
            Ok(Some("x".repeat(LARGE_BYTES)))
        }
    }
}

/// The effect: at once, or with the transaction.
fn effect(world: &World, run: RunNo, key: usize, tx: Option<Lent<Transaction>>) -> Result<(), HandlerError> {
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

/// A handler that blocks its thread, has its effect, and returns to nobody.
async fn on_its_thread(world: World, process: Arc<Process>, about: About, ms: u64) {
    let mut running = Running::start(&world, &process, &about);
    tokio::select! {
        biased;
        () = process.died() => return,
        () = sleep(Duration::from_millis(ms)) => {}
    }
    let leased = !world.scenario.consumer.guarantee.is_transactional();
    if leased && matches!(about.work, Work::Good { .. } | Work::Large) {
        world.note(Event::Effect { run: running.run, key: about.key });
    }
    running.end = End::Good;
}
