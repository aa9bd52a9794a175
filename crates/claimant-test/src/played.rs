//! What became of messages.

use crate::backlog::{End, Queued};
pub use crate::life::Step;

/// How many steps a failed assertion shows; of more, how many around the one at which a process ended, and how many at the end.
const SHOWN_MAX: usize = 60;
const SHOWN_AROUND: usize = 15;
const SHOWN_LAST: usize = 25;

/// What became of the messages of a [`TestQueue`](crate::TestQueue).
#[derive(Debug, Clone)]
#[must_use = "assert what became of the messages"]
pub struct Played {
    scenario: String,
    taken: Taken,
    messages: Vec<Story>,
    /// What to look at where a message is not done, or nothing.
    hint: &'static str,
}

/// The steps that were taken.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) steps: Vec<(usize, Step)>,
    /// The index of the one at which a process died or stood still.
    pub(crate) halted_at: Option<usize>,
}

impl Taken {
    /// Returns a line for each step; of many, for the last ones and those around the one at which a process ended.
    fn text(&self) -> String {
        let count = self.steps.len();
        let is_shown = |index: usize| {
            let near = self.halted_at.is_some_and(|at| index.abs_diff(at) <= SHOWN_AROUND);
            count <= SHOWN_MAX || near || index + SHOWN_LAST >= count
        };
        let (mut text, mut hidden) = (String::new(), 0);
        for (index, (invocation, step)) in self.steps.iter().enumerate() {
            if !is_shown(index) {
                hidden += 1;
                continue;
            }
            if hidden > 0 {
                text.push_str(&format!("  … {hidden} more: Played::steps\n"));
                hidden = 0;
            }
            text.push_str(&format!("  step {}, invocation {invocation}: {step}\n", index + 1));
        }
        text
    }
}

/// What became of one message.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) queued: Queued,
    /// The last error on its record.
    pub(crate) error: Option<String>,
}

impl Story {
    fn id(&self) -> &str {
        self.queued.message.id().as_str()
    }

    /// Returns how it left the queue, in words.
    fn end(&self) -> String {
        match &self.queued.end {
            Some(End::Done) => "it is done".to_owned(),
            Some(End::DeadLettered(why)) => format!("it was sent to the dead-letter queue: {why}"),
            Some(End::Redriven) => format!(
                "it was received {} times, and moved to the dead-letter queue; the last error: {}",
                self.queued.receives,
                self.error.as_deref().unwrap_or("none")
            ),
            None => "it is still in the queue".to_owned(),
        }
    }

    fn line(&self) -> String {
        format!("{}: {}", self.id(), self.queued.outcomes.join(", "))
    }
}

impl Played {
    pub(crate) fn new(scenario: String, taken: Taken, messages: Vec<Story>) -> Self {
        Self { scenario, taken, messages, hint: "" }
    }

    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    /// Asserts that every message is done: its work was seen completed, under this message or another one of its key.
    ///
    /// # Panics
    /// When one is not, with what became of it, and why.
    pub fn assert_done(&self) {
        for story in &self.messages {
            if story.queued.end != Some(End::Done) {
                let (of, end, hint, steps) = (story.line(), story.end(), self.hint, self.taken.text());
                panic!("{}: a message is not done ({of}): {end}\n{hint}{steps}", self.scenario);
            }
        }
    }

    /// Asserts that every message is in the dead-letter queue, and for a reason that contains this text: the dead letter's own, the one
    /// on the record of its key, or that of a copy. A message that comes again after it was rejected refers to that; one that was received
    /// too often has only its record's.
    ///
    /// # Panics
    /// When one is not, with what became of it.
    pub fn assert_dead_lettered(&self, why: &str) {
        for story in &self.messages {
            let dead_lettered = |story: &Story| matches!(&story.queued.end, Some(End::DeadLettered(_) | End::Redriven));
            let says_why = |story: &Story| {
                let own = matches!(&story.queued.end, Some(End::DeadLettered(reason)) if reason.contains(why));
                own || story.error.as_ref().is_some_and(|error| error.contains(why))
            };
            let mut copies = self.messages.iter().filter(|other| other.queued.copy_of == story.queued.copy_of);
            assert!(
                dead_lettered(story) && copies.any(says_why),
                "{}: a message is not in the dead-letter queue because of {why:?} ({}): {}",
                self.scenario,
                story.line(),
                story.end()
            );
        }
    }

    /// Returns what became of each message, in the order in which they were sent: its id, and the outcomes that invocations reported,
    /// such as `m-1: retry, completed`. A process that dies reports nothing.
    #[must_use]
    pub fn outcomes(&self) -> Vec<String> {
        self.messages.iter().map(Story::line).collect()
    }

    /// Returns the ids of the messages in the dead-letter queue and why they are there, such as `m-1: the amount is 0`. Those that
    /// were received too often are there as they are, with the last error of their record.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<String> {
        let letters = self.messages.iter().filter_map(|story| match &story.queued.end {
            Some(End::DeadLettered(why)) => Some(format!("{}: {why}", story.id())),
            Some(End::Redriven) => Some(format!("{}: {}", story.id(), story.error.as_deref().unwrap_or_default())),
            _ => None,
        });
        letters.collect()
    }

    /// Returns the steps that processes took, or died at, in their order, each with the number of its invocation, from 1.
    #[must_use]
    pub fn steps(&self) -> &[(usize, Step)] {
        &self.taken.steps
    }

    /// Asserts that of the copies of each message one was done and the others were duplicates, unless none was done.
    pub(crate) fn assert_one_run_each(&self) {
        for first in 0..self.messages.len() {
            let copies: Vec<_> = self.messages.iter().filter(|story| story.queued.copy_of == first).collect();
            let ran: Vec<_> = copies.iter().filter(|story| story.queued.outcomes.contains(&"completed")).collect();
            assert!(
                ran.len() < 2,
                "{}: each copy of a message ran ({}, {}): its key comes from something that changes when a producer sends again, \
                 such as the message's id or an envelope's",
                self.scenario,
                ran[0].line(),
                ran[1].line()
            );
            let conflict = copies.iter().find(|story| story.queued.outcomes.contains(&"conflict"));
            assert!(
                ran.is_empty() || conflict.is_none(),
                "{}: a second copy is a conflict ({}): its fingerprint comes from something that changes when a producer sends \
                 again; leave that out, with fingerprint_of",
                self.scenario,
                conflict.map_or_else(String::new, |story| story.line())
            );
        }
    }

    /// Asserts that what was done, at these indexes and after so many reports, was a duplicate when it was delivered once more; what holds
    /// no work stays what it was. One whose receives were used up is not delivered again.
    pub(crate) fn assert_duplicates_at_last(&self, done: &[(usize, usize)]) {
        for (index, reports) in done {
            let queued = &self.messages[*index].queued;
            if queued.outcomes.len() == *reports {
                continue;
            }
            let last = queued.outcomes.last().copied();
            let same = queued.end == Some(End::Done) && matches!(last, Some("duplicate" | "ignored" | "empty"));
            let why = match last {
                Some("completed") => "ran again",
                Some("conflict") => {
                    "that was done is a conflict when it is delivered again: its fingerprint is another one each time that it is made; \
                     leave out what differs, with fingerprint_of"
                }
                _ => "that was done is not a duplicate when it is delivered again",
            };
            assert!(same, "{}: a message {why} ({})", self.scenario, self.messages[*index].line());
        }
    }

    /// Asserts that no message was completed twice.
    pub(crate) fn assert_completed_once(&self) {
        for story in &self.messages {
            let completed = story.queued.outcomes.iter().filter(|outcome| **outcome == "completed").count();
            assert!(completed < 2, "{}: a message was completed twice ({})", self.scenario, story.line());
        }
    }

    /// Asserts that no message was left without an answer of the store.
    pub(crate) fn assert_answered(&self) {
        for story in &self.messages {
            let unanswered = |outcome: &&'static str| matches!(*outcome, "settle_unknown" | "store_failed");
            let lost = story.queued.outcomes.iter().any(unanswered);
            assert!(!lost, "{}: the store's answer was not found out ({})", self.scenario, story.line());
        }
    }
}
