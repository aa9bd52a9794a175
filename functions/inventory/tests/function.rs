//! The built function, behind the Lambda runtime API, with a real PostgreSQL.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::net::SocketAddr;
use std::process::{Command, Output};
use std::time::Duration;

use claimant_test::cloud::{Hold, Stage, StageConfig};
use claimant_test::{TestMessage, event, event_from, message_ids};
use claimant_tests::services::Postgres;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

const FUNCTION: &str = env!("CARGO_BIN_EXE_inventory");

/// The server's user and its password, as they stand in its URL.
const USER: &str = "claimant:claimant@";

/// How long anything may take that a test waits for; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(60);

/// A database with the function's tables, and with ten teas and a teapot in stock.
struct Shop {
    server: Postgres,
    database: PgConnection,
}

impl Shop {
    async fn open() -> Self {
        let server = Postgres::shared().await;
        for _ in 0..2 {
            let migrated = migrate(&server.url());
            assert!(migrated.status.success(), "{migrated:?}");
        }
        let mut database = PgConnection::connect(&server.url()).await.unwrap();
        execute(&mut database, "INSERT INTO stock (sku, free) VALUES ('tea', 10), ('teapot', 1)").await;
        Self { server, database }
    }

    fn config(&self) -> StageConfig {
        config(&self.server.url())
    }

    /// What is reserved, as `line sku quantity`; that it is what the stock lacks is checked on the way.
    async fn reserved(&mut self) -> Vec<String> {
        let rows: Vec<(String, String, i64)> =
            sqlx::query_as("SELECT reservation_id, sku, quantity FROM reservations ORDER BY reservation_id")
                .fetch_all(&mut self.database)
                .await
                .unwrap();
        let free: Vec<(String, i64)> =
            sqlx::query_as("SELECT sku, free FROM stock").fetch_all(&mut self.database).await.unwrap();
        for (sku, stocked) in [("tea", 10), ("teapot", 1)] {
            let taken: i64 = rows.iter().filter(|row| row.1 == sku).map(|row| row.2).sum();
            assert!(free.contains(&(sku.to_owned(), stocked - taken)), "{sku}: {rows:?} {free:?}");
        }
        rows.into_iter().map(|(line, sku, quantity)| format!("{line} {sku} {quantity}")).collect()
    }

    /// The status of each record, and how often its handler ran, by key.
    async fn records(&mut self) -> Vec<(String, i64)> {
        let records = "SELECT status, attempts FROM claimant_records ORDER BY id";
        sqlx::query_as(records).fetch_all(&mut self.database).await.unwrap()
    }
}

fn config(url: &str) -> StageConfig {
    StageConfig::new(FUNCTION).variables(&[("CLAIMANT_DATABASE_URL", url)])
}

fn migrate(url: &str) -> Output {
    Command::new(FUNCTION).arg("migrate").env("CLAIMANT_DATABASE_URL", url).output().unwrap()
}

async fn execute(database: &mut PgConnection, statement: &'static str) {
    sqlx::query(statement).execute(database).await.unwrap();
}

fn line(id: &str, sku: &str, quantity: i64) -> Value {
    json!({ "reservation_id": id, "sku": sku, "quantity": quantity })
}

/// The event of these lines, each as `(message id, body)`.
fn event_of(lines: &[(&str, Value)], receive_count: u32) -> Value {
    let deliveries = lines.iter().map(|(id, body)| TestMessage::json(body).id(*id).received(receive_count));
    event(&deliveries.collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn each_line_is_reserved_once_however_often_it_comes() {
    let mut shop = Shop::open().await;
    let stage = Stage::start(shop.config()).await.unwrap();
    let sample = event_from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/events/inventory.json"));
    assert_eq!(message_ids(&sample).len(), 3, "one of them a copy");
    // A line whose record is held by a copy in the same batch is busy and comes again.
    for _ in 0..3 {
        stage.deliver_until_done(&sample, PATIENCE).await.unwrap();
    }
    assert_eq!(shop.reserved().await, ["line-1 tea 2", "line-2 teapot 1"]);

    // Redelivered, and copies with ids of their own.
    let (first, second) = (line("line-3", "tea", 1), line("line-4", "tea", 3));
    let copies = [("a", first.clone()), ("b", second.clone()), ("c", first.clone()), ("d", second), ("e", first)];
    for count in 1..=3 {
        stage.deliver_until_done(&event_of(&copies, count), PATIENCE).await.unwrap();
    }
    assert_eq!(shop.reserved().await, ["line-1 tea 2", "line-2 teapot 1", "line-3 tea 1", "line-4 tea 3"]);
    assert_eq!(shop.records().await, vec![("COMPLETED".to_owned(), 1); 4]);
    let logged = stage.stop().await;
    assert!(!logged.contains(USER), "the URL was logged");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn what_no_retry_mends_goes_to_the_dead_letter_queue_and_reserves_nothing() {
    let rows = [
        (line("l-2", "tea", 10), "not enough of this article"),
        (line("l-2", "coffee", 1), "not enough of this article"),
        (line("l-2", "tea", 0), "less than 1"),
        (line("l-2", "tea", 10_001), "more than one line may have"),
        (line("l-2", "tea\0", 1), "NUL"),
        (line("l-1", "tea", 2), "another payload"),
        (json!({ "reservation_id": "l-2", "sku": "tea", "quantity": 1.5 }), "quantity"),
    ];
    let mut shop = Shop::open().await;
    let stage = Stage::start(shop.config().dead_letters("dead")).await.unwrap();
    let good = ("a", line("l-1", "tea", 1));
    assert!(stage.failures(&event_of(std::slice::from_ref(&good), 1)).await.unwrap().is_empty());
    for (body, wanted) in rows {
        let lines = [good.clone(), ("b", body)];
        assert!(stage.failures(&event_of(&lines, 2)).await.unwrap().is_empty(), "{wanted}");
        let letters = stage.dead_letters().await.unwrap();
        assert!(matches!(&letters[..], [(id, error)] if id == "b" && error.contains(wanted)), "{wanted}: {letters:?}");
        assert_eq!(shop.reserved().await, ["l-1 tea 1"], "{wanted}");
        execute(&mut shop.database, "DELETE FROM claimant_records WHERE status = 'REJECTED'").await;
    }
    // The reservations know more than the records, which end.
    execute(&mut shop.database, "DELETE FROM claimant_records").await;
    assert!(stage.failures(&event_of(&[good], 1)).await.unwrap().is_empty());
    let letters = stage.dead_letters().await.unwrap();
    assert!(matches!(&letters[..], [(_, error)] if error.contains("reserved already")), "{letters:?}");
    assert_eq!(shop.reserved().await, ["l-1 tea 1"]);
    stage.stop().await;
}

/// The function mends neither tables nor passwords; its messages wait for whoever does.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_database_that_cannot_be_used_fails_the_messages_and_says_how_to_mend_it() {
    let mut shop = Shop::open().await;
    let (right, wrong) = (shop.server.url(), shop.server.url().replace(USER, "claimant:secret@"));
    let rows: [(&str, &str, &[&str], &str); 3] = [
        (&wrong, "SELECT 1", &["Are user and password right"], "SELECT 1"),
        (
            &right,
            "ALTER TABLE stock RENAME TO away",
            &["stock", "make the tables with `inventory migrate`"],
            "ALTER TABLE away RENAME TO stock",
        ),
        (
            &right,
            "ALTER TABLE claimant_records RENAME TO away",
            &["claimant_records", "apply the migrations"],
            "ALTER TABLE away RENAME TO claimant_records",
        ),
    ];
    let lines = event_of(&[("a", line("l-1", "tea", 1)), ("b", line("l-2", "teapot", 1))], 1);
    for (url, broken, wanted, mended) in rows {
        execute(&mut shop.database, broken).await;
        let stage = Stage::start(config(url)).await.unwrap();
        assert_eq!(stage.failures(&lines).await.unwrap(), ["a", "b"], "{wanted:?}");
        execute(&mut shop.database, mended).await;
        assert!(shop.reserved().await.is_empty(), "{wanted:?}");
        let logged = stage.stop().await;
        for wanted in wanted {
            assert!(logged.contains(wanted), "{wanted} in {logged}");
        }
        assert!(!logged.contains("secret") && !logged.contains(USER), "the URL was logged");
    }
    let stage = Stage::start(shop.config()).await.unwrap();
    stage.deliver_until_done(&lines, PATIENCE).await.unwrap();
    assert_eq!(shop.reserved().await, ["l-1 tea 1", "l-2 teapot 1"]);
    stage.stop().await;

    let refused = migrate(&wrong);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("claimant's records could not be applied"), "{said}");
    assert!(!said.contains("secret"), "the URL was shown");
}

/// Why the transaction: wherever the process dies around its commit, the stock is taken once.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_process_that_dies_at_its_commit_has_reserved_the_stock_or_not() {
    for (what, reserved_before) in [(Hold::Requests, 1), (Hold::Answers, 2)] {
        let mut shop = Shop::open().await;
        let server: SocketAddr = shop.server.address().parse().unwrap();
        let config = StageConfig::new(FUNCTION);
        let url = shop.server.url();
        let over = move |gate: SocketAddr| url.replace(&server.to_string(), &gate.to_string());
        let config = config.gated("CLAIMANT_DATABASE_URL", server, over);
        let stage = Stage::start(config).await.unwrap();
        let first = event_of(&[("a", line("l-1", "tea", 1))], 1);
        assert!(stage.failures(&first).await.unwrap().is_empty());
        let second = event_of(&[("b", line("l-2", "tea", 3))], 1);
        stage.invoke_and_kill_at(what, "COMMIT; ", &second).await.unwrap();
        assert_eq!(shop.reserved().await, ["l-1 tea 1", "l-2 tea 3"][..reserved_before], "{what:?}");
        // The server may need a moment to see that its client is gone.
        stage.deliver_until_done(&second, PATIENCE).await.unwrap();
        assert_eq!(shop.reserved().await, ["l-1 tea 1", "l-2 tea 3"], "{what:?}");
        assert_eq!(shop.records().await, vec![("COMPLETED".to_owned(), 1); 2], "{what:?}");
        stage.stop().await;
    }
}
