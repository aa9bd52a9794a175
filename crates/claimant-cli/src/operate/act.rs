//! `claimant release`, `reset`, `forget` and `resolve`: acts on the records of keys.

use std::collections::BTreeSet;
use std::time::Duration;

use claimant_core::error::Chain;
use claimant_core::protocol::Act;
use claimant_core::{ConsumerName, Error, Record, RecordId, Timestamp};
use claimant_operate::keys::{Acted, Beside, Keys, Order, Version, operator};
use claimant_operate::open::{Located, Meant, OpenStore, find_meant};
use claimant_operate::pauses::{self, Pause};
use claimant_operate::target::Place;
use claimant_operate::text::{harmless, typed};
use serde_json::{Value, json};

use super::interrupt::{self, Stop};
use super::options::{OutputOptions, TargetOptions, WriteOptions};
use super::pauses::{NOT_LOOKED_AT, in_words, note_not_known};
use super::{confirm, parse};
use crate::exit::Ended;
use crate::output::{say, say_json};

/// Keys of one command.
const KEYS_MAX: usize = 1_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each act takes the key's next fencing token, so that no earlier owner can still complete it, and leaves a note of who did it, when \
and why on the record. A key that a live owner works on is refused, unless --force is given: its work can then run twice.

A key can have two records, one in the clear (consumer#key) and one that is hashed (consumer~hash), since .hashed_keys() was added to its \
consumer or removed. Then consumer#key is refused, and both ids are said: with --exact the id that is given is that of the record.

The keys are acted on one after the other, and what came of each is printed. Where the store gives no answer for one, that is said of \
it, and the next ones are acted on all the same.

An act on a breaker's record (claimant-breaker#NAME) switches no event source mapping on that the breaker has paused: it names them, and \
`claimant resume` does.

Exit codes: 0 where all is as asked for, 1 where a key was refused, had gone on since the question, or the question was answered with no, 2 where the store gave no answer \
for a key, 130 where Ctrl-C or SIGTERM ended it.")]
pub(crate) struct OnKeys {
    /// The records' ids, as lists and dead letters show them, consumer#key also of a hashed key; or with --consumer the keys; 1,000 at most
    #[arg(value_name = "KEY", required = true, value_parser = parse::key())]
    keys: Vec<String>,

    /// The consumer of the keys
    #[arg(long, value_name = "NAME", value_parser = parse::consumer)]
    consumer: Option<ConsumerName>,

    /// Take each KEY for the very id of its record: consumer#key then means no record that is hashed
    #[arg(long, conflicts_with = "consumer")]
    exact: bool,

    /// Do it although an owner works on the key, or it is completed: its work can run twice, and at the same time
    #[arg(long)]
    force: bool,

    /// Why, for those who look at it later
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,

    #[command(flatten)]
    write: WriteOptions,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// What came of one key.
struct Outcome {
    id: RecordId,
    came: Came,
}

enum Came {
    /// This came of it, as of this time, with this margin.
    Acted(Acted, (Timestamp, Duration)),
    /// The key has two records, of these ids, and which one is meant was not said.
    Two { named: String, ids: Vec<RecordId> },
    /// The question was answered with no.
    Declined,
    /// The store gave no answer that can be used, and nothing was written.
    Failed(Error),
}

/// Acts on each of the keys.
pub(crate) async fn run(act: Act, options: OnKeys) -> Result<Ended, Error> {
    parse::at_most(KEYS_MAX, "keys", &options.keys)?;
    // All of them first: a slip in the last leaves none half done.
    let meant = |key: &String| {
        let ids = if options.exact {
            RecordId::from_stored(key.as_str()).map(|id| vec![id]).map_err(Error::from)
        } else {
            Keys::ids(key, options.consumer.as_ref())
        };
        ids.map_err(|error| Error::invalid(format!("{}: {}", typed(key), Chain(&error))))
    };
    let meant: Vec<_> = options.keys.iter().map(meant).collect::<Result<_, _>>()?;
    let place = options.target.open().await?;
    let stores = options.target.open_stores(&place).await?;
    if options.write.dry_run {
        let all: BTreeSet<_> = stores.iter().filter_map(|store| place.whereabouts_of(store)).collect();
        all.iter().for_each(|at| confirm::note_at(Some(at)));
    } else {
        options.output.note_where(&place);
    }
    let (mut outcomes, mut asked) = (Vec::new(), Ok(()));
    let stop = Stop::listen("Ending after this key. Ctrl-C again ends at once.");
    for ids in &meant {
        if stop.is_asked() {
            break;
        }
        match on_one(act, ids, (&place, &stores), (&options, &stop)).await {
            Ok(None) => break,
            Ok(Some(outcome)) => {
                if !options.output.json {
                    say(format!("{}: {}", typed(outcome.id.as_str()), harmless(&outcome.in_words(act))));
                }
                outcomes.push(outcome);
            }
            // Nor can it be asked of the others.
            Err(error) => {
                asked = Err(error);
                break;
            }
        }
    }
    let paused = still_paused(&place, &outcomes, &stop).await;
    if !options.output.json {
        paused.iter().for_each(|pause| say(harmless(&in_words(pause))));
    }
    let not_reached = &options.keys[outcomes.len()..];
    if options.output.json && (asked.is_ok() || !outcomes.is_empty()) {
        let keys: Vec<_> = outcomes.iter().map(Outcome::to_json).collect();
        let paused: Vec<_> = paused.iter().map(Pause::to_json).collect();
        say_json(&json!({ "act": act.as_str(), "keys": keys, "paused": paused, "not_reached": not_reached }));
    } else if stop.is_asked() && !not_reached.is_empty() {
        let keys: Vec<_> = not_reached.iter().map(|key| typed(key)).collect();
        say(interrupt::ended_before(&keys));
    }
    asked?;
    if !not_reached.is_empty() {
        return Ok(Ended::Interrupted);
    }
    let not_known: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_not_known()).collect();
    if let [first, ..] = not_known.as_slice() {
        let (some, keys, id) = (not_known.len(), outcomes.len(), typed(first.id.as_str()));
        return Err(Error::new(format!(
            "the store gave no usable answer for {some} of {keys} keys, of which {id} is the first"
        )));
    }
    Ok(if outcomes.iter().all(Outcome::is_done) { Ended::Well } else { Ended::WithFaults })
}

/// Returns the mappings that the breakers among these keys have paused: an act on a breaker's record switches none of them on. After
/// Ctrl-C or SIGTERM, what came of the keys does not wait for that.
async fn still_paused(place: &Place, outcomes: &[Outcome], stop: &Stop) -> Vec<Pause> {
    let breakers: Vec<_> = outcomes.iter().filter_map(|outcome| pauses::breaker(outcome.id.as_str())).collect();
    if breakers.is_empty() {
        return Vec::new();
    }
    let (paused, not_known) = stop
        .or(pauses::paused_by(place, &breakers))
        .await
        .unwrap_or_else(|| (Vec::new(), Some(NOT_LOOKED_AT.to_owned())));
    note_not_known(not_known.as_deref());
    paused
}

/// Acts on the key that has one of these ids; nothing where Ctrl-C or SIGTERM is the answer to whether to do it.
///
/// # Errors
/// When it cannot be asked whether to do it.
async fn on_one(
    act: Act,
    ids: &[RecordId],
    (place, stores): (&Place, &[OpenStore]),
    (options, stop): (&OnKeys, &Stop),
) -> Result<Option<Outcome>, Error> {
    let meant = match (find_meant(stores, ids).await, ids) {
        (Ok(meant), _) => meant,
        (Err(error), [id, ..]) => return Ok(Some(Outcome { id: id.clone(), came: Came::Failed(error) })),
        (Err(error), []) => return Err(error),
    };
    if let Some(named) = meant.two() {
        let ids = meant.all().map(|one| one.id.clone()).collect();
        return Ok(Some(Outcome { id: meant.first.id, came: Came::Two { named, ids } }));
    }
    let Meant { first: Located { id, store, .. }, .. } = meant;
    let order = Order {
        id: id.clone(),
        act,
        by: operator(),
        why: options.why.clone().unwrap_or_default(),
        force: options.force,
        dry_run: options.write.dry_run,
    };
    let came = |acted| Came::Acted(acted, store.keys.now());
    let came = match question(&order, store).await {
        Err(error) => Came::Failed(error),
        Ok(Question::Needless(acted)) => came(acted),
        Ok(Question::Ask(question, record)) => {
            let question = confirm::at(&question, place.whereabouts_of(store).as_deref());
            match confirm::answered(&question, &options.write, stop).await? {
                None => return Ok(None),
                Some(false) => Came::Declined,
                Some(true) => {
                    // Only what was asked about was confirmed.
                    let confirmed = (!options.write.yes).then(|| Version::of(Some(&record)));
                    store.keys.act_on(&order, confirmed.as_ref()).await.map_or_else(Came::Failed, came)
                }
            }
        }
    };
    Ok(Some(Outcome { id, came }))
}

/// What is asked before something is written.
enum Question {
    /// This, about this record.
    Ask(String, Box<Record>),
    /// Nothing is to be written.
    Needless(Acted),
}

async fn question(order: &Order, store: &OpenStore) -> Result<Question, Error> {
    let planned = store.keys.act(&Order { dry_run: true, ..order.clone() }).await?;
    let before = match planned {
        Acted::WouldWrite { before, .. } if !order.dry_run => before,
        planned => return Ok(Question::Needless(planned)),
    };
    let (id, inspected) = (typed(order.id.as_str()), store.keys.inspect(&order.id).await?);
    let asks =
        Beside::of(&order.id).map_or_else(|| asks(order.act, order.force), |beside| beside.asks(order.act).to_owned());
    let question = format!("{id}: {} {asks}?", inspected.headline());
    Ok(Question::Ask(question, before))
}

fn asks(act: Act, force: bool) -> String {
    let asks = match act {
        Act::Release => "Let it run again",
        Act::Reset => "Let it run again, its attempts counted from 0",
        Act::Forget => "Forget it, so that its next message runs as new",
        Act::Resolve => "Count it as done",
    };
    if force { format!("{asks}, although it can then run twice") } else { asks.to_owned() }
}

impl Outcome {
    /// Returns whether the key is now, or would be, as the act leaves it.
    const fn is_done(&self) -> bool {
        matches!(&self.came, Came::Acted(acted, _) if acted.is_done())
    }

    /// Returns whether the store gave no answer for it.
    const fn is_not_known(&self) -> bool {
        matches!(self.came, Came::Failed(_) | Came::Acted(Acted::Unknown { .. }, _))
    }

    fn in_words(&self, act: Act) -> String {
        match &self.came {
            Came::Acted(acted, _) => acted.in_words(act, &self.id),
            Came::Two { named, .. } => {
                format!(
                    "refused: the key has two records, {named}. Give the id of the one that is meant, with --exact; claimant inspect shows both."
                )
            }
            Came::Declined => "left as it is".to_owned(),
            Came::Failed(error) => format!("failed, and nothing was written: {}", Chain(error)),
        }
    }

    fn to_json(&self) -> Value {
        let nothing = |outcome: &str, why: Option<String>| json!({ "record": self.id.as_str(), "outcome": outcome, "why": why, "before": null, "after": null });
        match &self.came {
            Came::Acted(acted, at) => acted.to_json(&self.id, *at),
            Came::Two { ids, .. } => {
                let mut refused = nothing("refused", Some("two_records".to_owned()));
                refused["records"] = ids.iter().map(RecordId::as_str).collect();
                refused
            }
            Came::Declined => nothing("declined", None),
            Came::Failed(error) => nothing("failed", Some(Chain(error).to_string())),
        }
    }
}
