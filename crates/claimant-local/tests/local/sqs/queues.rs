//! Queues: their life, their kinds, and what passes between them.

use super::*;

#[tokio::test]
async fn queues_from_creation_to_deletion() {
    let local = Local::start().await;
    let client = &local.client;
    let arn = local.sqs.queue_arn("dead");
    let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"5"}}"#);
    let create = |name: &str| client.create_queue().queue_name(name);
    let made = create("new")
        .attributes(Name::VisibilityTimeout, "60")
        .attributes(Name::RedrivePolicy, &policy)
        .tags("team", "orders")
        .send()
        .await
        .unwrap();
    let url = local.url("new");
    assert_eq!(made.queue_url(), Some(url.as_str()));
    create("new").attributes(Name::VisibilityTimeout, "60").send().await.unwrap();
    refused(create("new").attributes(Name::VisibilityTimeout, "61").send().await, |e| e.is_queue_name_exists());
    refused(create("x").attributes(Name::VisibilityTimeout, "-1").send().await, |e| e.is_invalid_attribute_value());
    refused(create("x").attributes(Name::FifoQueue, "false").send().await, |e| e.is_invalid_attribute_name());
    refused(create("x").attributes("Colour".into(), "red").send().await, |e| e.is_invalid_attribute_name());
    for name in ["", "a b", "x.fifo", &"x".repeat(81)] {
        let expected = if name.is_empty() { "MissingParameter" } else { "InvalidParameterValue" };
        assert_eq!(code(create(name).send().await), expected, "{name}");
    }
    let missing = policy.replace(":dead", ":gone");
    let other_type = policy.replace(":dead", ":orders.fifo");
    let (other_region, other_account) = (policy.replace("us-east-1", "eu-west-1"), policy.replace(":0", ":1"));
    for policy in ["nonsense", "{}", &missing, &other_type, &other_region, &other_account] {
        let refused = create("x").attributes(Name::RedrivePolicy, policy).send().await;
        assert_eq!(code(refused), "InvalidParameterValue", "{policy}");
    }

    local.send("new", "a").await;
    local.send("new", "b").await;
    let one = client.receive_message().queue_url(&url).send().await.unwrap();
    assert_eq!(one.messages().len(), 1);
    let late = client.send_message().queue_url(&url).message_body("c").delay_seconds(900);
    late.send().await.unwrap();
    let change = client.set_queue_attributes().queue_url(&url).attributes(Name::DelaySeconds, "7");
    change.send().await.unwrap();
    let all = client.get_queue_attributes().queue_url(&url).attribute_names(Name::All).send().await.unwrap();
    let all = all.attributes().unwrap();
    for (name, expected) in [
        (Name::ApproximateNumberOfMessages, "1"),
        (Name::ApproximateNumberOfMessagesNotVisible, "1"),
        (Name::ApproximateNumberOfMessagesDelayed, "1"),
        (Name::QueueArn, "arn:aws:sqs:us-east-1:000000000000:new"),
        (Name::VisibilityTimeout, "60"),
        (Name::DelaySeconds, "7"),
        (Name::MessageRetentionPeriod, "345600"),
        (Name::MaximumMessageSize, "1048576"),
        (Name::RedrivePolicy, &policy.replace("\"5\"", "5")),
    ] {
        assert_eq!(all[&name], expected, "{name}");
    }
    assert!(!all.contains_key(&Name::FifoQueue));
    let some = client.get_queue_attributes().queue_url(local.url("orders.fifo")).attribute_names(Name::FifoQueue);
    assert_eq!(some.send().await.unwrap().attributes().unwrap()[&Name::FifoQueue], "true");

    client.tag_queue().queue_url(&url).tags("stage", "test").send().await.unwrap();
    client.untag_queue().queue_url(&url).tag_keys("team").send().await.unwrap();
    let tags = client.list_queue_tags().queue_url(&url).send().await.unwrap();
    assert_eq!(tags.tags().unwrap().iter().collect::<Vec<_>>(), [(&"stage".to_owned(), &"test".to_owned())]);

    client.purge_queue().queue_url(&url).send().await.unwrap();
    assert_eq!(local.sqs.messages("new").unwrap(), []);
    client.delete_queue().queue_url(&url).send().await.unwrap();
    refused(client.get_queue_url().queue_name("new").send().await, |e| e.is_queue_does_not_exist());
}

#[tokio::test]
async fn lists_of_queues_come_in_pages() {
    let local = Local::start().await;
    let list = |prefix: &str, token: Option<&str>| {
        let request = local.client.list_queues().queue_name_prefix(prefix).max_results(1);
        request.set_next_token(token.map(str::to_owned)).send()
    };
    let first = list("orders", None).await.unwrap();
    let second = list("orders", first.next_token()).await.unwrap();
    assert_eq!(first.queue_urls(), [local.url("orders")]);
    assert_eq!(second.queue_urls(), [local.url("orders.fifo")]);
    assert_eq!(second.next_token(), None);
    assert_eq!(local.client.list_queues().send().await.unwrap().queue_urls().len(), 4);
}

#[tokio::test]
async fn fifo_queues_keep_order_and_swallow_repeats() {
    let local = Local::start().await;
    let url = local.url("orders.fifo");
    let send = async |body: &str, id: &str| {
        let request = local.client.send_message().queue_url(&url).message_body(body);
        request.message_group_id("g").message_deduplication_id(id).send().await.unwrap()
    };
    let (first, repeat, second) = (send("a", "1").await, send("b", "1").await, send("c", "2").await);
    assert_eq!(first.message_id(), repeat.message_id());
    assert_eq!(first.sequence_number(), repeat.sequence_number());
    assert!(first.sequence_number() < second.sequence_number());

    let received = local.receive("orders.fifo").await;
    assert_eq!(bodies(&received), ["a", "c"]);
    assert_eq!(received[0].attributes().unwrap()[&System::MessageDeduplicationId], "1");
    send("d", "3").await;
    assert_eq!(bodies(&local.receive("orders.fifo").await), [""; 0]);
    for message in &received {
        local.client.delete_message().queue_url(&url).receipt_handle(handle(message)).send().await.unwrap();
    }
    assert_eq!(bodies(&local.receive("orders.fifo").await), ["d"]);
}

#[tokio::test]
async fn dead_letters_and_their_way_back() {
    let local = Local::start().await;
    let again = |message: &Message| {
        let request = local.client.change_message_visibility().queue_url(local.url("twice"));
        request.receipt_handle(handle(message)).visibility_timeout(0).send()
    };
    local.send("twice", "b").await;
    let first = local.receive("twice").await.remove(0);
    again(&first).await.unwrap();
    let second = local.receive("twice").await.remove(0);
    again(&second).await.unwrap();
    assert_eq!(bodies(&local.receive("twice").await), [""; 0]);
    assert_eq!(local.sqs.counters("twice").unwrap().dead_lettered, 1);

    let sources = local.client.list_dead_letter_source_queues().queue_url(local.url("dead")).send().await.unwrap();
    assert_eq!(sources.queue_urls(), [local.url("twice")]);
    let dead = local.receive("dead").await.remove(0);
    let attributes = dead.attributes().unwrap();
    assert_eq!(dead.message_id(), first.message_id());
    assert_eq!(attributes[&System::DeadLetterQueueSourceArn], local.sqs.queue_arn("twice"));
    assert_eq!(attributes[&System::SentTimestamp], first.attributes().unwrap()[&System::SentTimestamp]);

    let visible = local.client.change_message_visibility().queue_url(local.url("dead"));
    visible.receipt_handle(handle(&dead)).visibility_timeout(0).send().await.unwrap();
    let back = local.client.start_message_move_task().source_arn(local.sqs.queue_arn("dead"));
    back.send().await.unwrap();
    let message = local.receive("twice").await.remove(0);
    assert_eq!(message.body(), Some("b"));
    assert_ne!(message.message_id(), first.message_id());
    assert_eq!(message.attributes().unwrap()[&System::ApproximateReceiveCount], "1");
    assert_eq!(local.sqs.messages("dead").unwrap(), []);
}
