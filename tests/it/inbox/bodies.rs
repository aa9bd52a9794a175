//! What rows hold: columns that no worker can read, and bodies that are much for the line to the database.

use std::sync::Arc;
use std::time::Duration;

use claimant_inbox::{Inbox, Summary};
use claimant_servers::relay::{Direction, Fate, Relay, Rule};
use serde_json::json;

use super::world::{CONSUMER, WITHIN, World, body, record, run};

/// It is dead, and those that are taken with it are worked off.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_row_that_cannot_be_read_fails_alone() {
    let world = World::start(4).await;
    for (column, spoil) in [
        ("body", r"UPDATE claimant_inbox SET body = '\xff' WHERE record_id = 'orders#bad'"),
        ("event_type", r"UPDATE claimant_inbox SET event_type = '\xff' WHERE record_id = 'orders#bad'"),
        ("message_id", r"UPDATE claimant_inbox SET message_id = '' WHERE record_id = 'orders#bad'"),
        ("group_name", r"UPDATE claimant_inbox SET group_name = '\xff' WHERE record_id = 'orders#bad'"),
        ("attempts", "UPDATE claimant_inbox SET attempts = -5 WHERE record_id = 'orders#bad'"),
        ("received_at", "UPDATE claimant_inbox SET received_at = -1 WHERE record_id = 'orders#bad'"),
        ("fence", "UPDATE claimant_inbox SET fence = -5 WHERE record_id = 'orders#bad'"),
        ("trace", r"UPDATE claimant_inbox SET trace = '\xff' WHERE record_id = 'orders#bad'"),
    ] {
        world.sql("TRUNCATE claimant_inbox, effects").await;
        world.deliver(["bad", "good", "ok"].map(|key| record(key, &body(key, "ok"))).to_vec()).await;
        world.sql(spoil).await;
        let summary = run(&world.worker().concurrency(3).attempts_max(1)).await;
        assert_eq!(summary, Summary { done: 2, dead: 1, ..Summary::default() }, "{column}");
        assert_eq!(world.effects().await, ["good", "ok"], "{column}");
        let dead = world.inbox.dead(CONSUMER, 0, 10, WITHIN).await.unwrap();
        let error = dead[0].error.as_deref().unwrap();
        assert!(dead.len() == 1 && error.contains(&format!("column {column} is not of the form")), "{error}");
    }
}

/// A line on which a connection brings some 4 MiB a second, and takes twice as much.
struct Slow;

impl Rule for Slow {
    async fn fate(&self, direction: Direction) -> Fate {
        Fate::Late(Duration::from_millis(if direction == Direction::Request { 6 } else { 12 }))
    }
}

/// The inbox over a slow line.
async fn slow(world: &World, connections: u32) -> (Inbox, Relay) {
    let relay = Relay::start(world.server.address(), Arc::new(Slow)).await.unwrap();
    let url = world.server.url().replace(world.server.address(), &relay.address.to_string());
    (Inbox::connect(&url, connections).await.unwrap(), relay)
}

/// None of them is lost in an answer that does not come in time, where each would have lost an attempt; and no worker keeps what it has not
/// taken from the other.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn workers_on_slow_lines_share_large_messages() {
    let world = World::start(2).await;
    world.put(&["ok"]).await;
    world.sql(
        "INSERT INTO claimant_inbox (record_id, consumer, event_type, body, fingerprint, message_id, owner, next_attempt_at, \
         received_at, updated_at) SELECT convert_to('orders#' || n, 'UTF8'), consumer, event_type, \
         convert_to('{\"id\":\"' || n || '\",\"type\":\"ok\",\"rest\":\"' || repeat('x', 1048576) || '\"}', 'UTF8'), \
         fingerprint, message_id, owner, next_attempt_at, received_at, updated_at \
         FROM claimant_inbox, generate_series(1, 30) n",
    )
    .await;
    let ((inbox, _first), (other, _second)) = (slow(&world, 30).await, slow(&world, 30).await);
    let world = World { inbox, ..world };
    let first = world.worker().concurrency(15);
    let world = World { inbox: other, ..world };
    let second = world.worker().concurrency(15);
    let (a, b) = tokio::join!(run(&first), run(&second));
    assert!(a.done > 0 && b.done > 0 && a.done + b.done == 31, "{a:?} {b:?}");
    let once = "SELECT count(*) FROM claimant_inbox WHERE attempts = 1 AND status = 'DONE'";
    assert_eq!(sqlx::query_scalar::<_, i64>(once).fetch_one(&mut world.party().await).await.unwrap(), 31);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_large_message_has_the_time_to_be_stored() {
    let world = World::start(2).await;
    let (inbox, _relay) = slow(&world, 2).await;
    let world = World { inbox, ..world };
    let large = json!({ "id": "large", "type": "ok", "rest": "x".repeat(16 << 20) }).to_string();
    assert_eq!(world.deliver(vec![record("m1", &large)]).await, [""; 0]);
    assert_eq!(world.state("large").await.0, "PENDING");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_large_message_has_the_time_to_be_worked_off() {
    let world = World::start(2).await;
    let large = json!({ "id": "large", "type": "ok", "rest": "x".repeat(32 << 20) }).to_string();
    assert_eq!(world.deliver(vec![record("m1", &large), record("m2", &body("small", "ok"))]).await, [""; 0]);
    let (inbox, _relay) = slow(&world, 2).await;
    let world = World { inbox, ..world };
    let summary = run(&world.worker().timeout(Duration::from_secs(20))).await;
    assert_eq!(summary, Summary { done: 2, ..Summary::default() });
    assert_eq!(world.state("large").await, ("DONE".to_owned(), 1, String::new()));
}

/// It is tried again, and what is due beside it is done.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_that_does_not_come_in_time_fails_alone() {
    let world = World::start(2).await;
    let large = json!({ "id": "large", "type": "ok", "rest": "x".repeat(64 << 20) }).to_string();
    assert_eq!(world.deliver(vec![record("m1", &large), record("m2", &body("small", "ok"))]).await, [""; 0]);
    let (inbox, _relay) = slow(&world, 4).await;
    let world = World { inbox, ..world };
    let summary = run(&world.worker().timeout(Duration::from_millis(500))).await;
    assert_eq!((summary.done, summary.failed + summary.unknown), (1, 1), "{summary:?}");
    assert_eq!(world.effects().await, ["small"]);
}
