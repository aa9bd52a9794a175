//! The consumers of a run, with their settings.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_config::{Region, SdkConfig};
use claimant_core::{
    Breaker, Conflicts, Consumer, Consumers, Context, Fingerprint, HandlerThreads, Items, Lease, Limit, Routes, Store,
    TransactionGuard, Transactional, Variables,
};
use claimant_dynamodb::{LockTable, Transaction};
use claimant_lambda::{Service, Settings};

use crate::bent::Bent;
use crate::calls::LOCKS;
use crate::event::{KIND, Several, kind};
use crate::mutant::Mutant;
use crate::payloads::Payloads;
use crate::process::Process;
use crate::queue_api::{SCHEDULE_ROLE_ARN, UNSENT_ARN};
use crate::scenario::{BreakerSpec, Guarantee, LimitSpec, Scenario};
use crate::work::{Actor, DOWNSTREAM, Payload};
use crate::world::World;

/// The service of one process.
///
/// # Panics
/// When the scenario's settings are none that claimant takes.
#[must_use]
pub fn service(world: &World, process: &Arc<Process>, aws: &SdkConfig) -> Service {
    let scenario = &world.scenario;
    let aws = &own_process(aws);
    let table = lock_table(aws).batched(scenario.consumer.batched);
    let consumers = consumers(world, process, &table);
    // As `Service::new` has it.
    let service = Service::with_aws(&settings(scenario, world.mutant), consumers, scenario.asks_aws().then_some(aws));
    let clock: Arc<Process> = Arc::clone(process);
    let service = service.expect("scenarios keep within the bounds of the settings").clock(clock);
    let Some(thread) = process.thread() else { return service };
    if world.mutant == Some(Mutant::ThreadsForEver) {
        let handlers = thread.handlers.clone();
        return service.handlers_on(HandlerThreads::spawned_by(move |task| handlers.spawn(task)));
    }
    // The one that it has comes first.
    let (first, process) = (Mutex::new(Some(thread)), Arc::clone(process));
    let threads = HandlerThreads::on_handles(move || {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(first.map_or_else(|| process.start_thread(), |thread| thread.handlers.clone()))
    });
    service.handlers_on(threads.expect("a thread that is there"))
}

/// The lock table.
#[must_use]
pub fn lock_table(aws: &SdkConfig) -> LockTable {
    // No service here checks signatures, which take a third of a request's time.
    let config = aws_sdk_dynamodb::config::Builder::from(aws).allow_no_auth().build();
    LockTable::new(aws_sdk_dynamodb::Client::from_conf(config), LOCKS)
}

/// The same configuration with retries of its own. The SDK counts them for a whole process, by service and Region: runs
/// would change each other, and one process would leave its successor none.
#[must_use]
pub fn own_process(aws: &SdkConfig) -> SdkConfig {
    static PROCESSES: AtomicU64 = AtomicU64::new(0);
    let region = format!("sim-{}", PROCESSES.fetch_add(1, Ordering::Relaxed));
    aws.clone().into_builder().region(Region::new(region)).build()
}

fn settings(scenario: &Scenario, mutant: Option<Mutant>) -> Settings {
    let switch = |on: bool| if on { "on" } else { "off" };
    let receives = scenario.queue.max_receives.to_string();
    let mut vars = vec![
        ("CLAIMANT_METRICS", "off"),
        ("CLAIMANT_VISIBILITY", switch(scenario.queue.changes_visibility)),
        ("CLAIMANT_MAPPING_CHECK", if scenario.function.mapping_reports.is_some() { "refuse" } else { "off" }),
    ];
    if scenario.queue.tells_receives && mutant != Some(Mutant::LastReceiveHidden) {
        vars.push(("CLAIMANT_MAX_RECEIVE_COUNT", &receives));
    }
    if scenario.function.pauses {
        vars.push(("CLAIMANT_RESUME_ROLE_ARN", "arn:aws:iam::123456789012:role/resume"));
    }
    if scenario.queue.letters {
        let name = if scenario.queue.fifo_groups.is_some() { "dead.fifo" } else { "dead" };
        let url = if name == "dead" {
            "https://sqs.us-east-1.amazonaws.com/123456789012/dead"
        } else {
            "https://sqs.us-east-1.amazonaws.com/123456789012/dead.fifo"
        };
        vars.push(("CLAIMANT_DEAD_LETTER_QUEUE_URL", url));
    }
    if scenario.queue.schedules {
        vars.push(("CLAIMANT_SCHEDULE_ROLE_ARN", SCHEDULE_ROLE_ARN));
        vars.push(("CLAIMANT_SCHEDULE_DEAD_LETTER_ARN", UNSENT_ARN));
    }
    Settings::from_variables(Variables::new(vars).refuse_unknown()).expect("these variables are all known")
}

fn consumers(world: &World, process: &Arc<Process>, table: &LockTable) -> Consumers {
    let scenario = &world.scenario;
    let consumer = |number: usize| {
        let table = table.clone();
        let consumer = match scenario.consumer.guarantee {
            Guarantee::Transactional => transactional(world, process, table.transactions(), number),
            Guarantee::Optimistic => transactional(world, process, table.optimistic_transactions(), number),
            _ => leased(world, process, table, number),
        };
        set_up(world, process.slot, consumer)
    };
    let several = Several { first_only: world.mutant == Some(Mutant::EventsForgotten) };
    if scenario.consumer.routes.is_none() {
        return consumer(0).large_payloads(Payloads { world: world.clone() }).envelope(several).into();
    }
    let routes = Routes::by_field(KIND).envelope(several);
    let routes = (0..scenario.consumers()).fold(routes, |routes, number| routes.on(kind(number), consumer(number)));
    let acknowledges = scenario.ignores_unknown() || world.mutant == Some(Mutant::UnknownAcknowledged);
    if acknowledges { routes.acknowledge_unknown().into() } else { routes.into() }
}

fn leased(world: &World, process: &Arc<Process>, table: LockTable, number: usize) -> Consumer<Payload> {
    let name = world.scenario.consumer_name(number);
    let actor = Actor { world: world.clone(), process: Arc::clone(process) };
    if let Some(most) = world.scenario.consumer.items.filter(|_| number.is_multiple_of(2)) {
        let handler = move |items: Items<Payload>| actor.act_on_all(items);
        let consumer = match bent(world) {
            Some(mutant) => Consumer::batch(name, Bent { inner: table, mutant }, handler),
            None => Consumer::batch(name, table, handler),
        };
        return consumer.items_max(most);
    }
    let handler = move |payload: Payload, cx: Context| actor.act(&payload, &cx, None);
    match bent(world) {
        Some(mutant) => Consumer::new(name, Bent { inner: table, mutant }, handler),
        None => Consumer::new(name, table, handler),
    }
}

fn transactional<S>(world: &World, process: &Arc<Process>, store: S, number: usize) -> Consumer<Payload>
where
    S: Transactional<Transaction = Transaction> + Store + Clone,
{
    let actor = Actor { world: world.clone(), process: Arc::clone(process) };
    let handler =
        move |payload: Payload, tx: TransactionGuard<Transaction>, cx: Context| actor.act(&payload, &cx, Some(tx));
    let name = world.scenario.consumer_name(number);
    match bent(world) {
        Some(mutant) => Consumer::transactional(name, Bent { inner: store, mutant }, handler),
        None => Consumer::transactional(name, store, handler),
    }
}

fn bent(world: &World) -> Option<Mutant> {
    let at_most_once = world.scenario.consumer.guarantee == Guarantee::AtMostOnce;
    world.mutant.filter(|mutant| at_most_once || *mutant != Mutant::ClaimsAhead)
}

/// Sets what the scenario says, in the process of this place.
fn set_up(world: &World, place: usize, consumer: Consumer<Payload>) -> Consumer<Payload> {
    let spec = &world.scenario.consumer;
    let mut consumer = consumer.concurrency(spec.concurrency);
    if world.mutant == Some(Mutant::MessageIdsForKeys) && spec.guarantee == Guarantee::AtMostOnce {
        consumer = consumer.key(|payload| &payload.message_id);
    } else if !spec.by_message_id {
        consumer = consumer.key(|payload| &payload.key);
    }
    consumer = with_fingerprints(world, consumer);
    if let Guarantee::Renewed(ms) = spec.guarantee {
        consumer = consumer.lease(Lease::Renewed(Duration::from_millis(ms)));
    }
    let reruns = matches!(world.mutant, Some(Mutant::AbandonedRerun | Mutant::ClaimsAhead));
    if spec.guarantee == Guarantee::AtMostOnce && !reruns {
        consumer = consumer.at_most_once();
    }
    if spec.ignores_conflicts || world.mutant == Some(Mutant::ConflictsIgnored) {
        consumer = consumer.conflicts(Conflicts::Ignore);
    }
    if let Some(max) = spec.attempts_max.filter(|_| world.mutant != Some(Mutant::AttemptsUnbounded)) {
        consumer = consumer.attempts_max(max);
    }
    if let Some(ms) = spec.busy_wait_ms {
        consumer = consumer.wait_while_busy(Duration::from_millis(ms));
    }
    if let Some(BreakerSpec { failures, of, open_for_ms }) = spec.breaker {
        let breaker = Breaker::new(DOWNSTREAM).opens_after(failures, of).open_for(Duration::from_millis(open_for_ms));
        consumer = consumer.breaker(breaker);
    }
    let limit = spec.limit.map(|limit| limit.of_process(place));
    if let Some(LimitSpec { per_second, at_once, slots, .. }) = limit {
        let limit = Limit::new(DOWNSTREAM).slots(slots);
        let limit = per_second.into_iter().fold(limit, Limit::per_second);
        consumer = consumer.limit(at_once.into_iter().fold(limit, Limit::at_once));
    }
    if let Some(tenants) = spec.tenants {
        consumer = consumer.tenant_of_message(move |payload: &Payload, _| tenant(&payload.key, tenants));
    }
    if let Some(ms) = spec.timeout_ms {
        consumer = consumer.timeout(Duration::from_millis(ms));
    }
    spec.window_s.into_iter().fold(consumer, |consumer, s| consumer.window(Duration::from_secs(s)))
}

fn tenant(key: &str, tenants: u32) -> u32 {
    key.bytes().map(u32::from).sum::<u32>() % tenants
}

/// The rule of this deployment: the whole body at first, then the variant, then that and the key.
fn with_fingerprints(world: &World, consumer: Consumer<Payload>) -> Consumer<Payload> {
    let deployment = world.state().deployments;
    let mixed = world.mutant == Some(Mutant::RulesMixed);
    let version = if mixed { 1 } else { deployment };
    match deployment {
        0 if !mixed => consumer,
        0 => consumer.fingerprint_of(version, |payload: &Payload| Fingerprint::of_bytes(payload.key.as_bytes())),
        1 => {
            consumer.fingerprint_of(version, |payload: &Payload| Fingerprint::of_bytes(&payload.variant.to_be_bytes()))
        }
        _ => consumer.fingerprint_of(version, |payload: &Payload| {
            Fingerprint::of_bytes(format!("{} {}", payload.variant, payload.key).as_bytes())
        }),
    }
}
