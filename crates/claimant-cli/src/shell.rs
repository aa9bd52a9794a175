//! Completions for shells, and manual pages.

use std::collections::BTreeSet;
use std::path::Path;

use claimant_local::Error;
use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Args;
use crate::output;

/// Prints the completions of a shell, with what `clap_complete` leaves out.
pub(crate) fn completions(shell: Shell) {
    let mut written = Vec::new();
    let mut command = Args::command();
    clap_complete::generate(shell, &mut command, "claimant", &mut written);
    let generated = String::from_utf8_lossy(&written);
    output::say(
        match shell {
            Shell::Bash => in_bash(&generated, &command),
            Shell::Fish => generated.into_owned() + &in_fish(&command),
            _ => generated.into_owned(),
        }
        .trim_end(),
    );
}

/// Completes values behind `=`, which is a word of its own there; and what follows an option whose value takes one: it is no value.
fn in_bash(generated: &str, command: &Command) -> String {
    let options = command.get_subcommands().flat_map(|command| {
        let of_own = command.get_subcommands().flat_map(Command::get_arguments);
        command.get_arguments().chain(of_own)
    });
    let options = options.filter(|option| option.is_require_equals_set()).filter_map(Arg::get_long);
    let taken_for_values: BTreeSet<_> = options.map(|name| format!("--{name})")).collect();
    let mut written = String::new();
    let mut is_left_out = false;
    for line in generated.lines() {
        is_left_out |= taken_for_values.contains(line.trim());
        if !is_left_out {
            written += line;
            written.push('\n');
        }
        is_left_out &= line.trim() != ";;";
        if line.trim() == "prev=\"$3\"" {
            written += EQUALS;
        }
    }
    written
}

const EQUALS: &str = "    if [[ \"${prev}\" == \"=\" && COMP_CWORD -ge 2 ]]; then
        prev=\"${COMP_WORDS[COMP_CWORD-2]}\"
    fi
    if [[ \"${cur}\" == \"=\" ]]; then
        cur=\"\"
    fi
";

/// Completes values that have no option, and the commands that `help` is about.
fn in_fish(command: &Command) -> String {
    let commands = command.get_subcommands().map(Command::get_name);
    let commands: Vec<_> = commands.filter(|name| *name != "help").collect();
    let commands = commands.join(" ");
    let mut written = format!(
        "complete -c claimant -n \"__fish_claimant_using_subcommand help; and not __fish_seen_subcommand_from {commands}\" -f -a \"{commands}\"\n"
    );
    for command in command.get_subcommands() {
        for values in command.get_positionals().map(Arg::get_possible_values).filter(|values| !values.is_empty()) {
            let values: Vec<_> = values.iter().map(PossibleValue::get_name).collect();
            let (name, values) = (command.get_name(), values.join(" "));
            written +=
                &format!("complete -c claimant -n \"__fish_claimant_using_subcommand {name}\" -f -a \"{values}\"\n");
        }
    }
    written
}

/// Writes a manual page for each command into the directory, which is made where it is not there.
pub(crate) fn manual(directory: &Path) -> Result<(), Error> {
    let failed = |e| Error::new(format!("the manual pages cannot be written to {}", directory.display())).caused_by(e);
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Args::command(), directory).map_err(failed)
}
