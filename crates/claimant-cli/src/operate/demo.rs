//! `claimant demo`: a duplicate absorbed, a killed process taken over, a dead letter redriven.

use claimant_core::Error;
use claimant_operate::demo;
use claimant_operate::text::harmless;
use serde_json::json;

use super::options::{OutputOptions, TargetOptions};
use crate::exit::Ended;
use crate::output::{say, say_json};

/// Show a duplicate absorbed, a killed process taken over, and a dead letter redriven, on a local cloud with the sample functions.
///
/// Takes about ten seconds. The console's overview does the same by its button "Show me"; there each message has its page.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// Shows it, part by part.
pub(crate) async fn run(options: Demo) -> Result<Ended, Error> {
    let place = options.target.open().await?;
    let mut chapters = Vec::new();
    let mut over = |chapter: demo::Chapter| {
        if !options.output.json {
            say(format!("{}\n  {}", chapter.title, harmless(&chapter.says)));
            chapter.messages.iter().for_each(|shown| say(format!("  {}  {}", shown.id, shown.is)));
        }
        chapters.push(chapter);
    };
    demo::run(&place, &mut over).await?;
    if options.output.json {
        say_json(&json!({ "chapters": chapters }));
    }
    Ok(Ended::Well)
}
