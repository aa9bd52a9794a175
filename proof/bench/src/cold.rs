//! Cold starts: from exec to the first request for work, and how large the binary is.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use claimant_core::Error;
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::args::Cold;
use crate::process::aws_variables;

/// A function that asks for no work within this time does not start.
const START_MAX: Duration = Duration::from_secs(20);
/// What a function asks for work with.
const FIRST_REQUEST: &str = "/2018-06-01/runtime/invocation/next";
/// Starts before the measured ones, so that the file is in memory for all of them.
const WARM_UPS: usize = 2;

/// The smallest function, and the one with claimant.
pub(crate) const HELLO: &str = "hello world of `lambda_runtime`";
pub(crate) const CLAIMANT: &str = "the function with claimant (`functions/order-confirmation`)";

/// What a function costs to start.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) title: &'static str,
    pub(crate) bytes: u64,
    /// From exec to the first request, shortest first.
    pub(crate) starts: Vec<Duration>,
    /// The processor time until then, shortest first; empty where the system does not tell.
    pub(crate) cpus: Vec<Duration>,
}

impl Figures {
    /// The median start, if there was one.
    pub(crate) fn start(&self) -> Option<Duration> {
        self.starts.get(self.starts.len().checked_sub(1)? / 2).copied()
    }
}

/// Starts every function so often, in turns.
///
/// # Errors
/// When a binary is missing, or a function does not start.
pub(crate) async fn run(options: &Cold) -> Result<Vec<Figures>, Error> {
    let failed = |e: std::io::Error| Error::new("cold starts cannot be measured").caused_by(e);
    let mut functions = Vec::new();
    for (title, path) in binaries(options).map_err(failed)? {
        let bytes = path.metadata().map_err(|e| missing(&path).caused_by(e))?.len();
        functions.push((path, Figures { title, bytes, starts: Vec::new(), cpus: Vec::new() }));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    eprintln!("bench: cold starts");
    for round in 0..WARM_UPS + options.starts {
        for (path, figures) in &mut functions {
            let (start, cpu) = once(path, &listener).await?;
            if round >= WARM_UPS {
                figures.starts.push(start);
                figures.cpus.extend(cpu);
            }
        }
    }
    let sorted = functions.into_iter().map(|(_, mut figures)| {
        figures.starts.sort_unstable();
        figures.cpus.sort_unstable();
        figures
    });
    Ok(sorted.collect())
}

fn binaries(options: &Cold) -> std::io::Result<Vec<(&'static str, PathBuf)>> {
    let directory = match &options.binaries {
        Some(directory) => directory.clone(),
        None => std::env::current_exe()?.parent().map(Path::to_path_buf).unwrap_or_default(),
    };
    let mut binaries = vec![
        (HELLO, directory.join("cold-hello")),
        ("the function by hand, claimant's SDK features", directory.join("cold-by-hand")),
    ];
    if let Some(path) = &options.defaults {
        binaries.push(("the function by hand, the SDK's default features", path.clone()));
    }
    binaries.push((CLAIMANT, directory.join("order-confirmation")));
    Ok(binaries)
}

fn missing(path: &Path) -> Error {
    Error::new(format!("{} is not there: make bench builds it", path.display()))
}

/// One start, and the processor time that it took.
async fn once(path: &Path, listener: &TcpListener) -> Result<(Duration, Option<Duration>), Error> {
    let failed = |e: std::io::Error| Error::new(format!("{} did not start", path.display())).caused_by(e);
    let address = listener.local_addr().map_err(failed)?;
    let mut command = Command::new(path);
    command
        .env_clear()
        .envs(aws_variables("http://127.0.0.1:9"))
        .env("AWS_LAMBDA_RUNTIME_API", address.to_string())
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
        .env("AWS_LAMBDA_LOG_STREAM_NAME", "bench")
        .env("AWS_LAMBDA_LOG_GROUP_NAME", "bench")
        .env("CLAIMANT_TABLE", "orders")
        .env("SENDER_ADDRESS", "orders@example.com")
        .stdout(Stdio::null())
        .kill_on_drop(true);
    let since = Instant::now();
    let mut child = command.spawn().map_err(failed)?;
    let asked = timeout(START_MAX, first_request(listener)).await;
    let start = since.elapsed();
    asked.map_err(|_| Error::new(format!("{} asked for no work", path.display())))?.map_err(failed)?;
    let cpu = child.id().and_then(cpu_time);
    child.kill().await.map_err(failed)?;
    Ok((start, cpu))
}

/// Waits for the first request for work. It gets no answer, and its connection stays as long as the function: one that loses
/// its runtime would complain.
async fn first_request(listener: &TcpListener) -> std::io::Result<()> {
    let asked = Arc::new(Notify::new());
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            () = asked.notified() => return Ok(()),
        };
        let asked = Arc::clone(&asked);
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                if request.uri().path() == FIRST_REQUEST {
                    asked.notify_one();
                }
                std::future::pending::<Result<Response<Empty<Bytes>>, Infallible>>()
            });
            // OK to fail: the function is killed once it has asked.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
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
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_function_has_started_once_it_asks_for_work() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let asks = async {
            let mut connections = Vec::new();
            for path in ["/other", FIRST_REQUEST] {
                let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: local\r\n\r\n").as_bytes()).await.unwrap();
                connections.push(stream);
            }
            connections
        };
        let (asked, _connections) = tokio::join!(first_request(&listener), asks);
        asked.unwrap();
    }
}
