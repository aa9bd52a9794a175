//! The message that points to an object.

use claimant_core::{AttributeValue, Event, Message, PayloadSource as _, Pointer};
use claimant_s3::{SIZE_ATTRIBUTE, message_body};

use super::payloads;

const CLASS: &str = "software.amazon.payloadoffloading.PayloadS3Pointer";
const SIZE_ATTRIBUTE_LEGACY: &str = "SQSLargePayloadSize";
const POINTER_MAX_BYTES: usize = 8 * 1024;

fn read(body: &str, attributes: &[(&str, AttributeValue)]) -> Result<Option<Pointer>, String> {
    let mut message = Message::new("m", body).unwrap();
    for (name, value) in attributes {
        message = message.with_attribute(*name, value.clone());
    }
    payloads("secret")
        .also_from("b")
        .payload_max_bytes(1_000)
        .pointer(&message)
        .map_err(|rejection| rejection.to_string())
}

#[test]
fn the_forms_of_both_clients_and_both_times_are_pointers() {
    let pointer = Some(Pointer { container: "b".to_owned(), name: "k/ä".to_owned() });
    let size = |name| (name, AttributeValue::number(10));
    let ours = message_body("b", "k/ä");
    for (body, attributes) in [
        (ours.as_str(), vec![size(SIZE_ATTRIBUTE)]),
        // Java, with and without its legacy name; Python's `dumps` has spaces and escapes.
        (
            r#"["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k/ä"}]"#,
            vec![size(SIZE_ATTRIBUTE_LEGACY)],
        ),
        (
            r#"["com.amazon.sqs.javamessaging.MessageS3Pointer",{"s3BucketName":"b","s3Key":"k/ä"}]"#,
            vec![size(SIZE_ATTRIBUTE_LEGACY)],
        ),
        (
            "[\"software.amazon.payloadoffloading.PayloadS3Pointer\", {\"s3BucketName\": \"b\", \"s3Key\": \"k/\\u00e4\"}]",
            vec![size(SIZE_ATTRIBUTE)],
        ),
        // Attributes can be lost on the way: by a tool that redrives, or a subscription.
        (ours.as_str(), vec![]),
    ] {
        assert_eq!(read(body, &attributes), Ok(pointer.clone()), "{body}");
    }
    // Inside an envelope: the event's attribute counts.
    let mut event = Event::default();
    event.attributes.set(SIZE_ATTRIBUTE, AttributeValue::number(1_001));
    let inside = Message::new("m", "{}").unwrap().opened(ours, event);
    assert!(payloads("b").payload_max_bytes(1_000).pointer(&inside).is_err());
    assert_eq!(payloads("b").payload_max_bytes(1_001).pointer(&inside).unwrap(), pointer);
}

/// What a producer writes into, its consumer reads from: an access point's ARN is longer than any bucket's name.
#[test]
fn an_access_point_is_named_by_its_arn() {
    let arn = "arn:aws:s3:ap-southeast-2:123456789012:accesspoint/large-payloads-of-the-shop";
    let message = Message::new("m", message_body(arn, "k")).unwrap();
    let pointer = Pointer { container: arn.to_owned(), name: "k".to_owned() };
    assert_eq!(payloads(arn).pointer(&message).unwrap(), Some(pointer));
}

#[test]
fn other_bodies_are_payloads() {
    let long = format!("[\"{CLASS}\",{{\"s3BucketName\":\"b\",\"s3Key\":\"{}\"}}]", "k".repeat(POINTER_MAX_BYTES));
    let bodies = [
        "",
        "{}",
        "[",
        "[]",
        "[1]",
        r#"["a",{"s3BucketName":"b","s3Key":"k"}]"#,
        r#"{"s3BucketName":"b","s3Key":"k"}"#,
        "\u{0}",
        &long,
    ];
    for body in bodies {
        assert_eq!(read(body, &[]), Ok(None), "{body}");
    }
}

#[test]
fn pointers_that_lie_say_what_is_wrong_and_quote_nothing() {
    let class = |rest: &str| format!("[\"{CLASS}\"{rest}]");
    let key = "secret".repeat(171);
    let good = message_body("secret", "secret");
    let number = |bytes: u64| vec![(SIZE_ATTRIBUTE, AttributeValue::number(bytes))];
    for (body, attributes, wanted) in [
        (class(""), vec![], "not a class and an object"),
        (class(r#","secret""#), vec![], "not a class and an object"),
        (class(r#",{"s3BucketName":"secret","s3Key":"k"},1"#), vec![], "not a class and an object"),
        (class(r#",{"s3Key":"secret"}"#), vec![], "s3BucketName of the pointer"),
        (class(r#",{"s3BucketName":"","s3Key":"secret"}"#), vec![], "s3BucketName of the pointer"),
        (class(r#",{"s3BucketName":"secret","s3Key":7}"#), vec![], "s3Key of the pointer"),
        (class(&format!(r#",{{"s3BucketName":"secret","s3Key":"{key}"}}"#)), vec![], "s3Key of the pointer"),
        (
            "{\"secret\":1}".to_owned(),
            number(1),
            "the body is no pointer to a payload, and the message has the attribute ExtendedPayloadSize",
        ),
        (good.clone(), number(1_001), "has 1001 bytes, and at most 1000"),
        (good.clone(), number(u64::MAX), "has 18446744073709551615 bytes"),
        (
            good.clone(),
            vec![(SIZE_ATTRIBUTE, AttributeValue::text("secret"))],
            "ExtendedPayloadSize is no number of bytes",
        ),
        (
            good,
            vec![(SIZE_ATTRIBUTE_LEGACY, AttributeValue::bytes(*b"secret"))],
            "SQSLargePayloadSize is no number of bytes",
        ),
    ] {
        let fault = read(&body, &attributes).unwrap_err();
        assert!(fault.contains(wanted) && !fault.contains("secret"), "{fault}");
    }
}

#[test]
fn only_buckets_that_are_named_are_read() {
    let other = read(&message_body("other-secret", "k"), &[]).unwrap_err();
    assert!(other.contains("names a bucket that nothing is fetched from") && !other.contains("secret"), "{other}");
}
