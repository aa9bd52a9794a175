//! `claimant new`: writes a consumer, with all that belongs to it.
//!
//! | module | holds |
//! | --- | --- |
//! | `name` | what may be a name, and what is called after it |
//! | `consumer`, `project` | what a consumer consists of, and a whole project: from the files under `templates` |
//! | `render`, `insert` | templates filled in; lines added to files that are there |
//! | `plan` | all that is to be written, checked before the first byte is |

mod consumer;
mod insert;
mod name;
mod plan;
mod project;
mod render;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use claimant_local::Error;

use crate::args::New;
use crate::output::say;
use consumer::Consumer;
pub(crate) use consumer::Guarantee;
pub(crate) use name::Name;
use plan::Plan;
use project::Source;

/// Plans, and writes unless it is a dry run; says what was written and what to do next.
pub(crate) fn run(options: &New) -> Result<bool, Error> {
    let consumer = Consumer { name: &options.name, guarantee: options.guarantee(), fifo: options.fifo };
    let here = options.directory.canonicalize().map_err(|e| {
        Error::new(format!("the directory {} cannot be used", options.directory.display())).caused_by(e)
    })?;
    let workspace = if options.project { None } else { workspace(&here) };
    let inside = workspace.is_some();
    if inside && (options.claimant_path.is_some() || options.claimant_git.is_some()) {
        return Err(Error::new(
            "--claimant-path and --claimant-git are for new projects, and here is one already: leave them away, or add --project",
        ));
    }
    let plan = match workspace {
        Some(root) => {
            let mut plan = Plan::new(root);
            consumer.plan(&mut plan);
            plan
        }
        None => new_project(&here, &consumer, options)?,
    };
    plan.check()?;
    if options.dry_run {
        say(format!("Nothing is written. In {} there would be:\n", plan.root().display()));
        plan.summary().iter().for_each(say);
        return Ok(true);
    }
    plan.write()?;
    say(format!("Written in {}:\n", plan.root().display()));
    plan.summary().iter().for_each(say);
    let locked = !inside || lock(plan.root());
    say_next(&plan, &consumer, inside, locked);
    Ok(true)
}

fn new_project(here: &Path, consumer: &Consumer<'_>, options: &New) -> Result<Plan, Error> {
    let source = Source::choose(options.claimant_path.as_deref(), options.claimant_git.as_deref())?;
    let root = here.join(options.name.as_str());
    if root.symlink_metadata().is_ok() {
        let what = format!("{} is there already, and nothing was written", root.display());
        return Err(Error::new(format!("{what}: choose another name, or another place with --directory")));
    }
    if !options.project {
        say("Here is no project of claimant's functions, so this makes a new one.");
    }
    match &source {
        Source::Path(checkout) => say(format!("It depends on claimant by path: {}", checkout.display())),
        Source::Git(url) => say(format!("It depends on claimant by git: {url}")),
    }
    let mut plan = Plan::new(root);
    project::plan(&mut plan, consumer, &source);
    Ok(plan)
}

/// The nearest directory, from here upwards, with a workspace and a template.
fn workspace(here: &Path) -> Option<PathBuf> {
    let is_workspace = |directory: &&Path| {
        let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
        manifest.contains("[workspace]")
            && insert::has_key(&manifest, "claimant")
            && directory.join("template.yaml").is_file()
    };
    here.ancestors().find(is_workspace).map(Path::to_owned)
}

/// Adds the member to `Cargo.lock`; `false` where cargo could not, without the network, say.
fn lock(root: &Path) -> bool {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut update = Command::new(cargo);
    update.args(["update", "--workspace", "--offline", "--quiet"]).current_dir(root);
    update.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    update.status().is_ok_and(|status| status.success())
}

fn say_next(plan: &Plan, consumer: &Consumer<'_>, inside: bool, locked: bool) {
    let name = consumer.name.as_str();
    say("\nNext:\n");
    if !inside {
        say(format!("  cd {}", plan.root().display()));
    }
    if !locked {
        say(format!("  cargo build -p {name}    # also adds it to Cargo.lock, which could not be done offline"));
    }
    say(format!("  cargo test -p {name}"));
    say(format!("  cargo build -p {name} && claimant local --function {name}"));
    say(format!("\nYour effect goes into functions/{name}/src/handler.rs."));
}
