//! What the local SQS does not imitate: refused by its name, or kept and shown. The list is in the head of `claimant_local::sqs`.

use super::*;

/// The message of the `UnsupportedOperation` that the action ended with.
fn unsupported<T, E: ProvideErrorMetadata>(result: Result<T, SdkError<E>>) -> String {
    let error = result.err().expect("the request should have been refused");
    assert_eq!(error.code(), Some("AWS.SimpleQueueService.UnsupportedOperation"));
    error.message().expect("it says why").to_owned()
}

#[tokio::test]
async fn what_is_left_out_is_refused_by_its_name() {
    let local = Local::start().await;
    let (client, url) = (&local.client, local.url("orders"));
    let add = client.add_permission().queue_url(&url).label("l").aws_account_ids("111122223333").actions("*");
    let remove = client.remove_permission().queue_url(&url).label("l");
    for (told, name) in
        [(unsupported(add.send().await), "AddPermission"), (unsupported(remove.send().await), "RemovePermission")]
    {
        assert!(told.contains(name) && told.contains("does not imitate"), "{told}");
    }
    let elsewhere = url.replace("000000000000", "111122223333");
    refused(client.send_message().queue_url(elsewhere).message_body("a").send().await, |e| e.is_invalid_address());
}

/// Spring Cloud AWS names one in each receive from a FIFO queue.
#[tokio::test]
async fn the_id_of_a_receive_has_its_form_and_no_effect() {
    let local = Local::start().await;
    for (queue, id, accepted) in [
        ("orders.fifo", "5759e988-bd86", true),
        ("orders.fifo", "", false),
        ("orders.fifo", "a b", false),
        ("orders", "5759e988-bd86", false),
    ] {
        let receive = local.client.receive_message().queue_url(local.url(queue)).receive_request_attempt_id(id);
        let received = receive.send().await;
        let code = received.as_ref().err().and_then(ProvideErrorMetadata::code);
        assert_eq!(code, (!accepted).then_some("InvalidParameterValue"), "{queue}: {id}");
    }
}

#[tokio::test]
async fn the_older_protocol_is_refused_in_its_own_form() {
    let local = Local::start().await;
    let headers = "content-type: application/x-www-form-urlencoded\r\n";
    let answer = http::asked(&local.address, "POST /", headers, "Action=ListQueues").await;
    for part in [
        "HTTP/1.1 400",
        "text/xml",
        "<Code>AWS.SimpleQueueService.UnsupportedOperation</Code>",
        "the query protocol",
        "since mid 2024",
    ] {
        assert!(answer.contains(part), "{part} is not in: {answer}");
    }
}

#[tokio::test]
async fn what_has_no_effect_is_kept_and_shown() {
    let local = Local::start().await;
    let url = local.url("orders");
    let policy = r#"{"Version":"2012-10-17","Statement":[]}"#;
    let set = |value: &str| local.client.set_queue_attributes().queue_url(&url).attributes(Name::Policy, value).send();
    let shown = async || {
        let request = local.client.get_queue_attributes().queue_url(&url).attribute_names(Name::All);
        request.send().await.unwrap().attributes.unwrap().get(&Name::Policy).cloned()
    };
    set(policy).await.unwrap();
    assert_eq!(shown().await.as_deref(), Some(policy));
    set("").await.unwrap();
    assert_eq!(shown().await, None);
}

/// By their forms and limits in AWS's documents: the developer guide's quotas of queues, and the API reference of `SetQueueAttributes`.
#[tokio::test]
async fn what_has_no_effect_has_its_form_and_limits() {
    let local = Local::start().await;
    let url = local.url("orders");
    for (name, value, accepted) in [
        (Name::KmsDataKeyReusePeriodSeconds, "59", false),
        (Name::KmsDataKeyReusePeriodSeconds, "60", true),
        (Name::KmsDataKeyReusePeriodSeconds, "86400", true),
        (Name::KmsDataKeyReusePeriodSeconds, "86401", false),
        (Name::KmsDataKeyReusePeriodSeconds, "abc", false),
        (Name::SqsManagedSseEnabled, "True", true),
        (Name::SqsManagedSseEnabled, "maybe", false),
        (Name::Policy, "nonsense", false),
        (Name::Policy, "[]", false),
    ] {
        let set = local.client.set_queue_attributes().queue_url(&url).attributes(name.clone(), value).send().await;
        match accepted {
            true => _ = set.unwrap(),
            false => refused(set, |e| e.is_invalid_attribute_value()),
        }
    }
    let of = |length: usize| "ö".repeat(length);
    for (key, value, accepted) in [
        (of(128), of(256), true),
        (of(129), String::new(), false),
        (String::new(), of(1), false),
        ("k".to_owned(), of(257), false),
        ("aws:x".to_owned(), of(1), false),
        ("k".to_owned(), "aws:x".to_owned(), false),
    ] {
        let tag = local.client.tag_queue().queue_url(&url).tags(&key, &value).send().await;
        assert_eq!(tag.is_ok(), accepted, "{key}: {value}");
        let name = format!("tagged-{accepted}");
        let create = local.client.create_queue().queue_name(name).tags(&key, &value).send().await;
        assert_eq!(create.is_ok(), accepted, "{key}: {value}");
    }
}
