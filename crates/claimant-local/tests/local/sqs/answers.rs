//! What AWS answers where it is not what one would guess. Taken from the AWS-validated tests and snapshots of LocalStack
//! (`tests/aws/services/sqs`, March 2026), where no other source is named.

use super::*;

const TRACE: &str = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1";

#[tokio::test]
async fn a_change_of_visibility_after_the_timeout_is_accepted_and_changes_nothing() {
    let local = Local::start().await;
    local.send("orders", "a").await;
    let receive = || local.client.receive_message().queue_url(local.url("orders")).visibility_timeout(0).send();
    let first = receive().await.unwrap();
    let change = |timeout| {
        let request = local.client.change_message_visibility().queue_url(local.url("orders"));
        request.receipt_handle(handle(&first.messages()[0])).visibility_timeout(timeout).send()
    };
    change(60).await.unwrap();
    assert_eq!(receive().await.unwrap().messages().len(), 1, "it is still visible");

    // An old handle still speaks for the message while that is in flight.
    assert_eq!(local.receive("orders").await.len(), 1);
    change(0).await.unwrap();
    let last = receive().await.unwrap();
    assert_eq!(last.messages().len(), 1);
    local
        .client
        .delete_message()
        .queue_url(local.url("orders"))
        .receipt_handle(handle(&last.messages()[0]))
        .send()
        .await
        .unwrap();
    assert_eq!(code(change(60).await), "InvalidParameterValue", "it has gone");
}

#[tokio::test]
async fn message_attributes_by_asterisk_and_by_names_that_none_can_have() {
    let local = Local::start().await;
    let request = local.client.send_message().queue_url(local.url("orders")).message_body("a");
    // Letters need not be ASCII.
    let request = request.message_attributes("attr.1øßä", attribute("String", "x"));
    request.message_attributes("Help.Me", attribute("String", "y")).send().await.unwrap();
    for (wanted, expected) in
        [("*", 2), (".*", 2), ("All", 2), ("Hel.*", 1), ("attr.1øßä", 1), ("AWS.", 0), ("..foo", 0)]
    {
        let request = local.client.receive_message().queue_url(local.url("orders")).visibility_timeout(0);
        let answer = request.message_attribute_names(wanted).send().await.unwrap();
        let shown = answer.messages()[0].message_attributes().map_or(0, std::collections::HashMap::len);
        assert_eq!(shown, expected, "{wanted}");
    }
    for name in ["Invalid-!-attr", "Invalid-\"-attr", "Invalid-§-attr", "Invalid-(-attr", "Invalid-?-attr"] {
        let request = local.client.send_message().queue_url(local.url("orders")).message_body("a");
        let named = request.message_attributes(name, attribute("String", "x")).send().await;
        assert_eq!(code(named), "InvalidParameterValue", "{name}");
    }
    let request = local.client.send_message().queue_url(local.url("orders")).message_body("a");
    let control = request.message_attributes("attr1", attribute("String", "Invalid-\u{8},\u{b}")).send().await;
    assert_eq!(code(control), "InvalidParameterValue");
}

#[tokio::test]
async fn the_trace_header_of_a_request_is_that_of_its_messages() {
    let local = Local::start().await;
    let url = local.url("orders");
    let headers = format!("x-amzn-trace-id: {TRACE}\r\n");
    let single = format!(r#"{{"QueueUrl":"{url}","MessageBody":"a"}}"#);
    let own = r#"{"AWSTraceHeader":{"DataType":"String","StringValue":"Root=1-own"}}"#;
    let batch = format!(
        r#"{{"QueueUrl":"{url}","Entries":[{{"Id":"b","MessageBody":"b"}},{{"Id":"c","MessageBody":"c","MessageSystemAttributes":{own}}}]}}"#
    );
    for (action, body) in [("SendMessage", single), ("SendMessageBatch", batch)] {
        let answer = local.raw_with(&format!("AmazonSQS.{action}"), &headers, &body).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let received = local.receive("orders").await;
    let traces: Vec<_> =
        received.iter().map(|message| &*message.attributes().unwrap()[&System::AwsTraceHeader]).collect();
    // The attribute of a message beats the header of its request (X-Ray's developer guide, "Amazon SQS and AWS X-Ray").
    assert_eq!(traces, [TRACE, TRACE, "Root=1-own"]);
}

#[tokio::test]
async fn one_purge_in_a_minute() {
    let local = Local::start().await;
    let purge = |queue: &str| local.client.purge_queue().queue_url(local.url(queue)).send();
    purge("orders").await.unwrap();
    refused(purge("orders").await, |e| e.is_purge_queue_in_progress());
    purge("dead").await.unwrap();
}

#[tokio::test]
async fn a_deleted_name_is_free_after_a_minute() {
    let local = Local::start().await;
    local.client.delete_queue().queue_url(local.url("twice")).send().await.unwrap();
    let again = local.client.create_queue().queue_name("twice").send();
    refused(again.await, |e| e.is_queue_deleted_recently());
}

#[tokio::test]
async fn booleans_are_read_in_either_case() {
    let local = Local::start().await;
    let create = |name: &str| local.client.create_queue().queue_name(name);
    let made =
        create("new.fifo").attributes(Name::FifoQueue, "True").attributes(Name::ContentBasedDeduplication, "True");
    let url = made.send().await.unwrap().queue_url.unwrap();
    let same =
        create("new.fifo").attributes(Name::FifoQueue, "true").attributes(Name::ContentBasedDeduplication, "true");
    same.send().await.unwrap();
    let all = local.client.get_queue_attributes().queue_url(&url).attribute_names(Name::All).send().await.unwrap();
    let all = all.attributes().unwrap();
    assert_eq!((&*all[&Name::FifoQueue], &*all[&Name::ContentBasedDeduplication]), ("true", "true"));
    let odd = create("odd.fifo").attributes(Name::FifoQueue, "true").attributes(Name::ContentBasedDeduplication, "yes");
    refused(odd.send().await, |e| e.is_invalid_attribute_value());

    let set = |queue: &str, value: &str| {
        local.client.set_queue_attributes().queue_url(local.url(queue)).attributes(Name::FifoQueue, value).send()
    };
    set("new.fifo", "true").await.unwrap();
    refused(set("new.fifo", "false").await, |e| e.is_invalid_attribute_value());
    refused(set("orders", "true").await, |e| e.is_invalid_attribute_name());
    refused(set("orders", "false").await, |e| e.is_invalid_attribute_name());
}

#[tokio::test]
async fn a_name_is_as_good_as_a_url() {
    let local = Local::start().await;
    local.client.send_message().queue_url("orders").message_body("a").send().await.unwrap();
    assert_eq!(local.client.receive_message().queue_url("orders").send().await.unwrap().messages().len(), 1);
    let unknown = local.client.send_message().queue_url("nowhere").message_body("a").send().await;
    refused(unknown, |e| e.is_queue_does_not_exist());
    let elsewhere = local.client.get_queue_url().queue_name("orders");
    refused(elsewhere.queue_owner_aws_account_id("111122223333").send().await, |e| e.is_queue_does_not_exist());
}

#[tokio::test]
async fn encryption_is_shown_as_aws_shows_it() {
    let local = Local::start().await;
    let url = local.url("orders");
    let shown = async |name: Name| {
        let request = local.client.get_queue_attributes().queue_url(&url).attribute_names(name.clone());
        request.send().await.unwrap().attributes.and_then(|attributes| attributes.get(&name).cloned())
    };
    let set = |attributes: &[(Name, &str)]| {
        let request = local.client.set_queue_attributes().queue_url(&url);
        attributes.iter().fold(request, |request, (name, value)| request.attributes(name.clone(), *value)).send()
    };
    assert_eq!(shown(Name::SqsManagedSseEnabled).await.as_deref(), Some("true"));
    set(&[(Name::KmsMasterKeyId, "alias/own"), (Name::KmsDataKeyReusePeriodSeconds, "6000")]).await.unwrap();
    assert_eq!(shown(Name::SqsManagedSseEnabled).await.as_deref(), Some("false"));
    assert_eq!(shown(Name::KmsDataKeyReusePeriodSeconds).await.as_deref(), Some("6000"));
    set(&[(Name::KmsMasterKeyId, ""), (Name::KmsDataKeyReusePeriodSeconds, "300")]).await.unwrap();
    assert_eq!((shown(Name::KmsMasterKeyId).await, shown(Name::KmsDataKeyReusePeriodSeconds).await), (None, None));
    let both = set(&[(Name::KmsMasterKeyId, "alias/own"), (Name::SqsManagedSseEnabled, "true")]).await;
    refused(both, |e| e.is_invalid_attribute_name());
}

#[tokio::test]
async fn a_dead_letter_queue_says_whose_it_is() {
    let local = Local::start().await;
    let allow = |policy: &str| {
        let request = local.client.set_queue_attributes().queue_url(local.url("dead"));
        request.attributes(Name::RedriveAllowPolicy, policy).send()
    };
    let arn = local.sqs.queue_arn("orders");
    let redrive = || {
        let policy = format!(r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":5}}"#, local.sqs.queue_arn("dead"));
        let request = local.client.set_queue_attributes().queue_url(local.url("orders"));
        request.attributes(Name::RedrivePolicy, policy).send()
    };
    for (policy, allowed) in [
        (r#"{"redrivePermission":"denyAll"}"#.to_owned(), false),
        (
            r#"{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:us-east-1:000000000000:twice"]}"#
                .to_owned(),
            false,
        ),
        (format!(r#"{{"redrivePermission":"byQueue","sourceQueueArns":["{arn}"]}}"#), true),
        (r#"{"redrivePermission":"allowAll"}"#.to_owned(), true),
    ] {
        allow(&policy).await.unwrap();
        match redrive().await {
            Ok(_) => assert!(allowed, "{policy}"),
            refused => assert_eq!((code(refused), allowed), ("InvalidParameterValue".to_owned(), false), "{policy}"),
        }
    }
    for policy in [
        "nonsense",
        "{}",
        r#"{"redrivePermission":"some"}"#,
        r#"{"redrivePermission":"byQueue"}"#,
        r#"{"redrivePermission":"byQueue","sourceQueueArns":["orders"]}"#,
    ] {
        assert_eq!(code(allow(policy).await), "InvalidParameterValue", "{policy}");
    }
    // A queue that it does not allow, or whose dead-letter queue is gone, can still be changed.
    for gone in [false, true] {
        match gone {
            true => _ = local.client.delete_queue().queue_url(local.url("dead")).send().await.unwrap(),
            false => _ = allow(r#"{"redrivePermission":"denyAll"}"#).await.unwrap(),
        }
        let change = local.client.set_queue_attributes().queue_url(local.url("orders"));
        change.attributes(Name::VisibilityTimeout, "9").send().await.unwrap();
        assert_eq!(code(redrive().await), "InvalidParameterValue");
    }
}

/// Seen in ruby-shoryuken/shoryuken#769: of a batch the whole, not the entry.
#[tokio::test]
async fn lists_of_attribute_values_are_refused() {
    let local = Local::start().await;
    let with = |list: bool| {
        let attribute = MessageAttributeValue::builder().data_type("String").string_value("x");
        let attribute = if list { attribute.string_list_values("y") } else { attribute };
        attribute.build().unwrap()
    };
    let send = local.client.send_message().queue_url(local.url("orders")).message_body("a");
    let error = send.message_attributes("n", with(true)).send().await.unwrap_err().into_service_error();
    assert!(error.is_unsupported_operation() && error.to_string().contains("in SendMessage operation"), "{error:?}");
    let entry = |id: &str| SendEntry::builder().id(id).message_body("a").message_attributes("n", with(id == "b"));
    let batch = local.client.send_message_batch().queue_url(local.url("orders"));
    let sent = batch.entries(entry("a").build().unwrap()).entries(entry("b").build().unwrap()).send().await;
    let error = sent.unwrap_err().into_service_error();
    assert!(error.is_unsupported_operation() && error.to_string().contains("in SendMessageBatch"), "{error:?}");
    assert!(local.receive("orders").await.is_empty(), "one of a refused batch was sent");
}

#[tokio::test]
async fn the_status_of_an_error() {
    let local = Local::start().await;
    let url = local.url("orders");
    local.client.purge_queue().queue_url(&url).send().await.unwrap();
    let arn = local.sqs.queue_arn("nowhere");
    let cases = [
        ("PurgeQueue", format!(r#"{{"QueueUrl":"{url}"}}"#), 403, "AWS.SimpleQueueService.PurgeQueueInProgress;Sender"),
        ("StartMessageMoveTask", format!(r#"{{"SourceArn":"{arn}"}}"#), 404, "ResourceNotFoundException;Sender"),
        ("PurgeQueue", r#"{"QueueUrl":"nowhere"}"#.to_owned(), 400, "AWS.SimpleQueueService.NonExistentQueue;Sender"),
        ("SendMessage", format!(r#"{{"QueueUrl":"{url}"}}"#), 400, "MissingParameter;Sender"),
    ];
    for (action, body, status, query_error) in cases {
        let answer = local.raw(&format!("AmazonSQS.{action}"), &body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{action}: {answer}");
        assert!(answer.contains(&format!("x-amzn-query-error: {query_error}\r\n")), "{action}: {answer}");
    }
}
