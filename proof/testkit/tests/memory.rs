//! What memory an envelope takes beside its content while it is opened, by count.

use std::hint::black_box;

use claimant_core::{Envelope, Message};
use claimant_events::{CloudEvents, detect};

const BYTES: usize = 1 << 20;

fn times(members: &str) -> f64 {
    let body = format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t",{members}}}"#);
    let message = Message::new("m", body).expect("the id is one");
    let of = |envelope: &dyn Envelope| {
        let message = message.clone();
        let open = || {
            let _ = black_box(envelope.open(message));
        };
        allocation_counter::measure(open).bytes_max as f64 / BYTES as f64
    };
    of(&CloudEvents).max(of(&detect()))
}

/// A tree of the extension takes a hundred times as much.
#[test]
fn an_extension_that_is_no_attribute_takes_nothing() {
    let list = r#"{"":0},"#.repeat(BYTES / 7);
    let times = times(&format!(r#""x":[{}]"#, list.trim_end_matches(',')));
    assert!(times < 0.1, "{times:.2} times the envelope");
}

#[test]
fn an_envelope_of_small_members_takes_at_most_ten_times_as_much() {
    let members: Vec<_> = (0..BYTES / 9).map(|number| format!(r#""{number:x}":0"#)).collect();
    let times = times(&members.join(","));
    assert!(times < 10.0, "{times:.2} times the envelope");
}
