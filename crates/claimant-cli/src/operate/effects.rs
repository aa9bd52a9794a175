//! `claimant effects`: what the functions of a local cloud have done.

use claimant_core::Error;
use claimant_operate::effects::Effects;
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
        Some(kind) => Err(Error::new(format!("it is not known whether there are {} that were done twice", kind.name))),
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
    for kind in &effects.kinds {
        for repeated in &kind.repeated {
            let what = harmless(&repeated.what.join("; "));
            say(format!("{} of {}: {} times: {what}", kind.name, typed(&repeated.key), repeated.times));
        }
        if let Some(problem) = &kind.problem {
            say(format!("{}: not known: {}", kind.name, harmless(problem)));
        }
    }
}

#[cfg(test)]
mod tests {
    use claimant_operate::effects::Kind;

    use super::*;

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
