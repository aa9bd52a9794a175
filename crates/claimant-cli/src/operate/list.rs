//! `claimant list`: records by state, consumer and age.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use claimant_core::protocol::runs;
use claimant_core::{ConsumerName, Error, State};
use claimant_operate::keys::{Found, Listed, Query, record_json, span};
use claimant_operate::open::OpenStore;
use claimant_operate::pauses::{self, Pause};
use claimant_operate::text::{harmless, typed};
use serde_json::{Value, json};

use super::interrupt::Stop;
use super::options::{OutputOptions, TargetOptions, WriteOptions};
use super::pauses::{NOT_LOOKED_AT, in_words, note_not_known};
use super::table::{Fit, Table, age};
use super::{confirm, needs_a_person, parse};
use crate::exit::Ended;
use crate::output::{note, say, say_json};
use crate::progress::Display;

/// Above this price, in US dollars, a list is asked for twice.
const FREE_MAX_DOLLARS: f64 = 0.01;

/// List keys whose work is stuck, parked, rejected or failed: by state, consumer and age, the oldest first.
///
/// stuck: claimed, and the lease is over: its owner died, its handler did not stop when cancelled, or the store gave no answer when
/// it was claimed or ended. parked: may be done; a person decides. rejected: failed for good. failed: runs again when its message comes
/// again. running: claimed now. completed: done. over: the window is over.
///
/// Reads the whole table, since there is no index by state: an index would cost a third write unit for every message. What that
/// costs is told first; above a cent it is asked for.
///
/// Exit codes: 0 where nothing was found, 1 where something was, 2 where the list could not be made whole, since a store gave no answer or
/// its price was not accepted, or nothing was found beside records that claimant did not write, 130 where Ctrl-C or SIGTERM ended it.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// The states [default: stuck parked rejected failed]
    #[arg(value_name = "STATE", value_parser = parse::state())]
    states: Vec<State>,

    /// Only keys of this consumer
    #[arg(long, value_name = "NAME", value_parser = parse::consumer)]
    consumer: Option<ConsumerName>,

    /// Only records last written so long ago: 90s, 15m, 6h, 2d
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    older_than: Option<Duration>,

    /// Only records with this text in their key, error or note, or in the id of the message that claimed them last
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// At most this many keys of each store: of more, those that were found first, whatever their age
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = parse::limit)]
    limit: usize,

    /// Do not ask, whatever it costs
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// Lists keys.
pub(crate) async fn run(options: List) -> Result<Ended, Error> {
    let place = options.target.open().await?;
    let states = if options.states.is_empty() {
        State::ALL.into_iter().filter(|state| needs_a_person(*state)).collect()
    } else {
        options.states.clone()
    };
    let query = Query {
        states,
        consumer: options.consumer.clone(),
        older_than: options.older_than,
        text: options.text.clone(),
        limit: options.limit,
    };
    options.output.note_where(&place);
    let stores = options.target.open_stores(&place).await?;
    let names: Vec<_> = stores.iter().map(|store| store.name.clone()).collect();
    let stop = Stop::listen("Ending; what was found is shown. Ctrl-C again ends at once.");
    // What was read of the stores before is shown also where one cannot be read: it was paid for.
    let (mut lists, mut read) = (Vec::new(), Ok(true));
    for store in stores {
        if stop.is_asked() {
            break;
        }
        match list(&store, &query, (&options, &stop)).await {
            Ok(Some(listed)) => lists.push((store, listed)),
            not_read => {
                read = not_read.map(|_| false);
                break;
            }
        }
    }
    let not_read = &names[lists.len()..];
    let is_ended = stop.is_asked() && (!not_read.is_empty() || lists.iter().any(|(_, listed)| listed.more));
    if lists.is_empty() {
        return read.map(|_| if is_ended { Ended::Interrupted } else { Ended::NotDone });
    }
    let found = lists.iter().any(|(_, listed)| !listed.found.is_empty());
    let breakers =
        lists.iter().flat_map(|(_, listed)| &listed.found).any(|found| pauses::breaker(found.id.as_str()).is_some());
    // Whoever may not ask for mappings and schedules sees the records alone, and that.
    let paused = async { if breakers { pauses::paused(&place).await } else { (Vec::new(), None) } };
    let not_looked_at = || (Vec::new(), breakers.then(|| NOT_LOOKED_AT.to_owned()));
    let (paused, not_known) = stop.or(paused).await.unwrap_or_else(not_looked_at);
    note_not_known(not_known.as_deref());
    if options.output.json {
        let mut document = document(&lists);
        document["not_read"] = not_read.into();
        document["paused"] = paused.iter().map(Pause::to_json).collect();
        say_json(&document);
        for (store, listed) in lists.iter().filter(|(_, listed)| listed.more) {
            note(format!("{}: {}", store.name, more_in_words(listed, &query)));
        }
    } else {
        print(&lists, not_read, &query);
        if place.has_schedules() {
            say_may_wait(&lists);
        }
        paused.iter().for_each(|pause| say(harmless(&in_words(pause))));
    }
    let is_whole = read?;
    if is_ended {
        return Ok(Ended::Interrupted);
    }
    if !is_whole {
        return Ok(Ended::NotDone);
    }
    if found {
        return Ok(Ended::WithFaults);
    }
    for (store, listed) in &lists {
        store.check_known(listed).await?;
    }
    Ok(Ended::Well)
}

/// One store's list, as far as it was read before Ctrl-C or SIGTERM; `None` where its price was not accepted.
async fn list(store: &OpenStore, query: &Query, (options, stop): (&List, &Stop)) -> Result<Option<Listed>, Error> {
    let cost = store.keys.cost().await?;
    let told = format!("{}: this {}.", store.name, cost.in_words());
    if cost.dollars.is_some_and(|dollars| dollars > FREE_MAX_DOLLARS) {
        let yes = WriteOptions { yes: options.yes, ..WriteOptions::default() };
        if confirm::answered(&format!("{told} Go on?"), &yes, stop).await? != Some(true) {
            return Ok(None);
        }
    } else if !options.output.json {
        note(told);
    }
    let (began, mut display) = (Instant::now(), Display::when_long());
    let listed = store.keys.list(query, |progress| {
        let figures =
            format!("{} of about {} records read, {} found", progress.looked_at, cost.size.records, progress.found);
        display.show_text(began.elapsed(), figures);
        if stop.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let listed = listed.await;
    display.end();
    listed.map(Some)
}

fn print(lists: &[(OpenStore, Listed)], not_read: &[String], query: &Query) {
    for (store, listed) in lists {
        if lists.len() + not_read.len() > 1 {
            say(format!("{}:", store.name));
        }
        if listed.found.is_empty() {
            say(format!("{} Records read: {}.", harmless(&query.none_in_words()), listed.looked_at));
        } else {
            let columns = [
                ("KEY", Fit::Middle),
                ("STATE", Fit::Whole),
                ("AGE", Fit::Number),
                ("RUNS", Fit::Number),
                ("ERROR", Fit::End),
            ];
            let mut table = Table::new(&columns);
            for Found { id, record, state } in &listed.found {
                let error = record.error_of_end().unwrap_or_default().to_owned();
                table.row([
                    typed(id.as_str()).into_owned(),
                    state.to_string(),
                    age(record.updated_at),
                    runs(record).to_string(),
                    error,
                ]);
            }
            table.lines().iter().for_each(say);
        }
        if listed.more {
            say(more_in_words(listed, query));
        }
        listed.left_out_in_words().iter().for_each(say);
    }
    if !not_read.is_empty() {
        say(format!("Not read: {}.", not_read.join(", ")));
    }
    if let Some(older) = query.older_than {
        say(format!("Only records last written {} ago or earlier.", span(older.as_secs())));
    }
}

/// Says that keys which failed may wait for schedules, where there are any.
fn say_may_wait(lists: &[(OpenStore, Listed)]) {
    if lists.iter().flat_map(|(_, listed)| &listed.found).any(|found| found.state == State::Failed) {
        say(
            "A key that failed may wait for a schedule that sends its message again: claimant inspect says how to see that.",
        );
    }
}

fn more_in_words(listed: &Listed, query: &Query) -> String {
    if listed.found.len() < query.limit {
        return "… and perhaps more: it was ended before all was read.".to_owned();
    }
    format!("… and more, older ones perhaps: {} of them are shown (--limit).", listed.found.len())
}

fn document(lists: &[(OpenStore, Listed)]) -> Value {
    let key = |found: &Found| record_json(&found.id, &found.record, found.state);
    let list = |(store, listed): &(OpenStore, Listed)| {
        json!({
            "store": store.name,
            "keys": listed.found.iter().map(key).collect::<Vec<_>>(),
            "more": listed.more,
            "records_read": listed.looked_at,
            "foreign": listed.foreign,
        })
    };
    json!({ "stores": lists.iter().map(list).collect::<Vec<_>>() })
}
