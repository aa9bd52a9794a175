//! The whole way on one machine, each part a process of its own: a producer, the local cloud with queue, mapping and runtime API,
//! the built function, and the embedded DynamoDB.
//!
//! | module | holds |
//! | --- | --- |
//! | `producer` | sends orders at a rate |
//! | `database` | the embedded DynamoDB with the template's tables, and what stands in them at the end |
//! | `way` | all of it, and what is seen of it each second |
//! | `search` | the highest rate that is sent and keeps the queue empty |
//! | `page` | what was measured, for the book |

mod database;
mod page;
mod producer;
mod search;
mod way;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use claimant_core::Error;
use claimant_local::sqs::Counters;

pub use database::serve;
pub use page::page;
pub use producer::produce;
pub use search::{Moment, Tried, judged, next};

use database::Found;
use way::{Sample, Way};

/// The function: one mail for each order, under a claim. A function with transactions would measure the embedded DynamoDB, which looks
/// at all tokens of the last ten minutes with each one.
pub(crate) const FUNCTION: &str = "order-confirmation";

/// How long the queue may take to drain at the end.
const DRAIN_MAX: Duration = Duration::from_secs(60);

/// How a run is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// For how long the rate is held.
    pub hold: Duration,
    /// The rate that is held; found where `None`.
    pub rate: Option<u64>,
    /// Batches at the same time.
    pub concurrency: u32,
    /// The directory with template.yaml.
    pub root: PathBuf,
    /// The directory with the functions' binaries.
    pub binaries: PathBuf,
    /// The program of the producer and of the database: this one.
    pub program: PathBuf,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The rates that were tried, each with what came of it.
    pub tried: Vec<(u64, Tried)>,
    /// Each second while the rate was held.
    pub(crate) samples: Vec<Sample>,
    /// Messages that the producer has had accepted, in all.
    pub(crate) sent: u64,
    /// What the queue says of them.
    pub(crate) queue: Counters,
    /// Messages in the dead-letter queue.
    pub(crate) dead: usize,
    /// What stands in the tables.
    pub(crate) found: Found,
    /// Mails that the mailbox was asked for.
    pub(crate) mails: u64,
    /// How often a process of the function ended before it should.
    pub(crate) crashes: u64,
}

impl Outcome {
    /// Returns what went wrong, a sentence each.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let Self { sent, queue, found, .. } = self;
        let wanted = [
            ("messages in the queue's books", queue.sent, *sent),
            ("messages deleted after they were reported done", queue.deleted, *sent),
            ("messages in the dead-letter queue", self.dead as u64, 0),
            ("mails", self.mails, *sent),
            ("orders with a completed record", found.completed, *sent),
            ("runs of handlers", found.attempts, *sent),
            ("records of no order that was sent, or of work that is not completed", found.strange, 0),
            ("ends of the function's processes", self.crashes, 0),
        ];
        let wrong = wanted.into_iter().filter(|(_, is, ought)| is != ought);
        wrong.map(|(what, is, ought)| format!("{what}: {is} instead of {ought}")).collect()
    }
}

/// Finds the highest rate, holds it, lets the queue drain, and looks at what became of every message.
///
/// # Errors
/// When something does not start, or ends before it should. What went wrong with messages is in the outcome.
pub async fn run(settings: &Settings) -> Result<Outcome, Error> {
    let mut way = Way::start(settings).await?;
    let mut tried = Vec::new();
    let rate = match settings.rate {
        Some(rate) => rate,
        None => search::highest(&mut way, &mut tried).await?,
    };
    let samples = way.hold(rate, settings.hold).await?;
    let sent = way.send(0).await?.sent;
    let since = Instant::now();
    while !way.is_drained()? && since.elapsed() < DRAIN_MAX {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (queue, dead) = way.books()?;
    let found = way.found(sent).await?;
    let (mails, crashes) = (way.mails(), way.crashes());
    way.stop().await;
    Ok(Outcome { tried, samples, sent, queue, dead, found, mails, crashes })
}
