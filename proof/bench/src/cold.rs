//! Cold starts: from exec to the first request for work, and to the answer to the first message; and how large the binary is.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use claimant_core::Error;
use hyper::body::Bytes;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

use crate::args::Cold;
use crate::process::aws_variables;
use crate::runtime_api::{mailbox, reached};
use crate::store::Store;
use crate::workload::{self, Workload};

/// A function that is not there within this time does not start.
const START_MAX: Duration = Duration::from_secs(20);
/// Starts before the measured ones, so that the file is in memory for all of them.
const WARM_UPS: usize = 2;
const TABLE: &str = "orders";

/// The smallest function, the one that one would write, and the one with claimant.
pub(crate) const HELLO: &str = "hello world of `lambda_runtime`";
pub(crate) const BY_HAND: &str = "the function by hand, claimant's SDK features";
pub(crate) const CLAIMANT: &str = "the function with claimant (`functions/order-confirmation`)";

/// What a function costs to start.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) title: &'static str,
    pub(crate) bytes: u64,
    /// From exec to the first request for work.
    pub(crate) asked: Point,
    /// From exec to the answer to the first message, which waits from the beginning, as at a cold start on Lambda: what a function puts off
    /// until it has asked for work counts.
    pub(crate) answered: Point,
}

/// What it took to come to a point, in as many starts.
#[derive(Debug, Default)]
pub(crate) struct Point {
    /// Shortest first.
    pub(crate) times: Vec<Duration>,
    /// The processor time until then, shortest first; empty where the system does not tell.
    pub(crate) cpus: Vec<Duration>,
}

impl Point {
    /// The median time, if there was one.
    pub(crate) fn median(&self) -> Option<Duration> {
        self.times.get(self.times.len().checked_sub(1)? / 2).copied()
    }

    fn add(&mut self, (time, cpu): (Duration, Option<Duration>)) {
        self.times.push(time);
        self.cpus.extend(cpu);
        self.times.sort_unstable();
        self.cpus.sort_unstable();
    }
}

/// What functions are started in.
struct Lab {
    store: Store,
    mailbox: String,
}

/// Starts every function so often to each point, in turns.
///
/// # Errors
/// When a binary is missing, or a function does not start, or does not do its first message.
pub(crate) async fn run(options: &Cold) -> Result<Vec<Figures>, Error> {
    let failed = |e: std::io::Error| Error::new("cold starts cannot be measured").caused_by(e);
    let mut functions = Vec::new();
    for (title, path) in binaries(options).map_err(failed)? {
        let bytes = path.metadata().map_err(|e| missing(&path).caused_by(e))?.len();
        let (asked, answered) = (Point::default(), Point::default());
        functions.push((path, Figures { title, bytes, asked, answered }));
    }
    let lab = Lab { store: Store::start(&[TABLE]).await?, mailbox: mailbox().await.map_err(failed)? };
    eprintln!("bench: cold starts");
    let mut orders = 0;
    for round in 0..WARM_UPS + options.starts {
        for (path, figures) in &mut functions {
            orders += 1;
            let event = workload::event(Workload::Fresh, orders, orders, 1).to_string();
            let asked = lab.start(path, None).await?;
            let answered = lab.start(path, Some(event.into())).await?;
            if round >= WARM_UPS {
                figures.asked.add(asked);
                figures.answered.add(answered);
            }
        }
    }
    Ok(functions.into_iter().map(|(_, figures)| figures).collect())
}

fn binaries(options: &Cold) -> std::io::Result<Vec<(&'static str, PathBuf)>> {
    let directory = match &options.binaries {
        Some(directory) => directory.clone(),
        None => std::env::current_exe()?.parent().map(Path::to_path_buf).unwrap_or_default(),
    };
    let mut binaries = vec![(HELLO, options.cold.join("cold-hello")), (BY_HAND, options.cold.join("cold-by-hand"))];
    let defaults = options.cold.join("cold-defaults");
    if defaults.exists() {
        binaries.push(("the function by hand, the SDK's default features", defaults));
    }
    binaries.push((CLAIMANT, directory.join("order-confirmation")));
    Ok(binaries)
}

fn missing(path: &Path) -> Error {
    Error::new(format!("{} is not there: make bench builds it", path.display()))
}

impl Lab {
    /// One start up to the first request for work, or, with an event, up to the answer to it; and the processor time that it took.
    async fn start(&self, path: &Path, event: Option<Bytes>) -> Result<(Duration, Option<Duration>), Error> {
        let failed = |e: std::io::Error| Error::new(format!("{} did not start", path.display())).caused_by(e);
        // One for each start: the last function may have asked once more before it was ended.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut command = Command::new(path);
        command
            .env_clear()
            .envs(aws_variables(&self.store.endpoint()))
            .env("AWS_ENDPOINT_URL_SESV2", &self.mailbox)
            .env("AWS_LAMBDA_RUNTIME_API", address.to_string())
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "bench")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "bench")
            .env("CLAIMANT_TABLE", TABLE)
            .env("SENDER_ADDRESS", "orders@example.com")
            .stdout(Stdio::null())
            .kill_on_drop(true);
        let is_answer = event.is_some();
        let since = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        let came = timeout(START_MAX, reached(&listener, event)).await;
        let time = since.elapsed();
        let silent = || Error::new(format!("{} asked for no work, or gave no answer", path.display()));
        let answer = came.map_err(|_| silent())?.map_err(|e| silent().caused_by(e))?;
        let cpu = child.id().and_then(cpu_time);
        child.kill().await.map_err(failed)?;
        if is_answer && !is_done(&answer) {
            return Err(Error::new(format!("{} did not do its first message", path.display())));
        }
        Ok((time, cpu))
    }
}

/// Whether the answer reports no failure. The hello world's has no such list.
fn is_done(answer: &[u8]) -> bool {
    let answer: Result<Value, _> = serde_json::from_slice(answer);
    answer.is_ok_and(|answer| answer["batchItemFailures"].as_array().is_none_or(Vec::is_empty))
}

/// The processor time of a process's threads so far, where Linux tells it.
fn cpu_time(process: u32) -> Option<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let nanos = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(nanos.sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_message_that_failed_is_no_answer() {
        for (answer, done) in [
            (r#"{"batchItemFailures":[]}"#, true),
            (r#"{"message":"Hello, world!"}"#, true),
            (r#"{"batchItemFailures":[{"itemIdentifier":"m"}]}"#, false),
            ("", false),
        ] {
            assert_eq!(is_done(answer.as_bytes()), done, "{answer}");
        }
    }
}
