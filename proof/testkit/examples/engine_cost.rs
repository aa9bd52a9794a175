//! Measures what the engine itself costs: batches of 10,000 messages of 500 bytes, on the memory store.
//!
//! ```text
//! cargo run --release -p claimant-testkit --example engine_cost -- [rounds]
//! ```
//!
//! Prints the CPU time for each message, and how far the first batch raised the process's peak of memory. With one round,
//! `/usr/bin/time -v` shows the whole peak. Linux only.

use std::fs;
use std::time::Duration;

use claimant_core::{Consumer, Context, Engine, HandlerError, InvocationTime, MemoryStore, Message, NoQueue};

const MESSAGES: usize = 10_000;
const BODY_BYTES: usize = 500;

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    customer: String,
    lines: Vec<Line>,
    note: String,
}

#[derive(serde::Deserialize)]
struct Line {
    article: String,
    quantity: u32,
}

async fn handle(order: Order, _: Context) -> Result<(), HandlerError> {
    let used = order.customer.len() + order.note.len() + order.lines.iter().map(|l| l.article.len()).sum::<usize>();
    let quantity: u32 = order.lines.iter().map(|line| line.quantity).sum();
    if used == 0 || quantity == 0 { Err(HandlerError::terminal("an order of nothing")) } else { Ok(()) }
}

fn message(number: usize) -> Message {
    let line = |article: usize| format!(r#"{{"article":"article-{article:06}","quantity":{}}}"#, article % 9 + 1);
    let lines: Vec<_> = (0..6).map(|i| line(number + i)).collect();
    let start = format!(
        r#"{{"order_id":"order-{number:08}","customer":"customer-{number:08}@example.com","lines":[{}],"note":""#,
        lines.join(",")
    );
    let note = "n".repeat(BODY_BYTES - start.len() - 2);
    let id = format!("{number:08}-0000-4000-8000-000000000000");
    Message::new(id, format!("{start}{note}\"}}")).expect("a short id")
}

/// The process's peak of resident memory, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The CPU time of the process, user and system, in milliseconds.
fn cpu_ms() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("Linux").split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<u64>().expect("a number");
    // Of 10 ms each on every Linux that this runs on.
    (ticks(11) + ticks(12)) * 10
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds = std::env::args().nth(1).map_or(1, |rounds| rounds.parse::<u64>().expect("a number of rounds"));
    let batch: Vec<Message> = (0..MESSAGES).map(message).collect();
    let (peak, mut first_peak, cpu) = (peak_kib(), 0, cpu_ms());
    for round in 0..rounds {
        let consumer = Consumer::new("orders", MemoryStore::new(), handle).key(|order| &order.order_id);
        let engine = Engine::with_defaults(consumer).expect("its settings are the defaults");
        let now = engine.now();
        let time = InvocationTime::new(now, now.plus(Duration::from_secs(600)), Duration::from_secs(1));
        let report = engine.process(&batch, time, &NoQueue).await;
        assert_eq!(report.counts().get("completed"), Some(&MESSAGES), "{:?}", report.counts());
        if round == 0 {
            first_peak = peak_kib();
        }
    }
    let cpu_us = (cpu_ms() - cpu) * 1_000 / (rounds * MESSAGES as u64);
    println!("{rounds} rounds of {MESSAGES} messages of {BODY_BYTES} bytes");
    println!("CPU time for each message: {cpu_us} us");
    println!("peak of memory: {first_peak} KiB after the first batch, {peak} KiB before it");
}
