//! A system that handlers call is away: no messages are taken, and few attempts spent. And what runs of one process share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use claimant::{Breaker, HandlerError, TransactionGuard};
use claimant_inbox::{InboxContext, Transaction, Worker};
use claimant_sql::PostgresStore;

use super::world::{LATER, Work, World, body, record, run};

/// A worker of messages that call a system, which is away as this says.
fn worker(world: &World, store: &PostgresStore, away: &Arc<AtomicBool>) -> Worker {
    let away = Arc::clone(away);
    let handler = move |_: Work, _: TransactionGuard<Transaction>, _: InboxContext| {
        let away = away.load(Ordering::SeqCst);
        async move { if away { Err(HandlerError::retry("away").downstream("mail")) } else { Ok(()) } }
    };
    let breaker = Breaker::new("mail").opens_after(2, 4);
    world.bare_worker().on("mail", handler).concurrency(1).attempts_max(9).breaker(breaker, store.clone())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn nothing_is_taken_while_a_breaker_is_open() {
    let world = World::start(4).await;
    let store = PostgresStore::new(world.inbox.pool().clone());
    store.migrate().await.unwrap();
    let records = (0..8).map(|n| record(&format!("m{n}"), &body(&format!("k{n}"), "mail"))).collect();
    assert_eq!(world.deliver(records).await, Vec::<String>::new());
    let away = Arc::new(AtomicBool::new(true));
    let (first, other) = (worker(&world, &store, &away), worker(&world, &store, &away));
    assert_eq!(run(&first).await.failed, 2, "then it opens");
    assert_eq!(run(&first).await, claimant_inbox::Summary::default(), "and is open for all runs of the process");
    assert_eq!(run(&other).await.failed, 2, "another process learns of it by failures of its own");
    // Half open: one probe fails, and it is open for longer.
    world.clock.advance(Duration::from_secs(12));
    assert_eq!((run(&first).await.failed, run(&other).await.failed), (1, 0));
    world.clock.advance(Duration::from_secs(12));
    assert_eq!((run(&first).await.failed, run(&other).await.failed), (0, 0));
    away.store(false, Ordering::SeqCst);
    world.clock.advance(LATER);
    assert_eq!(run(&other).await.done, 8);
    // Of five failures; what was due was spent on nothing else.
    let mut spent = 0;
    for n in 0..8 {
        spent += world.entry(&format!("k{n}")).await.attempts;
    }
    assert_eq!(spent, 8 + 5);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_worker_that_has_no_message_due_leaves_the_probe_to_others() {
    let world = World::start(4).await;
    let store = PostgresStore::new(world.inbox.pool().clone());
    store.migrate().await.unwrap();
    let message = |n: u32| record(&format!("m{n}"), &body(&format!("k{n}"), "mail"));
    assert_eq!(world.deliver(vec![message(1), message(2)]).await, [""; 0]);
    let away = Arc::new(AtomicBool::new(true));
    let worker = worker(&world, &store, &away);
    assert_eq!(run(&worker).await.failed, 2, "then it opens");
    // Both are due tomorrow.
    world.sql("UPDATE claimant_inbox SET next_attempt_at = next_attempt_at + 86400000").await;
    world.clock.advance(Duration::from_secs(12));
    assert_eq!(run(&worker).await, claimant_inbox::Summary::default(), "half open");
    let claims = "SELECT attempts FROM claimant_records WHERE convert_from(id, 'UTF8') = 'claimant-breaker#mail'";
    let claims: i64 = sqlx::query_scalar(claims).fetch_one(world.inbox.pool()).await.unwrap();
    assert_eq!(claims, 1, "of the one that opened it");
    away.store(false, Ordering::SeqCst);
    assert_eq!(world.deliver(vec![message(3)]).await, [""; 0]);
    assert_eq!(run(&worker).await.done, 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn runs_of_one_process_share_the_concurrency() {
    let world = World::start(12).await;
    let records = (0..40).map(|n| record(&format!("m{n}"), &body(&format!("k{n}"), "busy"))).collect();
    assert_eq!(world.deliver(records).await, Vec::<String>::new());
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = (Arc::clone(&now), Arc::clone(&most));
    let handler = move |_: Work, _: TransactionGuard<Transaction>, _: InboxContext| {
        let (now, most) = seen.clone();
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    };
    let worker = world.bare_worker().on("busy", handler).concurrency(3);
    let clone = worker.clone();
    let (first, second) = tokio::join!(run(&worker), run(&clone));
    let rest = run(&worker).await;
    assert_eq!(first.done + second.done + rest.done, 40);
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_handler_can_ask_for_days() {
    let world = World::start(4).await;
    world.put(&["days"]).await;
    let handler = |_: Work, _: TransactionGuard<Transaction>, cx: InboxContext| async move {
        match cx.attempt() {
            1 => Err(HandlerError::retry("not yet").after(Duration::from_secs(3 * 86_400))),
            _ => Ok(()),
        }
    };
    let worker = world.bare_worker().on("days", handler);
    assert_eq!(run(&worker).await.failed, 1);
    world.clock.advance(Duration::from_secs(3 * 86_400 - 1));
    assert_eq!(run(&worker).await, claimant_inbox::Summary::default());
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(run(&worker).await.done, 1);
}
