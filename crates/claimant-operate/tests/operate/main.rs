//! Dead letters in the local SQS, and event source mappings in the local cloud, through the real SDKs.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand, as tests do")]

mod acts;
mod faults;
mod intake;
mod keys;
mod on_purpose;
mod redrives;
mod sends;
mod tables;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as System};
use claimant_local::cloud::{Binaries, Cloud, CloudConfig};
use claimant_local::sqs::{AttributeValue, MessageAttribute, NewMessage, QueueSettings, Redrive, Sqs};
use claimant_operate::dead::{Bounds, DeadLetter, DeadLetterQueue, Progress, Report, Selection};
use claimant_operate::target::{Account, Place, Target};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Everything, at once, for real.
const ALL: Bounds = Bounds { limit: usize::MAX, per_s: None, dry_run: false };

/// Starts a local cloud of this template, whose functions are not built, and opens it.
async fn open(template: &str) -> (TempDir, Cloud, Place) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("template.yaml");
    std::fs::write(&path, template).unwrap();
    let config = CloudConfig::new(&path, directory.path());
    let binaries = Binaries { wait: true, search: true, ..config.binaries.clone() };
    let cloud = Cloud::start(CloudConfig { binaries, ..config }).await.unwrap();
    let place = Target::Local(cloud.endpoints().control.clone()).open(&Account::default()).await.unwrap();
    (directory, cloud, place)
}

/// A local SQS: `dead` is the dead-letter queue of `orders`, `shared` that of `payments` and `refunds`, `dead.fifo` that of
/// `moves.fifo`; and `other` has none.
struct Local {
    sqs: Sqs,
    client: Client,
    url: String,
    _server: JoinSet<()>,
}

impl Local {
    async fn start() -> Self {
        let sqs = Sqs::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        sqs.set_endpoint(&url);
        for (name, dead_letter_queue) in [
            ("dead", None),
            ("shared", None),
            ("dead.fifo", None),
            ("other", None),
            ("orders", Some("dead")),
            ("payments", Some("shared")),
            ("refunds", Some("shared")),
            ("moves.fifo", Some("dead.fifo")),
        ] {
            let redrive = dead_letter_queue
                .map(|name: &str| Redrive { dead_letter_queue: name.to_owned(), max_receive_count: 1 });
            let settings = QueueSettings { fifo: name.ends_with(".fifo"), redrive, ..QueueSettings::default() };
            sqs.create_queue(name, settings).unwrap();
        }
        let mut server = JoinSet::new();
        server.spawn({
            let sqs = sqs.clone();
            async move { sqs.serve(listener, std::future::pending()).await.unwrap() }
        });
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "test"))
            .endpoint_url(&url)
            .http_client(claimant_aws::http_client())
            .build();
        Self { sqs, client: Client::from_conf(config), url, _server: server }
    }

    fn url(&self, queue: &str) -> String {
        format!("{}/000000000000/{queue}", self.url)
    }

    async fn open(&self, queue: &str) -> DeadLetterQueue {
        DeadLetterQueue::open(self.client.clone(), self.url(queue)).await.unwrap()
    }

    /// Puts a copy in a queue as a function does, with `name=value` attributes.
    fn copied(&self, queue: &str, error: &str, body: &str, more: &str) {
        let said = [("claimant-error", error), ("claimant-outcome", "rejected"), ("claimant-consumer", "order")];
        let more = more.split_whitespace().filter_map(|pair| pair.split_once('='));
        // The later of two of one name counts.
        let attributes: BTreeMap<_, _> = said
            .into_iter()
            .chain(more)
            .map(|(name, value)| {
                let value = AttributeValue::Text(value.to_owned());
                (name.to_owned(), MessageAttribute { data_type: "String".to_owned(), value })
            })
            .collect();
        self.sqs.send(queue, NewMessage { message_attributes: attributes, ..NewMessage::new(body) }).unwrap();
    }

    /// Sends messages, and has SQS move them to the dead-letter queue.
    async fn moved(&self, queue: &str, messages: impl IntoIterator<Item = NewMessage>) {
        for message in messages {
            self.sqs.send(queue, message).unwrap();
        }
        // Each is received once, shown again, and moved at the next receive.
        loop {
            let received = self.receive(queue, 0).await;
            if received.is_empty() {
                break;
            }
        }
    }

    /// Receives up to ten messages, hidden for so many seconds.
    async fn receive(&self, queue: &str, hidden_s: i32) -> Vec<Message> {
        let request = self.client.receive_message().queue_url(self.url(queue)).max_number_of_messages(10);
        let request = request.visibility_timeout(hidden_s).message_attribute_names("All");
        request.message_system_attribute_names(System::All).send().await.unwrap().messages.unwrap_or_default()
    }

    /// How many messages a queue holds, visible and hidden.
    fn depth(&self, queue: &str) -> (usize, usize) {
        let depth = self.sqs.depth(queue).unwrap();
        (depth.visible, depth.in_flight)
    }
}

/// Reads letters, and sorts them by their bodies.
async fn read(queue: &DeadLetterQueue, selection: &Selection, limit: usize) -> (Vec<DeadLetter>, Report) {
    let mut letters = Vec::new();
    let report = queue.read(selection, limit, &mut |letter| letters.push(letter), &mut go_on).await.unwrap();
    letters.sort_by(|a, b| a.body().cmp(b.body()));
    (letters, report)
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn body(message: &Message) -> &str {
    message.body().unwrap()
}

fn said<'m>(message: &'m Message, name: &str) -> Option<&'m str> {
    message.message_attributes()?.get(name)?.string_value()
}
