//! Breakers of batch handlers: a call is one observation, however many items it has, and one that began before a probe says nothing of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::{Breaker, Consumer, Engine, HandlerError, Items, MemoryStore, TransactionGuard};
use claimant_testkit::MovableClock;
use claimant_testkit::batch_ledger::{BatchLedger, Draft};
use claimant_testkit::outcomes::{Work, message};
use tokio::time::{Instant, sleep};

use super::support::{batch, count, deliver};

fn away() -> HandlerError {
    HandlerError::retry("it is away").downstream("mail")
}

/// What the calls of a handler come to.
#[derive(Debug, Clone, Copy)]
enum Says {
    /// The system is away for so many of the items.
    Items(usize),
    All,
    Hangs,
}

#[tokio::test(start_paused = true)]
async fn a_call_counts_once_as_what_most_of_its_items_say() {
    for (says, calls) in
        [(Says::Hangs, 5), (Says::All, 5), (Says::Items(10), 5), (Says::Items(5), 5), (Says::Items(4), 8)]
    {
        let sizes = Arc::<Mutex<Vec<usize>>>::default();
        let made = Arc::clone(&sizes);
        let handler = move |items: Items<String>| {
            made.lock().unwrap().push(items.len());
            async move {
                match says {
                    Says::Items(some) => {
                        Ok((0..items.len()).map(|n| if n < some { Err(away()) } else { Ok(()) }).collect::<Vec<_>>())
                    }
                    Says::All => Err(away()),
                    Says::Hangs => std::future::pending().await,
                }
            }
        };
        let consumer = Consumer::batch("c", MemoryStore::new(), handler).timeout(Duration::from_secs(1));
        let consumer = consumer.items_max(10).breaker(Breaker::new("mail"));
        let process = Engine::with_defaults(consumer).unwrap().clock(Arc::new(MovableClock::start()));
        deliver(&process, &batch("m", 80), 10).await;
        assert_eq!(*sizes.lock().unwrap(), vec![10; calls], "{says:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_began_before_the_breaker_opened_is_no_answer_to_its_probe() {
    let (start, ledger, starts) = (Instant::now(), BatchLedger::default(), Arc::<Mutex<Vec<u64>>>::default());
    let began = Arc::clone(&starts);
    let handler = move |items: Items<Work>, _: TransactionGuard<Draft>| {
        began.lock().unwrap().push(start.elapsed().as_secs());
        async move {
            match items[0].payload.action.as_str() {
                "fail" => return Err(away()),
                // It ends while the breaker is half open, after 11 s.
                "long" => sleep(Duration::from_secs(14)).await,
                _ => sleep(Duration::from_secs(1)).await,
            }
            Ok(())
        }
    };
    let consumer = Consumer::batch_transactional("ledger", ledger, handler).key(|work: &Work| &work.id);
    let consumer = consumer.items_max(1).concurrency(2).breaker(Breaker::new("mail").opens_after(1, 1));
    let process = Engine::with_defaults(consumer).unwrap().clock(Arc::new(MovableClock::start()));
    let action = |n| match n {
        0 => "long",
        1 => "fail",
        _ => "ok",
    };
    let batch: Vec<_> = (0..7).map(|n| message(n, &format!("k{n} {}", action(n)), 1)).collect();
    let report = deliver(&process, &batch, 60).await;
    assert_eq!((count(&report, "completed"), count(&report, "retry")), (6, 1));
    // Three have run one by one before the others.
    assert_eq!(*starts.lock().unwrap(), [0, 0, 14, 15, 16, 17, 17]);
}
