//! Sends messages, and says what SQS confirmed.

use std::ops::ControlFlow;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry as Entry};
use claimant_aws::sqs::MESSAGE_MAX_BYTES;
use claimant_core::Error;
use serde_json::{Value, json};

use super::plan::{Batch, Planned};
use crate::send_request::{self, Unconfirmed};

/// Ids, and problems, that a report keeps; the others are only counted.
pub const SHOWN_MAX: usize = 100;

/// Messages of one request.
const REQUEST_MAX: usize = 10;

/// The most bytes of one request, less what attributes and names may take.
const REQUEST_MAX_BYTES: usize = MESSAGE_MAX_BYTES - (64 << 10);

/// Sends messages to a queue.
#[derive(Debug, Clone)]
pub struct Sender {
    client: Client,
    url: String,
}

/// What became of a sending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentReport {
    /// Messages that SQS confirmed.
    pub sent: usize,
    /// The ids of the first [`SHOWN_MAX`] of them, in the order of sending.
    pub ids: Vec<String>,
    /// Messages that SQS did not confirm: it refused them, or no answer came.
    pub failed: usize,
    /// Of these, those of which it is not known whether they were sent.
    pub unknown: usize,
    /// Why, of the first [`SHOWN_MAX`].
    pub problems: Vec<String>,
    /// Messages that were not tried, since a request before them was refused or had no answer, or the sending was stopped.
    pub left: usize,
}

impl SentReport {
    /// Returns it as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "sent": self.sent,
            "ids": self.ids,
            "failed": self.failed,
            "unknown": self.unknown,
            "problems": self.problems,
            "left": self.left,
        })
    }

    fn confirmed(&mut self, id: String) {
        self.sent += 1;
        if self.ids.len() < SHOWN_MAX {
            self.ids.push(id);
        }
    }

    fn problem(&mut self, messages: usize, unconfirmed: Unconfirmed) {
        self.failed += messages;
        if unconfirmed.may_have_arrived {
            self.unknown += messages;
        }
        if self.problems.len() < SHOWN_MAX {
            self.problems.push(unconfirmed.why);
        }
    }
}

impl Sender {
    /// Returns one for the queue at this URL.
    #[must_use]
    pub fn new(client: Client, url: impl Into<String>) -> Self {
        Self { client, url: url.into() }
    }

    /// Returns whether the queue keeps groups in order.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        self.url.ends_with(".fifo")
    }

    /// Sends the messages that a batch came to, one request after the other, so that they arrive in their order. After a request that was
    /// refused, or had no answer, nothing more is sent.
    ///
    /// # Errors
    /// When an attribute cannot be sent. What SQS refuses is in the report.
    pub async fn send(&self, batch: &Batch, messages: &[Planned]) -> Result<SentReport, Error> {
        self.send_while(batch, messages, &mut || ControlFlow::Continue(())).await
    }

    /// Sends as [`send`](Self::send) does; asks after each request but the last whether to go on.
    ///
    /// # Errors
    /// As there.
    pub async fn send_while(
        &self,
        batch: &Batch,
        messages: &[Planned],
        go_on: &mut (dyn FnMut() -> ControlFlow<()> + Send),
    ) -> Result<SentReport, Error> {
        let mut report = SentReport::default();
        let mut rest = messages;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(request(rest));
            let entries = now.iter().enumerate().map(|(number, message)| entry(batch, number, message));
            let entries = entries.collect::<Result<Vec<_>, _>>()?;
            rest = later;
            match send_request::send(&self.client, &self.url, entries).await {
                Ok(answers) => {
                    for answer in answers {
                        match answer {
                            Ok(id) => report.confirmed(id),
                            Err(unconfirmed) => report.problem(1, unconfirmed),
                        }
                    }
                }
                Err(unconfirmed) => {
                    report.problem(now.len(), unconfirmed);
                    report.left = rest.len();
                    break;
                }
            }
            if !rest.is_empty() && go_on().is_break() {
                report.left = rest.len();
                break;
            }
        }
        Ok(report)
    }
}

/// Returns how many of these messages the next request takes.
fn request(messages: &[Planned]) -> usize {
    let mut bytes = 0;
    let fits = messages.iter().take(REQUEST_MAX).take_while(|message| {
        bytes += message.body.len();
        bytes <= REQUEST_MAX_BYTES
    });
    fits.count().max(1)
}

fn entry(batch: &Batch, number: usize, message: &Planned) -> Result<Entry, Error> {
    let unsendable = |e| Error::invalid("the message cannot be sent").caused_by(e);
    let mut entry = Entry::builder()
        .id(number.to_string())
        .message_body(&message.body)
        .set_message_group_id(message.group.clone())
        .set_message_deduplication_id(message.deduplication_id.clone())
        .set_delay_seconds(i32::try_from(batch.delay_s).ok().filter(|seconds| *seconds > 0));
    for (name, value) in &batch.before {
        entry = entry.message_attributes(name, value.clone());
    }
    for (name, value) in &batch.attributes {
        let value = MessageAttributeValue::builder().data_type("String").string_value(value).build();
        entry = entry.message_attributes(name, value.map_err(unsendable)?);
    }
    entry.build().map_err(unsendable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_ten_messages_and_a_mebibyte_at_most() {
        let of = |bytes: usize| Planned { body: "x".repeat(bytes), group: None, deduplication_id: None };
        for (sizes, first) in
            [(vec![1; 25], 10), (vec![1; 3], 3), (vec![400 << 10; 5], 2), (vec![1 << 20, 1], 1), (vec![1, 1 << 20], 1)]
        {
            assert_eq!(request(&sizes.iter().map(|bytes| of(*bytes)).collect::<Vec<_>>()), first, "{sizes:?}");
        }
    }
}
