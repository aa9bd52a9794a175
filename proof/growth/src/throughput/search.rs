//! The highest rate at which the queue stays empty: doubled until it does not, then halved in between.

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

/// Returns the rate to try after these, each with whether the queue stayed empty; `None` where the last good one is close to the
/// next bad one.
#[must_use]
pub fn next(tried: &[(u64, bool)]) -> Option<u64> {
    let good = tried.iter().filter(|(_, empty)| *empty).map(|(rate, _)| *rate).max();
    let bad = tried.iter().filter(|(_, empty)| !*empty).map(|(rate, _)| *rate).min();
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

/// Tries rates until the highest good one is known. A rate is bad where the queue has filled twice: once may be the machine.
pub(super) async fn highest(way: &mut Way, tried: &mut Vec<(u64, bool)>) -> Result<u64, Error> {
    while let Some(rate) = next(tried) {
        let empty = stays_empty(way, rate).await? || stays_empty(way, rate).await?;
        tried.push((rate, empty));
        println!("{rate} messages a second: the queue {}", if empty { "stays empty" } else { "fills" });
    }
    let good = tried.iter().filter(|(_, empty)| *empty).map(|(rate, _)| *rate).max();
    good.ok_or_else(|| Error::new("at no rate does the queue stay empty"))
}

/// Whether the queue is empty at this rate, most of the time. Where it is not, it is afterwards.
async fn stays_empty(way: &mut Way, rate: u64) -> Result<bool, Error> {
    let samples = way.watch(rate, STEP).await?;
    let counted = samples.get(SETTLING..).unwrap_or_default();
    let empty = counted.iter().filter(|sample| sample.is_empty_at(rate)).count() * 2 > counted.len();
    if !empty {
        way.send(0).await?;
        way.drain().await?;
    }
    Ok(empty)
}
