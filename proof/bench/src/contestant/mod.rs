//! The Rust contestants, each a process of its own: `claimant-bench contestant NAME`.
//!
//! The protocol, which the peers in `peers/` speak too: after a line that says what is measured, in which version, one
//! line of JSON comes in for each batch, a [`Task`], and one [`Answer`] goes out. Lines of an answer start with
//! [`MARK`](crate::process::MARK), so that a contestant may log what it likes. Reading the event is not part of the measurement, as it is
//! the runtime's work on Lambda; decoding the bodies is.
//!
//! A message whose body has the field `told` is for [`crate::correctness`]: its handler says that it has begun, and ends as
//! the file of that name in the worker's directory says (`told.rs`).

mod by_hand;
mod told;
mod with_claimant;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use claimant_core::Error;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::process::{cpu_time, say};
use by_hand::ByHand;
use told::handle;
pub(crate) use told::{COMPLETE, FAIL, TOLD_VARIABLE};
use with_claimant::WithClaimant;

/// The variable that names a contestant's table.
pub(crate) const TABLE_VARIABLE: &str = "CLAIMANT_BENCH_TABLE";
/// The variable that says what the key is made of, if it is not the order's id alone.
pub(crate) const KEY_VARIABLE: &str = "CLAIMANT_BENCH_KEY";
/// Its value for the order's id and its line, as JMESPath has it.
pub(crate) const TWO_FIELDS: &str = "[order_id, line]";
/// The time that Lambda gives at most, which every measured invocation has.
pub(crate) const REMAINING_MS: u64 = 900_000;

/// One batch to do.
#[derive(Debug, Deserialize)]
struct Task {
    concurrency: usize,
    /// What is left of the invocation.
    remaining_ms: u64,
    event: SqsEvent,
}

/// What a contestant says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// It can begin; what is measured, in which version.
    Ready {
        /// The versions.
        ready: String,
    },
    /// A handler that is told what to do has begun.
    Began {
        /// Its message's name.
        began: String,
    },
    /// A batch is done.
    Done {
        /// From the call of the handler to its return.
        wall_ns: u64,
        /// The processor time of the whole process in between.
        cpu_ns: u64,
        /// How many handlers ran.
        ran: usize,
        /// The ids of the messages that were reported failed.
        failed: Vec<String>,
    },
}

/// How many handlers have run in this batch.
static RAN: AtomicUsize = AtomicUsize::new(0);

/// The body of a message.
#[derive(Debug, Deserialize)]
struct Purchase {
    order_id: String,
    line: Option<u32>,
    /// The name by which the handler is told what to do.
    told: Option<String>,
}

/// Whether the key is made of two fields.
fn two_fields() -> bool {
    std::env::var(KEY_VARIABLE).is_ok_and(|key| key == TWO_FIELDS)
}

impl Purchase {
    fn two_field_key(&self) -> String {
        format!("{}/{}", self.order_id, self.line.unwrap_or_default())
    }
}

enum Contestant {
    Claimant(Box<WithClaimant>),
    ByHand { all: ByHand, joined: bool },
}

impl Contestant {
    async fn new(name: &str) -> Result<Self, Error> {
        let table = std::env::var(TABLE_VARIABLE)
            .map_err(|_| Error::new(format!("{TABLE_VARIABLE} is not set: contestants are started by `make bench`")))?;
        match name {
            "claimant" => Ok(Self::Claimant(Box::new(WithClaimant::new(table).await?))),
            "hand-serial" => Ok(Self::ByHand { all: ByHand::new(table).await?, joined: false }),
            "hand-join" => Ok(Self::ByHand { all: ByHand::new(table).await?, joined: true }),
            _ => Err(Error::new(format!("there is no contestant {name}"))),
        }
    }

    async fn invoke(&mut self, task: Task, deadline_ms: u64) -> Result<SqsBatchResponse, Error> {
        match self {
            Self::Claimant(service) => service.invoke(task.concurrency, task.event, deadline_ms).await,
            Self::ByHand { all, joined } => {
                let lease = Duration::from_millis(task.remaining_ms);
                let concurrency = if *joined { Some(task.concurrency) } else { None };
                Ok(all.invoke(task.event, lease, concurrency).await)
            }
        }
    }

    /// Makes what the batch needs and a function makes before its first invocation.
    fn prepare(&mut self, task: &Task) -> Result<(), Error> {
        match self {
            Self::Claimant(service) => service.prepare(task.concurrency),
            Self::ByHand { .. } => Ok(()),
        }
    }
}

/// Does the batches that come in on standard input, until it ends.
///
/// # Errors
/// When there is no such contestant, or it is not spoken to as it should.
pub(crate) async fn run(name: &str) -> Result<(), Error> {
    // A function logs as JSON, at this level. Where the lines go is not measured, nor where metric records go: whoever reads them runs beside.
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).with_writer(std::io::sink).init();
    let mut contestant = Contestant::new(name).await?;
    let sdk = crate::locked::version("aws-sdk-dynamodb");
    let ready = format!("claimant {}, aws-sdk-dynamodb {sdk} (rustls with ring)", env!("CARGO_PKG_VERSION"));
    say(&Answer::Ready { ready })?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.map_err(broken)? {
        let task: Task = serde_json::from_str(&line).map_err(broken)?;
        drop(line);
        contestant.prepare(&task)?;
        say(&measure(&mut contestant, task).await?)?;
    }
    Ok(())
}

fn broken(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new("standard input broke").caused_by(cause)
}

async fn measure(contestant: &mut Contestant, task: Task) -> Result<Answer, Error> {
    use claimant_core::Clock as _;
    let deadline_ms = claimant_core::SystemClock.now().as_millis() + task.remaining_ms;
    RAN.store(0, Ordering::Relaxed);
    let (cpu, wall) = (cpu_time(), Instant::now());
    let response = contestant.invoke(task, deadline_ms).await?;
    let (wall, cpu) = (wall.elapsed(), cpu_time().saturating_sub(cpu));
    // OK because both are far below 500 years.
    let nanos = |d: Duration| d.as_nanos() as u64;
    Ok(Answer::Done {
        wall_ns: nanos(wall),
        cpu_ns: nanos(cpu),
        ran: RAN.load(Ordering::Relaxed),
        failed: response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect(),
    })
}
