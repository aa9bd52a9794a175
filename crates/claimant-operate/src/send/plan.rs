//! What is asked for, and the messages that it comes to. Pure.

use std::collections::BTreeMap;

use aws_sdk_sqs::types::MessageAttributeValue;
use claimant_aws::sqs::MESSAGE_MAX_BYTES;
use claimant_core::{Error, Timestamp};

use super::envelope::{Envelope, Wrapping};

/// The most messages of one sending.
pub const MESSAGES_MAX: usize = 10_000;

/// The most bytes of a sending: every body is in memory at once.
const BYTES_MAX: usize = 64 << 20;

/// What stands in a body for the number of a message. As the number itself, it leaves a body as it is.
pub const NUMBER: &str = "{n}";

/// When numbers began: 1 January 2026. Numbers are shorter so.
const NUMBERS_BEGAN_MS: u64 = 1_767_225_600_000;

/// Messages that are asked for.
#[derive(Clone, Default)]
pub struct Batch {
    /// The body. Each `{n}` in it becomes the message's own number: the same in its copies.
    pub body: String,
    /// What it is wrapped in.
    pub envelope: Envelope,
    /// What the envelope says of it.
    pub wrapping: Wrapping,
    /// How many different messages: where the body has no `{n}`, they have the same body.
    pub count: usize,
    /// How often each is sent.
    pub copies: usize,
    /// Mixes the order up, the same way for the same seed.
    pub shuffle: Option<u64>,
    /// The message group, with `{n}` as in the body. A FIFO queue needs one: `{n}` is one for each message.
    pub group: Option<String>,
    /// The attributes of the message that is sent again; those below take their places.
    pub before: BTreeMap<String, MessageAttributeValue>,
    /// Attributes of each message, of the type `String`.
    pub attributes: Vec<(String, String)>,
    /// How long the messages stay hidden, in seconds: not on FIFO queues.
    pub delay_s: u32,
}

/// A message to be sent. `Debug` shows no body.
#[derive(Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its body, in its envelope.
    pub body: String,
    /// Its group.
    pub group: Option<String>,
    /// Of this message and no other, on FIFO queues: each copy gets through to the function.
    pub deduplication_id: Option<String>,
}

impl std::fmt::Debug for Planned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Planned").field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Returns a number that no earlier sending had: the milliseconds since 2026, in the digits and letters of base 36.
#[must_use]
pub fn fresh_number(now: Timestamp) -> String {
    let mut rest = now.as_millis().saturating_sub(NUMBERS_BEGAN_MS);
    let mut digits = Vec::new();
    while rest > 0 || digits.is_empty() {
        // A digit of base 36 always fits.
        digits.push(u32::try_from(rest % 36).ok().and_then(|digit| char::from_digit(digit, 36)).unwrap_or('0'));
        rest /= 36;
    }
    digits.iter().rev().collect()
}

impl Batch {
    /// Returns one message with this body, sent once.
    pub fn of(body: impl Into<String>) -> Self {
        Self { body: body.into(), count: 1, copies: 1, ..Self::default() }
    }

    /// Returns the messages in the order in which they are sent, numbered from `number`: by itself where there is one, else with `-1`,
    /// `-2` and so on behind it.
    ///
    /// # Errors
    /// When nothing is asked for, or more than [`MESSAGES_MAX`] messages or 64 MiB; the body is empty or does not fit its envelope;
    /// a FIFO queue gets no group, or a delay. Quotes nothing of the body.
    pub fn plan(&self, number: &str, now: Timestamp, fifo: bool) -> Result<Vec<Planned>, Error> {
        let messages = self.count.saturating_mul(self.copies);
        if !(1..=MESSAGES_MAX).contains(&messages) {
            return Err(Error::invalid(format!("1 to {MESSAGES_MAX} messages can be sent at once, copies included")));
        }
        if self.body.is_empty() {
            return Err(Error::invalid("SQS takes no empty body"));
        }
        if self.body.len().saturating_mul(messages) > BYTES_MAX {
            return Err(Error::invalid(format!(
                "the messages would have more than {BYTES_MAX} bytes in all: send fewer"
            )));
        }
        let group = self.group.as_deref().filter(|group| !group.is_empty());
        if fifo && group.is_none() {
            return Err(Error::invalid(
                "a FIFO queue needs a message group: give one, or {n} for one for each message",
            ));
        }
        if fifo && self.delay_s > 0 {
            return Err(Error::invalid("a FIFO queue takes no delay of one message: leave the delay out"));
        }
        let mut planned = Vec::with_capacity(messages);
        for event in 0..self.count {
            let own = if self.count == 1 { number.to_owned() } else { format!("{number}-{}", event + 1) };
            let body = self.body.replace(NUMBER, &own);
            for copy in 0..self.copies {
                let at = planned.len();
                // Copies take the envelopes of `Each` in turn, each message from its first.
                let turn = if self.envelope == Envelope::Each { copy } else { at };
                let body = self.envelope.wrap(&body, &self.wrapping, now, (event, turn))?;
                if body.len() > MESSAGE_MAX_BYTES {
                    return Err(Error::invalid(format!(
                        "the message has {} bytes in its envelope, and SQS takes {MESSAGE_MAX_BYTES} at most: make it shorter",
                        body.len()
                    )));
                }
                planned.push(Planned {
                    body,
                    group: group.map(|group| group.replace(NUMBER, &own)),
                    // Of this sending, not of its number: what is sent again is a message again.
                    deduplication_id: fifo.then(|| format!("send-{}-{at}", fresh_number(now))),
                });
            }
        }
        if let Some(seed) = self.shuffle {
            shuffle(&mut planned, seed);
        }
        Ok(planned)
    }
}

/// Mixes up the order, by Fisher and Yates, with the numbers of SplitMix64.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for last in (1..items.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let below = u64::try_from(last).unwrap_or(u64::MAX).saturating_add(1);
        items.swap(last, usize::try_from((mixed ^ (mixed >> 31)) % below).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(NUMBERS_BEGAN_MS + 28_154_220_123);

    fn bodies(batch: &Batch) -> Vec<String> {
        batch.plan("x", NOW, false).unwrap().into_iter().map(|planned| planned.body).collect()
    }

    #[test]
    fn numbers_are_short_and_grow() {
        let number = |ms| fresh_number(Timestamp::from_millis(ms));
        assert_eq!(
            (number(0), number(NUMBERS_BEGAN_MS + 35), number(NUMBERS_BEGAN_MS + 36)),
            ("0".into(), "z".into(), "10".into())
        );
        assert_eq!(fresh_number(NOW).len(), 7);
    }

    #[test]
    fn messages_are_numbered_and_their_copies_are_the_same() {
        assert_eq!(bodies(&Batch::of("ord-{n} {n}")), ["ord-x x"]);
        let three = Batch { count: 3, copies: 2, ..Batch::of("{n}") };
        assert_eq!(bodies(&three), ["x-1", "x-1", "x-2", "x-2", "x-3", "x-3"]);
        assert_eq!(bodies(&Batch { copies: 2, ..Batch::of("{}") }), ["{}", "{}"]);
    }

    #[test]
    fn the_order_is_mixed_up_and_nothing_is_lost() {
        let hundred = Batch { count: 100, ..Batch::of("{n}") };
        let mixed = |seed| bodies(&Batch { shuffle: Some(seed), ..hundred.clone() });
        assert_eq!(mixed(1), mixed(1));
        assert!(mixed(1) != mixed(2) && mixed(1) != bodies(&hundred));
        assert_eq!(mixed(1).into_iter().collect::<BTreeSet<_>>(), bodies(&hundred).into_iter().collect());
    }

    #[test]
    fn each_copy_comes_another_way() {
        let each = Batch { count: 2, copies: 3, envelope: Envelope::Each, ..Batch::of(r#"{"a": "{n}"}"#) };
        let ways: Vec<_> =
            bodies(&each).iter().map(|body| (body.contains("TopicArn"), body.contains("detail-type"))).collect();
        let first = [(false, false), (true, false), (false, true)];
        assert_eq!(ways, [first, first].concat());
    }

    #[test]
    fn a_fifo_queue_needs_a_group_and_gets_every_copy() {
        let batch =
            |group: Option<&str>| Batch { group: group.map(str::to_owned), copies: 2, count: 2, ..Batch::of("{n}") };
        assert!(batch(None).plan("x", NOW, true).is_err() && batch(Some("")).plan("x", NOW, true).is_err());
        assert!(Batch { delay_s: 1, ..batch(Some("g")) }.plan("x", NOW, true).is_err());
        let planned = batch(Some("g-{n}")).plan("x", NOW, true).unwrap();
        let groups: Vec<_> = planned.iter().map(|planned| planned.group.clone().unwrap()).collect();
        assert_eq!(groups, ["g-x-1", "g-x-1", "g-x-2", "g-x-2"]);
        let ids: BTreeSet<_> = planned.iter().map(|planned| planned.deduplication_id.clone().unwrap()).collect();
        assert_eq!(ids.len(), 4);
        assert_eq!(batch(Some("g")).plan("x", NOW, false).unwrap()[0].deduplication_id, None);
    }

    #[test]
    fn what_is_too_much_is_refused() {
        for batch in [
            Batch { count: 0, ..Batch::of("x") },
            Batch { copies: 0, ..Batch::of("x") },
            Batch { count: 5_001, copies: 2, ..Batch::of("x") },
            Batch { count: usize::MAX, copies: 2, ..Batch::of("x") },
            Batch { count: 100, ..Batch::of("x".repeat(1 << 20)) },
            Batch::of("x".repeat((1 << 20) + 1)),
            Batch { envelope: Envelope::Sns, ..Batch::of("x".repeat(1 << 20)) },
            Batch::of(""),
        ] {
            assert!(batch.plan("x", NOW, false).is_err());
        }
        assert!(!format!("{:?}", Batch::of("secret").plan("x", NOW, false).unwrap()).contains("secret"));
    }
}
