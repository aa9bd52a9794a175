//! The order within groups, with several workers at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant::{HandlerError, TransactionGuard};
use claimant_inbox::{AfterDeath, EntryStatus, Inbox, InboxContext, Limits, StateChange, Transaction, Worker};
use sqlx::Executor as _;

use super::world::{CONSUMER, LATER, WITHIN, Work, World, act, affect, body, nth, record, run};

/// The runs of every group in their order: the number of each message, and whether it began or ended.
type Runs = Arc<Mutex<BTreeMap<String, Vec<(u64, bool)>>>>;

const GROUPS: u64 = 6;
const LENGTH: u64 = 15;

/// Marks the end of a run, whatever that is.
struct Running {
    runs: Runs,
    group: String,
    n: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.runs.lock().unwrap().entry(self.group.clone()).or_default().push((self.n, false));
    }
}

/// Fails each third message twice, panics at each fifth once.
async fn note(
    work: Work,
    mut tx: TransactionGuard<Transaction>,
    cx: InboxContext,
    runs: Runs,
) -> Result<(), HandlerError> {
    let group = cx.group().unwrap_or_default().to_owned();
    runs.lock().unwrap().entry(group.clone()).or_default().push((work.n, true));
    let _running = Running { runs, group, n: work.n };
    affect(&work.id, &mut tx).await?;
    tokio::time::sleep(Duration::from_millis(work.n % 4)).await;
    assert!(!work.n.is_multiple_of(5) || cx.attempt() > 1, "on purpose");
    if work.n.is_multiple_of(3) && cx.attempt() < 3 {
        return Err(HandlerError::retry("not yet").after(Duration::ZERO));
    }
    drop(tx);
    Ok(())
}

fn noting(world: &World, runs: &Runs) -> Worker {
    let runs = Arc::clone(runs);
    world.bare_worker().on("note", move |work, tx, cx| note(work, tx, cx, Arc::clone(&runs))).attempts_max(9)
}

/// No run begins before the one before it ended, and none is of an earlier message than that.
fn check(runs: &Runs) {
    for (group, runs) in runs.lock().unwrap().iter() {
        for pair in runs.chunks(2) {
            assert!(pair[0] == (pair[1].0, true) && !pair[1].1, "two at once in {group}: {runs:?}");
        }
        assert!(runs.is_sorted_by_key(|(n, _)| n), "out of order in {group}: {runs:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn groups_keep_their_order_whoever_works_on_them() {
    let world = World::start(20).await;
    let runs = Runs::default();
    for n in 1..=LENGTH {
        let batch = (1..=GROUPS).map(|group| nth(&format!("g{group}"), "note", n)).collect();
        assert_eq!(world.deliver(batch).await, [""; 0]);
    }
    let worker = noting(&world, &runs).concurrency(4);
    // Panics wait for their backoff.
    for _ in 0..9 {
        let (a, b, c, d) = tokio::join!(run(&worker), run(&worker), run(&worker), run(&worker));
        assert_eq!(a.dead + b.dead + c.dead + d.dead, 0);
        world.clock.advance(LATER);
    }
    check(&runs);
    let mut wanted: Vec<_> = (1..=GROUPS).flat_map(|g| (1..=LENGTH).map(move |n| format!("g{g}-{n}"))).collect();
    wanted.sort();
    assert_eq!(world.effects().await, wanted);
}

/// Adds so many messages like the only one that is there, in its group if it has one.
async fn add_like(world: &World, count: i32) {
    let many = "INSERT INTO claimant_inbox (record_id, consumer, group_name, event_type, body, fingerprint, message_id, owner, \
                next_attempt_at, received_at, updated_at) SELECT convert_to('orders#s' || n, 'UTF8'), consumer, group_name, 'ok', \
                convert_to('{\"id\":\"s' || n || '\",\"type\":\"ok\"}', 'UTF8'), fingerprint, message_id, owner, next_attempt_at, \
                received_at, updated_at FROM claimant_inbox, generate_series(1, $1) n";
    sqlx::query(many).bind(count).execute(&mut world.party().await).await.unwrap();
}

/// As a worker leaves a message that is killed with it: due after all others.
async fn cut_off(world: &World, key: &str) {
    let cut_off = "UPDATE claimant_inbox SET cut_off = true, attempts = 1, fence = 1, next_attempt_at = next_attempt_at + 2000 \
                   WHERE record_id = $1";
    let id = format!("{CONSUMER}#{key}").into_bytes();
    sqlx::query(cut_off).bind(id).execute(&mut world.party().await).await.unwrap();
}

/// A group whose first message was cut off goes on, also where more messages behind it are due before it than are read at once.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_group_goes_on_after_its_worker_was_killed() {
    let world = World::start(10).await;
    world.deliver(vec![nth("g", "ok", 0)]).await;
    add_like(&world, 104).await;
    cut_off(&world, "g-0").await;
    world.clock.advance(LATER);
    assert_eq!(run(&world.worker().concurrency(10)).await.done, 105);
}

/// A message that was cut off is tried alone, also where more that other workers hold are due before it than are read at once.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_that_was_cut_off_is_found_behind_those_in_flight() {
    let world = World::start(10).await;
    world.deliver(vec![record("m0", &body("first", "ok"))]).await;
    add_like(&world, 300).await;
    world.deliver(vec![record("m1", &body("free", "ok"))]).await;
    cut_off(&world, "free").await;
    world.clock.advance(LATER);
    let mut other = world.party().await;
    other.execute(sqlx::raw_sql("BEGIN; SELECT 1 FROM claimant_inbox WHERE NOT cut_off FOR UPDATE")).await.unwrap();
    assert_eq!(run(&world.worker()).await.done, 1);
    assert_eq!(world.effects().await, ["free"]);
}

/// A group that is stuck, with many messages before all others, holds up no other message.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_long_group_that_is_stuck_holds_up_no_other_message() {
    let world = World::start(4).await;
    world.deliver(vec![nth("stuck", "reject", 0)]).await;
    add_like(&world, 1_500).await;
    world.deliver(vec![record("m1", &body("free", "ok"))]).await;
    let summary = world.run().await;
    assert_eq!((summary.dead, summary.done), (1, 1));
    assert_eq!(world.effects().await, ["free"]);
    let stuck = world.entry("stuck-0").await.id;
    assert_eq!(
        world.inbox.discard(stuck, claimant::Timestamp::from_millis(0), WITHIN).await.unwrap(),
        StateChange::Applied
    );
    // As many runs as that takes on a busy machine.
    let mut done = 0;
    while let more @ 1.. = world.run().await.done {
        done += more;
    }
    assert_eq!(done, 1_500);
}

/// Also while it goes through what waits behind a dead message, and takes nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_worker_stops_in_the_middle_of_a_long_group_that_is_stuck() {
    let world = World::start(4).await;
    world.deliver(vec![nth("stuck", "reject", 0)]).await;
    assert_eq!(world.run().await.dead, 1);
    add_like(&world, 500).await;
    world.clock.advance(LATER);
    // It is ready when it is asked for the second time.
    assert_eq!(world.worker().run_until(tokio::task::yield_now()).await.unwrap(), claimant_inbox::Summary::default());
    let parked = sqlx::query_scalar("SELECT count(*) FROM claimant_inbox WHERE waiting");
    let parked: i64 = parked.fetch_one(world.inbox.pool()).await.unwrap();
    assert!((1..200).contains(&parked), "{parked} of 500: more than are read at once");
}

/// What a person does about a dead message, and what of its group is done before and after that.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_group_does_after_a_death_as_it_was_told() {
    for after_death in [AfterDeath::GroupWaits, AfterDeath::GroupGoesOn] {
        for retried in [true, false] {
            let world = World::start(4).await;
            let worker = world.worker().after_death(after_death);
            world.deliver(vec![nth("g", "ok", 1), nth("g", "reject", 2), nth("g", "ok", 3), nth("g", "ok", 4)]).await;
            run(&worker).await;
            let waits = after_death == AfterDeath::GroupWaits;
            let before: &[&str] = if waits { &["g-1"] } else { &["g-1", "g-3", "g-4"] };
            assert_eq!(world.effects().await, before);
            let (dead, now) = (world.entry("g-2").await.id, claimant::Clock::now(&world.clock));
            if retried {
                // It is mended meanwhile.
                world.sql("UPDATE claimant_inbox SET event_type = 'ok', body = replace(convert_from(body, 'UTF8'), 'reject', 'ok')::bytea").await;
                assert_eq!(world.inbox.retry(dead, now, WITHIN).await.unwrap(), StateChange::Applied);
            } else {
                assert_eq!(world.inbox.discard(dead, now, WITHIN).await.unwrap(), StateChange::Applied);
            }
            assert_eq!(world.inbox.retry(dead, now, WITHIN).await.unwrap(), StateChange::WrongState);
            run(&worker).await;
            let after: &[&str] = if retried { &["g-1", "g-2", "g-3", "g-4"] } else { &["g-1", "g-3", "g-4"] };
            assert_eq!(world.effects().await, after, "{after_death:?}, retried {retried}");
        }
    }
}

/// A dead message that is retried comes before those behind it: they wait for it, and it waits for the one that is at work.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_dead_message_is_retried_once_its_group_is_at_rest() {
    let world = World::start(6).await;
    let begun = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&begun);
    let held = move |work: Work, mut tx: TransactionGuard<Transaction>, _: InboxContext| {
        let begun = Arc::clone(&shared);
        async move {
            affect(&work.id, &mut tx).await?;
            begun.store(true, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(())
        }
    };
    let worker = world.bare_worker().after_death(AfterDeath::GroupGoesOn).on("reject", act).on("held", held);
    world.deliver(vec![nth("g", "reject", 1), nth("g", "held", 2)]).await;
    let running = tokio::spawn(async move { run(&worker).await });
    while !begun.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (dead, now) = (world.entry("g-1").await.id, claimant::Clock::now(&world.clock));
    let early = world.inbox.retry(dead, now, Duration::from_millis(20)).await;
    assert!(early.is_err(), "{early:?}");
    // A lock that cannot be had for a second is an error, too: a busy machine may take longer.
    while world.inbox.retry(dead, now, WITHIN).await.is_err() {}
    assert_eq!(world.entry("g-2").await.status, EntryStatus::Done);
    running.await.unwrap();
}

/// What others have done with it since the statement that takes it has begun: a worker that took it, or that let it wait for its group, or an
/// operator.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_is_taken_as_it_is_when_it_is_locked() {
    let world = World::start(4).await;
    // The statement is held up where it first looks at a row: what it sees is from before that.
    world
        .sql(
            "CREATE ROLE looks_late LOGIN PASSWORD 'late'; GRANT ALL ON ALL TABLES IN SCHEMA public TO looks_late; \
             GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO looks_late; \
             CREATE FUNCTION look() RETURNS boolean LANGUAGE plpgsql SET lock_timeout = 0 AS $$ BEGIN \
             PERFORM pg_advisory_xact_lock_shared(7); RETURN true; END $$; \
             ALTER TABLE claimant_inbox ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY looks_late ON claimant_inbox TO looks_late USING (look())",
        )
        .await;
    let url = world.server.url().replace("claimant:claimant@", "looks_late:late@");
    let late =
        Inbox::connect(&url, 4).await.unwrap().worker(CONSUMER).clock(Arc::new(world.clock.clone())).on("ok", act);
    for change in [
        "UPDATE claimant_inbox SET next_attempt_at = next_attempt_at + 60000",
        "UPDATE claimant_inbox SET waiting = true",
        "UPDATE claimant_inbox SET status = 'DISCARDED', open = false",
    ] {
        world.sql("TRUNCATE claimant_inbox").await;
        world.put(&["ok"]).await;
        let mut party = world.party().await;
        party.execute("SELECT pg_advisory_lock(7)").await.unwrap();
        let late = late.clone();
        let running = tokio::spawn(async move { late.run_once(Limits::within(Duration::from_secs(60))).await });
        world.held_up().await;
        world.sql(change).await;
        party.execute("SELECT pg_advisory_unlock(7)").await.unwrap();
        // An error is one of a busy machine, where that took longer than a statement has.
        drop(running.await.unwrap());
        assert_eq!((world.entry("ok").await.attempts, world.effects().await.len()), (0, 0), "{change}");
    }
}
