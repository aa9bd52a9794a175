//! A walk through a dead-letter queue: every letter once, as far as SQS shows it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as System};
use claimant_core::Error;
use tokio::time::Instant;

use super::letter::DeadLetter;
use super::queue::{DeadLetterQueue, HIDE_S, REQUEST_MAX};
use super::report::{Report, Unseen};
use super::selection::Selection;

/// The most letters that one walk looks at. SQS lets 120,000 be in flight.
pub const LOOKED_AT_MAX: usize = 100_000;

/// Queues that are read side by side, where there are several: of each 80 letters are in memory, and its end is waited for.
pub const QUEUES_AT_ONCE: usize = 8;

/// Letters that are read at once.
const PAGE_MAX: usize = 80;

/// How long the last receive waits for a letter: asking for a second or more asks all of SQS's servers.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// How long after it was read a letter is sent on: for three quarters of the time in which others are not shown it. A request has its answer
/// within 20 s, or none.
const SENDS_FOR: Duration = Duration::from_millis(750).saturating_mul(HIDE_S.unsigned_abs());

/// Rounds without a new letter after which there is none.
const QUIET_ROUNDS: usize = 5;

/// A walk through a dead-letter queue. What it has read is hidden from others until [`end`](Self::end), 120 s at most.
///
/// Dropped before its end, it leaves what it has read hidden for up to 120 s.
pub(super) struct Walk<'a> {
    pub(super) queue: &'a DeadLetterQueue,
    pub(super) selection: &'a Selection,
    /// Letters that are read at once.
    page: usize,
    /// Letters that may still be selected.
    left: usize,
    /// Letters that are looked at, about: what one receive brings is looked at whole.
    pub(super) looks: usize,
    seen: HashSet<String>,
    /// What is hidden: the receipt handle of each id.
    held: HashMap<String, String>,
    /// The new ids of what was sent back.
    sent: HashSet<String>,
    /// Why nothing more is read: what would be done to it is refused of every letter.
    pub(super) refused: Option<Error>,
    tally: Tally,
}

/// What a walk has met.
#[derive(Default)]
struct Tally {
    looked_at: usize,
    /// When the letters of the last look were asked for.
    read_at: Option<Instant>,
    /// Of a FIFO queue: the letters of message groups of which a receive may not have shown all. It shows ten letters, those of one group
    /// together, and none that is behind one that is hidden.
    in_front: HashSet<String>,
    /// The ids that are asked for and of which no letter that fits was met.
    missing: BTreeSet<String>,
    /// Letters sent back that are here again.
    came_back: usize,
    /// Whether letters were deleted.
    deleted: bool,
    /// Whether SQS went on showing letters, and none that was new, or none could be received.
    gave_up: bool,
}

impl<'a> Walk<'a> {
    /// Begins one that selects so many letters at most. `slow` reads only as many at once as one request takes.
    pub(super) fn new(queue: &'a DeadLetterQueue, selection: &'a Selection, limit: usize, slow: bool) -> Self {
        Self {
            queue,
            selection,
            page: if slow { REQUEST_MAX } else { PAGE_MAX },
            left: limit,
            looks: LOOKED_AT_MAX,
            seen: HashSet::new(),
            held: HashMap::new(),
            sent: HashSet::new(),
            refused: None,
            tally: Tally { missing: selection.ids.named.clone(), ..Tally::default() },
        }
    }

    /// Returns the letters of the next look that are selected, perhaps none of them; `None` at the end.
    ///
    /// # Errors
    /// When the queue cannot be read, or an act was [`refused`](Self::refused).
    pub(super) async fn next(&mut self) -> Result<Option<Vec<DeadLetter>>, Error> {
        if let Some(refused) = self.refused.take() {
            self.tally.gave_up = true;
            return Err(refused);
        }
        let mut quiet = 0;
        while !self.is_over() {
            // A local cloud has one server, and answers at once what it has.
            let wait = if quiet == 0 || self.queue.is_only_looked_at() { Duration::ZERO } else { LAST_WAIT };
            let count = if quiet == 0 { self.page } else { REQUEST_MAX };
            // Without a condition nothing is read that is not wanted.
            let count = if self.selection.is_everything() { count.min(self.left) } else { count };
            self.tally.read_at = Some(Instant::now());
            let messages = self.queue.receive(count, wait).await.inspect_err(|_| self.tally.gave_up = true)?;
            self.note_cut(&messages, count);
            let nothing = messages.is_empty();
            let mut news = 0;
            let mut selected = Vec::new();
            for mut message in messages {
                let receipt = message.receipt_handle.take().unwrap_or_default();
                let Some(letter) = DeadLetter::read(message) else { continue };
                self.held.insert(letter.message_id.clone(), receipt);
                // A letter that was read long ago is shown by SQS again.
                if !self.seen.insert(letter.message_id.clone()) {
                    continue;
                }
                news += 1;
                // Or letters that are given up on at once would go round for ever.
                if letter.ids().any(|id| self.sent.contains(id)) {
                    self.tally.came_back += 1;
                    continue;
                }
                self.tally.looked_at += 1;
                if self.left > 0 && self.selection.fits(&letter) {
                    self.left -= 1;
                    for id in letter.ids() {
                        self.tally.missing.remove(id);
                    }
                    selected.push(letter);
                }
            }
            // Also where none of them is meant: who waits sees that, and can end it.
            if news > 0 {
                return Ok(Some(selected));
            }
            match quiet {
                1.. if nothing => return Ok(None),
                QUIET_ROUNDS.. => {
                    self.tally.gave_up = true;
                    return Ok(None);
                }
                _ => quiet += 1,
            }
        }
        Ok(None)
    }

    /// Notes of a receive from a FIFO queue, of so many letters at most, that there may be more in the message group of the last one.
    fn note_cut(&mut self, messages: &[Message], max: usize) {
        let group = |message: &Message| message.attributes()?.get(&System::MessageGroupId).cloned();
        let is_full = self.queue.is_fifo() && messages.len() >= max.min(REQUEST_MAX);
        let Some(last) = messages.last().filter(|_| is_full).and_then(group) else { return };
        let of_last = messages.iter().filter(|message| group(message).as_ref() == Some(&last));
        self.tally.in_front.extend(of_last.filter_map(|message| message.message_id.clone()));
    }

    /// Returns what may be left that was never shown: what something else hides, what is delayed, and, of a FIFO queue that holds more than this
    /// walk does, what is in the message groups of letters that this walk hides. Of the last a look before an act takes nothing out of the way.
    async fn unseen(&self, is_look: bool, was_cut: bool) -> Unseen {
        let (now, held) = (self.queue.depth_now().await, self.held.len() as u64);
        let opened = self.queue.depth();
        // SQS's counts lag: what this walk holds can still be counted as visible. At the end of a queue without groups, others hide all the rest.
        let is_rest = !was_cut && !self.queue.is_fifo();
        let counted = now.as_ref().map(|now| if is_rest { now.due() } else { now.hidden });
        let hidden = counted.map_or(opened.hidden, |counted| counted.saturating_sub(held));
        let delayed = now.as_ref().map_or(opened.delayed, |now| now.delayed);
        // What this walk has deleted can be counted, too. Of all that is counted then, no more is hidden than was at first, or than the walk has
        // not met of what the queue held then. What was delayed then and is due now was to be met, too.
        let due = opened.due().max(opened.total().saturating_sub(delayed));
        let unmet = due.saturating_sub(self.looked_at() as u64);
        let hidden = if self.tally.deleted { hidden.min(unmet.max(opened.hidden)) } else { hidden };
        let hides = !is_look && self.tally.in_front.iter().any(|id| self.held.contains_key(id));
        let cut = was_cut || (hides && now.map_or(true, |now| now.due() != held));
        Unseen { cut, limited: self.is_limited(), hidden, delayed, stay_hidden: 0 }
    }

    /// Returns whether every letter is found that was asked for by its id.
    fn is_all_found(&self) -> bool {
        !self.selection.ids.named.is_empty() && self.tally.missing.is_empty()
    }

    /// Returns whether nothing more is to be read: the limit is reached, or every id that was asked for is found.
    pub(super) fn is_over(&self) -> bool {
        let found = || self.selection.ids.named.iter().all(|id| self.seen.contains(id));
        self.left == 0 || self.looked_at() >= self.looks || (!self.selection.ids.named.is_empty() && found())
    }

    /// Returns whether the walk ended before every letter was looked at: because of its limit, or because SQS showed no more of them.
    fn was_cut(&self) -> bool {
        self.looked_at() >= self.looks || self.tally.gave_up || self.is_limited()
    }

    /// Returns whether as many letters were selected as were asked for, and others may be left.
    fn is_limited(&self) -> bool {
        self.left == 0 && self.selection.ids.named.is_empty()
    }

    /// Returns how many letters it has looked at.
    pub(super) const fn looked_at(&self) -> usize {
        self.tally.looked_at
    }

    /// Returns whether the letters of the last look are soon shown to everyone again.
    pub(super) fn is_late(&self) -> bool {
        self.tally.read_at.is_some_and(|read_at| read_at.elapsed() >= SENDS_FOR)
    }

    /// Returns the receipt handle of a letter that it has read.
    pub(super) fn receipt(&self, message_id: &str) -> Option<&String> {
        self.held.get(message_id)
    }

    /// Notes that a letter was sent back, by its new id: it is not selected again if it comes back.
    pub(super) fn note_sent(&mut self, new_id: &str) {
        self.sent.insert(new_id.to_owned());
    }

    /// Forgets a letter that is deleted.
    pub(super) fn forget(&mut self, message_id: &str) {
        self.held.remove(message_id);
        self.tally.deleted = true;
    }

    /// Shows again all that it has read and that is still there; returns how many letters stay hidden all the same.
    pub(super) async fn end(self) -> u64 {
        let receipts: Vec<String> = self.held.into_values().collect();
        self.queue.show(&receipts).await
    }
}

/// Shows what is left again, whatever happened, and says what a walk to the end of the queue has not met.
pub(super) async fn finish(walk: Walk<'_>, mut report: Report, is_look: bool) -> Report {
    let is_ended = report.unseen.cut;
    let was_cut = is_ended || walk.was_cut();
    if was_cut || !(walk.is_over() || walk.is_all_found()) {
        report.unseen = walk.unseen(is_look, was_cut).await;
        // As many as were asked for were met, and not all of them were acted on.
        report.unseen.limited &= !is_ended;
    }
    report.progress.looked_at = walk.looked_at();
    report.came_back = walk.tally.came_back;
    if walk.left > 0 {
        report.missing.clone_from(&walk.tally.missing);
    }
    report.unseen.stay_hidden = walk.end().await;
    report
}

/// Deletes letters; returns those that were not, with the reason. Where the whole request was refused, the walk ends.
pub(super) async fn delete<'l>(
    walk: &mut Walk<'_>,
    letters: impl Iterator<Item = &'l DeadLetter>,
) -> BTreeMap<String, String> {
    let ids = letters.map(|letter| letter.message_id.clone());
    let messages: Vec<_> = ids.filter_map(|id| Some((id.clone(), walk.receipt(&id)?.clone()))).collect();
    let (left, refused) = walk.queue.delete(&messages).await;
    walk.refused = walk.refused.take().or(refused);
    let left: BTreeMap<_, _> = left.into_iter().collect();
    for (id, _) in messages.iter().filter(|(id, _)| !left.contains_key(id)) {
        walk.forget(id);
    }
    left
}
