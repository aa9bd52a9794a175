//! FIFO queues: groups, deduplication and batches. What AWS answers is taken from the AWS-validated tests and snapshots of
//! LocalStack (`tests/aws/services/sqs`, March 2026), where no other source is named.

use super::*;

/// A FIFO queue with these attributes, beside the one of [`Local`].
async fn fifo(local: &Local, attributes: &[(Name, &str)]) -> String {
    let request = local.client.create_queue().queue_name("own.fifo").attributes(Name::FifoQueue, "true");
    let request = attributes.iter().fold(request, |request, (name, value)| request.attributes(name.clone(), *value));
    request.send().await.unwrap().queue_url.unwrap()
}

async fn put(local: &Local, url: &str, body: &str, group: &str, id: &str) {
    let request = local.client.send_message().queue_url(url).message_body(body).message_group_id(group);
    request.message_deduplication_id(id).send().await.unwrap();
}

fn grouped(id: &str, body: &str, group: Option<&str>, deduplication: Option<&str>) -> SendEntry {
    let entry = SendEntry::builder().id(id).message_body(body).set_message_group_id(group.map(Into::into));
    entry.set_message_deduplication_id(deduplication.map(Into::into)).build().unwrap()
}

#[tokio::test]
async fn a_message_that_comes_back_is_received_though_a_later_one_of_its_group_is_in_flight() {
    let local = Local::start().await;
    let url = local.url("orders.fifo");
    for (body, id) in [("a", "1"), ("b", "2"), ("c", "3")] {
        put(&local, &url, body, "g", id).await;
    }
    let two = local.client.receive_message().queue_url(&url).max_number_of_messages(2).send().await.unwrap();
    assert_eq!(bodies(two.messages()), ["a", "b"]);
    let again = local.client.change_message_visibility().queue_url(&url).receipt_handle(handle(&two.messages()[0]));
    again.visibility_timeout(0).send().await.unwrap();

    let back = local.receive("orders.fifo").await;
    assert_eq!(bodies(&back), ["a"]);
    assert_eq!(back[0].attributes().unwrap()[&System::ApproximateReceiveCount], "2");
    let delete =
        |message: &Message| local.client.delete_message().queue_url(&url).receipt_handle(handle(message)).send();
    delete(&back[0]).await.unwrap();
    assert_eq!(bodies(&local.receive("orders.fifo").await), [""; 0], "b holds up c");
    delete(&two.messages()[1]).await.unwrap();
    assert_eq!(bodies(&local.receive("orders.fifo").await), ["c"]);
}

#[tokio::test]
async fn a_batch_without_a_group_or_deduplication_id_is_refused_as_a_whole_and_other_faults_stay_with_their_entry() {
    let local = Local::start().await;
    let url = local.url("orders.fifo");
    let good = || grouped("good", "a", Some("g"), Some("1"));
    for bad in [grouped("bad", "b", None, Some("2")), grouped("bad", "b", Some("g"), None)] {
        let batch = local.client.send_message_batch().queue_url(&url).entries(good()).entries(bad);
        assert_eq!(code(batch.send().await), "InvalidParameterValue");
        assert_eq!(local.sqs.messages("orders.fifo").unwrap(), []);
    }
    let odd = grouped("odd", "\u{1}", Some("g"), Some("2"));
    let last = grouped("last", "c", Some("g"), Some("3"));
    let batch = local.client.send_message_batch().queue_url(&url).entries(good()).entries(odd).entries(last);
    let sent = batch.send().await.unwrap();
    assert_eq!(sent.successful().iter().map(|entry| entry.id()).collect::<Vec<_>>(), ["good", "last"]);
    assert_eq!(sent.failed()[0].code(), "InvalidMessageContents");
    assert_eq!(bodies(&local.receive("orders.fifo").await), ["a", "c"]);
}

#[tokio::test]
async fn the_scope_of_deduplication_is_the_queue_or_the_group() {
    for (scope, expected) in [("queue", vec!["a"]), ("messageGroup", vec!["a", "b"])] {
        let local = Local::start().await;
        let url = fifo(&local, &[(Name::DeduplicationScope, scope)]).await;
        for (body, group) in [("a", "g"), ("b", "h"), ("c", "g")] {
            put(&local, &url, body, group, "same").await;
        }
        assert_eq!(bodies(&local.receive("own.fifo").await), expected, "{scope}");
    }
}

#[tokio::test]
async fn a_new_scope_of_deduplication_keeps_what_the_queue_knew_and_forgets_what_groups_knew() {
    let scoped = async |local: &Local, url: &str, scope: &str| {
        let request = local.client.set_queue_attributes().queue_url(url);
        request.attributes(Name::DeduplicationScope, scope).send().await.unwrap();
    };
    let local = Local::start().await;
    let url = fifo(&local, &[]).await;
    put(&local, &url, "a", "g", "same").await;
    scoped(&local, &url, "messageGroup").await;
    put(&local, &url, "b", "h", "same").await;
    put(&local, &url, "c", "g", "other").await;
    scoped(&local, &url, "queue").await;
    put(&local, &url, "d", "h", "other").await;
    assert_eq!(bodies(&local.receive("own.fifo").await), ["a", "c", "d"]);
}

#[tokio::test]
async fn high_throughput_is_checked_and_shown() {
    let local = Local::start().await;
    let url = fifo(&local, &[]).await;
    let shown = async || {
        let request = local.client.get_queue_attributes().queue_url(&url).attribute_names(Name::All);
        request.send().await.unwrap().attributes.unwrap()
    };
    let defaults = shown().await;
    assert_eq!((&*defaults[&Name::DeduplicationScope], &*defaults[&Name::FifoThroughputLimit]), ("queue", "perQueue"));
    let set = |name: Name, value: &str| local.client.set_queue_attributes().queue_url(&url).attributes(name, value);
    let limit = || set(Name::FifoThroughputLimit, "perMessageGroupId");
    refused(limit().send().await, |e| e.is_invalid_attribute_value());
    refused(set(Name::FifoThroughputLimit, "perHour").send().await, |e| e.is_invalid_attribute_value());
    refused(set(Name::DeduplicationScope, "table").send().await, |e| e.is_invalid_attribute_value());
    limit().attributes(Name::DeduplicationScope, "messageGroup").send().await.unwrap();
    let high = shown().await;
    let expected = ("messageGroup", "perMessageGroupId");
    assert_eq!((&*high[&Name::DeduplicationScope], &*high[&Name::FifoThroughputLimit]), expected);

    let standard = local.client.create_queue().queue_name("x");
    for name in [Name::DeduplicationScope, Name::FifoThroughputLimit, Name::ContentBasedDeduplication] {
        refused(standard.clone().attributes(name, "queue").send().await, |e| e.is_invalid_attribute_name());
    }
}

#[tokio::test]
async fn a_purge_forgets_what_was_deduplicated() {
    let local = Local::start().await;
    let url = local.url("orders.fifo");
    put(&local, &url, "a", "g", "1").await;
    local.client.purge_queue().queue_url(&url).send().await.unwrap();
    put(&local, &url, "b", "g", "1").await;
    assert_eq!(bodies(&local.receive("orders.fifo").await), ["b"]);
}

#[tokio::test]
async fn an_expired_handle_changes_nothing_and_is_refused() {
    let local = Local::start().await;
    let url = local.url("orders.fifo");
    put(&local, &url, "a", "g", "1").await;
    let receive = || local.client.receive_message().queue_url(&url).visibility_timeout(0).send();
    let handle = handle(&receive().await.unwrap().messages()[0]);
    let change =
        local.client.change_message_visibility().queue_url(&url).receipt_handle(&handle).visibility_timeout(60);
    assert_eq!(code(change.send().await), "InvalidParameterValue");
    assert_eq!(
        code(local.client.delete_message().queue_url(&url).receipt_handle(handle).send().await),
        "InvalidParameterValue"
    );
    assert_eq!(receive().await.unwrap().messages().len(), 1);
}
