//! What happened in one receive, as a clause that follows "in the first receive".

use claimant_core::Timestamp;

use super::fact::{Answer, BatchEnd};
use super::life::{Broken, Life, Receive};
use super::words::{clock, lasting, short};

/// What the clauses are told from.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) life: &'a Life<'a>,
    /// The other messages of the same keys.
    pub(super) others: &'a [&'a Life<'a>],
    pub(super) now: Timestamp,
}

impl Told<'_> {
    /// Returns what happened in one receive.
    pub(super) fn clause(&self, receive: &Receive<'_>) -> String {
        match (receive.finished, receive.failed) {
            (Some((_, finished)), None) => self.outcome(receive, &finished.outcome),
            // The engine was through with it; the report did not reach the queue.
            (Some((_, finished)), Some((_, how))) => {
                format!(
                    "{}, but {} before it could report that",
                    self.outcome(receive, &finished.outcome),
                    died(receive, how)
                )
            }
            // It deletes what is done, and what is recorded as done.
            (None, Some((_, how))) if self.life.is_deleted_ahead_in(receive) => {
                format!("{} after the message was deleted", died(receive, how))
            }
            (None, Some((_, how))) => self.cut_off(receive, how),
            (None, None) if receive.details.filtered => "no function was called for it".to_owned(),
            (None, None) => match receive.details.answer {
                Some((at, Answer::Done)) if at >= receive.hidden_until => format!(
                    "its function answered only after its visibility timeout had ended at {}",
                    clock(receive.hidden_until, self.now)
                ),
                Some((_, Answer::Done)) => "its event source mapping took it for done".to_owned(),
                Some((_, Answer::Failed)) => "its function said that it failed".to_owned(),
                None => self.unanswered(receive),
            },
        }
    }

    /// Returns whether a receive is under way.
    pub(super) fn is_open(&self, receive: &Receive<'_>) -> bool {
        self.life.end.is_none() && receive.is_open(self.now)
    }

    fn unanswered(&self, receive: &Receive<'_>) -> String {
        match receive.claim() {
            Some(_) if self.is_open(receive) => "the handler runs now".to_owned(),
            None if self.is_open(receive) => "it is with its function now".to_owned(),
            _ if self.life.end.is_some_and(|(end, _)| end < receive.hidden_until) => {
                "nothing more was heard of it".to_owned()
            }
            _ => format!(
                "nothing more was heard of it until its visibility timeout ended at {}",
                clock(receive.hidden_until, self.now)
            ),
        }
    }

    fn cut_off(&self, receive: &Receive<'_>, how: &BatchEnd) -> String {
        if receive.claims.is_empty() {
            let neighbours = match receive.batch {
                0 | 1 => "",
                2 => "; another message was in its batch",
                _ => "; other messages were in its batch",
            };
            let when = if self.has_lines() { " before this message was started" } else { "" };
            return format!("{}{when}{neighbours}", died(receive, how));
        }
        let did: Vec<_> = receive.effects.iter().filter(|(_, refused)| !refused).map(|(did, _)| *did).collect();
        match did.as_slice() {
            [] => format!("{} after the message was claimed", died(receive, how)),
            did => format!(
                "{} after the handler had {}, and before that was recorded",
                died(receive, how),
                did.join(" and ")
            ),
        }
    }

    fn outcome(&self, receive: &Receive<'_>, outcome: &str) -> String {
        let why = receive.details.reason.map_or_else(String::new, |reason| format!(" (“{reason}”)"));
        match outcome {
            "completed" => match self.taken_over_from(receive) {
                Some((claim, after)) => format!("{claim} was taken over {after}, and the handler did the work"),
                None => match receive.finished.and_then(|(_, finished)| finished.handle_ms) {
                    Some(ms) => format!("the handler did the work in {}", lasting(ms)),
                    None => "the handler did the work".to_owned(),
                },
            },
            "duplicate" => format!("{}, so the handler did not run", self.done_by()),
            "busy" => self.busy(receive),
            "retry" => format!("the handler failed{why}"),
            "scheduled" => {
                format!("the handler failed, and a schedule sends it again later than its queue could hide it{why}")
            }
            "cancelled" => format!("the handler was cancelled, as its time was over{why}"),
            "stuck" => {
                "the handler did not stop when its time was over, so its claim stays until its lease ends".to_owned()
            }
            "not_started" => "there was no time left to start it".to_owned(),
            "breaker_open" => "it was held back, since a system that its handler calls was away".to_owned(),
            "rate_limited" => "it waited for its turn within the limit of a system that its handler calls".to_owned(),
            "blocked" => "it waited behind an earlier message of its group, which did not succeed".to_owned(),
            "rejected" if receive.claims.is_empty() => {
                format!("it could not be handled, and no retry can fix that{why}")
            }
            "rejected" => format!("its work failed for good{why}"),
            "conflict" => "its key belonged to another payload".to_owned(),
            "parked" => format!("its work may have been done, and it was parked{why}"),
            "lease_lost" => "its claim was lost to another owner before the work was recorded as done".to_owned(),
            "settle_unknown" => "the store gave no answer when the end of the work was recorded".to_owned(),
            "store_failed" => "the store gave no answer, so the work was not started".to_owned(),
            "fetch_failed" => format!("the payload that it points to could not be fetched{why}"),
            "ignored" => "no route took it, and the function is set to ignore such messages".to_owned(),
            "empty" => "its envelope held no event, so there was nothing to do".to_owned(),
            other => format!("it ended as {other}{why}"),
        }
    }

    /// Whether the engine's lines are among the facts: only then is what they do not say known.
    fn has_lines(&self) -> bool {
        let mut all = std::iter::once(&self.life).chain(self.others).flat_map(|life| &life.receives);
        all.any(|receive| !receive.claims.is_empty() || receive.finished.is_some())
    }

    /// Which claim was taken over, and after what, if one was.
    fn taken_over_from(&self, receive: &Receive<'_>) -> Option<(String, String)> {
        let (at, _) = receive.claims.iter().find(|(_, claim)| claim.taken_over)?;
        let all = std::iter::once(&self.life).chain(self.others);
        let left = all.flat_map(|life| life.receives.iter().map(|r| (life.id, r)));
        let left = left.filter(|(_, r)| r.claims.first().is_some_and(|(begun, _)| begun < at) && r.at < receive.at);
        let left = left.max_by_key(|(_, r)| r.at);
        let claim = match left {
            Some((id, _)) if id != self.life.id => format!("the claim of message {}", short(id)),
            _ => "the claim".to_owned(),
        };
        let after = match left.and_then(|(_, left)| left.claim().map(|claim| (left, claim))) {
            Some((left, claim)) if left.renewals() == 0 => {
                format!("after its lease ended at {}", clock(claim.lease_until, self.now))
            }
            _ => "after its lease had ended".to_owned(),
        };
        Some((claim, after))
    }

    /// Who had done the work of a duplicate.
    fn done_by(&self) -> String {
        if self.life.receives.iter().any(|receive| !receive.claims.is_empty()) && self.worker().is_none() {
            return "the work was found done by an earlier receive".to_owned();
        }
        match self.worker() {
            Some((id, at)) => format!("the work was found done, by message {} at {}", short(id), clock(at, self.now)),
            None => "the work was found done".to_owned(),
        }
    }

    /// The other message that did the work, and when.
    fn worker(&self) -> Option<(&str, Timestamp)> {
        self.others.iter().find_map(|other| other.worked_at().map(|at| (other.id, at)))
    }

    fn busy(&self, receive: &Receive<'_>) -> String {
        let at = receive.finished.map_or(receive.at, |(at, _)| at);
        if let Some(own) = self.life.holder_at(at).filter(|own| own.at < receive.at) {
            let until =
                own.claim().map_or_else(String::new, |claim| format!(", until {}", clock(claim.lease_until, self.now)));
            return format!("the claim of an earlier receive was still honoured{until}");
        }
        let until = receive.finished.and_then(|(_, finished)| finished.busy_until);
        let until = until.map_or_else(String::new, |until| format!(", until {} at the latest", clock(until, self.now)));
        match self.others.iter().find(|other| other.holder_at(at).is_some()) {
            Some(other) => format!("message {} of the same key was being worked on{until}", short(other.id)),
            None => format!("another worker had claimed the key{until}"),
        }
    }
}

/// Returns how a batch ended, as a clause.
fn died(receive: &Receive<'_>, how: &BatchEnd) -> String {
    match how {
        BatchEnd::Died(_) if receive.details.broken == Some(Broken::Killed) => "a fault killed its process".to_owned(),
        BatchEnd::TimedOut if receive.details.broken == Some(Broken::Frozen) => {
            "a fault froze its process, and its function timed out".to_owned()
        }
        BatchEnd::Died(status) if status.contains("SIGKILL") => "its process was killed".to_owned(),
        BatchEnd::Died(status) if status.contains("SIGABRT") => "its process aborted".to_owned(),
        BatchEnd::Died(status) => format!("its process ended ({status})"),
        BatchEnd::TimedOut => "its function timed out".to_owned(),
        BatchEnd::Failed(why) => format!("its batch failed ({why})"),
    }
}
