//! `claimant doctor`: what is wrong with a template.

use std::path::PathBuf;

use claimant_doctor::{Check, Level, Report};
use claimant_local::Error;

use crate::exit::Ended;
use crate::output;

const EXIT_CODES: &str = "\
Exit codes:
  0  Nothing was found.
  1  Something was found, of --level or worse.
  2  Wrong usage, or a template cannot be read.";

/// The width of texts where the terminal does not say its own.
const WIDTH: usize = 100;

/// Check SQS consumers: timeouts, dead letters, rights, concurrency, the lock table, alarms.
///
/// 34 checks of a SAM or CloudFormation template, or of what `cdk synth` writes, whatever language the functions are written
/// in. No account is asked. Parameters have their defaults, unless given here; what cannot be known from the template (a
/// parameter without a value, another stack's export) is unknown, and never a finding.
///
/// A resource accepts a finding, with the reason, in its Metadata: `claimant-doctor: {fifo-dead-letters: each stands alone}`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Doctor {
    /// The template; may be given several times. Nested stacks that it names by a path are read with it
    #[arg(long = "template", value_name = "FILE", default_value = "template.yaml")]
    templates: Vec<PathBuf>,

    /// A value for a parameter of the template; may be given several times
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = crate::args::name_and_value)]
    parameters: Vec<(String, String)>,

    /// The Region that the stack is for
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Leave out this check, by its name or number; may be given several times
    #[arg(long = "skip", value_name = "CHECK", value_parser = check)]
    skipped: Vec<&'static Check>,

    /// What to report: errors; warnings, too; or notes, too, which are often as they should be
    #[arg(long, value_name = "LEVEL", default_value = "warning")]
    level: LevelOption,

    /// How to print it: for people, as JSON, or as SARIF 2.1.0 for code scanning
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LevelOption {
    Error,
    Warning,
    Note,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
}

fn check(name: &str) -> Result<&'static Check, String> {
    Check::named(name).ok_or_else(|| "no such check: the names are in docs/doctor.md".to_owned())
}

impl From<LevelOption> for Level {
    fn from(level: LevelOption) -> Self {
        match level {
            LevelOption::Error => Self::Error,
            LevelOption::Warning => Self::Warning,
            LevelOption::Note => Self::Note,
        }
    }
}

/// Examines the templates and prints the report.
///
/// # Errors
/// When a template cannot be read.
pub(crate) fn run(options: &Doctor) -> Result<Ended, Error> {
    let known = claimant_doctor::Options {
        parameters: options.parameters.iter().cloned().collect(),
        region: options.region.clone(),
    };
    let mut report = Report::default();
    for template in &options.templates {
        let (system, not_looked_at) = claimant_doctor::read(template, &known).map_err(|e| Error::new(e.to_string()))?;
        report.add(claimant_doctor::run(&system));
        report.not_looked_at.extend(not_looked_at);
    }
    report.leave_out(&options.skipped);
    let level = Level::from(options.level);
    print(&report, level, if options.json { Format::Json } else { options.format });
    Ok(if report.from(level).next().is_some() { Ended::WithFaults } else { Ended::Well })
}

fn print(report: &Report, level: Level, format: Format) {
    let pretty = |value: &serde_json::Value| format!("{value:#}");
    match format {
        Format::Text => output::say(claimant_doctor::text(report, level, width()).trim_end()),
        Format::Json => output::say(pretty(&claimant_doctor::json(report, level))),
        Format::Sarif => output::say(pretty(&claimant_doctor::sarif(report, level))),
    }
}

/// The width of the terminal, if there is one.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or(WIDTH, |size| if size.ws_col == 0 { WIDTH } else { usize::from(size.ws_col) }).min(120)
}
