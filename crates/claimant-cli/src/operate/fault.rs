//! `claimant fault`: faults on purpose in a local cloud.

use std::time::Duration;

use claimant_core::error::Chain;
use claimant_core::{Error, Timestamp};
use claimant_operate::faults::{Fault, FaultSpec, Faults};
use claimant_operate::target::Place;
use claimant_operate::text::harmless;
use serde_json::json;

use super::options::{OutputOptions, TargetOptions};
use super::parse;
use super::table::{Fit, Table, ago};
use crate::exit::Ended;
use crate::output::{note, say, say_json};

/// Break things on purpose in a local cloud, and see that nothing is lost.
///
/// What was done twice, `claimant effects` shows. Where a process is killed between a mail and its answer that is the mail: no SES
/// can tell that it has sent it before.
///
/// A fault acts a number of times (--times) or for a while (--for), is listed as long as it does, and ends by itself or by hand:
/// claimant fault end. It meets functions only, never a queue's messages or a table's records.
#[derive(Debug, clap::Args)]
pub(crate) struct OfCloud {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the faults that act, and the latest that ended
    List(List),
    /// Kill a process of a function, once it has claimed a message
    Kill(OfProcess),
    /// Stop a process of a function where it is, for some seconds, once it has claimed a message
    Freeze(Freeze),
    /// Carry requests out, and lose the answers
    Lose(Lose),
    /// Throttle requests to the table
    Throttle(OfTable),
    /// Cut requests to the table off
    Cut(OfTable),
    /// Have the mail or the gateway refuse
    Refuse(Refuse),
    /// End faults, and let go on what they froze
    End(End),
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, clap::Args)]
struct OfProcess {
    /// The function, by its name, its logical id or its program's name
    #[arg(value_name = "FUNCTION")]
    function: String,

    /// This process, at once
    #[arg(long, value_name = "PID", conflicts_with = "when")]
    process: Option<u32>,

    /// When: once it has claimed a message, once it has taken a batch, or now, all processes of the function
    #[arg(long, value_name = "WHEN", value_parser = ["claim", "batch", "now"])]
    when: Option<String>,

    #[command(flatten)]
    limits: Limits,

    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, clap::Args)]
struct Freeze {
    #[command(flatten)]
    process: OfProcess,

    /// How long the process is stopped, such as 30s [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    frozen: Option<Duration>,
}

#[derive(Debug, clap::Args)]
struct Lose {
    /// Whose requests
    #[arg(value_name = "OF", default_value = "table", value_parser = ["table", "claims", "settlements", "reads", "mail", "gateway"])]
    of: String,

    #[command(flatten)]
    requests: OfRequests,
}

#[derive(Debug, clap::Args)]
struct OfTable {
    /// Which requests
    #[arg(value_name = "OF", default_value = "table", value_parser = ["table", "claims", "settlements", "reads"])]
    of: String,

    #[command(flatten)]
    requests: OfRequests,
}

#[derive(Debug, clap::Args)]
struct Refuse {
    /// Which of the two
    #[arg(value_name = "OF", value_parser = ["mail", "gateway"])]
    of: String,

    #[command(flatten)]
    requests: OfRequests,
}

// No doc comments on what is flattened: clap would show them as the command's own.
#[derive(Debug, clap::Args)]
struct OfRequests {
    #[command(flatten)]
    limits: Limits,

    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, clap::Args)]
struct End {
    /// Their numbers, as claimant fault list shows them
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<u64>,

    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,

    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, clap::Args)]
struct Limits {
    /// How often it acts [default: once, where it kills, freezes or loses answers]
    #[arg(long, value_name = "N")]
    times: Option<u32>,

    /// How long it acts, such as 30s [default: 10s, where it throttles, cuts or refuses]
    #[arg(long = "for", value_name = "TIME", value_parser = parse::time)]
    period: Option<Duration>,
}

#[derive(Debug, clap::Args)]
struct Shared {
    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

/// Does what is asked.
pub(crate) async fn run(options: OfCloud) -> Result<Ended, Error> {
    match options.command {
        Command::List(List { shared }) => {
            let (_, faults) = shared.open().await?;
            shared.print(&faults.list().await?);
        }
        Command::Kill(process) => process.begin("kill", None).await?,
        Command::Freeze(freeze) => freeze.process.begin("freeze", freeze.frozen).await?,
        Command::Lose(Lose { of, requests }) => requests.begin("lose", of).await?,
        Command::Throttle(OfTable { of, requests }) => requests.begin("throttle", of).await?,
        Command::Cut(OfTable { of, requests }) => requests.begin("cut", of).await?,
        Command::Refuse(Refuse { of, requests }) => requests.begin("refuse", of).await?,
        Command::End(end) => return end.run().await,
    }
    Ok(Ended::Well)
}

impl Shared {
    async fn open(&self) -> Result<(Place, Faults), Error> {
        let place = self.target.open().await?;
        let faults = Faults::of(&place)?;
        Ok((place, faults))
    }

    fn print(&self, faults: &[Fault]) {
        if self.output.json {
            return say_json(&json!({ "faults": faults }));
        }
        if faults.is_empty() {
            return say("No fault acts, and none has.");
        }
        let columns = [
            ("ID", Fit::Number),
            ("DOES", Fit::End),
            ("STATE", Fit::Whole),
            ("ACTED", Fit::Number),
            ("BEGAN", Fit::Whole),
        ];
        let mut table = Table::new(&columns);
        for fault in faults {
            let began = ago(Timestamp::from_millis(fault.began_ms));
            table.row([fault.id.to_string(), fault.does.clone(), state(fault), fault.acted.to_string(), began]);
        }
        table.lines().iter().for_each(say);
    }
}

fn state(fault: &Fault) -> String {
    let left = fault.spec.times.map(|times| times.saturating_sub(fault.acted));
    match (fault.ended_ms, fault.until_ms, left) {
        (Some(_), ..) if fault.acted == 0 => "over, met nothing".to_owned(),
        (Some(_), ..) => "over".to_owned(),
        (None, Some(until_ms), _) => format!("acts until {}", Timestamp::from_millis(until_ms).to_utc()),
        (None, None, Some(1)) => "waits to act once more".to_owned(),
        (None, None, Some(left)) => format!("waits to act {left} more times"),
        (None, None, None) => "acts".to_owned(),
    }
}

/// Whole seconds: a part of one counts as one. The local cloud says which are too many.
fn seconds(period: Duration) -> u32 {
    u32::try_from(period.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX)
}

impl OfProcess {
    async fn begin(self, act: &str, frozen: Option<Duration>) -> Result<(), Error> {
        let (place, faults) = self.shared.open().await?;
        let function = place.function(&self.function).map_or(self.function, |function| function.name.clone());
        let request = FaultSpec {
            function: Some(function),
            process: self.process,
            when: self.when,
            frozen_s: frozen.map(seconds),
            ..self.limits.request(act)
        };
        self.shared.print(&[faults.begin(&request).await?]);
        Ok(())
    }
}

impl OfRequests {
    async fn begin(self, act: &str, of: String) -> Result<(), Error> {
        let (_, faults) = self.shared.open().await?;
        let request = FaultSpec { of: Some(of), ..self.limits.request(act) };
        self.shared.print(&[faults.begin(&request).await?]);
        Ok(())
    }
}

impl Limits {
    fn request(&self, act: &str) -> FaultSpec {
        FaultSpec { act: act.to_owned(), times: self.times, seconds: self.period.map(seconds), ..FaultSpec::default() }
    }
}

impl End {
    /// Ends each of them: one that cannot be ended keeps none of the others.
    async fn run(self) -> Result<Ended, Error> {
        let (_, faults) = self.shared.open().await?;
        let (mut ended, mut failed) = (Vec::new(), Vec::new());
        if self.all {
            ended = faults.end_all().await?;
        }
        for id in self.ids {
            match faults.end(id).await {
                Ok(fault) => ended.push(fault),
                Err(error) => failed.push(error),
            }
        }
        // An error that the command ends with is printed there.
        let ends_with = if ended.is_empty() { failed.pop() } else { None };
        failed.iter().for_each(|error| note(harmless(&format!("error: {}", Chain(error)))));
        if let Some(error) = ends_with {
            return Err(error);
        }
        if ended.is_empty() && !self.shared.output.json {
            say("No fault acted any more. What any of them froze goes on.");
        } else {
            self.shared.print(&ended);
        }
        Ok(if failed.is_empty() { Ended::Well } else { Ended::WithFaults })
    }
}
