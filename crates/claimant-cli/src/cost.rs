//! `claimant cost`: what a deployment costs a month.

use std::path::PathBuf;

use claimant_core::Error;
use claimant_cost::{Choice, Guarantee, Load, Prices, Store, Traffic, Work};
use claimant_operate::text::harmless;

use crate::exit::Ended;
use crate::output;
use crate::template::TemplateOptions;

const EXIT_CODES: &str = "\
Exit codes:
  0  The bill was printed.
  2  Wrong usage, or the templates or the prices cannot be read.";

/// Compute what the consumers of templates cost a month, at a rate, and which limit they meet first.
///
/// From what the templates say (memory, architecture, batch size, window, concurrency, table, alarms), what the options say, and list
/// prices with their date, which may have changed. Nothing is asked of AWS. How many units of the table a message takes is what the
/// runtime makes; how full batches are is an estimate, unless --filled is given.
///
/// Several functions are a table, with the limits of what they share, a table and the account; one, or one of --function, has its lines, what would lower its bill, its limits, and its bill by
/// guarantee and store. Of several templates each function has the name of its file in front (App>Confirm), and all are in one bill. The rate is that of each function; of one that reads several queues, that of each queue.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cost {
    #[command(flatten)]
    deployment: DeploymentOptions,

    #[command(flatten)]
    traffic: TrafficOptions,

    #[command(flatten)]
    work: WorkOptions,

    #[command(flatten)]
    plan: PlanOptions,

    #[command(flatten)]
    prices: PriceOptions,

    /// Write a chart, too, as SVG: the bill of the first function against the rate, from a thousand to a billion a day
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct DeploymentOptions {
    #[command(flatten)]
    read: TemplateOptions,

    /// Only this function, by its logical id, or one of its queues, by FUNCTION/MAPPING; may be given several times
    #[arg(long = "function", value_name = "NAME")]
    functions: Vec<String>,

    /// Try another BatchSize than the template's, up to 10,000; FIFO queues have 10 at most, and so have others without a window
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    batch_size: Option<u16>,

    /// Try another MaximumBatchingWindowInSeconds than the template's, up to 300; FIFO queues have none
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(0..=300))]
    batching_window: Option<u16>,
}

#[derive(Debug, clap::Args)]
struct TrafficOptions {
    /// Messages that come in a day, copies included
    #[arg(long, value_name = "N", value_parser = positive, required_unless_present = "per_second")]
    per_day: Option<f64>,

    /// Messages that come in a second, instead
    #[arg(long, value_name = "N", value_parser = positive, conflicts_with = "per_day")]
    per_second: Option<f64>,

    /// The busiest second over the mean one, for the limits
    #[arg(long, value_name = "TIMES", default_value_t = 2.0, value_parser = times)]
    peak: f64,

    /// Of 100 messages, how many are copies of completed work; above 50, records are counted as read before they are claimed, but for --guarantee optimistic
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    duplicates: f64,

    /// Of 100 messages, how many fail and come again once
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    retries: f64,

    /// Messages of a batch on the mean, if you know, up to 10,000 [default: estimated from rate, window and duration]
    #[arg(long, value_name = "N", value_parser = filled)]
    filled: Option<f64>,

    /// Of FIFO queues: messages of one group in a batch on the mean, up to 10; they run one after the other
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = up_to_ten)]
    per_group: f64,

    /// Count sending too, with so many messages in one request
    #[arg(long, value_name = "N", value_parser = up_to_ten)]
    sent_in: Option<f64>,
}

#[derive(Debug, clap::Args)]
struct WorkOptions {
    /// Milliseconds that the handler takes for a message
    #[arg(long, value_name = "MS", default_value_t = 20.0, value_parser = number)]
    handler_ms: f64,

    /// Milliseconds that the store takes for an answer
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = number)]
    store_ms: f64,

    /// Bytes of a message with its attributes; SQS takes 1,048,576 at most
    #[arg(long, value_name = "N", default_value_t = 1_024.0, value_parser = body_bytes)]
    body_bytes: f64,

    /// Bytes of what a handler returns, which its record keeps
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = number)]
    result_bytes: f64,

    /// Write units of a transactional handler's own writes, as if they stood alone
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = number)]
    writes: f64,

    /// Bytes that the handler logs for a message
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = number)]
    log_bytes: f64,

    /// The lease of consumers that renew it, in seconds [default: none is renewed]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    renewed_lease: Option<f64>,

    /// Days that a completed key keeps duplicates out
    #[arg(long, value_name = "N", default_value_t = 15.0, value_parser = positive)]
    window_days: f64,
}

#[derive(Debug, clap::Args)]
struct PlanOptions {
    /// The guarantee of the consumers, which no template says
    #[arg(long, value_name = "GUARANTEE", default_value = "at-least-once")]
    guarantee: GuaranteeOption,

    /// The store [default: as the template says]
    #[arg(long, value_name = "STORE")]
    store: Option<StoreOption>,

    /// What the PostgreSQL, MySQL or Redis costs a month: one for all consumers whose records are in one
    #[arg(long, value_name = "USD", value_parser = number)]
    instance_usd: Option<f64>,
}

#[derive(Debug, clap::Args)]
struct PriceOptions {
    /// Your own prices: YAML, only what differs. crates/claimant-cost/src/prices.yaml has the form; `prices` of --json goes under `prices:`
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,

    /// The Region that the template's stack is for; another one than us-east-1 needs --prices
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Take off what an account has for nothing each month; what would lower the bill, and the comparison, are without it
    #[arg(long)]
    free_tier: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum GuaranteeOption {
    AtLeastOnce,
    AtMostOnce,
    Transactional,
    /// Transactional, without a claim
    Optimistic,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum StoreOption {
    OnDemand,
    Provisioned,
    /// PostgreSQL, MySQL or Redis
    Database,
}

fn at_least(text: &str, least: f64, what: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (least..=1e12).contains(number));
    number.ok_or_else(|| format!("give a number {what} to 1e12, with a dot for decimals and without commas"))
}

fn number(text: &str) -> Result<f64, String> {
    at_least(text, 0.0, "from 0")
}

fn times(text: &str) -> Result<f64, String> {
    at_least(text, 1.0, "from 1")
}

fn positive(text: &str) -> Result<f64, String> {
    at_least(text, 1e-6, "above 0, from 0.000001")
}

fn percent(text: &str) -> Result<f64, String> {
    number(text).ok().filter(|percent| *percent <= 100.0).ok_or_else(|| "give a number from 0 to 100".to_owned())
}

fn up_to_ten(text: &str) -> Result<f64, String> {
    times(text).ok().filter(|each| *each <= 10.0).ok_or_else(|| "give a number from 1 to 10".to_owned())
}

fn filled(text: &str) -> Result<f64, String> {
    times(text).ok().filter(|filled| *filled <= 10_000.0).ok_or_else(|| "give a number from 1 to 10,000".to_owned())
}

fn body_bytes(text: &str) -> Result<f64, String> {
    number(text)
        .ok()
        .filter(|bytes| *bytes <= 1_048_576.0)
        .ok_or_else(|| "give a number from 0 to 1,048,576".to_owned())
}

/// Computes the bill and prints it.
///
/// # Errors
/// When the template or the prices cannot be read.
pub(crate) fn run(options: &Cost) -> Result<Ended, Error> {
    let prices = prices(&options.prices)?;
    let known = claimant_doctor::Options {
        parameters: options.deployment.read.parameters.values().map_err(Error::invalid)?,
        region: Some(prices.region.clone()),
        account: None,
    };
    let templates = &options.deployment.read.templates;
    let read = claimant_doctor::read_as_one(templates, &known);
    let (system, not_looked_at) = read.map_err(|e| Error::invalid(e.to_string()))?;
    for what in not_looked_at {
        output::note(format!("not looked at: {}", harmless(&what)));
    }
    let (load, choice) = (load(options), choice(options));
    let of_template = |e: String| {
        let templates: Vec<_> = templates.iter().map(|template| template.display().to_string()).collect();
        Error::invalid(format!("{}: {e}", templates.join(", ")))
    };
    if let Some(path) = &options.chart {
        let chart = claimant_cost::chart(&system, &load, &prices, &choice).map_err(of_template)?;
        let written = std::fs::write(path, chart);
        written.map_err(|e| Error::invalid(format!("the chart {} cannot be written: {e}", path.display())))?;
    }
    let report = claimant_cost::report(&system, load, prices, &choice).map_err(of_template)?;
    if options.json {
        output::say_json(&claimant_cost::json(&report));
    } else {
        output::say(claimant_cost::text(&report).trim_end());
    }
    Ok(Ended::Well)
}

fn prices(options: &PriceOptions) -> Result<Prices, Error> {
    let mut prices = Prices::list();
    if let Some(path) = &options.prices {
        let shown = path.display();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|e| Error::invalid(format!("the prices {shown} cannot be read: {e}")))?;
        prices = prices.with(&text).map_err(|e| Error::invalid(format!("the prices {shown}: {e}")))?;
    }
    match &options.region {
        Some(region) if *region != prices.region => Err(Error::invalid(format!(
            "the prices are those of {}, not of {region}: give a file with --prices whose region is {region}",
            prices.region
        ))),
        _ => Ok(prices),
    }
}

fn load(options: &Cost) -> Load {
    let (traffic, work) = (&options.traffic, &options.work);
    let per_day = traffic.per_day.map(|per_day| per_day / 86_400.0);
    Load {
        traffic: Traffic {
            // One of the two is there: clap has seen to it.
            per_second: traffic.per_second.or(per_day).unwrap_or_default(),
            peak: traffic.peak,
            duplicates: traffic.duplicates / 100.0,
            retries: traffic.retries / 100.0,
            per_group: traffic.per_group,
            sent_in: traffic.sent_in,
        },
        work: Work {
            handler_ms: work.handler_ms,
            store_ms: work.store_ms,
            body_bytes: work.body_bytes,
            result_bytes: work.result_bytes,
            writes: work.writes,
            log_bytes: work.log_bytes,
            lease_s: work.renewed_lease,
        },
        filled: traffic.filled,
        window_days: work.window_days,
    }
}

fn choice(options: &Cost) -> Choice {
    let plan = &options.plan;
    Choice {
        functions: options.deployment.functions.clone(),
        guarantee: match plan.guarantee {
            GuaranteeOption::AtLeastOnce => Guarantee::AtLeastOnce,
            GuaranteeOption::AtMostOnce => Guarantee::AtMostOnce,
            GuaranteeOption::Transactional => Guarantee::Transactional,
            GuaranteeOption::Optimistic => Guarantee::Optimistic,
        },
        batch: options.deployment.batch_size.map(f64::from),
        window_s: options.deployment.batching_window.map(f64::from),
        store: plan.store.map(|store| match store {
            StoreOption::OnDemand => Store::OnDemand,
            StoreOption::Provisioned => Store::Provisioned,
            StoreOption::Database => Store::Instance(plan.instance_usd),
        }),
        instance_usd: plan.instance_usd,
        free_tier: options.prices.free_tier,
    }
}
