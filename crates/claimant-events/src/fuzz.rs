//! Envelopes of any form: they are opened or rejected, bounded and without a panic, and what says why quotes nothing.

use claimant_core::key::KEY_MAX_BYTES;
use claimant_core::{Envelope, Message};
use claimant_testkit::fuzz::{corpus, hold, spoilt};

use crate::{CloudEvents, EventBridge, NESTING_MAX, RECORDS_MAX, S3, Sns, detect};

/// One of these is in every input of the corpus, the second as S3 writes the key of an object; and none in an error.
const SECRETS: [&str; 2] = ["secret@example.com", "secret%40example.com"];

/// The longest id: one that an envelope gave, and a number for each envelope inside it.
const ID_MAX_BYTES: usize = KEY_MAX_BYTES + "#100".len() * NESTING_MAX;

fn holds(target: &str, envelope: &dyn Envelope) {
    let is_said = |text: &str| SECRETS.iter().any(|secret| text.contains(secret));
    let corpus = corpus("corpus/envelopes");
    assert!(corpus.iter().all(|input| is_said(&String::from_utf8_lossy(input))));
    hold(target, file!(), spoilt(corpus), |input| {
        let Ok(body) = String::from_utf8(input.0) else { return };
        let message = Message::new("m", body.as_str()).expect("the id is one");
        match envelope.open(message) {
            Ok(events) => {
                assert!(events.len() <= RECORDS_MAX);
                let size: usize = events.iter().map(|event| event.content().len()).sum();
                assert!(size <= body.len().max(4), "{size} bytes came out of {}", body.len());
                assert!(events.iter().all(|event| event.body() == body));
                assert!(body.trim_start().starts_with('{') || events.iter().all(|event| event.event().is_none()));
                let said = || events.iter().filter_map(Message::event);
                assert!(said().filter_map(|event| event.id.as_ref()).all(|id| id.len() <= ID_MAX_BYTES));
                let others = said().flat_map(|event| [&event.kind, &event.source, &event.subject]).flatten();
                let size: usize = others.map(String::len).sum();
                assert!(size <= body.len(), "{size} bytes are said by {}", body.len());
            }
            Err(rejection) => assert!(!is_said(&rejection.to_string()), "{rejection}"),
        }
    });
}

#[test]
fn sns() {
    holds("the envelope of SNS", &Sns);
}

#[test]
fn eventbridge() {
    holds("the envelope of EventBridge", &EventBridge);
}

#[test]
fn s3() {
    holds("the notification of S3", &S3);
}

#[test]
fn cloudevents() {
    holds("the envelope of CloudEvents", &CloudEvents);
}

#[test]
fn detected() {
    const { assert!(NESTING_MAX < 10) };
    holds("envelopes that are found out", &detect());
}
