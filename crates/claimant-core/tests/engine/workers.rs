//! Limits of workers that take their work by themselves: shared with consumers of queues, and given back when a worker stops.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use claimant_core::limit::{Line, WorkerLimit};
use claimant_core::{Call, ConsumerName, Key, Limit, Meter, RecordId, Status, Store as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::limit::World;

fn limit() -> Limit {
    Limit::new("ses").per_second(20)
}

fn worker_limit(world: &World, limit: &Limit) -> WorkerLimit {
    WorkerLimit::new(limit, "orders", Arc::new(world.store.clone()), Arc::new(world.clock.clone())).unwrap()
}

/// What a worker has in its table, how many of them it runs at once, and for how long.
#[derive(Clone, Copy)]
struct Rows {
    waiting: usize,
    concurrency: usize,
    until: Instant,
}

/// A worker that takes rows as an inbox does, and lets what it has taken end. Returns how many it has not taken.
async fn take(world: &World, mut line: Line<'_>, number: usize, mut rows: Rows) -> usize {
    let mut in_flight = JoinSet::new();
    loop {
        let open = Instant::now() < rows.until && rows.waiting > 0;
        let free = rows.concurrency - in_flight.len();
        line.go_on(if open { rows.waiting } else { 0 }, free);
        let room = line.room().min(free).min(rows.waiting);
        for _ in 0..if open { room } else { 0 } {
            rows.waiting -= 1;
            let (world, mut turn) = (world.clone(), line.turn());
            in_flight.spawn(async move {
                let begins = turn.begin(Duration::from_secs(2)).await;
                if begins {
                    world.run(number).await.unwrap();
                }
                begins
            });
        }
        if in_flight.is_empty() && !open {
            break;
        }
        let wake_at = line.wake_at().unwrap_or(rows.until);
        tokio::select! {
            // What had no turn waits again.
            Some(begun) = in_flight.join_next() => rows.waiting += usize::from(!begun.unwrap()),
            () = line.next() => {}
            () = sleep_until(wake_at), if wake_at > Instant::now() => {}
        }
    }
    line.end().await;
    rows.waiting
}

fn rows(waiting: usize, concurrency: usize, seconds: u64) -> Rows {
    Rows { waiting, concurrency, until: Instant::now() + Duration::from_secs(seconds) }
}

/// Returns which slots of the limit are held.
async fn held(world: &World) -> Vec<u32> {
    let (mut held, meter) = (Vec::new(), Meter::default());
    for number in 0..10 {
        let id =
            RecordId::new(&ConsumerName::new("claimant-rate").unwrap(), &Key::new(format!("ses/{number}")).unwrap());
        let call = Call { within: Duration::from_secs(1), meter: &meter };
        let record = world.store.get(&id, call).await.unwrap();
        held.extend(record.filter(|record| record.status == Status::InProgress).map(|_| number));
    }
    held
}

#[tokio::test(start_paused = true)]
async fn workers_and_consumers_of_queues_have_one_rate_and_each_its_part() {
    let world = World::new(30);
    let (worker, process) = (worker_limit(&world, &limit()), world.process(2, limit()));
    let run = take(&world, worker.line(), 1, rows(10_000, 10, 180));
    tokio::join!(run, world.work(process, "m".into(), (25, 30, 180)));
    world.check(20.0, 10);
    let runs = world.between(5, 180);
    println!("{runs} of {} in 175 s", 20 * 175);
    assert!((20 * 175 * 93 / 100..=20 * 175 + 20).contains(&runs), "{runs}");
    for number in [1, 2] {
        let of = world.runs().iter().filter(|(of, _)| *of == number).count();
        assert!(of > 20 * 175 / 8, "{number}: {of}");
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_run_at_once_in_workers_and_consumers_together() {
    let world = World::new(700);
    let limit = || Limit::new("ses").at_once(7).slots(4);
    let (worker, process) = (worker_limit(&world, &limit()), world.process(2, limit()));
    let run = take(&world, worker.line(), 1, rows(10_000, 10, 90));
    tokio::join!(run, world.work(process, "m".into(), (20, 20, 90)));
    assert_eq!(world.at_once.load(Ordering::SeqCst), 7);
    assert!(world.between(5, 90) > 85 * 10 * 85 / 100, "{}", world.between(5, 90));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_leaves_its_slots_to_others_and_does_not_wait_for_leases() {
    let world = World::new(10);
    let worker = worker_limit(&world, &limit());
    assert_eq!(take(&world, worker.line(), 1, rows(60, 10, 60)).await, 0);
    let stopped = Instant::now();
    assert_eq!(held(&world).await, Vec::<u32>::new());
    // One of two runs of a process leaves them to the other one.
    let line = worker.line();
    tokio::join!(take(&world, line, 1, rows(40, 10, 60)), async {
        let line = worker.line();
        sleep(Duration::from_secs(1)).await;
        line.end().await;
        assert_ne!(held(&world).await, Vec::<u32>::new());
    });
    assert_eq!(held(&world).await, Vec::<u32>::new());
    let other = worker_limit(&world, &limit());
    let before = world.runs().len();
    assert_eq!(take(&world, other.line(), 2, rows(1, 1, 60)).await, 0);
    assert_eq!(world.runs().len(), before + 1);
    assert!(stopped.elapsed() < Duration::from_secs(10), "{:?}", stopped.elapsed());
    world.check(20.0, 10);
}

/// One that is dropped before its request is under way, or while it is, keeps no other one of its process from asking.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_dropped_while_it_asks_holds_up_no_other_one() {
    let world = World::new(10);
    let worker = worker_limit(&world, &limit());
    let mut dropped = worker.line();
    // More than can be counted, as where a whole table is due.
    let _turn = dropped.turn();
    dropped.go_on(usize::MAX, 1);
    drop(dropped);
    assert_eq!(take(&world, worker.line(), 1, rows(1, 1, 60)).await, 0);
    // The other one waits already. Slots that were let go are left to others for a moment.
    sleep(Duration::from_secs(1)).await;
    world.store.fail_next(claimant_testkit::Call::Claim, claimant_testkit::Fault::Hangs);
    let begun = Instant::now();
    let dropped = async {
        let mut line = worker.line();
        line.go_on(1, 1);
        let _ = tokio::time::timeout(Duration::from_millis(100), line.next()).await;
    };
    tokio::join!(dropped, take(&world, worker.line(), 1, rows(1, 1, 60)));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_while_nothing_waits() {
    let world = World::new(10);
    let worker = worker_limit(&world, &limit());
    let mut line = worker.line();
    for _ in 0..60 {
        line.go_on(0, 1);
        line.rest();
        assert!(line.wake_at().is_none());
        sleep(Duration::from_secs(1)).await;
    }
    line.end().await;
    assert_eq!(world.store.calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_takes_what_its_concurrency_can_use_and_no_slot_more() {
    // Two at once need one slot of those with two each.
    let world = World::new(1_000);
    let worker = worker_limit(&world, &Limit::new("ses").at_once(20));
    let run = take(&world, worker.line(), 1, rows(10_000, 2, 30));
    let look = async {
        sleep(Duration::from_secs(20)).await;
        held(&world).await.len()
    };
    assert_eq!(tokio::join!(run, look).1, 1);
}

#[tokio::test(start_paused = true)]
async fn who_has_waited_longest_has_the_next_turn_and_who_has_none_in_time_gives_up() {
    let world = World::new(10);
    let worker = worker_limit(&world, &Limit::new("ses").per_second(2).slots(1));
    let mut line = worker.line();
    line.go_on(1, 3);
    while line.room() == 0 {
        let wake_at = line.wake_at().unwrap_or_else(|| Instant::now() + Duration::from_secs(1));
        tokio::select! {
            () = line.next() => {}
            () = sleep_until(wake_at) => {}
        }
        line.go_on(1, 3);
    }
    let mut turns = [line.turn(), line.turn(), line.turn()];
    assert_eq!(line.room(), 0);
    let within = Duration::from_millis(1_200);
    let [first, second, third] = &mut turns;
    let begun = tokio::join!(first.begin(within), second.begin(within), third.begin(within));
    assert_eq!(begun, (true, true, false));
}

#[tokio::test]
async fn what_cannot_hold_is_refused() {
    let world = World::new(10);
    let fault = |limit: Limit, store| {
        let share = WorkerLimit::new(&limit, "orders", Arc::new(store), Arc::new(world.clock.clone()));
        share.unwrap_err().to_string()
    };
    assert!(fault(Limit::new("ses"), world.store.clone()).contains("the limit allows everything"));
    let fleeting = world.store.clone().fleeting();
    assert!(fault(limit(), fleeting).contains("claims outlive their owners"));
}
