//! The SQS endpoint through the real SDK, over HTTP.

mod answers;
mod batches;
mod fifo;
mod messages;
mod moves;
mod not_imitated;
mod protocol;
mod queues;

use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry as ChangeEntry, DeleteMessageBatchRequestEntry as DeleteEntry, Message,
    MessageAttributeValue, MessageSystemAttributeName as System, MessageSystemAttributeNameForSends as SystemForSends,
    MessageSystemAttributeValue, QueueAttributeName as Name, SendMessageBatchRequestEntry as SendEntry,
};
use claimant_local::Error;
use claimant_local::sqs::{NewMessage, QueueSettings, Redrive, Sqs};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::http;

const MIB: usize = 1_048_576;

/// A running endpoint with the queues `orders`, `orders.fifo`, and `dead`, the dead-letter queue of `twice`.
struct Local {
    sqs: Sqs,
    client: Client,
    address: String,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), Error>>,
}

impl Local {
    async fn start() -> Self {
        let sqs = Sqs::new();
        let twice = Redrive { dead_letter_queue: "dead".to_owned(), max_receive_count: 2 };
        for (name, settings) in [
            ("orders", QueueSettings::default()),
            ("orders.fifo", QueueSettings { fifo: true, ..QueueSettings::default() }),
            ("dead", QueueSettings::default()),
            ("twice", QueueSettings { redrive: Some(twice), ..QueueSettings::default() }),
        ] {
            sqs.create_queue(name, settings).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(sqs.clone().serve(listener, async { drop(stopped.await) }));
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "test"))
            .endpoint_url(format!("http://{address}"))
            .http_client(claimant_aws::http_client())
            .build();
        Self { sqs, client: Client::from_conf(config), address, stop, server }
    }

    fn url(&self, queue: &str) -> String {
        format!("http://{}/000000000000/{queue}", self.address)
    }

    async fn send(&self, queue: &str, body: &str) {
        self.client.send_message().queue_url(self.url(queue)).message_body(body).send().await.unwrap();
    }

    async fn receive(&self, queue: &str) -> Vec<Message> {
        let request = self.client.receive_message().queue_url(self.url(queue)).max_number_of_messages(10);
        let answer = request.message_system_attribute_names(System::All).message_attribute_names("All").send().await;
        answer.unwrap().messages.unwrap_or_default()
    }

    /// Sends one request by hand; returns the whole answer.
    async fn raw(&self, action: &str, body: &str) -> String {
        self.raw_with(action, "", body).await
    }

    /// As [`raw`](Self::raw), with more header lines.
    async fn raw_with(&self, action: &str, headers: &str, body: &str) -> String {
        http::asked(&self.address, "POST /", &format!("x-amz-target: {action}\r\n{headers}"), body).await
    }
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.body().unwrap()).collect()
}

fn handle(message: &Message) -> String {
    message.receipt_handle().unwrap().to_owned()
}

/// The action must have ended with the modelled error that `is` names.
fn refused<T, E>(result: Result<T, SdkError<E>>, is: fn(&E) -> bool)
where
    E: ProvideErrorMetadata + std::fmt::Debug,
{
    let error = result.err().expect("the request should have been refused");
    let service_error = error.as_service_error().unwrap_or_else(|| panic!("no answer: {error:?}"));
    assert!(is(service_error), "{service_error:?}");
}

/// The code of the error the action ended with, for errors that SQS does not model.
fn code<T, E: ProvideErrorMetadata>(result: Result<T, SdkError<E>>) -> String {
    let error = result.err().expect("the request should have been refused");
    error.code().expect("every error of SQS has a code").to_owned()
}

fn attribute(data_type: &str, value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder().data_type(data_type).string_value(value).build().unwrap()
}

fn entry(id: &str, body: &str) -> SendEntry {
    SendEntry::builder().id(id).message_body(body).build().unwrap()
}
