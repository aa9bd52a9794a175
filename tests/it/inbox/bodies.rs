//! What rows hold: columns that no worker can read, and bodies that are much for the line to the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claimant::Limit;
use claimant_inbox::{Inbox, Summary};
use claimant_servers::relay::{Direction, Fate, Relay, Rule};
use claimant_sql::PostgresStore;
use serde_json::json;

use super::world::{CONSUMER, LATER, WITHIN, World, body, record, run};

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
    behind(world, connections, Slow).await
}

/// The inbox over a line with this rule.
async fn behind(world: &World, connections: u32, rule: impl Rule) -> (Inbox, Relay) {
    let relay = Relay::start(world.server.address(), Arc::new(rule)).await.unwrap();
    let url = world.server.url().replace(world.server.address(), &relay.address.to_string());
    (Inbox::connect(&url, connections).await.unwrap(), relay)
}

/// The body of this message.
fn large(id: &str, bytes: usize) -> String {
    json!({ "id": id, "type": "ok", "rest": "x".repeat(bytes) }).to_string()
}

/// Stores a message with a body that the server makes: to send one, a busy machine can take longer than an invocation has.
async fn store_large(world: &World, id: &str, bytes: i32) {
    assert_eq!(world.deliver(vec![record(id, &large(id, 0))]).await, [""; 0]);
    let grow = "UPDATE claimant_inbox SET body = convert_to(replace(convert_from(body, 'UTF8'), '\"rest\":\"', '\"rest\":\"' || repeat('x', $2)), \
                'UTF8') WHERE record_id = $1";
    let grow = sqlx::query(grow).bind(format!("{CONSUMER}#{id}").into_bytes()).bind(bytes);
    grow.execute(&mut world.party().await).await.unwrap();
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

/// Whatever takes it: here the server, for longer than a short statement has.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_large_message_has_the_time_to_be_stored() {
    let world = World::start(2).await;
    world
        .sql(
            "CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2.1); RETURN NEW; END $$; \
             CREATE TRIGGER take_time BEFORE INSERT ON claimant_inbox FOR EACH ROW EXECUTE FUNCTION take_time()",
        )
        .await;
    assert_eq!(world.deliver(vec![record("m1", &large("large", 16 << 20))]).await, [""; 0]);
    assert_eq!(world.state("large").await.0, "PENDING");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_large_message_has_the_time_to_be_worked_off() {
    let world = World::start(2).await;
    store_large(&world, "large", 32 << 20).await;
    assert_eq!(world.deliver(vec![record("m2", &body("small", "ok"))]).await, [""; 0]);
    let (inbox, _relay) = slow(&world, 2).await;
    let world = World { inbox, ..world };
    let summary = run(&world.worker().timeout(Duration::from_secs(20))).await;
    assert_eq!(summary, Summary { done: 2, ..Summary::default() });
    assert_eq!(world.state("large").await, ("DONE".to_owned(), 1, String::new()));
}

/// It is tried again after its backoff, as any other, and what is due beside it is done: also where it has the only connection.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_that_does_not_come_in_time_fails_alone() {
    let mut world = World::start(2).await;
    let direct = world.inbox.clone();
    store_large(&world, "large", 64 << 20).await;
    for (attempt, connections) in [(1, 4), (2, 1)] {
        world.put(&["ok"]).await;
        let (inbox, _relay) = slow(&world, connections).await;
        world.inbox = inbox;
        let summary = run(&world.worker().timeout(Duration::from_millis(500))).await;
        assert_eq!(summary, Summary { done: 1, failed: 1, ..Summary::default() }, "{connections} connections");
        let (status, attempts, error) = world.state("large").await;
        assert_eq!((status.as_str(), attempts), ("PENDING", attempt));
        assert!(error.contains("Worker::timeout"), "{error}");
        assert_eq!(suspects(&world).await, 0);
        world.sql("DELETE FROM claimant_inbox WHERE status = 'DONE'").await;
        world.inbox = direct.clone();
        world.clock.advance(LATER);
    }
}

/// Returns how many messages are tried alone, since the end of their last attempt was not written.
async fn suspects(world: &World) -> i64 {
    let cut_off = "SELECT count(*) FROM claimant_inbox WHERE cut_off";
    sqlx::query_scalar(cut_off).fetch_one(&mut world.party().await).await.unwrap()
}

/// A line that is lost wherever an answer is large.
struct Brittle {
    /// Pieces of answers since the last request.
    pieces: AtomicUsize,
    fate: Fate,
}

impl Brittle {
    fn new(fate: Fate) -> Self {
        Self { pieces: AtomicUsize::new(0), fate }
    }
}

impl Rule for Brittle {
    const PIECE_MAX_BYTES: usize = 4_096;

    async fn fate(&self, direction: Direction) -> Fate {
        if direction == Direction::Request {
            self.pieces.store(0, Ordering::SeqCst);
        }
        if self.pieces.fetch_add(1, Ordering::SeqCst) < 50 { Fate::Pass } else { self.fate }
    }
}

/// What is wrong with it at the server, or on the way, is wrong each time.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_whose_body_never_comes_is_dead_in_the_end() {
    let world = World::start(2).await;
    assert_eq!(world.deliver(vec![record("m1", &large("damaged", 1 << 20))]).await, [""; 0]);
    // The server lets no statement change what it keeps of large columns, unless it is taken for a table.
    world
        .sql(
            "DO $$ DECLARE parts oid := reltoastrelid FROM pg_class WHERE oid = 'claimant_inbox'::regclass; BEGIN \
             UPDATE pg_class SET relkind = 'r' WHERE oid = parts; \
             EXECUTE format('INSERT INTO %1$s SELECT chunk_id, max(chunk_seq) + 1, ''x'' FROM %1$s GROUP BY chunk_id', \
             parts::regclass); \
             UPDATE pg_class SET relkind = 't' WHERE oid = parts; END $$",
        )
        .await;
    assert_eq!(world.deliver(vec![record("m2", &large("cut", 1 << 20))]).await, [""; 0]);
    world.put(&["ok"]).await;
    let (inbox, _relay) = behind(&world, 4, Brittle::new(Fate::Cut)).await;
    let world = World { inbox, ..world };
    let worker = world.worker().attempts_max(2).concurrency(1);
    assert_eq!(run(&worker).await, Summary { done: 1, failed: 2, ..Summary::default() });
    assert_eq!(suspects(&world).await, 0);
    world.clock.advance(LATER);
    assert_eq!(run(&worker).await, Summary { dead: 2, ..Summary::default() });
    for (key, says) in [("damaged", "XX001"), ("cut", "connection failed")] {
        let (status, attempts, error) = world.state(key).await;
        assert_eq!((status.as_str(), attempts), ("DEAD", 2), "{key}");
        assert!(error.contains("reading its body") && error.contains(says), "{error}");
        assert!(!error.contains("Worker::timeout"), "{error}");
    }
}

/// As where so large a body is more than it has memory for: not even which connection has locked the row comes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_whose_body_ends_the_server_is_dead_in_the_end() {
    let world = World::start(2).await;
    world.put(&["ok"]).await;
    world
        .sql(
            "CREATE FUNCTION txid_current() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN 1; END $$; \
             DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$",
        )
        .await;
    let inbox = Inbox::connect(&world.server.url(), 2).await.unwrap();
    let world = World { inbox, ..world };
    let worker = world.worker().attempts_max(2);
    assert_eq!(run(&worker).await, Summary { failed: 1, ..Summary::default() });
    world.clock.advance(LATER);
    assert_eq!(run(&worker).await, Summary { dead: 1, ..Summary::default() });
    let (status, attempts, error) = world.state("ok").await;
    assert_eq!((status.as_str(), attempts), ("DEAD", 2));
    assert!(error.contains("reading its body failed") && error.contains("57P01"), "{error}");
}

/// It has the row locked until it is ended.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_server_that_is_not_told_of_a_lost_line_is_rid_of_the_transaction() {
    let world = World::start(2).await;
    let direct = world.inbox.clone();
    store_large(&world, "large", 32 << 20).await;
    let (inbox, _relay) = behind(&world, 2, Brittle::new(Fate::Deserted)).await;
    let world = World { inbox, ..world };
    assert_eq!(run(&world.worker()).await, Summary { failed: 1, ..Summary::default() });
    assert_eq!(suspects(&world).await, 0);
    let world = World { inbox: direct, ..world };
    world.clock.advance(LATER);
    assert_eq!(run(&world.worker()).await, Summary { done: 1, ..Summary::default() });
}

/// Another one may not come in its time, or take of the handler's.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_that_is_slow_to_come_keeps_its_turn_of_a_limit() {
    let world = World::start(4).await;
    let store = PostgresStore::new(world.inbox.pool().clone());
    store.migrate().await.unwrap();
    store_large(&world, "large", 12 << 20).await;
    world.put(&["ok", "slow"]).await;
    let (inbox, _relay) = slow(&world, 6).await;
    let world = World { inbox, ..world };
    let summary = run(&world.worker().concurrency(4).limit(Limit::new("ses").at_once(1).slots(1), store)).await;
    assert_eq!(summary, Summary { done: 3, ..Summary::default() });
    let first = "SELECT key FROM effects ORDER BY id LIMIT 1";
    let first: String = sqlx::query_scalar(first).fetch_one(&mut world.party().await).await.unwrap();
    assert_eq!(first, "large");
}
