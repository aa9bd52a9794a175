//! `claimant limit`: what a limit allows all processes together, changed while they run.

use std::time::Duration;

use claimant_core::error::Chain;
use claimant_core::limit::{Allowed, LIMIT_PLAN, Plan};
use claimant_core::limits::SKEW_DEFAULT_MS;
use claimant_core::{Clock as _, Error, SystemClock, Timestamp};
use claimant_operate::keys::{Keys, LimitOrder, LimitSet, LimitState, LimitUse, SlotState, operator, span};
use claimant_operate::open::{OpenStore, find};
use claimant_operate::text::harmless;
use serde_json::{Value, json};

use super::interrupt::Stop;
use super::options::{OutputOptions, TargetOptions, WriteOptions};
use super::table::{Fit, Table};
use super::{confirm, parse};
use crate::exit::Ended;
use crate::output::{note, say, say_json};

/// Show or change a limit: how many messages all processes start in a time, or run at once, for a system that they call.
///
/// Without an option it is shown, with what all processes go by now, and the slots that they hold. What is set holds for every consumer
/// whose limit has this name in the store, all at once, within half a minute and the clock skew; what no option names stays as it was set, or as the
/// functions set it. Where two versions or functions set it differently, name both the rate and how many at once.
///
/// Exit codes: 0 where it is as asked for, 1 where the question was answered with no or another one has set it meanwhile, 2 where it could
/// not be set, or it is not known whether it was, or, without an option, it or its slots could not be looked at, 130 where Ctrl-C or
/// SIGTERM was the answer.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("change").multiple(true))]
pub(crate) struct OnLimit {
    /// The limit's name, as in Limit::new("ses")
    #[arg(value_name = "NAME")]
    name: String,

    /// How many messages are started: 20/s, 6/min, or 100/30s
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = parse::rate, group = "change")]
    rate: Option<(u32, u64)>,

    /// How many messages run at once
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = parse::at_once, group = "change")]
    at_once: Option<u32>,

    /// As the functions set it, whatever was set before
    #[arg(long, conflicts_with_all = ["rate", "at_once"], group = "change")]
    as_set: bool,

    /// Why it is changed, for those who look at it later
    #[arg(long, value_name = "TEXT", requires = "change")]
    why: Option<String>,

    #[command(flatten)]
    write: WriteOptions,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// Shows or changes a limit.
pub(crate) async fn run(options: OnLimit) -> Result<Ended, Error> {
    let place = options.target.open().await?;
    if !options.write.dry_run {
        options.output.note_where(&place);
    }
    let stores = options.target.open_stores(&place).await?;
    let store = store_of(&stores, &options.name).await?;
    let before = store.keys.limit(&options.name).await?;
    if options.rate.is_none() && options.at_once.is_none() && !options.as_set {
        if !options.output.json {
            say(headline(&options.name, &before));
        }
        let used = known(store.keys.limit_use(&options.name).await);
        let ended = if used.is_ok() { Ended::Well } else { Ended::NotDone };
        if options.output.json {
            say_json(&document(&options, &before, used));
        } else {
            used.into_iter().for_each(|used| show(&options, used));
        }
        return Ok(ended);
    }
    let wanted = wanted(&options, before.set);
    Error::unless_empty("the limit cannot be set", &wanted.map(|wanted| wanted.faults()).unwrap_or_default())?;
    let (was, is) = (in_words(before.set), in_words(wanted));
    let question = format!("{} in {}: is {was}; becomes {is}. Set it?", options.name, harmless(&store.name));
    let whereabouts = place.whereabouts_of(store);
    if options.write.dry_run {
        confirm::note_at(whereabouts.as_deref());
        if options.output.json {
            let mut document = document(&options, &before, Err("a dry run does not look at them".to_owned()));
            document["would_set"] = json!(wanted);
            say_json(&document);
        } else {
            say(format!("{} would change: is {was}; becomes {is}.", options.name));
        }
        return Ok(Ended::Well);
    }
    let stop = Stop::listen("Ending once it is known whether it is set. Ctrl-C again ends at once.");
    let question = confirm::at(&question, whereabouts.as_deref());
    match confirm::answered(&question, &options.write, &stop).await? {
        Some(true) => {}
        Some(false) => return Ok(Ended::WithFaults),
        None => return Ok(Ended::Interrupted),
    }
    let why = options.why.clone().unwrap_or_default();
    let (name, before) = (options.name.clone(), before.set);
    let order = LimitOrder { name, before, allowed: wanted, by: operator(), why };
    let (state, is_changed) = match store.keys.set_limit(&order).await? {
        LimitSet::Done(state) => (state, false),
        LimitSet::Changed(state) => (state, true),
    };
    if !options.output.json {
        if is_changed {
            say(format!("{}: left as it is, since another one has set it meanwhile", options.name));
        }
        say(headline(&options.name, &state));
    }
    // Who has the slots is not what was asked for: it keeps nobody waiting, and its failure says nothing of the limit.
    let used = stop.or(store.keys.limit_use(&options.name)).await;
    let used = used.map_or_else(|| Err("it was ended first".to_owned()), known);
    if options.output.json {
        let mut document = document(&options, &state, used);
        document["changed"] = is_changed.into();
        say_json(&document);
    } else {
        used.into_iter().for_each(|used| show(&options, used));
    }
    Ok(if is_changed { Ended::WithFaults } else { Ended::Well })
}

/// The store that has the limit: the only one, or the one in which it was set or used.
async fn store_of<'a>(stores: &'a [OpenStore], name: &str) -> Result<&'a OpenStore, Error> {
    let own = Keys::limit_id(name)?;
    if let [only] = stores {
        return Ok(only);
    }
    let set = find(stores, &own).await?;
    if set.record.is_some() {
        return Ok(set.store);
    }
    for store in stores {
        if store.keys.limit_use(name).await? != LimitUse::default() {
            return Ok(store);
        }
    }
    let names: Vec<_> = stores.iter().map(|store| store.name.as_str()).collect();
    Err(Error::invalid(format!("no store has the limit {name} yet: choose one with --table, of {}", names.join(", "))))
}

fn wanted(options: &OnLimit, before: Option<Allowed>) -> Option<Allowed> {
    let mut wanted = before.unwrap_or_default();
    if let Some((calls, per_ms)) = options.rate {
        (wanted.calls, wanted.per_ms) = (Some(calls), per_ms);
    }
    wanted.at_once = options.at_once.or(wanted.at_once);
    (!options.as_set).then_some(wanted)
}

fn in_words(set: Option<Allowed>) -> String {
    let Some(Allowed { calls, per_ms, at_once }) = set else { return "as the functions set it".to_owned() };
    let time = match per_ms {
        1_000 => "second".to_owned(),
        60_000 => "minute".to_owned(),
        ms if ms % 1_000 == 0 => format!("{} s", ms / 1_000),
        ms => format!("{ms} ms"),
    };
    let rate = calls.map(|calls| format!("{calls} a {time}"));
    let at_once = at_once.map(|at_once| format!("{at_once} at once"));
    rate.into_iter().chain(at_once).collect::<Vec<_>>().join(", ")
}

fn headline(name: &str, state: &LimitState) -> String {
    let note = state.note.as_ref().map(|note| format!(" ({})", harmless(note))).unwrap_or_default();
    format!("{name}: {}{note}", in_words(state.set))
}

/// What processes make of it, or why that is not known.
type Used = Result<LimitUse, String>;

/// Returns the keys that are held for longer than any lease lasts.
fn too_long(options: &OnLimit, used: &LimitUse, now: Timestamp) -> Vec<String> {
    let skew = options.target.skew.unwrap_or(Duration::from_millis(SKEW_DEFAULT_MS));
    used.held_too_long(&options.name, (now, skew))
}

/// Returns what processes make of it; says why, where that is not known.
fn known(used: Result<LimitUse, Error>) -> Used {
    let why = used.map_err(|error| Chain(&error).to_string());
    why.inspect_err(|why| note(harmless(&format!("Who has its slots is not known: {why}"))))
}

fn show(options: &OnLimit, used: LimitUse) {
    let now = SystemClock.now();
    let too_long = too_long(options, &used, now);
    if let Some(line) = plan_line(&used, now) {
        say(line);
    }
    if used.slots.is_empty() {
        say(
            "No slot is held: nothing runs that it limits, or its functions have another store, prefix or name for it.",
        );
    } else {
        if used.plan.is_none() {
            say("No plan holds now: where a process knows none, nothing starts until the next one is set.");
        }
        let mut table = Table::new(&[("SLOT", Fit::Number), ("HELD BY", Fit::End), ("LEASE", Fit::Number)]);
        for slot in used.slots {
            table.row([slot.number.to_string(), slot.consumer, span(slot.until.since(now).as_secs())]);
        }
        table.lines().into_iter().for_each(say);
    }
    for key in too_long {
        let first = match key.ends_with(LIMIT_PLAN) {
            true => "Once nothing has used the limit for half a minute",
            false => "Once that process has ended",
        };
        note(format!(
            "{key} is held for longer than any lease lasts: the clock of its process was far ahead, or this machine's is behind. {first}: claimant release {key} --force"
        ));
    }
}

/// Returns what all processes go by, where there is a plan; and whether some may not.
fn plan_line(used: &LimitUse, now: Timestamp) -> Option<String> {
    let (plan, until) = used.plan?;
    let (allowed, left) = (in_words(Some(plan.allowed)), span(until.since(now).as_secs()));
    let slots = match (plan.used(), plan.slots) {
        (1, 1) => "1 slot".to_owned(),
        (used, slots) if used == slots => format!("{slots} slots"),
        (used, slots) => format!("{used} of {slots} slots"),
    };
    Some(match used.is_beyond_plan() {
        false => format!("All processes go by {allowed}, in {slots}; the lease of this plan ends in {left}."),
        true => format!(
            "The plan is {allowed}, in {slots}; its lease ends in {left}. Slots beyond it are held, so some processes may not go by it: those of the \
             plan before are held until their leases end or, where that limited how many run at once, until what runs in them has ended. One that is \
             renewed for longer than a handler runs may be of a process that knows no plan, as of another version of claimant."
        ),
    })
}

/// Returns what is known as JSON.
fn document(options: &OnLimit, state: &LimitState, used: Used) -> Value {
    let slot = |slot: SlotState| json!({ "slot": slot.number, "consumer": slot.consumer, "lease_until": Timestamp::to_utc(slot.until) });
    let plan = |(plan, until): (Plan, Timestamp)| json!({ "allowed": plan.allowed, "slots": plan.slots, "used": plan.used(), "until": until.to_utc() });
    let mut document = json!({ "limit": options.name, "set": state.set, "note": state.note, "plan": null, "slots": null, "held_too_long": null });
    match used {
        Ok(used) => {
            document["held_too_long"] = too_long(options, &used, SystemClock.now()).into();
            document["plan"] = used.plan.map(plan).into();
            document["slots"] = used.slots.into_iter().map(slot).collect();
        }
        Err(why) => document["slots_not_known"] = why.into(),
    }
    document
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        limit: OnLimit,
    }

    #[test]
    fn less_than_nothing_is_answered_as_any_other_value() {
        for (option, says) in [("--rate=-1/s", "such as 20/s"), ("--at-once=-1", "from 1 to 100000")] {
            let (name, value) = option.split_once('=').unwrap();
            let error = Typed::try_parse_from(["limit", "ses", name, value]).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("-- -1"), "{error}");
        }
    }

    #[test]
    fn not_all_may_go_by_a_plan_beyond_which_slots_are_held() {
        let now = Timestamp::from_millis(1_000_000);
        let until = now.plus(Duration::from_secs(20));
        let plan = Plan { allowed: Allowed { calls: Some(5), ..Allowed::default() }, slots: 10 };
        for (number, begins) in [
            (4, "All processes go by 5 a second, in 5 of 10 slots; "),
            (5, "The plan is 5 a second, in 5 of 10 slots; "),
        ] {
            let slots = vec![SlotState { number, consumer: "c".into(), until }];
            let line = plan_line(&LimitUse { plan: Some((plan, until)), slots }, now).unwrap();
            assert!(line.starts_with(begins) && line.contains(" ends in 20 s."), "{line}");
            for says in ["some processes may not go by it", "or, where that limited how many run at once, until"] {
                assert_eq!(line.contains(says), number == 5, "{line}");
            }
        }
    }
}
