//! Finds the consumer of each message: pure, but for the user's own rules and envelopes.

use std::collections::{HashMap, HashSet};

use super::consumers::{Consumers, Node, Other, Routes};
use super::field::Unreadable;
use super::select::Selector;
use crate::engine::Engine;
use crate::envelope::Envelope;
use crate::error::Error;
use crate::message::Message;
use crate::panics::caught;
use crate::reader;
use crate::rejection::Rejection;
use crate::report::Outcome;

/// The name under which what no consumer took is logged and counted.
pub(crate) const UNROUTED: &str = "unrouted";

/// Where a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// To the engine with this number.
    Consumer(usize),
    /// Nowhere: it is acknowledged with this outcome, rejected, or not started, since there is no memory or no time left to unpack it.
    Nowhere(Outcome),
}

impl Destination {
    /// Rejects a message: there is no confirmed dead letter of it yet.
    pub(crate) fn rejected(rejection: Rejection) -> Self {
        Self::Nowhere(Outcome::Rejected { rejection, dead_lettered: false })
    }

    /// Returns what has become of a message that no consumer has worked on.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Consumer(_) => Outcome::NotStarted,
            Self::Nowhere(outcome) => outcome.clone(),
        }
    }
}

/// Which messages go where.
pub(crate) enum Table {
    Consumer(usize),
    Routes(Box<Fork>),
}

pub(crate) struct Fork {
    envelopes: Vec<Box<dyn Envelope>>,
    by: Selector,
    exact: HashMap<String, usize>,
    /// The longest first.
    beginnings: Vec<(String, usize)>,
    tables: Vec<Table>,
    other: Option<Other<Table>>,
}

impl Table {
    /// Starts all consumers, each with this concurrency if it has none of its own.
    ///
    /// # Errors
    /// One error with every fault of every consumer and of the routes.
    pub(crate) fn start(consumers: Consumers, concurrency: usize) -> Result<(Self, Vec<Engine>), Error> {
        match consumers.node {
            Node::One(consumer) => Ok((Self::Consumer(0), vec![Engine::of(*consumer, concurrency)?])),
            several => {
                let mut start = Starting { concurrency, engines: Vec::new(), names: Vec::new(), faults: Vec::new() };
                let table = start.node(several);
                start.check_names();
                start.share_limits();
                Error::unless_empty("the routes are not usable", &start.faults)?;
                Ok((table, start.engines))
            }
        }
    }

    /// Returns each event of a message, opened as far as routes open it, and where it goes.
    pub(crate) fn find(&self, message: Message) -> Vec<(Message, Destination)> {
        let mut found = Found { events: Vec::with_capacity(1), bytes: 0 };
        match self.find_into(message.clone(), &mut found) {
            Ok(()) => found.events,
            Err(rejection) => vec![(message, Destination::rejected(rejection))],
        }
    }

    /// # Errors
    /// When the message holds too much, counted over all routes that are behind each other.
    fn find_into(&self, message: Message, found: &mut Found) -> Result<(), Rejection> {
        let fork = match self {
            Self::Consumer(number) => return found.push(message, Destination::Consumer(*number)),
            Self::Routes(fork) => fork,
        };
        match reader::open(&fork.envelopes, vec![message.clone()]) {
            Ok(events) if events.is_empty() => found.push(message, Destination::Nowhere(Outcome::Empty)),
            Ok(events) => events.into_iter().try_for_each(|event| match fork.choose(&event) {
                Ok(Some(table)) => table.find_into(event, found),
                Ok(None) => found.push(event, Destination::Nowhere(Outcome::Ignored)),
                Err(rejection) => found.push(event, Destination::rejected(rejection)),
            }),
            Err(rejection) => found.push(message, Destination::rejected(rejection)),
        }
    }
}

/// The events of a message that are found so far.
struct Found {
    events: Vec<(Message, Destination)>,
    bytes: usize,
}

impl Found {
    fn push(&mut self, event: Message, destination: Destination) -> Result<(), Rejection> {
        self.bytes += event.content().len();
        reader::check_events(self.events.len() + 1, self.bytes)?;
        self.events.push((event, destination));
        Ok(())
    }
}

impl Fork {
    /// Returns where an event goes on; `None` where it is acknowledged. One whose value is not known is rejected, whatever becomes of those
    /// that no route takes: it may be for one of the routes.
    fn choose(&self, event: &Message) -> Result<Option<&Table>, Rejection> {
        let no_route = |why: Rejection| Rejection::new(format!("it has no route: {why}"));
        let value = match caught(|| self.by.value(event)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Unreadable::NoValue(why))) => Err(why),
            Ok(Err(Unreadable::Ambiguous(why))) => return Err(no_route(why)),
            Err(_) => return Err(no_route(Rejection::new("the rule by which messages are routed panicked"))),
        };
        let route = value.as_ref().ok().and_then(Option::as_ref).and_then(|value| self.route(value));
        match (route, &self.other) {
            (Some(table), _) => Ok(Some(table)),
            (None, Some(Other::Take(table))) => Ok(Some(table)),
            (None, Some(Other::Acknowledge)) if value.as_ref().is_ok_and(Option::is_some) => Ok(None),
            (None, _) => Err(match value {
                Ok(Some(_)) => Rejection::new(format!("there is no route for {}", self.by)),
                Ok(None) => Rejection::new(format!("it has no route, since it lacks {}", self.by)),
                Err(why) => no_route(why),
            }),
        }
    }

    fn route(&self, value: &str) -> Option<&Table> {
        let values = [Some(value), self.by.short(value)];
        let exact = values.iter().flatten().find_map(|value| self.exact.get(*value));
        let beginning = || {
            let begins = |beginning: &str| values.iter().flatten().any(|value| value.starts_with(beginning));
            self.beginnings.iter().find(|(beginning, _)| begins(beginning)).map(|(_, number)| number)
        };
        // OK because numbers are made together with the tables.
        exact.or_else(beginning).map(|number| &self.tables[*number])
    }
}

/// Consumers on their way to engines, and all that is wrong with them.
struct Starting {
    concurrency: usize,
    engines: Vec<Engine>,
    /// Also of consumers that are not usable.
    names: Vec<String>,
    faults: Vec<String>,
}

impl Starting {
    fn node(&mut self, node: Node) -> Table {
        match node {
            Node::One(consumer) => {
                self.names.push(consumer.name.clone());
                match Engine::of(*consumer, self.concurrency) {
                    Ok(engine) => self.engines.push(engine),
                    Err(error) => self.faults.push(error.to_string()),
                }
                Table::Consumer(self.engines.len().saturating_sub(1))
            }
            Node::Several(routes) => self.routes(routes),
        }
    }

    fn routes(&mut self, routes: Routes) -> Table {
        let Routes { envelopes, by, routes, other, .. } = routes;
        if routes.is_empty() {
            self.faults.push(format!("routes by {by} lead nowhere: add .on(…)"));
        }
        let (mut exact, mut beginnings, mut tables) = (HashMap::new(), Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for (values, consumers) in routes {
            if values.is_empty() {
                self.faults.push(format!("a route by {by} has no value, so no message takes it"));
            }
            for value in values {
                if !seen.insert(value.clone()) {
                    self.faults.push(format!("two routes by {by} have the value {value:?}"));
                }
                match value.strip_suffix('*') {
                    Some(beginning) => beginnings.push((beginning.to_owned(), tables.len())),
                    None => {
                        exact.insert(value, tables.len());
                    }
                }
            }
            tables.push(self.node(consumers.node));
        }
        beginnings.sort_by_key(|(beginning, _)| std::cmp::Reverse(beginning.len()));
        if other.len() > 1 {
            self.faults
                .push(format!("routes by {by} have more than one .otherwise(…) or .acknowledge_unknown(): keep one"));
        }
        let others = other.into_iter().map(|other| match other {
            Other::Acknowledge => Other::Acknowledge,
            Other::Take(consumers) => Other::Take(Box::new(self.node(consumers.node))),
        });
        let other = others.collect::<Vec<_>>().pop();
        Table::Routes(Box::new(Fork { envelopes, by, exact, beginnings, tables, other }))
    }

    /// Lets consumers that name one system share its limit.
    fn share_limits(&mut self) {
        for number in 1..self.engines.len() {
            let (earlier, later) = self.engines.split_at_mut(number);
            self.faults.extend(later[0].share_limit(earlier).err());
        }
    }

    fn check_names(&mut self) {
        let mut seen = HashSet::new();
        for name in &self.names {
            if name == UNROUTED {
                self.faults.push(format!("a consumer has the name {UNROUTED:?}, which is that of what no route takes"));
            } else if !seen.insert(name) {
                self.faults.push(format!(
                    "two routes lead to consumers of the name {name:?}, whose keys would collide: give each its own name, or one \
                     route several values, .on([…], consumer)"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::attributes::AttributeValue;
    use crate::consumer::Consumer;
    use crate::event::Event;
    use crate::limit::Limit;
    use crate::limits::{EVENTS_MAX, UNPACKED_BATCH_MAX_BYTES};
    use crate::memory::MemoryStore;

    fn consumer(name: &str) -> Consumer<u64> {
        Consumer::new(name, MemoryStore::new(), |_: u64, _| async { Ok(()) })
    }

    fn started(routes: Routes) -> (Table, Vec<Engine>) {
        Table::start(routes.into(), 10).unwrap()
    }

    /// Returns where each event of a message goes: the consumer's name, `ignored`, or why it is rejected.
    fn found(routes: &(Table, Vec<Engine>), message: Message) -> Vec<String> {
        let shown = |(_, destination)| match destination {
            Destination::Consumer(number) => routes.1[number].name().as_str().to_owned(),
            Destination::Nowhere(Outcome::Rejected { rejection, .. }) => rejection.to_string(),
            Destination::Nowhere(outcome) => outcome.word().to_owned(),
        };
        routes.0.find(message).into_iter().map(shown).collect()
    }

    fn message() -> Message {
        Message::new("m-1", r#"{"type":"a"}"#).unwrap()
    }

    #[test]
    fn consumers_that_name_one_system_set_its_limit_alike() {
        let limited = |name, system: &str, rate| consumer(name).limit(Limit::new(system).per_second(rate));
        let routes = |rate| {
            let routes = Routes::by_attribute("type").on("a", limited("one", "mail", 5)).on("b", consumer("two"));
            routes.on("c", limited("three", "stock", 7)).on("d", limited("four", "mail", rate))
        };
        started(routes(5));
        let error = Table::start(routes(6).into(), 10).err().unwrap().to_string();
        assert!(error.contains("the consumers one and four set the limit of \"mail\" differently"), "{error}");
    }

    #[test]
    fn a_value_finds_its_route() {
        let routes = || Routes::by_attribute("type").on(["a", "b"], consumer("one")).on("a*", consumer("two"));
        let routes = || routes().on("ab*", consumer("three"));
        let with = |value: &str| message().with_attribute("type", AttributeValue::text(value));
        let rejecting = started(routes());
        for (value, wanted) in [
            ("a", "one"),
            ("b", "one"),
            ("aa", "two"),
            ("abc", "three"),
            ("ab", "three"),
            ("secret", "there is no route for the attribute `type`"),
            ("A", "there is no route for the attribute `type`"),
        ] {
            assert_eq!(found(&rejecting, with(value)), [wanted], "{value}");
        }
        let binary = message().with_attribute("type", AttributeValue::bytes(*b"a"));
        let no_route = "it has no route, since it lacks the attribute `type`";
        let no_text = "it has no route: the attribute `type` is a Binary, and not a String or a Number";
        assert_eq!(found(&rejecting, message()), [no_route]);
        assert_eq!(found(&rejecting, binary.clone()), [no_text]);
        let number = Routes::by_attribute("type").on("7", consumer("seven"));
        assert_eq!(found(&started(number), message().with_attribute("type", AttributeValue::number("7"))), ["seven"]);
        // Only what has a value is acknowledged; what is left over goes to a consumer for it, whatever it has.
        let acknowledging = started(routes().acknowledge_unknown());
        let left_over = started(routes().otherwise(consumer("rest")));
        for (message, acknowledged) in [(with("secret"), "ignored"), (message(), no_route), (binary, no_text)] {
            assert_eq!(found(&acknowledging, message.clone()), [acknowledged]);
            assert_eq!(found(&left_over, message), ["rest"]);
        }
    }

    #[test]
    fn there_are_routes_by_kind_field_queue_and_a_rule_and_behind_each_other() {
        let one = |routes: Routes, value: &str| started(routes.on(value, consumer("one")));
        let event = |kind: &str| {
            let kind = Some(kind.to_owned());
            message().opened(*b"7", Event { kind, ..Event::default() })
        };
        assert_eq!(found(&one(Routes::by_kind(), "a"), event("a")), ["one"]);
        assert_eq!(found(&one(Routes::by_field("type"), "a"), message()), ["one"]);
        let by_id = Routes::by(|message| message.id().as_str().strip_prefix("m-").map(str::to_owned));
        assert_eq!(found(&one(by_id, "1"), message()), ["one"]);
        // What is not known may be for one of the routes: it is rejected where what is left over goes to a consumer, too.
        let panicked = "it has no route: the rule by which messages are routed panicked";
        let (twice, is_twice) = (r#"{"type":"a","type":"a"}"#, "it has no route: the field `type` is there twice");
        for with_rest in [|routes: Routes| routes, |routes: Routes| routes.otherwise(consumer("rest"))] {
            assert_eq!(found(&one(with_rest(Routes::by(|_| panic!("secret"))), "1"), message()), [panicked]);
            let twice = Message::new("m-1", twice).unwrap();
            assert_eq!(found(&one(with_rest(Routes::by_field("type")), "a"), twice), [is_twice]);
        }
        let arn = "arn:partition:queue:region:1:orders";
        let from_orders = message().with_source_arn(arn);
        for value in [arn, "orders", "ord*"] {
            assert_eq!(found(&one(Routes::by_queue(), value), from_orders.clone()), ["one"], "{value}");
        }
        let lacks = "it has no route, since it lacks the queue that it comes from";
        assert_eq!(found(&one(Routes::by_queue(), "orders"), message()), [lacks]);
        let both = Routes::by_queue().on("orders", Routes::by_field("type").on("a", consumer("a")));
        assert_eq!(found(&started(both.otherwise(consumer("rest"))), from_orders), ["a"]);
    }

    struct Lines;

    impl Envelope for Lines {
        fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
            let event = |line: &str| {
                let kind = Some(line.to_owned());
                message.clone().opened(line, Event { kind, ..Event::default() })
            };
            let text = std::str::from_utf8(message.content()).map_err(|_| Rejection::new("no text"))?;
            assert_ne!(text, "panic");
            Ok(text.lines().map(event).collect())
        }
    }

    #[test]
    fn each_event_of_a_message_has_its_own_route() {
        let routes = Routes::by_kind().envelope(Lines).on("a", consumer("a")).on("b", consumer("b"));
        let routes = started(routes.acknowledge_unknown());
        let events = |body: &str| found(&routes, Message::new("m", body).unwrap());
        assert_eq!(events("a\nb\nc\na"), ["a", "b", "ignored", "a"]);
        assert_eq!(events(""), ["empty"]);
        assert_eq!(events("panic"), ["opening the envelope panicked"]);
    }

    /// Opens to that many events of so many bytes each.
    struct Full(usize, usize);

    impl Envelope for Full {
        fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
            Ok((0..self.0).map(|_| message.clone().opened(vec![0; self.1], Event::default())).collect())
        }
    }

    #[test]
    fn a_message_is_bounded_over_all_its_routes() {
        let (count, mb) = (EVENTS_MAX / 10, UNPACKED_BATCH_MAX_BYTES / 8);
        let (too_many, too_large) = ("holds 101 events or more", "have 150994944 bytes or more");
        // Events by the first routes, by the second ones of each; bytes of each.
        for (outer, inner, bytes, wanted) in
            [(count, 10, 1, None), (count + 1, 10, 1, Some(too_many)), (8, 1, mb, None), (9, 1, mb, Some(too_large))]
        {
            let inside = Routes::by(|_| Some("a".into())).envelope(Full(inner, bytes)).on("a", consumer("a"));
            let routes = started(Routes::by(|_| Some("a".into())).envelope(Full(outer, 1)).on("a", inside));
            let found = found(&routes, message());
            match wanted {
                None => assert_eq!(found, vec!["a"; outer * inner]),
                Some(wanted) => assert!(found.len() == 1 && found[0].contains(wanted), "{wanted} in {found:?}"),
            }
        }
    }

    #[test]
    fn all_faults_are_said_at_once() {
        let routes = Routes::by_field("type")
            .on(["a", "a"], consumer("one"))
            .on(Vec::<String>::new(), consumer("one").concurrency(0).timeout(Duration::ZERO))
            .on("b", consumer("unrouted"))
            .on("c", consumer(""))
            .on("d", Routes::by_kind())
            .on("e", consumer("keyed").key(|id: &u64| id).key_of(|id| *id))
            .otherwise(consumer("rest"))
            .acknowledge_unknown();
        let text = Table::start(routes.into(), 10).err().unwrap().to_string();
        for wanted in [
            "9 faults",
            "\n  - the settings of the consumer \"keyed\" are not usable: it has two key rules",
            "\n  - the settings of the consumer \"one\" are not usable, 2 faults:\n      - the concurrency is 0 messages",
            "routes by the field `type` have more than one .otherwise(…) or .acknowledge_unknown()",
            "two routes by the field `type` have the value \"a\"",
            "a route by the field `type` has no value",
            "the settings of the consumer \"\" are not usable",
            "routes by the kind that its envelope says lead nowhere",
            "a consumer has the name \"unrouted\"",
            "two routes lead to consumers of the name \"one\"",
        ] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }
}
