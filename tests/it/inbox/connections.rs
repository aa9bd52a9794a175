//! What workers share: the connections of their inbox, and one beside these.

use std::sync::Arc;
use std::time::Duration;

use claimant::{HandlerError, Limit, TransactionGuard};
use claimant_core::MemoryStore;
use claimant_inbox::{Inbox, InboxContext, Limits, Summary, Transaction, Worker};
use claimant_testkit::logs::Logs;

use super::world::{CONSUMER, Work, World, body, record, run};

/// Takes longer than an attempt waits for a connection.
async fn long(_: Work, _: TransactionGuard<Transaction>, _: InboxContext) -> Result<(), HandlerError> {
    tokio::time::sleep(Duration::from_secs(6)).await;
    Ok(())
}

/// A message waits until the other worker leaves it one, and loses no attempt meanwhile.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn workers_of_one_inbox_share_its_connections() {
    let world = World::start(2).await;
    let work = |id: &str| record(id, &body(id, "long"));
    let payments = world.inbox.intake("payments", |work: &Work| &work.kind).key(|work| &work.id);
    world.deliver(vec![work("a")]).await;
    world.deliver_to(payments, vec![work("b"), work("c")]).await;
    let (orders, payments) = (world.inbox.worker(CONSUMER), world.inbox.worker("payments"));
    let worker = |worker: Worker| worker.on("long", long).clock(Arc::new(world.clock.clone()));
    let (orders, payments) = (worker(orders), worker(payments));
    let (one, two) = tokio::join!(run(&orders), run(&payments));
    assert_eq!(one, Summary { done: 1, ..Summary::default() });
    assert_eq!(two, Summary { done: 2, ..Summary::default() });
}

/// Otherwise it would look like one for which nothing is due.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test"]
async fn a_worker_that_gets_no_connection_of_others_says_so_once() {
    let (world, logs) = (World::start(1).await, Logs::record());
    let payments = world.inbox.intake("payments", |work: &Work| &work.kind).key(|work| &work.id);
    world.deliver(vec![record("a", &body("a", "long"))]).await;
    world.deliver_to(payments, vec![record("b", &body("b", "long"))]).await;
    let worker = |name: &str| world.inbox.worker(name).on("long", long).clock(Arc::new(world.clock.clone()));
    let (orders, payments) = (worker(CONSUMER), worker("payments").poll(Duration::from_millis(100)));
    // This one only looks at first.
    let limited = worker("payments").limit(Limit::new("mail").at_once(1), MemoryStore::new());
    let late = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        // Their attempts may take 44 s, and 46 s.
        let limited = limited.run_once(Limits::within(Duration::from_secs(48)));
        let (one, two) = tokio::join!(payments.run_once(Limits::within(Duration::from_secs(46))), limited);
        (one.unwrap(), two.unwrap())
    };
    // This one does not end for it.
    let audit = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let worker = worker("audit").poll(Duration::from_millis(100));
        worker.run_until(tokio::time::sleep(Duration::from_secs(7))).await.unwrap()
    };
    let (one, two, three) = tokio::join!(run(&orders), late, audit);
    assert_eq!((one, two), (Summary { done: 1, ..Summary::default() }, Default::default()));
    assert_eq!(three, Summary::default());
    let text = logs.text();
    assert_eq!(text.matches("have all 1 connections").count(), 3, "{text}");
}

/// One that works or looks has connections for some milliseconds, which is nothing to be warned of.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test"]
async fn a_worker_that_waits_shortly_for_a_connection_says_nothing() {
    let (world, logs) = (World::start(1).await, Logs::record());
    let ids = (0..40).map(|n| format!("k{n}"));
    world.deliver(ids.map(|id| record(&id, &body(&id, "ok"))).collect()).await;
    let (orders, payments) = (world.worker(), world.inbox.worker("payments").on("long", long));
    let payments = payments.poll(Duration::from_millis(20)).clock(Arc::new(world.clock.clone()));
    let within = || tokio::time::sleep(Duration::from_secs(3));
    let (one, two) = tokio::join!(orders.run_until(within()), payments.run_until(within()));
    assert_eq!((one.unwrap(), two.unwrap()), (Summary { done: 40, ..Summary::default() }, Summary::default()));
    let text = logs.text();
    assert!(!text.contains("no messages are taken"), "{text}");
}

/// They are ended by one connection at a time: where each took its own, a server that is full anyway would refuse some.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn handlers_that_are_cut_off_at_once_take_one_connection_more_together() {
    let world = World::start(1).await;
    // Eight of the pool and that one; the server counts one that has ended for a moment, and is then asked again.
    world
        .sql(
            "CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 11; GRANT ALL ON ALL TABLES IN SCHEMA public TO few; \
             GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO few",
        )
        .await;
    let url = world.server.url().replace("claimant:claimant@", "few:few@");
    let world = World { inbox: Inbox::connect(&url, 8).await.unwrap(), ..world };
    let worker = world.worker().timeout(Duration::from_millis(500));
    // The first eight open the connections, so that the others are cut off at one moment.
    for (kind, summary) in
        [("slow", Summary { done: 8, ..Summary::default() }), ("sleep", Summary { failed: 8, ..Summary::default() })]
    {
        let ids = (0..8).map(|n| format!("{kind}{n}"));
        world.deliver(ids.map(|id| record(&id, &body(&id, kind))).collect()).await;
        assert_eq!(run(&worker).await, summary);
    }
}
