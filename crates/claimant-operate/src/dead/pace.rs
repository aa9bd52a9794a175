//! How many messages a second.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The most messages a second that can be asked for.
pub const RATE_MAX_PER_S: u32 = 10_000;

/// Spreads messages over time. The first go at once.
pub(super) struct Pace {
    per_s: Option<u32>,
    next: Instant,
}

impl Pace {
    /// Without a rate, nothing waits.
    pub(super) fn new(per_s: Option<u32>) -> Self {
        Self { per_s: per_s.map(|rate| rate.clamp(1, RATE_MAX_PER_S)), next: Instant::now() }
    }

    /// Returns how many messages may go in one request: no more than in a second.
    pub(super) fn batch(&self, max: usize) -> usize {
        self.per_s.map_or(max, |rate| max.min(usize::try_from(rate).unwrap_or(max)))
    }

    /// Waits until so many messages may go.
    pub(super) async fn turn(&mut self, messages: usize) {
        let Some(rate) = self.per_s else { return };
        sleep_until(self.next).await;
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        // What was not used is lost: a pause is not made up for by a burst.
        self.next = self.next.max(Instant::now()) + Duration::from_secs(1).saturating_mul(messages) / rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn messages_keep_to_the_rate() {
        let start = Instant::now();
        let mut pace = Pace::new(Some(5));
        assert_eq!((pace.batch(10), Pace::new(None).batch(10), Pace::new(Some(50)).batch(10)), (5, 10, 10));
        for _ in 0..4 {
            pace.turn(5).await;
        }
        assert_eq!(start.elapsed().as_secs(), 3);
        let start = Instant::now();
        Pace::new(None).turn(1_000_000).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
