//! What queues are that were named by their URLs alone: dead-letter queues, or such as have one.

use claimant_core::error::Chain;
use futures_util::future::join_all;

use super::queue::DeadLetterQueue;
use crate::aws::is_same_queue;
use crate::target::{Place, Queue, sibling};

/// Asks SQS of each queue of a place that was named by its URL alone whether it is a dead-letter queue, or has one, which is then in the
/// place, too: two requests for each. Of a local cloud and of a stack that is known. Where SQS does not say it, that is
/// [left out](Place::left_out), with a word of why.
pub async fn find_dead_letter_queues(place: &mut Place) {
    if place.is_local() || !place.functions.is_empty() {
        return;
    }
    let sqs = place.sqs();
    let asked = join_all(place.queues.iter().map(|queue| DeadLetterQueue::open(sqs.clone(), &queue.url))).await;
    let mut found = Vec::new();
    for (queue, asked) in place.queues.iter_mut().zip(asked) {
        match asked {
            Ok(dead) if dead.is_known() => queue.is_dead_letter_queue = true,
            Ok(of) => {
                queue.dead_letter_queue = of.moves_on_to().map(str::to_owned);
                found.extend(of.moves_on_to().map(|name| Queue::at(sibling(&queue.url, name))));
            }
            Err(error) => place.left_out.push(format!(
                "whether {} is a dead-letter queue, or has one, is not known: {}",
                queue.name,
                Chain(&error)
            )),
        }
    }
    for dead in found {
        if !place.queues.iter().any(|queue| is_same_queue(&queue.url, &dead.url)) {
            place.queues.push(dead);
        }
    }
}
