//! A tracing system that panics, and each of its spans: what is sent does not hang on that.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::spans::{MessageSpan, SendSpan, SpanIdentity, StepSpan};
use claimant_core::{ConsumerName, Message, Spans};

use super::{STANDARD, World, outgoing, words};

const OUTER: &str = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
const INNER: &str = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=00f067aa0ba902b7;Sampled=1";

/// A tracing system that panics where this says.
#[derive(Clone, Copy)]
struct Panicky(&'static str);

impl Panicky {
    fn at(self, at: &str) {
        assert_ne!(self.0, at, "on purpose");
    }
}

impl Spans for Panicky {
    fn message(&self, _: &Message) -> Box<dyn MessageSpan> {
        unreachable!("nothing is received")
    }

    fn call(&self, _: &ConsumerName, _: &[SpanIdentity]) -> Arc<dyn StepSpan> {
        unreachable!("nothing is called")
    }

    fn send(&self, _: &str, _: Option<&str>) -> Box<dyn SendSpan> {
        self.at("send");
        Box::new(Opened(*self))
    }
}

/// A span of it.
struct Opened(Panicky);

impl SendSpan for Opened {
    fn header(&self) -> Option<String> {
        self.0.at("header");
        Some(INNER.to_owned())
    }

    fn end(&self, _: Result<&str, &'static str>) {
        self.0.at("end");
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.at("drop");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_does_not_hang_on_its_span() {
    for (at, header) in [("nowhere", INNER), ("send", OUTER), ("header", OUTER), ("end", INNER), ("drop", INNER)] {
        let world = World::start().await;
        let producer = world.producer(STANDARD).spans(Panicky(at));
        let results = producer.send_all(["a", "b"].map(|text| outgoing(text).trace(OUTER))).await;
        assert_eq!(words(&results), "sent sent", "{at}");
        let queued = world.sqs.receive(STANDARD, 10, Duration::ZERO).await.unwrap();
        let headers: Vec<_> = queued.iter().map(|message| message.attributes["AWSTraceHeader"].as_str()).collect();
        assert_eq!(headers, [header; 2], "{at}");
    }
}
