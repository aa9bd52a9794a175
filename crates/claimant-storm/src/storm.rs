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
use claimant_local::sqs::{Depth, NewMessage};
use claimant_local::stack::{FunctionSpec, Stack};
use claimant_local::workload::Random;
use tokio::time::{Instant, sleep, sleep_until};

use crate::check::{Traffic, Verdict};
use crate::database::Database;
use crate::killer::{Strikes, strike};
use crate::line::{Line, LineCounts};
use crate::plan::{Extent, Plan, Target};
use crate::transcript::{Found, Transcript};

/// How long an invocation may take, so that the lease of a dead owner is over soon.
const TIMEOUT: Duration = Duration::from_secs(4);
/// How long a message is hidden that nobody says anything about.
const VISIBILITY: Duration = Duration::from_secs(6);
/// Backoffs grow to a quarter of an hour; here no message stays away for longer than this.
const HIDDEN_MAX: Duration = Duration::from_secs(5);
/// Deaths use up receives. Only what no retry mends may be dead-lettered here.
const RECEIVES_MAX: u32 = 1_000;
/// How long the queues may take to drain once it is calm, at least; and for each second of the storm.
const DRAIN_MAX: (Duration, f64) = (Duration::from_secs(120), 0.5);
/// Pieces of work for each function and second.
const PIECES_PER_SECOND: f64 = 4.0;
/// As many as the mailbox keeps, with room for repeats.
const PIECES_MAX: f64 = 8_000.0;
/// Batches of one function at the same time.
const CONCURRENCY: &str = "3";
/// What is wanted of the storm's own process: all that the cloud says, and little of the client that looks at tables.
const CLOUD_LOG: &str = "info,claimant_local=debug";
/// What every planted secret starts with, before the seed.
const SECRET: &str = "hush";

/// The DynamoDB behind the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Engine {
    /// The local cloud's own.
    Embedded,
    /// Amazon's DynamoDB Local, as `make tools` installed it.
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
    pub(crate) rows: Vec<Row>,
    pub(crate) strikes: Strikes,
    pub(crate) line: LineCounts,
    /// How long the queues took to drain; `None` where they did not in time.
    pub(crate) drained: Option<Duration>,
    pub(crate) found: Found,
    /// Whether the search found what was shown to it.
    pub(crate) search_sees: bool,
}

/// One function, its queue, and what is sent to it.
struct Lane {
    target: Target,
    function: FunctionSpec,
    queue: String,
    dead_letter_queue: String,
    fifo: bool,
    plan: Plan,
}

/// Runs a storm, and looks at what became of it.
///
/// # Errors
/// When something could not be started, or a table cannot be read. What went wrong with messages is in the outcome.
pub(crate) async fn run(settings: Settings) -> Result<Outcome, Error> {
    let mut random = Random::new(settings.seed);
    let secret = format!("{SECRET}{:016x}", random.bits());
    let transcript = Transcript::new(&secret, settings.log.as_deref().map(open).transpose()?);
    let search_sees = watch_the_cloud(&transcript, &secret);

    let template = settings.root.join("template.yaml");
    let mut parameters = BTreeMap::from([("MaximumConcurrency".to_owned(), CONCURRENCY.to_owned())]);
    parameters.extend(settings.parameters.clone());
    let loose = Line::open(Random::new(random.bits())).await?;
    let logs = transcript.clone();
    let config = CloudConfig {
        parameters: parameters.clone(),
        only: Target::ALL.map(|target| target.function().to_owned()).into(),
        logs: Arc::new(move |function, line| logs.line(function, line)),
        adjust: hasten,
        dynamodb_url: Some(loose.line.url.clone()),
        ..CloudConfig::new(&template, &settings.binaries)
    };
    let (cloud, database) = match settings.engine {
        Engine::Local => {
            let tables = Stack::load(&template, &parameters)?.tables;
            let database = Database::local(&settings.root, &tables).await?;
            (Cloud::start(config).await?, database)
        }
        Engine::Embedded => {
            let cloud = Cloud::start(config).await?;
            let address = cloud.endpoints().dynamodb.trim_start_matches("http://").to_owned();
            (cloud, Database::at(&address))
        }
    };
    let line = loose.tie(database.address.clone());
    cloud.sqs().hide_at_most(HIDDEN_MAX);

    let pieces = (settings.storm.as_secs_f64() * PIECES_PER_SECOND).min(PIECES_MAX);
    let extent = Extent { pieces: pieces as u32, within: settings.storm };
    let lanes = Target::ALL.map(|target| Lane::new(&cloud, target, target.plan(extent, &secret, &mut random)));
    let lanes = lanes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (strikes, drained) = weather(&cloud, &line, &lanes, settings.storm, random).await?;

    let mut rows = Vec::new();
    for lane in &lanes {
        rows.push(lane.row(&cloud, &database).await?);
    }
    cloud.stop().await;
    Ok(Outcome { rows, strikes, line: line.counts(), drained, found: transcript.take(), search_sees })
}

/// The storm itself, and the calm after it.
async fn weather(
    cloud: &Cloud,
    line: &Line,
    lanes: &[Lane],
    storm: Duration,
    mut random: Random,
) -> Result<(Strikes, Option<Duration>), Error> {
    let functions = Target::ALL.map(Target::function);
    let functions = functions.into_iter().filter_map(|name| Some((name, cloud.function(name)?.clone()))).collect();
    let start = Instant::now();
    let striking = tokio::spawn(strike(functions, Random::new(random.bits()), start + storm));
    line.set_storm(true);
    send(cloud, lanes, start).await?;
    sleep_until(start + storm).await;
    line.set_storm(false);
    let strikes = striking.await.map_err(|e| Error::new("the strikes ended early").caused_by(e))?;
    let calm = Instant::now();
    let limit = DRAIN_MAX.0 + storm.mul_f64(DRAIN_MAX.1);
    while !cloud.drained()? {
        if calm.elapsed() > limit {
            return Ok((strikes, None));
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok((strikes, Some(calm.elapsed())))
}

/// Sends every message at its time.
async fn send(cloud: &Cloud, lanes: &[Lane], start: Instant) -> Result<(), Error> {
    let messages = lanes.iter().flat_map(|lane| lane.plan.messages.iter().map(move |message| (lane, message)));
    let mut messages: Vec<_> = messages.collect();
    messages.sort_by_key(|(_, message)| message.at);
    for (place, (lane, message)) in messages.into_iter().enumerate() {
        sleep_until(start + message.at).await;
        // On a FIFO queue each copy is a message of its own, so that it gets through to the function.
        let message = NewMessage {
            group_id: lane.fifo.then(|| message.group.clone()),
            deduplication_id: lane.fifo.then(|| format!("storm-{place}")),
            ..NewMessage::new(&message.body)
        };
        cloud.sqs().send(&lane.queue, message)?;
    }
    Ok(())
}

/// Short times, and receives enough.
fn hasten(stack: &mut Stack) {
    for function in &mut stack.functions {
        function.timeout = TIMEOUT;
    }
    for queue in &mut stack.queues {
        queue.settings.visibility_timeout = VISIBILITY;
        if let Some(redrive) = &mut queue.settings.redrive {
            redrive.max_receive_count = RECEIVES_MAX;
        }
    }
}

/// Turns the cloud's own log to the transcript; and whether a secret that the cloud, or a function, printed is found.
fn watch_the_cloud(transcript: &Transcript, secret: &str) -> bool {
    let subscriber = tracing_subscriber::fmt().with_writer(transcript.clone()).with_ansi(false);
    // An error means that there is one already, and then the control below is not found.
    let _ = subscriber.with_env_filter(CLOUD_LOG).try_init();
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

impl Lane {
    fn new(cloud: &Cloud, target: Target, plan: Plan) -> Result<Self, Error> {
        let name = target.function();
        let missing = |what: &str| Error::new(format!("the storm needs {what} of {name}: give it one in the template"));
        let function = cloud.stack().functions.iter().find(|function| function.binary == name);
        let function = function.ok_or_else(|| missing("the function"))?;
        let mapping =
            function.mappings.iter().find(|mapping| mapping.enabled).ok_or_else(|| missing("an SQS event"))?;
        let queue = cloud.stack().queues.iter().find(|queue| queue.name == mapping.queue);
        let queue = queue.ok_or_else(|| missing("the queue"))?;
        let redrive = queue.settings.redrive.as_ref().ok_or_else(|| missing("the dead-letter queue"))?;
        Ok(Self {
            target,
            function: function.clone(),
            queue: queue.name.clone(),
            dead_letter_queue: redrive.dead_letter_queue.clone(),
            fifo: queue.settings.fifo,
            plan,
        })
    }

    async fn row(&self, cloud: &Cloud, database: &Database) -> Result<Row, Error> {
        let counters = cloud.sqs().counters(&self.queue)?;
        let Depth { visible, in_flight, delayed, .. } = cloud.sqs().depth(&self.queue)?;
        let letters = cloud.sqs().messages(&self.dead_letter_queue)?;
        let traffic = Traffic {
            sent: counters.sent,
            deliveries: counters.received,
            deleted: counters.deleted,
            moved: counters.dead_lettered,
            queued: (visible + in_flight + delayed) as u64,
            dead_letters: letters.into_iter().map(|message| message.body).collect(),
        };
        let seen = crate::seen::Seen::of(self.target, cloud, database, &self.function).await?;
        let verdict = Verdict::new(self.target, &self.plan, &seen, &traffic);
        let counters =
            cloud.function(&self.function.logical_id).map(|function| function.counters()).unwrap_or_default();
        Ok(Row { function: self.target.function(), verdict, traffic, counters })
    }
}
