//! One invocation, and what the event source mapping makes of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::event::sqs::SqsBatchResponse;
use claimant_core::Error;
use claimant_lambda::Service;
use tokio::time::{Instant, sleep_until};

use crate::history::{Delivered, Event, InvocationNo};
use crate::mutant::Mutant;
use crate::process::{Gated, Process};
use crate::scenario::Fault;
use crate::sqs::Delivery;
use crate::world::World;
use crate::{event, expected};

/// The function's ARN.
const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:sim";

/// One process with its service.
#[derive(Clone)]
pub struct Environment {
    /// The process.
    pub process: Arc<Process>,
    service: Arc<Service>,
    /// One clone for each invocation that runs, and one for the place that it has.
    running: Arc<()>,
}

impl Environment {
    /// A process that has its service.
    #[must_use]
    pub fn new(process: Arc<Process>, service: Service) -> Self {
        Self { process, service: Arc::new(service), running: Arc::new(()) }
    }

    /// The same process with a service that shares nothing with the others: a wrong runtime's.
    #[must_use]
    pub fn with(&self, service: Service) -> Self {
        Self { service: Arc::new(service), ..self.clone() }
    }

    /// How many invocations run in it.
    #[must_use]
    pub fn running(&self) -> usize {
        Arc::strong_count(&self.running) - 1
    }
}

/// The report of a runtime that does nothing.
fn all_failed(batch: &[Delivery]) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    batch.iter().for_each(|delivery| response.add_failure(&delivery.message.id));
    response
}

/// How an invocation ended for Lambda.
enum Ended {
    Returned(Result<SqsBatchResponse, Error>),
    Died,
    TimedOut,
}

/// Invokes the function and deletes what it reports done.
pub async fn deliver(world: World, environment: Environment, invocation: InvocationNo, batch: Vec<Delivery>) {
    let process = Arc::clone(&environment.process);
    let timeout = Duration::from_millis(world.scenario.function.timeout_ms);
    let (start, end) = (Instant::now(), Instant::now() + timeout);
    begin(&world, &process, invocation, &batch);
    let late = if world.mutant == Some(Mutant::DeadlineIgnored) { timeout } else { Duration::ZERO };
    let deadline_ms = world.wall(process.slot).plus(timeout + late).as_millis();
    let nameless = world.fault(|f| matches!(f, Fault::Nameless { invocation: of } if *of == invocation));
    let event = event::event(&world, &batch, nameless);
    let undone =
        (world.mutant == Some(Mutant::LeftUndone) && expected::gives_up(&world.scenario)).then(|| all_failed(&batch));
    let work = async move {
        let Environment { service, running, .. } = environment;
        let response = match undone {
            Some(response) => Ok(response),
            None => service.invoke(event, deadline_ms, FUNCTION).await.map(|response| response.0),
        };
        drop(running);
        response
    };
    let mut work = Box::pin(Gated::invocation(&process, invocation, work));
    let kill_at = kill_after(&world, invocation).map_or(end + timeout, |after| start + after);
    let ended = tokio::select! {
        biased;
        () = process.died() => Ended::Died,
        response = &mut work => Ended::Returned(response),
        () = sleep_until(kill_at) => Ended::Died,
        () = sleep_until(end) => Ended::TimedOut,
    };
    match ended {
        Ended::Died => process.kill("killed"),
        Ended::Returned(response) => {
            let response = response.ok();
            returned(&world, invocation, response.as_ref());
            report(&world, invocation, &batch, response.as_ref());
            idle(&world, &process, invocation);
        }
        Ended::TimedOut => {
            world.note(Event::TimedOut { invocation });
            if !process.is_frozen() {
                return process.kill("timed out");
            }
            // A process that is stopped is not seen to end: it goes on when it is let, though no server listens any more.
            process.retire();
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = process.died() => {}
                    response = work => returned(&world, invocation, response.ok().as_ref()),
                }
            });
        }
    }
}

fn begin(world: &World, process: &Process, invocation: InvocationNo, batch: &[Delivery]) {
    let delivered = |d: &Delivery| Delivered { id: d.message.id.clone(), receives: d.message.receives };
    let mut state = world.state();
    let ends_ms = state.now_ms() + world.scenario.function.timeout_ms;
    let batch = batch.iter().map(delivered).collect();
    state.note(Event::Invoked { invocation, process_run: process.process_run, process: process.slot, batch, ends_ms });
}

fn kill_after(world: &World, invocation: InvocationNo) -> Option<Duration> {
    let mut faults = world.scenario.faults.iter().filter(|_| world.state().faults);
    faults.find_map(|fault| match *fault {
        Fault::KillAfter { invocation: of, after_ms } if of == invocation => Some(Duration::from_millis(after_ms)),
        _ => None,
    })
}

fn failures(response: &SqsBatchResponse) -> Vec<String> {
    response.batch_item_failures.iter().map(|failure| failure.item_identifier.clone()).collect()
}

fn returned(world: &World, invocation: InvocationNo, response: Option<&SqsBatchResponse>) {
    let mut failures = response.map(failures);
    if world.mutant == Some(Mutant::FailuresForgotten) {
        failures = failures.map(|_| Vec::new());
    }
    world.note(Event::Returned { invocation, failures });
}

/// Deletes what was reported done.
fn report(world: &World, invocation: InvocationNo, batch: &[Delivery], response: Option<&SqsBatchResponse>) {
    if world.fault(|fault| matches!(fault, Fault::LoseReport { invocation: of } if *of == invocation)) {
        return world.note(Event::ReportLost { invocation });
    }
    let Some(response) = response else { return };
    let ignored = world.scenario.function.mapping_reports == Some(false);
    let forgotten = world.mutant == Some(Mutant::FailuresForgotten);
    let failed: BTreeSet<String> =
        if ignored || forgotten { BTreeSet::new() } else { failures(response).into_iter().collect() };
    let mut done = BTreeSet::new();
    for delivery in batch {
        let id = &delivery.message.id;
        if failed.contains(id) || !done.insert(id) {
            continue;
        }
        let mut state = world.state();
        let number = state.next_deletion();
        let now = state.now_ms();
        drop(state);
        let lost = world.fault(|fault| matches!(fault, Fault::LoseDelete { nth } if *nth == number));
        let mut state = world.state();
        let done = !lost && state.sqs.delete(now, &delivery.receipt);
        state.note(Event::Deleted { invocation, id: id.clone(), done });
    }
}

/// What happens to a process that has nothing to do.
fn idle(world: &World, process: &Arc<Process>, invocation: InvocationNo) {
    let freeze = world.fault(|fault| matches!(fault, Fault::FreezeIdle { invocation: of } if *of == invocation));
    if freeze && world.scenario.function.per_process == 1 {
        process.freeze(None);
    }
}
