//! `claimant effects`: what the functions of a local cloud have done.

use claimant_core::Error;
use claimant_operate::effects::Effects;
use serde_json::json;

use super::options::{OutputOptions, TargetOptions};
use super::table::{Fit, Table, harmless};
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
    Ok(if effects.repeated() > 0 { Ended::WithFaults } else { Ended::Well })
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
            kind.function.clone().unwrap_or_default(),
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
            say(format!("{} of {}: {} times: {what}", kind.name, harmless(&repeated.key), repeated.times));
        }
        if let Some(problem) = &kind.problem {
            say(format!("{}: not known: {}", kind.name, harmless(problem)));
        }
    }
}
