//! What the scenarios do, and that each of their assertions can fail.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::{
    Conflicts, Consumer, Context, Fingerprint, HandlerError, Item, Items, Lease, MemoryStore, Status, Store,
    StoreErrorKind, TransactionGuard,
};
use claimant_test::{Call, Effects, Fault, MemoryTransactions, Scenario, TestMessage, TestQueue};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

#[derive(serde::Deserialize)]
pub(super) struct Order {
    pub(super) id: String,
}

pub(super) fn order(id: &str) -> TestMessage {
    TestMessage::json(&json!({ "id": id }))
}

/// Orders that are mailed, under their keys.
fn mailing(mails: &Effects) -> Consumer<Order> {
    let mails = mails.clone();
    let handler = move |order: Order, cx: Context| {
        let mails = mails.clone();
        async move { mails.request(cx.key(), order.id).await }
    };
    Consumer::new("mails", MemoryStore::new(), handler).key(|order| &order.id)
}

/// Orders that are booked in a transaction, and the list of them.
fn booking() -> (Consumer<Order>, Arc<Mutex<Vec<String>>>) {
    let booked = Arc::new(Mutex::new(Vec::new()));
    let table = Arc::clone(&booked);
    let store = MemoryTransactions::new(move |ids: Vec<String>| {
        table.lock().unwrap().extend(ids);
        Ok(())
    });
    let handler = |order: Order, mut tx: TransactionGuard<Vec<String>>, _: Context| async move {
        tokio::task::yield_now().await;
        tx.push(order.id);
        Ok::<_, HandlerError>(())
    };
    (Consumer::transactional("books", store, handler).key(|order: &Order| &order.id), booked)
}

/// What panicked says.
pub(super) fn panic_text(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast_ref::<String>().unwrap().clone()
}

/// What a play panics with.
async fn fault<T: Send + 'static>(consumer: Consumer<T>, scenario: Scenario, messages: &[TestMessage]) -> String {
    let queue = TestQueue::new(consumer);
    let played = AssertUnwindSafe(queue.play(&scenario, messages)).catch_unwind().await;
    panic_text(played.expect_err("the scenario finds it"))
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_each_order_is_mailed_once() {
    let (mut played, mut repeated) = (0, BTreeSet::new());
    for scenario in Scenario::all() {
        let mails = Effects::new();
        let queue = TestQueue::new(mailing(&mails));
        queue.play(&scenario, &[order("a"), order("b")]).await.assert_done();
        assert_eq!(mails.once(), ["a: a", "b: b"], "{scenario}");
        played += 1;
        if mails.requests() > 2 {
            repeated.insert(scenario.to_string());
        }
    }
    // Seven without steps; and for each message a claim, two waits and a settlement, with their answers, and one report.
    let steps = 2 * (2 + 2 + 2) + 1;
    assert_eq!(played, 7 + 2 * steps);
    // A process that dies or stands still between the effect and its completion: that is what the key is for.
    assert!(repeated.iter().any(|scenario| scenario.starts_with("killed")), "{repeated:?}");
    assert!(repeated.iter().any(|scenario| scenario.starts_with("stopped")), "{repeated:?}");
    assert!(repeated.iter().all(|scenario| scenario.contains(" at step ")), "{repeated:?}");
}

#[tokio::test(start_paused = true)]
async fn an_effect_in_the_transaction_takes_place_once_even_without_a_key() {
    for lease in [Lease::UntilDeadline, Lease::Renewed(Duration::from_secs(6))] {
        for scenario in Scenario::all() {
            let (consumer, booked) = booking();
            TestQueue::new(consumer.lease(lease)).play(&scenario, &[order("a"), order("b")]).await.assert_done();
            let mut booked = booked.lock().unwrap().clone();
            booked.sort();
            assert_eq!(booked, ["a", "b"], "{scenario}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn groups_stay_in_order_whatever_happens() {
    let messages = ["a1", "b1", "a2", "b2", "a3"].map(|id| order(id).in_group(&id[..1]));
    for scenario in Scenario::all() {
        let (consumer, booked) = booking();
        TestQueue::new(consumer).play(&scenario, &messages).await.assert_done();
        let booked = booked.lock().unwrap().clone();
        let of =
            |group| booked.iter().filter(|id| id.starts_with(group)).map(String::as_str).collect::<Vec<_>>().join(" ");
        assert_eq!((of('a').as_str(), of('b').as_str()), ("a1 a2 a3", "b1 b2"), "{scenario}");
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_may_be_done_is_parked_and_never_repeated() {
    for scenario in Scenario::all() {
        let mails = Effects::new();
        let queue = TestQueue::new(mailing(&mails).at_most_once());
        let played = queue.play(&scenario, &[order("a")]).await;
        assert!(mails.requests() <= 1, "{scenario}");
        let parked = queue.record("a").await.unwrap().status == Status::Parked;
        assert_eq!(parked, !played.dead_letters().is_empty(), "{scenario}: {:?}", played.outcomes());
        assert!(parked || mails.requests() == 1, "{scenario}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_or_a_fingerprint_that_changes_when_a_producer_sends_again_is_found() {
    let consumer =
        || Consumer::new("c", MemoryStore::new(), |_: Value, _: Context| async { Ok::<_, HandlerError>(()) });
    let by_id = || consumer().key_of(|event| event["id"].to_string());
    let twice = Scenario::sent_twice;
    let why = fault(consumer(), twice(), &[order("a")]).await;
    assert!(why.contains("each copy of a message ran") && why.contains("m-2: completed"), "{why}");
    // The time in its envelope is another one.
    let event = [order("a").in_cloud_event("shop", "order")];
    let why = fault(by_id(), twice(), &event).await;
    assert!(why.contains("a second copy is a conflict (m-2: conflict)"), "{why}");
    let event = [order("a").in_event_bridge("shop", "order")];
    let why = fault(by_id(), twice(), &event).await;
    assert!(why.contains("each copy of a message ran"), "{why}");
    let by_detail = consumer().key_of(|event| event["detail"].to_string()).conflicts(Conflicts::Ignore);
    TestQueue::new(by_detail).play(&twice(), &event).await.assert_done();
}

/// Whatever its end then: what was done and is a conflict when it is delivered again lies in the dead-letter queue.
#[tokio::test(start_paused = true)]
async fn a_fingerprint_that_is_another_one_each_time_is_found() {
    let made = AtomicU32::new(0);
    let handler = |_: Order, _: Context| async { Ok::<_, HandlerError>(()) };
    let consumer = Consumer::new("c", MemoryStore::new(), handler).key(|order: &Order| &order.id);
    let number = move |_: &Order| Fingerprint::of_bytes(&made.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let why = fault(consumer.fingerprint_of(1, number), Scenario::delivered_twice(), &[order("a")]).await;
    assert!(
        why.contains("is a conflict when it is delivered again") && why.contains("m-1: completed, conflict"),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_is_tried_again_and_what_it_rejects_is_dead_lettered() {
    let handler = |order: Order, cx: Context| async move {
        match (order.id.as_str(), cx.attempt()) {
            ("never", _) => Err(HandlerError::terminal("no use")),
            ("not yet", _) | ("second", 1) => Err(HandlerError::retry("no luck")),
            _ => Ok(()),
        }
    };
    let queue = || {
        let consumer = Consumer::new("c", MemoryStore::new(), handler).key(|order: &Order| &order.id);
        TestQueue::new(consumer).receives_max(3)
    };
    let messages = [order("first"), order("second"), order("never"), order("not yet")];
    let with = queue();
    with.send(&messages);
    let played = with.drain().await;
    let outcomes = ["m-1: completed", "m-2: retry, completed", "m-3: rejected", "m-4: retry, retry, retry"];
    assert_eq!(played.outcomes(), outcomes);
    assert_eq!(played.dead_letters(), ["m-3: no use", "m-4: no luck"]);
    let panic = panic_text(catch_unwind(|| played.assert_done()).unwrap_err());
    assert!(panic.contains("(m-3: rejected): it was sent to the dead-letter queue: no use"), "{panic}");
    let panic = panic_text(catch_unwind(|| played.assert_dead_lettered("no use")).unwrap_err());
    assert!(panic.contains("m-1: completed"), "{panic}");

    let redriven = queue();
    redriven.send(&[order("not yet")]);
    let played = redriven.drain().await;
    played.assert_dead_lettered("no luck");
    let panic = panic_text(catch_unwind(|| played.assert_dead_lettered("no use")).unwrap_err());
    assert!(panic.contains("m-1: retry, retry, retry"), "{panic}");

    let without = queue().without_dead_letters();
    without.send(&messages[2..]);
    let played = without.drain().await;
    assert_eq!(played.outcomes(), ["m-1: rejected, rejected, rejected", "m-2: retry, retry, retry"]);
    let panic = panic_text(catch_unwind(|| played.assert_done()).unwrap_err());
    assert!(panic.contains("it was received 3 times"), "{panic}");

    let rejected = queue();
    rejected.send(&[order("never"), TestMessage::text("{")]);
    rejected.drain().await.assert_dead_lettered("");
}

/// On Lambda, the process that stands still has another lock.
#[tokio::test(start_paused = true)]
async fn processes_that_share_a_lock_are_told_of_it() {
    let mut told = 0;
    for scenario in Scenario::all() {
        let lock = Arc::new(tokio::sync::Mutex::new(()));
        let handler = move |_: Order, _: Context| {
            let lock = Arc::clone(&lock);
            async move {
                let _held = lock.lock().await;
                tokio::task::yield_now().await;
                Ok::<_, HandlerError>(())
            }
        };
        let queue = TestQueue::new(Consumer::new("c", MemoryStore::new(), handler).key(|order: &Order| &order.id));
        let played = queue.play(&scenario, &[order("a")]).await;
        if let Err(panic) = catch_unwind(|| played.assert_done()) {
            let why = panic_text(panic);
            assert!(scenario.stops() && why.contains("Processes of a test share what the handler holds"), "{why}");
            told += 1;
        }
    }
    assert!(told > 0);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_waited_for_and_one_that_lies_is_found() {
    let mails = Effects::new();
    let queue = TestQueue::new(mailing(&mails));
    queue.store().away_for(Duration::from_secs(60), StoreErrorKind::Unreachable);
    queue.send(&[order("a")]);
    let played = queue.drain().await;
    played.assert_done();
    assert!(played.outcomes()[0].starts_with("m-1: store_failed"), "{:?}", played.outcomes());
    assert_eq!(queue.record("a").await.unwrap().attempts, 1);

    // It says that another owner has completed the key, which none has.
    let queue = TestQueue::new(mailing(&mails));
    queue.store().fail_next(Call::Settle, Fault::Refuses);
    queue.send(&[order("b")]);
    let lied = panic_text(AssertUnwindSafe(queue.drain()).catch_unwind().await.unwrap_err());
    assert!(lied.contains("m-1 was reported as done, and its record is not completed"), "{lied}");
}

/// A store of two queues.
#[derive(Clone, Default)]
struct Shared(Arc<MemoryStore>);

impl Store for Shared {
    claimant_test::pass_on!(self => self.0; claims_max, claims_outlive_owners, claim, renew, settle, get);
}

/// What was done is not blamed for what its key's record says after the window.
#[tokio::test(start_paused = true)]
async fn a_key_can_be_used_again_after_its_window() {
    let handler = |_: Order, cx: Context| async move {
        if cx.message_id() == "again" { Err(HandlerError::terminal("no use")) } else { Ok(()) }
    };
    let queue = TestQueue::new(Consumer::new("c", MemoryStore::new(), handler).key(|order: &Order| &order.id));
    queue.send(&[order("a")]);
    queue.drain().await.assert_done();
    queue.clock().advance(Duration::from_secs(16 * 86_400));
    queue.send(&[order("a").id("again")]);
    assert_eq!(queue.drain().await.outcomes(), ["m-1: completed", "again: rejected"]);

    // Also where the first one only found it done.
    let store = Shared::default();
    let queue = |store: Shared| TestQueue::new(Consumer::new("c", store, handler).key(|order: &Order| &order.id));
    let (one, other) = (queue(store.clone()), queue(store));
    one.send(&[order("b")]);
    one.drain().await.assert_done();
    other.send(&[order("b")]);
    other.drain().await.assert_done();
    other.clock().advance(Duration::from_secs(16 * 86_400));
    other.send(&[order("b").id("again")]);
    assert_eq!(other.drain().await.outcomes(), ["m-1: duplicate", "again: rejected"]);
}

#[tokio::test(start_paused = true)]
async fn one_batch_can_be_delivered_by_hand() {
    let mails = Effects::new();
    let queue = TestQueue::new(mailing(&mails));
    let report = queue.deliver(&[order("a"), order("a").id("copy")]).await;
    let words: Vec<_> = report.entries().iter().map(|entry| entry.outcome.word()).collect();
    assert_eq!((words, mails.requests()), (vec!["completed", "duplicate"], 1));
    assert!(queue.record("b").await.is_none());
    // Its messages are not those that are sent.
    queue.store().fail_next(Call::Settle, Fault::Aborts);
    queue.store().fail_next(Call::Settle, Fault::Hangs);
    queue.deliver(&[order("b")]).await;
    assert_ne!(queue.record("b").await.unwrap().status, Status::Completed);
    queue.send(&[order("c")]);
    queue.drain().await.assert_done();
}

#[tokio::test(start_paused = true)]
async fn a_scenario_in_which_nothing_happens_is_found() {
    for scenario in [Scenario::killed_at(99), Scenario::stopped_at(99)] {
        let why = fault(mailing(&Effects::new()), scenario, &[order("a")]).await;
        assert!(why.contains("there are only 7 steps"), "{why}");
    }
    let why = fault(mailing(&Effects::new()), Scenario::answers_lost(Call::Renew), &[order("a")]).await;
    assert!(why.contains("no answer was lost"), "{why}");
    // Without work there are no claims, and no answers to them.
    for scenario in Scenario::all() {
        let queue = TestQueue::new(mailing(&Effects::new()));
        queue.play(&scenario, &[TestMessage::text("{")]).await.assert_dead_lettered("");
    }
}

/// Where a scenario has fewer steps than the first one, since another thread was faster, nothing happens in it.
#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_have_to_wait_each_time_is_no_fault() {
    let (mut plays, mut least) = (0, usize::MAX);
    for scenario in Scenario::all() {
        let mails = Effects::new();
        let (waits, requests) = (plays == 0, mails.clone());
        let handler = move |order: Order, cx: Context| {
            let requests = requests.clone();
            async move {
                if waits {
                    tokio::task::yield_now().await;
                }
                requests.request(cx.key(), order.id).await
            }
        };
        let queue = TestQueue::new(Consumer::new("mails", MemoryStore::new(), handler).key(|order: &Order| &order.id));
        let played = queue.play(&scenario, &[order("a"), order("b")]).await;
        played.assert_done();
        assert_eq!(mails.once(), ["a: a", "b: b"], "{scenario}");
        (plays, least) = (plays + 1, least.min(played.steps().len()));
    }
    assert_eq!(plays, 7 + 2 * (least + 2));
}

/// No claim is made for a copy that comes in the batch of the first one.
#[tokio::test(start_paused = true)]
async fn a_copy_in_the_batch_says_why_as_well() {
    let fails =
        async |order: Order, _: Context| Err::<(), _>(HandlerError::retry(format!("{} has no stock", order.id)));
    let consumer = || Consumer::new("mails", MemoryStore::new(), fails).key(|order: &Order| &order.id);
    for copy in [order("a"), order("a").sent_again()] {
        let queue = TestQueue::new(consumer());
        queue.send(&[order("a"), copy]);
        let played = queue.drain().await;
        assert_eq!(played.dead_letters(), ["m-1: a has no stock", "m-2: a has no stock"]);
        played.assert_dead_lettered("no stock");
    }
}

/// With why its runs failed, in the dead letter and on the record.
#[tokio::test(start_paused = true)]
async fn what_has_no_attempt_left_says_why() {
    let fails =
        async |_: Order, cx: Context| Err::<(), _>(HandlerError::retry(format!("no stock at run {}", cx.attempt())));
    let each = Consumer::new("mails", MemoryStore::new(), fails).key(|order: &Order| &order.id).attempts_max(2);
    let together = async |orders: Items<Order>| {
        let fails =
            |item: &Item<Order>| Err::<(), _>(HandlerError::retry(format!("no stock at run {}", item.cx.attempt())));
        Ok(orders.iter().map(fails).collect::<Vec<_>>())
    };
    let batch = Consumer::batch("mails", MemoryStore::new(), together).key(|order: &Order| &order.id).attempts_max(2);
    for consumer in [each, batch] {
        let queue = TestQueue::new(consumer);
        queue.send(&[order("a")]);
        let played = queue.drain().await;
        let why = "it was claimed 2 times before, which is as often as it may; the last error: no stock at run 2";
        assert_eq!(played.outcomes(), ["m-1: retry, retry, rejected"]);
        assert_eq!(played.dead_letters(), [format!("m-1: {why}")]);
        assert_eq!(queue.record("a").await.unwrap().error.as_deref(), Some(why));
        played.assert_dead_lettered("no stock");
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_can_be_worked_off_in_a_task() {
    let queue = TestQueue::new(mailing(&Effects::new()));
    queue.send(&[order("a")]);
    let played = tokio::spawn(async move {
        queue.drain().await.assert_done();
        queue.play(&Scenario::as_they_come(), &[order("b")]).await
    });
    played.await.unwrap().assert_done();
}

#[tokio::test(start_paused = true)]
async fn an_outage_ends_by_the_clock_of_the_queue() {
    let mails = Effects::new();
    let queue = TestQueue::new(mailing(&mails));
    queue.store().away_for(Duration::from_secs(3_600), StoreErrorKind::Unreachable);
    queue.clock().advance(Duration::from_secs(3_600));
    queue.send(&[order("a")]);
    assert_eq!(queue.drain().await.outcomes(), ["m-1: completed"]);
}

#[test]
#[should_panic(expected = "no scenario was played")]
fn scenarios_that_are_not_played_are_no_test() {
    Scenario::all().for_each(drop);
}

/// Such as those of a directory that is empty.
#[tokio::test(start_paused = true)]
async fn no_messages_are_no_test() {
    for scenario in [Scenario::as_they_come(), Scenario::sent_twice(), Scenario::answers_lost(Call::Settle)] {
        let why = fault(mailing(&Effects::new()), scenario, &[]).await;
        assert!(why.contains("there are no messages"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "at most once needs a key")]
async fn a_consumer_that_could_not_start_is_said_so() {
    let handler = |_: Value, _: Context| async { Ok::<_, HandlerError>(()) };
    let _ = TestQueue::new(Consumer::new("c", MemoryStore::new(), handler).at_most_once());
}
