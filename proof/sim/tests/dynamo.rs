//! The simulated DynamoDB beside an embedded one: the requests of whole runs, answer by answer.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use claimant_sim::draw::draw;
use claimant_sim::run::run_recorded;
use claimant_sim::world::Served;
use claimant_simulated::dynamo::Dynamo;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde_json::{Value, json};

fn database() -> Database {
    let database = Database::memory().unwrap();
    for table in ["locks", "effects"] {
        let request = json!({
            "TableName": table,
            "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }],
            "AttributeDefinitions": [{ "AttributeName": "id", "AttributeType": "S" }],
            "BillingMode": "PAY_PER_REQUEST",
        });
        database.create_table(serde_json::from_value(request).unwrap()).unwrap();
    }
    database
}

fn answer<T: Serialize>(result: Result<T, DynoxideError>) -> (u16, Value) {
    match result {
        Ok(answer) => (200, serde_json::to_value(answer).unwrap()),
        Err(error) => (error.status_code(), serde_json::from_str(&error.to_json()).unwrap()),
    }
}

fn ask(database: &Database, operation: &str, body: &Value) -> (u16, Value) {
    macro_rules! call {
        ($operation:ident) => {
            answer(database.$operation(serde_json::from_value(body.clone()).unwrap()))
        };
    }
    match operation {
        "GetItem" => call!(get_item),
        "BatchGetItem" => call!(batch_get_item),
        "PutItem" => call!(put_item),
        "UpdateItem" => call!(update_item),
        "BatchExecuteStatement" => call!(batch_execute_statement),
        "TransactWriteItems" => call!(transact_write_items),
        other => panic!("{other}"),
    }
}

/// What both must say alike: not texts, capacities, and what stands for nothing.
fn essence(value: &Value) -> Value {
    let unimportant =
        |name: &str| matches!(name, "message" | "Message" | "ConsumedCapacity" | "UnprocessedKeys" | "TableName");
    match value {
        Value::Object(fields) => {
            // Before a new item there was nothing; the embedded one then sends the key alone.
            let nothing = |name: &str, value: &Value| name == "Attributes" && value.get("fence").is_none();
            let kept = fields.iter().filter(|(name, v)| !unimportant(name) && !v.is_null() && !nothing(name, v));
            let kept = kept.map(|(name, value)| (name.clone(), essence(value)));
            Value::Object(kept.collect())
        }
        Value::Array(values) => {
            let mut values: Vec<Value> = values.iter().map(essence).collect();
            // BatchGetItem gives items in no order.
            if values.iter().all(|value| value.get("fence").is_some()) {
                values.sort_by_key(ToString::to_string);
            }
            Value::Array(values)
        }
        Value::String(text) => json!(text.rsplit('#').next()),
        other => other.clone(),
    }
}

#[test]
fn both_answer_alike() {
    let mut requests = 0;
    for seed in (0..40).filter(|seed| *seed != 7) {
        let database = database();
        for served in run_recorded(&draw(seed), None, true).1 {
            match served {
                Served::Expired(id) => {
                    let request = json!({ "TableName": "locks", "Key": { "id": { "S": id } } });
                    database.delete_item(serde_json::from_value(request).unwrap()).unwrap();
                }
                Served::Request { operation, body, status, answer } => {
                    let theirs = ask(&database, &operation, &body);
                    let mine = (status, essence(&answer));
                    assert_eq!((theirs.0, essence(&theirs.1)), mine, "seed {seed}, {operation} {body}");
                    requests += 1;
                }
            }
        }
    }
    assert!(requests > 500, "{requests} requests");
}

/// As a settlement without its guard does, once the record is gone. In a transaction, it is a reason to cancel that: the embedded one has
/// an error of the whole request there, so it is asked for the update alone.
#[test]
fn both_refuse_to_set_what_comes_of_an_attribute_that_is_not_there() {
    let (database, mut dynamo) = (database(), Dynamo::default());
    for set in ["#not = #not - :one", "#there = :one, #not = :one + #not", "#there = :one, #not = #not"] {
        let update = json!({
            "TableName": "locks",
            "Key": { "id": { "S": "a" } },
            "UpdateExpression": format!("SET {set}"),
            "ExpressionAttributeNames": { "#there": "there", "#not": "not" },
            "ExpressionAttributeValues": { ":one": { "N": "1" } },
        });
        let (theirs, mine) = (ask(&database, "UpdateItem", &update), dynamo.call("UpdateItem", &update));
        assert_eq!((mine.status, essence(&mine.body)), (400, json!({ "__type": "ValidationException" })), "{set}");
        assert_eq!((theirs.0, essence(&theirs.1)), (mine.status, essence(&mine.body)), "{set}");

        let transaction = json!({ "ClientRequestToken": set, "TransactItems": [{ "Update": update }] });
        let answer = dynamo.call("TransactWriteItems", &transaction);
        let reason = &answer.body["CancellationReasons"][0]["Code"];
        assert_eq!((answer.status, reason), (400, &json!("ValidationError")), "{set}");
        assert_eq!(answer.body["__type"].as_str().unwrap().rsplit('#').next(), Some("TransactionCanceledException"));
    }
    assert_eq!(dynamo.item("locks", "a"), None);
}
