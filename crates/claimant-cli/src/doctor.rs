//! `claimant doctor`: what is wrong with a template, or with what is deployed.

use claimant_core::{Clock as _, Error, SystemClock};
use claimant_doctor::account::{Aws, Scope, examine};
use claimant_doctor::{CATALOG, Check, Level, Report};

use crate::exit::Ended;
use crate::output;
use crate::template::TemplateOptions;

const EXIT_CODES: &str = "\
Exit codes:
  0  Nothing was found.
  1  Something was found, of --level or worse.
  2  Wrong usage, or the template, the stack or all of its functions cannot be
     read, or the stack has no function.";

/// The width of texts where the terminal does not say its own.
const WIDTH: usize = 100;

/// Check SQS consumers: timeouts, dead letters, rights, concurrency, the lock table, alarms.
///
/// Checks a SAM or CloudFormation template, or what `cdk synth` writes, whatever language the functions are written
/// in. With --stack or --function, what is deployed is looked at instead, with the credentials of the profile and requests that
/// only read; with --history also what its metrics say of the last day. What may not be read is not looked at, and said.
///
/// Of a template, parameters have their defaults, unless given here; what cannot be known from it (a
/// parameter without a value, the export of a stack whose template is not given) is unknown, and never a finding.
///
/// A resource accepts a finding, with the reason, in its Metadata: `claimant-doctor: {fifo-dead-letters: each stands alone}`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Doctor {
    #[command(flatten)]
    read: TemplateOptions,

    /// The Region that the template's stack is for; of an account, the Region to look at [default: as the environment or the profile says]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// The account that the template's stack is for
    #[arg(long, value_name = "ID", value_parser = account, conflicts_with_all = ["stack", "functions"])]
    account: Option<String>,

    /// A deployed CloudFormation stack, by its name, with those nested in it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["templates", "parameters"])]
    stack: Option<String>,

    /// A deployed function, by its name; may be given several times
    #[arg(long = "function", value_name = "NAME", conflicts_with_all = ["templates", "parameters"])]
    functions: Vec<String>,

    /// Of what is deployed, look also at the metrics of the last 24 hours
    #[arg(long)]
    history: bool,

    /// The profile of the AWS configuration [default: as the environment says]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// Leave out this check, by its name or number; may be given several times
    #[arg(long = "skip", value_name = "CHECK", value_parser = check)]
    skipped: Vec<&'static Check>,

    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Debug, clap::Args)]
struct OutputOptions {
    /// What to report: errors; warnings, too; or notes, too, which are often as they should be
    #[arg(long, value_name = "LEVEL", default_value = "warning")]
    level: LevelOption,

    /// How to print it: for people, as JSON, or, of templates, as SARIF 2.1.0 for code scanning
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,

    /// Print one JSON document instead of text, as --format json
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
    Check::named(name).ok_or_else(|| {
        let names: Vec<_> = CATALOG.iter().map(|check| check.name).collect();
        format!("no such check: there are {}", names.join(", "))
    })
}

fn account(id: &str) -> Result<String, String> {
    let is_one = id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_digit());
    is_one.then(|| id.to_owned()).ok_or_else(|| "an account has 12 digits".to_owned())
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

/// Examines the templates, or what is deployed, and prints the report.
///
/// # Errors
/// When it cannot be read.
pub(crate) async fn run(options: &Doctor) -> Result<Ended, Error> {
    let is_deployed = options.stack.is_some() || !options.functions.is_empty();
    for (option, is_given) in [("--history", options.history), ("--profile", options.profile.is_some())] {
        if is_given && !is_deployed {
            let why = format!("{option} is about what is deployed: give --stack NAME or --function NAME");
            return Err(Error::invalid(why));
        }
    }
    // Code scanning refuses the whole file where a finding is in no file.
    if is_deployed && options.output.format == Format::Sarif {
        return Err(Error::invalid("--format sarif is about files: give --template FILE, or --format json"));
    }
    let mut report = if is_deployed { deployed(options).await? } else { templates(options)? };
    report.leave_out(&options.skipped);
    let output = &options.output;
    let level = Level::from(output.level);
    print(&report, level, if output.json { Format::Json } else { output.format });
    Ok(if report.from(level).next().is_some() { Ended::WithFaults } else { Ended::Well })
}

fn templates(options: &Doctor) -> Result<Report, Error> {
    let known = claimant_doctor::Options {
        parameters: options.read.parameters.values().map_err(Error::invalid)?,
        region: options.region.clone(),
        account: options.account.clone(),
    };
    claimant_doctor::examine_all(&options.read.templates, &known).map_err(|e| Error::invalid(e.to_string()))
}

async fn deployed(options: &Doctor) -> Result<Report, Error> {
    let config = claimant_aws::config_of(options.profile.as_deref(), options.region.as_deref()).await?;
    let scope = Scope {
        stack: options.stack.clone(),
        functions: options.functions.clone(),
        history_until_s: options.history.then(now_s),
    };
    let examined = examine(&Aws::new(&config), &scope).await;
    let (system, not_looked_at) =
        examined.map_err(|refused| Error::new(format!("nothing can be examined: {refused}")))?;
    let mut report = claimant_doctor::run(&system);
    report.not_looked_at = not_looked_at;
    Ok(report)
}

fn print(report: &Report, level: Level, format: Format) {
    match format {
        Format::Text => output::say(claimant_doctor::text(report, level, width()).trim_end()),
        Format::Json => output::say_json(&claimant_doctor::json(report, level)),
        Format::Sarif => output::say_json(&claimant_doctor::sarif(report, level)),
    }
}

/// The width of the terminal, if there is one.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or(WIDTH, |size| if size.ws_col == 0 { WIDTH } else { usize::from(size.ws_col) }).min(120)
}

/// Seconds since 1970.
fn now_s() -> u64 {
    SystemClock.now().as_millis() / 1_000
}
