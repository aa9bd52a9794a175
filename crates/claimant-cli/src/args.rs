//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use claimant_local::workload::COUNT_MAX;
use clap::{Parser, Subcommand};

use crate::console::ConsoleOptions;
use crate::cost::Cost;
use crate::deployed::DeployedConsole;
use crate::doctor::Doctor;
use crate::new::{Guarantee, Name};
use crate::operate::act::OnKeys;
use crate::operate::dead::Dead;
use crate::operate::demo::Demo;
use crate::operate::effects::ShowEffects;
use crate::operate::fault::OfCloud;
use crate::operate::inspect::Inspect;
use crate::operate::intake::OnFunction;
use crate::operate::limit::OnLimit;
use crate::operate::list::List;
use crate::operate::send::Send;
use crate::operate::tail::Tail;
use crate::template::Parameters;

/// SQS consumers on AWS Lambda that do each message's work once.
#[derive(Debug, Parser)]
#[command(name = "claimant", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Console(Box<DeployedConsole>),
    Cost(Box<Cost>),
    Doctor(Doctor),
    Local(Local),
    New(New),
    Dead(Box<Dead>),
    /// Stop messages to a function: its event source mappings poll no more.
    ///
    /// What runs ends as it would. Asks first, then waits until the mappings are off, for as long as --wait says: invocations can run on for as
    /// long as their timeout.
    Pause(OnFunction),
    /// Let messages in to a function again.
    Resume(OnFunction),
    Limit(Box<OnLimit>),
    List(List),
    Inspect(Inspect),
    /// Let work run again that was abandoned, parked or rejected.
    ///
    /// Its next message runs it, under the guards of the runtime; attempts go on counting. Redrive its dead letter afterwards, where
    /// there is one: claimant dead redrive.
    Release(OnKeys),
    /// Let work run again with its attempts counted from 0, after attempts_max.
    ///
    /// As release, and the count of attempts starts again.
    Reset(OnKeys),
    /// Forget a key: its next message runs as if there had been none before.
    ///
    /// A completed key is refused without --force: its work would be done twice.
    Forget(OnKeys),
    /// Count a key's work as done: its messages are duplicates from now on.
    ///
    /// For work that was parked or stuck and was found to have been done.
    Resolve(OnKeys),
    Send(Box<Send>),
    Effects(ShowEffects),
    Fault(Box<OfCloud>),
    Demo(Demo),
    Tail(Tail),
    Completions(Completions),
    Man(Man),
}

/// Print the completions of a shell.
///
/// bash: claimant completions bash > ~/.local/share/bash-completion/completions/claimant
/// fish: claimant completions fish > ~/.config/fish/completions/claimant.fish
/// zsh: claimant completions zsh > a directory of $fpath/_claimant
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual pages: one for each command.
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The directory that they are written to, such as ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  Success (without --workload: stopped by Ctrl-C, SIGTERM, or
     the end of its terminal).
  1  The workload found a fault: work with no effect or more than one, a lost
     message, a malformed body that was not dead-lettered, or queues that were
     not drained in time. Or it was stopped before its end.
  2  Wrong usage, something needed is missing or in use (template, binary,
     port, directory), or standard output could not be written.
With a COMMAND: its own, 128 and the number of the signal that ended it, or 1
if the cloud was stopped before it was ready.";

/// Run the functions of a SAM template on this machine, with DynamoDB, SQS, SES, EventBridge Scheduler and a payment gateway.
///
/// Starts the endpoints on 127.0.0.1, creates the template's tables and queues, runs its functions behind their SQS event
/// source mappings, and prints the endpoints and the variables that point an AWS CLI or SDK at them. Ctrl-C, SIGTERM
/// or the end of its terminal stops everything. The first line is the address of the console: pages that show what happens
/// to each message.
///
/// No mail is sent and no card is charged: GET /_claimant/mails at the SES endpoint and GET /_claimant/charges at the
/// gateway list what was received. An environment value in the template that is https://gateway.example, or a path under
/// it, is replaced by the gateway's address.
///
/// Resources that do not run here are listed with the reason: `not run here: …`. A function's program is looked for beside
/// this command, if that was built in the template's workspace, then as `bootstrap` in its CodeUri and in .aws-sam/build,
/// and where cargo and cargo-lambda put it; its line says which runs. A function that is not built yet waits for its
/// program, and new builds are picked up while the cloud runs.
///
/// With --workload the command sends sample messages to the functions that it knows (order-confirmation, payment,
/// gift-card, loyalty, audit, inventory), waits until the queues are drained, prints what became of the messages, and exits.
///
/// With a COMMAND the printed variables are in its environment, and the cloud ends when it ends. Ctrl-C, SIGTERM and the end
/// of the terminal end both: the command and what it started get SIGTERM, and after 5 seconds SIGKILL. Standard output is
/// the command's: endpoints and logs go to standard error. It cannot read from a terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Local {
    /// The template; without it template.yaml, template.yml or template.json, the first that is there; nested stacks are not read with it
    #[arg(long, value_name = "FILE", default_value = claimant_template::name_here())]
    pub(crate) template: PathBuf,

    #[command(flatten)]
    pub(crate) parameters: Parameters,

    /// The directory of the functions' binaries, which must all be there [default: searched for as described above]
    #[arg(long, value_name = "DIR")]
    pub(crate) binaries: Option<PathBuf>,

    /// Keep DynamoDB's tables in this directory [default: in memory, as queues and mails always are]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) ports: PortOptions,

    /// Run only this function, given by its name, binary or logical id; may be given several times
    #[arg(long = "function", value_name = "NAME")]
    pub(crate) functions: Vec<String>,

    /// Also print the environment variables of the template's functions, except those whose values differ between functions:
    /// for functions that run elsewhere. A COMMAND gets those that are not set already
    #[arg(long, conflicts_with = "workload")]
    pub(crate) function_variables: bool,

    /// Show neither function logs nor progress, nor the endpoints where there is a COMMAND
    #[arg(long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) work: WorkOptions,

    /// Run this command beside the cloud
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "workload")]
    pub(crate) command: Vec<OsString>,
}

// No doc comments on the two below: clap would show them as the command's own.
#[derive(Debug, clap::Args)]
pub(crate) struct PortOptions {
    /// The port of the DynamoDB endpoint; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) dynamodb_port: u16,

    /// The port of the SQS endpoint; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) sqs_port: u16,

    /// The port of the SES endpoint; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) ses_port: u16,

    /// The port of the EventBridge Scheduler endpoint; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) scheduler_port: u16,

    /// The port of the payment gateway; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) gateway_port: u16,

    /// The port of the S3 endpoint, where the template has a bucket; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) s3_port: u16,

    /// The port of the control endpoint, which the commands that operate a cloud ask; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) control_port: u16,

    #[command(flatten)]
    pub(crate) console: ConsoleOptions,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorkOptions {
    /// Send each function N pieces of sample work, report, and exit [N is 60 if omitted]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "60",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    pub(crate) workload: Option<u32>,

    /// The seed of the workload: the same seed sends the same messages
    #[arg(long, value_name = "N", default_value_t = 1, requires = "workload")]
    pub(crate) seed: u64,

    /// How long the queues may take to drain, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "180", requires = "workload", value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// Show function logs during the workload [default: write them to a file in the data directory or a temporary one, and
    /// print its path]
    #[arg(long, requires = "workload", conflicts_with = "quiet")]
    pub(crate) logs: bool,
}

/// Write a new consumer: the function with its tests, its resources and alarms in the template, and a sample event.
///
/// Inside a workspace with a template (template.yaml or template.yml), in this directory or above it, the consumer is added to that workspace.
/// Elsewhere, or with --project, a small project is created in a new directory NAME.
///
/// By default work is done at least once, under a lease, and the handler gets the message's key as an idempotency key for
/// the system that it calls. Take --transactional where the effect is an item of a DynamoDB table, and --at-most-once where that
/// system cannot recognise a repeat, and a repeat is worse than work that waits for a person.
///
/// Everything is checked before anything is written. Existing files are never overwritten.
#[derive(Debug, clap::Args)]
pub(crate) struct New {
    /// The name of the consumer, its package and its binary: lower-case letters, digits and single hyphens, such as
    /// welcome-mail
    #[arg(value_parser = Name::parse)]
    pub(crate) name: Name,

    /// Exactly once: the handler's DynamoDB writes commit in one transaction with the completion
    #[arg(long, conflicts_with = "at_most_once")]
    pub(crate) transactional: bool,

    /// At most once: work that may have been done is parked for an operator and never runs again by itself
    #[arg(long)]
    pub(crate) at_most_once: bool,

    /// Use a FIFO queue: the messages of a group are handled one after the other
    #[arg(long)]
    pub(crate) fifo: bool,

    /// Create a new project, even inside an existing one
    #[arg(long)]
    pub(crate) project: bool,

    /// The checkout of claimant that a new project depends on [default: the one that this command was built from, but for one installed from git]
    #[arg(long, value_name = "PATH", conflicts_with = "claimant_git")]
    pub(crate) claimant_path: Option<PathBuf>,

    /// The git repository of claimant that a new project depends on, instead of a checkout
    #[arg(long, value_name = "URL")]
    pub(crate) claimant_git: Option<String>,

    /// Where to look for the workspace, or to create a new project
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Show what would be written, without writing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl New {
    /// Returns the guarantee that was asked for.
    pub(crate) fn guarantee(&self) -> Guarantee {
        match (self.transactional, self.at_most_once) {
            (true, _) => Guarantee::Transactional,
            (false, true) => Guarantee::AtMostOnce,
            (false, false) => Guarantee::Leased,
        }
    }
}

/// The longest time for a workload.
const TIMEOUT_MAX_S: u64 = 86_400;

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(s @ 1..=TIMEOUT_MAX_S) => Ok(Duration::from_secs(s)),
        _ => Err(format!("give whole seconds from 1 to {TIMEOUT_MAX_S}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    /// By the first column of its table: a command in each row, or several that share their first word.
    #[test]
    fn the_book_has_a_row_for_each_command() {
        let below = |command: &clap::Command| -> Vec<String> {
            let of = command.get_name();
            let names = command.get_subcommands().map(|below| format!("{of} {}", below.get_name()));
            if command.has_subcommands() { names.collect() } else { vec![of.to_owned()] }
        };
        let args = Args::command();
        let commands: BTreeSet<String> = args.get_subcommands().flat_map(below).collect();
        let page = include_str!("../../../docs/commands.md").split_once("| command | does |").unwrap().1;
        let mut listed = BTreeSet::new();
        for row in page.lines().skip(2).take_while(|line| line.starts_with('|')) {
            let cell = row.split('|').nth(1).unwrap();
            let mut names = cell.split('`').skip(1).step_by(2).map(|name| name.trim_start_matches("claimant "));
            let first: Vec<_> = names.next().unwrap().split(' ').collect();
            let has_more = args.find_subcommand(first[0]).is_some_and(clap::Command::has_subcommands);
            let name = |word: &str| if has_more { format!("{} {word}", first[0]) } else { word.to_owned() };
            listed.insert(name(first[usize::from(has_more)]));
            listed.extend(names.map(|other| name(other.split(' ').next().unwrap())));
        }
        assert_eq!(listed, commands, "docs/commands.md on the left, the commands on the right");
    }

    #[test]
    fn options_that_mean_the_same_are_explained_in_the_same_words() {
        let args = Args::command();
        let help = |command: &str, option: &str| {
            let command = args.find_subcommand(command).unwrap();
            let found = command.get_arguments().find(|one| one.get_long() == Some(option)).unwrap();
            found.get_help().unwrap().to_string()
        };
        for (option, commands) in [
            ("template", &["doctor", "cost"][..]),
            ("parameter", &["doctor", "cost", "local"]),
            ("json", &["cost", "inspect", "list", "send"]),
        ] {
            let helps: BTreeSet<_> = commands.iter().map(|command| help(command, option)).collect();
            assert_eq!(helps.len(), 1, "--{option}: {helps:?}");
        }
        // Of several templates, or in more than one form, there is more to say.
        let begins =
            |command: &str| help(command, "template").split("; ").take(2).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(begins("local"), begins("doctor"));
        assert!(help("doctor", "json").starts_with(&help("cost", "json")));
    }

    #[test]
    fn workloads() {
        let table: [(&[&str], Option<Option<u32>>); 7] = [
            (&[], Some(None)),
            (&["--workload"], Some(Some(60))),
            (&["--workload", "7"], Some(Some(7))),
            (&["--workload", "--seed", "3"], Some(Some(60))),
            (&["--workload", "0"], None),
            (&["--workload", "10001"], None),
            (&["--seed", "3"], None),
        ];
        for (options, expected) in table {
            let args = ["claimant", "local"].iter().chain(options);
            let found = Args::try_parse_from(args).ok().map(|args| match args.command {
                Command::Local(local) => local.work.workload,
                other => panic!("{other:?}"),
            });
            assert_eq!(found, expected, "{options:?}");
        }
    }

    #[test]
    fn commands() {
        let table: [(&[&str], Option<usize>); 5] = [
            (&[], Some(0)),
            (&["--", "cargo", "test", "--quiet"], Some(3)),
            (&["--quiet", "--", "true"], Some(1)),
            (&["true"], None),
            (&["--workload", "--", "true"], None),
        ];
        for (options, expected) in table {
            let args = ["claimant", "local"].iter().chain(options);
            let found = Args::try_parse_from(args).ok().map(|args| match args.command {
                Command::Local(local) => local.command.len(),
                other => panic!("{other:?}"),
            });
            assert_eq!(found, expected, "{options:?}");
        }
    }
}
