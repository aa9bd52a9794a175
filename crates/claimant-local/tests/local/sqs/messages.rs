//! Single messages: what goes in comes out, and what is refused.

use super::*;

#[tokio::test]
async fn a_message_with_everything() {
    let local = Local::start().await;
    let binary = MessageAttributeValue::builder().data_type("Binary.png").binary_value(Blob::new([0, 255, 16]));
    let trace = "Root=1-5759e988-bd862e3fe1be46a994272793";
    let trace_header = MessageSystemAttributeValue::builder().data_type("String").string_value(trace);
    let sent = local
        .client
        .send_message()
        .queue_url(local.url("orders"))
        .message_body("hello world")
        .message_group_id("tenant-1")
        .message_attributes("tenant", attribute("String", "ünï"))
        .message_attributes("amount", attribute("Number.cents", "1250"))
        .message_attributes("seal", binary.build().unwrap())
        .message_system_attributes(SystemForSends::AwsTraceHeader, trace_header.build().unwrap())
        .send()
        .await
        .unwrap();
    // Digests made by another implementation.
    assert_eq!(sent.md5_of_message_body(), Some("5eb63bbbe01eeed093cb22bb8f5acdc3"));
    assert_eq!(sent.md5_of_message_attributes(), Some("9dceec7e61df4f616145dfe494807828"));
    assert_eq!(sent.md5_of_message_system_attributes(), Some("62a56dd927315f2b2e12832b84617ea5"));
    assert_eq!(sent.sequence_number(), None);

    let message = local.receive("orders").await.remove(0);
    assert_eq!(message.message_id(), sent.message_id());
    assert_eq!(message.body(), Some("hello world"));
    assert_eq!(message.md5_of_body(), sent.md5_of_message_body());
    assert_eq!(message.md5_of_message_attributes(), sent.md5_of_message_attributes());
    let attributes = message.message_attributes().unwrap();
    assert_eq!(attributes["tenant"].string_value(), Some("ünï"));
    assert_eq!(attributes["amount"].data_type(), "Number.cents");
    assert_eq!(attributes["seal"].binary_value().unwrap().as_ref(), [0, 255, 16]);
    let system = message.attributes().unwrap();
    for (name, expected) in [
        (System::ApproximateReceiveCount, "1"),
        (System::AwsTraceHeader, trace),
        (System::MessageGroupId, "tenant-1"),
        (System::SenderId, "000000000000"),
    ] {
        assert_eq!(system[&name], expected, "{name}");
    }
    assert!(system[&System::SentTimestamp] <= system[&System::ApproximateFirstReceiveTimestamp]);

    local.client.delete_message().queue_url(local.url("orders")).receipt_handle(handle(&message)).send().await.unwrap();
    assert_eq!(local.sqs.messages("orders").unwrap(), []);
}

#[tokio::test]
async fn a_receive_shows_the_attributes_it_names() {
    let local = Local::start().await;
    local
        .client
        .send_message()
        .queue_url(local.url("orders"))
        .message_body("a")
        .message_attributes("bar.one", attribute("String", "1"))
        .message_attributes("bar.two", attribute("String", "2"))
        .message_attributes("foo", attribute("String", "3"))
        .send()
        .await
        .unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &[]),
        (&["All"], &["bar.one", "bar.two", "foo"]),
        (&[".*"], &["bar.one", "bar.two", "foo"]),
        (&["bar.*"], &["bar.one", "bar.two"]),
        (&["foo", "none"], &["foo"]),
    ];
    for (wanted, expected) in cases {
        let request = local.client.receive_message().queue_url(local.url("orders")).visibility_timeout(0);
        let wanted = wanted.iter().map(ToString::to_string).collect();
        let request = request.set_message_attribute_names(Some(wanted));
        let answer = request.message_system_attribute_names(System::SenderId).send().await.unwrap();
        let message = &answer.messages()[0];
        let mut names: Vec<&str> =
            message.message_attributes().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, *expected);
        assert_eq!(message.md5_of_message_attributes().is_some(), !expected.is_empty());
        assert_eq!(message.attributes().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn errors_are_those_the_sdk_models() {
    let local = Local::start().await;
    let (client, orders, fifo) = (&local.client, local.url("orders"), local.url("orders.fifo"));
    let nowhere = local.url("nowhere");
    let send = || client.send_message();
    refused(send().queue_url(&nowhere).message_body("a").send().await, |e| e.is_queue_does_not_exist());
    refused(client.receive_message().queue_url(&nowhere).send().await, |e| e.is_queue_does_not_exist());
    refused(client.get_queue_url().queue_name("nowhere").send().await, |e| e.is_queue_does_not_exist());
    refused(client.delete_queue().queue_url(&nowhere).send().await, |e| e.is_queue_does_not_exist());
    refused(send().queue_url("http://x/orders").message_body("a").send().await, |e| e.is_invalid_address());
    for bad in ["\0", "a\u{8}", "\u{b}", "\u{1f}", "\u{fffe}", "\u{ffff}"] {
        refused(send().queue_url(&orders).message_body(bad).send().await, |e| e.is_invalid_message_contents());
    }
    let delete = client.delete_message().queue_url(&orders).receipt_handle("nonsense");
    refused(delete.send().await, |e| e.is_receipt_handle_is_invalid());
    let change = |handle: &str, timeout| {
        client.change_message_visibility().queue_url(&orders).receipt_handle(handle).visibility_timeout(timeout)
    };
    refused(change("nonsense", 1).send().await, |e| e.is_receipt_handle_is_invalid());
    local.send("orders", "\u{d7ff}\u{e000}\u{fffd}\u{10000}\t\n\r").await;
    let handle = handle(&local.receive("orders").await[0]);
    change(&handle, 0).send().await.unwrap();
    let move_task = client.start_message_move_task().source_arn(local.sqs.queue_arn("nowhere"));
    refused(move_task.send().await, |e| e.is_resource_not_found_exception());

    let invalid = "InvalidParameterValue";
    let receive = || client.receive_message().queue_url(&orders);
    let fifo = |group: bool, id: bool| {
        let request = send().queue_url(&fifo).message_body("a");
        request.set_message_group_id(group.then(|| "g".into())).set_message_deduplication_id(id.then(|| "1".into()))
    };
    assert_eq!(code(receive().max_number_of_messages(11).send().await), invalid);
    assert_eq!(code(receive().wait_time_seconds(21).send().await), invalid);
    assert_eq!(code(receive().visibility_timeout(-1).send().await), invalid);
    assert_eq!(code(change(&handle, 43_201).send().await), invalid);
    assert_eq!(code(fifo(true, false).send().await), invalid);
    assert_eq!(code(fifo(false, true).send().await), "MissingParameter");
    assert_eq!(code(fifo(true, true).delay_seconds(1).send().await), invalid);
    assert_eq!(code(send().queue_url(&orders).message_body("").send().await), "MissingParameter");
    let deduplicated = send().queue_url(&orders).message_body("a").message_deduplication_id("1");
    assert_eq!(code(deduplicated.send().await), invalid);
    for name in ["aWs.x", "AMAZON.x", ".x", "x.", "x..y", "x y"] {
        let named = send().queue_url(&orders).message_body("a").message_attributes(name, attribute("String", "x"));
        assert_eq!(code(named.send().await), invalid, "{name}");
    }
}

#[tokio::test]
async fn a_mebibyte_and_not_a_byte_more() {
    let local = Local::start().await;
    let url = local.url("orders");
    let send = |body: String| local.client.send_message().queue_url(&url).message_body(body);
    // A body that JSON spells in more bytes than it has: a line feed is two, or six if the client likes.
    send("\n".repeat(MIB)).send().await.unwrap();
    let escaped = "\\u000a".repeat(MIB);
    let request = format!(r#"{{"QueueUrl":"{url}","MessageBody":"{escaped}"}}"#);
    let answer = local.raw("AmazonSQS.SendMessage", &request).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let received = local.receive("orders").await;
    assert!(received.iter().all(|message| message.body().unwrap().len() == MIB), "{} received", received.len());
    assert_eq!(received.len(), 2);

    assert_eq!(code(send("x".repeat(MIB + 1)).send().await), "InvalidParameterValue");
    // Name, type and value of an attribute count: 1 + 6 + 1 bytes.
    let with_attribute = |body| send("x".repeat(body)).message_attributes("n", attribute("String", "v"));
    with_attribute(MIB - 8).send().await.unwrap();
    assert_eq!(code(with_attribute(MIB - 7).send().await), "InvalidParameterValue");
    let smaller = local.client.set_queue_attributes().queue_url(&url).attributes(Name::MaximumMessageSize, "1024");
    smaller.send().await.unwrap();
    assert_eq!(code(send("x".repeat(1_025)).send().await), "InvalidParameterValue");
}
