//! A storm from its start to the verdicts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use claimant_local::Error;
use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::lambda::FunctionCounters;
use claimant_local::sqs::Depth;
use claimant_local::stack::Stack;
use claimant_local::workload::{Fate, Piece, Plan, Route};
use fastrand::Rng;
use tokio::time::{Instant, sleep, sleep_until};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::check::{Traffic, Verdict};
use crate::database::Database;
use crate::killer::{Strikes, strike};
use crate::line::{Line, LineCounts};
use crate::operator::{self, DEAD_LETTERS_MAX};
use crate::plan::{Extent, Target};
use crate::transcript::{Found, Transcript};
use crate::worker;

/// How long an invocation may take, so that the lease of a dead owner is over soon.
const TIMEOUT: Duration = Duration::from_secs(4);
/// How long a message is hidden whose visibility no function changes.
const VISIBILITY: Duration = Duration::from_secs(6);
/// Backoffs grow to a quarter of an hour; here no message stays away for longer than this.
const HIDDEN_MAX: Duration = Duration::from_secs(5);
/// After how many receives a standard queue gives up on a message: SQS's usual limit. Deaths use them up, and what is good is
/// then moved back by [`operator`].
const RECEIVES_MAX: u32 = 5;
/// The same where order counts: a message in the dead-letter queue has lost its place in its group.
const RECEIVES_MAX_FIFO: u32 = 1_000;
/// In storms of at least this length, the table is away once, for
const OUTAGE_IN: Duration = Duration::from_secs(60);
/// this long: nearly all the receives of a message.
const OUTAGE: Duration = Duration::from_secs(20);
/// How long the queues may take to drain once it is calm, and again after the redrive, at least; and for each second of the storm.
const DRAIN_MAX: (Duration, f64) = (Duration::from_secs(120), 0.5);
/// Pieces of work for each function and second.
const PIECES_PER_SECOND: f64 = 4.0;
/// As many as the mailbox keeps, with room for repeats.
const PIECES_MAX: f64 = 8_000.0;
/// Batches of one function at the same time.
const CONCURRENCY: &str = "3";
/// Of the storm's own process, all that the cloud says is wanted, and little of the client that looks at tables.
const CLOUD: &str = "claimant_local";
/// What every planted secret starts with, before the seed.
const SECRET: &str = "hush";

/// The DynamoDB behind the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Engine {
    /// The local cloud's own, in memory
    Embedded,
    /// Amazon's DynamoDB Local, which `make tools` installs
    Local,
}

/// What a storm is made from.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) storm: Duration,
    pub(crate) engine: Engine,
    pub(crate) binaries: PathBuf,
    /// The directory of the project.
    pub(crate) root: PathBuf,
    /// Where a copy of everything printed goes.
    pub(crate) log: Option<PathBuf>,
    /// Parameters of the template, beside those of every storm.
    pub(crate) parameters: BTreeMap<String, String>,
}

/// One function's part.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) function: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) traffic: Traffic,
    pub(crate) counters: FunctionCounters,
}

/// What a storm came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How long it stormed.
    pub(crate) storm: Duration,
    pub(crate) rows: Vec<Row>,
    pub(crate) strikes: Strikes,
    pub(crate) line: LineCounts,
    /// Messages that the operator moved back, by function.
    pub(crate) redriven: BTreeMap<&'static str, u64>,
    /// How long the queues took to drain; `None` where they did not in time.
    pub(crate) drained: Option<Duration>,
    pub(crate) found: Found,
    /// Whether the search found what was shown to it.
    pub(crate) search_sees: bool,
}

/// One function, its queue, and what is sent to it.
pub(crate) struct Lane<'a> {
    pub(crate) target: Target,
    pub(crate) route: Route<'a>,
    pub(crate) plan: Plan,
}

/// What a storm came to, but for what became of the messages.
struct Weathered {
    strikes: Strikes,
    redriven: BTreeMap<&'static str, u64>,
    drained: Option<Duration>,
}

/// Runs a storm, and looks at what became of it.
///
/// # Errors
/// When something could not be started, or a table cannot be read. What went wrong with messages is in the outcome.
pub(crate) async fn run(settings: Settings) -> Result<Outcome, Error> {
    let mut random = Rng::with_seed(settings.seed);
    let secret = format!("{SECRET}{:016x}", random.u64(..));
    let transcript = Transcript::new(&secret, settings.log.as_deref().map(open).transpose()?);
    let search_sees = watch_the_cloud(&transcript, &secret);

    let template = settings.root.join("template.yaml");
    let mut parameters = BTreeMap::from([("MaximumConcurrency".to_owned(), CONCURRENCY.to_owned())]);
    parameters.extend(settings.parameters.clone());
    let loose = Line::open(Rng::with_seed(random.u64(..))).await?;
    let logs = transcript.clone();
    let config = CloudConfig {
        parameters: parameters.clone(),
        only: Target::ALL.map(|target| target.function().to_owned()).into(),
        logs: Arc::new(move |function, line| logs.line(function, line)),
        adjust: Arc::new(prepare),
        dynamodb_url: Some(loose.line.url.clone()),
        ..CloudConfig::new(&template, &settings.binaries)
    };
    let (cloud, database) = match settings.engine {
        Engine::Local => {
            // Those of the template are all: the worker shares one.
            let tables = Stack::load(&template, &parameters)?.tables;
            let database = Database::local(&tables).await?;
            (Cloud::start(config).await?, database)
        }
        Engine::Embedded => {
            let cloud = Cloud::start(config).await?;
            let address = cloud.endpoints().dynamodb.trim_start_matches("http://").to_owned();
            (cloud, Database::at(&address))
        }
    };
    let (line, _relay) = loose.tie(database.address.clone());
    cloud.sqs().hide_at_most(HIDDEN_MAX);

    let pieces = (settings.storm.as_secs_f64() * PIECES_PER_SECOND).min(PIECES_MAX);
    let extent = Extent { pieces: pieces as u32, within: settings.storm };
    let lanes = Target::ALL.map(|target| Lane::new(&cloud, target, target.plan(extent, &secret, &mut random)));
    let lanes = lanes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let Weathered { strikes, redriven, drained } = weather(&cloud, &line, &lanes, settings.storm, random).await?;

    let mut rows = Vec::new();
    for lane in &lanes {
        let redriven = redriven.get(lane.target.function()).copied().unwrap_or_default();
        rows.push(lane.row(&cloud, &database, redriven).await?);
    }
    cloud.stop().await;
    worker::forget_effects();
    let (storm, line, found) = (settings.storm, line.counts(), transcript.take());
    Ok(Outcome { storm, rows, strikes, line, redriven, drained, found, search_sees })
}

/// The storm itself, and the calm after it.
async fn weather(
    cloud: &Cloud,
    line: &Line,
    lanes: &[Lane<'_>],
    storm: Duration,
    mut random: Rng,
) -> Result<Weathered, Error> {
    let functions = Target::ALL.map(Target::function);
    let functions = functions.into_iter().filter_map(|name| Some((name, cloud.function(name)?.clone()))).collect();
    let start = Instant::now();
    let striking = tokio::spawn(strike(functions, Rng::with_seed(random.u64(..)), start + storm));
    line.set_storm(true);
    let outage = (storm >= OUTAGE_IN).then(|| tokio::spawn(line.clone().go_away(start + storm / 3, OUTAGE)));
    send(cloud, lanes, start).await?;
    sleep_until(start + storm).await;
    line.set_storm(false);
    if let Some(outage) = outage {
        outage.await.map_err(|e| Error::new("the outage ended early").caused_by(e))?;
    }
    let strikes = striking.await.map_err(|e| Error::new("the strikes ended early").caused_by(e))?;
    let calm = Instant::now();
    let limit = DRAIN_MAX.0 + storm.mul_f64(DRAIN_MAX.1);
    let mut redriven = BTreeMap::new();
    let mut drained = drain(cloud, limit).await?;
    if drained {
        redriven = operator::redrive(cloud, lanes).await?;
        drained = drain(cloud, limit).await?;
    }
    let drained = drained.then(|| calm.elapsed());
    Ok(Weathered { strikes, redriven, drained })
}

/// Waits until the queues are empty, for so long at most; whether they are.
async fn drain(cloud: &Cloud, limit: Duration) -> Result<bool, Error> {
    let end = Instant::now() + limit;
    while !cloud.drained()? {
        if Instant::now() > end {
            return Ok(false);
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(true)
}

/// Sends every message at its time.
async fn send(cloud: &Cloud, lanes: &[Lane<'_>], start: Instant) -> Result<(), Error> {
    let messages = lanes.iter().flat_map(|lane| lane.plan.messages.iter().map(move |message| (lane, message)));
    let mut messages: Vec<_> = messages.collect();
    messages.sort_by_key(|(_, message)| message.at);
    for (number, (lane, message)) in messages.into_iter().enumerate() {
        sleep_until(start + message.at).await;
        lane.route.send(cloud, message, number)?;
    }
    Ok(())
}

/// Short times, the usual number of receives, and the worker.
fn prepare(stack: &mut Stack) {
    worker::add(stack);
    for function in &mut stack.functions {
        function.timeout = if function.name == Target::Poison.function() { worker::TIMEOUT } else { TIMEOUT };
    }
    for queue in &mut stack.queues {
        queue.settings.visibility_timeout = if queue.name == worker::QUEUE { worker::VISIBILITY } else { VISIBILITY };
        if let Some(redrive) = &mut queue.settings.redrive {
            redrive.max_receive_count = if queue.settings.fifo { RECEIVES_MAX_FIFO } else { RECEIVES_MAX };
        }
    }
}

/// Turns the cloud's own log to the transcript; and whether a secret that the cloud, or a function, printed is found.
fn watch_the_cloud(transcript: &Transcript, secret: &str) -> bool {
    let logs =
        tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(transcript.clone()).with_ansi(false);
    let wanted = Targets::new().with_default(LevelFilter::INFO).with_target(CLOUD, LevelFilter::DEBUG);
    // An error means that there is one already, and then the control below is not found.
    let _ = logs.finish().with(wanted).try_init();
    transcript.line("control", "all is well");
    let quiet = transcript.take().leaks == 0;
    tracing::warn!(body = format!("{{\"note\":\"{secret}0\"}}"), "control");
    transcript.line("control", &format!("a function prints {secret}0"));
    quiet && transcript.take().leaks == 2
}

fn open(path: &Path) -> Result<Box<dyn Write + Send>, Error> {
    let file =
        File::create(path).map_err(|e| Error::new(format!("{} cannot be written", path.display())).caused_by(e))?;
    Ok(Box::new(file))
}

impl<'a> Lane<'a> {
    fn new(cloud: &'a Cloud, target: Target, plan: Plan) -> Result<Self, Error> {
        let name = target.function();
        let function = cloud.stack().functions.iter().find(|function| function.binary == name);
        let function = function.ok_or_else(|| Error::new(format!("the storm needs {name}: give the template one")))?;
        Ok(Self { target, route: Route::of(cloud.stack(), function)?, plan })
    }

    /// Says of each good piece among the dead letters how it came there: that is a fault, and this is its trace.
    async fn explain(&self, cloud: &Cloud) -> Result<(), Error> {
        for letter in cloud.sqs().receive(self.route.dead_letter_queue, DEAD_LETTERS_MAX, Duration::ZERO).await? {
            let good = |piece: &&Piece| piece.fate == Fate::Done && piece.body == letter.body;
            if let Some(Piece { key, .. }) = self.plan.pieces.iter().find(good) {
                let why = letter.message_attributes.get("claimant-error");
                println!("{key} is good, and a dead letter: {}, {why:?}", letter.message_id);
            }
        }
        Ok(())
    }

    async fn row(&self, cloud: &Cloud, database: &Database, redriven: u64) -> Result<Row, Error> {
        let counters = cloud.sqs().counters(self.route.queue)?;
        let Depth { visible, in_flight, delayed, .. } = cloud.sqs().depth(self.route.queue)?;
        let letters = cloud.sqs().messages(self.route.dead_letter_queue)?;
        let traffic = Traffic {
            sent: counters.sent,
            redriven,
            deliveries: counters.received,
            deleted: counters.deleted,
            moved: counters.dead_lettered,
            queued: (visible + in_flight + delayed) as u64,
            dead_letters: letters.into_iter().map(|message| message.body).collect(),
        };
        let seen = crate::seen::Seen::of(self.target, cloud, database, self.route.function).await?;
        let verdict = Verdict::new(self.target, &self.plan, &seen, &traffic);
        if !verdict.faults.is_empty() {
            self.explain(cloud).await?;
        }
        let counters =
            cloud.function(&self.route.function.logical_id).map(|function| function.counters()).unwrap_or_default();
        Ok(Row { function: self.target.function(), verdict, traffic, counters })
    }
}
