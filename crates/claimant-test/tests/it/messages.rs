//! What the messages look like, beside what AWS documents.

use std::collections::BTreeSet;

use claimant_core::AttributeValue;
use claimant_test::{S3Object, TestMessage, event};
use serde_json::{Value, json};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn each_envelope_has_the_fields_that_its_service_documents() {
    let order = json!({ "order_id": "ord-1" });
    let base = || TestMessage::json(&order);
    let names = |value: &Value| value.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ");
    let in_sns = parsed(&base().attribute("tenant", AttributeValue::text("acme")).in_sns("orders").body());
    let fields = "Message MessageAttributes MessageId Signature SignatureVersion SigningCertURL Timestamp TopicArn Type \
                  UnsubscribeURL";
    assert_eq!(names(&in_sns), fields);
    assert_eq!(parsed(in_sns["Message"].as_str().unwrap()), order);
    assert_eq!(in_sns["MessageAttributes"], json!({ "tenant": { "Type": "String", "Value": "acme" } }));
    assert_eq!(in_sns["TopicArn"], "arn:aws:sns:us-east-1:123456789012:orders");

    let event = parsed(&base().in_event_bridge("shop", "order placed").body());
    assert_eq!(names(&event), "account detail detail-type id region resources source time version");
    assert_eq!((&event["detail"], &event["detail-type"]), (&order, &json!("order placed")));

    let cloud = parsed(&base().in_cloud_event("shop", "order").body());
    assert_eq!((&cloud["specversion"], &cloud["data"], &cloud["type"]), (&json!("1.0"), &order, &json!("order")));
    assert_eq!(parsed(&TestMessage::text("tea").in_cloud_event("shop", "order").body())["data"], "tea");

    let objects = [S3Object::created("in", "a b.csv").version("v1"), S3Object::removed("in", "c.csv").sequencer("0A")];
    let notification = parsed(&TestMessage::s3(&objects).body());
    let object = |index: usize| &notification["Records"][index]["s3"]["object"];
    assert_eq!((&object(0)["key"], &object(0)["versionId"]), (&json!("a+b.csv"), &json!("v1")));
    assert_eq!((&object(1)["sequencer"], object(1).get("size")), (&json!("0A"), None));
    assert_eq!(notification["Records"][1]["eventName"], "ObjectRemoved:Delete");
    let both = [S3Object::created("in", "a"), S3Object::removed("in", "a")].map(|object| TestMessage::s3(&[object]));
    let [created, removed] =
        both.map(|message| parsed(&message.body())["Records"][0]["s3"]["object"]["sequencer"].to_string());
    assert!(created < removed, "{created} {removed}");
    assert_eq!(parsed(&TestMessage::s3_test_event("in").body())["Event"], "s3:TestEvent");

    let pointer = TestMessage::s3_pointer("large", "key", 300_000);
    assert_eq!(parsed(&pointer.body())[1], json!({ "s3BucketName": "large", "s3Key": "key" }));
    assert_eq!(pointer.message(1).attributes().number("ExtendedPayloadSize"), Some(300_000));
}

#[test]
fn envelopes_nest_and_a_second_copy_differs_in_what_a_second_copy_differs_in() {
    let nested = TestMessage::json(&json!({ "id": 1 })).in_event_bridge("shop", "order").in_sns("orders");
    let (first, again) = (parsed(&nested.body()), parsed(&nested.sent_again().body()));
    let inner = |outer: &Value| parsed(outer["Message"].as_str().unwrap());
    assert_eq!(inner(&first)["detail"], json!({ "id": 1 }));
    for changed in ["MessageId", "Timestamp"] {
        assert_ne!(first[changed], again[changed], "{changed}");
    }
    assert_ne!((&inner(&first)["id"], &inner(&first)["time"]), (&inner(&again)["id"], &inner(&again)["time"]));
    assert_ne!(first["MessageId"], inner(&first)["id"]);
    assert_eq!(inner(&first)["detail"], inner(&again)["detail"]);
    let other = parsed(&TestMessage::json(&json!({ "id": 2 })).in_event_bridge("shop", "order").body());
    assert_ne!(inner(&first)["id"], other["id"], "ids are of one event");
    let renamed = TestMessage::json(&json!({ "id": 1 })).in_event_bridge("shop", "refund");
    assert_ne!(inner(&first)["id"], parsed(&renamed.body())["id"], "also with the same detail");
    let cloud = TestMessage::json(&json!({ "id": 1 })).in_cloud_event("shop", "order");
    assert_eq!(parsed(&cloud.body())["id"], parsed(&cloud.sent_again().body())["id"]);
}

#[test]
fn a_fifo_queue_tells_messages_apart_by_all_that_differs() {
    let order = || TestMessage::json(&json!({ "id": 1 })).in_group("g");
    let kind = |kind: &str| order().attribute("type", AttributeValue::text(kind));
    let all = [
        order(),
        order().sent_again(),
        order().in_sns("orders"),
        order().in_event_bridge("shop", "order"),
        kind("a"),
        kind("b"),
        order().in_group("h"),
    ];
    let ids = all.each_ref().map(TestMessage::deduplication_id);
    assert_eq!(BTreeSet::from(ids.clone()).len(), all.len(), "{ids:?}");
    assert_eq!(order().deduplication_id(), ids[0]);
}

#[test]
fn a_message_is_the_same_in_a_function_s_event_and_in_the_engine() {
    let message = TestMessage::text("tea")
        .in_group("ada")
        .attribute("tenant", AttributeValue::text("acme").with_label("id"))
        .attribute("weight", AttributeValue::number(7))
        .attribute("digest", AttributeValue::bytes([1, 2, 3]))
        .traced("Root=1-2-3")
        .received(3);
    let record = event(&[message.clone(), TestMessage::text("milk").id("own").in_fair_group("b").from_queue("fair")]);
    let (first, second) = (&record["Records"][0], &record["Records"][1]);
    let system = &first["attributes"];
    assert_eq!(
        (&first["messageId"], &first["body"], &second["messageId"]),
        (&json!("m-1"), &json!("tea"), &json!("own"))
    );
    assert_eq!((&system["ApproximateReceiveCount"], &system["MessageGroupId"]), (&json!("3"), &json!("ada")));
    assert_eq!(
        (&system["AWSTraceHeader"], &system["SequenceNumber"]),
        (&json!("Root=1-2-3"), &json!("00000000000000000001"))
    );
    assert_eq!(first["eventSourceARN"], "arn:aws:sqs:us-east-1:123456789012:test-queue.fifo");
    assert_eq!(second["eventSourceARN"], "arn:aws:sqs:us-east-1:123456789012:fair");
    let attributes = &first["messageAttributes"];
    assert_eq!(
        (&attributes["tenant"]["stringValue"], &attributes["tenant"]["dataType"]),
        (&json!("acme"), &json!("String.id"))
    );
    assert_eq!(
        (&attributes["digest"]["binaryValue"], &attributes["weight"]["stringValue"]),
        (&json!("AQID"), &json!("7"))
    );
    let message = message.message(1);
    assert_eq!((message.id().as_str(), message.body(), message.receive_count()), ("m-1", "tea", 3));
    assert_eq!((message.ordered_group(), message.trace()), (Some("ada"), Some("Root=1-2-3")));
    assert_eq!(message.source_arn(), first["eventSourceARN"].as_str());
    assert_eq!(message.sent_at().unwrap().as_millis().to_string(), system["SentTimestamp"]);
    assert_eq!(
        (message.attributes().number("weight"), message.attributes().bytes("digest")),
        (Some(7), Some(&[1, 2, 3][..]))
    );
}
