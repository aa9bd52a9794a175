//! One invocation of several consumers: each event to its consumer, in order where its group has one.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};

use super::plan::{PlannedPart, PlannedSequence, Routed, To, plan};
use super::table::Destination;
use crate::backoff;
use crate::engine::Engine;
use crate::engine::dead_letters;
use crate::engine::invocation::{Invocation, Origin, Part, Sequence};
use crate::engine::progress::{Combined, Progress, TryAgain, error_of_event};
use crate::invocation_time::InvocationTime;
use crate::key::{ConsumerName, MessageId};
use crate::limits::{DEAD_LETTERS_BATCH_MAX, VISIBILITY_MAX_S};
use crate::queue::Queue;
use crate::report::{DeadLetter, DeadLetterReason, Details, Entry, Outcome, Totals};

/// Requests to the dead-letter queue at once, of what no consumer took.
const REQUESTS_MAX: usize = 10;

/// One invocation in progress.
pub(crate) struct Dispatch<'a> {
    pub(crate) engines: &'a [Engine],
    pub(crate) unrouted: &'a ConsumerName,
    pub(crate) events: &'a [Routed],
    pub(crate) time: InvocationTime,
    pub(crate) invocation: &'a Invocation<'a>,
}

/// What came of some of the events.
#[derive(Default)]
pub(crate) struct Dispatched {
    /// By the event's index.
    pub(crate) entries: BTreeMap<usize, Entry>,
    /// Messages of several events, by their indexes.
    pub(crate) messages: BTreeMap<usize, Entry>,
    /// Those of each batch, with the index of its engine.
    pub(crate) totals: Vec<(usize, Totals)>,
    /// The dead letters of events that are not all of their message, by the event's index: not sent yet. Such an event has not succeeded,
    /// but those behind it in its group go on, as far as its message does.
    unsent: BTreeMap<usize, DeadLetter>,
}

/// A message of several events, all of which have ended.
struct SeveralEvents {
    id: MessageId,
    total: u32,
    /// The shortest deduplication window of its consumers.
    window: Option<Duration>,
    progress: Progress<(Entry, DeadLetter)>,
}

impl SeveralEvents {
    fn of(id: &MessageId) -> Self {
        Self { id: id.clone(), total: 0, window: None, progress: Progress::default() }
    }
}

impl Dispatch<'_> {
    /// Works on all events, and returns what came of each, and of each message that has several.
    pub(crate) async fn drive(&self) -> Dispatched {
        let plan = plan(self.events);
        // All of them, before the first one starts.
        let sequences: Vec<_> = plan.iter().map(|planned| (planned, Sequence::of(self.invocation))).collect();
        let mut done = Dispatched::default();
        let sequences = sequences.into_iter().map(|(planned, sequence)| self.sequence(planned, sequence));
        for of_sequence in join_all(sequences).await {
            done.entries.extend(of_sequence.entries);
            done.messages.extend(of_sequence.messages);
            done.totals.extend(of_sequence.totals);
            done.unsent.extend(of_sequence.unsent);
        }
        let rest = done.several_events(self, |message| !done.messages.contains_key(&message));
        done.messages.extend(self.finish(rest).await);
        done
    }

    async fn sequence(&self, planned: &PlannedSequence, sequence: Sequence<'_>) -> Dispatched {
        let mut done = Dispatched::default();
        let mut blocked = false;
        for part in &planned.parts {
            let entries = match blocked {
                true => self.answer(part, |_| (Outcome::Blocked, Some(Duration::ZERO))),
                false => self.part(part, &sequence, &mut done).await,
            };
            let blocks =
                |(index, entry): &(usize, Entry)| !entry.outcome.is_success() && !done.unsent.contains_key(index);
            blocked |= planned.ordered && entries.iter().any(blocks);
            done.entries.extend(entries);
            if part.ends_message && !blocked {
                // A part has an event at least.
                let last = part.events.last().map(|index| self.events[*index].message);
                let several = done.several_events(self, |message| Some(message) == last);
                for (message, entry) in self.finish(several).await {
                    blocked |= !entry.outcome.is_success();
                    done.messages.insert(message, entry);
                }
            }
        }
        done
    }

    async fn part(&self, planned: &PlannedPart, sequence: &Sequence<'_>, done: &mut Dispatched) -> Vec<(usize, Entry)> {
        let events = || planned.events.iter().map(|index| &self.events[*index]);
        let origins: Vec<_> = events().map(|event| Origin { message: event.message, whole: event.whole }).collect();
        let part = Part::of(sequence, origins);
        match planned.to {
            To::Consumer(number) => {
                let batch: Vec<_> = events().map(|event| event.content.clone()).collect();
                let (report, unsent) = self.engines[number].process_part(&batch, self.time, &part).await;
                done.unsent.extend(unsent.into_iter().map(|letter| (planned.events[letter.index], letter)));
                done.totals.push((number, report.totals));
                planned.events.iter().copied().zip(report.entries).collect()
            }
            To::Rejected => self.reject(planned, &part, done).await,
            To::NotStarted => self.answer(planned, |event| {
                let (receives, id) = (event.content.receive_count(), event.content.id());
                (event.destination.outcome(), backoff::turn_delay(receives, self.time.total(), id))
            }),
            To::Acknowledged => {
                (0..planned.events.len()).for_each(|local| part.done(local));
                self.answer(planned, |event| (event.destination.outcome(), None))
            }
        }
    }

    /// Rejects what no route takes. The dead letter of one of several events of a message is sent once all of them have ended.
    async fn reject(&self, planned: &PlannedPart, part: &Part<'_>, done: &mut Dispatched) -> Vec<(usize, Entry)> {
        let mut entries = self.answer(planned, |event| {
            (event.destination.outcome(), Some(backoff::rejected_delay(event.content.receive_count())))
        });
        let letters = (0..).zip(&entries).filter_map(|(local, (_, entry))| self.dead_letter(local, entry));
        let (whole, unsent): (Vec<_>, Vec<_>) = letters.partition(|letter| part.is_whole(letter.index));
        if part.has_dead_letters() {
            let sent = self.send(part, &whole).await;
            for (letter, _) in whole.iter().zip(sent).filter(|(_, sent)| *sent) {
                part.done(letter.index);
                entries[letter.index].1.dead_lettered();
            }
            done.unsent.extend(unsent.into_iter().map(|letter| (planned.events[letter.index], letter)));
        }
        entries
    }

    fn dead_letter(&self, index: usize, entry: &Entry) -> Option<DeadLetter> {
        let (message_id, consumer) = (entry.message_id.clone(), self.unrouted.clone());
        let Outcome::Rejected { rejection, .. } = &entry.outcome else { return None };
        tracing::error!(%consumer, %message_id, reason = %rejection, "message rejected");
        let (error, reason) = (rejection.to_string(), DeadLetterReason::Rejected);
        Some(DeadLetter { index, message_id, consumer, error, attempt: None, reason, record: None })
    }

    /// Sends dead letters within the time, and returns whether the queue has confirmed each.
    async fn send(&self, queue: &dyn Queue, letters: &[DeadLetter]) -> Vec<bool> {
        let by = self.time.return_by;
        let request = |chunk: Vec<DeadLetter>| async move { dead_letters::send(queue, &chunk, by).await };
        let chunks: Vec<_> = letters.chunks(DEAD_LETTERS_BATCH_MAX).map(<[_]>::to_vec).collect();
        let sent = stream::iter(chunks.into_iter().map(request)).buffered(REQUESTS_MAX);
        sent.collect::<Vec<_>>().await.into_iter().flatten().collect()
    }

    /// Ends messages of several events: one dead letter for each that has one, when none of its events is to be tried again.
    async fn finish(&self, messages: BTreeMap<usize, SeveralEvents>) -> BTreeMap<usize, Entry> {
        let mut ended = BTreeMap::new();
        let mut letters = Vec::new();
        for (message, SeveralEvents { id, total, window, progress }) in messages {
            // Each has an event at least.
            let Some(combined) = progress.combined() else { continue };
            let (outcome, visible_after, details) = match combined {
                Combined::Again(TryAgain { outcome, visible_after, details }) => {
                    // Sent again later than one of its consumers remembers, what that one has done would be done once more.
                    let hidden_most = Duration::from_secs(VISIBILITY_MAX_S);
                    let remembered =
                        |after: &Duration| window.is_none_or(|window| backoff::is_remembered(window, *after));
                    let visible_after =
                        visible_after.map(|after| if remembered(&after) { after } else { after.min(hidden_most) });
                    (outcome, visible_after, details)
                }
                Combined::Disposed { event, disposed: (of_event, letter), others } => {
                    let error = error_of_event(&letter.error, event, total, others);
                    letters.push(DeadLetter { index: message, error, ..letter });
                    let back = backoff::rejected_delay(of_event.details.receive_count);
                    (of_event.outcome, Some(back), of_event.details)
                }
                Combined::Done(outcome, details) => (outcome, None, details),
            };
            let details = Details { events: total, ..details };
            ended.insert(message, Entry { visible_after, details, ..Entry::new(id, outcome) });
        }
        let confirmed = self.send(&self.invocation.queue, &letters).await;
        for (letter, _) in letters.iter().zip(confirmed).filter(|(_, confirmed)| *confirmed) {
            self.invocation.done(letter.index);
            ended.entry(letter.index).and_modify(Entry::dead_lettered);
        }
        ended
    }

    /// Returns this answer for each event of a part.
    fn answer(
        &self,
        planned: &PlannedPart,
        outcome: impl Fn(&Routed) -> (Outcome, Option<Duration>),
    ) -> Vec<(usize, Entry)> {
        let entry = |index: &usize| {
            let event = &self.events[*index];
            let (outcome, visible_after) = outcome(event);
            let details = Details { receive_count: event.content.receive_count(), events: 1, ..Details::default() };
            (*index, Entry { visible_after, details, ..Entry::new(event.content.id().clone(), outcome) })
        };
        planned.events.iter().map(entry).collect()
    }
}

impl Dispatched {
    /// Returns what became of messages of several events, by that of their events.
    fn several_events(&self, dispatch: &Dispatch<'_>, of: impl Fn(usize) -> bool) -> BTreeMap<usize, SeveralEvents> {
        let mut several: BTreeMap<usize, SeveralEvents> = BTreeMap::new();
        for (index, entry) in &self.entries {
            let event = &dispatch.events[*index];
            if event.whole || !of(event.message) {
                continue;
            }
            let SeveralEvents { total, window, progress, .. } =
                several.entry(event.message).or_insert_with(|| SeveralEvents::of(event.content.id()));
            if let Destination::Consumer(number) = event.destination {
                let of_consumer = dispatch.engines[number].window();
                *window = Some(window.map_or(of_consumer, |window| window.min(of_consumer)));
            }
            let Entry { outcome, visible_after, details, .. } = entry.clone();
            match self.unsent.get(index) {
                Some(letter) => progress.dispose(*total, (entry.clone(), letter.clone())),
                None if outcome.is_success() => progress.succeed(outcome, details),
                None => progress.fail(*total, TryAgain { outcome, visible_after, details }),
            }
            *total += 1;
        }
        several
    }
}
