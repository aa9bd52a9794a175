//! `claimant effects`: what the functions of a local cloud have done.

use claimant_core::Error;
use claimant_operate::effects::{Effects, Kind};
use claimant_operate::text::{harmless, typed};
use serde_json::json;

use super::options::{OutputOptions, TargetOptions};
use super::table::{Fit, Table};
use crate::exit::Ended;
use crate::output::{say, say_json};

/// Show what the functions of a local cloud have done, and what was done twice: mails, charges, and what the sample functions keep.
///
/// Exit codes: 0 where every key has one effect of a kind at most, 1 where one has more, 2 where it is not known.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowEffects {
    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// Shows them.
pub(crate) async fn run(options: ShowEffects) -> Result<Ended, Error> {
    let effects = Effects::of(&options.target.open().await?).await?;
    if options.output.json {
        say_json(&json!(effects));
    } else {
        print(&effects);
    }
    ended(&effects)
}

fn ended(effects: &Effects) -> Result<Ended, Error> {
    let unknown = effects.kinds.iter().find(|kind| kind.problem.is_some());
    match unknown {
        _ if effects.repeated() > 0 => Ok(Ended::WithFaults),
        Some(kind) => {
            Err(Error::new(format!("it is not known whether there are {} that were done twice", kind.in_words())))
        }
        None => Ok(Ended::Well),
    }
}

fn print(effects: &Effects) {
    let mut table = Table::new(&[
        ("EFFECTS", Fit::Whole),
        ("FUNCTION", Fit::Middle),
        ("DONE", Fit::Number),
        ("KEYS", Fit::Number),
        ("ASKED FOR", Fit::Number),
        ("MORE THAN ONCE", Fit::Number),
    ]);
    for kind in effects.kinds.iter().filter(|kind| kind.problem.is_none()) {
        table.row([
            kind.name.clone(),
            kind.of_in_words().unwrap_or_default(),
            kind.total.to_string(),
            kind.keys.to_string(),
            kind.tries.to_string(),
            kind.repeated_keys.to_string(),
        ]);
    }
    table.lines().iter().for_each(say);
    effects.kinds.iter().flat_map(below).for_each(say);
}

/// Returns what is said of a kind below the table: what was done more than once, or why that is not known.
fn below(kind: &Kind) -> Vec<String> {
    let of = harmless(&kind.in_words());
    let repeated = kind.repeated.iter().map(|repeated| {
        let (key, times, what) = (typed(&repeated.key), repeated.times, harmless(&repeated.what.join("; ")));
        format!("{of}, key {key}: {times} times: {what}")
    });
    repeated.chain(kind.problem.iter().map(|problem| format!("{of}: not known: {}", harmless(problem)))).collect()
}

#[cfg(test)]
mod tests {
    use claimant_operate::effects::Repeated;

    use super::*;

    /// Functions with tables of their own have effects of one name.
    #[test]
    fn whose_effects_are_meant_is_said() {
        let repeated = vec![Repeated { key: "k".to_owned(), times: 2, what: vec!["x".to_owned(), "y".to_owned()] }];
        let kind = Kind { name: "rows".to_owned(), functions: vec!["A".to_owned(), "B".to_owned()], ..Kind::default() };
        let twice = Kind { repeated, ..kind.clone() };
        assert_eq!(below(&twice), ["rows of A or B, key k: 2 times: x; y"]);
        let unknown = Kind { problem: Some("no table".to_owned()), ..kind };
        assert_eq!(below(&unknown), ["rows of A or B: not known: no table"]);
        let error = ended(&Effects { kinds: vec![unknown] }).unwrap_err().to_string();
        assert!(error.contains("whether there are rows of A or B that"), "{error}");
    }

    #[test]
    fn what_is_not_known_is_not_well() {
        let kind = |repeated_keys, problem: Option<&str>| Kind {
            repeated_keys,
            problem: problem.map(str::to_owned),
            ..Kind::default()
        };
        let of = |kinds| ended(&Effects { kinds }).ok();
        assert_eq!(of(vec![kind(0, None)]), Some(Ended::Well));
        assert_eq!(of(vec![kind(0, Some("too many")), kind(1, None)]), Some(Ended::WithFaults));
        assert_eq!(of(vec![kind(0, None), kind(0, Some("too many"))]), None);
    }
}
