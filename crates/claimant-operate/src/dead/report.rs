//! What is asked of an act on dead letters, and what it did.

use std::collections::{BTreeSet, HashSet};
use std::iter::Sum;
use std::ops::{AddAssign, ControlFlow};

use claimant_core::Error;
use claimant_core::error::Chain;
use serde_json::{Value, json};

use super::letter::DeadLetter;
use crate::aws::name_of_arn;

/// Letters of which a report says why they stayed; the others are only counted.
pub const PROBLEMS_MAX: usize = 100;

/// Why a letter stayed that was to go.
const MISSED: &str = "it was not seen again: it was sent back or discarded meanwhile, or something else reads it";

/// Why there may be more letters: where the limit was reached, and else of a FIFO queue and of another.
const MORE_LIMITED: &str = "There may be more: the limit was reached.";
const MORE_BEHIND: &str = "There may be more: SQS shows ten of a message group at a time, and none behind those that stay or that something \
    else reads; or it was ended.";
const MORE: &str = "There may be more: it was ended, or SQS went on showing what it had shown before.";

/// How far an act is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Letters that were looked at.
    pub looked_at: usize,
    /// Letters that fit the selection.
    pub selected: usize,
    /// Letters that were sent back or discarded.
    pub done: usize,
    /// Letters that were sent, and of which it is not confirmed that they were deleted: they are there, and may be here, too.
    pub copied: usize,
}

impl Sum for Progress {
    /// Returns how far acts on several queues are together.
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            looked_at: sum.looked_at + one.looked_at,
            selected: sum.selected + one.selected,
            done: sum.done + one.done,
            copied: sum.copied + one.copied,
        })
    }
}

/// Is told of progress after each page, and says whether to go on.
pub type Observer<'a> = &'a mut (dyn FnMut(Progress) -> ControlFlow<()> + Send);

/// What is asked of an act.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most letters.
    pub limit: usize,
    /// The most letters a second; as fast as it goes where `None`.
    pub per_s: Option<u32>,
    /// Whether to change nothing, and only say what would be done.
    pub dry_run: bool,
}

/// What an act did.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How far it came.
    pub progress: Progress,
    /// Letters sent back, or discarded, or that would have been: the id here, the queue's name and the new id.
    pub done: Vec<Done>,
    /// Letters that stayed, that are now here and there, or of which it is not known whether they stayed, with the reason:
    /// [`PROBLEMS_MAX`] at most.
    pub problems: Vec<Problem>,
    /// How many such letters there are.
    pub problem_count: usize,
    /// The ids of all of them.
    pub problem_ids: HashSet<String>,
    /// Letters sent back that were given up on again meanwhile. They stay.
    pub came_back: usize,
    /// Of those done: how many were parked. Their keys refuse to run until they are released.
    pub parked: usize,
    /// The ids that were asked for and of which no letter was read that fits; empty where the limit was reached.
    pub missing: BTreeSet<String>,
    /// What may be left that fits and was not met.
    pub unseen: Unseen,
    /// Why it ended early, if something had been done by then. Otherwise that is the act's error.
    pub failed: Option<String>,
}

/// What may be left of a queue's letters that was not met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Whether it ended before all was looked at: the limit was reached, the observer ended it, SQS went on showing only what it had shown
    /// before, or it failed; or, of a FIFO queue that holds more than was shown, letters that stay may have others of their message group
    /// behind them, which SQS does not show meanwhile (of that a dry run says nothing).
    pub cut: bool,
    /// Whether it ended since as many were met as were asked for.
    pub limited: bool,
    /// Letters that something else hid at the end, as SQS counts them: about, and up to a minute late. Not asked for where all that were named
    /// by their ids were found, nor of a local cloud's queue that was looked at, where these are shown, too.
    pub hidden: u64,
    /// Letters that were sent with a delay that was not over at the end, likewise: SQS shows them to nobody.
    pub delayed: u64,
    /// Letters that were met, and stay hidden from everyone for two minutes, since the requests to show them again failed.
    pub stay_hidden: u64,
}

impl AddAssign for Unseen {
    /// Adds what may be left of another queue.
    fn add_assign(&mut self, other: Self) {
        let Self { cut, limited, hidden, delayed, stay_hidden } = other;
        self.cut |= cut;
        self.limited |= limited;
        self.hidden += hidden;
        self.delayed += delayed;
        self.stay_hidden += stay_hidden;
    }
}

impl Unseen {
    /// Returns whether there may be any.
    #[must_use]
    pub const fn any(self) -> bool {
        self.cut || self.hidden > 0 || self.delayed > 0
    }

    /// Says how many letters stay hidden that were read, where some do, and why that may be.
    #[must_use]
    pub fn stay_hidden_in_words(self) -> Option<String> {
        let letters = match self.stay_hidden {
            0 => return None,
            1 => "1 letter that was read stays".to_owned(),
            many => format!("{many} letters that were read stay"),
        };
        Some(format!(
            "{letters} hidden for two minutes, also from the next look: SQS did not take the request to show what was read again. \
             Do these credentials have sqs:ChangeMessageVisibility?"
        ))
    }

    /// Says how many letters are hidden and how many are delayed, where some are, and why that may be.
    #[must_use]
    pub fn not_shown_in_words(self) -> Option<String> {
        let letters = |count| match count {
            1 => ("1 letter is".to_owned(), "it"),
            many => (format!("{many} letters are"), "them"),
        };
        let hidden = (self.hidden > 0).then(|| letters(self.hidden)).map(|(letters, them)| {
            format!(
                "{letters} hidden now: something else reads {them}, or something has just read {them}, such as the look before this one, \
                 or a reader died within minutes"
            )
        });
        let delayed = (self.delayed > 0).then(|| letters(self.delayed)).map(|(letters, them)| {
            format!("{letters} delayed: SQS shows {them} once the queue's delay is over, after 15 minutes at most")
        });
        match (hidden, delayed) {
            (Some(hidden), Some(delayed)) => Some(format!("{hidden}; {delayed}")),
            (hidden, delayed) => hidden.or(delayed),
        }
    }
}

/// A letter that was sent back or discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The id that it had in the dead-letter queue.
    pub message_id: String,
    /// The name of the queue that it was sent to; `None` if it was discarded.
    pub queue: Option<String>,
    /// The id that it has there; `None` in a dry run.
    pub new_id: Option<String>,
    /// Its message group, if it has one.
    pub message_group: Option<String>,
}

/// A letter that stayed in the dead-letter queue, or of which that is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its id there.
    pub message_id: String,
    /// Why.
    pub why: String,
    /// Whether it was sent all the same: it is there, and may be here, too. `None` where that is not known.
    pub copied: Option<bool>,
}

impl Report {
    /// Returns it as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let done = |done: &Done| json!({ "message_id": done.message_id, "to": done.queue, "new_id": done.new_id });
        let problem = |p: &Problem| json!({ "message_id": p.message_id, "why": p.why, "copied": p.copied });
        json!({
            "looked_at": self.progress.looked_at,
            "selected": self.progress.selected,
            "copied": self.progress.copied,
            "done": self.done.iter().map(done).collect::<Vec<_>>(),
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
            "problem_count": self.problem_count,
            "came_back": self.came_back,
            "parked": self.parked,
            "more": self.unseen.any(),
            "hidden": self.unseen.hidden,
            "delayed": self.unseen.delayed,
            "stay_hidden": self.unseen.stay_hidden,
            "failed": self.failed,
        })
    }

    /// Says that there may be more letters that fit, and why, where that is so and it did not fail. `looked_for` are the ids that
    /// were named where it was a dry run: of a FIFO queue's letters that were named, and were all met, there are no more.
    #[must_use]
    pub fn more_in_words(&self, is_fifo: bool, looked_for: Option<&BTreeSet<String>>) -> Option<String> {
        // Where the limit was reached, those that are left do not count as missing.
        let is_all = |named: &BTreeSet<String>| self.missing.is_empty() && self.progress.selected >= named.len();
        let may_hide = looked_for.is_some_and(|named| named.is_empty() || !is_all(named));
        let more = match is_fifo {
            _ if self.failed.is_some() => return None,
            _ if self.unseen.cut && self.unseen.limited => Some(MORE_LIMITED),
            true => Some(MORE_BEHIND).filter(|_| self.unseen.cut || self.unseen.hidden > 0 || may_hide),
            false => Some(MORE).filter(|_| self.unseen.cut),
        };
        match (more, self.unseen.not_shown_in_words()) {
            (None, None) => None,
            (Some(more), None) => Some(more.to_owned()),
            // Of letters that were named, those that are missing may be among them.
            (None, Some(not_shown)) if !self.missing.is_empty() => Some(format!("{not_shown}.")),
            (None, Some(not_shown)) => Some(format!("There may be more. {not_shown}.")),
            (Some(more), Some(not_shown)) => Some(format!("{more} {not_shown}.")),
        }
    }

    /// Says how many letters were given up on again, where some were.
    #[must_use]
    pub fn came_back_in_words(&self) -> Option<String> {
        match self.came_back {
            0 => None,
            1 => Some("1 was given up on again at once, and stays: is the cause fixed?".to_owned()),
            many => Some(format!("{many} were given up on again at once, and stay: is the cause fixed?")),
        }
    }

    /// Returns what came of an act after a look at the same letters, a dry run: those that were to stay have stayed, and one that was to
    /// go and was not met again is a problem.
    #[must_use]
    pub fn after(mut self, look: Self) -> Self {
        if !self.unseen.cut && self.failed.is_none() {
            let done: HashSet<_> = self.done.iter().map(|done| done.message_id.clone()).collect();
            let is_met = |id: &String| done.contains(id) || self.problem_ids.contains(id);
            let missed: Vec<_> = look.done.into_iter().filter(|done| !is_met(&done.message_id)).collect();
            for missed in missed {
                self.add(Problem { message_id: missed.message_id, why: MISSED.to_owned(), copied: Some(false) });
            }
        }
        self.problem_count += look.problem_count;
        self.problems.extend(look.problems);
        self.problems.truncate(PROBLEMS_MAX);
        self.problem_ids.extend(look.problem_ids);
        self.missing = look.missing;
        // Of an act that ended early, that counts, and not where its look ended.
        self.unseen.limited |= look.unseen.limited && !self.unseen.cut;
        self.unseen.cut |= look.unseen.cut;
        self.unseen.hidden = self.unseen.hidden.max(look.unseen.hidden);
        self.unseen.delayed = self.unseen.delayed.max(look.unseen.delayed);
        self.unseen.stay_hidden = self.unseen.stay_hidden.max(look.unseen.stay_hidden);
        self
    }

    /// Says how many letters were sent and may be here, too, where there are some.
    #[must_use]
    pub fn copied_in_words(&self) -> Option<String> {
        let (letters, they) = match (self.progress.copied, self.progress.done) {
            (0, _) => return None,
            (1, 0) => ("1 was".to_owned(), "it was"),
            (1, _) => ("1 other was".to_owned(), "it was"),
            (many, 0) => (format!("{many} were"), "they were"),
            (many, _) => (format!("{many} others were"), "they were"),
        };
        Some(format!("{letters} sent, and may be in both queues: that {they} deleted is not confirmed."))
    }

    /// Returns how many of the letters with problems were not sent, as far as that is known.
    #[must_use]
    pub const fn stayed(&self) -> usize {
        self.problem_count.saturating_sub(self.progress.copied)
    }

    fn add(&mut self, problem: Problem) {
        self.problem_count += 1;
        self.progress.copied += usize::from(problem.copied == Some(true));
        self.problem_ids.insert(problem.message_id.clone());
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// Returns it at the end of an act: an error does not hide what was done until then. A dry run has done nothing.
    pub(super) fn ended(mut self, result: Result<(), Error>, dry_run: bool) -> Result<Self, Error> {
        match result {
            Err(error) if !dry_run && (!self.done.is_empty() || self.problem_count > 0) => {
                self.unseen.cut = true;
                self.failed = Some(Chain(&error).to_string());
                Ok(self)
            }
            result => result.map(|()| self),
        }
    }

    pub(super) fn problem(&mut self, letter: &DeadLetter, why: impl Into<String>, copied: impl Into<Option<bool>>) {
        self.add(Problem { message_id: letter.message_id.clone(), why: why.into(), copied: copied.into() });
    }

    pub(super) fn done(&mut self, letter: &DeadLetter, to: Option<&str>, new_id: Option<String>) {
        self.progress.done += 1;
        self.parked += usize::from(letter.why.outcome.as_deref() == Some("parked"));
        let queue = to.map(|url| name_of_arn(url).to_owned());
        let (message_id, message_group) = (letter.message_id.clone(), letter.group.clone());
        self.done.push(Done { message_id, queue, new_id, message_group });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_said() {
        let report = |(cut, hidden, delayed), failed: bool, came_back| Report {
            unseen: Unseen { cut, limited: false, hidden, delayed, stay_hidden: 0 },
            came_back,
            failed: failed.then(|| "why".to_owned()),
            ..Report::default()
        };
        let everything = BTreeSet::new();
        for (unseen, failed, is_fifo, is_look, says) in [
            ((false, 0, 0), false, false, true, None),
            ((false, 0, 0), false, true, false, None),
            ((false, 0, 0), false, true, true, Some("ten of a message group")),
            ((true, 0, 0), false, true, false, Some("ten of a message group")),
            ((true, 0, 0), false, false, false, Some("SQS went on showing")),
            (
                (false, 1, 0),
                false,
                false,
                false,
                Some("There may be more. 1 letter is hidden now: something else reads it"),
            ),
            ((false, 2, 0), false, true, true, Some("was ended. 2 letters are hidden now: something else reads them")),
            ((false, 0, 1), false, true, false, Some("There may be more. 1 letter is delayed: SQS shows it once")),
            (
                (false, 1, 2),
                false,
                false,
                false,
                Some("died within minutes; 2 letters are delayed: SQS shows them once"),
            ),
            // That it failed says so already.
            ((true, 0, 0), true, true, false, None),
        ] {
            let said = report(unseen, failed, 0).more_in_words(is_fifo, is_look.then_some(&everything));
            let is_so = said.is_some() == says.is_some();
            assert!(is_so && said.as_deref().unwrap_or("").contains(says.unwrap_or("")), "{said:?}");
        }
        // Of two that were named: both were met, one was not, and a limit left one.
        for (missing, selected, is_said) in [(&[][..], 2, false), (&["b".to_owned()], 1, true), (&[], 1, true)] {
            let progress = Progress { selected, ..Progress::default() };
            let report = Report { progress, missing: missing.iter().cloned().collect(), ..Report::default() };
            let said = report.more_in_words(true, Some(&["a", "b"].map(str::to_owned).into()));
            assert_eq!(said.is_some(), is_said, "{missing:?} {selected}");
        }
        for (came_back, says) in [(1, "1 was given up on again"), (2, "2 were given up on again")] {
            assert!(report((false, 0, 0), false, came_back).came_back_in_words().unwrap().starts_with(says));
        }
        assert_eq!(report((false, 0, 0), false, 0).came_back_in_words(), None);
    }

    /// The look before the question was limited, and met ten letters that stay hidden.
    #[test]
    fn an_act_that_was_ended_is_not_said_to_have_reached_the_limit_of_its_look() {
        let report = |cut, limited, stay_hidden| Report {
            unseen: Unseen { cut, limited, hidden: 0, delayed: 0, stay_hidden },
            ..Report::default()
        };
        for (is_ended, says) in [(true, MORE), (false, MORE_LIMITED)] {
            let came = report(is_ended, false, 0).after(report(true, true, 10));
            assert_eq!(came.more_in_words(false, None).as_deref(), Some(says));
            assert_eq!(came.to_json()["stay_hidden"], 10);
        }
    }
}
