//! What a test that fails is told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use claimant_core::{
    BoxFuture, Call as StoreCall, Consumer, Context, HandlerError, MemoryStore, Record, RecordId, Store, StoreError,
    StoreErrorKind,
};
use claimant_test::{Call, Fault, Scenario, TestMessage, TestQueue};
use futures_util::FutureExt as _;

use super::scenarios::{Order, order, panic_text};

fn consumer(store: impl Store) -> Consumer<Order> {
    let handler = |order: Order, _: Context| async move {
        tokio::task::yield_now().await;
        if order.id == "bad" { Err(HandlerError::retry("no luck")) } else { Ok(()) }
    };
    Consumer::new("c", store, handler).key(|order| &order.id)
}

/// Of a queue, or a store.
#[tokio::test(start_paused = true)]
async fn what_was_used_before_shows_nothing_and_is_found() {
    let store = Arc::new(MemoryStore::new());
    assert!(!Arc::clone(&store).records_outlive_process());
    let queue = TestQueue::new(consumer(Arc::clone(&store)));
    queue.play(&Scenario::as_they_come(), &[order("a")]).await.assert_done();
    for queue in [&queue, &TestQueue::new(consumer(store))] {
        for scenario in [
            Scenario::delivered_twice(),
            Scenario::sent_twice(),
            Scenario::beside_itself(),
            Scenario::answers_lost(Call::Settle),
            Scenario::killed_at(2),
        ] {
            let played = AssertUnwindSafe(queue.play(&scenario, &[order("a")])).catch_unwind().await;
            let why = panic_text(played.expect_err("it shows nothing"));
            assert!(why.contains("the work was done before"), "{why}");
        }
    }
    queue.play(&Scenario::as_they_come(), &[order("a"), order("b")]).await.assert_done();
    // Of what is begun here, the rest is a duplicate, or one of the messages is not.
    queue.store().fail_next(Call::Settle, Fault::Applied(StoreErrorKind::Corrupt));
    queue.play(&Scenario::as_they_come(), &[order("c")]).await.assert_done();
    let played = queue.play(&Scenario::as_they_come(), &[order("a"), TestMessage::text("no order")]).await;
    assert_eq!(played.outcomes().last().unwrap().split(": ").last(), Some("rejected"));
}

#[tokio::test(start_paused = true)]
async fn of_many_steps_those_that_matter_are_shown_with_their_invocation() {
    let messages: Vec<_> = (0..20).map(|number| order(&number.to_string())).chain([order("bad")]).collect();
    let queue = TestQueue::new(consumer(MemoryStore::new()));
    let played = queue.play(&Scenario::killed_at(40), &messages).await;
    let why = panic_text(catch_unwind(|| played.assert_done()).unwrap_err());
    let steps: Vec<_> = why.lines().filter(|line| line.starts_with("  step ")).collect();
    assert!(steps.len() < 60 && played.steps().len() > 100, "{why}");
    assert!(steps.iter().any(|step| step.starts_with("  step 40, invocation 1: ")), "{why}");
    let last = format!("  step {}, invocation ", played.steps().len());
    assert!(steps.last().unwrap().starts_with(&last) && why.contains(" more: Played::steps"), "{why}");
    let why = panic_text(catch_unwind(|| played.assert_dead_lettered("no luck")).unwrap_err());
    assert!(why.ends_with("it is done"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_no_call_met_is_left() {
    let queue = TestQueue::new(consumer(MemoryStore::new()));
    queue.store().fail_next(Call::Renew, Fault::AnswerLost);
    queue.store().fail_next(Call::Settle, Fault::AnswerLost);
    queue.play(&Scenario::as_they_come(), &[order("a")]).await.assert_done();
    assert_eq!([Call::Renew, Call::Settle].map(|call| queue.store().left(call)), [1, 0]);
}

/// A store whose client waits for an answer that needs real time.
struct OnAServer(MemoryStore);

impl Store for OnAServer {
    fn get<'a>(&'a self, _: &'a RecordId, call: StoreCall<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            tokio::time::sleep(call.within).await;
            Err(StoreError::no_answer(call.within))
        })
    }

    claimant_test::pass_on!(self => self.0; claim, settle, renew);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "leave out start_paused")]
async fn a_server_that_has_no_real_time_is_not_blamed() {
    TestQueue::new(consumer(OnAServer(MemoryStore::new())))
        .play(&Scenario::as_they_come(), &[order("a")])
        .await
        .assert_done();
}
