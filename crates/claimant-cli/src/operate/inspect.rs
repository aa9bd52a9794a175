//! `claimant inspect`: one key in words, its dead letters, and what would happen next.

use std::collections::BTreeSet;

use claimant_core::error::Chain;
use claimant_core::{ConsumerName, Error, RecordId, State};
use claimant_operate::dead::{DeadLetter, DeadLetterQueue, LOOKED_AT_MAX, QUEUES_AT_ONCE, Selection};
use claimant_operate::keys::{Inspection, Keys, record_lines};
use claimant_operate::open::{Meant, OpenStore, find_meant};
use claimant_operate::target::{Place, Queue};
use claimant_operate::text::{harmless, typed};
use futures_util::future::join_all;
use serde_json::Value;

use super::dead::several::{self, What};
use super::dead::which::{self, Watch};
use super::interrupt::Stop;
use super::options::{OutputOptions, TargetOptions};
use super::table::ago;
use super::{needs_a_person, parse};
use crate::exit::Ended;
use crate::output::{note, say, say_json};

/// Letters of a queue that are received: to look at all, of 100,000, would take minutes, and hide them meanwhile.
const RECEIVED_MAX: usize = 2_000;

/// Its record is the same while a schedule is to send the message again.
const MAY_WAIT: &str = " Or it waits for a schedule that sends it again: if so, the function's log says \"message is scheduled\", and when, for \
                        the message below, as message_id or first_message_id: the newest line holds.";

/// Explain a key: its record in words, its dead letters, and what would happen if its message came now.
///
/// KEY is the id of a record, as lists and dead letters show it (order-confirmation#ord-1001), or with --consumer the key alone. Where the key has
/// two records, one in the clear and one that is hashed, both are shown. What comes next is decided by the code that the functions run. Dead letters are looked for in the dead-letter queues that are known:
/// those of a local cloud, of a stack, or of a queue that --queue names; the queues themselves are not read, since to look at a message
/// is to receive it, and that counts towards maxReceiveCount. Of a dead-letter queue of an account 2,000 letters are received, which hides
/// them from others meanwhile. `claimant dead show` looks at 100,000 for the id of the record's message, and `claimant dead list --record KEY`
/// for those that name the record, which letters that SQS moved do not.
///
/// Exit codes: 0 where the key needs no one, as where the record is that of a breaker or a limit, 1 where it is stuck, parked, rejected or
/// failed, 2 where it could not be looked at, 130 where Ctrl-C or SIGTERM ended it.
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    /// The record's id, or with --consumer the key
    #[arg(value_name = "KEY", value_parser = parse::key())]
    key: String,

    /// The consumer of the key
    #[arg(long, value_name = "NAME", value_parser = parse::consumer)]
    consumer: Option<ConsumerName>,

    /// Do not look for its dead letters
    #[arg(long)]
    no_dead_letters: bool,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// Explains a key.
pub(crate) async fn run(options: Inspect) -> Result<Ended, Error> {
    let target = &options.target;
    let place = if options.no_dead_letters { target.open().await? } else { target.open_with_dead_letters().await? };
    let ids = Keys::ids(&options.key, options.consumer.as_ref())?;
    options.output.note_where(&place);
    let stores = target.open_stores(&place).await?;
    let meant = find_meant(&stores, &ids).await?;
    let inspections = meant.all().map(|one| Ok((one.inspect()?, one.store))).collect::<Result<Vec<_>, Error>>()?;
    if !options.output.json {
        two(&meant).iter().for_each(say);
        for (inspection, store) in &inspections {
            let may_wait = inspection.is_of_work() && inspection.state == Some(State::Failed) && place.has_schedules();
            print(inspection, store, may_wait);
        }
    }
    let stop = which::stop();
    let letters = if options.no_dead_letters {
        DeadLetters::none(Looked::NotWanted)
    } else if !inspections.iter().any(|(one, _)| one.is_of_work()) {
        DeadLetters::none(Looked::NoneCanBe)
    } else {
        dead_letters(&place, !target.queues.is_empty(), (&ids, &inspections), &stop).await
    };
    if options.output.json {
        say_json(&document(&inspections, &letters));
    } else {
        let only = if let [(only, _)] = inspections.as_slice() { Some(only.id.as_str()) } else { None };
        letters.lines(only).iter().for_each(say);
    }
    if stop.is_asked() && letters.looked == Looked::InPart {
        return Ok(Ended::Interrupted);
    }
    let needs = |one: &Inspection| one.is_of_work() && one.state.is_some_and(needs_a_person);
    Ok(if inspections.iter().any(|(one, _)| needs(one)) { Ended::WithFaults } else { Ended::Well })
}

/// A dead letter of the key, with its queue.
struct Found {
    queue: String,
    letter: DeadLetter,
    /// The record that it is of, where that is known.
    record: Option<String>,
}

/// The dead letters of a key, as far as they were looked for.
struct DeadLetters {
    found: Vec<Found>,
    looked: Looked,
}

/// Which dead letters were looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looked {
    /// None: that was not wanted.
    NotWanted,
    /// None: the record is of no message.
    NoneCanBe,
    /// None: there is no dead-letter queue that is known, and no queue was named.
    NoQueue,
    /// None: there is no dead-letter queue that is known of the queues that were named.
    NoneOfNamed,
    /// Not all of them.
    InPart,
    /// All of them.
    Whole,
}

impl DeadLetters {
    const fn none(looked: Looked) -> Self {
        Self { found: Vec::new(), looked }
    }

    /// Says what was found, or why nothing was, beside the only record that is shown, if it is one.
    fn lines(&self, only: Option<&str>) -> Vec<String> {
        let mut lines: Vec<_> = self.found.iter().map(|found| found.line(only)).collect();
        let none = lines.is_empty();
        let nothing = match (self.looked, none) {
            (Looked::NotWanted, _) => "Its dead letters were not looked for (--no-dead-letters).",
            (Looked::NoneCanBe, _) => "It has no dead letters: it is the record of a breaker or a limit.",
            (Looked::NoQueue, _) => {
                "Its dead letters were not looked for: no dead-letter queue is known. With --table or --store, and without --stack, --queue URL \
                 names one, or the queue that has it."
            }
            (Looked::NoneOfNamed, _) => "Its dead letters were not looked for: no dead-letter queue is known.",
            (Looked::InPart, true) => "No dead letter of it was found, but not all were looked at.",
            (Looked::InPart, false) => "Not all dead letters were looked at.",
            (Looked::Whole, true) => "No dead letter of it was found.",
            (Looked::Whole, false) => return lines,
        };
        lines.push(nothing.to_owned());
        lines
    }
}

impl Found {
    fn line(&self, only: Option<&str>) -> String {
        let Self { queue, letter, record } = self;
        let another = record.as_deref().filter(|id| Some(*id) != only);
        let of = another.map_or_else(String::new, |id| format!(", of {}", typed(id)));
        let error = letter.why.error.as_deref().unwrap_or("no error given");
        let sent = letter.sent_at.map_or_else(String::new, |at| format!(", sent {}", ago(at)));
        format!("In {queue}: {}{of}{sent}: {}", letter.message_id, harmless(error))
    }
}

/// One record as it is shown, with its store.
type Shown<'a> = (Inspection, &'a OpenStore);

/// Returns the record that a letter is of, where that is known. One that names none, as SQS moves it, is of that of its message.
fn record_of(letter: &DeadLetter, shown: &[Shown<'_>]) -> Option<String> {
    if letter.why.record.is_some() {
        return letter.why.record.clone();
    }
    let mut of_message = shown.iter().filter(|(one, _)| message_of(one).is_some_and(|id| letter.has_id(id)));
    // Both can be of one message, which was worked on before the change and after it.
    let (one, other) = (of_message.next(), of_message.next());
    one.filter(|_| other.is_none()).map(|(one, _)| one.id.as_str().to_owned())
}

fn message_of(inspection: &Inspection) -> Option<&str> {
    inspection.record.as_ref().map(|record| record.message_id.as_str())
}

/// The dead letters of the key, which name its records by one of these ids, also where they are gone. What cannot be read is told on standard
/// error, and the rest is shown.
async fn dead_letters(
    place: &Place,
    is_named: bool,
    (ids, shown): (&[RecordId], &[Shown<'_>]),
    stop: &Stop,
) -> DeadLetters {
    let messages: BTreeSet<_> = shown.iter().filter_map(|(inspection, _)| message_of(inspection)).collect();
    let (mut found, mut is_whole) = (Vec::new(), place.left_out.is_empty());
    let dead = place.dead_letter_queues();
    let is_its = |letter: &DeadLetter| {
        let names_it = |record: &str| ids.iter().any(|id| id.as_str() == record);
        letter.why.record.as_deref().is_some_and(names_it) || messages.iter().any(|id| letter.has_id(id))
    };
    let add = |kept: &mut Vec<DeadLetter>, letter: &DeadLetter| {
        let is_its = is_its(letter);
        kept.extend(is_its.then(|| letter.clone()));
        is_its
    };
    let limit = if place.is_local() { LOOKED_AT_MAX } else { RECEIVED_MAX };
    let what = What { selection: &Selection::default(), limit, add };
    let mut watch = Watch::begin(0, true, stop);
    for some in dead.chunks(QUEUES_AT_ONCE) {
        if stop.is_asked() {
            is_whole = false;
            break;
        }
        let open = async |queue: &Queue| (queue.name.clone(), DeadLetterQueue::open_in(place, &queue.url).await);
        let opened = join_all(some.iter().map(|queue| open(queue))).await;
        for (name, queue) in &opened {
            if let Some(careful) = queue.as_ref().ok().and_then(which::careful) {
                watch.note(format!("{name}: {careful}."));
            }
        }
        for (name, letters, read) in several::read(opened, &what, &mut watch).await {
            let of_key = |letter| Found { queue: name.clone(), record: record_of(&letter, shown), letter };
            found.extend(letters.into_iter().map(of_key));
            match read {
                Ok((_, report)) if !report.unseen.any() => {}
                Ok((queue, report)) => {
                    is_whole = false;
                    let is_limit = report.unseen.cut && report.progress.looked_at >= limit;
                    let is_limit = is_limit && !queue.is_only_looked_at();
                    let more = if is_limit { looks_at_more(&messages, ids) } else { String::new() };
                    watch.note(format!("{name}: not every dead letter was looked at{more}."));
                }
                Err(error) => {
                    is_whole = false;
                    watch.note(format!("{name}: {}", Chain(&error)));
                }
            }
        }
    }
    watch.end();
    // Of a queue that was named by hand it is not known what it is. Its messages may be at work: to receive them would hide them.
    let by_hand = place.queues.iter().filter(|_| place.functions.is_empty() && !place.is_local());
    for queue in by_hand.filter(|queue| !queue.is_dead_letter_queue && queue.dead_letter_queue.is_none()) {
        is_whole = false;
        let name = &queue.name;
        note(format!(
            "{name}: nothing says that it is a dead-letter queue, so it was not read: if it is one, claimant dead list reads it."
        ));
    }
    let looked = match (dead.is_empty(), is_whole) {
        (true, _) if is_named => Looked::NoneOfNamed,
        (true, _) => Looked::NoQueue,
        (false, true) => Looked::Whole,
        (false, false) => Looked::InPart,
    };
    DeadLetters { found, looked }
}

/// Says which commands look at more letters than were received, for these messages and records.
fn looks_at_more(messages: &BTreeSet<&str>, records: &[RecordId]) -> String {
    let messages: Vec<_> = messages.iter().map(|id| harmless(id)).collect();
    let by_message = if messages.is_empty() {
        String::new()
    } else {
        format!("claimant dead show {} looks at more, and ", messages.join(" "))
    };
    // The first means the hashed one, too.
    let record = records.first().map_or_else(String::new, |id| typed(id.as_str()).into_owned());
    format!("; {by_message}claimant dead list --record {record} at more of those that name the record")
}

/// Says that the key has two records, where it has.
fn two(meant: &Meant<'_>) -> Option<String> {
    let two = meant.two()?;
    Some(format!(
        "The key has two records, {two}: one in the clear and one hashed, since .hashed_keys() was added to its consumer or removed. \
         Functions go by the one that they write now, and not by the other, which is left from before. An act on one of them needs its id, \
         with --exact.\n"
    ))
}

fn print(inspection: &Inspection, store: &OpenStore, may_wait: bool) {
    let state = inspection.state.map_or("absent", |state| state.as_str());
    say(format!("{}  ({}, {state})", typed(inspection.id.as_str()), store.name));
    let waits = if may_wait { MAY_WAIT } else { "" };
    say(format!("{}{waits}\n", inspection.headline()));
    if let Some(record) = &inspection.record {
        for (what, value) in record_lines(record, inspection.now) {
            say(format!("  {what:<13} {}", harmless(&value)));
        }
        say("");
    }
    say("If a message came now:");
    for forecast in &inspection.next {
        say(format!("  {}: {}", forecast.case, forecast.says));
    }
    if inspection.record.is_some() {
        say("\nWhat can be done:");
        for possible in &inspection.acts {
            say(format!("  claimant {:<8} {}", possible.act.as_str(), possible.says));
        }
    }
    say("");
}

fn document(shown: &[Shown<'_>], letters: &DeadLetters) -> Value {
    let letter = |found: &Found| {
        let mut letter = found.letter.to_json(false);
        letter["queue"] = found.queue.as_str().into();
        letter["record"] = found.record.as_deref().into();
        letter
    };
    let mut records = shown.iter().map(|(inspection, store)| {
        let mut record = inspection.to_json();
        record["store"] = store.name.as_str().into();
        record
    });
    let mut document = records.next().unwrap_or_default();
    document["other"] = records.next().into();
    document["dead_letters"] = letters.found.iter().map(letter).collect();
    document["dead_letters_complete"] = matches!(letters.looked, Looked::Whole | Looked::NoneCanBe).into();
    document
}
