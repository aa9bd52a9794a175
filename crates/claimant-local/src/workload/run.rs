//! Sending a workload into a cloud and watching what becomes of it.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Observed, Summary, Workload};
use crate::Error;
use crate::cloud::Cloud;
use crate::sqs::{Depth, NewMessage};
use crate::stack::{FunctionSpec, Stack};

/// The function that the workload is for, by its binary.
pub const FUNCTION: &str = "order-confirmation";

/// The variable that names a function's lock table.
const TABLE_VARIABLE: &str = "CLAIMANT_TABLE";
/// How often due messages are sent and the queues looked at.
const TICK: Duration = Duration::from_millis(50);

/// What to send, and how long to wait.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Orders: 1 to [`ORDERS_MAX`](super::ORDERS_MAX), cut to that.
    pub orders: u32,
    /// Decides everything random about the workload.
    pub seed: u64,
    /// From the first message to empty queues, at most.
    pub timeout: Duration,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since the first message.
    pub elapsed: Duration,
    /// Messages sent.
    pub sent: usize,
    /// Messages to send.
    pub messages: usize,
    /// Mails accepted.
    pub mails: u64,
    /// Orders to confirm.
    pub orders: usize,
    /// What the queue holds.
    pub queue: Depth,
    /// Messages in the dead-letter queue.
    pub dead_lettered: usize,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Report {
    /// The figures and faults.
    pub summary: Summary,
    /// How long it took.
    pub elapsed: Duration,
    /// The first mail's time from the first message, to the nearest look.
    pub first_mail: Option<Duration>,
}

/// Where the workload goes, and where its traces are.
struct Target {
    queue: String,
    fifo: bool,
    dead_letter_queue: String,
    table: String,
}

/// The records of the lock table at one time.
struct Records {
    ids: Vec<String>,
    attempts: u64,
    completed: u64,
}

/// Sends a workload to the queue of [`FUNCTION`] in a cloud that has just been started, waits until the queues are
/// drained or the time is over, and reports. `on_progress` is called about twenty times a second.
///
/// A fault of the function is in the report. The run may be dropped at any time.
///
/// # Errors
/// When the cloud's template has no such function, queue, dead-letter queue or table, or they cannot be read.
pub async fn run(cloud: &Cloud, settings: Settings, mut on_progress: impl FnMut(&Progress)) -> Result<Report, Error> {
    let target = Target::of(cloud)?;
    let before = Records::read(cloud, &target.table)?;
    let workload = Workload::sample(settings.orders, settings.seed, before.ids.iter().map(String::as_str));
    let start = Instant::now();
    let mut sent = 0;
    let mut first_mail = None;
    let mut faults = Vec::new();
    loop {
        let elapsed = start.elapsed();
        while let Some(message) = workload.messages.get(sent).filter(|message| message.at <= elapsed) {
            cloud.sqs().send(&target.queue, target.message(&message.body, sent))?;
            sent += 1;
        }
        let progress = Progress {
            elapsed,
            sent,
            messages: workload.messages.len(),
            mails: cloud.mailbox().received(),
            orders: workload.orders.len(),
            queue: cloud.sqs().depth(&target.queue)?,
            dead_lettered: total(cloud.sqs().depth(&target.dead_letter_queue)?),
        };
        if progress.mails > 0 {
            first_mail.get_or_insert(elapsed);
        }
        on_progress(&progress);
        if sent == workload.messages.len() && cloud.drained()? {
            break;
        }
        if elapsed >= settings.timeout {
            faults.push(timed_out(&progress, settings.timeout));
            break;
        }
        sleep(TICK).await;
    }
    let elapsed = start.elapsed();
    let seen = observe(cloud, &target, &before)?;
    let mut summary = Summary::new(&workload, &seen);
    summary.faults.splice(0..0, faults);
    Ok(Report { summary, elapsed, first_mail })
}

impl Target {
    fn of(cloud: &Cloud) -> Result<Self, Error> {
        let stack = cloud.stack();
        let known = || {
            let names: Vec<_> = stack.functions.iter().map(|spec| spec.binary.as_str()).collect();
            names.join(", ")
        };
        let spec = stack.functions.iter().find(|spec| spec.binary == FUNCTION).ok_or_else(|| {
            Error::new(format!(
                "the sample workload is made of orders for the function {FUNCTION}, and the template has only: {}; \
                 use a template with that function, or leave the workload away",
                known()
            ))
        })?;
        if cloud.function(FUNCTION).is_none() {
            return Err(Error::new(format!(
                "the sample workload needs the function {FUNCTION}, which is not running: choose it too"
            )));
        }
        Self::new(stack, spec)
    }

    fn new(stack: &Stack, spec: &FunctionSpec) -> Result<Self, Error> {
        let needs = |what: &str| Error::new(format!("the sample workload needs {what}: give it one in the template"));
        let mapping = spec.mappings.iter().find(|mapping| mapping.enabled);
        let mapping = mapping.ok_or_else(|| needs("an enabled SQS event of the function order-confirmation"))?;
        let queue = stack.queues.iter().find(|queue| queue.name == mapping.queue);
        let queue = queue.ok_or_else(|| needs("the queue of the function's SQS event"))?;
        let redrive = queue.settings.redrive.as_ref();
        let redrive =
            redrive.ok_or_else(|| needs(&format!("a dead-letter queue (RedrivePolicy) of {}", queue.name)))?;
        let table = spec.environment.get(TABLE_VARIABLE);
        let table = table.ok_or_else(|| needs(&format!("{TABLE_VARIABLE} in the function's variables")))?;
        Ok(Self {
            queue: queue.name.clone(),
            fifo: queue.settings.fifo,
            dead_letter_queue: redrive.dead_letter_queue.clone(),
            table: table.clone(),
        })
    }

    /// On a FIFO queue each message is its own, so that duplicates get through to the function.
    fn message(&self, body: &str, number: usize) -> NewMessage {
        let unique = self.fifo.then(|| format!("workload-{number}"));
        NewMessage {
            group_id: self.fifo.then(|| "workload".to_owned()),
            deduplication_id: unique,
            ..NewMessage::new(body)
        }
    }
}

impl Records {
    /// Reads the lock table by the default attribute names of the claim protocol.
    fn read(cloud: &Cloud, table: &str) -> Result<Self, Error> {
        let items = cloud.dynamodb().items(table)?;
        let attempts = |n: i64| u64::try_from(n).unwrap_or_default();
        Ok(Self {
            ids: items.iter().filter_map(|item| item.text("id")).map(str::to_owned).collect(),
            attempts: items.iter().filter_map(|item| item.number("attempts")).map(attempts).sum(),
            completed: total_of(items.iter().filter(|item| item.text("status") == Some("COMPLETED"))),
        })
    }
}

fn observe(cloud: &Cloud, target: &Target, before: &Records) -> Result<Observed, Error> {
    let counters = cloud.sqs().counters(&target.queue)?;
    let letters = cloud.sqs().messages(&target.dead_letter_queue)?;
    let after = Records::read(cloud, &target.table)?;
    Ok(Observed {
        sent: counters.sent,
        deleted: counters.deleted,
        moved: counters.dead_lettered,
        queued: total(cloud.sqs().depth(&target.queue)?) as u64,
        dead_letters: letters.into_iter().map(|message| message.body).collect(),
        left_for_redelivery: cloud.mapping_counters(FUNCTION).failed,
        handler_runs: after.attempts.saturating_sub(before.attempts),
        completed: after.completed.saturating_sub(before.completed),
        mail_attempts: cloud.mailbox().attempts(),
        mails: cloud.mailbox().mails(),
    })
}

fn timed_out(progress: &Progress, timeout: Duration) -> String {
    let Depth { visible, in_flight, delayed, .. } = progress.queue;
    let (sent, messages, timeout_s) = (progress.sent, progress.messages, timeout.as_secs());
    format!(
        "not drained after {timeout_s} s: {sent} of {messages} messages sent; \
         left in the queue: {visible} visible, {in_flight} in flight, {delayed} delayed"
    )
}

fn total(depth: Depth) -> usize {
    depth.visible + depth.in_flight + depth.delayed
}

fn total_of<T>(items: impl Iterator<Item = T>) -> u64 {
    items.map(|_| 1).sum()
}
