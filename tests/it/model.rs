//! The model's conditions are those of the lock table: the real requests and the model's data, put before every record of a
//! grid on the embedded DynamoDB, apply to the same ones and write the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::base64;
use aws_smithy_types::body::SdkBody;
use claimant_core::protocol::{
    self, Abandoned, ClaimPolicy, ClaimRequest, Decision, Ending, Likely, Renewal, SettleDecision, Settlement,
};
use claimant_core::{
    Call, Claim, ConsumerName, Fence, Fingerprint, Key, MessageId, Meter, OwnerToken, Record, RecordId, Status, Store,
    Timestamp,
};
use claimant_dynamodb::LockTable;
use claimant_model::conditions::{Guarded, Kind};
use dynoxide::Database;
use serde_json::{Map, Value, json};

const TABLE: &str = "locks";

/// The present, in milliseconds: within a second, so that rounding counts.
const NOW_MS: u64 = 1_000_400;
const LEASE_MS: u64 = 9_000;

/// An endpoint that keeps what it is asked, and answers as scripted, or not at all usefully.
#[derive(Debug, Clone, Default)]
pub(super) struct Tap(Arc<Mutex<(VecDeque<String>, Vec<Value>)>>);

impl HttpClient for Tap {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Tap {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = request.body().bytes().expect("the SDK's bodies are in memory");
        let mut tap = self.0.lock().unwrap();
        tap.1.push(serde_json::from_slice(body).unwrap());
        let refusal = json!({"__type": "com.amazonaws.dynamodb.v20120810#AccessDeniedException", "message": "a tap"});
        let answer = tap.0.pop_front().unwrap_or_else(|| refusal.to_string());
        HttpConnectorFuture::ready(Ok(HttpResponse::new(StatusCode::try_from(400).unwrap(), SdkBody::from(answer))))
    }
}

impl Tap {
    /// Answers with this next.
    pub(super) fn answer(&self, answer: String) {
        self.0.lock().unwrap().0.push_back(answer);
    }

    pub(super) fn table(&self) -> LockTable {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "tests"))
            .retry_config(RetryConfig::disabled())
            .endpoint_url("http://127.0.0.1:1")
            .http_client(self.clone());
        LockTable::new(Client::from_conf(config.build()), TABLE)
    }

    /// What was asked since the last call of this.
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap().1)
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn record_id(key: &str) -> RecordId {
    RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new(key).unwrap())
}

fn policy(abandoned: Abandoned) -> ClaimPolicy {
    ClaimPolicy {
        abandoned,
        skew: Duration::from_millis(500),
        window: Duration::from_secs(60),
        ..ClaimPolicy::default()
    }
}

fn request(key: &str, abandoned: Abandoned) -> ClaimRequest {
    ClaimRequest {
        id: record_id(key),
        owner: OwnerToken::from_stored("mine"),
        message_id: MessageId::new("m-1").unwrap(),
        fingerprint: Fingerprint::of_bytes(b"p"),
        now: at(NOW_MS),
        lease_until: at(NOW_MS + LEASE_MS),
        policy: policy(abandoned),
        likely: Likely::New,
    }
}

pub(super) fn claim(key: &str) -> Claim {
    Claim {
        id: record_id(key),
        owner: OwnerToken::from_stored("mine"),
        fence: Fence::new(7),
        lease_until: at(NOW_MS + LEASE_MS),
        attempt: 2,
        interruptions: 0,
        last_error: None,
        transaction: None,
    }
}

pub(super) fn settlement(ending: Ending) -> Settlement {
    Settlement { ending, now: at(NOW_MS), policy: policy(Abandoned::Rerun) }
}

/// What compare and set has seen: rejected work, which another message may run again.
fn seen() -> Record {
    Record {
        status: Status::Rejected,
        owner: OwnerToken::from_stored("other"),
        fence: Fence::new(7),
        lease_until: at(NOW_MS),
        attempts: 3,
        message_id: MessageId::new("m-0").unwrap(),
        fingerprint: Fingerprint::of_bytes(b"p"),
        created_at: at(5),
        updated_at: at(6),
        completed_at: None,
        expires_at_s: NOW_MS / 1_000 + 60,
        result: None,
        error: Some("why".to_owned()),
        note: None,
    }
}

/// Every record of the grid, and none.
fn records() -> Vec<Option<Record>> {
    let mut records = vec![None];
    let leases = [NOW_MS - 501, NOW_MS - 500, NOW_MS, NOW_MS + LEASE_MS - 1, NOW_MS + LEASE_MS];
    let window_ends = [NOW_MS / 1_000, NOW_MS / 1_000 + 1];
    for status in Status::ALL {
        for (owner, fence) in [("mine", 7), ("mine", 6), ("other", 7), ("other", 6)] {
            for lease in leases {
                for expires_at_s in window_ends {
                    for (payload, rule, text) in
                        [(b"p", 0, None), (b"q", 0, Some("\"kept\"".to_owned())), (b"p", 1, None)]
                    {
                        records.push(Some(Record {
                            status,
                            owner: OwnerToken::from_stored(owner),
                            fence: Fence::new(fence),
                            lease_until: at(lease),
                            fingerprint: Fingerprint::of_bytes(payload).of_rule(rule),
                            expires_at_s,
                            completed_at: text.as_ref().map(|_| at(7)),
                            result: text.clone(),
                            error: text,
                            ..seen()
                        }));
                    }
                }
            }
        }
    }
    records
}

/// A record as an item in DynamoDB's JSON.
fn item(key: &str, record: &Record) -> Value {
    let number = |n: u64| json!({"N": n.to_string()});
    let mut item = Map::new();
    item.insert("id".into(), json!({"S": record_id(key).as_str()}));
    item.insert("status".into(), json!({"S": record.status.as_str()}));
    item.insert("owner".into(), json!({"S": record.owner.as_str()}));
    item.insert("fence".into(), number(record.fence.get()));
    item.insert("lease_until".into(), number(record.lease_until.as_millis()));
    item.insert("attempts".into(), number(record.attempts.into()));
    item.insert("message_id".into(), json!({"S": record.message_id.as_str()}));
    item.insert("fingerprint".into(), json!({"B": base64::encode(record.fingerprint.to_stored())}));
    item.insert("created_at".into(), number(record.created_at.as_millis()));
    item.insert("updated_at".into(), number(record.updated_at.as_millis()));
    item.insert("expires_at".into(), number(record.expires_at_s));
    let optional = [("result", &record.result), ("error", &record.error), ("note", &record.note)];
    item.extend(optional.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!({"S": text.as_ref()?})))));
    item.extend(record.completed_at.map(|time| ("completed_at".to_owned(), number(time.as_millis()))));
    Value::Object(item)
}

/// The embedded DynamoDB, asked in its own JSON.
struct Table(Database);

impl Table {
    fn new() -> Self {
        let database = Database::memory().unwrap();
        let create = json!({
            "TableName": TABLE,
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        database.create_table(serde_json::from_value(create).unwrap()).unwrap();
        Self(database)
    }

    fn plant(&self, key: &str, record: Option<&Record>) {
        let id = json!({"id": {"S": record_id(key).as_str()}});
        match record {
            Some(record) => {
                let put = json!({"TableName": TABLE, "Item": item(key, record)});
                self.0.put_item(serde_json::from_value(put).unwrap()).unwrap();
            }
            None => {
                let delete = json!({"TableName": TABLE, "Key": id});
                self.0.delete_item(serde_json::from_value(delete).unwrap()).unwrap();
            }
        }
    }

    /// Carries out what was tapped, a put, an update or the first of several statements; whether it applied.
    fn carry_out(&self, tapped: &Value) -> bool {
        if let Some(statements) = tapped.get("Statements") {
            let one = json!({"Statements": [statements[0]]});
            let answer = self.0.batch_execute_statement(serde_json::from_value(one).unwrap()).unwrap();
            return serde_json::to_value(answer).unwrap()["Responses"][0].get("Error").is_none();
        }
        let applied = match tapped.get("Item") {
            Some(_) => self.0.put_item(serde_json::from_value(tapped.clone()).unwrap()).map(drop),
            None => self.0.update_item(serde_json::from_value(tapped.clone()).unwrap()).map(drop),
        };
        match applied {
            Ok(()) => true,
            Err(error) => {
                assert!(format!("{error:?}").contains("ConditionalCheckFailed"), "{error:?}");
                false
            }
        }
    }

    fn read(&self, key: &str) -> Value {
        let get = json!({"TableName": TABLE, "Key": {"id": {"S": record_id(key).as_str()}}, "ConsistentRead": true});
        let answer = self.0.get_item(serde_json::from_value(get).unwrap()).unwrap();
        serde_json::to_value(answer).unwrap().get("Item").cloned().unwrap_or(Value::Null)
    }
}

/// Puts what was tapped and what the model says before every record; how many it applied to, and how many not.
fn check(table: &Table, tapped: &Value, guarded: &Guarded<'_>) -> (usize, usize) {
    let (mut applied, mut refused) = (0, 0);
    for before in records() {
        table.plant("k", before.as_ref());
        let wanted = guarded.applies(before.as_ref(), None);
        assert_eq!(table.carry_out(tapped), wanted, "{:?} on {before:?}", guarded.kind());
        let after = if wanted { guarded.written(before.as_ref()) } else { before.clone() };
        let after = after.map_or(Value::Null, |record| item("k", &record));
        assert_eq!(table.read("k"), after, "{:?} on {before:?}", guarded.kind());
        if wanted { applied += 1 } else { refused += 1 }
    }
    (applied, refused)
}

#[tokio::test]
async fn the_models_conditions_are_those_of_the_lock_table() {
    let (tap, table, meter) = (Tap::default(), Table::new(), Meter::default());
    let (locks, call) = (tap.table(), Call { within: Duration::from_secs(20), meter: &meter });
    let tell = |kind: Kind, (applied, refused)| {
        assert!(applied > 0 && refused > 0, "{kind:?}");
        println!("{kind:?}: applied to {applied} records, refused by {refused}");
    };
    for abandoned in [Abandoned::Rerun, Abandoned::Park] {
        let request = ClaimRequest { likely: Likely::Known, ..request("k", abandoned) };
        let refusal = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
        let refusal = json!({"__type": refusal, "Item": item("k", &seen())}).to_string();
        tap.answer(refusal);
        assert!(locks.claim(&request, call).await.is_err());
        let [blind, replace] = tap.take().try_into().unwrap();
        tell(Kind::Claim, check(&table, &blind, &Guarded::Claim(&request)));
        let seen = seen();
        let Decision::Grant { next, .. } = protocol::decide(Some(&seen), &request) else { panic!("it is claimable") };
        tell(Kind::Replace, check(&table, &replace, &Guarded::Replace { seen: &seen, next: &next }));
    }

    let (request, other) = (request("k", Abandoned::Rerun), request("other", Abandoned::Rerun));
    let _ = tap.table().claim_all(&[request.clone(), other], call).await;
    tell(Kind::Insert, check(&table, &tap.take()[0], &Guarded::Insert(&request)));
    let _ = tap.table().claim(&request, call).await;
    tell(Kind::Insert, check(&table, &tap.take()[0], &Guarded::Insert(&request)));

    let renewal = Renewal { lease_until: at(NOW_MS + LEASE_MS), now: at(NOW_MS), policy: policy(Abandoned::Rerun) };
    assert!(locks.renew(&mut claim("k"), renewal, call).await.is_err());
    tell(Kind::Renew, check(&table, &tap.take()[0], &Guarded::Renew(&claim("k"), &renewal)));

    let error = "it failed".to_owned();
    let endings = [
        Ending::Completed { result: None },
        Ending::Completed { result: Some("1".to_owned()) },
        Ending::Released,
        Ending::Rejected { error },
    ];
    for ending in endings {
        let plain = ending != Ending::Released;
        let settlement = settlement(ending);
        let _ = locks.settle(claim("k"), &settlement, call).await;
        tell(Kind::Settle, check(&table, &tap.take()[0], &Guarded::Settle(&claim("k"), &settlement)));
        if plain {
            let both = ["k", "other"].map(|key| (claim(key), settlement.clone()));
            let _ = tap.table().settle_all(both.into(), call).await;
            tell(Kind::Settle, check(&table, &tap.take()[0], &Guarded::Settle(&claim("k"), &settlement)));
        }
    }

    let optimistic = tap.table().optimistic_transactions();
    let claimant_core::ClaimAnswer::Granted(attempt) = optimistic.claim(&request, call).await.unwrap() else {
        panic!("it starts without a request")
    };
    let settlement = settlement(Ending::Failed { error: "it failed".to_owned() });
    let next = protocol::fresh_claim(&request);
    let SettleDecision::Write(ended) = protocol::settle(Some(&next), &attempt, &settlement) else {
        panic!("it is held")
    };
    let _ = optimistic.settle(attempt, &settlement, call).await;
    tell(Kind::Create, check(&table, &tap.take()[0], &Guarded::Create { next: &ended }));
}
