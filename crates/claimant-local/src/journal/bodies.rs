//! The latest bodies of messages. Pure.

use std::collections::{HashMap, VecDeque};

use super::text::Text;

/// What a body takes beside its bytes, about.
const PER_BODY: usize = 120;

/// The latest bodies, bounded in bytes; the oldest go when one more arrives. They are in no event.
#[derive(Default)]
pub(super) struct Bodies {
    bodies: HashMap<Text, Box<str>>,
    order: VecDeque<Text>,
    bytes: usize,
}

impl Bodies {
    /// Keeps a body, and drops the oldest ones beyond so many bytes. The first body of a message stays.
    pub(super) fn keep(&mut self, id: &str, body: &str, bytes_max: usize) {
        if self.bodies.contains_key(id) {
            return;
        }
        let id = Text::from(id);
        self.bytes += body.len() + PER_BODY;
        self.bodies.insert(id.clone(), body.into());
        self.order.push_back(id);
        while self.bytes > bytes_max
            && let Some(oldest) = self.order.pop_front()
        {
            let dropped = self.bodies.remove(&oldest).map_or(0, |body| body.len());
            self.bytes -= dropped + PER_BODY;
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&str> {
        self.bodies.get(id).map(AsRef::as_ref)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_bodies_go() {
        let mut bodies = Bodies::default();
        for n in 0..100 {
            bodies.keep(&n.to_string(), "0123456789", 10 * (10 + PER_BODY));
        }
        bodies.keep("99", "another", 1_000_000);
        assert_eq!((bodies.get("89"), bodies.get("0")), (None, None));
        assert_eq!((bodies.get("90"), bodies.get("99")), (Some("0123456789"), Some("0123456789")));
        assert!(bodies.bytes() <= 10 * (10 + PER_BODY));
        bodies.keep("large", &"x".repeat(10_000), 1_000);
        assert_eq!((bodies.get("large"), bodies.bytes()), (None, 0));
    }
}
