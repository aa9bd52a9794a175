//! The engines of several consumers, as one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::consumers::Consumers;
use super::dispatch::{Dispatch, Dispatched};
use super::plan::Routed;
use super::table::{Destination, Table, UNROUTED};
use crate::clock::{Clock, Timestamp};
use crate::engine::Engine;
use crate::engine::invocation::Invocation;
use crate::engine::unpacking::{Unpacking, content_bytes};
use crate::error::Error;
use crate::invocation_time::InvocationTime;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::queue::Queue;
use crate::report::{Entry, Outcome, Report};
use crate::spans::Spans;
use crate::threads::HandlerThreads;

/// Runs batches through one consumer, or each message of them through the one that [`Routes`](super::Routes) find for it. Any number
/// may run at once. Each consumer has its own concurrency; all share the clock and the threads.
pub struct Router {
    table: Table,
    /// One at least: routes lead to a consumer.
    engines: Vec<Engine>,
    unrouted: ConsumerName,
    spans: Option<Arc<dyn Spans>>,
}

impl Router {
    /// Creates the engines of these consumers; `concurrency` applies to each that does not set its own.
    ///
    /// # Errors
    /// When settings of a consumer are out of bounds, or routes contradict each other: one error with every fault.
    pub fn new(consumers: impl Into<Consumers>, concurrency: usize) -> Result<Self, Error> {
        let consumers = consumers.into();
        let spans = consumers.spans.clone();
        let (table, engines) = Table::start(consumers, concurrency)?;
        let unrouted = ConsumerName::new(UNROUTED)?;
        Ok(Self { table, engines, unrouted, spans })
    }

    fn each(mut self, change: impl Fn(Engine) -> Engine) -> Self {
        self.engines = self.engines.into_iter().map(change).collect();
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.each(|engine| engine.clock(Arc::clone(&clock)))
    }

    /// Runs handlers on threads of their own, as [`Engine::handlers_on`](crate::Engine::handlers_on).
    #[must_use]
    pub fn handlers_on(self, threads: HandlerThreads) -> Self {
        self.each(|engine| engine.handlers_on(threads.clone()))
    }

    /// Sets after how many receives a queue moves a message to its dead-letter queue, as
    /// [`Engine::receives_max`](crate::Engine::receives_max).
    #[must_use]
    pub fn receives_max(self, receives: u32) -> Self {
        self.each(|engine| engine.receives_max(receives))
    }

    /// Logs each claim at level `INFO` instead of `DEBUG`, as [`Engine::log_claims`](crate::Engine::log_claims).
    #[must_use]
    pub fn log_claims(self, at_info: bool) -> Self {
        self.each(|engine| engine.log_claims(at_info))
    }

    /// Returns the tracing system that the consumers were given, if any.
    #[must_use]
    pub fn spans(&self) -> Option<&Arc<dyn Spans>> {
        self.spans.as_ref()
    }

    /// Returns how many messages all consumers together work on at once.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.engines.iter().map(|engine| engine.concurrency()).sum()
    }

    /// Returns the current time by the clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        // OK because there is one at least, and all have the same clock.
        self.engines[0].now()
    }

    /// Returns the consumers' names.
    pub fn names(&self) -> impl Iterator<Item = &ConsumerName> {
        self.engines.iter().map(|engine| engine.name())
    }

    /// Returns the names of consumers whose records end [with this process](crate::Store::records_outlive_process).
    pub fn without_lasting_records(&self) -> impl Iterator<Item = &ConsumerName> {
        self.engines.iter().filter(|engine| !engine.store().records_outlive_process()).map(Engine::name)
    }

    /// Works on a batch and returns within its time, with one outcome for each message: see
    /// [`Engine::process`](crate::Engine::process), also for what cancelling it does.
    pub fn process<'a>(
        &'a self,
        batch: &'a [Message],
        time: InvocationTime,
        queue: &'a dyn Queue,
    ) -> BoxFuture<'a, RouterReport> {
        // In a box, as the engine's: it is compiled here alone.
        Box::pin(self.run(batch, time, queue))
    }

    async fn run(&self, batch: &[Message], time: InvocationTime, queue: &dyn Queue) -> RouterReport {
        if let (Table::Consumer(_), [only]) = (&self.table, self.engines.as_slice()) {
            let invocation = Invocation::new(queue, batch.len()).with_spans(self.spans.as_ref(), batch);
            let report = only.process_whole(&invocation, batch, time).await;
            return RouterReport(Reports::One((only.name().clone(), report)));
        }
        let events = self.events(batch, time);
        let parts = events.iter().filter(|event| !event.whole).map(|event| event.message);
        let invocation = Invocation::of_events(queue, events.len(), parts).with_spans(self.spans.as_ref(), batch);
        let (engines, unrouted) = (self.engines.as_slice(), &self.unrouted);
        let done = Dispatch { engines, unrouted, events: &events, time, invocation: &invocation }.drive().await;
        let (mut all, mut consumers) = self.reports(batch, &events, done);
        // OK because routes lead to one consumer at least.
        self.engines[0].finish(&invocation, batch, &mut all, &mut consumers, time.return_by).await;
        RouterReport(Reports::Several { all, consumers })
    }

    /// Returns the events of a batch, and where each goes. Those of messages with the most receives are found first: what finds no room in
    /// memory, or no time, is not passed over for ever.
    fn events(&self, batch: &[Message], time: InvocationTime) -> Vec<Routed> {
        let mut unpacking = Unpacking::new(&self.unrouted, time);
        let mut found: Vec<_> = (0..).zip(batch).collect();
        found.sort_by_key(|(_, delivered)| Reverse(delivered.receive_count()));
        let mut found: Vec<(usize, _)> =
            found.into_iter().map(|(message, delivered)| (message, self.find(delivered, &mut unpacking))).collect();
        found.sort_by_key(|(message, _)| *message);
        let events = found.into_iter().flat_map(|(message, found)| {
            let whole = found.len() == 1;
            let event = move |(content, destination)| Routed { message, whole, content, destination };
            found.into_iter().map(event)
        });
        events.collect()
    }

    fn find(&self, delivered: &Message, unpacking: &mut Unpacking<'_>) -> Vec<(Message, Destination)> {
        if unpacking.has_time(delivered) {
            let found = self.table.find(delivered.clone());
            let unpacked_bytes = content_bytes(found.iter().map(|(content, _)| content));
            if unpacking.has_room(delivered, delivered.content().len(), unpacked_bytes) {
                return found;
            }
        }
        vec![(delivered.clone(), Destination::Nowhere(Outcome::NotStarted))]
    }

    /// Returns the report of all messages, and one for each consumer.
    fn reports(&self, batch: &[Message], events: &[Routed], done: Dispatched) -> (Report, Vec<(ConsumerName, Report)>) {
        let Dispatched { entries, messages, totals, .. } = done;
        // What has no entry counts as not started, which is no success: no message is without one.
        let not_started = |message: &Message| Entry::new(message.id().clone(), Outcome::NotStarted);
        let mut all: Vec<_> = batch.iter().map(not_started).collect();
        let mut consumers: BTreeMap<usize, Vec<Entry>> = BTreeMap::new();
        for (index, mut entry) in entries {
            let event = &events[index];
            if event.whole {
                all[event.message] = entry.clone();
            } else if messages.get(&event.message).is_some_and(|message| message.outcome.is_success()) {
                // Its dead letter is the message's.
                entry.dead_lettered();
            }
            let number = match &event.destination {
                Destination::Consumer(number) => *number,
                Destination::Nowhere(_) => self.engines.len(),
            };
            consumers.entry(number).or_default().push(entry);
        }
        for (message, entry) in messages {
            all[message] = entry;
        }
        let mut all = Report::new(all);
        let mut consumers: BTreeMap<_, _> =
            consumers.into_iter().map(|(number, entries)| (number, Report::new(entries))).collect();
        for (engine, totals) in totals {
            all.totals.add(&totals);
            if let Some(report) = consumers.get_mut(&engine) {
                report.totals.add(&totals);
            }
        }
        let name = |number: usize| self.engines.get(number).map_or(&self.unrouted, |engine| engine.name()).clone();
        (all, consumers.into_iter().map(|(number, report)| (name(number), report)).collect())
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("consumers", &self.names().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// What became of a batch, as a whole and for each consumer.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterReport(Reports);

#[derive(Debug, Clone, PartialEq)]
enum Reports {
    One((ConsumerName, Report)),
    Several { all: Report, consumers: Vec<(ConsumerName, Report)> },
}

impl RouterReport {
    /// Returns one outcome for each message, in the batch's order.
    #[must_use]
    pub fn all(&self) -> &Report {
        match &self.0 {
            Reports::One((_, all)) | Reports::Several { all, .. } => all,
        }
    }

    /// Returns the name and the report of each consumer that had messages, and `unrouted` for what none took. An event of a message
    /// that has several has an entry of its own here.
    pub fn consumers(&self) -> impl Iterator<Item = (&ConsumerName, &Report)> {
        let consumers = match &self.0 {
            Reports::One(consumer) => std::slice::from_ref(consumer),
            Reports::Several { consumers, .. } => consumers,
        };
        consumers.iter().map(|(name, report)| (name, report))
    }
}
