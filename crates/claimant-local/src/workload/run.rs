//! Sending workloads into a cloud and watching what becomes of them.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::audit::Audit;
use super::gift_cards::GiftCards;
use super::inventory::Inventory;
use super::loyalty::Loyalty;
use super::orders::Orders;
use super::payments::Payments;
use super::plan::{Plan, Request};
use super::report::Report;
use super::route::Route;
use super::sample::{Sample, Seen};
use super::summary::{Summary, Traffic};
use crate::Error;
use crate::cloud::Cloud;
use crate::sqs::Depth;
use crate::stack::FunctionSpec;

/// The samples, in the order of their rows.
pub(super) const SAMPLES: [&dyn Sample; 6] = [&Orders, &Payments, &GiftCards, &Loyalty, &Audit, &Inventory];

/// How often due messages are sent and the queues looked at.
const TICK: Duration = Duration::from_millis(50);

/// What to send, and how long to wait.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Pieces of work for each function: 1 to [`COUNT_MAX`](super::COUNT_MAX), cut to that.
    pub count: u32,
    /// Decides everything random about the workload.
    pub seed: u64,
    /// From the first message to empty queues, at most.
    pub timeout: Duration,
}

/// How far a run is, over all functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Since the first message.
    pub elapsed: Duration,
    /// Messages sent.
    pub sent: usize,
    /// Messages to send.
    pub messages: usize,
    /// Messages reported done, or dead-lettered.
    pub finished: u64,
    /// Messages in the dead-letter queues.
    pub dead_lettered: usize,
    /// Messages that wait in their queues for an invocation.
    pub queued: usize,
    /// Messages received for an invocation that has not ended.
    pub held: usize,
    /// Messages hidden until they are delivered again: their invocation left them to that, or its process died.
    pub hidden: usize,
    /// How long the last of these is hidden from now on.
    pub hidden_for: Duration,
}

/// What is done and what is not yet, in a line.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, finished, dead_lettered, .. } = self;
        write!(f, "{finished} of {messages} done, {dead_lettered} dead-lettered")?;
        let hidden = format!("hidden until tried again, {:.1} s", self.hidden_for.as_secs_f64());
        let waits = [
            (messages.saturating_sub(self.sent), "to send"),
            (self.queued, "queued"),
            (self.held, "with functions"),
            (self.hidden, &hidden),
        ];
        let mut between = "; waits for ";
        for (count, what) in waits.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{between}{count} {what}")?;
            between = ", ";
        }
        Ok(())
    }
}

/// One function's workload, where it goes, and how far it is.
struct Lane<'a> {
    sample: &'static dyn Sample,
    route: Route<'a>,
    plan: Plan,
    /// What earlier runs on the same data left.
    before: Seen,
    sent: usize,
}

/// Sends a workload to each function that there is a sample for, in a cloud that has just been started, waits until the
/// queues are drained or the time is over, and reports. `on_progress` is called about twenty times a second.
///
/// A fault of a function is in the report. The run may be dropped at any time.
///
/// # Errors
/// When there is no such function, or one has no queue, dead-letter queue or lock table, or they cannot be read.
pub async fn run(cloud: &Cloud, settings: Settings, mut on_progress: impl FnMut(&Progress)) -> Result<Report, Error> {
    let mut lanes = Vec::new();
    for (sample, function) in running(cloud)? {
        lanes.push(Lane::new(cloud, sample, function, settings).await?);
    }
    let start = Instant::now();
    let (mut faults, mut first_done) = (Vec::new(), None);
    loop {
        let elapsed = start.elapsed();
        let mut progress = Progress { elapsed, ..Progress::default() };
        for lane in &mut lanes {
            lane.send_due(cloud, elapsed)?;
            lane.add_to(&mut progress, cloud)?;
        }
        if progress.finished > 0 {
            first_done.get_or_insert(elapsed);
        }
        on_progress(&progress);
        if progress.sent == progress.messages && cloud.drained()? {
            break;
        }
        if elapsed >= settings.timeout {
            faults.push(timed_out(&progress, settings.timeout));
            break;
        }
        sleep(TICK).await;
    }
    let elapsed = start.elapsed();
    let mut summaries = Vec::new();
    for lane in &lanes {
        summaries.push(lane.summary(cloud).await?);
    }
    Ok(Report { summaries, faults, elapsed, first_done })
}

/// The functions that run and have a sample.
fn running(cloud: &Cloud) -> Result<Vec<(&'static dyn Sample, &FunctionSpec)>, Error> {
    let functions = &cloud.stack().functions;
    let of = |sample: &'static dyn Sample| {
        let function = functions.iter().find(|spec| spec.binary == sample.function())?;
        cloud.function(&function.logical_id).map(|_| (sample, function))
    };
    let found: Vec<_> = SAMPLES.into_iter().filter_map(of).collect();
    if found.is_empty() {
        let known: Vec<_> = SAMPLES.iter().map(|sample| sample.function()).collect();
        let names: Vec<_> = functions.iter().map(|spec| spec.binary.as_str()).collect();
        return Err(Error::new(format!(
            "there is a sample workload for {}, and the template has only: {}; choose one of those functions, use a \
             template that has one, or omit --workload",
            known.join(", "),
            names.join(", ")
        )));
    }
    Ok(found)
}

/// What there is of a sample now, with its records.
async fn seen(cloud: &Cloud, sample: &dyn Sample, function: &FunctionSpec) -> Result<Seen, Error> {
    let seen = sample.look(cloud.services(), function).await?;
    let records = sample.records(cloud.services(), function)?;
    Ok(match records {
        Some(records) => Seen { records, ..seen },
        None => seen,
    })
}

impl<'a> Lane<'a> {
    async fn new(
        cloud: &'a Cloud,
        sample: &'static dyn Sample,
        function: &'a FunctionSpec,
        settings: Settings,
    ) -> Result<Self, Error> {
        let route = Route::of(cloud.stack(), function)?;
        let before = seen(cloud, sample, function).await?;
        let known = before.records.keys().chain(before.effects.iter().map(|effect| effect.key.as_str()));
        let request = Request::after(known, settings.count, settings.seed);
        sample.prepare(request, function).await?;
        Ok(Self { sample, route, plan: sample.plan(request, function), before, sent: 0 })
    }

    fn send_due(&mut self, cloud: &Cloud, elapsed: Duration) -> Result<(), Error> {
        while let Some(planned) = self.plan.messages.get(self.sent).filter(|planned| planned.at <= elapsed) {
            self.route.send(cloud, planned, self.sent)?;
            self.sent += 1;
        }
        Ok(())
    }

    fn add_to(&self, progress: &mut Progress, cloud: &Cloud) -> Result<(), Error> {
        let counters = cloud.sqs().counters(self.route.queue)?;
        let depth = cloud.sqs().depth(self.route.queue)?;
        progress.sent += self.sent;
        progress.messages += self.plan.messages.len();
        progress.finished += counters.deleted + counters.dead_lettered;
        progress.queued += depth.visible + depth.delayed;
        let held_before = cloud.held(&self.route.function.logical_id);
        let in_flight = cloud.sqs().in_flight(self.route.queue)?;
        // What is received or let go meanwhile counts as held, not as hidden.
        let held_after = cloud.held(&self.route.function.logical_id);
        for message in in_flight {
            if held_before.contains(&message.message_id) || held_after.contains(&message.message_id) {
                progress.held += 1;
            } else {
                progress.hidden += 1;
                progress.hidden_for = progress.hidden_for.max(message.visible_in);
            }
        }
        progress.dead_lettered += total(cloud.sqs().depth(self.route.dead_letter_queue)?);
        Ok(())
    }

    async fn summary(&self, cloud: &Cloud) -> Result<Summary, Error> {
        let counters = cloud.sqs().counters(self.route.queue)?;
        let dead_letters = cloud.sqs().messages(self.route.dead_letter_queue)?;
        let traffic = Traffic {
            sent: counters.sent,
            deleted: counters.deleted,
            moved: counters.dead_lettered,
            queued: total(cloud.sqs().depth(self.route.queue)?) as u64,
            dead_letters: dead_letters.into_iter().map(|message| message.body).collect(),
            left_for_redelivery: cloud.mapping_counters(&self.route.function.logical_id).failed,
        };
        let seen = seen(cloud, self.sample, self.route.function).await?.since(&self.before);
        Ok(Summary {
            function: self.sample.function(),
            effects_are: self.sample.effects(),
            all_well: self.sample.all_well(self.route.function),
            ..Summary::new(&self.plan, &seen, &traffic)
        })
    }
}

fn timed_out(progress: &Progress, timeout: Duration) -> String {
    format!("not drained after {} s: {progress}", timeout.as_secs())
}

fn total(depth: Depth) -> usize {
    depth.visible + depth.in_flight + depth.delayed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_what_is_waited_for_and_nothing_else() {
        let at_first = Progress { messages: 452, sent: 50, queued: 20, held: 30, ..Progress::default() };
        let shown = "0 of 452 done, 0 dead-lettered; waits for 402 to send, 20 queued, 30 with functions";
        assert_eq!(at_first.to_string(), shown);
        let backing_off =
            Progress { sent: 452, messages: 452, finished: 450, dead_lettered: 37, ..Progress::default() };
        assert_eq!(backing_off.to_string(), "450 of 452 done, 37 dead-lettered");
        let backing_off = Progress { hidden: 2, hidden_for: Duration::from_millis(1_440), ..backing_off };
        let shown = "450 of 452 done, 37 dead-lettered; waits for 2 hidden until tried again, 1.4 s";
        assert_eq!(backing_off.to_string(), shown);
    }
}
