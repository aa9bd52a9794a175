//! How many messages the queues of a place hold.

use aws_sdk_sqs::types::QueueAttributeName as Name;
use claimant_core::Error;
use futures_util::future::join_all;

use crate::aws::failed;
use crate::place::Place;
use crate::queue::Queue;

/// Queues that are asked at once.
const REQUESTS: usize = 8;

/// How many messages a queue holds, as SQS counts them: about, and as of the last minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Those that a receive could hand out.
    pub visible: u64,
    /// Those received, and neither deleted nor visible again.
    pub in_flight: u64,
    /// Those sent with a delay that has not passed.
    pub delayed: u64,
}

impl Place {
    /// Returns how many messages each of its [`queues`](Self::queues) holds, in their order: one request for each, eight at a time. An
    /// error is that of one queue: it is gone, the permission `sqs:GetQueueAttributes` is missing, or no answer came.
    pub async fn depths(&self) -> Vec<Result<Depth, Error>> {
        let (sqs, mut depths) = (self.sqs(), Vec::new());
        for some in self.queues.chunks(REQUESTS) {
            depths.extend(join_all(some.iter().map(|queue| depth(&sqs, queue))).await);
        }
        depths
    }
}

async fn depth(sqs: &aws_sdk_sqs::Client, queue: &Queue) -> Result<Depth, Error> {
    let numbers = [
        Name::ApproximateNumberOfMessages,
        Name::ApproximateNumberOfMessagesNotVisible,
        Name::ApproximateNumberOfMessagesDelayed,
    ];
    let request = sqs.get_queue_attributes().queue_url(&queue.url).set_attribute_names(Some(numbers.to_vec()));
    let what = format!("the messages of {} cannot be counted", queue.name);
    let answer = request.send().await.map_err(|e| failed(&what, "sqs:GetQueueAttributes", &e))?;
    let [visible, in_flight, delayed] = numbers.map(|name| {
        let attributes = answer.attributes();
        attributes.and_then(|attributes| attributes.get(&name)?.parse().ok()).unwrap_or_default()
    });
    Ok(Depth { visible, in_flight, delayed })
}
