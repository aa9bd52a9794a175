//! A local cloud, seen from within.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use claimant_core::report::OUTCOME_WORDS;
use claimant_core::{Clock as _, Error, SystemClock, Timestamp};
use claimant_local::cloud::View;
use claimant_local::journal::outcomes::read;
use claimant_local::lambda::FunctionCounters;
use claimant_local::sqs::{Counters, Depth};
use claimant_operate::intake::ComesBack;
use claimant_operate::log_lines::{LogLine, LogLines};
use claimant_operate::target::{Account, Place, Queue, Target};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::local_message::message;
use super::local_messages;
use super::overview::{
    ConsumerState, FunctionCounts, FunctionState, MappingState, Overview, QueueCounts, QueueState, names,
};
use super::{Answer, MessageFacts, MessageList, MessageQuery, Source};
use crate::sync::lock;
use crate::timeline::words::sentence;

/// What functions' lines told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Outcomes {
    /// Outcomes by consumer.
    by_consumer: BTreeMap<String, BTreeMap<String, u64>>,
    /// Lines that came faster than they were read.
    missed: u64,
}

/// A local cloud, seen from within its process.
pub struct LocalCloud {
    view: View,
    place: Place,
    outcomes: Arc<Mutex<Outcomes>>,
    /// Reads the functions' log lines; cancelled when this is dropped.
    _reading: JoinSet<()>,
}

impl LocalCloud {
    /// Opens a cloud that runs in this process. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When its control endpoint gives no answer.
    pub async fn open(view: View) -> Result<Self, Error> {
        let place = Target::Local(view.control.clone()).open(&Account::default()).await?;
        let (outcomes, lines) = (Arc::default(), place.log_lines(true).await?);
        let mut reading = JoinSet::new();
        reading.spawn(count(lines, Arc::clone(&outcomes)));
        Ok(Self { view, place, outcomes, _reading: reading })
    }

    fn now(&self) -> Overview {
        let dead = self.place.dead_letter_queues();
        let mut untold = Vec::new();
        let mut told = |queue: Result<_, Error>| queue.map_err(|error| untold.push(sentence(&error.to_string()))).ok();
        let queues = self.view.queues.iter().filter_map(|name| told(self.queue(name, &dead))).collect();
        let Outcomes { by_consumer, missed } = lock(&self.outcomes).clone();
        Overview {
            at_ms: SystemClock.now().as_millis(),
            queues,
            functions: self.functions(),
            consumers: by_consumer
                .into_iter()
                .map(|(name, counts)| ConsumerState { name, outcomes: counts.into_iter().collect() })
                .collect(),
            missed,
            untold,
        }
    }

    fn queue(&self, name: &str, dead: &[&Queue]) -> Result<QueueState, Error> {
        let gone = |e| Error::new(format!("the queue {name} is gone")).caused_by(e);
        let Depth { visible, in_flight, delayed } = self.view.sqs.depth(name).map_err(gone)?;
        let Counters { sent, received, deleted, dead_lettered, expired } =
            self.view.sqs.counters(name).map_err(gone)?;
        let known = self.place.queue(name);
        Ok(QueueState {
            name: name.to_owned(),
            dead_letter_queues: known.map_or_else(Vec::new, |queue| names(self.place.dead_letter_queues_of(queue))),
            is_dead_letter_queue: dead.iter().any(|queue| queue.name == name),
            visible: visible as u64,
            in_flight: in_flight as u64,
            delayed: delayed as u64,
            counts: Some(QueueCounts { sent, received, deleted, dead_lettered, expired }),
        })
    }

    fn functions(&self) -> Vec<FunctionState> {
        let of = |seen: &claimant_local::cloud::FunctionView| {
            let FunctionCounters { invocations, errors, timeouts, crashes, cold_starts } = seen.function.counters();
            let mappings = seen.mappings.iter().map(|(queue, switch)| {
                let state = switch.state();
                let back = if state.is_on() { None } else { self.view.scheduler.comes_on(switch.id()) };
                let back = back.map(|(at_ms, why)| ComesBack {
                    at: Timestamp::from_millis(at_ms),
                    why: why.or_else(|| Some("by a schedule without a description".to_owned())),
                });
                MappingState {
                    id: switch.id().to_owned(),
                    queue: queue.clone(),
                    state: state.as_str().to_owned(),
                    is_on: state.is_on(),
                    on_again: back.map(|back| back.to_string()),
                }
            });
            FunctionState {
                name: seen.function.name().to_owned(),
                mappings: mappings.collect(),
                processes: seen.function.pids(),
                counts: Some(FunctionCounts { invocations, errors, timeouts, crashes, processes: cold_starts }),
                waits_for_program: !seen.function.has_program(),
            }
        };
        self.view.functions.iter().map(of).collect()
    }
}

impl Source for LocalCloud {
    fn name(&self) -> String {
        self.place.name.clone()
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.view.parameters.clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.view.journal.newest()
    }

    fn overview(&self) -> Answer<'_, Overview> {
        Box::pin(async { Ok(self.now()) })
    }

    fn messages<'a>(&'a self, query: &'a MessageQuery) -> Answer<'a, MessageList> {
        // Off the threads of the cloud, which must not wait for a search.
        let (journal, query) = (self.view.journal.clone(), query.clone());
        let list = tokio::task::spawn_blocking(move || local_messages::list(&journal, &query, SystemClock.now()));
        Box::pin(async move { list.await.map_err(|e| Error::new("the messages could not be listed").caused_by(e)) })
    }

    fn message<'a>(&'a self, id: &'a str) -> Answer<'a, Option<MessageFacts>> {
        // Off the threads of the cloud here, too.
        let (journal, id) = (self.view.journal.clone(), id.to_owned());
        let message = tokio::task::spawn_blocking(move || message(&journal, &id));
        Box::pin(async move { message.await.map_err(|e| Error::new("the message could not be read").caused_by(e)) })
    }

    fn messages_of_key<'a>(&'a self, key: &'a str, max: usize) -> Answer<'a, (Vec<String>, usize)> {
        let (latest, all) = self.view.journal.messages_of(key, max);
        Box::pin(async move { Ok((latest.iter().map(ToString::to_string).collect(), all)) })
    }
}

/// Counts the outcomes of batches until the cloud stops.
async fn count(mut lines: LogLines, outcomes: Arc<Mutex<Outcomes>>) {
    while let Ok(Some(line)) = lines.next().await {
        lock(&outcomes).add(&line);
    }
}

impl Outcomes {
    fn add(&mut self, line: &LogLine) {
        self.missed = self.missed.saturating_add(line.missed);
        if let Some(batch) = read(&line.text, &OUTCOME_WORDS).filter(|batch| batch.message_id.is_none()) {
            let counts = self.by_consumer.entry(batch.consumer).or_default();
            for (outcome, count) in batch.outcomes {
                let counted = counts.entry(outcome).or_default();
                *counted = counted.saturating_add(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_missed_are_counted_too() {
        let line = |text: &str, missed| LogLine {
            function: "orders".to_owned(),
            stream: String::new(),
            at: SystemClock.now(),
            text: text.to_owned(),
            missed,
        };
        let mut outcomes = Outcomes::default();
        let batch = r#"{"message": "batch done", "consumer": "order", "completed": 2}"#;
        [line(batch, 0), line("", 5), line(batch, 0), line("", 1)].iter().for_each(|line| outcomes.add(line));
        assert_eq!((outcomes.missed, outcomes.by_consumer["order"]["completed"]), (6, 4));
    }
}
