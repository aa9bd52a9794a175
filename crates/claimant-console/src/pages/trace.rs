//! `/messages/ID` of a deployed stack: what its dead letters, its keys and the functions' log lines tell of a message.

use std::collections::BTreeSet;

use claimant_core::error::Chain;
use claimant_core::{Clock as _, ConsumerName, Error, SystemClock};
use claimant_operate::dead::{DeadLetterQueue, QUEUES_AT_ONCE, Selection, Unseen};
use claimant_operate::keys::Keys;
use claimant_operate::open::find_meant;
use claimant_operate::target::{Place, Queue};
use futures_util::future::join_all;
use maud::{Markup, html};
use serde::Serialize;

use super::dead;
use super::key_now::{self, KeyNow};
use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::source::MessageFacts;
use crate::timeline::words::{NO_ID, id_of, is_whole};
use crate::timeline::{self, Fact, Kind, Step, What, tell};
use crate::ui::badge::{Tone, badge};
use crate::ui::nav::Tab;
use crate::ui::{steps, text};

/// Why it is not said where the message is.
const NOT_KNOWN: &str = "Where it is now is not known: SQS shows a message only to who receives it, and this console receives none from the \
    queues that functions read.";

/// What is said in its place of what may be no id.
const OR_A_KEY: &str =
    "This is looked for as the beginning of a message's id. If it is a key: “Look for its key” finds it.";

/// Why no line is read.
const NOT_WHOLE: &str = "Log lines are searched for by a whole id, and this is the beginning of one.";

/// What is known of a message.
#[derive(Serialize)]
pub(super) struct Trace {
    id: String,
    /// The outcome of its last receive, by the lines of a log.
    outcome: Option<String>,
    says: Vec<String>,
    keys: Vec<KeyNow>,
    letter: Option<Letter>,
    /// Whether the dead letters were read: to SQS each is a receive.
    was_read: bool,
    steps: Vec<Step>,
    left_out: usize,
    missing: Option<String>,
}

/// The message as a dead letter.
#[derive(Serialize)]
struct Letter {
    /// The id of the message that was looked for, which it has or had: all of it.
    #[serde(skip)]
    id: String,
    message_id: String,
    queue: String,
    group: String,
    outcome: Option<String>,
    cause: String,
    record: Option<String>,
    /// What is shown of it.
    body: String,
    body_bytes: usize,
}

/// Why a message is not looked for among dead letters.
const NO_DEAD_LETTERS: &str = "No dead-letter queue is known here, so no dead letter was looked at.";

pub(super) async fn page(console: &Console, ask: &Ask, id: String) -> Result<Trace, Error> {
    let id = id_of(&id).ok_or_else(|| Error::invalid(format!("“{id}” {NO_ID}")))?;
    let was_read = ask.query.flag("read")?;
    let looked = if was_read { Looked::among_all(console, &id).await } else { Looked::default() };
    let mut says = if was_read { looked.says(console, &id) } else { Vec::new() };
    let letter = looked.letter;
    let id = letter.as_ref().map_or(id, |letter| letter.id.clone());
    let known = match is_whole(&id) {
        true => console.source().message(&id).await?.unwrap_or_default(),
        false => MessageFacts { missing: Some(NOT_WHOLE.to_owned()), ..MessageFacts::default() },
    };
    let outcome = last_outcome(&known.facts);
    if let Some((fact, outcome)) = &outcome {
        let function = fact.process.as_ref().map_or("its function", |process| &process.function);
        let at = timeline::words::clock(fact.at, SystemClock.now());
        says.push(format!("By what {function} logged of its last receive, it is {outcome}, at {at}."));
    }
    if letter.is_none() {
        says.push(if is_whole(&id) { NOT_KNOWN } else { OR_A_KEY }.to_owned());
    }
    let outcome = outcome.map(|(_, outcome)| outcome.to_owned());
    let mut records: Vec<_> = letter.iter().filter_map(|letter| letter.record.clone()).collect();
    match add_records(&mut records, console, &known.facts, &id).await {
        Ok(of_two) => says.extend(of_two),
        Err(error) => {
            says.push(timeline::words::sentence(&format!("whether its id is a key is not known: {}", Chain(&error))));
        }
    }
    let keys = key_now::of(console, records.iter().map(String::as_str), &id, outcome.as_deref()).await;
    let told = tell(known.facts, &id, SystemClock.now());
    let (mut steps, left_out) = told.map_or_else(Default::default, |told| (told.steps, told.left_out));
    for step in steps.iter_mut().filter(|step| step.kind == Kind::Claim) {
        // No step tells of its coming to a process.
        let parts = [step.detail.take(), step.process.clone()];
        step.detail = Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" · "));
    }
    Ok(Trace { id, outcome, says, keys, letter, was_read, steps, left_out, missing: known.missing })
}

/// Returns the outcome of the last receive, of whose events each has a line. The line of an earlier one, which went on, can come last.
fn last_outcome(facts: &[Fact]) -> Option<(&Fact, &str)> {
    let outcomes = || {
        facts.iter().filter_map(|fact| match &fact.what {
            What::Finished(finished) => Some((fact, finished)),
            _ => None,
        })
    };
    let last = outcomes().filter_map(|(_, one)| one.receive).max();
    let of_last = outcomes().filter(|(_, one)| last.is_some() && one.receive == last);
    let (fact, finished) = of_last.min_by_key(|(_, one)| one.rank()).or_else(|| outcomes().next_back())?;
    Some((fact, finished.outcome.as_str()))
}

/// What a look for the message among the dead letters of all queues has met.
#[derive(Default)]
struct Looked {
    letter: Option<Letter>,
    looked_at: usize,
    unseen: Unseen,
    /// Of queues that were not read to the end, why.
    not_read: Vec<String>,
    /// Of queues of which SQS moves letters on, where to.
    moved_on: Vec<String>,
}

impl Looked {
    async fn among_all(console: &Console, id: &str) -> Self {
        let (place, mut looked) = (console.place(), Self::default());
        for some in place.dead_letter_queues().chunks(QUEUES_AT_ONCE) {
            let all = join_all(some.iter().map(|queue| Self::among(place, queue, id))).await;
            all.into_iter().for_each(|one| looked.add(one));
            if looked.letter.is_some() {
                break;
            }
        }
        looked
    }

    /// Adds what was met in another queue.
    fn add(&mut self, one: Self) {
        self.letter = self.letter.take().or(one.letter);
        self.looked_at += one.looked_at;
        self.unseen += one.unseen;
        self.not_read.extend(one.not_read);
        self.moved_on.extend(one.moved_on);
    }

    /// Looks in one queue. One that gives no answer keeps no other from being looked at.
    async fn among(place: &Place, queue: &Queue, id: &str) -> Self {
        let mut looked = Self::default();
        if let Err(error) = looked.read(place, queue, id).await {
            looked.not_read.push(format!("The dead letters of {} were not all read: {}.", queue.name, Chain(&error)));
        }
        looked
    }

    async fn read(&mut self, place: &Place, queue: &Queue, id: &str) -> Result<(), Error> {
        let dead = DeadLetterQueue::open_in(place, &queue.url).await?.with_bodies_of(0);
        if let Some((to, receives)) = dead.moves_on_to().zip(dead.moves_on_after()) {
            let from = &queue.name;
            self.moved_on
                .push(format!("SQS moves letters of {from} on to {to} after {receives} receives: it may be there."));
        }
        let page = dead.page(&Selection::id_begins(id), None, 1, dead::LOOKS_MAX).await?;
        (self.looked_at, self.unseen) = (page.looked_at, page.unseen);
        self.letter = page.letters.first().map(|letter| Letter {
            id: letter.id_that_begins(id).unwrap_or(id).to_owned(),
            message_id: letter.message_id.clone(),
            queue: queue.name.clone(),
            group: letter.fingerprint.to_string(),
            outcome: letter.why.outcome.clone(),
            cause: letter.why.error.clone().unwrap_or_else(|| letter.cause()),
            record: letter.why.record.clone(),
            body: text::beginning(letter.body().to_owned()),
            body_bytes: letter.body_bytes(),
        });
        Ok(())
    }

    fn says(&self, console: &Console, id: &str) -> Vec<String> {
        if let Some(letter) = &self.letter {
            let is_in = format!("It is in the dead-letter queue {}: {}.", letter.queue, letter.cause);
            return [is_in].into_iter().chain(self.unseen.stay_hidden_in_words()).collect();
        }
        let queues = console.place().dead_letter_queues().len();
        let which = if self.not_read.is_empty() { "the dead letters" } else { "those that were read" };
        let looked_at = text::counted(self.looked_at as u64, "letter was", "letters were");
        let it = if is_whole(id) { "It".to_owned() } else { format!("A letter whose id begins with {id}") };
        let absent = || format!("{it} is not among {which}: {looked_at} looked at.");
        let first = match queues {
            0 => Some(NO_DEAD_LETTERS.to_owned()),
            _ if self.looked_at == 0 && self.not_read.len() == queues => None,
            _ => Some(dead::not_among(&it, self.looked_at, self.unseen).unwrap_or_else(absent)),
        };
        let left_out = console.place().left_out.iter().map(|one| timeline::words::sentence(one));
        let stay_hidden = self.unseen.stay_hidden_in_words();
        first
            .into_iter()
            .chain(stay_hidden)
            .chain(self.not_read.clone())
            .chain(self.moved_on.clone())
            .chain(left_out)
            .collect()
    }
}

/// Adds the records of the message's own id, which is the key of consumers that name no other, as far as they are known. Returns a sentence
/// for each key that has two.
async fn add_records(
    records: &mut Vec<String>,
    console: &Console,
    facts: &[Fact],
    id: &str,
) -> Result<Vec<String>, Error> {
    let mut of_two = Vec::new();
    for consumer in consumers(facts) {
        let Ok(consumer) = ConsumerName::new(consumer) else { continue };
        let Ok(ids) = Keys::ids(id, Some(&consumer)) else { continue };
        let meant = find_meant(console.stores().await?, &ids).await?;
        of_two.extend(meant.two().map(|two| {
            format!(
                "A key of it has two records, {two}: functions go by the one that they write now, and not by the other, which is left from \
                 before .hashed_keys() was added to its consumer or removed."
            )
        }));
        for one in meant.all().filter(|one| one.record.is_some()) {
            let record_id = one.id.as_str().to_owned();
            if !records.contains(&record_id) {
                records.push(record_id);
            }
        }
    }
    Ok(of_two)
}

/// The consumers that claimed for it, however often it was received.
fn consumers(facts: &[Fact]) -> BTreeSet<&str> {
    let claimed = facts.iter().filter_map(|fact| match &fact.what {
        What::Claimed(claim) => Some(claim.consumer.as_str()),
        _ => None,
    });
    claimed.collect()
}

impl Page for Trace {
    const TAB: Tab = Tab::Messages;

    fn title(&self) -> String {
        format!("Message {}", timeline::words::short(&self.id))
    }

    fn below(&self) -> Markup {
        html! {
            section .story aria-label="What is known of it" {
                header { @if let Some(outcome) = &self.outcome { (badge(Tone::of_outcome(outcome), outcome)) } code .soft { (self.id) } }
                @for (at, sentence) in self.says.iter().enumerate() { p class=[(at == 0).then_some("says")] { (sentence) } }
            }
            (self.looks())
            (key_now::draw(&self.keys))
            @if let Some(letter) = &self.letter { (letter.draw()) }
            section {
                h2 { "What its functions logged" }
                @if let Some(missing) = &self.missing { p .soft { (missing) } }
                @if !self.steps.is_empty() { (steps::timeline(&self.steps, self.left_out)) }
            }
        }
    }
}

impl Trace {
    /// Where else it can be looked for, and what that costs.
    fn looks(&self) -> Markup {
        html! {
            section {
                div .acts {
                    @if !self.was_read {
                        form .act method="get" action=(text::path("/messages/", &self.id)) {
                            input type="hidden" name="read" value="true";
                            button type="submit" { "Look for it among the dead letters" }
                        }
                    }
                    form .act method="get" action="/keys" {
                        input type="hidden" name="text" value=(self.id);
                        button type="submit" { "Look for its key" }
                    }
                }
                @if !self.was_read { p .soft.small { (dead::LOOK_COSTS) } }
                p .soft.small {
                    "A key is found by the message that claimed it last. There is no index of that: some thousands of records are read."
                }
            }
        }
    }
}

impl Letter {
    fn draw(&self) -> Markup {
        html! {
            section .card {
                h2 { a href=(dead::path(&self.group, &self.queue)) { "Dead letter" } " " (dead::outcome(self.outcome.as_deref())) }
                (text::body(&self.body, self.body_bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::Timestamp;

    use super::*;
    use crate::timeline::{Claim, Finished};

    fn fact(what: What) -> Fact {
        Fact { at: Timestamp::from_millis(1), message: "a".into(), process: None, invocation: None, what }
    }

    /// Each costs requests to the table.
    #[test]
    fn a_consumer_is_asked_for_once() {
        let claimed = |consumer: &str, fence| {
            let (consumer, owner) = (consumer.into(), "1f0c".into());
            fact(What::Claimed(Claim {
                consumer,
                owner,
                fence,
                attempt: 1,
                lease_until: Timestamp::from_millis(9),
                taken_over: false,
            }))
        };
        let facts = [claimed("order", 1), claimed("order", 2), claimed("audit", 1), fact(What::Deleted)];
        assert_eq!(consumers(&facts).into_iter().collect::<Vec<_>>(), ["audit", "order"]);
    }

    #[test]
    fn the_last_outcome_is_that_of_all_events_of_the_last_receive() {
        for (lines, wanted) in [
            (&[(Some(1), "retry"), (Some(2), "completed")][..], Some("completed")),
            (&[(Some(1), "completed"), (Some(2), "retry"), (Some(2), "completed")], Some("retry")),
            (&[(Some(2), "blocked"), (Some(2), "rejected")], Some("rejected")),
            (&[(Some(2), "rejected"), (Some(2), "blocked")], Some("rejected")),
            (&[(Some(2), "completed"), (Some(1), "lease_lost")], Some("completed")),
            (&[(None, "retry"), (None, "completed")], Some("completed")),
            (&[], None),
        ] {
            let finished = |(receive, outcome): &(Option<u32>, &str)| {
                fact(What::Finished(Finished { outcome: (*outcome).into(), receive: *receive, ..Finished::default() }))
            };
            let facts: Vec<_> = lines.iter().map(finished).collect();
            assert_eq!(last_outcome(&facts).map(|(_, outcome)| outcome), wanted, "{lines:?}");
        }
    }
}
