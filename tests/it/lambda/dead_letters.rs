//! Rejected messages in the dead-letter queue, and those that it does not take.

use aws_config::retry::RetryConfig;
use claimant::{Consumer, Envelope, Event, Message, Rejection};
use claimant_local::sqs::{AttributeValue, NewMessage, QueueSettings, Received};
use claimant_testkit::logs::Logs;
use claimant_tests::wire::Loss;

use super::world::{QUEUE, World, body, failures, invoke, work};

const TRACE: &str = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";

/// The message's attributes that are text, as `name=value`.
pub(super) fn described(message: &Received) -> Vec<String> {
    let pairs = message.message_attributes.iter().filter_map(|(name, attribute)| match &attribute.value {
        AttributeValue::Text(text) => Some(format!("{name}={text}")),
        AttributeValue::Binary(_) => None,
    });
    pairs.collect()
}

#[tokio::test]
async fn a_rejected_message_is_done_once_its_copy_is_safe() {
    for (name, text, error, attempt) in [
        ("the handler says so", body("a", "no use"), "no use", Some("1")),
        ("what a person wrote", body("a", "\u{7}no"), "\u{fffd}no", Some("1")),
        ("not JSON", "{".to_owned(), "the body is not valid JSON", None),
        ("no key", body("", "ok"), "", None),
    ] {
        let world = World::start(&["dead"]).await;
        let url = world.sqs.queue_url("dead");
        let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)]);
        let message = NewMessage { trace_header: Some(TRACE.to_owned()), ..NewMessage::new(text.clone()) };
        let batch = world.batch(QUEUE, vec![message, NewMessage::new(body("b", "ok"))]).await;
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        assert!(failures(&response).is_empty(), "{name}");

        let [letter] = &world.visible("dead").await[..] else { panic!("{name}: one letter") };
        assert_eq!((&letter.body, letter.attributes["AWSTraceHeader"].as_str()), (&text, TRACE), "{name}");
        let described = described(letter).join("\n");
        assert!(described.contains(&format!("claimant-error={error}")), "{name}: {described}");
        assert!(described.contains("claimant-consumer=c"), "{name}: {described}");
        assert!(described.contains(&format!("claimant-message-id={}", batch[0].message_id)), "{name}: {described}");
        let attempt = attempt.map_or(String::new(), |attempt| format!("claimant-attempt={attempt}"));
        assert_eq!(
            described.lines().find(|line| line.starts_with("claimant-attempt")).unwrap_or_default(),
            attempt,
            "{name}"
        );
        let record = world.metrics.lock().unwrap().pop().unwrap();
        assert_eq!((&record["rejected"], &record["dead_lettered"], record.get("failed")), (&1.into(), &1.into(), None));

        // It comes again, since the deletion was lost: the handler does not run, and it is dead-lettered again.
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        assert!(failures(&response).is_empty(), "{name}");
        assert_eq!(world.visible("dead").await.len(), 1, "{name}");
    }
}

/// Fault 35.
#[tokio::test]
async fn without_a_confirmed_copy_the_message_stays() {
    for (name, queue, losses) in [
        ("no such queue", "elsewhere", vec![]),
        ("the request is lost", "dead", vec![Loss::Request]),
        ("the answer is lost", "dead", vec![Loss::Answer]),
        ("the answer has no message id", "dead", vec![Loss::Instead(200, r#"{"Successful":[{"Id":"0"}]}"#)]),
        ("the answer names no message", "dead", vec![Loss::Instead(200, "{}")]),
    ] {
        let world = World::start(&["dead"]).await;
        let url = world.sqs.queue_url(queue);
        let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)]);
        let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "no use"))]).await;
        world.wire.script(&losses);
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        assert_eq!(failures(&response), [batch[0].message_id.as_str()], "{name}");
        assert_eq!(world.wire.take_requests()[0], "SendMessageBatch", "{name}");
        // On its first delivery it is visible again at once.
        assert_eq!(world.sqs.depth(QUEUE).unwrap().visible, 1, "{name}");
        let copies = usize::from(losses == [Loss::Answer]);
        assert_eq!(world.visible("dead").await.len(), copies, "{name}");
    }
}

/// The sandbox was frozen, and its connection is gone without a word.
#[tokio::test]
async fn a_copy_without_an_answer_is_sent_once_more() {
    let mut world = World::start(&["dead"]).await;
    world.config = world.config.into_builder().retry_config(RetryConfig::standard()).build();
    let url = world.sqs.queue_url("dead");
    let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)]);
    let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "no use"))]).await;
    world.wire.script(&[Loss::Silence]);
    let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
    assert!(failures(&response).is_empty());
    assert_eq!(world.wire.take_requests(), ["SendMessageBatch"; 2]);
    assert_eq!(world.visible("dead").await.len(), 1);
}

/// A quarter of a mebibyte was the largest of all until August 2025, and is written in many templates.
#[tokio::test]
async fn what_the_dead_letter_queue_is_too_small_for_says_so() {
    let world = World::start(&[]).await;
    let small = QueueSettings { max_message_bytes: 262_144, ..QueueSettings::default() };
    world.sqs.create_queue("dead", small).unwrap();
    let text = "x".repeat(262_145);
    for (queue, advice) in [("dead", "MaximumMessageSize"), ("elsewhere", "sqs:SendMessage")] {
        let url = world.sqs.queue_url(queue);
        let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url), ("CLAIMANT_VISIBILITY", "off")]);
        let batch = world.batch(QUEUE, vec![NewMessage::new(text.clone())]).await;
        let logs = Logs::record();
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        assert_eq!(failures(&response), [batch[0].message_id.as_str()], "{queue}");
        let logs = logs.text();
        for word in ["MaximumMessageSize", "sqs:SendMessage"] {
            assert_eq!(logs.contains(word), word == advice, "{queue}: {logs}");
        }
    }
}

#[tokio::test]
async fn dead_letters_go_in_tens_and_each_has_its_own_answer() {
    let world = World::start(&["dead"]).await;
    let url = world.sqs.queue_url("dead");
    let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url), ("CLAIMANT_VISIBILITY", "off")]);
    let bad = |n: usize| NewMessage::new(format!("not JSON {n}"));
    let batch = world.batch(QUEUE, (0..25).map(bad).collect()).await;
    let mut event = world.event(QUEUE, &batch);
    // No body that SQS takes: this copy alone is refused.
    event.records[3].body = Some("\u{0}".to_owned());
    let response = invoke(&service, event).await.unwrap();
    assert_eq!(world.wire.take_requests(), ["SendMessageBatch"; 3]);
    assert_eq!(failures(&response), [batch[3].message_id.as_str()]);
    assert_eq!(world.sqs.depth("dead").unwrap().visible, 24);
}

#[tokio::test]
async fn dead_letters_that_are_too_large_for_one_request_go_in_several() {
    // Two of 400,000 bytes fit into the 1 MiB of a request, and two of 524,200 without claimant's attributes only.
    for (count, bytes, requests) in [(5, 400_000, 3), (2, 524_200, 2)] {
        let world = World::start(&["dead"]).await;
        let url = world.sqs.queue_url("dead");
        let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)]);
        let batch = world.batch(QUEUE, (0..count).map(|_| NewMessage::new("x".repeat(bytes))).collect()).await;
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        assert_eq!(failures(&response), Vec::<&str>::new(), "{bytes} bytes");
        assert_eq!(world.wire.take_requests(), vec!["SendMessageBatch"; requests], "{bytes} bytes");
        assert_eq!(world.sqs.depth("dead").unwrap().visible, count, "{bytes} bytes");
    }
}

/// Each copy would be another message, with receives of its own: it would go round without end.
#[tokio::test]
async fn nothing_is_copied_into_the_queue_that_it_comes_from() {
    for (url, is_copied) in [
        ("", false),
        ("https://sqs.us-east-1.amazonaws.com/000000000000/orders", false),
        ("https://queue.amazonaws.com/000000000000/orders", false),
        ("https://vpce-0a-1.sqs.us-east-1.vpce.amazonaws.com/000000000000/orders", false),
        ("https://sqs.eu-west-1.amazonaws.com/000000000000/orders", true),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/orders", true),
        ("https://sqs.us-east-1.amazonaws.com/000000000000/orders-dead", true),
    ] {
        let world = World::start(&[]).await;
        let own = world.sqs.queue_url(QUEUE);
        let url = if url.is_empty() { &own } else { url };
        let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", url)]);
        let logs = Logs::record();
        for key in ["a", "b"] {
            let batch = world.batch(QUEUE, vec![NewMessage::new(body(key, "no use")), NewMessage::new("{")]).await;
            let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
            if !is_copied {
                assert_eq!(failures(&response), batch.iter().map(|one| &*one.message_id).collect::<Vec<_>>(), "{url}");
                // They come back by their own receives, until the redrive policy moves them.
                assert_eq!(world.visible(QUEUE).await.len(), 2, "{url}");
            }
            let sends = world.wire.take_requests().contains(&"SendMessageBatch".to_owned());
            assert_eq!(sends, is_copied, "{url}");
        }
        let said = logs.text().matches("CLAIMANT_DEAD_LETTER_QUEUE_URL is the queue that").count();
        assert_eq!(said, usize::from(!is_copied), "once for the process: {}", logs.text());
    }
}

/// A function that reads its own dead-letter queue, too.
#[tokio::test]
async fn a_dead_letter_queue_that_is_read_gets_copies_of_other_queues_only() {
    let world = World::start(&["dead"]).await;
    let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &world.sqs.queue_url("dead"))]);
    let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "no use"))]).await;
    assert!(failures(&invoke(&service, world.event(QUEUE, &batch)).await.unwrap()).is_empty());
    let letters = world.visible("dead").await;
    assert_eq!(letters.len(), 1);
    let response = invoke(&service, world.event("dead", &letters)).await.unwrap();
    assert_eq!(failures(&response), [&*letters[0].message_id]);
    let left = world.visible("dead").await;
    assert_eq!(
        left.iter().map(|one| &one.message_id).collect::<Vec<_>>(),
        [&letters[0].message_id],
        "and no other one"
    );
}

#[tokio::test]
async fn without_a_queue_for_them_rejected_messages_wait_for_redrive() {
    let world = World::start(&[]).await;
    let service = world.service(&[]);
    let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "no use"))]).await;
    let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
    assert_eq!(failures(&response).len(), 1);
    assert_eq!(world.wire.take_requests(), ["ChangeMessageVisibilityBatch"]);
}

#[tokio::test]
async fn a_dead_letter_says_whether_its_work_may_be_done_and_where_its_record_is() {
    let world = World::start(&["dead"]).await;
    let url = world.sqs.queue_url("dead");
    let consumer = Consumer::new("c", world.store.clone(), work).key(|w| &w.id).at_most_once();
    let service = world.service_of(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)], consumer);
    let texts = [body("a", "panic"), body("b", "no use"), body("b", "other"), "{".to_owned()];
    for (text, wanted) in texts.into_iter().zip([
        ["claimant-outcome=parked", "claimant-record=c#a", "claimant-error=the handler panicked"],
        ["claimant-outcome=rejected", "claimant-record=c#b", "claimant-error=no use"],
        [
            "claimant-outcome=conflict",
            "claimant-record=c#b",
            "claimant-error=its key belongs to work with another payload",
        ],
        ["claimant-outcome=rejected", "claimant-consumer=c", "claimant-error=the body is not valid JSON"],
    ]) {
        let batch = world.batch(QUEUE, vec![NewMessage::new(text)]).await;
        invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        let [letter] = &world.visible("dead").await[..] else { panic!("one letter") };
        let described = described(letter);
        for wanted in wanted {
            assert!(described.iter().any(|line| line.starts_with(wanted)), "{wanted} in {described:?}");
        }
        let has_record = described.iter().any(|line| line.starts_with("claimant-record"));
        assert_eq!(has_record, letter.body != "{");
        assert!(!described.join("\n").contains("claimant-redrives"));
    }
}

#[tokio::test]
async fn a_dead_letter_keeps_its_group() {
    for (queue, group, dead, wanted) in [
        ("in.fifo", Some("g"), "dead.fifo", Some("g")),
        (QUEUE, None, "dead.fifo", Some("c")),
        (QUEUE, Some("fair"), "dead.fifo", Some("fair")),
        ("in.fifo", Some("g"), "dead", Some("g")),
        (QUEUE, Some("fair"), "dead", Some("fair")),
        (QUEUE, None, "dead", None),
    ] {
        let world = World::start(&["in.fifo", "dead.fifo", "dead"]).await;
        let url = world.sqs.queue_url(dead);
        let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)]);
        let deduplication_id = queue.ends_with(".fifo").then(|| "d".to_owned());
        let message =
            NewMessage { group_id: group.map(str::to_owned), deduplication_id, ..NewMessage::new(body("a", "no use")) };
        let batch = world.batch(queue, vec![message]).await;
        // Twice, as after a lost deletion: a FIFO queue knows the copy again by its deduplication id.
        let fifo = dead.ends_with(".fifo");
        for _ in 0..=usize::from(fifo) {
            let response = invoke(&service, world.event(queue, &batch)).await.unwrap();
            assert!(failures(&response).is_empty());
        }
        let [letter] = &world.visible(dead).await[..] else { panic!("one letter") };
        let has = |name| letter.attributes.get(name).map(String::as_str);
        assert_eq!(has("MessageGroupId"), wanted, "{queue} {dead}");
        assert_eq!(has("MessageDeduplicationId"), fifo.then_some(batch[0].message_id.as_str()), "{queue} {dead}");
    }
}

/// An envelope that has its payload in `detail`, and may be left out.
struct Wrapped;

impl Envelope for Wrapped {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        assert!(!message.body().contains("panic here"), "on purpose");
        let envelope: serde_json::Value = serde_json::from_str(message.body()).unwrap_or_default();
        let detail = envelope.get("detail").map(ToString::to_string);
        Ok(vec![detail.map_or_else(|| message.clone(), |detail| message.clone().opened(detail, Event::default()))])
    }
}

/// F15: what an envelope held stays with this delivery; a redrive must not open it twice.
#[tokio::test]
async fn a_dead_letter_has_the_body_as_it_was_received() {
    let world = World::start(&["dead"]).await;
    let url = world.sqs.queue_url("dead");
    let consumer = Consumer::new("c", world.store.clone(), work).key(|w| &w.id).envelope(Wrapped);
    let service = world.service_of(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)], consumer);
    let wrapped = |id: &str, action: &str| format!(r#"{{"at":7,"detail":{}}}"#, body(id, action));
    let sent = [wrapped("a", "no use"), wrapped("b", "ok"), body("c", "no use"), wrapped("d", "panic here")];
    let batch = world.batch(QUEUE, sent.iter().cloned().map(NewMessage::new).collect()).await;
    let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
    assert!(failures(&response).is_empty());
    let mut bodies: Vec<_> = world.visible("dead").await.into_iter().map(|letter| letter.body).collect();
    bodies.sort();
    let mut wanted = vec![sent[0].clone(), sent[2].clone(), sent[3].clone()];
    wanted.sort();
    assert_eq!(bodies, wanted);
}
