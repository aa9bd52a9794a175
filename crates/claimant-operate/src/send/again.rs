//! Messages that were sent before.

use std::collections::BTreeMap;

use aws_sdk_sqs::types::MessageAttributeValue;
use claimant_core::Error;
use serde::Deserialize;

use crate::attribute::of_producer;
use crate::dead::{Request, is_no_message, is_request};
use crate::http;
use crate::place::Place;
use crate::queue::Queue;

/// A message that was sent before, as it was then. `Debug` shows no body.
#[derive(Clone, Deserialize)]
pub struct SentBefore {
    /// The queue that it was sent to.
    pub queue: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// Its body, in the envelope that it came in.
    pub body: String,
    /// The attributes that its producer gave it.
    #[serde(default, deserialize_with = "of_producer")]
    pub attributes: BTreeMap<String, MessageAttributeValue>,
}

impl std::fmt::Debug for SentBefore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentBefore").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl SentBefore {
    /// Asks a local cloud for a message, by its id.
    ///
    /// # Errors
    /// When there is none, its body is no longer kept, or it is no local cloud, which alone keeps bodies.
    pub async fn of(place: &Place, id: &str) -> Result<Self, Error> {
        let control = place.control.as_deref().ok_or_else(|| {
            Error::invalid(format!("{} cannot tell what was sent: only a local cloud keeps it", place.name))
        })?;
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(Error::invalid("a message id has letters, digits and hyphens only"));
        }
        let answer = http::send("GET", &format!("{control}/_claimant/messages/{id}"), Vec::new()).await?;
        serde_json::from_slice(&answer)
            .map_err(|e| Error::new(format!("{control} is no control endpoint of a local cloud")).caused_by(e))
    }

    /// Checks that it can be sent as it was.
    ///
    /// # Errors
    /// When it is the request of a schedule that could not send its message.
    pub fn check_message(&self, place: &Place) -> Result<(), Error> {
        let own = self.queue.as_deref().and_then(|name| place.queue(name));
        // Its queue may have had no room for its attributes.
        let is_left = || own.is_some_and(|own| own.is_dead_letter_queue) && Request::read(&self.body).is_some();
        if is_request(&self.attributes, &self.body) || is_left() { Err(is_no_message()) } else { Ok(()) }
    }

    /// Returns the queue that it is sent to again: its own, or the only one that its dead-letter queue serves.
    ///
    /// # Errors
    /// When that is not known.
    pub fn queue<'p>(&self, place: &'p Place) -> Result<&'p Queue, Error> {
        let unknown = || Error::invalid("the queue of the message is not known: say which queue is meant");
        let own = place.queue(self.queue.as_deref().ok_or_else(unknown)?).ok_or_else(unknown)?;
        let served = |queue: &&Queue| place.dead_letter_queues_of(queue).contains(&own.name.as_str());
        let served: Vec<_> = place.queues.iter().filter(served).collect();
        match served.as_slice() {
            [] => Ok(own),
            [only] => Ok(only),
            _ => Err(Error::invalid(format!(
                "{} is the dead-letter queue of several queues: say which one is meant",
                own.name
            ))),
        }
    }
}
