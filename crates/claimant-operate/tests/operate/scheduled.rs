//! What schedules could not send.

use claimant_operate::dead::{Edit, Origin};
use serde_json::{Value, json};

use super::*;

/// Leaves a letter as EventBridge Scheduler does.
fn leave(sqs: &Sqs, input: &Value, is_cut: bool) {
    let said = [
        ("ERROR_CODE", "AccessDenied"),
        ("ERROR_MESSAGE", "no"),
        ("IS_PAYLOAD_TRUNCATED", if is_cut { "true" } else { "false" }),
        ("SCHEDULE_ARN", "arn:aws:scheduler:us-east-1:000000000000:schedule/default/s"),
        ("TARGET_ARN", "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"),
    ];
    let attribute = |value: &str| MessageAttribute {
        data_type: "String".to_owned(),
        value: AttributeValue::Text(value.to_owned()),
    };
    let message_attributes = said.into_iter().map(|(name, value)| (name.to_owned(), attribute(value))).collect();
    sqs.send("other", NewMessage { message_attributes, ..NewMessage::new(input.to_string()) }).unwrap();
}

/// As it was to be sent: also with what makes it the same work as the message that was scheduled again.
#[tokio::test]
async fn what_a_schedule_could_not_send_is_sent() {
    let local = Local::start().await;
    let root = "Root=1-5759e988-bd862e3fe1be46a994272793";
    let two = Bounds { limit: 2, ..ALL };
    let rows = [("moves.fifo", Some("d-1")), ("orders", None)];
    for (queue, deduplication_id) in rows {
        let text = |value: &str| json!({ "DataType": "String", "StringValue": value });
        let mut input = json!({
            "QueueUrl": local.url(queue),
            "MessageBody": "{\"n\":1}",
            "MessageGroupId": "g",
            "MessageAttributes": { "tenant": text("t-1"), "claimant-sent-again-of": text("m-0") },
            "MessageSystemAttributes": { "AWSTraceHeader": text(root) },
        });
        if let Some(id) = deduplication_id {
            input["MessageDeduplicationId"] = id.into();
        }
        leave(&local.sqs, &input, false);
    }
    let dead = local.open("other").await;
    let (letters, _) = read(&dead, &Selection::ids(["m-0"]), 2).await;
    for letter in &letters {
        assert_eq!((letter.body(), letter.body_bytes(), letter.group.as_deref()), ("{\"n\":1}", 7, Some("g")));
        assert_eq!(letter.cause(), "AccessDenied: no");
        assert_eq!(letter.to_json(true)["attributes"]["tenant"]["text"], "t-1");
    }
    let mut to: Vec<_> = letters.iter().filter_map(DeadLetter::source).collect();
    to.sort_unstable();
    assert_eq!(to, rows.map(|(queue, _)| queue));

    let report = dead.redrive(&Selection::ids(["m-0"]), None, &Edit::None, two, &mut go_on).await.unwrap();
    assert_eq!((report.progress.done, local.depth("other")), (2, (0, 0)), "{report:?}");
    for (queue, deduplication_id) in rows {
        let sent = local.receive(queue, 100).await.remove(0);
        let attributes: BTreeMap<_, _> = sent.message_attributes().unwrap().iter().collect();
        let attributes: Vec<_> = attributes.iter().map(|(n, v)| (n.as_str(), v.string_value().unwrap())).collect();
        assert_eq!(attributes, [("claimant-sent-again-of", "m-0"), ("tenant", "t-1")]);
        let system = |name| sent.attributes().unwrap().get(&name).map(String::as_str);
        assert_eq!((sent.body(), system(System::MessageGroupId)), (Some("{\"n\":1}"), Some("g")));
        assert_eq!(system(System::MessageDeduplicationId), deduplication_id);
        assert_eq!(system(System::AwsTraceHeader), Some(root));
    }
}

#[tokio::test]
async fn what_holds_no_whole_message_stays() {
    let local = Local::start().await;
    let message = |account: &str| json!({ "QueueUrl": format!("{}/{account}/orders", local.url), "MessageBody": "b" });
    let mut binary = message("000000000000");
    binary["MessageAttributes"] = json!({ "a": { "DataType": "Binary", "BinaryValue": "AAAA" } });
    leave(&local.sqs, &message("000000000000"), true);
    leave(&local.sqs, &json!({ "Uuid": "u", "Enabled": true }), false);
    leave(&local.sqs, &binary, false);
    // Who writes into the queue says where to: in its account, unless a person names it.
    leave(&local.sqs, &message("111111111111"), false);
    let dead = local.open("other").await;
    let orders = local.url("orders");
    for (to, elsewhere, sent) in [(None, 1, 0), (Some(&*orders), 0, 1)] {
        let four = Bounds { limit: 4, ..ALL };
        let report = dead.redrive(&Selection::default(), to, &Edit::None, four, &mut go_on).await.unwrap();
        let problems = |why| report.problems.iter().filter(|problem| problem.why.contains(why)).count();
        assert_eq!((problems("no whole message"), problems("of another account: name the")), (3, elsewhere));
        assert_eq!((report.progress.done, local.depth("orders").0), (sent, sent));
    }
    let (letters, _) = read(&dead, &Selection::default(), 3).await;
    assert!(letters.iter().all(|letter| letter.origin == Origin::Scheduled { to: None }));
}

/// As the console looks at them, without bodies.
#[tokio::test]
async fn of_a_letter_that_is_looked_at_the_message_is_seen() {
    let (_directory, cloud, place) = open("Resources: {other: {Type: AWS::SQS::Queue}}").await;
    let url = cloud.sqs().queue_url("other");
    leave(cloud.sqs(), &json!({ "QueueUrl": url, "MessageBody": "body" }), false);
    let dead = DeadLetterQueue::open_in(&place, url).await.unwrap().with_bodies_of(0);
    let (letters, _) = read(&dead, &Selection::default(), 1).await;
    assert_eq!((letters[0].body(), letters[0].source()), ("body", Some("other")));
    cloud.stop().await;
}
