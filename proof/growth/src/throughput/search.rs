//! The highest rate that is sent and at which the queue stays empty: doubled until it does not, then halved in between.

use std::time::Duration;

use claimant_core::Error;

use super::way::Way;

/// The first rate, in messages a second.
const FIRST: u64 = 200;
/// No rate is tried beyond this.
const MOST: u64 = 50_000;
/// Two rates that are closer than this are the same.
const CLOSE: f64 = 1.1;
/// For how long a rate is tried.
const STEP: Duration = Duration::from_secs(6);
/// Of that, what does not count: the queue's backlog settles.
const SETTLING: usize = 2;

/// A queue is empty where what waits is less than what comes in a quarter of a second.
const WAITING_PER_SECOND: u64 = 4;
/// Of a rate, as much has to have been sent.
const SENT_LEAST: f64 = 0.95;

/// What came of a rate that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// It was sent, and the queue stayed empty.
    Held,
    /// The queue filled.
    Filled,
    /// Less was sent: the producer, or the queue itself, is too slow for it, and that the queue stayed empty says nothing.
    NotSent,
}

/// What is seen of the queue at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Since the rate is watched.
    pub at: Duration,
    /// Messages that the queue has accepted so far.
    pub sent: u64,
    /// Messages that wait in it.
    pub waiting: usize,
}

/// Returns what came of a rate, by what was seen each second: the queue is empty most of the time, and as much as that is sent.
#[must_use]
pub fn judged(rate: u64, seen: &[Moment]) -> Tried {
    let empty = seen.iter().filter(|moment| moment.waiting as u64 <= rate / WAITING_PER_SECOND).count();
    let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return Tried::NotSent };
    let due = rate as f64 * (last.at - first.at).as_secs_f64();
    match last.sent - first.sent {
        _ if empty * 2 <= seen.len() => Tried::Filled,
        sent if (sent as f64) < due * SENT_LEAST => Tried::NotSent,
        _ => Tried::Held,
    }
}

/// Returns the rate to try after these; `None` where the last good one is close to the next bad one.
#[must_use]
pub fn next(tried: &[(u64, Tried)]) -> Option<u64> {
    let good = highest_held(tried);
    let bad = tried.iter().filter(|(_, came)| *came != Tried::Held).map(|(rate, _)| *rate).min();
    let next = match (good, bad) {
        (None, None) => FIRST,
        (Some(good), None) => (2 * good).min(MOST),
        (None, Some(bad)) => bad / 2,
        (Some(good), Some(bad)) if bad as f64 <= good as f64 * CLOSE => return None,
        // By ratio: a few steps do for any rate.
        (Some(good), Some(bad)) => (good as f64 * bad as f64).sqrt() as u64,
    };
    ((1..=MOST).contains(&next) && Some(next) != good).then_some(next)
}

fn highest_held(tried: &[(u64, Tried)]) -> Option<u64> {
    tried.iter().filter(|(_, came)| *came == Tried::Held).map(|(rate, _)| *rate).max()
}

/// Tries rates until the highest good one is known. A rate is bad where it was so twice: once may be the machine.
pub(super) async fn highest(way: &mut Way, tried: &mut Vec<(u64, Tried)>) -> Result<u64, Error> {
    while let Some(rate) = next(tried) {
        let mut came = once(way, rate).await?;
        if came != Tried::Held {
            came = once(way, rate).await?;
        }
        tried.push((rate, came));
        let what = match came {
            Tried::Held => "the queue stays empty",
            Tried::Filled => "the queue fills",
            Tried::NotSent => "so many are not sent",
        };
        println!("{rate} messages a second: {what}");
    }
    highest_held(tried).ok_or_else(|| Error::new("no rate is sent with the queue empty"))
}

/// Tries a rate once. Where the queue filled, it is empty afterwards.
async fn once(way: &mut Way, rate: u64) -> Result<Tried, Error> {
    let samples = way.watch(rate, STEP).await?;
    let counted = samples.get(SETTLING..).unwrap_or_default();
    let seen = counted.iter().map(|s| Moment { at: s.at, sent: s.queue.sent, waiting: s.visible });
    let came = judged(rate, &seen.collect::<Vec<_>>());
    if came == Tried::Filled {
        way.send(0).await?;
        way.drain().await?;
    }
    Ok(came)
}
