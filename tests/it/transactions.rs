//! Transactional consumers on DynamoDB: the effect is there exactly when the key is completed, whatever answers are lost.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, ConditionCheck, KeySchemaElement, KeyType, Put,
    ScalarAttributeType, Update,
};
use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::protocol::Ending;
use claimant_core::{
    AnyTransaction, Call, Claim, Consumer, Context, Engine, HandlerError, InvocationTime, Key, Meter, NoQueue, Record,
    RecordId, Report, Settled, Store, TransactionGuard,
};
use claimant_dynamodb::{LockTable, TRANSACTION_MAX_BYTES, Transaction};
use claimant_testkit::MovableClock;
use claimant_testkit::contract::{self, Effects};
use claimant_testkit::outcomes::{Work, message};
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::wire::Loss::{self, Answer, Instead, Request};
use claimant_tests::wire::Wire;
use tokio::sync::Barrier;

use crate::model;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Longer than any lease here.
const LONG: Duration = Duration::from_secs(2_000);

const EFFECTS: &str = "effects";

const ARRIVES: Loss = Loss::None;

/// What DynamoDB says where another transaction is in the way.
const CONFLICT: Loss = Instead(
    400,
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict"}]}"#,
);

/// What it says of a write that it does not take, here the handler's first one.
const INVALID: Loss = Instead(
    400,
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[{"Code":"None"},{"Code":"ValidationError","Message":"The parameter cannot be converted to a numeric value: secret-4711"}]}"#,
);

/// What it says of a request that it does not take.
const NOT_A_NUMBER: Loss = Instead(
    400,
    r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"The parameter cannot be converted to a numeric value: secret-4711"}"#,
);

const THROTTLED: Loss =
    Instead(400, r#"{"__type":"com.amazon.coral.availability#ThrottlingException","message":"rate exceeded"}"#);

const DENIED: Loss =
    Instead(400, r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized"}"#);

/// What it says where the role may not use the KMS key of a table.
const NO_KEY: Loss = Instead(
    400,
    r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"KMS key access denied error: x"}"#,
);

/// What it says while that key is disabled, of a request and of one of its writes.
const KEY_DISABLED: Loss = Instead(
    400,
    r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"KMS key disabled error: x is disabled"}"#,
);
const KEY_OF_WRITE_DISABLED: Loss = Instead(
    400,
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[{"Code":"None"},{"Code":"ValidationError","Message":"KMS key disabled error: x is disabled"}]}"#,
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Claimed,
    Optimistic,
}

/// A lock table, a table of effects, and a consumer whose handler counts its effects there.
struct World {
    engine: Engine,
    clock: MovableClock,
    wire: Wire,
    table: LockTable,
    effects: Items,
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

/// One more effect of this key.
fn count(key: &str) -> Update {
    let update = Update::builder().table_name(EFFECTS).key("id", text(key)).update_expression("ADD effects :one");
    update.expression_attribute_values(":one", AttributeValue::N("1".into())).build().unwrap()
}

fn absent(table: &str) -> ConditionCheck {
    let check = ConditionCheck::builder().table_name(table).key("id", text("missing"));
    check.condition_expression("attribute_exists(id)").build().unwrap()
}

async fn act(
    work: Work,
    mut tx: TransactionGuard<Transaction>,
    _: Context,
    both: Arc<Barrier>,
) -> Result<(), HandlerError> {
    tx.update(count(&work.id));
    match work.action.as_str() {
        "ok" => {}
        "meet" => {
            both.wait().await;
        }
        "replace" => {
            *tx = Transaction::default();
            tx.update(count(&work.id));
        }
        "fail" => return Err(HandlerError::retry("no luck")),
        "reject" => return Err(HandlerError::terminal("no use")),
        "keep" => drop(tokio::spawn(async move {
            let _kept = tx;
            std::future::pending::<()>().await;
        })),
        "object" => {
            tx.check(absent(EFFECTS));
        }
        "objectRetry" => tx.check(absent(EFFECTS)).or_retry("not there yet"),
        "objectTerminal" => tx.check(absent(EFFECTS)).or_terminal("never there"),
        "noTable" => {
            tx.check(absent("no-such-table"));
        }
        "many" => (0..99).for_each(|n| {
            tx.update(count(&format!("more {n}")));
        }),
        "large" => {
            let put = Put::builder().table_name(EFFECTS).item("id", text("large"));
            tx.put(put.item("data", text(&"x".repeat(TRANSACTION_MAX_BYTES))).build()?);
        }
        other => panic!("no action {other}"),
    }
    Ok(())
}

impl World {
    async fn new(dynamodb: &DynamoDb, variant: Variant, name: &str) -> Self {
        let (wire, clock, both) = (Wire::default(), MovableClock::start(), Arc::new(Barrier::new(2)));
        let lock = format!("locks-{name}-{variant:?}");
        dynamodb.lock_table(&lock).await;
        let table = LockTable::new(dynamodb.client_over(&wire), &lock);
        let handler = move |work, tx, cx| act(work, tx, cx, Arc::clone(&both));
        let consumer = match variant {
            Variant::Claimed => Consumer::transactional("effects", table.clone().transactions(), handler),
            Variant::Optimistic => Consumer::transactional("effects", table.clone().optimistic_transactions(), handler),
        };
        let engine = Engine::with_defaults(consumer.key(|w| &w.id)).unwrap().clock(Arc::new(clock.clone()));
        Self {
            engine,
            clock,
            wire,
            table: LockTable::new(dynamodb.client(), table.name()),
            effects: Items(dynamodb.client()),
        }
    }

    async fn process(&self, text: &str, receive_count: u32) -> Report {
        self.process_within(text, receive_count, TIMEOUT).await
    }

    async fn process_within(&self, text: &str, receive_count: u32, timeout: Duration) -> Report {
        let now = self.engine.now();
        let time = InvocationTime::new(now, now.plus(timeout), Duration::from_millis(MARGIN_DEFAULT_MS));
        self.engine.process(&[message(0, text, receive_count)], time, &NoQueue).await
    }

    async fn deliver(&self, text: &str, receive_count: u32) -> &'static str {
        self.process(text, receive_count).await.entries()[0].outcome.word()
    }

    async fn effects(&self, key: &str) -> usize {
        self.effects.count(key).await
    }

    async fn record(&self, key: &str) -> Option<Record> {
        let (id, meter) = (RecordId::new(self.engine.name(), &Key::new(key).unwrap()), Meter::default());
        self.table.get(&id, Call { within: TIMEOUT, meter: &meter }).await.unwrap()
    }
}

async fn make_effects(dynamodb: &DynamoDb) {
    let schema = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap();
    let id = AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S);
    let create = dynamodb.client().create_table().table_name(EFFECTS).key_schema(schema);
    let create = create.attribute_definitions(id.build().unwrap()).billing_mode(BillingMode::PayPerRequest);
    create.send().await.unwrap();
}

/// Losses of the requests of the first delivery from the commit on, then a second delivery when every lease is over.
async fn lost_answers(dynamodb: &DynamoDb, variant: Variant) {
    let world = World::new(dynamodb, variant, "losses").await;
    let rows: &[(&str, &[Loss], &str)] = &[
        ("nothing is lost", &[], "completed duplicate"),
        ("the answer", &[Answer], "completed duplicate"),
        ("the request", &[Request], "completed duplicate"),
        ("the answers of all tries", &[Answer, Answer, Answer], "completed duplicate"),
        ("the look, too", &[Answer, Answer, Answer, Request, Request, Request], "completed duplicate"),
        ("all for a while after a lost answer", &[&[Answer][..], &[Request; 40]].concat(), "completed duplicate"),
        ("all for a while", &[Request; 40], "completed duplicate"),
        ("everything after a lost answer", &[&[Answer][..], &[Request; 999]].concat(), "settle_unknown duplicate"),
        ("everything", &[Request; 999], "settle_unknown completed"),
        ("a conflict", &[CONFLICT, CONFLICT], "completed duplicate"),
        ("a conflict after a lost answer", &[Answer, CONFLICT], "completed duplicate"),
    ];
    for (name, losses, wanted) in rows {
        let text = format!("{variant:?}-{} ok", name.replace(' ', "-"));
        if variant == Variant::Claimed {
            world.wire.script(&[ARRIVES]);
        }
        world.wire.script(losses);
        let _ = world.wire.take_tokens();
        let timeout = if wanted.starts_with("settle_unknown") { TIMEOUT / 10 } else { TIMEOUT };
        let first = world.process_within(&text, 1, timeout).await.entries()[0].outcome.word();
        let mut tokens = world.wire.take_tokens();
        tokens.dedup();
        assert_eq!(tokens.len(), 1, "{variant:?}, {name}: each try has the same one");
        world.wire.forget_script();
        world.clock.advance(LONG);
        let second = world.deliver(&text, 2).await;
        assert_eq!(format!("{first} {second}"), *wanted, "{variant:?}, {name}");
        assert_eq!(world.effects(text.split(' ').next().unwrap()).await, 1, "{variant:?}, {name}");
    }
}

/// What a transaction that cannot commit comes to: twice delivered, with the record's error and no effect.
async fn refusals(dynamodb: &DynamoDb, variant: Variant) {
    let world = World::new(dynamodb, variant, "refusals").await;
    let rows: &[(&str, &[Loss], &str, &str, &str)] = &[
        ("fail", &[], "retry retry", "FAILED", "no luck"),
        ("fail", &[Answer], "retry retry", "FAILED", "no luck"),
        ("fail", &[Answer; 3], "retry retry", "FAILED", "no luck"),
        ("reject", &[], "rejected rejected", "REJECTED", "no use"),
        ("keep", &[], "retry retry", "FAILED", "the handler returned and kept its transaction"),
        ("object", &[], "retry retry", "FAILED", "the condition of write 2 of the handler's transaction did not hold"),
        ("objectRetry", &[], "retry retry", "FAILED", "not there yet"),
        ("objectTerminal", &[], "rejected rejected", "REJECTED", "never there"),
        ("noTable", &[], "retry retry", "FAILED", "(\"effects\", \"no-such-table\")"),
        ("many", &[], "rejected rejected", "REJECTED", "100 writes, and at most 99"),
        ("large", &[], "rejected rejected", "REJECTED", "bytes, and at most 4194304"),
        ("ok", &[CONFLICT; 4], "retry completed", "COMPLETED", ""),
        ("ok", &[THROTTLED; 12], "completed duplicate", "COMPLETED", ""),
        (
            "ok",
            &[INVALID],
            "rejected rejected",
            "REJECTED",
            "write 1 of the handler's transaction: ValidationError: The parameter cannot be converted to a numeric value",
        ),
        ("ok", &[NOT_A_NUMBER, ARRIVES, ARRIVES, NOT_A_NUMBER], "retry retry", "FAILED", "Does it write an item twice"),
        ("ok", &[DENIED], "retry completed", "COMPLETED", ""),
        (
            "ok",
            &[NO_KEY, ARRIVES, ARRIVES, NO_KEY],
            "retry retry",
            "FAILED",
            "needs kms:Decrypt on the keys of its tables",
        ),
        (
            "ok",
            &[KEY_DISABLED, ARRIVES, ARRIVES, KEY_DISABLED],
            "retry retry",
            "FAILED",
            "x is disabled. Are the KMS keys of",
        ),
        ("ok", &[KEY_OF_WRITE_DISABLED], "retry completed", "COMPLETED", ""),
    ];
    for (place, (action, losses, wanted, status, error)) in rows.iter().enumerate() {
        let key = format!("{variant:?}-{action}-{place}");
        if variant == Variant::Claimed {
            world.wire.script(&[ARRIVES]);
        }
        world.wire.script(losses);
        let first = world.deliver(&format!("{key} {action}"), 1).await;
        let second = world.deliver(&format!("{key} {action}"), 2).await;
        let what = format!("{variant:?}, {action} {losses:?}");
        assert_eq!(format!("{first} {second}"), *wanted, "{what}");
        let record = world.record(&key).await.unwrap();
        assert_eq!(record.status.to_string(), *status, "{what}");
        let why = record.error.as_deref().unwrap_or_default();
        assert!(why.contains(error) && !why.contains("secret"), "{what}: {why}");
        assert_eq!(record.attempts, if wanted.starts_with("retry") { 2 } else { 1 }, "{what}");
        assert_eq!(world.effects(&key).await, usize::from(wanted.contains("completed")), "{what}");
    }
}

/// A transaction of the handler's own in place of the one that it was lent.
async fn replaced(dynamodb: &DynamoDb, variant: Variant) {
    let world = World::new(dynamodb, variant, "replaced").await;
    let key = format!("{variant:?}-replaced");
    let report = world.process(&format!("{key} replace"), 1).await;
    let (wanted, effects) = if variant == Variant::Claimed { ("completed", 1) } else { ("retry", 0) };
    assert_eq!(report.entries()[0].outcome.word(), wanted, "{variant:?}");
    assert_eq!(world.effects(&key).await, effects, "{variant:?}");
}

/// A record that a first delivery did not ask for: what is written over it is another request, by another token.
async fn over_what_was_not_seen(dynamodb: &DynamoDb) {
    let world = World::new(dynamodb, Variant::Optimistic, "unseen").await;
    world.wire.script(&[CONFLICT; 4]);
    assert_eq!(world.deliver("k ok", 1).await, "retry");
    let _ = (world.wire.take_requests(), world.wire.take_tokens());
    assert_eq!(world.deliver("k ok", 1).await, "completed");
    assert_eq!(world.wire.take_requests(), ["TransactWriteItems"; 2]);
    let tokens = world.wire.take_tokens();
    assert_ne!(tokens[0], tokens[1]);
    assert_eq!((world.effects("k").await, world.record("k").await.unwrap().attempts), (1, 2));
    // The failure of a run that did not see it, too.
    for attempts in 1..3 {
        assert_eq!(world.deliver("fails fail", 1).await, "retry");
        assert_eq!(world.record("fails").await.unwrap().attempts, attempts);
    }
}

/// Two of one key at once: with claims one is kept out, without them one has done nothing.
async fn two_at_once(dynamodb: &DynamoDb) {
    let world = World::new(dynamodb, Variant::Optimistic, "race").await;
    for round in 0..10 {
        let text = format!("k{round} meet");
        let other = format!("k{round} meet @other");
        let (a, b) = tokio::join!(world.deliver(&text, 1), world.deliver(&other, 1));
        let mut seen = [a, b];
        seen.sort_unstable();
        assert_eq!(seen, ["completed", "duplicate"]);
        assert_eq!(world.effects(&format!("k{round}")).await, 1);
    }
}

/// Nothing is written before the effect, so nothing would tell of a run that was cut off.
async fn at_most_once_needs_claims(dynamodb: &DynamoDb) {
    let table = dynamodb.lock_table("cut-off").await;
    let optimistic = Consumer::transactional("effects", table.clone().optimistic_transactions(), idle);
    let claimed = Consumer::transactional("effects", table.transactions(), idle);
    assert!(Engine::with_defaults(optimistic.key(|w| &w.id).at_most_once()).is_err());
    assert!(Engine::with_defaults(claimed.key(|w| &w.id).at_most_once()).is_ok());
}

async fn idle(_: Work, _: TransactionGuard<Transaction>, _: Context) -> Result<(), HandlerError> {
    Ok(())
}

/// One request and one write unit less for each message.
async fn costs(dynamodb: &DynamoDb) {
    let mut usages = Vec::new();
    for variant in [Variant::Claimed, Variant::Optimistic] {
        let world = World::new(dynamodb, variant, "costs").await;
        // What Amazon's own counts by itself, so that the first request is not special.
        world.deliver("before ok", 1).await;
        let _ = world.wire.take_requests();
        let usage = world.process("k ok", 1).await.totals.usage;
        usages.push((world.wire.take_requests().join(" "), usage.requests, usage.write_units));
    }
    println!("{usages:?}");
    assert_eq!((usages[0].0.as_str(), usages[0].1), ("PutItem TransactWriteItems", 2));
    assert_eq!((usages[1].0.as_str(), usages[1].1), ("TransactWriteItems", 1));
    assert!((usages[0].2 - usages[1].2 - 1.0).abs() < f64::EPSILON, "{usages:?}");
}

async fn all(dynamodb: DynamoDb) {
    make_effects(&dynamodb).await;
    for variant in [Variant::Claimed, Variant::Optimistic] {
        lost_answers(&dynamodb, variant).await;
        refusals(&dynamodb, variant).await;
        replaced(&dynamodb, variant).await;
    }
    over_what_was_not_seen(&dynamodb).await;
    at_most_once_needs_claims(&dynamodb).await;
    two_at_once(&dynamodb).await;
    costs(&dynamodb).await;
}

/// What handlers write: the number of effects of each key.
struct Items(aws_sdk_dynamodb::Client);

impl Effects<Transaction> for Items {
    async fn write(&self, transaction: &mut Transaction, text: &str) {
        transaction.update(count(text));
    }

    async fn count(&self, key: &str) -> usize {
        let read = self.0.get_item().table_name(EFFECTS).key("id", text(key)).consistent_read(true);
        let item = read.send().await.unwrap().item.unwrap_or_default();
        item.get("effects").map_or(0, |n| n.as_n().unwrap().parse().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_effects_in_one_transaction_keep_the_contract() {
    let dynamodb = DynamoDb::embedded().await;
    make_effects(&dynamodb).await;
    let (table, items) = (dynamodb.lock_table("both").await, Items(dynamodb.client()));
    println!("{}", contract::check_transactional(Arc::new(table.clone().transactions()), &items).await);
    println!("{}", contract::check_transactional(Arc::new(table.optimistic_transactions()), &items).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_on_the_embedded_dynamodb() {
    all(DynamoDb::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local: make test"]
async fn transactions_on_dynamodb_local() {
    all(DynamoDb::local()).await;
}

/// Nothing applied, and that is known.
#[tokio::test(start_paused = true)]
async fn a_conflict_that_leaves_no_time_for_another_try_is_one() {
    let (tap, meter, mut transaction) = (model::Tap::default(), Meter::default(), Transaction::default());
    let Instead(_, conflict) = CONFLICT else { panic!("it is an answer") };
    tap.answer(conflict.to_owned());
    transaction.update(count("a"));
    let claim = Claim { transaction: Some(AnyTransaction::new(transaction)), ..model::claim("a") };
    let (store, completed) = (tap.table().transactions(), model::settlement(Ending::Completed { result: None }));
    let settled = store.settle(claim, &completed, Call { within: Duration::from_millis(5), meter: &meter }).await;
    let Settled::Aborted { failure, .. } = settled else { panic!("{settled:?}") };
    assert!(failure.why.contains("TransactionConflict"), "{failure:?}");
}
