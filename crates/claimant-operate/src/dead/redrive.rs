//! Sending dead letters back.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use claimant_aws::sqs::MESSAGE_MAX_BYTES;
use claimant_core::Error;

use super::letter::{DeadLetter, Origin};
use super::outgoing::{self, Edit, Outgoing};
use super::pace::Pace;
use super::queue::{DeadLetterQueue, REQUEST_MAX, is_fifo};
use super::report::{Bounds, Observer, Progress, Report};
use super::selection::Selection;
use super::walk::{Walk, delete, finish};
use crate::aws::{is_refusal, name_of_arn};
use crate::server::check_same_server;

impl DeadLetterQueue {
    /// Sends back the letters that are selected: each is copied to a queue first, and deleted here once SQS has confirmed the copy.
    /// A letter that is copied and not deleted is a problem of the report; it is never lost.
    ///
    /// Without `to`, a letter that SQS moved goes to the queue that it came from; one that a function copied, to the only queue that
    /// this one serves, and stays where there are several.
    ///
    /// # Errors
    /// When nothing was done: the queue cannot be read, `to` is no other queue of its server, or another body is given and not exactly one
    /// id. What was done before the queue could not be read any more is in the report.
    pub async fn redrive(
        &self,
        selection: &Selection,
        to: Option<&str>,
        edit: &Edit,
        bounds: Bounds,
        observer: Observer<'_>,
    ) -> Result<Report, Error> {
        selection.check_act()?;
        if edit.is_for_one() && selection.ids.named.len() != 1 {
            return Err(Error::invalid("another body is for one letter: name it by its id"));
        }
        if let Some(url) = to {
            check_same_server(url, self.url())?;
            self.check_destination(url).await?;
        }
        let mut walk = Walk::new(self, selection, bounds.limit, bounds.per_s.is_some());
        let known = to.map_or_else(|| self.sources().to_vec(), |to| vec![to.to_owned()]);
        let mut redrive = Redrive {
            to,
            edit,
            dry_run: bounds.dry_run,
            pace: Pace::new(bounds.per_s),
            urls: BTreeMap::new(),
            held_back: HashSet::new(),
            refused: known.into_iter().map(|url| (url, Default::default())).collect(),
            report: Report::default(),
        };
        let result = async {
            while let Some(letters) = walk.next().await? {
                let is_ended = redrive.page(&mut walk, letters, observer).await.is_break();
                if is_ended || (observer(redrive.report.progress).is_break() && !walk.is_over()) {
                    redrive.report.unseen.cut = true;
                    break;
                }
            }
            Ok(())
        };
        let result = result.await;
        finish(walk, redrive.report, bounds.dry_run).await.ended(result, bounds.dry_run)
    }
}

/// Why a letter stays whose group has one in front of it that stayed.
const BEHIND: &str = "an earlier letter of its group was not sent back";

/// Why a letter stays that was read so long ago that others may be shown it.
const LATE: &str = "it was not sent, since SQS was slow and shows it to others soon: try again";

/// Requests to one queue refused as a whole, one after the other, after which none is sent to it: one can be refused because of a letter, and
/// what is refused of all of these is refused of the next, as where a permission is missing.
const REFUSED_MAX: u32 = 3;

/// A redrive under way.
struct Redrive<'a> {
    to: Option<&'a str>,
    edit: &'a Edit,
    dry_run: bool,
    pace: Pace,
    /// The URLs of queues that letters came from, by their ARNs, or why there is none.
    urls: BTreeMap<String, Result<String, String>>,
    /// The groups of which a letter stayed, with the URL of their queue, if it is known: what comes after it in its group stays, too.
    held_back: HashSet<(Option<String>, String)>,
    /// Of each queue that letters are for, or can be: requests refused as a whole since one was not, and why the last of them was.
    refused: BTreeMap<String, (u32, String)>,
    report: Report,
}

impl Redrive<'_> {
    /// Sends back one page of letters, unless the observer ends it between two requests.
    async fn page(
        &mut self,
        walk: &mut Walk<'_>,
        mut letters: Vec<DeadLetter>,
        observer: &mut (dyn FnMut(Progress) -> ControlFlow<()> + Send),
    ) -> ControlFlow<()> {
        self.report.progress.looked_at = walk.looked_at();
        self.report.progress.selected += letters.len();
        if self.edit.is_for_one() {
            self.keep_one(&mut letters, &walk.selection.ids.named);
        }
        let mut queues: BTreeMap<String, Vec<(Outgoing, DeadLetter)>> = BTreeMap::new();
        for (number, letter) in letters.into_iter().enumerate() {
            let url = match self.destination(walk.queue, &letter).await {
                Ok(url) => url,
                Err(why) => {
                    self.hold_back(None, walk.queue.is_fifo(), &letter);
                    self.report.problem(&letter, why, false);
                    continue;
                }
            };
            match outgoing::copy(&letter, self.edit, number, is_fifo(&url)) {
                Ok(_) if self.dry_run => self.report.done(&letter, Some(&url), None),
                Ok(copy) if self.is_behind(&url, &copy) => self.report.problem(&letter, BEHIND, false),
                Ok(copy) => queues.entry(url).or_default().push((copy, letter)),
                Err(why) => {
                    self.hold_back(Some(&url), is_fifo(&url), &letter);
                    self.report.problem(&letter, why.to_string(), false);
                }
            }
        }
        let mut is_first = true;
        for (url, copies) in queues {
            let mut held_back = HashSet::new();
            for request in requests(copies, self.pace.batch(REQUEST_MAX)) {
                if walk.refused.is_some() {
                    return ControlFlow::Continue(());
                }
                if !std::mem::take(&mut is_first) {
                    observer(self.report.progress)?;
                }
                self.send(walk, &url, request, &mut held_back).await;
            }
            self.held_back.extend(held_back.into_iter().map(|group| (Some(url.clone()), group)));
        }
        ControlFlow::Continue(())
    }

    /// Leaves one letter of those with this id, since another body is for one: that whose id it is here. Where several only had it
    /// before, all stay.
    fn keep_one(&mut self, letters: &mut Vec<DeadLetter>, ids: &BTreeSet<String>) {
        let own = |letter: &DeadLetter| ids.contains(&letter.message_id);
        if letters.iter().any(own) {
            letters.retain(own);
        }
        if letters.len() > 1 || !self.report.done.is_empty() {
            let known = letters.iter().map(|letter| letter.message_id.as_str()).collect::<Vec<_>>().join(", ");
            let why = format!(
                "another body is for one letter, and several had this id: name one by the id that it has now, of {known}"
            );
            letters.drain(..).for_each(|letter| self.report.problem(&letter, why.as_str(), false));
        }
    }

    /// Returns whether a letter in front of this one in its group has stayed.
    fn is_behind(&self, url: &str, copy: &Outgoing) -> bool {
        let Some(group) = &copy.group else { return false };
        [None, Some(url.to_owned())].into_iter().any(|url| self.held_back.contains(&(url, group.clone())))
    }

    /// Holds back what comes after a letter in its group, where groups are in order.
    fn hold_back(&mut self, url: Option<&str>, ordered: bool, letter: &DeadLetter) {
        self.held_back.extend(letter.group.clone().filter(|_| ordered).map(|group| (url.map(str::to_owned), group)));
    }

    /// Sends one request, and deletes the letters whose copies SQS has confirmed.
    async fn send(
        &mut self,
        walk: &mut Walk<'_>,
        url: &str,
        request: Vec<(Outgoing, DeadLetter)>,
        held_back: &mut HashSet<String>,
    ) {
        let is_held = |copy: &Outgoing| copy.group.as_ref().is_some_and(|group| held_back.contains(group));
        let (held, request): (Vec<_>, Vec<_>) = request.into_iter().partition(|(copy, _)| is_held(copy));
        for (_, letter) in held {
            self.report.problem(&letter, BEHIND, false);
        }
        if request.is_empty() {
            return;
        }
        let refused = self.refused.get(url).filter(|(times, _)| *times >= REFUSED_MAX).map(|(_, why)| why.as_str());
        if let Some(why) = refused.or(walk.is_late().then_some(LATE)) {
            for (copy, letter) in request {
                held_back.extend(copy.group);
                self.report.problem(&letter, why, false);
            }
            return;
        }
        self.pace.turn(request.len()).await;
        let entries = request.iter().map(|(copy, _)| copy.entry.clone()).collect();
        let is_known = self.to.is_some() || !walk.queue.sources().is_empty();
        let answers = match walk.queue.send(url, entries).await {
            Ok(answers) => {
                self.refused.insert(url.to_owned(), (0, String::new()));
                answers
            }
            Err(none) => {
                let (times, why) = self.refused.entry(url.to_owned()).or_default();
                // Of one that may have arrived the reason is that of its letters alone.
                *times += u32::from(none.is_refused && !none.may_have_arrived);
                why.clone_from(&none.why);
                // Another queue may take its letters, also those that come later.
                if is_known && self.refused.values().all(|(times, _)| *times >= REFUSED_MAX) {
                    walk.refused = Some(Error::new(none.why.clone()));
                }
                vec![Err(none); request.len()]
            }
        };
        let mut sent = Vec::new();
        for ((copy, letter), answer) in request.into_iter().zip(answers) {
            match answer {
                Ok(new_id) => sent.push((letter, new_id)),
                Err(unconfirmed) => {
                    held_back.extend(copy.group);
                    let copied = (!unconfirmed.may_have_arrived).then_some(false);
                    self.report.problem(&letter, unconfirmed.why, copied);
                }
            }
        }
        let left = delete(walk, sent.iter().map(|(letter, _)| letter)).await;
        for (letter, new_id) in sent {
            walk.note_sent(&new_id);
            match left.get(&letter.message_id) {
                None => self.report.done(&letter, Some(url), Some(new_id)),
                Some(why) => {
                    self.report.problem(&letter, format!("it was sent to {}, and {why}", name_of_arn(url)), true);
                }
            }
        }
    }

    /// Returns where a letter goes, or why it goes nowhere.
    async fn destination(&mut self, queue: &DeadLetterQueue, letter: &DeadLetter) -> Result<String, String> {
        outgoing::check_message(letter, self.edit).map_err(|error| error.to_string())?;
        if let Some(url) = self.to {
            return Ok(url.to_owned());
        }
        if let Origin::Moved { source } = &letter.origin {
            if let Some(known) = self.urls.get(source) {
                return known.clone();
            }
            let found = queue.url_of(source).await;
            // A question that was throttled, or had no answer, can have one for the next letter.
            let is_known = found.as_ref().map_or_else(is_refusal, |_| true);
            let url = found.map_err(|error| error.to_string());
            if is_known {
                self.urls.insert(source.clone(), url.clone());
            }
            return url;
        }
        match queue.sources() {
            [only] => Ok(only.clone()),
            [] => Err("no queue is known that it belongs to: name the destination".to_owned()),
            _ => Err(format!("it may belong to any of {}: name the destination", queue.source_names().join(", "))),
        }
    }
}

/// Divides copies into requests, in their order: so many messages and 1 MiB at most, and of a group in order one at most, since SQS
/// takes and refuses the messages of a request one by one.
fn requests(copies: Vec<(Outgoing, DeadLetter)>, max: usize) -> Vec<Vec<(Outgoing, DeadLetter)>> {
    let mut requests: Vec<Vec<(Outgoing, DeadLetter)>> = Vec::new();
    let (mut bytes, mut groups) = (0, HashSet::new());
    for (copy, letter) in copies {
        let again = copy.group.as_ref().is_some_and(|group| groups.contains(group));
        match requests.last_mut() {
            Some(request) if request.len() < max && bytes + copy.bytes <= MESSAGE_MAX_BYTES && !again => {
                bytes += copy.bytes;
                groups.extend(copy.group.clone());
                request.push((copy, letter));
            }
            _ => {
                bytes = copy.bytes;
                groups = copy.group.iter().cloned().collect();
                requests.push(vec![(copy, letter)]);
            }
        }
    }
    requests
}
