//! Transactional consumers whose processes are killed at every step: the effect is there once. And what happens without
//! the transaction.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use claimant_sql::{MySqlStore, PostgresStore};
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::kill::{CREATE_EFFECTS, EFFECTS, LOCKS, Run, Step, Victim};
use claimant_tests::services::{MariaDb, Postgres};

const WORKER: &str = env!("CARGO_BIN_EXE_kill-worker");

/// How a server's address is given to the worker.
type Endpoint = fn(std::net::SocketAddr) -> String;

/// How often each step is tried.
const ROUNDS: usize = 2;

/// What kills at every step came to.
#[derive(Debug, Default)]
struct Count {
    kills: usize,
    steps: usize,
    deliveries: u32,
    /// Keys whose effect was there more than once.
    repeated: usize,
}

/// Kills a process at its first piece of traffic, its second, and so on until one comes to its end; each time delivers the
/// message until it is done, and looks at its effects, which must be there at least once.
async fn kill_at_every_step(victim: &Victim, effects: impl AsyncFn(String) -> u32) -> Count {
    let mut count = Count::default();
    for round in 0..ROUNDS {
        for arrives in [true, false] {
            for piece in 1.. {
                let key = format!("{}-{round}-{arrives}-{piece}", victim.store);
                let run = victim.run_until(&key, Step { piece, arrives }).await.unwrap();
                if let Run::Ended(outcome) = run {
                    assert_eq!(outcome, "completed", "{key}");
                    count.steps = count.steps.max(piece - 1);
                    break;
                }
                count.kills += 1;
                count.deliveries += victim.run_until_done(&key).await.unwrap();
                let effects = effects(key.clone()).await;
                assert!(effects > 0, "{key} is done and has no effect");
                count.repeated += usize::from(effects > 1);
            }
        }
    }
    println!("{}: {count:?}", victim.store);
    assert!(count.kills >= ROUNDS * 4, "{count:?}: too few steps to be true");
    count
}

async fn dynamodb(dynamodb: DynamoDb) {
    dynamodb.lock_table(LOCKS).await;
    let client = dynamodb.client();
    let schema = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap();
    let id = AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S);
    let create = client.create_table().table_name(EFFECTS).key_schema(schema);
    let create = create.attribute_definitions(id.build().unwrap()).billing_mode(BillingMode::PayPerRequest);
    create.send().await.unwrap();
    let effects = async |key: String| {
        let read = client.get_item().table_name(EFFECTS).key("id", AttributeValue::S(key)).consistent_read(true);
        let item = read.send().await.unwrap().item.unwrap_or_default();
        item.get("effects").map_or(0, |n| n.as_n().unwrap().parse().unwrap())
    };
    let server = dynamodb.endpoint.strip_prefix("http://").unwrap().parse().unwrap();
    let endpoint: Endpoint = |address| format!("http://{address}");
    for (store, exactly_once) in
        [("dynamodb-transactions", true), ("dynamodb-optimistic", true), ("dynamodb-leased", false)]
    {
        check(Victim { program: WORKER, store, server, endpoint }, exactly_once, &effects).await;
    }
}

/// Whether the effect of every key is there once, or, where it is not to be, that some are there more often.
async fn check(victim: Victim, exactly_once: bool, effects: impl AsyncFn(String) -> u32) {
    let count = kill_at_every_step(&victim, effects).await;
    assert_eq!(count.repeated == 0, exactly_once, "{}: {count:?}", victim.store);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_on_the_embedded_dynamodb() {
    dynamodb(DynamoDb::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local: make test"]
async fn killed_at_every_step_on_dynamodb_local() {
    dynamodb(DynamoDb::local()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn killed_at_every_step_on_postgres() {
    let postgres = Postgres::start();
    let store = PostgresStore::connect(&postgres.url(), 2).await.unwrap();
    store.migrate().await.unwrap();
    sqlx::query(CREATE_EFFECTS).execute(store.pool()).await.unwrap();
    let effects = async |key: String| {
        let read = sqlx::query_scalar("SELECT effects FROM kill_effects WHERE id = $1").bind(key);
        let effects: Option<i32> = read.fetch_optional(store.pool()).await.unwrap();
        u32::try_from(effects.unwrap_or_default()).unwrap()
    };
    let server = postgres.address().parse().unwrap();
    let endpoint: Endpoint = |address| format!("postgres://claimant:claimant@{address}/claimant");
    for (store, exactly_once) in [("postgres-transactions", true), ("postgres-leased", false)] {
        check(Victim { program: WORKER, store, server, endpoint }, exactly_once, &effects).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn killed_at_every_step_on_mariadb() {
    let mariadb = MariaDb::start();
    let store = MySqlStore::connect(&mariadb.url(), 2).await.unwrap();
    store.migrate().await.unwrap();
    sqlx::query(CREATE_EFFECTS).execute(store.pool()).await.unwrap();
    let effects = async |key: String| {
        let read = sqlx::query_scalar("SELECT effects FROM kill_effects WHERE id = ?").bind(key);
        let effects: Option<i32> = read.fetch_optional(store.pool()).await.unwrap();
        u32::try_from(effects.unwrap_or_default()).unwrap()
    };
    let server = mariadb.address().parse().unwrap();
    let endpoint: Endpoint = |address| format!("mysql://claimant:claimant@{address}/claimant");
    for (store, exactly_once) in [("mysql-transactions", true), ("mysql-leased", false)] {
        check(Victim { program: WORKER, store, server, endpoint }, exactly_once, &effects).await;
    }
}
