//! `make growth` and `make throughput`: each measures, prints what it measured, and writes it into the book.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command as Git;
use std::time::{Duration, Instant};

use claimant_bench::machine;
use claimant_growth::throughput::{self, Settings};
use claimant_growth::{Extent, bounds, worker};
use claimant_outage::write_into;
use clap::{Parser, Subcommand};

/// The chapter, and what is around its parts.
const CHAPTER: &str = "docs/growth.md";
const GROWTH: [&str; 2] = ["<!-- by make growth -->\n\n", "\n\n<!-- to here -->"];
const THROUGHPUT: [&str; 2] = ["<!-- by make throughput -->\n\n", "\n\n<!-- to here: throughput -->"];

/// A shorter run of the whole way is shown, and not written.
const WRITTEN_FROM: Duration = Duration::from_mins(10);

type Failure = Box<dyn Error + Send + Sync>;

/// How cost grows, and the whole way on one machine
#[derive(Debug, Parser)]
#[command(name = "claimant-growth", version, arg_required_else_help = true)]
enum Command {
    /// Measure how cost grows with records, batches, keys, processes and groups, and write it into docs/growth.md
    Growth {
        /// Fewer and smaller steps; nothing is written
        #[arg(long)]
        quick: bool,
    },
    /// Find the highest rate of the whole way, hold it, and write what was seen into docs/growth.md
    Throughput {
        /// How long the rate is held; below 10 minutes nothing is written
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=3_600))]
        seconds: u64,
        /// Messages a second [default: the highest at which the queue stays empty is looked for]
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=50_000))]
        rate: Option<u64>,
        /// Batches at the same time
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=100))]
        concurrency: u32,
    },
    #[command(flatten)]
    Part(Part),
}

/// What a process of a run is.
#[derive(Debug, Subcommand)]
enum Part {
    /// Be a process that is measured
    #[command(hide = true)]
    Worker,
    /// Be the producer
    #[command(hide = true)]
    Producer,
    /// Be the database
    #[command(hide = true)]
    Database {
        /// The template with the tables
        template: PathBuf,
    },
}

fn main() -> Result<(), Failure> {
    match Command::parse() {
        Command::Growth { quick } => growth(quick),
        Command::Throughput { seconds, rate, concurrency } => whole_way(seconds, rate, concurrency),
        Command::Part(Part::Worker) => Ok(worker::run()?),
        Command::Part(Part::Producer) => Ok(throughput::produce()?),
        Command::Part(Part::Database { template }) => Ok(throughput::serve(&template)?),
    }
}

fn growth(quick: bool) -> Result<(), Failure> {
    let since = Instant::now();
    let extent = if quick { Extent::quick() } else { Extent::whole() };
    let runtime = tokio::runtime::Runtime::new()?;
    let show = |table: &claimant_growth::Table| println!("{}\n", table.section());
    let tables = runtime.block_on(claimant_growth::run(&extent, std::env::current_exe()?, show))?;
    if quick {
        return Ok(());
    }
    let sections: Vec<_> = tables.iter().map(claimant_growth::Table::section).collect();
    write(GROWTH, &format!("{}\n\n{}\n\n{}", run("make growth", since), bounds(), sections.join("\n\n")))
}

fn whole_way(seconds: u64, rate: Option<u64>, concurrency: u32) -> Result<(), Failure> {
    let since = Instant::now();
    let program = std::env::current_exe()?;
    let binaries = program.parent().ok_or("this program is in no directory")?.to_owned();
    let settings = Settings { hold: Duration::from_secs(seconds), rate, concurrency, root: root(), binaries, program };
    let outcome = tokio::runtime::Runtime::new()?.block_on(throughput::run(&settings))?;
    let page = throughput::page(&settings, &outcome);
    println!("{page}");
    if !outcome.faults().is_empty() {
        return Err(outcome.faults().join("; ").into());
    }
    if settings.hold < WRITTEN_FROM {
        return Ok(());
    }
    write(THROUGHPUT, &format!("{}\n{page}", run(&format!("make throughput MINUTES={}", seconds / 60), since)))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn write(markers: [&str; 2], new: &str) -> Result<(), Failure> {
    Ok(write_into(CHAPTER, &[(markers, new)])?)
}

/// What was run, where and when.
fn run(command: &str, since: Instant) -> String {
    let told = |program: &str, args: &[&str]| {
        let output =
            Git::new(program).args(args).current_dir(root()).output().ok().filter(|output| output.status.success());
        output.map_or_else(|| "unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    format!(
        "- Command: `{command}`, {} s without building\n- Date: {}\n- Commit: {}\n- Machine: {}",
        since.elapsed().as_secs(),
        told("date", &["-u", "+%F"]),
        told("git", &["describe", "--always", "--dirty", "--exclude", "*"]),
        machine::line()
    )
}
