//! Any message is a pointer, a payload, or rejected, and nothing of it is said.

use claimant_core::{AttributeValue, Message, PayloadSource as _};
use claimant_s3::{SIZE_ATTRIBUTE, message_body};
use claimant_testkit::fuzz::{Bytes, corpus, hold, spoilt};
use proptest::prelude::*;

use super::payloads;

/// The longest that is said of a pointer.
const REJECTION_MAX_BYTES: usize = 200;

#[test]
fn pointers() {
    let source = payloads("payloads").payload_max_bytes(1_000_000);
    let inputs = (spoilt(corpus("corpus/pointers")), prop::option::of(".{0,20}"));
    hold("pointers", file!(), inputs, |(bytes, size): (Bytes, Option<String>)| {
        let body = String::from_utf8_lossy(&bytes.0).into_owned();
        let mut message = Message::new("m", body.clone()).unwrap();
        if let Some(size) = size {
            message = message.with_attribute(SIZE_ATTRIBUTE, AttributeValue::number(size));
        }
        match source.pointer(&message) {
            Ok(Some(pointer)) => {
                assert!(!pointer.container.is_empty() && pointer.container.len() <= 1024);
                assert!(!pointer.name.is_empty() && pointer.name.len() <= 1024);
                let again = Message::new("m", message_body(&pointer.container, &pointer.name)).unwrap();
                assert_eq!(source.pointer(&again).unwrap(), Some(pointer), "it can be written as it was read");
            }
            Ok(None) => {}
            Err(rejection) => {
                let said = rejection.to_string();
                assert!(said.len() <= REJECTION_MAX_BYTES && !said.contains("secret@example.com"), "{said}");
            }
        }
    });
}
