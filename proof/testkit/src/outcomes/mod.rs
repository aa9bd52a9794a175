//! Every outcome of the protocol, as a table of deliveries that any store can be put under.
//!
//! Nothing here waits for a lease: the clock is moved on by hand. What a handler does is written in the message:
//! `key action`, with `group:` before it for an ordered group and `@id` after it for another message id.

mod at_once;
mod calls;
mod cases;
mod ends;
mod events;
mod world;

use std::sync::Arc;
use std::time::Duration;

use claimant_core::{Consumer, Status, Store};
use futures_util::future::join_all;

use crate::faulty::{Call, Fault};
use crate::queue::DeadLetterQueue;

pub use world::{Work, World, message, rob};

/// How long an invocation in which nothing hangs may take.
const UNHURRIED: Duration = Duration::from_secs(60);

/// What is set on the consumer before the deliveries.
pub type Setting = fn(Consumer<Work>) -> Consumer<Work>;

/// One delivery of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// How far the clock goes on before it.
    pub wait_s: u64,
    /// The messages.
    pub batch: &'static [&'static str],
    /// What each must come to, in the batch's order.
    pub outcomes: &'static str,
}

/// What goes in, which calls fail, and what must be seen.
#[derive(Clone, Copy)]
pub struct Case {
    /// What it shows, with the numbers of the faults and invariants.
    pub name: &'static str,
    /// The consumer's settings.
    pub setting: Setting,
    /// How many messages a call of a batch handler gets; `None` for a handler of one message.
    pub calls: Option<usize>,
    /// The dead-letter queue.
    pub letters: DeadLetterQueue,
    /// Calls of the store that go wrong, in their order.
    pub faults: &'static [(Call, Fault)],
    /// The batches, one after the other.
    pub deliveries: &'static [Delivery],
    /// Handler runs as `key/attempt`, sorted.
    pub runs: &'static str,
    /// Where the key `a` stands afterwards.
    pub status: Option<Status>,
}

impl Case {
    /// Returns whether a handler or a call of the store in it hangs, or takes its time.
    fn hangs(&self) -> bool {
        let waits = |text: &&str| text.ends_with(" hang") || text.ends_with(" long");
        self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Hangs))
            || self.deliveries.iter().flat_map(|delivery| delivery.batch).any(waits)
    }
}

impl Default for Case {
    /// Nothing goes in, and nothing fails.
    fn default() -> Self {
        cases::PLAIN
    }
}

/// Plays every case on this store, in invocations of this length: a few seconds on a real clock, anything on Tokio's
/// paused one. Gives the number of cases.
///
/// # Panics
/// At the first case that does not come out as it must.
pub async fn check(store: Arc<dyn Store>, timeout: Duration) -> usize {
    check_where(store, timeout, |_| true).await
}

/// As [`check`], with the cases that apply to this store.
///
/// # Panics
/// As there.
pub async fn check_where(store: Arc<dyn Store>, timeout: Duration, applies: fn(&Case) -> bool) -> usize {
    let all = one_message().chain(calls::CASES).chain(events::CASES).filter(|case| applies(case));
    play_all(&store, timeout, &all.copied().collect::<Vec<_>>()).await
}

/// As [`check_where`], with the cases of handlers of one message, each played with a batch handler of calls of so many.
///
/// # Panics
/// As there.
pub async fn check_in_calls(
    store: Arc<dyn Store>,
    timeout: Duration,
    calls: usize,
    applies: fn(&Case) -> bool,
) -> usize {
    let all = one_message().filter(|case| applies(case)).map(|case| Case { calls: Some(calls), ..*case });
    play_all(&store, timeout, &all.collect::<Vec<_>>()).await
}

/// The cases of handlers of one message.
fn one_message() -> impl Iterator<Item = &'static Case> {
    cases::CASES.iter().chain(ends::CASES)
}

/// Plays these cases one after the other, those in which something hangs side by side: they share nothing, and mostly wait.
/// Gives their number.
async fn play_all(store: &Arc<dyn Store>, timeout: Duration, cases: &[Case]) -> usize {
    let (hanging, others): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.hangs());
    for case in others {
        play(store, timeout, case).await;
    }
    join_all(hanging.into_iter().map(|case| play(store, timeout, case))).await;
    cases.len()
}

/// Plays a case, and gives no slow machine a say in it: where nothing hangs, an invocation ends when its work is done, so it may
/// have all the time there is; where something hangs, it takes as long as it may, and is tried once more with ten times as much.
/// Which messages a call of a batch handler gets is decided by [`at_once::AtOnce`], not by who is answered first.
async fn play(store: &Arc<dyn Store>, timeout: Duration, case: &Case) {
    let (timeout, longer) = if case.hangs() { (timeout, timeout * 10) } else { (UNHURRIED, UNHURRIED) };
    let Err(wrong) = played(store, timeout, case).await else { return };
    assert!(case.hangs(), "{wrong}");
    println!("in {timeout:?}: {wrong}; once more in {longer:?}");
    played(store, longer, case).await.unwrap_or_else(|wrong| panic!("{wrong}"));
}

async fn played(store: &Arc<dyn Store>, timeout: Duration, case: &Case) -> Result<(), String> {
    let world = World::of(Arc::clone(store), timeout, case);
    for (call, fault) in case.faults {
        world.store.fail_next(*call, *fault);
    }
    let wanted = |seen: String, wanted: &str, of: &str| {
        if seen == wanted { Ok(()) } else { Err(format!("{}: {of}: {seen}, not {wanted}", case.name)) }
    };
    for (number, delivery) in case.deliveries.iter().enumerate() {
        world.clock.advance(Duration::from_secs(delivery.wait_s));
        let report = world.try_deliver(delivery.batch, number).await?;
        let words: Vec<_> = report.entries().iter().map(|entry| entry.outcome.word()).collect();
        wanted(words.join(" "), delivery.outcomes, &format!("delivery {number}"))?;
    }
    wanted(world.runs(), case.runs, "runs")?;
    wanted(format!("{:?}", world.status("a").await), &format!("{:?}", case.status), "the status of a")
}
