//! What the lock table asks of DynamoDB, and what it makes of lost answers and bad tables.

use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, Put, ScalarAttributeType,
};
use claimant_core::protocol::{Abandoned, ClaimRequest, Ending, Likely, Settlement};
use claimant_core::{
    BatchedClaim, Call, Claim, ClaimAnswer, Filter, Meter, RecordId, Records as _, Renewed, Settled, Status, Store,
    StoreErrorKind, TransactionSlot,
};
use claimant_dynamodb::{AttributeNames, LockTable, Tables, Transaction};
use claimant_testkit::logs::Logs;
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::wire::Loss::{self, Answer, Request, Silence};
use claimant_tests::wire::Wire;

use crate::claims::{METER, WITHIN, at, call, ending, failed, granted, renewal, request, taken};

/// For a message that was delivered before.
fn again(key: &str, now: u64) -> ClaimRequest {
    ClaimRequest { likely: Likely::Known, ..request(key, now) }
}

fn done() -> Ending {
    Ending::Completed { result: None }
}

async fn check_all(dynamodb: DynamoDb) {
    requests_are_few(&dynamodb).await;
    a_role_that_may_not_put_updates(&dynamodb).await;
    many_take_one_request(&dynamodb, "many").await;
    many_take_one_request(&dynamodb, "many-1,many-2,many-3").await;
    lost_batches_are_resolved(&dynamodb).await;
    throttled_and_denied_batches_are_mended(&dynamodb).await;
    what_takes_no_batches_is_asked_once(&dynamodb).await;
    lost_claims_are_recognised(&dynamodb).await;
    lost_takeovers_are_takeovers(&dynamodb).await;
    a_claim_that_lands_late_takes_nothing(&dynamodb).await;
    lost_settlements_are_resolved(&dynamodb).await;
    a_table_in_trouble_is_left_alone(&dynamodb).await;
    an_empty_success_is_none(&dynamodb).await;
    a_single_completion_commits(&dynamodb).await;
    an_old_failure_is_not_written_again(&dynamodb).await;
    a_record_that_ttl_deleted_has_no_owner(&dynamodb).await;
    a_record_deleted_in_the_middle_of_a_claim_is_absent(&dynamodb).await;
    silence_ends_in_time(&dynamodb).await;
    an_optimistic_claim_has_one_time_for_all_its_requests(&dynamodb).await;
    other_attribute_names_work(&dynamodb).await;
    bad_tables_are_named(&dynamodb).await;
    a_table_that_exists_is_left_as_it_is(&dynamodb).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_dynamodb() {
    check_all(DynamoDb::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local: make test"]
async fn on_dynamodb_local() {
    check_all(DynamoDb::local()).await;
}

async fn wired(dynamodb: &DynamoDb, names: &str) -> (LockTable, Wire) {
    let tables: Tables = names.parse().unwrap();
    dynamodb.lock_table(tables.clone()).await;
    let wire = Wire::default();
    (LockTable::new(dynamodb.client_over(&wire), tables), wire)
}

/// One request for each claim of the common kinds, and one for each settlement.
async fn requests_are_few(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "few").await;
    let asked = |wanted: &[&str], what: &str| assert_eq!(wire.take_requests(), wanted, "{what}");
    let claim = granted(&table, "k", 0).await;
    asked(&["PutItem"], "a fresh key");
    table.claim(&request("k", 1), call()).await.unwrap();
    asked(&["PutItem"], "a busy key, for another message");
    table.claim(&again("k", 1), call()).await.unwrap();
    asked(&["UpdateItem"], "a busy key");
    assert!(matches!(table.settle(claim, &failed(), call()).await, Settled::Done));
    asked(&["UpdateItem"], "a settlement");
    let abandoned = taken(&table, &again("k", 10)).await;
    assert_eq!(abandoned.attempt, 2);
    asked(&["UpdateItem"], "a key that failed");
    let claim = taken(&table, &again("k", 10_000)).await;
    assert!(claim.interruptions == 1 && claim.attempt == 3);
    asked(&["UpdateItem"], "a takeover");
    let claim = taken(&table, &request("k", 20_000)).await;
    assert!(claim.interruptions == 1 && claim.attempt == 4);
    asked(&["PutItem", "UpdateItem"], "a takeover for another message");
    assert!(matches!(table.settle(claim, &ending(done()), call()).await, Settled::Done));
    asked(&["UpdateItem"], "its completion");
    table.claim(&request("k", 20_001), call()).await.unwrap();
    asked(&["PutItem"], "a completed key, for another message");
    table.claim(&again("k", 20_001), call()).await.unwrap();
    asked(&["UpdateItem"], "a completed key");
    let _fresh = granted(&table, "k", 200_000).await;
    asked(&["PutItem", "UpdateItem"], "a key whose window is over");
}

/// A role of before claimant put items: it is asked once whether it may.
async fn a_role_that_may_not_put_updates(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "put-denied").await;
    wire.script(&[Loss::Instead(400, DENIED)]);
    for key in ["a", "b"] {
        let claim = granted(&table.clone(), key, 0).await;
        assert_eq!((claim.fence.get(), claim.attempt), (1, 1));
    }
    assert_eq!(wire.take_requests(), ["PutItem", "UpdateItem", "UpdateItem"]);
    // A role that may write no such key at all, as that of a limit: others are put all the same.
    let keys = LockTable::new(dynamodb.client_over(&wire), "put-denied");
    wire.script(&[Loss::Instead(400, DENIED), Loss::Instead(400, DENIED)]);
    assert_eq!(keys.claim(&request("other", 0), call()).await.unwrap_err().kind(), StoreErrorKind::Denied);
    let _claim = granted(&keys, "own", 0).await;
    assert_eq!(wire.take_requests(), ["PutItem", "UpdateItem", "PutItem"]);
    // What is denied for other reasons is not a role's.
    let other = LockTable::new(dynamodb.client_over(&wire), "put-denied");
    let expired = r#"{"__type":"com.amazon.coral.service#UnrecognizedClientException","Message":"no"}"#;
    wire.script(&[Loss::Instead(400, expired)]);
    let error = other.claim(&request("c", 0), call()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    let _claim = granted(&other, "c", 0).await;
    assert_eq!(wire.take_requests(), ["PutItem", "PutItem"]);
}

/// Claims `keys` together; the answers as words.
async fn claim_all(table: &LockTable, keys: &[String], now: u64, meter: &Meter) -> (Vec<Claim>, Vec<String>) {
    let requests: Vec<_> = keys.iter().map(|key| request(key, now)).collect();
    let (mut claims, mut words) = (Vec::new(), Vec::new());
    let call = Call { within: WITHIN, meter };
    for (answer, request) in table.claim_all(&requests, call).await.into_iter().zip(&requests) {
        let answer = match answer {
            Ok(BatchedClaim::Answered(answer)) => Ok(answer),
            // As the engine does.
            Ok(BatchedClaim::ClaimAlone) => {
                table.claim(&ClaimRequest { likely: Likely::Known, ..request.clone() }, call).await
            }
            Err(error) => Err(error),
        };
        match answer {
            Ok(ClaimAnswer::Granted(claim)) => {
                words.push(format!("granted {} {}", claim.fence, claim.attempt));
                claims.push(claim);
            }
            Ok(ClaimAnswer::Refused(refusal)) => words.push(format!("{refusal:?}").chars().take(4).collect()),
            Err(error) => words.push(format!("{:?}", error.kind())),
        }
    }
    (claims, words)
}

/// Completes these claims together.
async fn complete_all(table: &LockTable, claims: Vec<Claim>, meter: &Meter) {
    let pairs = claims.into_iter().map(|claim| (claim, ending(done()))).collect();
    let settled = table.settle_all(pairs, Call { within: WITHIN, meter }).await;
    assert!(settled.iter().all(|s| matches!(s, Settled::Done)), "{settled:?}");
}

fn keys(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

/// Requests and write units of batches, of one table or several; what a batch cannot do goes by itself.
async fn many_take_one_request(dynamodb: &DynamoDb, tables: &str) {
    let (table, wire) = wired(dynamodb, tables).await;
    // No more than an emulator on a busy machine answers within the time limit of a try.
    for (count, requests) in [(1, 2), (2, 2), (10, 2), (25, 2), (26, 4), (76, 8)] {
        let (meter, keys) = (Meter::default(), keys(&format!("{count}-"), count));
        let (claims, words) = claim_all(&table, &keys, 0, &meter).await;
        assert!(words.iter().all(|w| w == "granted 1 1"), "{words:?}");
        complete_all(&table, claims, &meter).await;
        assert_eq!((wire.take_requests().len(), meter.usage().requests), (requests, requests as u64), "{count} keys");
        // DynamoDB Local tells no capacity for statements.
        if dynamodb.tells_capacity() {
            assert_eq!(meter.usage().write_units, 2.0 * count as f64, "{count} keys");
        }
    }
    // Records of every kind among fresh ones, and one key twice.
    let mut mixed = keys("mixed", 6);
    let held = granted(&table, "mixed0", 0).await;
    let completed = granted(&table, "mixed1", 0).await;
    let failing = granted(&table, "mixed2", 0).await;
    assert!(matches!(table.settle(completed, &ending(done()), call()).await, Settled::Done));
    assert!(matches!(table.settle(failing, &failed(), call()).await, Settled::Done));
    mixed.push("mixed5".into());
    let (_claims, words) = claim_all(&table, &mixed, 10, &METER).await;
    let wanted = ["Busy", "Comp", "granted 2 2", "granted 1 1", "granted 1 1"];
    assert_eq!(words[..5], wanted);
    let mut twice = [words[5].as_str(), words[6].as_str()];
    twice.sort_unstable();
    assert_eq!(twice, ["Busy", "granted 1 1"], "of one key twice in a batch, one is granted");
    // Sent again after they were done: two requests, a write unit for each refused statement and one read unit.
    let (meter, again) = (Meter::default(), keys("25-", 25));
    let _ = wire.take_requests();
    let (_, words) = claim_all(&table, &again, 10, &meter).await;
    assert_eq!(words, ["Comp"; 25]);
    assert_eq!(wire.take_requests(), ["BatchExecuteStatement", "BatchGetItem"]);
    // Without permission for many, each has its own; the same answers.
    let single = table.clone().batched(false);
    let _ = wire.take_requests();
    let (claims, words) = claim_all(&single, &keys("single", 3), 0, &METER).await;
    assert_eq!(words, ["granted 1 1"; 3]);
    assert_eq!(wire.take_requests(), ["PutItem"; 3]);
    complete_all(&single, claims, &METER).await;
    assert_eq!(wire.take_requests(), ["UpdateItem"; 3]);
    // And what is most likely done is looked at first.
    let done = keys("single", 3).into_iter().map(|key| ClaimRequest { likely: Likely::Done, ..request(&key, 10) });
    let answers = single.claim_all(&done.collect::<Vec<_>>(), call()).await;
    let is_done = |answer: &_| matches!(answer, Ok(BatchedClaim::Answered(ClaimAnswer::Refused(_))));
    assert!(answers.iter().all(is_done), "{answers:?}");
    assert_eq!(wire.take_requests(), ["GetItem"; 3]);
    // A single refusal is asked about by the claim itself, which can also take the key.
    let (_claims, words) = claim_all(&table, &["25-0".to_owned(), "new".to_owned()], 10, &METER).await;
    assert_eq!(words, ["Comp", "granted 1 1"]);
    assert_eq!(wire.take_requests(), ["BatchExecuteStatement", "UpdateItem"]);
    drop(held);
}

/// A batch whose answer was lost has applied: the SDK's retry meets its own records. One that never arrives fails whole.
async fn lost_batches_are_resolved(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "lost-batches").await;
    wire.script(&[Answer]);
    let (claims, words) = claim_all(&table, &keys("a", 5), 0, &METER).await;
    assert_eq!(words, ["granted 1 1"; 5]);
    wire.script(&[Answer]);
    complete_all(&table, claims, &METER).await;
    let (claims, _) = claim_all(&table, &keys("b", 3), 0, &METER).await;
    // The batch and both its retries are lost, and then nothing else is: the next one is refused, and shows its own.
    wire.script(&[Request, Answer, Request]);
    complete_all(&table, claims, &METER).await;
    wire.script(&[Answer; 3]);
    let (_claims, words) = claim_all(&table, &keys("d", 3), 0, &METER).await;
    assert_eq!(words, ["granted 1 1"; 3]);
    wire.script(&[Request; 12]);
    let (_, words) = claim_all(&table, &keys("c", 3), 0, &METER).await;
    assert_eq!(words, ["Unreachable"; 3]);
    let (_claims, words) = claim_all(&table, &keys("c", 3), 1, &METER).await;
    assert_eq!(words, ["granted 1 1"; 3], "nothing had applied");
}

/// What DynamoDB says of statements that it throttled, and of a role that may not use them.
const THROTTLED: &str = r#"{"Responses":[{"Error":{"Code":"ThrottlingError","Message":"slow down"}},{"Error":{"Code":"ThrottlingError","Message":"slow down"}}]}"#;
const DENIED: &str = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}"#;

/// What it says of a role that may not use the KMS key of the table.
const NO_KEY: &str =
    r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"KMS key access denied error: x"}"#;

/// What it says while that key is disabled.
const KEY_DISABLED: &str =
    r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"KMS key disabled error: x is disabled"}"#;

/// Fault 26, and a role without the permissions for many.
async fn throttled_and_denied_batches_are_mended(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "throttled").await;
    wire.script(&[Loss::Instead(200, THROTTLED), Loss::Instead(200, THROTTLED)]);
    let (claims, words) = claim_all(&table, &keys("a", 2), 0, &METER).await;
    assert_eq!(words, ["granted 1 1"; 2]);
    assert_eq!(wire.take_requests(), ["BatchExecuteStatement"; 3]);
    wire.script(&[Loss::Instead(200, THROTTLED)]);
    complete_all(&table, claims, &METER).await;
    // Throttled to the end: they are sent together again, later. One by one they would be more load on a table that has too much.
    let (claims, _) = claim_all(&table, &keys("c", 2), 0, &METER).await;
    let _ = wire.take_requests();
    wire.script(&[Loss::Instead(200, THROTTLED); 4]);
    let pairs = claims.into_iter().map(|claim| (claim, ending(done()))).collect();
    let unknown = table.settle_all(pairs, call()).await.into_iter().map(|settled| match settled {
        Settled::Unknown { claim: Some(claim), .. } => claim,
        settled => panic!("{settled:?}"),
    });
    let claims: Vec<_> = unknown.collect();
    assert_eq!(wire.take_requests(), ["BatchExecuteStatement"; 4]);
    complete_all(&table, claims, &METER).await;
    let _ = wire.take_requests();
    // And so are claims: those fail, by the word for it, and nothing was claimed.
    wire.script(&[Loss::Instead(200, THROTTLED); 4]);
    let (_, words) = claim_all(&table, &keys("b", 2), 0, &METER).await;
    assert_eq!(words, ["Throttled"; 2]);
    let _ = wire.take_requests();
    // Without BatchGetItem, what was refused is claimed by itself, and so is everything from then on.
    let reader = LockTable::new(dynamodb.client_over(&wire), "throttled");
    wire.script(&[Loss::None, Loss::Instead(400, DENIED)]);
    for _ in 0..2 {
        let (_claims, words) = claim_all(&reader, &keys("a", 2), 1, &METER).await;
        assert_eq!(words, ["Comp"; 2]);
    }
    let asked = wire.take_requests();
    assert_eq!(asked[..2], ["BatchExecuteStatement", "BatchGetItem"]);
    assert_eq!(asked[2..], ["UpdateItem", "UpdateItem", "PutItem", "PutItem"]);
    wire.script(&[Loss::Instead(400, DENIED)]);
    let logs = Logs::record();
    for _ in 0..2 {
        let (_claims, words) = claim_all(&table, &keys("b", 2), 0, &METER).await;
        assert_eq!(words.len(), 2);
    }
    // The role can have these rights, and be refused the records of one consumer.
    for wanted in ["dynamodb:PartiQLInsert", "dynamodb:LeadingKeys", "CLAIMANT_BATCH=off"] {
        assert_eq!(logs.text().matches(wanted).count(), 1, "{wanted}: {}", logs.text());
    }
    let asked = wire.take_requests();
    assert_eq!(asked, ["BatchExecuteStatement", "UpdateItem", "UpdateItem", "PutItem", "PutItem"]);
}

/// An endpoint without PartiQL: what each key can have by itself is no failure. A table that is gone may be back, and the single requests
/// say what is wrong with its name.
async fn what_takes_no_batches_is_asked_once(dynamodb: &DynamoDb) {
    let logs = Logs::record();
    for (name, code, is_again) in
        [("no-partiql", "UnknownOperationException", false), ("gone", "ResourceNotFoundException", true)]
    {
        let (table, wire) = wired(dynamodb, name).await;
        let refused = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"no"}}"#);
        wire.script(&[Loss::Instead(400, refused.leak())]);
        for prefix in ["a", "b"] {
            let (claims, words) = claim_all(&table, &keys(prefix, 2), 0, &METER).await;
            assert_eq!(words, ["granted 1 1"; 2], "{code}");
            complete_all(&table, claims, &METER).await;
        }
        let asked = wire.take_requests();
        let batches = asked.iter().filter(|operation| *operation == "BatchExecuteStatement").count();
        assert_eq!((batches > 1, logs.text().contains("batched claims are refused")), (is_again, true), "{asked:?}");
        if !is_again {
            assert_eq!(asked[..5], ["BatchExecuteStatement", "UpdateItem", "UpdateItem", "UpdateItem", "UpdateItem"]);
            assert_eq!(asked[5..], ["PutItem", "PutItem", "UpdateItem", "UpdateItem"]);
        }
    }
    assert_eq!(logs.text().matches("batched claims are refused").count(), 1, "{}", logs.text());
    // Refused by each statement, or as invalid: one statement can be the reason for that, so it is asked once more.
    let each = r#"{"Responses":[{"Error":{"Code":"ValidationError"}},{"Error":{"Code":"ValidationError"}}]}"#;
    let whole = r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"no"}"#;
    // A table's key that the role may not use, or that is disabled, is nothing of the batch's.
    let no_key = r#"{"Responses":[{"Error":{"Code":"AccessDenied","Message":"KMS key access denied error: x"}},{"TableName":"t"}]}"#;
    let disabled = r#"{"Error":{"Code":"ValidationError","Message":"KMS key disabled error: x is disabled"}}"#;
    let disabled = format!(r#"{{"Responses":[{disabled},{disabled}]}}"#).leak();
    for (name, losses, wanted) in [
        ("each", &[Loss::Instead(200, each)][..], 1),
        ("whole", &[Loss::Instead(400, whole), Loss::None, Loss::None, Loss::None, Loss::Instead(400, whole)], 2),
        ("no-key", &[Loss::Instead(200, no_key)], 3),
        ("disabled", &[Loss::Instead(200, disabled)], 3),
    ] {
        let (table, wire) = wired(dynamodb, name).await;
        wire.script(losses);
        for prefix in ["a", "b", "c"] {
            let (_claims, words) = claim_all(&table, &keys(prefix, 2), 0, &METER).await;
            assert_eq!(words, ["granted 1 1"; 2], "{name}");
        }
        let asked = wire.take_requests();
        let batches = asked.iter().filter(|operation| *operation == "BatchExecuteStatement").count();
        assert_eq!(batches, wanted, "{name}: {asked:?}");
    }
    // Nor are wrong credentials, nor such a key where the whole request is refused for it.
    let stranger = r#"{"__type":"com.amazon.coral.service#UnrecognizedClientException","Message":"no"}"#;
    for (name, refused, kind) in [
        ("stranger", stranger, "Denied"),
        ("locked", NO_KEY, "Denied"),
        ("key-disabled", KEY_DISABLED, "Misconfigured"),
    ] {
        let (table, wire) = wired(dynamodb, name).await;
        wire.script(&[Loss::Instead(400, refused), Loss::Instead(400, refused)]);
        for _ in 0..2 {
            let (_, words) = claim_all(&table, &keys("a", 2), 0, &METER).await;
            assert_eq!(words, [kind; 2], "{name}");
        }
        let (_claims, words) = claim_all(&table, &keys("a", 2), 0, &METER).await;
        assert_eq!(words, ["granted 1 1"; 2], "{name}");
        assert_eq!(wire.take_requests(), ["BatchExecuteStatement"; 3], "{name}");
    }
    let (table, wire) = wired(dynamodb, "locked-put").await;
    wire.script(&[Loss::Instead(400, NO_KEY)]);
    let error = table.claim(&request("k", 0), call()).await.unwrap_err().to_string();
    assert!(error.contains("needs kms:Decrypt") && !error.contains("dynamodb:PutItem"), "{error}");
    assert_eq!(wire.take_requests(), ["PutItem"]);
}

/// Fault 7: the SDK's own retry meets the write whose answer was lost.
async fn lost_claims_are_recognised(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "lost-claims").await;
    for (key, losses, fence) in [
        ("a", &[Answer][..], 1),
        ("b", &[Answer, Answer], 1),
        ("c", &[Request, Answer], 1),
        ("d", &[Request, Request], 1),
    ] {
        wire.script(losses);
        let claim = granted(&table, key, 0).await;
        assert_eq!(claim.fence.get(), fence, "{key}");
        assert!(matches!(table.settle(claim, &ending(done()), call()).await, Settled::Done), "{key}");
    }
    wire.script(&[Answer, Answer, Answer]);
    let error = table.claim(&request("e", 0), call()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    let answer = table.claim(&request("e", 1), call()).await.unwrap();
    assert!(matches!(answer, ClaimAnswer::Refused(_)), "the orphan holds the key until its lease ends: {answer:?}");
}

/// The engine completes in one request; who completes a claim by itself has its writes committed, too.
async fn a_single_completion_commits(dynamodb: &DynamoDb) {
    let store = dynamodb.lock_table("single").await.transactions();
    let mut claim = granted(&store, "k", 0).await;
    let effect = || ("id", AttributeValue::S("effect".to_owned()));
    let home = TransactionSlot::of(claim.transaction.take());
    let mut tx = home.lend::<Transaction>().unwrap();
    tx.put(Put::builder().table_name("single").item(effect().0, effect().1).build().unwrap());
    drop(tx);
    claim.transaction = home.take();
    assert!(matches!(store.settle(claim, &ending(done()), call()).await, Settled::Done));
    let read = dynamodb.client().get_item().table_name("single").key(effect().0, effect().1);
    assert!(read.send().await.unwrap().item.is_some());
}

/// A key whose window is over is claimed over the record that was seen. Where TTL deletes that just then, the claim is the first
/// of a key without a record, and is held as such: by the fence that the record has (F17).
async fn a_record_deleted_in_the_middle_of_a_claim_is_absent(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "deleted-meanwhile").await;
    let first = granted(&table, "k", 0).await;
    let id = first.id.clone();
    assert!(matches!(table.settle(first, &ending(done()), call()).await, Settled::Done));
    wire.script(&[Loss::None, Loss::Waits]);
    let (claim, ()) = tokio::join!(granted(&table, "k", 200_000), async {
        wire.until_waiting().await;
        let key = AttributeValue::S(id.as_str().to_owned());
        dynamodb.client().delete_item().table_name("deleted-meanwhile").key("id", key).send().await.unwrap();
        wire.go_on();
    });
    let record = table.get(&id, call()).await.unwrap().unwrap();
    assert_eq!((claim.fence, claim.attempt), (record.fence, record.attempts));
    assert_eq!(claim.fence.get(), 1);
    let settlement = Settlement { now: at(200_500), ..ending(done()) };
    assert!(matches!(table.settle(claim, &settlement, call()).await, Settled::Done));
}

/// A failure of which it is not known whether it was written, and another owner that failed meanwhile: to write it now could count the
/// run twice.
async fn an_old_failure_is_not_written_again(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "overtaken").await;
    let overtaken = table.optimistic_transactions();
    let other = LockTable::new(dynamodb.client(), "overtaken").optimistic_transactions();
    let (first, later) = (granted(&overtaken, "k", 0).await, granted(&other, "k", 0).await);
    let id = first.id.clone();
    wire.script(&[Request, Request, Request, Loss::None, Loss::Waits]);
    let failure = failed();
    let (settled, ()) = tokio::join!(overtaken.settle(first, &failure, call()), async {
        wire.until_waiting().await;
        assert!(matches!(other.settle(later, &failure, call()).await, Settled::Done));
        wire.go_on();
    });
    assert!(matches!(settled, Settled::Lost), "{settled:?}");
    assert_eq!(other.get(&id, call()).await.unwrap().unwrap().attempts, 1);
    // Or it was written by an earlier call, the other owner went on from it, and this one finds that.
    let first = granted(&overtaken, "l", 0).await;
    let id = first.id.clone();
    wire.script(&[Answer, Answer, Answer, Request, Request, Request]);
    let settled = overtaken.settle(first, &failure, call()).await;
    let Settled::Unknown { claim: Some(first), .. } = settled else { panic!("{settled:?}") };
    let later = taken(&other, &again("l", 10)).await;
    assert!(matches!(other.settle(later, &failure, call()).await, Settled::Done));
    let settled = overtaken.settle(first, &failure, call()).await;
    assert!(matches!(settled, Settled::Lost), "{settled:?}");
    assert_eq!(other.get(&id, call()).await.unwrap().unwrap().attempts, 2);
}

/// What DynamoDB says where a table has too many requests.
const TOO_MANY: &str =
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}"#;

/// Who has time tries again, with growing waits: the engine. A call is one write, and one look where the write had no answer.
async fn a_table_in_trouble_is_left_alone(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "in-trouble").await;
    let (optimistic, transactions) = (table.clone().optimistic_transactions(), table.clone().transactions());
    let stores: [(&str, &dyn Store); 3] =
        [("plain", &table), ("transactions", &transactions), ("optimistic", &optimistic)];
    for (store_name, store) in stores {
        for (loss, most) in [(Request, 2), (Loss::Instead(400, TOO_MANY), 1), (Loss::Instead(200, "{}"), 2)] {
            for settlement in [ending(done()), failed()] {
                let name = format!("{store_name} {loss:?} {:?}", settlement.ending.status());
                let request = request(&name, 0);
                let Ok(ClaimAnswer::Granted(claim)) = store.claim(&request, call()).await else { panic!("{name}") };
                let meter = Meter::default();
                wire.all(Some(loss));
                let settled = store.settle(claim, &settlement, Call { within: WITHIN, meter: &meter }).await;
                wire.all(None);
                assert!(meter.usage().requests <= most, "{name}: {} requests", meter.usage().requests);
                let Settled::Unknown { claim: Some(claim), error } = settled else { panic!("{name}: {settled:?}") };
                assert!(error.kind().is_transient(), "{name}: {error}");
                assert!(matches!(store.settle(claim, &settlement, call()).await, Settled::Done), "{name}");
            }
        }
    }
}

fn everything() -> Filter {
    Filter { states: Vec::new(), consumer: None, written_before: None, now: at(0), skew: Duration::ZERO }
}

/// As what answers in the place of DynamoDB says: a gateway, a stub, a page that tells that all is well.
async fn an_empty_success_is_none(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "empty-success").await;
    let (optimistic, transactions) = (table.clone().optimistic_transactions(), table.clone().transactions());
    let stores: [&dyn Store; 3] = [&table, &transactions, &optimistic];
    let mut claims = vec![granted(&table, "a", 0).await, granted(&table, "b", 0).await];
    let fresh = ["c", "d"].map(|key| request(key, 0));
    for answer in ["", "{}", r#"{"Responses":[{},{}]}"#] {
        wire.all(Some(Loss::Instead(200, answer)));
        let mut errors = Vec::new();
        for store in stores {
            errors.push(store.claim(&again("c", 0), call()).await.unwrap_err());
        }
        errors.push(table.claim(&fresh[0], call()).await.unwrap_err());
        errors.extend(table.claim_all(&fresh, call()).await.into_iter().map(Result::unwrap_err));
        let renewal = renewal(10, 9_000);
        errors.push(table.renew(&mut claims[0], renewal, call()).await.unwrap_err());
        errors.push(table.get(&fresh[0].id, call()).await.unwrap_err());
        errors.push(table.size(call()).await.unwrap_err());
        errors.push(table.list(&everything(), &table.cursors(1, call()).await.unwrap()[0], call()).await.unwrap_err());
        for error in errors {
            assert!(error.kind() == StoreErrorKind::Unreachable, "{answer:?}: {error}");
            assert!(error.to_string().contains("what answered is not DynamoDB: a success without "), "{error}");
        }
        let together = claims.into_iter().map(|claim| (claim, ending(done()))).collect();
        claims = table
            .settle_all(together, call())
            .await
            .into_iter()
            .map(|settled| match settled {
                Settled::Unknown { claim: Some(claim), .. } => claim,
                settled => panic!("{answer:?}: {settled:?}"),
            })
            .collect();
        wire.all(None);
        assert_eq!(table.get(&fresh[0].id, call()).await.unwrap(), None, "{answer:?}");
    }
    // The record tells that the write did not arrive, which is then sent again.
    for (claim, losses) in claims.into_iter().zip([1, 3]) {
        let id = claim.id.clone();
        wire.script(&vec![Loss::Instead(200, ""); losses]);
        let settled = table.settle(claim, &ending(done()), call()).await;
        wire.forget_script();
        let status = table.get(&id, call()).await.unwrap().unwrap().status;
        assert_eq!(status == Status::Completed, matches!(settled, Settled::Done), "{settled:?}");
        assert_eq!(status == Status::Completed, losses == 1);
    }
}

/// Whose work it was is not in the record any more, once a lost answer's write is in it.
async fn lost_takeovers_are_takeovers(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "lost-takeovers").await;
    for (key, losses) in [("a", &[][..]), ("b", &[Answer]), ("c", &[Answer, Answer, Answer])] {
        let _dead = granted(&table, key, 0).await;
        let request = request(key, 10_000);
        wire.script(losses);
        let answer = match table.claim(&request, call()).await {
            Ok(answer) => answer,
            Err(_) => table.claim(&request, call()).await.unwrap(),
        };
        let ClaimAnswer::Granted(claim) = answer else { panic!("{key}: {answer:?}") };
        assert!(claim.interruptions == 1 && claim.fence.get() == 2, "{key}: {claim:?}");
    }
}

/// A try that was given up, and lands when another one of the same claim has ended: its claim would have no owner, and at most
/// once would park work that no process runs.
async fn a_claim_that_lands_late_takes_nothing(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "lands-late").await;
    let other = LockTable::new(dynamodb.client(), "lands-late");
    for abandoned in [Abandoned::Rerun, Abandoned::Park] {
        let mut request = request(&format!("{abandoned:?}"), 0);
        request.policy.abandoned = abandoned;
        // What comes after it is lost: no caller waits for its answer.
        wire.script(&[&[Loss::Waits][..], &[Request; 24]].concat());
        let (_, ()) = tokio::join!(table.claim(&request, call()), async {
            wire.until_waiting().await;
            let answer = other.claim(&request, call()).await.unwrap();
            let ClaimAnswer::Granted(claim) = answer else { panic!("{answer:?}") };
            assert!(matches!(other.settle(claim, &failed(), call()).await, Settled::Done));
            wire.go_on();
        });
        wire.forget_script();
        let record = table.get(&request.id, call()).await.unwrap().unwrap();
        assert_eq!((record.status, record.fence.get()), (Status::Failed, 1), "{abandoned:?}");
    }
}

/// Faults 8, 9 and 14.
async fn lost_settlements_are_resolved(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "lost-settlements").await;
    let rows: [(&str, &[Loss], &str, &str); 5] = [
        ("the SDK's retry sees its own write", &[Answer], "Done", "COMPLETED"),
        ("three lost answers: the record tells", &[Answer, Answer, Answer], "Done", "COMPLETED"),
        ("three lost requests: written anew", &[Request, Request, Request], "Done", "COMPLETED"),
        ("lost answers and a lost look", &[Answer, Answer, Answer, Request, Request, Request], "Unknown", "COMPLETED"),
        ("nothing arrives", &[Request; 64], "Unknown", "IN_PROGRESS"),
    ];
    for (name, losses, wanted, status) in rows {
        let claim = granted(&table, name, 0).await;
        let id = claim.id.clone();
        wire.script(losses);
        let settled = table.settle(claim, &ending(done()), call()).await;
        assert!(format!("{settled:?}").starts_with(wanted), "{name}: {settled:?}");
        let record = dynamodb_record(dynamodb, &id).await;
        assert_eq!(record, status, "{name}");
        wire.forget_script();
        if let Settled::Unknown { claim: Some(claim), .. } = settled {
            assert!(matches!(table.settle(claim, &ending(done()), call()).await, Settled::Done), "{name}, tried again");
        }
    }
}

async fn dynamodb_record(dynamodb: &DynamoDb, id: &RecordId) -> String {
    let table = LockTable::new(dynamodb.client(), "lost-settlements");
    table.get(id, call()).await.unwrap().unwrap().status.to_string()
}

/// Fault 15: the table's TTL deletes the record, and its stale owner comes back, before and after another owner.
async fn a_record_that_ttl_deleted_has_no_owner(dynamodb: &DynamoDb) {
    let table = dynamodb.lock_table("deleted").await;
    for claimed_again in [false, true] {
        let mut stale = granted(&table, "k", 0).await;
        let key = AttributeValue::S(stale.id.as_str().to_owned());
        dynamodb.client().delete_item().table_name("deleted").key("id", key).send().await.unwrap();
        let fresh = if claimed_again { Some(granted(&table, "k", 5).await) } else { None };
        assert_eq!(table.renew(&mut stale, renewal(10, 9_000), call()).await.unwrap(), Renewed::Lost);
        let id = stale.id.clone();
        assert!(matches!(table.settle(stale, &ending(done()), call()).await, Settled::Lost));
        let owner = table.get(&id, call()).await.unwrap().map(|record| record.owner);
        assert_eq!(owner, fresh.as_ref().map(|claim| claim.owner.clone()), "nothing is written");
    }
}

/// Fault 32: an endpoint that says nothing costs the time given, and no more.
async fn silence_ends_in_time(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "silence").await;
    let claim = granted(&table, "k", 0).await;
    wire.script(&[Silence; 64]);
    let short = Call { within: Duration::from_millis(200), meter: &METER };
    let error = table.claim(&request("other", 0), short).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(matches!(table.settle(claim, &failed(), short).await, Settled::Unknown { claim: Some(_), .. }));
}

/// A slow read, and a write without an answer, of abandoned work that is to be parked. The write has what the read has left of the time:
/// with a time of its own it would end later than one that begins before it.
async fn an_optimistic_claim_has_one_time_for_all_its_requests(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "one-time").await;
    let _abandoned = granted(&table, "k", 0).await;
    let mut later = again("k", 30_000);
    later.policy.abandoned = Abandoned::Park;
    let within = Duration::from_secs(2);
    let store = table.optimistic_transactions();
    wire.script(&[Loss::Waits, Silence]);
    let time_of_its_own = async {
        wire.until_waiting().await;
        tokio::time::sleep(within * 7 / 10).await;
        wire.go_on();
        tokio::time::sleep(within).await;
    };
    // Where the machine stands still past both, the claim comes first.
    tokio::select! {
        biased;
        answer = store.claim(&later, Call { within, meter: &METER }) => {
            assert_eq!(answer.unwrap_err().kind(), StoreErrorKind::Unreachable);
        }
        () = time_of_its_own => panic!("the write was given a time of its own"),
    }
}

async fn other_attribute_names_work(dynamodb: &DynamoDb) {
    // Reserved words of DynamoDB on purpose.
    let names = AttributeNames {
        id: "key".into(),
        status: "state".into(),
        owner: "user".into(),
        expires_at: "ttl".into(),
        error: "comment".into(),
        ..AttributeNames::default()
    };
    let table = LockTable::new(dynamodb.client(), "other-names").attribute_names(names);
    table.create().await.unwrap();
    table.create().await.expect("making it again does nothing");
    let claim = granted(&table, "k", 0).await;
    let id = claim.id.clone();
    assert!(matches!(table.settle(claim, &failed(), call()).await, Settled::Done));
    assert_eq!(table.get(&id, call()).await.unwrap().unwrap().error.as_deref(), Some("no luck"));
}

/// Bad set-up: an error that names the table and the fix.
async fn bad_tables_are_named(dynamodb: &DynamoDb) {
    let missing = LockTable::new(dynamodb.client(), "no-such-table");
    let error = missing.claim(&request("k", 0), call()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    for wanted in ["\"no-such-table\"", "ResourceNotFoundException", "CLAIMANT_TABLE"] {
        assert!(error.to_string().contains(wanted), "{wanted} in {error}");
    }
    // A settlement says so at once, since no try can fix it.
    let claim = granted(&wired(dynamodb, "not-missing").await.0, "k", 0).await;
    let meter = Meter::default();
    let settled = missing.settle(claim, &failed(), Call { within: WITHIN, meter: &meter }).await;
    assert!(
        matches!(&settled, Settled::Unknown { error: e, .. } if e.kind() == StoreErrorKind::Misconfigured),
        "{settled:?}"
    );
    assert_eq!(meter.usage().requests, 1);
    for (name, key, kind) in
        [("other-key", "pk", ScalarAttributeType::S), ("numeric-key", "id", ScalarAttributeType::N)]
    {
        make(dynamodb, name, key, kind).await;
        let error = LockTable::new(dynamodb.client(), name).claim(&request("k", 0), call()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        assert!(error.to_string().contains("the string `id`"), "{error}");
    }
}

/// A table of this key alone, without TTL.
async fn make(dynamodb: &DynamoDb, name: &str, key: &str, kind: ScalarAttributeType) {
    let schema = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash).build().unwrap();
    let attribute = AttributeDefinition::builder().attribute_name(key).attribute_type(kind).build().unwrap();
    let create = dynamodb.client().create_table().table_name(name).key_schema(schema);
    create.attribute_definitions(attribute).billing_mode(BillingMode::PayPerRequest).send().await.unwrap();
}

/// Whoever's it is: its items may have an `expires_at` that does not mean that they may go.
async fn a_table_that_exists_is_left_as_it_is(dynamodb: &DynamoDb) {
    for (name, key, error) in [
        ("orders", "pk", Some("\"orders\" is no lock table with these attribute names: its key is pk (S)")),
        ("carts", "id", None),
    ] {
        make(dynamodb, name, key, ScalarAttributeType::S).await;
        let wire = Wire::default();
        let created = LockTable::new(dynamodb.client_over(&wire), name).create().await;
        match (created, error) {
            (Ok(()), None) => {}
            (Err(e), Some(says)) if e.kind() == StoreErrorKind::Misconfigured && e.to_string().contains(says) => {}
            (other, _) => panic!("{name}: {other:?}"),
        }
        let requests = wire.take_requests();
        assert!(!requests.iter().any(|request| request == "UpdateTimeToLive"), "{name}: {requests:?}");
    }
}
