//! The latest bodies of messages, with their attributes. Pure.

use std::collections::{HashMap, VecDeque};

use super::text::Text;

/// What a body takes beside its bytes, about.
const PER_BODY: usize = 120;

/// What a message holds: its body, and its attributes as JSON, empty where it has none.
struct Content {
    body: Box<str>,
    attributes: Box<str>,
}

impl Content {
    fn bytes(&self) -> usize {
        self.body.len() + self.attributes.len() + PER_BODY
    }
}

/// The latest bodies, bounded in bytes; the oldest go when one more arrives. They are in no event.
#[derive(Default)]
pub(super) struct Bodies {
    bodies: HashMap<Text, Content>,
    order: VecDeque<Text>,
    bytes: usize,
}

impl Bodies {
    /// Keeps a body and attributes, and drops the oldest ones beyond so many bytes. The first body of a message stays.
    pub(super) fn keep(&mut self, id: &str, (body, attributes): (&str, &str), bytes_max: usize) {
        if self.bodies.contains_key(id) {
            return;
        }
        let id = Text::from(id);
        let content = Content { body: body.into(), attributes: attributes.into() };
        self.bytes += content.bytes();
        self.bodies.insert(id.clone(), content);
        self.order.push_back(id);
        while self.bytes > bytes_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.bodies.remove(&oldest).map_or(0, |content| content.bytes());
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&str> {
        self.bodies.get(id).map(|content| &*content.body)
    }

    pub(super) fn attributes(&self, id: &str) -> Option<&str> {
        self.bodies.get(id).map(|content| &*content.attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_bodies_go() {
        let mut bodies = Bodies::default();
        for n in 0..100 {
            bodies.keep(&n.to_string(), ("01234", "56789"), 10 * (10 + PER_BODY));
        }
        bodies.keep("99", ("another", ""), 1_000_000);
        assert_eq!((bodies.get("89"), bodies.get("0")), (None, None));
        assert_eq!((bodies.get("90"), bodies.get("99")), (Some("01234"), Some("01234")));
        assert_eq!((bodies.attributes("89"), bodies.attributes("99")), (None, Some("56789")));
        assert!(bodies.bytes <= 10 * (10 + PER_BODY));
        bodies.keep("large", (&"x".repeat(10_000), ""), 1_000);
        assert_eq!((bodies.get("large"), bodies.bytes), (None, 0));
    }
}
