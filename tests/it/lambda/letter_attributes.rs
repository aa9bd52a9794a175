//! What dead letters have of the attributes of their messages, and of claimant's.

use std::collections::BTreeSet;

use claimant_core::own_attributes::SENT_AGAIN_OF;
use claimant_local::sqs::{AttributeValue, MessageAttribute, NewMessage};
use claimant_testkit::logs::Logs;

use super::dead_letters::described;
use super::world::{QUEUE, World, body, failures, invoke};

fn text(value: &str) -> MessageAttribute {
    MessageAttribute { data_type: "String".to_owned(), value: AttributeValue::Text(value.to_owned()) }
}

fn binary(value: &[u8]) -> MessageAttribute {
    MessageAttribute { data_type: "Binary".to_owned(), value: AttributeValue::Binary(value.to_vec()) }
}

fn digits(bytes: usize) -> MessageAttribute {
    text(&"1".repeat(bytes))
}

/// The same with another type.
fn typed(data_type: &str, attribute: MessageAttribute) -> MessageAttribute {
    MessageAttribute { data_type: data_type.to_owned(), ..attribute }
}

/// What is nearly as large as SQS takes has no room for claimant's attributes and all of its own.
#[tokio::test]
async fn a_dead_letter_that_would_be_too_large_stays_in_its_queue() {
    for (bytes, own, attribute, copied) in [
        (1_047_000, 1_000, digits as fn(usize) -> _, true),
        (1_047_000, 1_500, digits, false),
        (1_047_000, 1_500, |bytes| binary(&vec![255; bytes]), false),
        (1_048_500, 1, digits, false),
    ] {
        let world = World::start(&["dead"]).await;
        let url = world.sqs.queue_url("dead");
        let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url), ("CLAIMANT_VISIBILITY", "off")]);
        let message_attributes = [("big", attribute(own)), ("little", text("2"))];
        let message_attributes = message_attributes.map(|(name, value)| (name.to_owned(), value)).into();
        let message = NewMessage { message_attributes, ..NewMessage::new("x".repeat(bytes)) };
        let batch = world.batch(QUEUE, vec![message]).await;
        let logs = Logs::record();
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        assert_eq!(failures(&response).is_empty(), copied, "{bytes} and {own} bytes");
        assert_eq!(world.wire.take_requests().is_empty(), !copied, "{bytes} and {own} bytes");
        assert_eq!(logs.text().contains("larger than the 1 MiB"), !copied, "{}", logs.text());
        let letters = world.visible("dead").await;
        assert_eq!(letters.len(), usize::from(copied), "{bytes} and {own} bytes");
        for letter in letters {
            assert!(batch[0].message_attributes.iter().all(|own| letter.message_attributes.get(own.0) == Some(own.1)));
        }
    }
}

/// The original is deleted then: what a copy lacks is gone, and after a redrive the message may have no route or no key any more.
#[tokio::test]
async fn a_copy_has_all_attributes_of_its_own_or_is_not_made() {
    const EACH: [&str; 3] = ["error", "message-id", "outcome"];
    // With a record, its consumer is known.
    let (keyed, unkeyed) = (body("a", "no use"), body("", "no use"));
    for (own, redriven, text_of, ours) in [
        (4, false, &keyed, Some(&["attempt", "consumer", "record"][..])),
        (6, false, &keyed, Some(&["record"])),
        (7, false, &keyed, Some(&[])),
        (8, false, &keyed, None),
        (3, true, &keyed, Some(&["consumer", "first-message-id", "record", "redrives"])),
        (5, true, &keyed, Some(&["first-message-id", "record"])),
        (6, true, &keyed, Some(&["record"])),
        (8, true, &keyed, None),
        (6, true, &unkeyed, Some(&["consumer"])),
    ] {
        let world = World::start(&["dead"]).await;
        let url = world.sqs.queue_url("dead");
        let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)]);
        let name = |n: usize| ["claimant-id", "b", "c", "d", "page", "job", "type", "tenant"][n].to_owned();
        let theirs = |n| match n {
            1 => typed("Binary.png", binary(&[0, 255])),
            2 => typed("Number.eur", text("1.50")),
            _ => text("theirs"),
        };
        let attributes = (0..own).map(|n| (name(n), theirs(n)));
        let before = ["claimant-message-id", "claimant-redrives"].map(|name| (name.to_owned(), text("1")));
        // What has a name of claimant's is not copied.
        let odd = [("claimant-error".to_owned(), text("theirs"))];
        let attributes =
            attributes.chain(before.into_iter().filter(|_| redriven)).chain(odd.into_iter().filter(|_| own < 8));
        let message = NewMessage { message_attributes: attributes.collect(), ..NewMessage::new(text_of.clone()) };
        let batch = world.batch(QUEUE, vec![message]).await;
        let logs = Logs::record();
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        assert_eq!(failures(&response).len(), usize::from(ours.is_none()), "{own} {redriven}");
        assert_eq!(logs.text().contains("more than the ten attributes"), ours.is_none(), "{}", logs.text());
        let letters = world.visible("dead").await;
        let has: Vec<Vec<_>> =
            letters.iter().map(|letter| letter.message_attributes.keys().cloned().collect()).collect();
        let wanted = ours.map(|ours| {
            let ours = EACH.iter().chain(ours).map(|name| format!("claimant-{name}"));
            Vec::from_iter(BTreeSet::from_iter(ours.chain((0..own).map(name))))
        });
        assert_eq!(has, Vec::from_iter(wanted), "{own} {redriven}");
        assert!(letters.iter().all(|letter| (0..own).all(|n| letter.message_attributes[&name(n)] == theirs(n))));
        assert!(letters.iter().all(|letter| !described(letter).contains(&"claimant-error=theirs".to_owned())));
    }
}

/// SQS sends none such, and its imitations do.
#[tokio::test]
async fn a_message_with_an_attribute_that_no_copy_can_have_stays_in_its_queue() {
    let world = World::start(&["dead"]).await;
    let url = world.sqs.queue_url("dead");
    let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url), ("CLAIMANT_VISIBILITY", "off")]);
    let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "no use"))]).await;
    let mut event = world.event(QUEUE, &batch);
    event.records[0].message_attributes.entry("tenant".to_owned()).or_default();
    let logs = Logs::record();
    let response = invoke(&service, event).await.unwrap();
    assert_eq!(failures(&response), [batch[0].message_id.as_str()]);
    assert!(world.wire.take_requests().is_empty() && logs.text().contains("has no value of its type"));
}

#[tokio::test]
async fn the_trail_to_the_producers_message_outlasts_redrives() {
    let redriven = [("claimant-message-id", "first"), ("claimant-outcome", "rejected"), (SENT_AGAIN_OF, "second")];
    for (left, before) in [(&[][..], 0), (&[(SENT_AGAIN_OF, "first")], 0), (&redriven, 1)] {
        let world = World::start(&["dead"]).await;
        let url = world.sqs.queue_url("dead");
        let service = world.service(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)]);
        let was_scheduled = !left.is_empty();
        let left = left.iter().map(|(name, value)| ((*name).to_owned(), text(value)));
        let message = NewMessage { message_attributes: left.collect(), ..NewMessage::new(body("a", "no use")) };
        let mut batch = world.batch(QUEUE, vec![message]).await;
        let first = if was_scheduled { "first".to_owned() } else { batch[0].message_id.clone() };
        for redrives in before..before + 4 {
            invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
            let mut letters = world.visible("dead").await;
            let [letter] = &letters[..] else { panic!("one letter") };
            let described = described(letter).join("\n");
            assert!(described.contains(&format!("claimant-message-id={}", batch[0].message_id)), "{described}");
            let trail = format!("claimant-first-message-id={first}");
            assert_eq!(described.contains(&trail), was_scheduled || redrives > 0, "{described}");
            assert_eq!(described.contains(&format!("claimant-redrives={redrives}")), redrives > 0, "{described}");
            // A redrive gives it a new id in its own queue; here the copy's.
            if redrives % 2 == 1 {
                // `claimant dead redrive` counts it, and removes what no longer holds; SQS leaves the copy as it is.
                let attributes = &mut letters[0].message_attributes;
                attributes.remove("claimant-outcome");
                let count = AttributeValue::Text((redrives + 1).to_string());
                attributes.get_mut("claimant-redrives").unwrap().value = count;
            }
            batch = std::mem::take(&mut letters);
        }
    }
}
