//! In which order the messages of an invocation go to their consumers: pure.

use std::collections::BTreeMap;

use super::table::Destination;
use crate::message::Message;
use crate::report::Outcome;

/// An event of a message, and where it goes.
pub(crate) struct Routed {
    /// Which message of the invocation it is of.
    pub(crate) message: usize,
    /// Whether it is that message's only one.
    pub(crate) whole: bool,
    /// As far as routes have opened it.
    pub(crate) content: Message,
    pub(crate) destination: Destination,
}

/// What becomes of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Consumer(usize),
    Acknowledged,
    Rejected,
    NotStarted,
}

impl To {
    fn of(destination: &Destination) -> Self {
        match destination {
            Destination::Consumer(number) => Self::Consumer(*number),
            Destination::Nowhere(Outcome::Rejected { .. }) => Self::Rejected,
            Destination::Nowhere(outcome) if outcome.is_success() => Self::Acknowledged,
            Destination::Nowhere(_) => Self::NotStarted,
        }
    }
}

/// Events that go to one destination together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlannedPart {
    pub(crate) to: To,
    /// By their indexes.
    pub(crate) events: Vec<usize>,
    /// Whether the message of which these are the last events has several.
    pub(crate) ends_message: bool,
}

/// Parts that go to their destinations one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlannedSequence {
    /// Whether none is taken after one that did not succeed.
    pub(crate) ordered: bool,
    pub(crate) parts: Vec<PlannedPart>,
}

/// Returns what is done side by side. A group that is kept in order and goes to more than one consumer, or has a message of
/// several events, has a sequence of its own: a run of events for the same consumer in each part. So has one of several messages that no
/// consumer takes, one in each part, since none of them may leave the queue before the one in front of it has. All else goes to its
/// consumer at once, which keeps the order of the groups in it.
pub(crate) fn plan(events: &[Routed]) -> Vec<PlannedSequence> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut at_once: Vec<usize> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        match event.content.ordered_group() {
            Some(group) => groups.entry(group).or_default().push(index),
            None => at_once.push(index),
        }
    }
    let mut plan = Vec::new();
    for group in groups.into_values() {
        let first = To::of(&events[group[0]].destination);
        let together = first != To::Rejected || group.len() == 1;
        match together && group.iter().all(|index| events[*index].whole && To::of(&events[*index].destination) == first)
        {
            true => at_once.extend(group),
            false => plan.push(PlannedSequence { ordered: true, parts: in_order(events, &group) }),
        }
    }
    // As they came: that is the order of what has the same key.
    at_once.sort_unstable();
    let mut together: Vec<PlannedPart> = Vec::new();
    for index in at_once {
        let to = To::of(&events[index].destination);
        match together.iter_mut().find(|part| part.to == to) {
            Some(part) => part.events.push(index),
            None => together.push(PlannedPart { to, events: vec![index], ends_message: false }),
        }
    }
    let alone = |part| PlannedSequence { ordered: false, parts: vec![part] };
    together.into_iter().map(alone).chain(plan).collect()
}

/// Returns runs of events for the same consumer. A message of several events shares no part with others, nor does one that no consumer
/// takes: whether it has succeeded must be known before the next one starts.
fn in_order(events: &[Routed], group: &[usize]) -> Vec<PlannedPart> {
    let mut parts: Vec<PlannedPart> = Vec::new();
    for (position, index) in group.iter().enumerate() {
        let (event, to) = (&events[*index], To::of(&events[*index].destination));
        let before = position.checked_sub(1).map(|before| &events[group[before]]);
        let shares = before
            .is_some_and(|before| before.message == event.message || before.whole && event.whole && to != To::Rejected);
        let ends = group.get(position + 1).is_none_or(|next| events[*next].message != event.message);
        let ends_message = ends && !event.whole;
        match parts.last_mut().filter(|part| shares && part.to == to) {
            Some(part) => {
                part.events.push(*index);
                part.ends_message = ends_message;
            }
            None => parts.push(PlannedPart { to, events: vec![*index], ends_message }),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rejection::Rejection;

    /// Describes events by their message, group and destination; `..` stands for no group.
    fn planned(described: &str) -> Vec<String> {
        let words: Vec<Vec<&str>> = described.split(", ").map(|words| words.split_whitespace().collect()).collect();
        let destination = |word: &str| match word {
            "ignored" => Destination::Nowhere(Outcome::Ignored),
            "rejected" => Destination::rejected(Rejection::new("why")),
            number => Destination::Consumer(number.parse().unwrap()),
        };
        let of_message = |number: &str| words.iter().filter(|words| words[0] == number).count();
        let event = |words: &Vec<&str>| {
            let content = Message::new("m", "").unwrap();
            Routed {
                message: words[0].parse().unwrap(),
                whole: of_message(words[0]) == 1,
                content: if words[1] == ".." { content } else { content.with_ordered_group(words[1]) },
                destination: destination(words[2]),
            }
        };
        let events: Vec<_> = words.iter().map(event).collect();
        let part = |part: &PlannedPart| {
            let events: Vec<_> = part.events.iter().map(usize::to_string).collect();
            format!("{}{}", events.join("+"), if part.ends_message { "." } else { "" })
        };
        let shown = |sequence: &PlannedSequence| {
            let shown: Vec<_> = sequence.parts.iter().map(part).collect();
            format!("{}{}", if sequence.ordered { "in order: " } else { "" }, shown.join(" "))
        };
        plan(&events).iter().map(shown).collect()
    }

    #[test]
    fn what_needs_no_order_goes_to_its_consumer_at_once() {
        for (events, wanted) in [
            ("0 .. 0, 1 .. 1, 2 .. 0", vec!["0+2", "1"]),
            ("0 .. ignored, 1 .. 1, 2 .. rejected, 3 .. ignored", vec!["0+3", "1", "2"]),
            ("0 g 0, 1 h 1, 2 g 0, 3 .. 0", vec!["0+2+3", "1"]),
            ("0 .. 0, 0 .. 1, 1 .. 0", vec!["0+2", "1"]),
            ("0 g 0, 1 h 1, 2 g 1, 3 h 1, 4 g 1, 5 g 0", vec!["1+3", "in order: 0 2+4 5"]),
            ("0 g 0, 1 g ignored, 2 g rejected, 3 g rejected", vec!["in order: 0 1 2 3"]),
            ("0 g rejected, 1 g rejected, 2 h rejected, 3 .. rejected", vec!["2+3", "in order: 0 1"]),
            // A message of several events ends before the next one begins.
            ("0 g 0, 1 g 0, 1 g 0, 1 g 1, 2 g 1, 3 g 1", vec!["in order: 0 1+2 3. 4+5"]),
            ("0 g 0, 0 g 0, 1 g 0, 1 g 0", vec!["in order: 0+1. 2+3."]),
        ] {
            assert_eq!(planned(events), wanted, "{events}");
        }
    }
}
