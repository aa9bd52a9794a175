//! The command line. `make bench` gives what is needed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Measure claimant beside what one would use instead
#[derive(Debug, Parser)]
#[command(name = "claimant-bench", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure batches and cold starts, and write the page about it
    Run(Box<Run>),
    /// Measure cold starts alone
    Cold(Cold),
    /// Look at what becomes of messages when something goes wrong, and show the table about it
    Correctness(Peers),
    /// Be one of the contestants: started by `run`
    #[command(hide = true)]
    Contestant {
        /// Which one
        name: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Measure fewer combinations and batches, in about three minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// The file to write the page to [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The date that the page shows
    #[arg(long)]
    pub(crate) date: String,

    /// The commit that the page shows
    #[arg(long)]
    pub(crate) commit: String,

    /// The compiler that the page shows
    #[arg(long)]
    pub(crate) compiler: String,

    #[command(flatten)]
    pub(crate) peers: Peers,

    #[command(flatten)]
    pub(crate) cold: Cold,
}

/// Where the peers are. One that is not there is not measured, and the page says so.
#[derive(Debug, clap::Args)]
pub(crate) struct Peers {
    /// What `scripts/tools bench` installs: a Python, and the sources beside their packages
    #[arg(long, value_name = "DIR")]
    pub(crate) peers: PathBuf,

    /// The binaries of peers/rust
    #[arg(long, value_name = "DIR")]
    pub(crate) rust_peers: PathBuf,

    /// The Node.js to run
    #[arg(long, value_name = "FILE", default_value = "node")]
    pub(crate) node: PathBuf,

    /// The Java to run
    #[arg(long, value_name = "FILE", default_value = "java")]
    pub(crate) java: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Cold {
    /// How often each function is started
    #[arg(long, value_name = "TIMES", default_value_t = 30)]
    pub(crate) starts: usize,

    /// The directory with `order-confirmation` [default: the one this command is in]
    #[arg(long, value_name = "DIR")]
    pub(crate) binaries: Option<PathBuf>,

    /// The binaries of cold/, the functions that it is compared with; `cold-defaults` may be missing
    #[arg(long, value_name = "DIR")]
    pub(crate) cold: PathBuf,
}
