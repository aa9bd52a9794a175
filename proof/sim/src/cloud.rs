//! The cloud around the function: the producer, the event source mapping, Lambda, and an operator who redrives.

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::delivery::{self, Environment};
use crate::event;
use crate::expected;
use crate::handler;
use crate::history::Event;
use crate::mutant::Mutant;
use crate::operator::Operator;
use crate::process::Process;
use crate::scenario::{Fault, MessageSpec};
use crate::sqs::Delivery;
use crate::world::World;

/// How long after the faults an operator waits: every lease is over then, whatever clocks had said.
const PAUSE_S: u64 = 4 * 3_600;

/// How often in a row an operator moves dead letters back of which no fewer came back than the time before, and for which nothing was done.
/// Messages behind a failure in their group, and those for which there is no time, use up their receives with it; a failure of one uses up a redrive
/// where the queue has one receive (seed 11014151).
const REDRIVES_FRUITLESS: usize = 3;

/// How often at most: where done work can begin anew (`begins_anew`), something is done each time.
const REDRIVES_MAX: usize = 20;

/// A drain that takes longer than this never ends.
const DRAIN_MAX_S: u64 = 12 * 3_600;

/// As long again for work that wants to wait longer than a queue can hide it: so often in a row at most, in a group.
const DELAYS_MAX_S: u64 = 4 * 90_000;

/// The event source mapping with its function.
pub struct Cloud {
    world: World,
    aws: SdkConfig,
    slots: Vec<Option<Environment>>,
    deliveries: JoinSet<()>,
}

impl Cloud {
    /// A cloud in which nothing runs yet.
    #[must_use]
    pub fn new(world: World, aws: SdkConfig) -> Self {
        let slots = vec![None; world.scenario.function.clocks_ms.len()];
        Self { world, aws, slots, deliveries: JoinSet::new() }
    }

    /// Runs the scenario from the first message to the end.
    pub async fn run(mut self) {
        let producers = self.world.scenario.messages.iter().enumerate();
        let mut producers: JoinSet<()> =
            producers.map(|(place, spec)| produce(self.world.clone(), place, spec.clone())).collect();
        let timers: Vec<_> = self.world.scenario.faults.iter().filter_map(timer).collect();
        for (at_ms, fault) in timers {
            let (world, operator) = (self.world.clone(), Operator::new(&self.world, &self.aws));
            producers.spawn(async move {
                sleep(Duration::from_millis(at_ms)).await;
                happen(&world, &fault);
                operator.act(&fault).await;
            });
        }
        self.drain(&mut producers).await;
        {
            let mut state = self.world.state();
            state.faults = false;
            state.clocks_ms.iter_mut().for_each(|off| *off = 0);
            state.note(Event::FaultsStopped);
        }
        let (mut before, mut done, mut fruitless) = (usize::MAX, 0, 0);
        for round in 0..REDRIVES_MAX {
            sleep(Duration::from_secs(PAUSE_S)).await;
            // Whatever might go well the first time, and after that what must, or must be given up.
            let scenario = &self.world.scenario;
            let redriven = redrive(&self.world, |spec| round == 0 || expected::ends(scenario, spec));
            if redriven == 0 {
                break;
            }
            self.drain(&mut producers).await;
            let done_now = self.world.state().effects.len();
            fruitless = if redriven < before || done_now > done { 0 } else { fruitless + 1 };
            if fruitless >= REDRIVES_FRUITLESS {
                break;
            }
            (before, done) = (redriven, done_now);
        }
        // What is late has arrived after this.
        sleep(Duration::from_secs(PAUSE_S)).await;
        // A schedule of what was done meanwhile may be among it.
        self.drain(&mut producers).await;
        let mut state = self.world.state();
        let left = state.sqs.messages().map(|message| message.id.clone()).collect();
        state.note(Event::Drained { left });
    }

    /// Delivers until there is nothing left to deliver, or that takes too long.
    async fn drain(&mut self, producers: &mut JoinSet<()>) {
        let end = Instant::now() + Duration::from_secs(DRAIN_MAX_S + DELAYS_MAX_S);
        while Instant::now() < end {
            self.send_scheduled();
            while self.deliver_one() {}
            while producers.try_join_next().is_some() {}
            if producers.is_empty() && self.deliveries.is_empty() && self.world.state().sqs.is_empty() {
                return;
            }
            let soon = Instant::now() + self.next_look(producers.is_empty());
            tokio::select! {
                biased;
                Some(_) = self.deliveries.join_next() => {}
                Some(_) = producers.join_next() => {}
                () = sleep_until(soon.min(end)) => {}
            }
        }
    }

    fn send_scheduled(&self) {
        let mut state = self.world.state();
        let now = state.now_ms();
        for (name, id, again) in state.sqs.send_scheduled(now) {
            state.note(Event::SentAgain { id, name, again });
        }
    }

    /// How long nothing happens in the queue by itself.
    fn next_look(&self, sent: bool) -> Duration {
        let state = self.world.state();
        let now = state.now_ms();
        let most = if self.deliveries.is_empty() && sent { 60_000 } else { 500 };
        let next = state.sqs.next_ms().map_or(most, |at| if at > now { at - now } else { most });
        Duration::from_millis(next.min(most))
    }

    /// Receives a batch and hands it to a free process; whether there was one.
    fn deliver_one(&mut self) -> bool {
        let per_process = self.world.scenario.function.per_process;
        let free = |slot: &Option<Environment>| match slot {
            Some(environment) => environment.process.is_gone() || environment.running() < per_process,
            None => true,
        };
        if !self.world.lets_in() {
            return false;
        }
        let Some(slot) = self.slots.iter().position(free) else { return false };
        let batch = receive(&self.world);
        if batch.is_empty() {
            return false;
        }
        let invocation = self.world.state().next_invocation();
        let blocked = self.world.scenario.faults.iter().find_map(|fault| match *fault {
            Fault::Block { invocation: of, for_ms } if of == invocation => Some(for_ms),
            _ => None,
        });
        let blocked = blocked.filter(|_| self.world.state().faults);
        let environment = self.environment(slot, blocked);
        environment.process.thaw();
        let batch = event::arrange(&self.world, batch);
        self.deliveries.spawn(delivery::deliver(self.world.clone(), environment, invocation, batch));
        true
    }

    fn environment(&mut self, slot: usize, blocked: Option<u64>) -> Environment {
        match &self.slots[slot] {
            Some(environment) if !environment.process.is_gone() && blocked.is_none() => {
                let limits_for_each = self.world.mutant == Some(Mutant::LimitsForEach);
                let service = limits_for_each.then(|| handler::service(&self.world, &environment.process, &self.aws));
                service.map_or_else(|| environment.clone(), |service| environment.with(service))
            }
            _ => {
                let process = Process::start(&self.world, slot, blocked);
                let service = handler::service(&self.world, &process, &self.aws);
                self.world.state().processes[slot] = Arc::downgrade(&process);
                let environment = Environment::new(process, service);
                // One whose threads are blocked serves once.
                self.slots[slot] = blocked.is_none().then(|| environment.clone());
                environment
            }
        }
    }
}

/// Moves the dead letters back that are of such messages; how many those are. What no producer sends stays.
fn redrive(world: &World, wanted: impl Fn(&MessageSpec) -> bool) -> usize {
    let mut state = world.state();
    let now = state.now_ms();
    let redriven = state.sqs.redrive(now, |message| event::spec(&world.scenario, &message.body).is_some_and(&wanted));
    for (message, again) in &redriven {
        state.note(Event::Redriven { id: message.id.clone(), again: again.clone() });
    }
    redriven.len()
}

async fn produce(world: World, place: usize, spec: MessageSpec) {
    sleep(Duration::from_millis(spec.at_ms)).await;
    let mut state = world.state();
    let group = world.scenario.queue.fifo_groups.map(|groups| spec.key as u32 % groups);
    for _ in 0..spec.count {
        let now = state.now_ms();
        let id = state.sqs.send(now, event::body(&world.scenario, &spec), group);
        state.note(Event::Sent { id, spec: place });
    }
}

/// What happens at its time, not at a request or an invocation.
fn timer(fault: &Fault) -> Option<(u64, Fault)> {
    match *fault {
        Fault::Jump { at_ms, .. }
        | Fault::Terminate { at_ms, .. }
        | Fault::Expire { at_ms }
        | Fault::Operate { at_ms, .. }
        | Fault::Redrive { at_ms }
        | Fault::Deploy { at_ms } => Some((at_ms, fault.clone())),
        _ => None,
    }
}

fn happen(world: &World, fault: &Fault) {
    if !world.state().faults {
        return;
    }
    match *fault {
        Fault::Jump { process, by_ms, .. } => {
            let mut state = world.state();
            if let Some(off) = state.clocks_ms.get_mut(process) {
                *off += by_ms;
            }
            state.note(Event::Jumped { process, by_ms });
        }
        Fault::Terminate { process, .. } => {
            let process = world.state().processes.get(process).and_then(std::sync::Weak::upgrade);
            if let Some(process) = process {
                process.kill("terminated");
            }
        }
        Fault::Expire { .. } => world.expire(),
        Fault::Redrive { .. } => _ = redrive(world, |_| true),
        Fault::Deploy { .. } => {
            let mut state = world.state();
            state.deployments += 1;
            state.note(Event::Deployed);
            let running: Vec<_> = state.processes.iter().filter_map(std::sync::Weak::upgrade).collect();
            drop(state);
            running.iter().for_each(|process| process.retire());
        }
        _ => {}
    }
}

/// Receives a batch, in an order that the seed decides.
fn receive(world: &World) -> Vec<Delivery> {
    let mut state = world.state();
    let now = state.now_ms();
    // OK because a run has far fewer events.
    let round = state.history.events.len() as u32;
    let max = world.scenario.queue.batch_max;
    let (batch, dead) =
        state.sqs.receive(now, max, |place| world.random(8, round.wrapping_add(place.wrapping_mul(7_919))));
    for message in dead {
        state.note(Event::Exhausted { id: message.id });
    }
    batch
}
