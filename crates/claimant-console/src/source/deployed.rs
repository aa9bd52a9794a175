//! A deployed stack, or a table and queues of an account, as far as AWS's APIs and the table can tell.

use std::collections::BTreeSet;
use std::time::Duration;

use claimant_core::error::Chain;
use claimant_core::{Clock as _, Error, SystemClock};
use claimant_local::journal::{Event, lines};
use claimant_operate::depths::Depth;
use claimant_operate::intake::{ComesBack, Intake, Mapping};
use claimant_operate::keys::span;
use claimant_operate::logs::{Logged, Logs};
use claimant_operate::target::{Function, Place, Queue};
use futures_util::future::{join, join_all};
use tokio::sync::watch;

use super::overview::{FunctionState, MappingState, Overview, QueueState, names};
use super::{Answer, MessageFacts, MessageList, MessageQuery, Source};
use crate::timeline::words::sentence;
use crate::timeline::{Fact, facts_of_journal};

/// How much of the name of a log stream tells processes apart, in characters.
const PROCESS_SHOWN: usize = 8;

/// What AWS's APIs do not tell a console, whatever its permissions.
const UNTOLD: [&str; 3] = [
    "The numbers of messages are SQS's own: about right, and up to a minute old.",
    "How many messages were sent and deleted, and what became of them by consumer, is in the metrics in CloudWatch.",
    "The processes of functions are not shown: Lambda tells of none.",
];

/// Why there are no log lines.
const NO_LOGS: &str = "Log lines were not read: start the console with --logs to read them from CloudWatch.";
const NO_LINES: &str = "names it. Functions log each message where CLAIMANT_LOG_MESSAGES=on.";

/// Why there is no list of messages.
const NO_MESSAGES: &str = "SQS shows a message only to who receives it, so a console that only looks has no list of them. What is stuck, \
    parked, rejected or failed is under Keys, what was given up under Dead letters; the rest is in the functions' logs.";

/// A deployed stack, or a table and queues of an account, as far as AWS's APIs and the table can tell.
pub struct Deployed {
    place: Place,
    writes: bool,
    skew: Option<Duration>,
    /// The log groups, and how far back they are searched; none where they are not to be.
    logs: Option<(Logs, Duration)>,
    /// Never grows: each look is a request, and is made when a person asks.
    changes: watch::Sender<u64>,
}

impl Deployed {
    /// Opens a place; pages change something only with `writes`. `skew` is the clock-skew margin of its consumers, where they have one
    /// of their own. Of a message the functions' log lines are read that are no older than `logs`; none without it.
    #[must_use]
    pub fn new(place: Place, writes: bool, skew: Option<Duration>, logs: Option<Duration>) -> Self {
        let logs = place.logs().zip(logs);
        Self { place, writes, skew, logs, changes: watch::Sender::new(0) }
    }

    /// Returns what the functions have logged of a message.
    async fn lines_about(&self, id: &str) -> MessageFacts {
        let Some((logs, back)) = &self.logs else {
            return MessageFacts { missing: Some(NO_LOGS.to_owned()), ..MessageFacts::default() };
        };
        let found = match logs.find(&[id], SystemClock.now().minus(*back).as_millis()).await {
            Ok(found) => found,
            Err(error) => return MessageFacts { missing: Some(Chain(&error).to_string()), ..MessageFacts::default() },
        };
        let mut missing = found.missing;
        if found.lines.is_empty() {
            missing.push(format!("No line of the last {} {NO_LINES}", span(back.as_secs())));
        }
        let facts = found.lines.iter().flat_map(|line| facts(line, id)).collect();
        let missing = Some(missing.join(" ")).filter(|missing| !missing.is_empty());
        MessageFacts { facts, missing, ..MessageFacts::default() }
    }

    async fn now(&self) -> Result<Overview, Error> {
        let (depths, mappings) = join(self.place.depths(), self.mappings()).await;
        let asked = depths.len() + usize::from(!self.place.functions.is_empty());
        let mut untold = Untold { asked, errors: Vec::new() };
        let dead = self.place.dead_letter_queues();
        let queue = |(queue, depth): (&Queue, Result<Depth, Error>)| {
            let Depth { visible, in_flight, delayed } = untold.keep(depth)?;
            Some(QueueState {
                name: queue.name.clone(),
                dead_letter_queues: names(self.place.dead_letter_queues_of(queue)),
                is_dead_letter_queue: dead.iter().any(|other| other.name == queue.name),
                visible,
                in_flight,
                delayed,
                counts: None,
            })
        };
        let queues = self.place.queues.iter().zip(depths).filter_map(queue).collect();
        let mappings = untold.keep(mappings).unwrap_or_default();
        untold.asked += mappings.len();
        let back = |(mapping, back): (Mapping, Result<_, Error>)| {
            let back =
                back.map_err(|e| Error::new("whether a breaker has paused what is off is not known").caused_by(e));
            (mapping, untold.keep(back).flatten())
        };
        let mut mappings: Vec<_> = mappings.into_iter().map(back).collect();
        let function = |function: &Function| FunctionState {
            name: function.name.clone(),
            mappings: mappings.extract_if(.., |(of, _)| of.is_of(&function.name)).map(shown).collect(),
            ..FunctionState::default()
        };
        let functions = self.place.functions.iter().map(function).collect();
        let at_ms = SystemClock.now().as_millis();
        let mut untold = untold.said()?;
        untold.extend(self.place.left_out.iter().map(|one| sentence(one)));
        Ok(Overview { at_ms, queues, functions, consumers: Vec::new(), missed: 0, untold })
    }

    /// The mappings of the functions here; of each that is off, when it is on again.
    async fn mappings(&self) -> Result<Vec<(Mapping, Result<Option<ComesBack>, Error>)>, Error> {
        let intake = Intake::of(&self.place);
        let all = intake.list_in(&self.place).await?;
        let back = join_all(all.iter().map(|mapping| intake.comes_back(mapping))).await;
        Ok(all.into_iter().zip(back).collect())
    }
}

impl Source for Deployed {
    fn name(&self) -> String {
        self.place.name_and_whereabouts()
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn allows_writes(&self) -> bool {
        self.writes
    }

    fn skew(&self) -> Option<Duration> {
        self.skew
    }

    fn is_sampled(&self) -> bool {
        false
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn overview(&self) -> Answer<'_, Overview> {
        Box::pin(self.now())
    }

    fn messages<'a>(&'a self, _: &'a MessageQuery) -> Answer<'a, MessageList> {
        let list = MessageList { missing: Some(NO_MESSAGES.to_owned()), ..MessageList::default() };
        Box::pin(async { Ok(list) })
    }

    fn message<'a>(&'a self, id: &'a str) -> Answer<'a, Option<MessageFacts>> {
        Box::pin(async { Ok(Some(self.lines_about(id).await)) })
    }
}

/// What a line says of a message.
fn facts(line: &Logged, id: &str) -> Vec<Fact> {
    let event = Event {
        seq: 0,
        at_ms: line.at_ms,
        message_id: Some(id.into()),
        queue: None,
        function: Some(line.function.as_str().into()),
        process: None,
        invocation: None,
        what: lines::read(&line.text).what,
    };
    let mut facts = facts_of_journal(&[event], &BTreeSet::from([id]));
    // A process has a stream of its own, named after the version: `2026/11/22/[$LATEST]12ab…`.
    let name = line.stream.rsplit(']').next().unwrap_or_default();
    let stream = name.get(..PROCESS_SHOWN).unwrap_or(name).to_owned();
    for process in facts.iter_mut().filter_map(|fact| fact.process.as_mut()) {
        process.id = Some(stream.clone());
    }
    facts
}

/// What was asked for, and did not come.
struct Untold {
    asked: usize,
    errors: Vec<Error>,
}

impl Untold {
    /// Returns the answer; keeps the error.
    fn keep<T>(&mut self, answer: Result<T, Error>) -> Option<T> {
        answer.map_err(|error| self.errors.push(error)).ok()
    }

    /// Returns what is not told, each in a sentence.
    ///
    /// # Errors
    /// The first one, where nothing that was asked for came.
    fn said(self) -> Result<Vec<String>, Error> {
        let mut failed: Vec<_> = self.errors.iter().map(|error| sentence(&Chain(error).to_string())).collect();
        let is_nothing = failed.len() == self.asked;
        // One permission may be missing for many.
        failed.dedup();
        match self.errors.into_iter().next() {
            Some(error) if is_nothing => Err(error),
            _ => Ok(UNTOLD.map(str::to_owned).into_iter().chain(failed).collect()),
        }
    }
}

fn shown((mapping, back): (Mapping, Option<ComesBack>)) -> MappingState {
    let is_on = mapping.is_on();
    let on_again = back.map(|back| back.to_string());
    MappingState { id: mapping.id, queue: mapping.queue, state: mapping.state, is_on, on_again }
}
