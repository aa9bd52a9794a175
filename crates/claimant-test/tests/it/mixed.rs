//! Scenarios with messages that are not all done.

use claimant_core::{Consumer, Context, HandlerError, MemoryStore};
use claimant_test::{Scenario, TestMessage, TestQueue};

use crate::scenarios::{Order, order};

fn queue() -> TestQueue {
    let handler = |order: Order, _: Context| async move {
        if order.id == "never" { Err(HandlerError::terminal("no use")) } else { Ok(()) }
    };
    TestQueue::new(Consumer::new("c", MemoryStore::new(), handler).key(|order: &Order| &order.id))
}

/// Also where one of them is a suspect, before whose turn the others are deleted.
#[tokio::test(start_paused = true)]
async fn what_is_rejected_beside_others_is_dead_lettered_whatever_happens() {
    for scenario in Scenario::all() {
        let messages = [order("a"), TestMessage::text("{"), order("never")];
        let played = queue().play(&scenario, &messages).await;
        let (sent, letters) = (played.outcomes().len(), played.dead_letters());
        assert_eq!(letters.len(), sent / 3 * 2, "{scenario}: {letters:?}");
        let is_known = |letter: &String| {
            ["no use", "rejected on an earlier", "not valid JSON"].iter().any(|why| letter.contains(why))
        };
        assert!(letters.iter().all(is_known), "{scenario}: {letters:?}");
    }
}
