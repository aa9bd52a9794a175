//! The stack `shop`: one function, its queue with two dead letters, a table with two records, and log lines.

use claimant_core::{Clock as _, SystemClock};

use serde_json::{Value, json};

use crate::deployed::resources;

pub(crate) const MAPPINGS: &str = "/2015-03-31/event-source-mappings";

/// A message that was worked on and is done; its key is `order#o-7`.
pub(crate) const DONE: &str = "059f36b4-87a3-44ab-83d2-661975830a7d";
/// A message that was rejected.
pub(crate) const REJECTED: &str = "7b1d2f10-1111-4222-8333-444455556666";

/// Answers for the stack. How many messages its dead-letter queue holds may not be asked in the overview's way, and nothing may be sent.
pub(crate) fn shop(request: &str) -> (u16, String) {
    if request.contains("Action=ListStackResources") {
        return resources(&[("AWS::Lambda::Function", "worker")], "");
    }
    let operation = |name: &str| request.contains(name);
    let answer = if request.starts_with("PUT ") || request.starts_with("GET ") {
        lambda(request)
    } else if operation("AmazonSQS.") {
        sqs(request)
    } else if operation("DynamoDB_20120810.GetItem") {
        let item = records().into_iter().find(|item| request.contains(item["id"]["S"].as_str().unwrap()));
        Some(item.map_or_else(|| json!({}), |item| json!({ "Item": item })))
    } else if operation("DynamoDB_20120810.UpdateItem") {
        Some(json!({}))
    } else if operation("DynamoDB_20120810.Scan") && operation("PARKED") && !operation("COMPLETED") {
        // The only one is behind two and a half thousand others.
        let (records, last) = (records(), json!({"id": {"S": "order#o-7"}}));
        let found = records.into_iter().filter(|item| item["id"]["S"] == "order#o-9" && operation("ExclusiveStartKey"));
        let found = found.map(|mut item| {
            item["status"] = json!({"S": "PARKED"});
            item
        });
        let items: Vec<_> = found.collect();
        Some(match items.len() {
            0 => json!({"Items": [], "Count": 0, "ScannedCount": 2_500, "LastEvaluatedKey": last}),
            _ => json!({"Items": items, "Count": 1, "ScannedCount": 1}),
        })
    } else if operation("DynamoDB_20120810.Scan") {
        let items = if operation("\"Segment\":0") { records() } else { Vec::new() };
        Some(json!({"Items": items, "Count": items.len(), "ScannedCount": items.len()}))
    } else if operation("DynamoDB_20120810.DescribeTable") {
        let keys = json!([{"AttributeName": "id", "KeyType": "HASH"}]);
        let types = json!([{"AttributeName": "id", "AttributeType": "S"}]);
        Some(
            json!({"Table": {"TableSizeBytes": 81_920, "ItemCount": 200, "KeySchema": keys, "AttributeDefinitions": types}}),
        )
    } else if operation("Logs_20140328.FilterLogEvents") {
        Some(logs(request))
    } else {
        None
    };
    match answer {
        Some(answer) => (200, answer.to_string()),
        None => (403, json!({"__type": "AccessDeniedException", "message": "not you"}).to_string()),
    }
}

fn arn(service: &str, name: &str) -> String {
    format!("arn:aws:{service}:eu-west-1:123456789012:{name}")
}

fn lambda(request: &str) -> Option<Value> {
    let mapping = |state: &str| {
        let (source, function) = (arn("sqs", "orders"), arn("lambda", "function:worker"));
        json!({"UUID": "m-1", "EventSourceArn": source, "FunctionArn": function, "State": state})
    };
    if request.starts_with(&format!("PUT {MAPPINGS}/m-1")) {
        return Some(mapping("Disabling"));
    }
    if request.starts_with(&format!("GET {MAPPINGS}/m-1")) {
        return Some(mapping("Disabled"));
    }
    if request.starts_with(&format!("GET {MAPPINGS} ")) {
        return Some(json!({"EventSourceMappings": [mapping("Enabled")]}));
    }
    let variables = json!({"Variables": {"CLAIMANT_TABLE": "locks", "PASSWORD": "s3cret"}});
    let is_asked = request.starts_with("GET /2015-03-31/functions/worker ");
    is_asked.then(|| json!({"Configuration": {"FunctionName": "worker", "Environment": variables}}))
}

fn sqs(request: &str) -> Option<Value> {
    let is = |name: &str| request.contains(&format!("AmazonSQS.{name}"));
    let is_dead = request.contains("orders-dead");
    let queue = |name: &str| format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{name}");
    if is("GetQueueUrl") {
        return Some(json!({"QueueUrl": queue(if is_dead { "orders-dead" } else { "orders" })}));
    }
    if is("GetQueueAttributes") && is_dead && request.contains("\"All\"") {
        return Some(json!({"Attributes": {"ApproximateNumberOfMessages": "2"}}));
    }
    let policy = json!({"deadLetterTargetArn": arn("sqs", "orders-dead"), "maxReceiveCount": 5}).to_string();
    if is("GetQueueAttributes") && request.contains("RedrivePolicy") {
        return Some(json!({"Attributes": if is_dead { json!({}) } else { json!({"RedrivePolicy": policy}) }}));
    }
    if is("GetQueueAttributes") && !is_dead {
        let [visible, hidden, delayed] =
            ["", "NotVisible", "Delayed"].map(|name| format!("ApproximateNumberOfMessages{name}"));
        return Some(json!({"Attributes": {visible: "120", hidden: "7", delayed: "3", "RedrivePolicy": policy}}));
    }
    if is("ListDeadLetterSourceQueues") {
        return Some(json!({"queueUrls": if is_dead { vec![queue("orders")] } else { Vec::new() }}));
    }
    if is("ReceiveMessage") && is_dead {
        return Some(json!({ "Messages": letters() }));
    }
    if is("SendMessageBatch") && !is_dead {
        return Some(json!({"Successful": [{"Id": "0", "MessageId": "new-1", "MD5OfMessageBody": "x"}], "Failed": []}));
    }
    if is("DeleteMessageBatch") && is_dead {
        return Some(json!({"Successful": [{"Id": "0"}], "Failed": []}));
    }
    let shown = || (0..10).map(|n: u8| json!({"Id": n.to_string()})).collect::<Vec<_>>();
    (is("ChangeMessageVisibilityBatch") && is_dead).then(|| json!({"Successful": shown(), "Failed": []}))
}

fn letters() -> Vec<Value> {
    let sent = (now_ms() - 3_600_000).to_string();
    let letter = |id: &str, body: &str, attributes: &[(&str, &str)]| {
        let attributes: serde_json::Map<_, _> = attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!({"DataType": "String", "StringValue": value})))
            .collect();
        let system = json!({"SentTimestamp": sent, "ApproximateReceiveCount": "1"});
        json!({"MessageId": id, "ReceiptHandle": format!("r-{id}"), "Body": body, "Attributes": system, "MessageAttributes": attributes})
    };
    vec![
        letter(
            "aaaa0000-0000-4000-8000-000000000001",
            r#"{"order":"o-9","note":"<script>alert(1)</script>"}"#,
            &[
                ("claimant-outcome", "rejected"),
                ("claimant-error", "order o-9 has no price"),
                ("claimant-consumer", "order"),
                ("claimant-record", "order#o-9"),
                ("claimant-message-id", REJECTED),
            ],
        ),
        letter("aaaa0000-0000-4000-8000-000000000002", r#"{"order":"o-11"}"#, &[]),
    ]
}

fn records() -> Vec<Value> {
    let now = now_ms();
    let record = |id: &str, status: &str, message: &str, error: Option<&str>| {
        let number = |value: u64| json!({"N": value.to_string()});
        let mut item = json!({
            "id": {"S": id}, "status": {"S": status}, "owner": {"S": "12e456aa"}, "fence": number(3), "lease_until": number(now - 50_000),
            "attempts": number(2), "message_id": {"S": message}, "fingerprint": {"B": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
            "created_at": number(now - 60_000), "updated_at": number(now - 55_000), "expires_at": number(now / 1_000 + 86_400),
        });
        if status == "COMPLETED" {
            item["completed_at"] = number(now - 55_000);
        }
        if let Some(error) = error {
            item["error"] = json!({ "S": error });
        }
        item
    };
    vec![
        record("order#o-7", "COMPLETED", DONE, None),
        record("order#o-9", "REJECTED", REJECTED, Some("order o-9 has no price")),
    ]
}

/// What the function logged of the message that is done: the first of two pages is empty.
fn logs(request: &str) -> Value {
    let at = now_ms() - 58_000;
    let is_followed = request.contains(r#"?\"message done\" ?\"batch done\""#);
    if !is_followed && !request.contains(&format!("\\\"{DONE}\\\"")) {
        return json!({ "events": [] });
    }
    if !request.contains("nextToken") {
        return json!({"events": [], "nextToken": "more"});
    }
    let line = |after: u64, id: &str, text: String| {
        let stream = "2026/11/22/[$LATEST]0a1b2c3d4e5f60718293a4b5c6d7e8f9";
        json!({"eventId": id, "timestamp": at + after, "logStreamName": stream, "message": text})
    };
    let lease = at + 30_000;
    let claimed = format!(
        r#"{{"level":"INFO","message":"message claimed","consumer":"order","message_id":"{DONE}","owner":"12e456","fence":3,"lease_until":{lease},"attempt":2,"taken_over":true,"receive_count":2}}"#
    );
    let own = format!(r#"{{"level":"INFO","message":"order <o-7> placed","span":{{"message_id":"{DONE}"}}}}"#);
    let done = format!(
        r#"{{"level":"INFO","message":"message done","consumer":"order","message_id":"{DONE}","outcome":"completed","dead_lettered":false,"attempt":2,"fence":3,"receive_count":2,"events":1,"handle_ms":812.5}}"#
    );
    if is_followed {
        return json!({ "events": [line(900, "3", done)] });
    }
    json!({"events": [line(0, "1", claimed), line(700, "2", own), line(900, "3", done)]})
}

fn now_ms() -> u64 {
    SystemClock.now().as_millis()
}
