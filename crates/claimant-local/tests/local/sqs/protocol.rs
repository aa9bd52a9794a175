//! The endpoint itself: waiting, stopping, and requests that no SDK makes.

use super::*;

#[tokio::test]
async fn a_long_poll_wakes_for_a_message() {
    let local = Local::start().await;
    let start = Instant::now();
    let poll = local.client.receive_message().queue_url(local.url("orders")).wait_time_seconds(20).send();
    let poll = tokio::spawn(poll);
    tokio::time::sleep(Duration::from_millis(50)).await;
    local.sqs.send("orders", NewMessage::new("a")).unwrap();
    assert_eq!(bodies(poll.await.unwrap().unwrap().messages()), ["a"]);
    assert!(start.elapsed() < Duration::from_secs(20), "the poll did not wake");
}

#[tokio::test]
async fn a_shutdown_ends_long_polls() {
    let local = Local::start().await;
    let start = Instant::now();
    let poll = local.client.receive_message().queue_url(local.url("orders")).wait_time_seconds(20).send();
    let poll = tokio::spawn(poll);
    tokio::time::sleep(Duration::from_millis(50)).await;
    local.stop.send(()).unwrap();
    // A poll that arrives only now finds no server: that is an end as well.
    drop(poll.await.unwrap());
    local.server.await.unwrap().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "the poll was waited for");
}

#[tokio::test]
async fn requests_that_no_sdk_makes() {
    let local = Local::start().await;
    let cases = [
        ("AmazonSQS.SendMessage", "{", "SerializationException", "is not JSON"),
        ("AmazonSQS.SendMessage", r#"{"MessageBody":{"secret":1}}"#, "SerializationException", "column"),
        // By their order, they would be the fields of a message.
        ("AmazonSQS.SendMessage", r#" ["", "orders", "secret"]"#, "SerializationException", "column"),
        ("AmazonSQS.TagQueue", r#"{"QueueUrl":"orders"}"#, "MissingRequiredParameterException", "Tags"),
        ("AmazonSQS.SendMessage", "", "MissingRequiredParameterException", "QueueUrl"),
        ("AmazonSQS.AddPermission", "{}", "UnsupportedOperation", "AddPermission"),
        ("Else.SendMessage", "{}", "UnsupportedOperation", "X-Amz-Target"),
    ];
    for (action, body, shape, hint) in cases {
        let answer = local.raw(action, body).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("x-amzn-query-error") && answer.contains("application/x-amz-json-1.0"), "{answer}");
        assert!(answer.contains(&format!("#{shape}\"")) && answer.contains(hint), "{answer}");
        assert!(!answer.contains("secret"), "{answer}");
    }
}

#[tokio::test]
async fn a_null_is_what_is_absent() {
    let local = Local::start().await;
    let url = local.url("orders");
    for (action, body) in [
        ("CreateQueue", r#"{"QueueName":"other","Attributes":null,"tags":null}"#.to_owned()),
        ("GetQueueAttributes", format!(r#"{{"QueueUrl":"{url}","AttributeNames":null}}"#)),
        (
            "SendMessage",
            format!(r#"{{"QueueUrl":"{url}","MessageBody":"a","DelaySeconds":null,"MessageAttributes":null}}"#),
        ),
        ("ReceiveMessage", format!(r#"{{"QueueUrl":"{url}","AttributeNames":null,"MessageAttributeNames":null}}"#)),
    ] {
        let answer = local.raw(&format!("AmazonSQS.{action}"), &body).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{action}: {answer}");
    }
    for (action, body, hint) in [
        ("SendMessageBatch", format!(r#"{{"QueueUrl":"{url}","Entries":null}}"#), "EmptyBatchRequest"),
        ("SendMessage", r#"{"QueueUrl":null}"#.to_owned(), "MissingRequiredParameterException"),
    ] {
        let answer = local.raw(&format!("AmazonSQS.{action}"), &body).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(hint), "{action}: {answer}");
    }
}
