//! Batches: an answer for each entry, or none at all.

use super::*;

#[tokio::test]
async fn batches_answer_for_each_entry() {
    let local = Local::start().await;
    let late = SendEntry::builder().id("late").message_body("x").delay_seconds(901).build().unwrap();
    let odd = SendEntry::builder().id("odd").message_body("x").message_attributes("n", attribute("Number", "many"));
    let sent = local
        .client
        .send_message_batch()
        .queue_url(local.url("orders"))
        .entries(entry("one", "first"))
        .entries(entry("bad", "\u{1}"))
        .entries(late)
        .entries(odd.build().unwrap())
        .entries(entry("two", "second"))
        .send()
        .await
        .unwrap();
    let ids: Vec<&str> = sent.successful().iter().map(|entry| entry.id()).collect();
    assert_eq!(ids, ["one", "two"]);
    let failed: Vec<_> = sent.failed().iter().map(|e| (e.id(), e.code(), e.sender_fault())).collect();
    assert_eq!(
        failed,
        [
            ("bad", "InvalidMessageContents", true),
            ("late", "InvalidParameterValue", true),
            ("odd", "InvalidParameterValue", true),
        ]
    );

    let received = local.receive("orders").await;
    assert_eq!(bodies(&received), ["first", "second"]);
    let change = |id: &str, handle: String, timeout: i32| {
        ChangeEntry::builder().id(id).receipt_handle(handle).visibility_timeout(timeout).build().unwrap()
    };
    let changed = local
        .client
        .change_message_visibility_batch()
        .queue_url(local.url("orders"))
        .entries(change("one", handle(&received[0]), 0))
        .entries(change("two", handle(&received[1]), 43_201))
        .send()
        .await
        .unwrap();
    assert_eq!((changed.successful()[0].id(), changed.failed()[0].id()), ("one", "two"));

    let again = local.receive("orders").await;
    assert_eq!(bodies(&again), ["first"]);
    let delete = |id: &str, handle: String| DeleteEntry::builder().id(id).receipt_handle(handle).build().unwrap();
    let deleted = local
        .client
        .delete_message_batch()
        .queue_url(local.url("orders"))
        .entries(delete("one", handle(&again[0])))
        .entries(delete("bad", "nonsense".to_owned()))
        .entries(delete("two", handle(&received[1])))
        .send()
        .await
        .unwrap();
    assert_eq!(deleted.successful().len(), 2);
    assert_eq!(deleted.failed()[0].code(), "ReceiptHandleIsInvalid");
    assert_eq!(local.sqs.messages("orders").unwrap(), []);
}

#[tokio::test]
async fn batches_refused_as_a_whole() {
    let local = Local::start().await;
    let numbered = |count: usize| (0..count).map(|i| entry(&i.to_string(), "x")).collect();
    let large = "x".repeat(MIB / 2 + 1);
    type Is = fn(&aws_sdk_sqs::operation::send_message_batch::SendMessageBatchError) -> bool;
    let cases: [(Vec<SendEntry>, Is); 5] = [
        (Vec::new(), |e| e.is_empty_batch_request()),
        (numbered(11), |e| e.is_too_many_entries_in_batch_request()),
        (vec![entry("a", "x"), entry("a", "y")], |e| e.is_batch_entry_ids_not_distinct()),
        (vec![entry("a b", "x")], |e| e.is_invalid_batch_entry_id()),
        (vec![entry("a", &large), entry("b", &large)], |e| e.is_batch_request_too_long()),
    ];
    for (entries, is) in cases {
        let request = local.client.send_message_batch().queue_url(local.url("orders"));
        refused(request.set_entries(Some(entries)).send().await, is);
    }
    assert_eq!(local.sqs.messages("orders").unwrap(), []);
}
