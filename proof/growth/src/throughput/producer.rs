//! The producer's process: sends orders at the rate that it is given, until it is given another.

use std::time::Duration;

use claimant_bench::process::say;
use claimant_core::{Error, Key};
use claimant_producer::{Outgoing, Producer};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The variable with the queue's URL.
pub(super) const QUEUE_VARIABLE: &str = "GROWTH_QUEUE_URL";
/// How often what is due is sent.
const TICK: Duration = Duration::from_millis(20);
/// What is sent at once, at most; what is due beyond that waits, and is not made up for where it is more than a second's.
const AT_ONCE_MAX: u64 = 200;

/// What the producer is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pace {
    /// Messages a second from now on.
    pub(super) rate: u64,
}

/// What the producer has done.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Done {
    /// Messages that SQS has accepted.
    pub(super) sent: u64,
}

/// Returns the id of the order with this number.
pub(super) fn order_id(number: u64) -> String {
    format!("ord-{number:09}")
}

/// Sends what it is told on standard input, until that ends.
///
/// # Errors
/// When its queue cannot be sent to, or it is not spoken to as it should.
#[tokio::main]
pub async fn produce() -> Result<(), Error> {
    let producer = Producer::from_env(QUEUE_VARIABLE).await?;
    let broken = |e: std::io::Error| Error::new("standard input broke").caused_by(e);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut rate, mut sent, mut due, mut last) = (0, 0, 0.0, Instant::now());
    loop {
        tokio::select! {
            biased;
            // Cancel safe.
            line = lines.next_line() => {
                let Some(line) = line.map_err(broken)? else { return Ok(()) };
                let pace: Pace = serde_json::from_str(&line).map_err(|e| Error::new("a task is no JSON").caused_by(e))?;
                rate = pace.rate;
                say(&Done { sent })?;
            }
            _ = ticks.tick() => {}
        }
        let now = Instant::now();
        due = (due + now.duration_since(last).as_secs_f64() * rate as f64).min(rate as f64);
        last = now;
        // OK because it is not negative.
        let count = (due as u64).min(AT_ONCE_MAX);
        if count == 0 {
            continue;
        }
        let orders = (sent..sent + count).map(order).collect::<Result<Vec<_>, _>>()?;
        for result in producer.send_all(orders).await {
            result.map_err(|e| Error::new("a message was not sent").caused_by(e))?;
        }
        sent += count;
        due -= count as f64;
    }
}

fn order(number: u64) -> Result<Outgoing, Error> {
    let id = order_id(number);
    let body = json!({
        "order_id": id,
        "customer_email": format!("ada-{number}@example.com"),
        "items": [{ "sku": "tea", "quantity": 2, "unit_price_cents": 1_250 }],
        "currency": "EUR",
    });
    Ok(Outgoing::new(Key::new(id).map_err(Error::from)?, body.to_string()))
}
