//! The producer on the local SQS, over a wire that loses requests and answers.

mod refused;
mod spans;
mod tries;

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use claimant::producer::{Outgoing, Producer, SendError, Sent};
use claimant::{AttributeValue, Context, Key, Message};
use claimant_local::sqs::{QueueSettings, Sqs};
use claimant_tests::wire::{Loss, Wire};

const STANDARD: &str = "orders";
const FIFO: &str = "orders.fifo";

/// Two queues behind a wire.
struct World {
    sqs: Sqs,
    wire: Wire,
    client: Client,
}

impl World {
    async fn start() -> Self {
        let sqs = Sqs::new();
        sqs.create_queue(STANDARD, QueueSettings::default()).unwrap();
        sqs.create_queue(FIFO, QueueSettings { fifo: true, ..QueueSettings::default() }).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(sqs.clone().serve(listener, std::future::pending()));
        sqs.set_endpoint(&endpoint);
        let wire = Wire::default();
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "tests"))
            // Without retries of the SDK's own, a row of losses is what the producer makes of it.
            .retry_config(RetryConfig::disabled())
            .endpoint_url(endpoint)
            .http_client(wire.clone())
            .build();
        Self { sqs, wire, client: Client::from_conf(config) }
    }

    fn producer(&self, queue: &str) -> Producer {
        Producer::new(self.client.clone(), self.sqs.queue_url(queue))
    }

    /// The bodies in the queue, in order.
    fn bodies(&self, queue: &str) -> Vec<String> {
        self.sqs.messages(queue).unwrap().into_iter().map(|message| message.body).collect()
    }
}

/// `key` or `key/group`; the body is the text.
fn outgoing(text: &str) -> Outgoing {
    let (key, group) = text.split_once('/').map_or((text, None), |(key, group)| (key, Some(group)));
    let message = Outgoing::new(Key::new(key).unwrap(), text);
    group.into_iter().fold(message, Outgoing::group)
}

/// What became of each message, in a word.
fn words(results: &[Result<Sent, SendError>]) -> String {
    let word = |result: &Result<Sent, SendError>| match result {
        Ok(_) => "sent".to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    };
    results.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// One send: what goes wrong on the wire, and what must come of it.
struct Case {
    name: &'static str,
    queue: &'static str,
    messages: &'static str,
    losses: &'static [Loss],
    results: &'static str,
    /// What is in the queue then.
    queued: &'static str,
    requests: usize,
}

const INTERNAL: Loss = Loss::Instead(
    200,
    r#"{"Successful":[],"Failed":[{"Id":"0","SenderFault":false,"Code":"InternalError"},{"Id":"1","SenderFault":false,"Code":"InternalError"}]}"#,
);
const SECOND_FAILS: Loss = Loss::Instead(
    200,
    r#"{"Successful":[{"Id":"0","MessageId":"m","MD5OfMessageBody":"d"}],"Failed":[{"Id":"1","SenderFault":false,"Code":"InternalError"}]}"#,
);
const FIRST_REFUSED: Loss = Loss::Instead(
    200,
    r#"{"Successful":[],"Failed":[{"Id":"0","SenderFault":true,"Code":"InvalidParameterValue","Message":"no"}]}"#,
);
const THROTTLED: Loss = Loss::Instead(
    200,
    r#"{"Successful":[],"Failed":[{"Id":"0","SenderFault":true,"Code":"KMS.ThrottlingException"}]}"#,
);
const UNAVAILABLE: Loss = Loss::Instead(503, r#"{"__type":"com.amazonaws.sqs#ServiceUnavailable"}"#);
/// It names one message without an id, and no other.
const SILENT_ANSWER: Loss = Loss::Instead(200, r#"{"Successful":[{"Id":"0","MD5OfMessageBody":"d"}],"Failed":[]}"#);

const CASES: &[Case] = &[
    Case {
        name: "a batch is one request",
        queue: STANDARD,
        messages: "a b c d e f g h i j",
        losses: &[],
        results: "sent sent sent sent sent sent sent sent sent sent",
        queued: "a b c d e f g h i j",
        requests: 1,
    },
    Case { name: "an empty one is none", queue: FIFO, messages: "", losses: &[], results: "", queued: "", requests: 0 },
    Case {
        name: "keys that are their own groups go together, and the second copy is dropped",
        queue: FIFO,
        messages: "a b c a",
        losses: &[],
        results: "sent sent sent sent",
        queued: "a b c",
        requests: 2,
    },
    Case {
        name: "a group goes one by one",
        queue: FIFO,
        messages: "a/g b/g c/h d/g",
        losses: &[],
        results: "sent sent sent sent",
        queued: "a/g c/h b/g d/g",
        requests: 3,
    },
    Case {
        name: "what fails by SQS's fault is sent again",
        queue: STANDARD,
        messages: "a b",
        losses: &[INTERNAL, UNAVAILABLE, THROTTLED, SILENT_ANSWER],
        results: "sent sent",
        queued: "a b",
        requests: 5,
    },
    Case {
        name: "alone: what was taken is not sent again",
        queue: STANDARD,
        messages: "a b",
        losses: &[SECOND_FAILS],
        results: "sent sent",
        queued: "b",
        requests: 2,
    },
    Case {
        name: "a message that failed holds back its group until it is sent",
        queue: FIFO,
        messages: "a/g b/g c/h",
        losses: &[INTERNAL],
        results: "sent sent sent",
        queued: "a/g c/h b/g",
        requests: 3,
    },
    Case {
        name: "and one that was refused holds it back for good",
        queue: FIFO,
        messages: "a/g b/g c/g",
        losses: &[FIRST_REFUSED],
        results: "Refused HeldBack HeldBack",
        queued: "",
        requests: 1,
    },
    Case {
        name: "a lost request is sent again",
        queue: STANDARD,
        messages: "a",
        losses: &[Loss::Request],
        results: "sent",
        queued: "a",
        requests: 2,
    },
    Case {
        name: "a lost answer makes no second message on a FIFO queue",
        queue: FIFO,
        messages: "a b/b",
        losses: &[Loss::Answer, Loss::Answer],
        results: "sent sent",
        queued: "a b/b",
        requests: 3,
    },
    Case {
        name: "but on a standard queue, where the consumer's key absorbs it",
        queue: STANDARD,
        messages: "a",
        losses: &[Loss::Answer],
        results: "sent",
        queued: "a a",
        requests: 2,
    },
    Case {
        name: "no answer to the end: unknown",
        queue: FIFO,
        messages: "a/g b/g c",
        losses: &[Loss::Answer, Loss::Request, Loss::Request, Loss::Request, Loss::Request],
        results: "Unknown HeldBack Unknown",
        queued: "a/g c",
        requests: 5,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn each_message_has_its_result() {
    for case in CASES {
        let world = World::start().await;
        world.wire.script(case.losses);
        let results = world.producer(case.queue).send_all(case.messages.split_whitespace().map(outgoing)).await;
        assert_eq!(words(&results), case.results, "{}: {results:?}", case.name);
        assert_eq!(world.bodies(case.queue).join(" "), case.queued, "{}", case.name);
        assert_eq!(world.wire.take_requests().len(), case.requests, "{}", case.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sending_again_makes_nothing_new() {
    let world = World::start().await;
    let long = "k".repeat(500);
    let keys = ["o-1", "o 2", "ö-3", long.as_str(), "o-1 "];
    let messages = || keys.iter().map(|key| Outgoing::new(Key::new(*key).unwrap(), format!("{{\"id\":\"{key}\"}}")));
    let first = world.producer(FIFO).send_all(messages()).await;
    // Another producer, as after a crash.
    let second = world.producer(FIFO).send_all(messages()).await;
    assert_eq!(words(&first), "sent sent sent sent sent");
    assert_eq!(first, second, "the same messages, by their ids and sequence numbers");
    assert_eq!(world.bodies(FIFO).len(), keys.len());
    for message in world.sqs.receive(FIFO, 10, Duration::ZERO).await.unwrap() {
        assert!(!message.attributes.contains_key("AWSTraceHeader"), "{:?}", message.attributes);
    }
}

/// What is sent beside the body, as the queue has it.
#[tokio::test(flavor = "multi_thread")]
async fn attributes_traces_groups_and_delays_arrive() {
    const TRACE: &str = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    let world = World::start().await;
    let handled = Message::new("m", "").unwrap().with_trace(TRACE);
    let cx = Context::for_tests("k").unwrap().with_message(handled);
    let messages = || {
        let whole = outgoing("a/tenant 7")
            .attribute("kind", AttributeValue::text("order"))
            .attribute("price", AttributeValue::number("1.50").with_label("eur"))
            .attribute("digest", AttributeValue::bytes([0, 255]));
        let later = outgoing("later").delay(Duration::from_millis(899_001));
        [
            whole.continuing(&cx),
            outgoing("b").trace(TRACE),
            outgoing("c").continuing(&Context::for_tests("k").unwrap()),
            later,
        ]
    };
    let results = world.producer(STANDARD).send_all(messages()).await;
    assert_eq!(words(&results), "sent sent sent sent");
    assert_eq!(world.wire.take_requests().len(), 1);
    assert_eq!(world.sqs.depth(STANDARD).unwrap().delayed, 1);
    let received = world.sqs.receive(STANDARD, 10, Duration::ZERO).await.unwrap();
    assert_eq!(received.len(), 3);
    let traces: Vec<_> =
        received.iter().map(|message| message.attributes.get("AWSTraceHeader").map(String::as_str)).collect();
    assert_eq!(traces, [Some(TRACE), Some(TRACE), None]);
    assert!(received[0].attributes["MessageGroupId"].starts_with("sha256:"), "a tenant of a fair queue");
    assert!(!received[1].attributes.contains_key("MessageGroupId"));
    let attributes: Vec<_> = received[0]
        .message_attributes
        .iter()
        .map(|(name, attribute)| (name.as_str(), attribute.data_type.as_str(), attribute.value.as_bytes()))
        .collect();
    let wanted: [(&str, &str, &[u8]); 3] =
        [("digest", "Binary", &[0, 255]), ("kind", "String", b"order"), ("price", "Number.eur", b"1.50")];
    assert_eq!(attributes, wanted);
    // A FIFO queue delays none by itself.
    let results = world.producer(FIFO).send_all(messages()).await;
    assert_eq!(words(&results), "sent sent sent Refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_message_fails_alone() {
    let world = World::start().await;
    let text = AttributeValue::text;
    let eleven = (0..11).fold(outgoing("eleven attributes"), |m, n| m.attribute(format!("a{n}"), text("1")));
    let body = |body: String| Outgoing::new(Key::new("secret-key").unwrap(), body);
    let messages = [
        outgoing("a").attribute("kind", text("order")),
        body(String::new()),
        body("secret \u{1}".into()),
        body("secret".repeat(200_000)),
        eleven,
        outgoing("a bad attribute").attribute("secret name", text("secret")),
        outgoing("a long delay").delay(Duration::from_secs(901)),
        outgoing("no trace").trace("secret"),
        outgoing("b"),
    ];
    let results = world.producer(STANDARD).send_all(messages).await;
    assert_eq!(words(&results), "sent Refused Refused Refused Refused Refused Refused Refused sent");
    assert_eq!(world.wire.take_requests().len(), 1, "what is refused is not sent first");
    assert_eq!(world.bodies(STANDARD), ["a", "b"]);
    for error in results.iter().filter_map(|result| result.as_ref().err()) {
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
    assert!(!format!("{:?}", outgoing("secret")).contains("secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_messages_are_as_many_requests_as_they_need() {
    let world = World::start().await;
    let large = |n: usize, bytes: usize| Outgoing::new(Key::new(format!("k{n}")).unwrap(), "x".repeat(bytes));
    let half = 1_048_576 / 2;
    let messages = [large(0, half), large(1, half), large(2, half + 1), large(3, half), large(4, 1_048_576)];
    let results = world.producer(STANDARD).send_all(messages).await;
    assert_eq!(words(&results), "sent sent sent sent sent");
    assert_eq!(world.wire.take_requests().len(), 4);
    // Far more than go at once.
    let results = world.producer(FIFO).send_all((0..203).map(|n| large(n, 1))).await;
    assert!(results.iter().all(Result::is_ok), "{}", words(&results));
    assert_eq!(world.wire.take_requests().len(), 21);
    assert_eq!(world.bodies(FIFO).len(), 203);
}
