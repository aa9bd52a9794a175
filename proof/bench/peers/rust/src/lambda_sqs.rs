//! `lambda_sqs`, put together as its documentation shows: a vector of payloads, and one result for the whole batch.
//!
//! One line of JSON in, one out, for each batch: see `proof/bench/src/contestant/mod.rs`.

use std::io::BufRead as _;
use std::path::Path;
use std::time::{Duration, Instant};

use lambda_sqs::{Error, SqsEvent};
use serde::Deserialize;
use serde_json::{Value, json};

/// The lock file has each crate in one version.
const LOCK: &str = include_str!("../Cargo.lock");
const LOOK: Duration = Duration::from_millis(5);

/// The crate wants a `Default` of every payload: it is what a body that cannot be read becomes.
#[derive(Debug, Default, Deserialize)]
struct Purchase {
    told: Option<String>,
}

/// Says that the handler has begun, and blocks until it is told how it ends: see `proof/bench/src/contestant/told.rs`.
fn follow(name: &str) -> Result<(), Error> {
    say(&json!({ "began": name }));
    let file = Path::new(&std::env::var_os("CLAIMANT_BENCH_TOLD").unwrap_or_default()).join(name);
    loop {
        match std::fs::read_to_string(&file).unwrap_or_default().as_str() {
            "complete" => return Ok(()),
            "fail" => return Err("the handler was told to fail".into()),
            _ => std::thread::sleep(LOOK),
        }
    }
}

async fn handler(event: SqsEvent, ran: &mut usize) -> Result<(), Error> {
    let purchases: Vec<Purchase> = event.into_t();
    for purchase in purchases {
        *ran += 1;
        if let Some(name) = &purchase.told {
            follow(name)?;
        }
    }
    Ok(())
}

fn say(answer: &Value) {
    println!("claimant-bench {answer}");
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let version = LOCK.split("name = \"lambda_sqs\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    say(&json!({ "ready": format!("lambda_sqs {}", version.unwrap_or("unknown")) }));
    for line in std::io::stdin().lock().lines() {
        let task: Value = serde_json::from_str(&line?)?;
        let event = &task["event"];
        let (mut ran, since) = (0, Instant::now());
        let ended = handler(serde_json::from_value(event.clone())?, &mut ran).await;
        // A function that fails has failed for all messages of its batch.
        let records = event["Records"].as_array().into_iter().flatten().filter(|_| ended.is_err());
        let failed: Vec<&Value> = records.map(|record| &record["messageId"]).collect();
        // Nothing of it is measured: what does not deduplicate has no figures.
        say(&json!({ "wall_ns": since.elapsed().as_nanos() as u64, "cpu_ns": 0, "ran": ran, "failed": failed }));
    }
    Ok(())
}
