//! Keys that another owner holds, and messages that wait for them in their invocation.

use std::time::Duration;

use claimant_core::{Consumer, Engine, Status, StoreErrorKind};
use claimant_testkit::Call::Claim;
use claimant_testkit::Fault::Applied;
use claimant_testkit::outcomes::Work;
use tokio::time::{Instant, sleep};

use super::{words, world};

fn quick(consumer: Consumer<Work>) -> Consumer<Work> {
    consumer.concurrency(2).expected(Duration::from_millis(100))
}

#[tokio::test(start_paused = true)]
async fn a_copy_waits_until_the_work_is_done_and_costs_no_receive() {
    // The work takes 5 s.
    for (most_s, wanted, tries) in [(8, "duplicate completed", 10..=16), (1, "busy completed", 6..=12)] {
        // Without it, the first run's 5 s would not fit into what is left of the time.
        let world = match most_s {
            8 => world(|consumer| quick(consumer).wait_while_busy(Duration::from_secs(8))),
            _ => world(|consumer| quick(consumer).wait_while_busy(Duration::from_secs(1))),
        };
        let (first, (second, took)) = tokio::join!(world.deliver(&["a long"], 0), async {
            sleep(Duration::from_millis(1)).await;
            let start = Instant::now();
            // One slot is left, and the copy does not keep it from the other message.
            (world.deliver(&["a long @copy", "b ok @other"], 0).await, start.elapsed())
        });
        assert_eq!((words(&first).as_str(), words(&second).as_str()), ("completed", wanted));
        assert_eq!(world.runs(), "a/1 b/1");
        let most = Duration::from_secs(most_s.min(6));
        assert!(took >= most.mul_f32(0.8) && took <= most, "{took:?}");
        let claims = world.store.calls().iter().filter(|call| **call == Claim).count();
        // One of the first, and one of both of the second together.
        assert!(tries.contains(&(claims - 2)), "{claims} claims in {most_s} s");
    }
}

#[tokio::test(start_paused = true)]
async fn the_key_of_a_dead_owner_is_taken_over_as_soon_as_it_can_be() {
    let world = world(|consumer| consumer.wait_while_busy(Duration::from_secs(5)));
    world.store.fail_next(Claim, Applied(StoreErrorKind::Other));
    assert_eq!(words(&world.deliver(&["a ok"], 0).await), "store_failed");
    let (report, ()) = tokio::join!(world.deliver(&["a ok"], 1), async {
        sleep(Duration::from_secs(2)).await;
        world.clock.advance(Duration::from_secs(60));
    });
    assert_eq!((words(&report).as_str(), world.runs().as_str()), ("completed", "a/2"));
    assert_eq!(world.status("a").await, Some(Status::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_group_waits_with_its_first_message() {
    let world = world(|consumer| consumer.wait_while_busy(Duration::from_secs(8)));
    let (first, second) = tokio::join!(world.deliver(&["a long"], 0), async {
        sleep(Duration::from_millis(1)).await;
        world.deliver(&["x:a long @m7", "x:b ok @m8", "y:c ok @m9"], 0).await
    });
    assert_eq!((words(&first).as_str(), words(&second).as_str()), ("completed", "duplicate completed completed"));
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_where_it_could_not_start_any_more() {
    // Longer than the invocation.
    let world = world(|consumer| consumer.wait_while_busy(Duration::from_secs(20)));
    world.store.fail_next(Claim, Applied(StoreErrorKind::Other));
    assert_eq!(words(&world.deliver(&["a ok"], 0).await), "store_failed");
    let report = world.deliver(&["a ok", "b ok"], 1).await;
    assert_eq!(words(&report), "busy completed");
    assert!(report.entries()[0].visible_after > Some(Duration::ZERO), "it comes back after the lease");
}

#[tokio::test(start_paused = true)]
async fn unless_asked_for_nothing_waits() {
    let world = world(|consumer| consumer);
    world.store.fail_next(Claim, Applied(StoreErrorKind::Other));
    world.deliver(&["a ok"], 0).await;
    let (calls, start) = (world.store.calls().len(), Instant::now());
    assert_eq!(words(&world.deliver(&["a ok"], 1).await), "busy");
    assert_eq!((world.store.calls().len() - calls, start.elapsed()), (1, Duration::ZERO));
}

#[test]
fn the_wait_is_bounded() {
    for ms in [0, 20_001] {
        let consumer = Consumer::new("c", claimant_core::MemoryStore::new(), |_: Work, _| async { Ok(()) });
        let error = Engine::with_defaults(consumer.wait_while_busy(Duration::from_millis(ms))).unwrap_err().to_string();
        assert!(error.contains("wait for busy keys is") && error.contains("1 to 20000 are allowed"), "{error}");
    }
}

/// They are in two lanes, of which none waits for the other.
#[tokio::test(start_paused = true)]
async fn copies_in_two_groups_of_one_batch_do_not_follow_each_other() {
    let batch = ["x:a ok", "x:a ok", "y:a ok", "y:b ok"];
    let plain = world(|consumer| consumer);
    assert_eq!(words(&plain.deliver(&batch, 0).await), "completed duplicate busy blocked");
    let waiting = world(|consumer| consumer.wait_while_busy(Duration::from_secs(5)));
    assert_eq!(words(&waiting.deliver(&batch, 0).await), "completed duplicate duplicate completed");
}
