//! What became of each message, receive by receive, put together from the facts.

use std::collections::BTreeMap;

use claimant_core::Timestamp;

use super::fact::{Answer, BatchEnd, Claim, Fact, Finished, Origin, What};

/// One message, from its sending to its end.
#[derive(Debug, Default)]
pub(super) struct Life<'a> {
    pub(super) id: &'a str,
    pub(super) sent: Option<Timestamp>,
    pub(super) queue: Option<&'a str>,
    pub(super) group: Option<&'a str>,
    pub(super) delayed_until: Option<Timestamp>,
    pub(super) origin: Option<&'a Origin>,
    pub(super) receives: Vec<Receive<'a>>,
    /// The dead-letter queue's copy that the function sent: since when it is there, the queue and the id.
    pub(super) copy: Option<(Timestamp, &'a str, &'a str)>,
    /// Whether SQS moved it to a dead-letter queue.
    moved: bool,
    pub(super) end: Option<(Timestamp, End<'a>)>,
}

/// How a message left its queue for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End<'a> {
    Deleted,
    /// Its function deleted it itself, before its invocation had ended.
    DeletedAhead,
    /// SQS moved it to this dead-letter queue.
    Moved(&'a str),
    /// Deleted from a dead-letter queue.
    Discarded,
    /// To this queue, under this id.
    Redriven(&'a str, &'a str),
    Expired,
    Purged,
    QueueDeleted,
}

/// One receive of a message.
#[derive(Debug, Default)]
pub(super) struct Receive<'a> {
    pub(super) at: Timestamp,
    pub(super) count: u32,
    /// Until when it was hidden last.
    pub(super) hidden_until: Timestamp,
    /// The invocation that it was handed to.
    pub(super) invocation: Option<&'a str>,
    pub(super) batch: usize,
    pub(super) claims: Vec<(Timestamp, &'a Claim)>,
    /// What the handler did, and whether that was refused.
    pub(super) effects: Vec<(&'a str, bool)>,
    pub(super) finished: Option<(Timestamp, &'a Finished)>,
    pub(super) failed: Option<(Timestamp, &'a BatchEnd)>,
    pub(super) details: Details<'a>,
}

/// What else is known of a receive.
#[derive(Debug, Default)]
pub(super) struct Details<'a> {
    /// How often it was hidden for longer, or shown.
    pub(super) hides: usize,
    /// The last reason or error that a line gave.
    pub(super) reason: Option<&'a str>,
    /// Whether its process is stopped now.
    pub(super) frozen: bool,
    /// What a fault did to its process last.
    pub(super) broken: Option<Broken>,
    /// Whether the mapping deletes it, since it fits no filter.
    pub(super) filtered: bool,
    /// What the mapping takes it for, by its function's answer.
    pub(super) answer: Option<(Timestamp, Answer)>,
}

/// What a fault did to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    Killed,
    Frozen,
}

impl<'a> Receive<'a> {
    /// Returns the claim that this receive worked under, if it had one.
    pub(super) fn claim(&self) -> Option<&'a Claim> {
        self.claims.last().map(|(_, claim)| *claim)
    }

    /// Returns the outcome's word, if the engine has said one.
    pub(super) fn outcome(&self) -> Option<&'a str> {
        self.finished.map(|(_, finished)| finished.outcome.as_str())
    }

    /// Returns whether its work is done, or there was none to do.
    pub(super) fn is_done(&self) -> bool {
        self.finished.is_some_and(|(_, finished)| finished.is_done())
    }

    /// Returns whether a schedule sends it again.
    pub(super) fn is_scheduled(&self) -> bool {
        self.finished.is_some_and(|(_, finished)| finished.is_scheduled())
    }

    /// Returns whether the engine reports the message as done, and nothing says that the report is lost.
    pub(super) fn succeeded(&self) -> bool {
        let is_lost = self.failed.is_some() || matches!(self.details.answer, Some((_, Answer::Failed)));
        !is_lost && self.finished.is_some_and(|(_, finished)| finished.is_success())
    }

    /// Returns how often the message was hidden for longer while it was worked on.
    pub(super) fn renewals(&self) -> usize {
        // What fails is hidden once more, until it comes back.
        let came_back = self.finished.is_some_and(|(_, finished)| !finished.is_success());
        self.details.hides.saturating_sub(usize::from(came_back))
    }

    /// Returns whether it is under way: nothing has ended it, and its visibility timeout has not ended.
    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        !self.has_ended() && now < self.hidden_until
    }

    /// Returns whether its function has it, as far as the facts tell.
    fn is_with_function(&self) -> bool {
        self.invocation.is_some() && !self.has_ended()
    }

    fn has_ended(&self) -> bool {
        let Details { filtered, answer, .. } = self.details;
        self.finished.is_some() || self.failed.is_some() || answer.is_some() || filtered
    }

    /// Returns whether its claim is honoured at this time, as far as the facts tell.
    fn holds_key_at(&self, time: Timestamp) -> bool {
        let settled = self.finished.is_some_and(|(at, finished)| at <= time && finished.outcome != "stuck");
        let lease =
            if self.renewals() > 0 { self.hidden_until } else { self.claim().map_or(self.at, |c| c.lease_until) };
        self.claims.first().is_some_and(|(at, _)| *at <= time) && !settled && time <= lease
    }
}

/// Returns the lives of all messages of these facts, by message id. The facts are in the order in which they happened.
pub(super) fn lives(facts: &[Fact]) -> BTreeMap<&str, Life<'_>> {
    let mut lives = BTreeMap::new();
    for fact in facts {
        let id = fact.message.as_str();
        lives.entry(id).or_insert_with(|| Life { id, ..Life::default() }).add(fact);
    }
    lives
}

impl<'a> Life<'a> {
    fn add(&mut self, fact: &'a Fact) {
        match &fact.what {
            What::Sent { queue, group, delayed_until, origin } => {
                self.sent = Some(fact.at);
                self.queue = Some(queue);
                self.group = group.as_deref();
                self.delayed_until = *delayed_until;
                self.origin = origin.as_ref();
            }
            // To look at a dead letter is to receive it.
            What::Received { .. } if self.is_dead_letter() => {}
            What::Received { queue, count, hidden_until } => {
                self.queue = Some(queue);
                self.receives.push(Receive::new(fact.at, *count, *hidden_until));
            }
            What::Copied { to, copy } => self.copy = Some((fact.at, to, copy)),
            What::Deleted if self.is_dead_letter() => self.end = Some((fact.at, End::Discarded)),
            // Who sends a letter back deletes it then.
            What::Deleted if matches!(self.end, Some((_, End::Redriven(..)))) => {}
            // Its receipt handle is with that invocation alone.
            What::Deleted if self.last().is_some_and(Receive::is_with_function) => {
                self.end = Some((fact.at, End::DeletedAhead));
            }
            What::Deleted => self.end = Some((fact.at, End::Deleted)),
            What::Moved { to } => {
                self.moved = true;
                self.end = Some((fact.at, End::Moved(to)));
            }
            What::Redriven { to, copy } => self.end = Some((fact.at, End::Redriven(to, copy))),
            What::Expired => self.end = Some((fact.at, End::Expired)),
            What::Purged => self.end = Some((fact.at, End::Purged)),
            What::QueueDeleted => self.end = Some((fact.at, End::QueueDeleted)),
            _ => {
                if let Some(receive) = self.receive_of(fact) {
                    receive.add(fact);
                }
            }
        }
    }

    /// Returns whether it is in a dead-letter queue.
    pub(super) fn is_dead_letter(&self) -> bool {
        matches!(self.end, None | Some((_, End::Moved(_)))) && self.was_dead_letter()
    }

    /// Returns whether the function confirmed a copy of it in the dead-letter queue, as far as the facts tell.
    pub(super) fn has_copy(&self) -> bool {
        self.copy.is_some()
            || self.last().and_then(|last| last.finished).is_some_and(|(_, finished)| finished.dead_lettered)
    }

    /// Returns whether its work is done, or there was none to do.
    pub(super) fn is_done(&self) -> bool {
        self.receives.iter().any(Receive::is_done)
    }

    /// Returns whether its function deleted it itself in this receive, before it had answered.
    pub(super) fn is_deleted_ahead_in(&self, receive: &Receive<'_>) -> bool {
        matches!(self.end, Some((_, End::DeletedAhead))) && self.last().is_some_and(|last| last.count == receive.count)
    }

    /// Returns whether it was parked, by the last outcome that is known.
    pub(super) fn is_parked(&self) -> bool {
        self.receives.iter().rev().find_map(Receive::outcome) == Some("parked")
    }

    /// Returns whether it is in a dead-letter queue, or was before it left that: SQS moved it there, or it is a function's copy of another
    /// message, or it was sent back from there.
    pub(super) fn was_dead_letter(&self) -> bool {
        let is_copy = matches!(self.origin, Some(Origin::DeadLetterOf(_)));
        self.moved || is_copy || matches!(self.end, Some((_, End::Redriven(..))))
    }

    /// The receive that a fact is of, by the number in its outcome or by its invocation; the last one where it says nothing of that. What
    /// reads a dead-letter queue has invocations, outcomes and answers, too, which are of no receive from the queue before.
    fn receive_of(&mut self, fact: &Fact) -> Option<&mut Receive<'a>> {
        let at = self.receives.iter().rposition(|receive| match &fact.what {
            What::Finished(finished) => finished.receive == Some(receive.count),
            _ => fact.invocation.is_some() && fact.invocation.as_deref() == receive.invocation,
        });
        let names_its_own = matches!(fact.what, What::Answered(_) | What::Finished(Finished { receive: Some(_), .. }));
        let last = self.receives.len().checked_sub(1).filter(|_| !names_its_own && !self.was_dead_letter());
        self.receives.get_mut(at.or(last)?)
    }

    /// Returns the message that it was made from, if any.
    pub(super) fn made_from(&self) -> Option<&'a str> {
        self.origin.map(|(Origin::DeadLetterOf(id) | Origin::RedriveOf(id))| id.as_str())
    }

    pub(super) fn last(&self) -> Option<&Receive<'a>> {
        self.receives.last()
    }

    /// Returns the receive whose claim was honoured at this time, if the facts tell of one.
    pub(super) fn holder_at(&self, time: Timestamp) -> Option<&Receive<'a>> {
        self.receives.iter().find(|receive| receive.holds_key_at(time))
    }

    /// Returns when it did the work, if it did.
    pub(super) fn worked_at(&self) -> Option<Timestamp> {
        let done = |receive: &Receive<'_>| {
            receive.finished.filter(|(_, finished)| finished.outcome == "completed").map(|(at, _)| at)
        };
        self.receives.iter().find_map(done)
    }
}

impl<'a> Receive<'a> {
    fn new(at: Timestamp, count: u32, hidden_until: Timestamp) -> Self {
        Self { at, count, hidden_until, batch: 1, ..Self::default() }
    }

    fn add(&mut self, fact: &'a Fact) {
        match &fact.what {
            What::Delivered { batch } => {
                self.batch = *batch;
                self.invocation = fact.invocation.as_deref();
            }
            // Each event of a message that has several has a line.
            What::Finished(finished) if self.finished.is_some_and(|(_, known)| known.rank() <= finished.rank()) => {}
            What::Finished(finished) => self.finished = Some((fact.at, finished)),
            What::Claimed(claim) => self.claims.push((fact.at, claim)),
            What::Effect { did, refused } => self.effects.push((did, *refused)),
            What::Hidden { until } => {
                self.hidden_until = *until;
                self.details.hides += 1;
            }
            What::BatchFailed(how) => self.failed = Some((fact.at, how)),
            What::Killed => self.details.broken = Some(Broken::Killed),
            What::Frozen => {
                self.details.frozen = true;
                self.details.broken = self.details.broken.or(Some(Broken::Frozen));
            }
            What::Resumed => self.details.frozen = false,
            What::Filtered => self.details.filtered = true,
            What::Answered(answer) => self.details.answer = Some((fact.at, *answer)),
            What::Line(line) => self.details.reason = line.reason.as_deref().or(self.details.reason),
            _ => {}
        }
    }
}
