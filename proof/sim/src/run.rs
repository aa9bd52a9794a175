//! One run of one scenario: on this thread, on virtual time, the same each time.

use std::panic;
use std::sync::{Arc, Once};

use claimant_simulated::sdk;
use tokio::runtime::{Builder, Runtime};

use crate::cloud::Cloud;
use crate::history::History;
use crate::mutant::Mutant;
use crate::scenario::Scenario;
use crate::threads::Threads;
use crate::wire::Wire;
use crate::work::PANIC;
use crate::world::{Served, World};

/// Runs a scenario to its end.
///
/// # Panics
/// When there is no runtime to be had.
#[must_use]
pub fn run(scenario: &Scenario, mutant: Option<Mutant>) -> History {
    run_recorded(scenario, mutant, false).0
}

/// The same, with everything that the store did, if that is wanted.
///
/// # Panics
/// As there.
#[must_use]
pub fn run_recorded(scenario: &Scenario, mutant: Option<Mutant>, recorded: bool) -> (History, Vec<Served>) {
    quiet();
    // Where the SDK takes the jitter of its retries from.
    fastrand::seed(scenario.seed);
    let threads = Arc::new(Threads::default());
    let runtime = runtime(Arc::clone(&threads));
    let _end = EndThreads(&threads);
    runtime.block_on(async {
        let world = World::new(scenario.clone(), mutant, Arc::clone(&threads));
        world.state().served = recorded.then(Vec::new);
        let aws = sdk::config(Wire { world: world.clone(), of_operator: false });
        Cloud::new(world.clone(), aws).run().await;
        let mut state = world.state();
        (std::mem::take(&mut state.history), state.served.take().unwrap_or_default())
    })
}

/// Ends the threads of handlers, also where the run panics.
struct EndThreads<'a>(&'a Threads);

impl Drop for EndThreads<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A runtime whose time goes on when no task is ready, those of handlers on threads of their own included.
fn runtime(threads: Arc<Threads>) -> Runtime {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).on_thread_park(move || threads.let_run()).build();
    runtime.expect("a runtime of one thread without I/O needs nothing that could be missing")
}

/// Keeps the handlers' panics, which are on purpose, out of the output.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let show = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if info.payload_as_str() != Some(PANIC) {
                show(info);
            }
        }));
    });
}
