//! The whole local cloud, from one template: endpoints, tables, queues, functions and event source mappings.

mod builds;
mod programs;
mod start;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Error;
use crate::dynamodb::DynamoDb;
use crate::gateway::{self, Gateway};
use crate::lambda::{Function, LogSink};
use crate::mailbox::{Mailbox, SLOW_DELAY};
use crate::mapping::{Mapping, MappingCounters};
use crate::sqs::{Depth, Sqs};
use crate::stack::{FunctionSpec, Stack};

/// How long [`Cloud::stop`] waits for the mappings to finish what is under way.
pub const STOP_MAPPINGS_MAX: Duration = Duration::from_secs(5);
/// How long [`Cloud::stop`] waits for the functions' processes to end.
pub const STOP_FUNCTIONS_MAX: Duration = Duration::from_secs(5);
/// How long [`Cloud::stop`] waits for the endpoints to answer what is under way.
pub const STOP_ENDPOINTS_MAX: Duration = Duration::from_secs(2);
/// Processes of one function where its mapping sets no maximum concurrency.
pub const CONCURRENCY_DEFAULT: usize = 4;
/// Processes of one function at most, whatever its mapping says.
pub const CONCURRENCY_MAX: usize = 16;

/// What a local cloud is started from.
#[derive(Clone)]
pub struct CloudConfig {
    /// The SAM template.
    pub template: PathBuf,
    /// Values for the template's parameters, beside their defaults.
    pub parameters: BTreeMap<String, String>,
    /// The directory that holds the functions' binaries, by their names or as `sam build` and cargo-lambda lay them out.
    pub binaries: PathBuf,
    /// Whether to look for a function that is not there also beside the template: for `bootstrap` in its `CodeUri` and in
    /// `.aws-sam/build`, and for what cargo and cargo-lambda built. The newest that this machine can run is taken.
    pub search: bool,
    /// Whether a function without a program waits for one, and its messages with it; otherwise it is an error. It is found by
    /// [`watch`](Self::watch).
    pub wait_for_programs: bool,
    /// Whether new builds of running functions are looked for; their queues, tables and ports stay.
    pub watch: bool,
    /// Where DynamoDB keeps its file; in memory where `None`. Queues and mails are always in memory.
    pub data: Option<PathBuf>,
    /// The ports to listen on.
    pub ports: Ports,
    /// The functions to run, by name, binary or logical id; all where empty.
    pub only: Vec<String>,
    /// How long the mailbox takes to answer a mail to a `slow…` address.
    pub slow_mail: Duration,
    /// How long the gateway takes to answer a charge of a `slow…` reference.
    pub slow_charge: Duration,
    /// Who gets the functions' log lines.
    pub logs: LogSink,
    /// What is changed of the template before it is started, such as times.
    pub adjust: fn(&mut Stack),
    /// Where the functions find DynamoDB, instead of at this cloud's own endpoint: a line to it that fails, or another
    /// one, which has the template's tables already.
    pub dynamodb_url: Option<String>,
}

impl CloudConfig {
    /// Everything at its default: all functions, in memory, free ports, no logs.
    pub fn new(template: impl Into<PathBuf>, binaries: impl Into<PathBuf>) -> Self {
        Self {
            template: template.into(),
            parameters: BTreeMap::new(),
            binaries: binaries.into(),
            search: false,
            wait_for_programs: false,
            watch: false,
            data: None,
            ports: Ports::default(),
            only: Vec::new(),
            slow_mail: SLOW_DELAY,
            slow_charge: gateway::SLOW_DELAY,
            logs: Arc::new(|_, _| {}),
            adjust: |_| {},
            dynamodb_url: None,
        }
    }
}

/// The ports of the endpoints on 127.0.0.1; 0 takes a free one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ports {
    /// DynamoDB's.
    pub dynamodb: u16,
    /// SQS's.
    pub sqs: u16,
    /// SES's.
    pub ses: u16,
    /// The payment gateway's.
    pub gateway: u16,
}

/// The base addresses of the endpoints.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// DynamoDB's.
    pub dynamodb: String,
    /// SQS's.
    pub sqs: String,
    /// SES's; `/_claimant/mails` under it lists what was received.
    pub ses: String,
    /// The payment gateway's; `/_claimant/charges` under it lists what was charged.
    pub gateway: String,
}

/// A function of the template that runs, with its mappings.
struct RunningFunction {
    spec: FunctionSpec,
    function: Function,
    mappings: Vec<Mapping>,
}

/// A running local cloud.
///
/// [`stop`](Self::stop) ends it in order. A dropped cloud stops its endpoints without waiting for anyone.
pub struct Cloud {
    stack: Stack,
    endpoints: Endpoints,
    sqs: Sqs,
    dynamodb: DynamoDb,
    mailbox: Mailbox,
    gateway: Gateway,
    functions: Vec<RunningFunction>,
    /// The functions that had no program when the cloud started, each with what to do about it.
    waiting: Vec<String>,
    /// Cut when the cloud stops or is dropped.
    watching: JoinSet<()>,
    shutdown: watch::Sender<bool>,
    servers: JoinSet<Result<(), Error>>,
}

impl Cloud {
    /// Starts everything in the template.
    ///
    /// # Errors
    /// When the template, a parameter, a binary, the data directory or a port is not as it must be; the message says
    /// which, and how to mend it. Nothing is left running then.
    pub async fn start(config: CloudConfig) -> Result<Self, Error> {
        start::start(config).await
    }

    /// Where the endpoints listen.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The variables that point an AWS CLI or SDK at this cloud, and a function at its payment gateway.
    pub fn variables(&self) -> Vec<(String, String)> {
        let gateway = ("GATEWAY_URL".to_owned(), self.endpoints.gateway.clone());
        start::variables(&self.endpoints).into_iter().chain([gateway]).collect()
    }

    /// Returns the variables that the template gives its running functions, as far as all that have one of a name agree on
    /// its value: for functions that run elsewhere and share one environment.
    pub fn function_variables(&self) -> Vec<(String, String)> {
        let specs = self.functions.iter().map(|running| &running.spec.environment);
        start::agreed(specs.map(|template| start::template_variables(template, &self.endpoints)))
    }

    /// What the template holds.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// A line for each function that had no program when the cloud started: where one is looked for, and how to build it.
    pub fn waiting(&self) -> &[String] {
        &self.waiting
    }

    /// The queues.
    pub fn sqs(&self) -> &Sqs {
        &self.sqs
    }

    /// The tables.
    pub fn dynamodb(&self) -> &DynamoDb {
        &self.dynamodb
    }

    /// What was sent by mail.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// What was charged.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The running function of this name, binary or logical id.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let running = self.functions.iter().find(|f| is_called(&f.spec, name))?;
        Some(&running.function)
    }

    /// What the mappings of the function of this name, binary or logical id did so far, added up.
    pub fn mapping_counters(&self, name: &str) -> MappingCounters {
        let functions = self.functions.iter().filter(|f| is_called(&f.spec, name));
        let mut sum = MappingCounters::default();
        for counters in functions.flat_map(|f| &f.mappings).map(Mapping::counters) {
            sum.invocations += counters.invocations;
            sum.succeeded += counters.succeeded;
            sum.filtered += counters.filtered;
            sum.failed += counters.failed;
            sum.whole_batch_failures += counters.whole_batch_failures;
        }
        sum
    }

    /// True when no queue holds a message, visible, in flight or delayed, dead-letter queues aside.
    ///
    /// # Errors
    /// When a queue of the template is gone.
    pub fn drained(&self) -> Result<bool, Error> {
        for queue in &self.stack.queues {
            if self.is_dead_letter_queue(&queue.name) {
                continue;
            }
            let Depth { visible, in_flight, delayed, .. } = self.sqs.depth(&queue.name)?;
            if visible + in_flight + delayed > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether some queue of the template sends its dead letters to this one.
    pub fn is_dead_letter_queue(&self, name: &str) -> bool {
        let redrives = self.stack.queues.iter().filter_map(|q| q.settings.redrive.as_ref());
        redrives.into_iter().any(|redrive| redrive.dead_letter_queue == name)
    }

    /// Stops the mappings, then the functions, then the endpoints, each within its `STOP_…_MAX`.
    pub async fn stop(mut self) {
        self.watching.shutdown().await;
        let mappings: Vec<_> = self.functions.iter_mut().flat_map(|f| f.mappings.drain(..)).collect();
        let mut stopping = JoinSet::new();
        for mapping in mappings {
            stopping.spawn(mapping.stop());
        }
        // What has not stopped in time is cancelled: its messages become visible again, as after any lost poller.
        let _ = timeout(STOP_MAPPINGS_MAX, all_ended(stopping)).await;

        let mut stopping = JoinSet::new();
        for running in &self.functions {
            let function = running.function.clone();
            stopping.spawn(async move { function.stop().await });
        }
        if timeout(STOP_FUNCTIONS_MAX, all_ended(stopping)).await.is_err() {
            tracing::warn!("a function's processes did not end in time");
        }

        // The receivers are gone if every endpoint ended by itself: nothing to tell then.
        let _ = self.shutdown.send(true);
        let servers = std::mem::take(&mut self.servers);
        // What has not been answered in time is cut off.
        let _ = timeout(STOP_ENDPOINTS_MAX, all_ended(servers)).await;
    }
}

/// Resolves when every task has ended, whatever way; cancels those left when dropped.
async fn all_ended<T: 'static>(mut tasks: JoinSet<T>) {
    while tasks.join_next().await.is_some() {}
}

/// Whether `name` means this function.
fn is_called(spec: &FunctionSpec, name: &str) -> bool {
    [&spec.name, &spec.binary, &spec.logical_id].iter().any(|known| *known == name)
}
