//! All parts of the way, and what is seen of them each second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use claimant_bench::process::Measured;
use claimant_core::Error;
use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::sqs::Counters;
use claimant_local::workload::Route;
use tokio::process::Command;
use tokio::time::{MissedTickBehavior, interval};

use super::database::{Found, Look, Ready};
use super::producer::{Done, Pace, QUEUE_VARIABLE};
use super::{DRAIN_MAX, FUNCTION, Settings};
use crate::process::{cpu, resident_kb};

/// The parts, each a process, or several.
pub(super) const PARTS: [&str; 4] = ["producer", "queue, mapping, runtime API", "function", "database"];

/// The place of the function in [`PARTS`].
pub(super) const FUNCTION_PART: usize = 2;

/// No DynamoDB is asked by these processes.
const NOWHERE: &str = "http://127.0.0.1:9";

/// At the end each record is read: more than a million, after ten minutes.
const READ_MAX: Duration = Duration::from_secs(1_800);
/// Between two looks.
const SECOND: Duration = Duration::from_secs(1);
/// A rate that is held goes down by a twentieth when more waits than comes in a second, and then stays for so long at least.
const STAYS: Duration = Duration::from_secs(5);

/// What is seen at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// Since the rate is watched.
    pub(super) at: Duration,
    /// Messages a second that the producer was told.
    pub(super) rate: u64,
    /// What the queue has done so far.
    pub(super) queue: Counters,
    /// Messages that wait in the queue.
    pub(super) visible: usize,
    /// Of each part.
    pub(super) memory_kb: [u64; PARTS.len()],
    /// Of each part, so far.
    pub(super) cpu: [Duration; PARTS.len()],
}

/// Everything between a producer and a table.
pub(super) struct Way {
    cloud: Cloud,
    queue: String,
    dead_letter_queue: String,
    producer: Measured,
    database: Measured,
    /// Processor time of the function's processes, the ended ones too.
    function_cpu: BTreeMap<u32, Duration>,
}

fn failed(error: claimant_local::Error) -> Error {
    Error::new("the local cloud failed").caused_by(error)
}

impl Way {
    /// Starts all parts.
    pub(super) async fn start(settings: &Settings) -> Result<Self, Error> {
        let template = settings.root.join("template.yaml");
        let mut command = Command::new(&settings.program);
        command.arg("database").arg(&template);
        let database = Measured::start("the database".to_owned(), command, NOWHERE)?;
        let mut database = database.within(READ_MAX);
        let Ready { address } = database.answer().await?;
        let config = CloudConfig {
            parameters: [("MaximumConcurrency".to_owned(), settings.concurrency.to_string())].into(),
            only: vec![FUNCTION.to_owned()],
            dynamodb_url: Some(address),
            ..CloudConfig::new(template, &settings.binaries)
        };
        let cloud = Cloud::start(config).await.map_err(failed)?;
        let function = cloud.stack().functions.iter().find(|function| function.is_called(FUNCTION));
        let function = function.ok_or_else(|| Error::new(format!("the template has no function {FUNCTION}")))?;
        let route = Route::of(cloud.stack(), function).map_err(failed)?;
        let [queue, dead_letter_queue] = [route.queue, route.dead_letter_queue].map(str::to_owned);
        let mut command = Command::new(&settings.program);
        command.arg("producer").env("AWS_ENDPOINT_URL_SQS", &cloud.endpoints().sqs);
        command.env(QUEUE_VARIABLE, cloud.sqs().queue_url(&queue));
        let producer = Measured::start("the producer".to_owned(), command, NOWHERE)?;
        Ok(Self { cloud, queue, dead_letter_queue, producer, database, function_cpu: BTreeMap::new() })
    }

    /// Has the producer send at this rate from now on.
    pub(super) async fn send(&mut self, rate: u64) -> Result<Done, Error> {
        self.producer.ask(&Pace { rate }).await
    }

    /// Sends at this rate for so long, and looks each second.
    pub(super) async fn watch(&mut self, rate: u64, time: Duration) -> Result<Vec<Sample>, Error> {
        self.send_and_look(rate, time, |_| None).await
    }

    /// As [`watch`](Self::watch), at a rate that goes down where the queue fills.
    pub(super) async fn hold(&mut self, rate: u64, time: Duration) -> Result<Vec<Sample>, Error> {
        let mut changed = Duration::ZERO;
        self.send_and_look(rate, time, |sample| {
            let fills = sample.visible as u64 > sample.rate && sample.at >= changed + STAYS;
            fills.then(|| {
                changed = sample.at;
                sample.rate - sample.rate.div_ceil(20)
            })
        })
        .await
    }

    async fn send_and_look(
        &mut self,
        mut rate: u64,
        time: Duration,
        mut change: impl FnMut(&Sample) -> Option<u64>,
    ) -> Result<Vec<Sample>, Error> {
        self.send(rate).await?;
        let (since, mut samples) = (Instant::now(), Vec::new());
        let mut seconds = interval(SECOND);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            seconds.tick().await;
            let sample = self.look(since.elapsed(), rate)?;
            let new = change(&sample);
            samples.push(sample);
            if since.elapsed() >= time {
                return Ok(samples);
            }
            if let Some(new) = new {
                println!("{rate} messages a second are too many: on with {new}");
                rate = new;
                self.send(rate).await?;
            }
        }
    }

    fn look(&mut self, at: Duration, rate: u64) -> Result<Sample, Error> {
        let pids = self.cloud.function(FUNCTION).map(|function| function.pids()).unwrap_or_default();
        self.function_cpu.extend(pids.iter().filter_map(|pid| Some((*pid, cpu(*pid)?))));
        let parts = [self.producer.id(), Some(std::process::id()), None, self.database.id()];
        let mut memory_kb = parts.map(|pid| pid.map_or(0, resident_kb));
        let mut cpus = parts.map(|pid| pid.and_then(cpu).unwrap_or_default());
        memory_kb[FUNCTION_PART] = pids.into_iter().map(resident_kb).sum();
        cpus[FUNCTION_PART] = self.function_cpu.values().sum();
        Ok(Sample {
            at,
            rate,
            queue: self.cloud.sqs().counters(&self.queue).map_err(failed)?,
            visible: self.cloud.sqs().depth(&self.queue).map_err(failed)?.visible,
            memory_kb,
            cpu: cpus,
        })
    }

    /// Whether no message is in a queue, dead-letter queues aside.
    pub(super) fn is_drained(&self) -> Result<bool, Error> {
        self.cloud.drained().map_err(failed)
    }

    /// Waits until no message is in a queue, or the time for that is over.
    pub(super) async fn drain(&self) -> Result<(), Error> {
        let since = Instant::now();
        while !self.is_drained()? && since.elapsed() < DRAIN_MAX {
            tokio::time::sleep(SECOND / 5).await;
        }
        Ok(())
    }

    /// What the queue has done, and how many messages are in its dead-letter queue.
    pub(super) fn books(&self) -> Result<(Counters, usize), Error> {
        let depth = self.cloud.sqs().depth(&self.dead_letter_queue).map_err(failed)?;
        let queue = self.cloud.sqs().counters(&self.queue).map_err(failed)?;
        Ok((queue, depth.visible + depth.in_flight + depth.delayed))
    }

    /// What stands in the lock table, for so many orders.
    pub(super) async fn found(&mut self, sent: u64) -> Result<Found, Error> {
        let function = self.cloud.stack().functions.iter().find(|function| function.is_called(FUNCTION));
        let table = function.and_then(|function| function.environment.get("CLAIMANT_TABLE")).cloned();
        let table = table.ok_or_else(|| Error::new(format!("the function {FUNCTION} has no CLAIMANT_TABLE")))?;
        self.database.ask(&Look { table, prefix: format!("{FUNCTION}#"), sent }).await
    }

    /// How many mails the mailbox was asked for: each one counts, whatever became of it.
    pub(super) fn mails(&self) -> u64 {
        self.cloud.mailbox().attempts()
    }

    /// How often a process of the function ended before it should.
    pub(super) fn crashes(&self) -> u64 {
        self.cloud.function(FUNCTION).map_or(0, |function| function.counters().crashes)
    }

    pub(super) async fn stop(self) {
        self.cloud.stop().await;
    }
}
