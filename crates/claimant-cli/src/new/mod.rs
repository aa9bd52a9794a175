//! `claimant new`: writes a consumer, with all that belongs to it.
//!
//! | module | holds |
//! | --- | --- |
//! | `name` | what may be a name, and what is called after it |
//! | `consumer`, `project` | what a consumer consists of, and a whole project: from the files under `templates` |
//! | `outer` | workspaces around a new project |
//! | `globals` | what the template says of every function |
//! | `render`, `insert` | templates filled in; lines added to files that are there |
//! | `plan` | all that is to be written, checked before the first byte is |

mod consumer;
mod globals;
mod insert;
mod name;
mod outer;
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
use project::{Source, shell_word};

/// Where cargo has the versions of all packages.
const LOCK: &str = "Cargo.lock";

/// Plans, and writes unless it is a dry run; says what was written and what to do next.
pub(crate) fn run(options: &New) -> Result<(), Error> {
    let here = options.directory.canonicalize().map_err(|e| {
        Error::new(format!("the directory {} cannot be used", options.directory.display())).caused_by(e)
    })?;
    let workspace = if options.project { None } else { workspace(&here) };
    let inside = workspace.is_some();
    let template = workspace.as_ref().map_or(claimant_template::NAME, |(_, template)| template);
    let consumer = Consumer { name: &options.name, guarantee: options.guarantee(), fifo: options.fifo, template };
    if inside && (options.claimant_path.is_some() || options.claimant_git.is_some()) {
        return Err(Error::new(
            "--claimant-path and --claimant-git are for new projects, and this is an existing one: omit them, or add --project",
        ));
    }
    let mut plan = match workspace {
        Some((root, _)) => {
            let mut plan = Plan::new(root);
            consumer.plan(&mut plan);
            plan
        }
        None => new_project(&here, &consumer, options)?,
    };
    plan.check()?;
    // A new project's is in the plan.
    let lock_line = inside.then(|| {
        let is_there = plan.root().join(LOCK).is_file();
        format!("{:<8} {LOCK} (the new member, by cargo)", if is_there { "changed" } else { "new" })
    });
    if options.dry_run {
        say(format!("Nothing is written. In {} this would write:\n", plan.root().display()));
        plan.summary().iter().chain(&lock_line).chain(plan.notes()).for_each(say);
        return Ok(());
    }
    plan.write()?;
    // One by git is not locked until it is fetched.
    let is_planned = !inside && plan.text(LOCK).is_some();
    let lock = if inside || is_planned { update_lock(plan.root()) } else { Ok(()) };
    if is_planned && let Ok(text) = std::fs::read_to_string(plan.root().join(LOCK)) {
        plan.change(LOCK, text);
    }
    say(format!("Written in {}:\n", plan.root().display()));
    plan.summary().iter().chain(lock_line.iter().filter(|_| lock.is_ok())).chain(plan.notes()).for_each(say);
    say_next(&plan, &consumer, lock.map_err(|why| unlocked(is_planned, &why)));
    Ok(())
}

fn new_project(here: &Path, consumer: &Consumer<'_>, options: &New) -> Result<Plan, Error> {
    let source = Source::choose(options.claimant_path.as_deref(), options.claimant_git.as_deref())?;
    let root = here.join(options.name.as_str());
    if root.symlink_metadata().is_ok() {
        let what = format!("{} already exists, and nothing was written", root.display());
        return Err(Error::new(format!("{what}: choose another name, or another directory with --directory")));
    }
    if !options.project {
        say("There is no workspace of claimant functions here, so this makes a new one.");
    }
    match &source {
        Source::Path(checkout) => say(format!("It depends on claimant by path: {checkout}")),
        Source::Git(url) => say(format!("It depends on claimant by git: {url}")),
    }
    let mut plan = Plan::new(root);
    project::plan(&mut plan, consumer, &source);
    outer::check(&mut plan);
    Ok(plan)
}

/// The nearest directory, from here upwards, with a workspace and a template, and what that is called.
fn workspace(here: &Path) -> Option<(PathBuf, &'static str)> {
    let in_workspace = |directory: &Path| {
        let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
        let template = claimant_template::found_in(directory).filter(|_| insert::has_path(&manifest, "workspace"))?;
        Some((directory.to_owned(), template))
    };
    here.ancestors().find_map(in_workspace)
}

/// Adds the member to `Cargo.lock`, and has cargo take out what nothing depends on: so `--locked` takes it.
///
/// # Errors
/// Why cargo cannot do it.
fn update_lock(root: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut update = Command::new(cargo);
    update.args(["update", "--workspace", "--offline", "--quiet"]).current_dir(root);
    update.stdin(Stdio::null());
    match update.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(why_of_cargo(&String::from_utf8_lossy(&output.stderr))),
        Err(e) => Err(format!("cargo cannot be run: {e}")),
    }
}

/// Returns the error in what cargo said, and the last of its causes, on one line.
fn why_of_cargo(said: &str) -> String {
    let error = said.lines().rfind(|line| line.starts_with("error")).unwrap_or("cargo update failed");
    let causes = said.rsplit_once("\nCaused by:\n").map(|(_, causes)| causes.trim());
    let cause = causes.and_then(|causes| causes.lines().next()).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

/// Returns what the first build does, too, where cargo could not.
fn unlocked(is_planned: bool, why: &str) -> String {
    match is_planned {
        true => format!("without --locked once: cargo could not trim Cargo.lock: {why}"),
        false => format!("also adds it to Cargo.lock, which was not possible yet: {why}"),
    }
}

fn say_next(plan: &Plan, consumer: &Consumer<'_>, lock: Result<(), String>) {
    let name = consumer.name.as_str();
    let is_here = std::env::current_dir().and_then(|here| here.canonicalize()).is_ok_and(|here| here == plan.root());
    say("\nNext:\n");
    if !is_here {
        say(format!("  cd {}", shell_word(&plan.root().display().to_string())));
    }
    if let Err(what) = lock {
        say(format!("  cargo build -p {name}    # {what}"));
    }
    say(format!("  cargo test -p {name}"));
    say(format!("  cargo build -p {name} && claimant local --function {name}"));
    say(format!("\nWrite your handler in functions/{name}/src/handler.rs."));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_says_is_shown_with_its_cause() {
        let two = "error: failed to load manifest for `a`\n\nCaused by:\n  failed to parse manifest at `b`\n\nCaused by:\n  rust-version 1.80 is incompatible\n";
        let toml = "error: failed to load manifest for `a`\n\nCaused by:\n  TOML parse error at line 3, column 1\n    |\n  3 | [\n";
        for (said, why) in [
            (two, "error: failed to load manifest for `a`: rust-version 1.80 is incompatible"),
            (toml, "error: failed to load manifest for `a`: TOML parse error at line 3, column 1"),
            (
                "warning: c\nerror: no matching package named `d` found\nlocation searched: crates.io index\n",
                "error: no matching package named `d` found",
            ),
            ("", "cargo update failed"),
        ] {
            assert_eq!(why_of_cargo(said), why);
        }
    }
}
