//! `claimant release`, `reset`, `forget` and `resolve`: acts on the records of keys.

use claimant_core::error::Chain;
use claimant_core::protocol::Act;
use claimant_core::{ConsumerName, Error, RecordId};
use claimant_operate::keys::{Acted, Keys, Order, operator};
use claimant_operate::open::{OpenStore, find};
use serde_json::{Value, json};

use super::options::{OutputOptions, TargetOptions, WriteOptions};
use super::table::harmless;
use super::{confirm, parse};
use crate::exit::Ended;
use crate::output::{say, say_json};

/// Keys of one command.
const KEYS_MAX: usize = 1_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each act takes the key's next fencing token, so that no earlier owner can still complete it, and leaves a note of who did it, when \
and why on the record. A key that a live owner works on is refused, unless --force is given: its work can then run twice.

Exit codes: 0 where all is as asked for, 1 where a key was refused or the question answered with no, 2 where it is not known.")]
pub(crate) struct OnKeys {
    /// The records' ids, as lists and dead letters show them; or with --consumer the keys
    #[arg(value_name = "KEY", required = true, num_args = 1..=KEYS_MAX)]
    keys: Vec<String>,

    /// The consumer of the keys
    #[arg(long, value_name = "NAME", value_parser = parse::consumer)]
    consumer: Option<ConsumerName>,

    /// Do it although an owner works on the key, or it is completed: its work can run twice, and at the same time
    #[arg(long)]
    force: bool,

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
    acted: Option<Acted>,
}

/// Acts on each of the keys.
pub(crate) async fn run(act: Act, options: OnKeys) -> Result<Ended, Error> {
    // All of them first: a slip in the last leaves none half done.
    let meant = |key: &String| {
        let ids = Keys::ids(key, options.consumer.as_ref());
        ids.map_err(|error| Error::invalid(format!("{}: {}", harmless(key), Chain(&error))))
    };
    let meant: Vec<_> = options.keys.iter().map(meant).collect::<Result<_, _>>()?;
    let place = options.target.open().await?;
    let stores = place.open_stores(options.target.skew).await?;
    let mut results = Vec::new();
    for ids in &meant {
        let (id, store) = find(&stores, ids).await?;
        let acted = on_one(act, &id, store, &options).await?;
        if !options.output.json {
            say(format!("{}: {}", harmless(id.as_str()), in_words(act, acted.as_ref())));
        }
        results.push(Outcome { id, acted });
    }
    if options.output.json {
        say_json(&json!({ "act": act.as_str(), "keys": results.iter().map(document).collect::<Vec<_>>() }));
    }
    let good = |result: &Outcome| result.acted.as_ref().is_some_and(Acted::is_done);
    Ok(if results.iter().all(good) { Ended::Well } else { Ended::WithFaults })
}

/// `None` where the question was answered with no.
async fn on_one(act: Act, id: &RecordId, store: &OpenStore, options: &OnKeys) -> Result<Option<Acted>, Error> {
    let WriteOptions { dry_run, why, .. } = &options.write;
    let mut order = Order {
        id: id.clone(),
        act,
        by: operator(),
        why: why.clone().unwrap_or_default(),
        force: options.force,
        dry_run: true,
    };
    let planned = store.keys.act(&order).await?;
    if *dry_run || !matches!(planned, Acted::WouldWrite { .. }) {
        return Ok(Some(planned));
    }
    let inspected = store.keys.inspect(id).await?;
    let question = format!("{}: {} {}?", harmless(id.as_str()), inspected.headline(), asks(act, options.force));
    if !confirm::confirmed(&question, &options.write)? {
        return Ok(None);
    }
    order.dry_run = false;
    store.keys.act(&order).await.map(Some)
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

fn in_words(act: Act, acted: Option<&Acted>) -> String {
    acted.map_or_else(|| "left as it is".to_owned(), |acted| acted.in_words(act))
}

fn document(result: &Outcome) -> Value {
    result.acted.as_ref().map_or_else(
        || json!({ "record": result.id.as_str(), "outcome": "declined", "why": null, "before": null, "after": null }),
        |acted| acted.to_json(&result.id),
    )
}
