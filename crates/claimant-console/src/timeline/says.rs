//! Where a message is now, and why, in a few sentences.

use serde::Serialize;

use super::clauses::Told;
use super::fact::{Finished, Origin};
use super::life::{End, Life, Receive};
use super::words::{clock, sentence, short, times, which};

/// How many different endings of receives are told one by one.
const GROUPS_MAX: usize = 4;

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// In its queue, to be received.
    Waiting,
    /// Hidden by its sender, before its first receive.
    Delayed,
    /// With a process.
    InFlight,
    /// Hidden until it is received again.
    ComesBack,
    /// Its work is done, or there is none to do.
    Done,
    /// In a dead-letter queue: its work is not done.
    DeadLettered,
    /// In a dead-letter queue: its work may be done.
    Parked,
    /// Sent back from a dead-letter queue, under another id.
    Redriven,
    /// No longer kept by its queue.
    Expired,
    /// Deleted; whether its work is done is not known.
    Deleted,
}

impl Standing {
    /// Returns the words for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delayed => "delayed",
            Self::InFlight => "in flight",
            Self::ComesBack => "comes back",
            Self::Done => "done",
            Self::DeadLettered => "dead-lettered",
            Self::Parked => "parked",
            Self::Redriven => "redriven",
            Self::Expired => "expired",
            Self::Deleted => "deleted",
        }
    }
}

impl Told<'_> {
    /// Returns where the message is.
    pub(super) fn standing(&self) -> Standing {
        let last = self.life.last();
        match self.end() {
            Some((_, End::Moved(_))) => self.dead_lettered(),
            Some((_, End::Redriven(..))) => Standing::Redriven,
            Some(_) if self.life.is_done() => Standing::Done,
            Some((_, End::Discarded)) => Standing::Deleted,
            // The copy stands for it.
            Some(_) if self.end_of_copy().is_none() && self.life.has_copy() => self.dead_lettered(),
            Some((_, End::Expired)) if !last.is_some_and(Receive::is_scheduled) => Standing::Expired,
            Some(_) => Standing::Deleted,
            None if self.life.is_dead_letter() => self.dead_lettered(),
            None => match last {
                None if self.life.delayed_until.is_some_and(|until| until > self.now) => Standing::Delayed,
                None => Standing::Waiting,
                Some(last) if last.hidden_until <= self.now => Standing::Waiting,
                Some(last) if last.is_open(self.now) || last.succeeded() => Standing::InFlight,
                Some(_) => Standing::ComesBack,
            },
        }
    }

    /// Returns where the message is and why, in one to three sentences.
    pub(super) fn says(&self) -> Vec<String> {
        let standing = self.standing();
        let mut says = vec![sentence(&self.is_where(standing))];
        says.extend(self.history("It"));
        // What is a dead letter is told of the message that it is a copy of.
        if self.life.is_dead_letter() {
            says.extend(self.original().and_then(|life| Told { life, ..*self }.history("That message")));
        }
        if let Some(Origin::RedriveOf(id)) = self.life.origin {
            says.push(format!("It was sent back from a dead-letter queue: before, it was message {}.", short(id)));
        }
        says.extend(self.comes_next(standing).map(str::to_owned));
        says
    }

    /// Where a message is that is in a dead-letter queue, itself or as a copy: what is known of its work is known of the original.
    fn dead_lettered(&self) -> Standing {
        let is_copy = matches!(self.life.origin, Some(Origin::DeadLetterOf(_)));
        let worked = if is_copy { self.original() } else { Some(self.life) };
        match worked.is_some_and(Life::is_parked) {
            true => Standing::Parked,
            false => Standing::DeadLettered,
        }
    }

    /// The message that this one was made from, if it is known.
    fn original(&self) -> Option<&Life<'_>> {
        let id = self.life.made_from()?;
        self.others.iter().find(|other| other.id == id).copied()
    }

    fn is_where(&self, standing: Standing) -> String {
        let last = self.life.last();
        match standing {
            Standing::Waiting => match last {
                None => match self.life.sent {
                    Some(at) => {
                        format!("waiting in {} since {}, and not received yet", self.queue(), clock(at, self.now))
                    }
                    None => format!("waiting in {}, and not received yet", self.queue()),
                },
                Some(last) => format!(
                    "waiting in {}: it has been visible since {}, and was not received again yet",
                    self.queue(),
                    clock(last.hidden_until, self.now)
                ),
            },
            Standing::Delayed => {
                let until = self.life.delayed_until.unwrap_or(self.now);
                format!("delayed by its sender until {}", clock(until, self.now))
            }
            Standing::InFlight => last.map_or_else(String::new, |last| self.in_flight(last)),
            Standing::ComesBack => last.map_or_else(String::new, |last| {
                format!("hidden in {} until {}: {}", self.queue(), clock(last.hidden_until, self.now), comes_back(last))
            }),
            Standing::Done => match last.and_then(Receive::outcome) {
                Some("duplicate") => "done: it is a duplicate of work that was done already".to_owned(),
                Some("empty" | "ignored") => "done: there was nothing to do".to_owned(),
                _ => "done".to_owned(),
            },
            Standing::DeadLettered => self.is_among_letters(),
            Standing::Parked => format!("parked {}", self.is_among_letters()),
            Standing::Redriven => match self.end() {
                Some((_, End::Redriven(to, copy))) => {
                    let state = self.others.iter().find(|other| other.id == copy).map_or_else(String::new, |other| {
                        let told = Told { life: other, ..*self };
                        format!(" (which is {} now)", told.standing().as_str())
                    });
                    format!("sent back to {to} at {}, where it is message {}{state}", self.at(), short(copy))
                }
                _ => "sent back".to_owned(),
            },
            Standing::Expired => {
                format!(
                    "lost at {}: {} keeps messages no longer than that, and its work is not known to be done",
                    self.at(),
                    self.left()
                )
            }
            Standing::Deleted => self.deleted(),
        }
    }

    pub(super) fn queue(&self) -> &str {
        self.life.queue.unwrap_or("its queue")
    }

    fn in_flight(&self, last: &Receive<'_>) -> String {
        let (since, until) = (clock(last.at, self.now), clock(last.hidden_until, self.now));
        if last.succeeded() {
            let why = match last.finished {
                Some((_, finished)) if finished.is_done() => "its work is done",
                Some((_, finished)) if finished.is_scheduled() => "a schedule sends it again, as a new message",
                _ => "the dead-letter queue has a copy of it",
            };
            return format!("{why}, and it is deleted once its batch has been reported");
        }
        let frozen = if last.details.frozen { ", but its process is frozen" } else { "" };
        match last.claim() {
            None => format!("with its function since {since}{frozen}, and hidden from others until {until}"),
            Some(_) if last.renewals() > 0 => format!(
                "being worked on since {since}{frozen}: its lease was renewed {}, and is honoured until about {until}",
                times(last.renewals())
            ),
            Some(claim) => {
                format!(
                    "being worked on since {since}{frozen}: its lease ends at {}",
                    clock(claim.lease_until, self.now)
                )
            }
        }
    }

    /// What happened in the receives, in one sentence.
    fn history(&self, it: &str) -> Option<String> {
        let receives = &self.life.receives;
        let (last, earlier) = receives.split_last()?;
        let events = last.finished.map_or(0, |(_, Finished { events, .. })| *events);
        let events = if events > 1 { format!("{it} holds {events} events. ") } else { String::new() };
        let final_clause = self.clause(last);
        if earlier.is_empty() {
            // That it is under way was said.
            let open = self.is_open(last);
            return (!open).then(|| format!("{events}{it} was received once: {final_clause}."));
        }
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, receive) in earlier.iter().enumerate() {
            let clause = self.clause(receive);
            match groups.iter_mut().find(|(known, _)| *known == clause) {
                Some((_, numbers)) => numbers.push(index + 1),
                None => groups.push((clause, vec![index + 1])),
            }
        }
        if let [(clause, _)] = groups.as_slice()
            && *clause == final_clause
        {
            return Some(format!("{events}{it} was received {}, and each time {clause}.", times(receives.len())));
        }
        let rest: usize = groups.iter().skip(GROUPS_MAX).map(|(_, numbers)| numbers.len()).sum();
        let told = groups.iter().take(GROUPS_MAX).enumerate().map(|(at, (clause, numbers))| {
            let receive = if at > 0 {
                ""
            } else if numbers.len() == 1 {
                " receive"
            } else {
                " receives"
            };
            format!("in {}{receive} {clause}", which(numbers))
        });
        let mut told: Vec<_> = told.collect();
        if rest > 0 {
            told.push(format!("{rest} more went otherwise"));
        }
        told.push(format!("in {} {final_clause}", which(&[receives.len()])));
        Some(format!("{events}{it} was received {}: {}.", times(receives.len()), told.join("; ")))
    }

    fn comes_next(&self, standing: Standing) -> Option<&'static str> {
        match standing {
            Standing::DeadLettered => Some("It stays there until it is sent back or discarded."),
            Standing::Parked => Some(
                "Nothing runs it again by itself, since its work may be done. A person decides: resolve its key if the work is done; \
                 if it is not, release the key and send the message back.",
            ),
            _ => None,
        }
    }
}

/// Why a message comes back when it does.
fn comes_back(last: &Receive<'_>) -> &'static str {
    match last.outcome() {
        Some("busy") => "it comes back when the other claim's lease is over, in case its owner has died",
        Some("stuck" | "settle_unknown") => "it comes back when the lease of its claim is over",
        Some("retry" | "cancelled" | "lease_lost") => "it is tried again then, after the backoff",
        Some("blocked") => "it comes back in its turn, behind the earlier message of its group",
        Some("not_started" | "breaker_open" | "rate_limited") => "it is tried again then",
        Some("rejected" | "conflict" | "parked") => "it comes back until SQS moves it to the dead-letter queue",
        _ => "it comes back when its queue's visibility timeout ends",
    }
}
