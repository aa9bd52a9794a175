//! Cold starts: from exec to the first request for work, and how large the binary is.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use claimant_core::Error;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::time::timeout;

use crate::args::Cold;
use crate::field::aws_variables;
use crate::http::Message;

/// A function that asks for no work within this time does not start.
const START_MAX: Duration = Duration::from_secs(20);
/// What a function asks for work with.
const FIRST_REQUEST: &[u8] = b"GET /2018-06-01/runtime/invocation/next ";
/// Starts before the measured ones, so that the file is in memory for all of them.
const WARM_UPS: usize = 2;

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
        ("hello world of `lambda_runtime`", directory.join("cold-hello")),
        ("the function by hand, claimant's SDK features", directory.join("cold-by-hand")),
    ];
    if let Some(path) = &options.defaults {
        binaries.push(("the function by hand, the SDK's default features", path.clone()));
    }
    binaries
        .push(("the function with claimant (`functions/order-confirmation`)", directory.join("order-confirmation")));
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
    // Held until the end: a function that loses its runtime would complain.
    let _asked = asked.map_err(|_| Error::new(format!("{} asked for no work", path.display())))?.map_err(failed)?;
    let cpu = child.id().and_then(cpu_time);
    child.kill().await.map_err(failed)?;
    Ok((start, cpu))
}

/// Waits for the first request for work, and gives the connection that it came on.
async fn first_request(listener: &TcpListener) -> std::io::Result<BufReader<TcpStream>> {
    loop {
        let (stream, _) = listener.accept().await?;
        let mut stream = BufReader::new(stream);
        if Message::read(&mut stream).await?.is_some_and(|request| request.bytes.starts_with(FIRST_REQUEST)) {
            return Ok(stream);
        }
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
