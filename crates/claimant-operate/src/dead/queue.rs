//! A dead-letter queue in SQS: what is asked of it, and what it answers.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::get_queue_attributes::GetQueueAttributesError;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry as ChangeEntry, DeleteMessageBatchRequestEntry as DeleteEntry, Message,
    MessageSystemAttributeName as System, QueueAttributeName as Name, SendMessageBatchRequestEntry as SendEntry,
};
use claimant_aws::sqs::{Fate, fate_of};
use claimant_core::Error;
use futures_util::future::join_all;
use serde_json::Value;

use super::depth::Depth;
use super::sources;
use crate::aws::{failed, is_refusal, is_same_queue, name_of_arn, queue_url};
use crate::send_request::{self, Sent, Unconfirmed};
use crate::target::Place;

/// Messages, and entries, of one request.
pub(super) const REQUEST_MAX: usize = 10;

/// Requests at once.
const REQUESTS_MAX: usize = 8;

/// Queues that are kept of those of which this one is the dead-letter queue.
const SOURCES_MAX: i32 = 1_000;

/// How long letters are hidden from others while they are read, in seconds. They are shown again at the end, and by SQS after this
/// if the reader died.
pub(super) const HIDE_S: i32 = 120;

/// A dead-letter queue.
#[derive(Debug, Clone)]
pub struct DeadLetterQueue {
    client: Client,
    url: String,
    sources: Vec<String>,
    /// Whether the place that it was opened in says that it is a dead-letter queue.
    is_named: bool,
    depth: Depth,
    /// The name of the queue that its own letters go to.
    moves_on_to: Option<String>,
    /// After how many receives SQS moves its messages on, if it has a dead-letter queue of its own.
    moves_on_after: Option<u32>,
    /// The SQS endpoint of the local cloud that it is in, which shows messages without a receive.
    looked_at: Option<String>,
    /// How many bytes of a letter's body are looked at there, if not all.
    body_max: Option<usize>,
}

impl DeadLetterQueue {
    /// Opens the queue at this URL: two requests, which read its attributes and the queues that it serves.
    ///
    /// # Errors
    /// When there is no such queue, a permission is missing (`sqs:GetQueueAttributes`, `sqs:ListDeadLetterSourceQueues`), or no
    /// answer comes.
    pub async fn open(client: Client, url: impl Into<String>) -> Result<Self, Error> {
        let url = url.into();
        let attributes = attributes(&client, &url).await?;
        let depth = Depth::of(&attributes);
        let policy = attributes.get(&Name::RedrivePolicy).and_then(|text| serde_json::from_str::<Value>(text).ok());
        let receives = policy.as_ref().map(|policy| &policy["maxReceiveCount"]);
        let target = policy.as_ref().and_then(|policy| policy["deadLetterTargetArn"].as_str());
        // SQS takes the number as a text too.
        let receives = receives.and_then(|n| n.as_u64().or_else(|| n.as_str()?.parse().ok()));
        let sources = client.list_dead_letter_source_queues().queue_url(&url).max_results(SOURCES_MAX).send().await;
        let sources = sources.map_err(|error| {
            let what = format!("the queues of the dead-letter queue {} cannot be listed", name_of_arn(&url));
            failed(&what, "sqs:ListDeadLetterSourceQueues", &error)
        })?;
        Ok(Self {
            client,
            url,
            sources: sources.queue_urls,
            is_named: false,
            depth,
            moves_on_to: target.map(|arn| name_of_arn(arn).to_owned()),
            moves_on_after: receives.and_then(|n| n.try_into().ok()),
            looked_at: None,
            body_max: None,
        })
    }

    /// Returns the name of the queue that its own letters go to, if it has one. A queue that has one, and is not
    /// [known](Self::is_known) for a dead-letter queue, is none.
    #[must_use]
    pub fn moves_on_to(&self) -> Option<&str> {
        self.moves_on_to.as_deref()
    }

    /// Opens the queue at this URL as [`open`](Self::open) does. It then also serves the queues whose functions copy there, which SQS does
    /// not know. In a local cloud, its letters are read without being received.
    ///
    /// # Errors
    /// As those of `open`.
    pub async fn open_in(place: &Place, url: impl Into<String>) -> Result<Self, Error> {
        let looked_at =
            place.endpoint("SQS").filter(|_| place.is_local()).map(|url| url.trim_end_matches('/').to_owned());
        let mut dead = Self { looked_at, ..Self::open(place.sqs(), url).await? };
        let mut is_sure = !dead.sources.is_empty();
        for source in sources::of_functions(place, &dead.url) {
            if !dead.sources.iter().chain([&dead.url]).any(|url| is_same_queue(url, &source.url)) {
                is_sure |= !source.is_guessed;
                dead.sources.push(source.url);
            }
        }
        // A guess beside others says that a letter may be another queue's. Alone, it is no place to send letters to.
        if !is_sure && dead.sources.len() == 1 {
            dead.sources.clear();
        }
        dead.sources.sort();
        dead.is_named = place.dead_letter_queues().iter().any(|queue| is_same_queue(&queue.url, &dead.url));
        Ok(dead)
    }

    /// Returns whether SQS, or the place that it was opened in, says that it is a dead-letter queue.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.is_named || !self.sources.is_empty()
    }

    /// Has letters that are looked at, as those of a local cloud are, come with so many bytes of their bodies at most. What is received has
    /// its whole body, as what is sent back and discarded has. A [`Selection`](super::Selection) by fields of bodies needs all of them.
    #[must_use]
    pub fn with_bodies_of(self, bytes: usize) -> Self {
        Self { body_max: Some(bytes), ..self }
    }

    /// Returns how many bytes of a body are looked at, if not all.
    pub(super) const fn body_max(&self) -> Option<usize> {
        self.body_max
    }

    /// Returns whether letters are read without being received.
    #[must_use]
    pub const fn is_only_looked_at(&self) -> bool {
        self.looked_at.is_some()
    }

    /// Returns the endpoint that shows messages without a receive.
    pub(super) fn looked_at(&self) -> Option<&str> {
        self.looked_at.as_deref()
    }

    /// Returns its URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        name_of_arn(&self.url)
    }

    /// Returns whether it keeps groups in order.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        is_fifo(&self.url)
    }

    /// Returns the URLs of the queues of which this is the dead-letter queue: 1,000 at most that SQS knows, and those that the place
    /// knows that it was opened in.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// Returns the names of these queues, in the same order.
    #[must_use]
    pub fn source_names(&self) -> Vec<&str> {
        self.sources.iter().map(|url| name_of_arn(url)).collect()
    }

    /// Returns how many messages it held when it was opened: about.
    #[must_use]
    pub const fn depth(&self) -> Depth {
        self.depth
    }

    /// Returns after how many receives SQS moves its messages on, if it has a dead-letter queue of its own. To read a letter is to
    /// receive it.
    #[must_use]
    pub const fn moves_on_after(&self) -> Option<u32> {
        self.moves_on_after
    }

    /// Returns how many messages it holds now: about.
    pub(super) async fn depth_now(&self) -> Result<Depth, Error> {
        Ok(Depth::of(&attributes(&self.client, &self.url).await?))
    }

    /// Receives messages and hides them, ten a request and up to 80 at once, waiting this long for the first.
    pub(super) async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<Message>, Error> {
        let mut requests = Vec::new();
        let mut room = max.min(REQUESTS_MAX * REQUEST_MAX);
        while room > 0 {
            let count = room.min(REQUEST_MAX);
            let request = self.client.receive_message().queue_url(&self.url);
            // Both fit: at most 10 messages, and at most 20 s.
            let request = request.max_number_of_messages(i32::try_from(count).unwrap_or(1));
            let request = request.wait_time_seconds(i32::try_from(wait.as_secs()).unwrap_or(0));
            let request = request.visibility_timeout(HIDE_S).message_system_attribute_names(System::All);
            requests.push(request.message_attribute_names("All").send());
            room -= count;
            if self.is_fifo() {
                // One after the other: a group is handed out to one reader at a time.
                break;
            }
        }
        let (mut messages, mut fault) = (Vec::new(), None);
        for answer in join_all(requests).await {
            match answer {
                Ok(answer) => messages.extend(answer.messages.unwrap_or_default()),
                Err(error) => {
                    let what = format!("the dead-letter queue {} cannot be read", self.name());
                    fault = Some(failed(&what, "sqs:ReceiveMessage", &error));
                }
            }
        }
        match fault {
            // What came is hidden, and must come to the caller, who shows it again.
            Some(fault) if messages.is_empty() => Err(fault),
            _ => Ok(messages),
        }
    }

    /// Shows messages again, by their receipt handles. What fails is shown by SQS, after [`HIDE_S`]; returns how many those are that no
    /// answer names. A message whose own entry fails is not hidden any more, or gone.
    pub(super) async fn show(&self, receipts: &[String]) -> u64 {
        let entry = |(number, receipt): (usize, &String)| {
            let entry = ChangeEntry::builder().id(number.to_string()).receipt_handle(receipt).visibility_timeout(0);
            entry.build().ok()
        };
        let mut failed = 0;
        for receipts in receipts.chunks(REQUESTS_MAX * REQUEST_MAX) {
            let shown = receipts.chunks(REQUEST_MAX).map(async |chunk| {
                let entries = chunk.iter().enumerate().filter_map(entry).collect();
                let request = self.client.change_message_visibility_batch().queue_url(&self.url);
                let answer = request.set_entries(Some(entries)).send().await;
                let named = answer.map_or(0, |answer| answer.successful().len() + answer.failed().len());
                chunk.len().saturating_sub(named) as u64
            });
            failed += join_all(shown).await.into_iter().sum::<u64>();
        }
        failed
    }

    /// Deletes messages, each by its id and receipt handle, ten a request; returns the ids of those of which SQS did not confirm
    /// it, with what is known of each: that it was not deleted and why, or that this is not known; and why a whole request was refused.
    pub(super) async fn delete(&self, messages: &[(String, String)]) -> (Vec<(String, String)>, Option<Error>) {
        let not_known = format!("it is not known whether {} deleted it", self.name());
        let (mut left, mut refused) = (Vec::new(), None);
        for chunk in messages.chunks(REQUEST_MAX) {
            let entry = |(number, (_, receipt)): (usize, &(String, String))| {
                DeleteEntry::builder().id(number.to_string()).receipt_handle(receipt).build().ok()
            };
            let entries = chunk.iter().enumerate().filter_map(entry).collect();
            let request = self.client.delete_message_batch().queue_url(&self.url).set_entries(Some(entries));
            match request.send().await {
                Ok(answer) => {
                    let confirmed: Vec<_> = answer.successful().iter().map(|done| done.id()).collect();
                    let why: HashMap<_, _> = answer.failed().iter().map(|fault| (fault.id(), fault.code())).collect();
                    for (number, (id, _)) in chunk.iter().enumerate() {
                        let number = number.to_string();
                        if !confirmed.contains(&number.as_str()) {
                            let refused = why.get(number.as_str()).map(|code| format!("it was not deleted: {code}"));
                            left.push((id.clone(), refused.unwrap_or_else(|| not_known.clone())));
                        }
                    }
                }
                Err(error) => {
                    // Its client tries again: a throttle says nothing of the tries before it.
                    let is_known = fate_of(&error) == Fate::Refused;
                    let what = if is_known { "it was not deleted" } else { &*not_known };
                    let why = failed(what, "sqs:DeleteMessage", &error);
                    let said = why.to_string();
                    left.extend(chunk.iter().map(|(id, _)| (id.clone(), said.clone())));
                    refused = refused.or(is_refusal(&why).then_some(why));
                }
            }
        }
        (left, refused)
    }

    /// Sends one request to a queue, as [`send_request::send`] does.
    pub(super) async fn send(&self, url: &str, entries: Vec<SendEntry>) -> Result<Vec<Sent>, Unconfirmed> {
        send_request::send(&self.client, url, entries).await
    }

    /// Returns the URL of the queue with this ARN.
    pub(super) async fn url_of(&self, arn: &str) -> Result<String, Error> {
        match sources::with_arn(&self.sources, arn) {
            Some(url) => Ok(url.clone()),
            None => queue_url(&self.client, arn).await,
        }
    }

    /// Checks that there is a queue at this URL, other than this one.
    ///
    /// # Errors
    /// When there is none, or it cannot be asked.
    pub(super) async fn check_destination(&self, url: &str) -> Result<(), Error> {
        if is_same_queue(url, &self.url) {
            return Err(Error::invalid(format!("{} cannot be its own destination", self.name())));
        }
        attributes(&self.client, url).await.map(drop)
    }
}

/// Returns whether the queue at this URL keeps groups in order.
pub(super) fn is_fifo(url: &str) -> bool {
    url.ends_with(".fifo")
}

async fn attributes(client: &Client, url: &str) -> Result<HashMap<Name, String>, Error> {
    let answer = client.get_queue_attributes().queue_url(url).attribute_names(Name::All).send().await;
    let attributes = answer.map_err(|error| {
        if error.as_service_error().is_some_and(GetQueueAttributesError::is_queue_does_not_exist) {
            return Error::invalid(format!("there is no queue at {url}"));
        }
        failed(&format!("the queue {} cannot be asked", name_of_arn(url)), "sqs:GetQueueAttributes", &error)
    })?;
    Ok(attributes.attributes.unwrap_or_default())
}
