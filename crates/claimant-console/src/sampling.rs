//! Samples the source for the plot of the last minutes.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::console::Console;

/// Between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Samples until `stop` resolves, where the source is cheap to ask.
pub(crate) async fn sample(console: &Console, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    if !console.source().is_sampled() {
        return stop.await;
    }
    let mut ticks = interval_at(Instant::now(), SAMPLE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = &mut stop => return,
            _ = ticks.tick() => {}
        }
        // Without an answer there is no sample: the plot has a gap.
        if let Ok(overview) = console.source().overview().await {
            console.history().add(&overview);
        }
    }
}
