//! Queues of a target, and what they are called.

use claimant_aws::sqs::queue_arn;
use serde::Deserialize;

use crate::aws::name_of_arn;

/// What an ARN of a function begins with that says nothing of its account and Region.
pub(crate) const ANYWHERE: &str = "arn:aws:lambda:::";

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its logical id in the template, where that is known.
    #[serde(default)]
    pub logical_id: Option<String>,
    /// Its URL.
    pub url: String,
    /// The name of its dead-letter queue, where it is known and there is one.
    pub dead_letter_queue: Option<String>,
    /// Whether it is a dead-letter queue, whatever else names it as theirs.
    #[serde(default)]
    pub is_dead_letter_queue: bool,
    /// The URLs of the queues for what schedules could not send to it again, which functions that read it have made.
    #[serde(default)]
    pub unsent: Vec<String>,
}

impl Queue {
    /// Returns the queue at this URL; what a URL does not say is unknown.
    pub(crate) fn at(url: impl Into<String>) -> Self {
        let url = url.into();
        let name = name_of_arn(&url).to_owned();
        Self { name, logical_id: None, url, dead_letter_queue: None, is_dead_letter_queue: false, unsent: Vec::new() }
    }

    /// Returns whether this is its name, or its URL, with whichever of SQS's hosts for its Region. A host that is of no Region, such as a local
    /// cloud's, is that one alone.
    #[must_use]
    pub fn is_called(&self, called: &str) -> bool {
        let is_of_region = |arn: &String| arn.split(':').nth(3).is_some_and(|region| !region.is_empty());
        let is_it = |arn| queue_arn(&self.url, ANYWHERE) == Some(arn);
        let of_region = queue_arn(called, ANYWHERE).filter(is_of_region);
        self.name == called || self.url == called || of_region.is_some_and(is_it)
    }

    /// Returns whether this is its name in the template. A FIFO queue's may end in `.fifo`, too, as a local cloud names it.
    #[must_use]
    pub fn is_of(&self, in_template: &str) -> bool {
        let is_fifo = self.name.ends_with(".fifo");
        let stem = in_template.strip_suffix(".fifo").filter(|_| is_fifo);
        self.logical_id.as_deref() == Some(stem.unwrap_or(in_template))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stack's name, what CloudFormation puts behind a name, and a word of a name say nothing.
    #[test]
    fn a_queue_has_no_name_but_its_own_and_that_in_the_template() {
        for (called, is_called, is_of) in [
            ("shop-Orders-1A2B3C.fifo", true, false),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/shop-Orders-1A2B3C.fifo", true, false),
            ("https://eu-west-1.queue.amazonaws.com/123456789012/shop-Orders-1A2B3C.fifo", true, false),
            ("https://sqs.us-east-1.amazonaws.com/123456789012/shop-Orders-1A2B3C.fifo", false, false),
            ("https://sqs.eu-west-1.amazonaws.com/210987654321/shop-Orders-1A2B3C.fifo", false, false),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/Orders", false, false),
            ("Orders", false, true),
            ("Orders.fifo", false, true),
            ("shop", false, false),
            ("1A2B3C", false, false),
            ("1A2B3C.fifo", false, false),
            ("orders", false, false),
        ] {
            let url = "https://sqs.eu-west-1.amazonaws.com/123456789012/shop-Orders-1A2B3C.fifo";
            let queue = Queue { logical_id: Some("Orders".to_owned()), ..Queue::at(url) };
            assert_eq!((queue.is_called(called), queue.is_of(called)), (is_called, is_of), "{called}");
            assert!(!Queue::at(url).is_of(called), "{called}");
        }
        let standard = Queue { logical_id: Some("Orders".to_owned()), ..Queue::at("http://127.0.0.1:1/1/orders") };
        assert_eq!(["Orders", "Orders.fifo"].map(|called| standard.is_of(called)), [true, false]);
        // Another emulator has queues of its own, whose account and name are the same.
        let urls = ["http://127.0.0.1:1/1/orders", "http://127.0.0.1:2/1/orders", "http://localhost:1/1/orders"];
        assert_eq!(urls.map(|url| standard.is_called(url)), [true, false, false]);
    }
}
