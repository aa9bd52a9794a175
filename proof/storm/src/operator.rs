//! An operator who looks into the dead-letter queues when it is calm again, and moves back what the queue alone gave up on.

use std::collections::BTreeMap;
use std::time::Duration;

use claimant_local::Error;
use claimant_local::cloud::Cloud;
use claimant_local::sqs::{Deletion, NewMessage};
use claimant_local::workload::Fate;

use crate::storm::Lane;

/// With so many good messages of one queue, one that aborts its process is moved back too: it must take none of them along.
const GOOD_PER_DEADLY: usize = 10;

/// What every dead letter has that a function sent.
const REFUSED_BY: &str = "claimant-message-id";

/// Messages looked at in one go: as many as a dead-letter queue can hold in the longest storm.
pub(crate) const DEAD_LETTERS_MAX: usize = 100_000;

/// Moves them back, once, as new messages, and counts them by function. Nothing but deadly messages kills after this, so that what
/// is good has to come through.
pub(crate) async fn redrive(cloud: &Cloud, lanes: &[Lane<'_>]) -> Result<BTreeMap<&'static str, u64>, Error> {
    let mut counts = BTreeMap::new();
    for lane in lanes.iter().filter(|lane| lane.target.is_redriven()) {
        let (mut good, mut deadly) = (Vec::new(), Vec::new());
        // What is not moved back is hidden for a while, and listed all the same.
        for letter in cloud.sqs().receive(lane.route.dead_letter_queue, DEAD_LETTERS_MAX, Duration::ZERO).await? {
            let piece = lane.plan.pieces.iter().find(|piece| piece.body == letter.body);
            match piece.map(|piece| piece.fate) {
                Some(Fate::Done) => good.push(letter),
                // Unless the function itself put it there, it has not been refused yet.
                Some(Fate::Refused) if !letter.message_attributes.contains_key(REFUSED_BY) => good.push(letter),
                Some(Fate::Deadly) => deadly.push(letter),
                Some(Fate::Refused | Fate::InDoubt) | None => {}
            }
        }
        let neighbours = good.len().div_ceil(GOOD_PER_DEADLY);
        // Each of them among the good ones, not all of them behind.
        let mut deadly = deadly.into_iter().take(neighbours);
        let moved = good.into_iter().enumerate().flat_map(|(i, letter)| {
            let neighbour = if i % GOOD_PER_DEADLY == 0 { deadly.next() } else { None };
            [neighbour, Some(letter)].into_iter().flatten()
        });
        for letter in moved {
            if cloud.sqs().delete(lane.route.dead_letter_queue, &letter.receipt_handle)? == Deletion::Deleted {
                cloud.sqs().send(lane.route.queue, NewMessage::new(&letter.body))?;
                *counts.entry(lane.target.function()).or_default() += 1;
            }
        }
    }
    Ok(counts)
}
