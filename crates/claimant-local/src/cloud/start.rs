//! Starting a cloud: everything that can fail comes before the first message can move.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::config::{CloudConfig, Endpoints, Ports, cannot_listen};
use super::programs::Programs;
use super::running::{Cloud, RunningFunction};
use super::servers::Servers;
use super::services::Services;
use super::{builds, environment, missing};
use crate::Error;
use crate::control::{Control, Managed};
use crate::dynamodb::DynamoDb;
use crate::faults::Faults;
use crate::gateway::Gateway;
use crate::journal::{Journal, lines};
use crate::lambda::{Function, FunctionConfig, LogSink, Places};
use crate::mailbox::Mailbox;
use crate::mapping::{Mapping, MappingSwitch};
use crate::s3::S3;
use crate::scheduler::Scheduler;
use crate::sqs::Sqs;
use crate::stack::{FunctionSpec, MappingSpec, Stack};

/// Processes of one function, for each mapping that sets no maximum concurrency; and at least so many.
pub const CONCURRENCY_DEFAULT: usize = 4;
/// Processes of one function at most, whatever its mappings say, unless it has more mappings.
pub const CONCURRENCY_MAX: usize = 16;

impl Cloud {
    /// Starts everything in the template.
    ///
    /// # Errors
    /// When the template, a parameter, a binary, the data directory or a port is not as it must be; the message says
    /// which, and how to fix it. Nothing is left running then.
    pub async fn start(config: CloudConfig) -> Result<Self, Error> {
        Self::starting(config).await
    }

    /// In a box, so that the cloud is compiled here, and not in each program and test that starts one.
    fn starting(config: CloudConfig) -> BoxFuture<'static, Result<Self, Error>> {
        Box::pin(Self::all_started(config))
    }

    async fn all_started(config: CloudConfig) -> Result<Self, Error> {
        // The template may be long in coming, from a pipe say, and so may cargo's answer; meanwhile other tasks go on.
        let prepared = tokio::task::spawn_blocking(move || Ok((Prepared::new(&config)?, config)));
        let prepared: Result<_, Error> =
            prepared.await.map_err(|e| Error::new("the template was not read").caused_by(e))?;
        let (Prepared { stack, chosen, waiting }, config) = prepared?;
        let dynamodb = match &config.data {
            Some(directory) => DynamoDb::in_directory(directory)?,
            None => DynamoDb::in_memory()?,
        };
        for table in &stack.tables {
            dynamodb.create_table(table)?;
        }

        let (listeners, endpoints) = Listeners::bind(config.ports, &stack).await?;
        let journal = Journal::new();
        let faults = Faults::new(&journal);
        let sqs = Sqs::with_journal(journal.clone());
        sqs.set_endpoint(&endpoints.sqs);
        for queue in &stack.queues {
            sqs.create_queue(&queue.name, queue.settings.clone())?;
        }
        let mailbox = Mailbox::new().with_slow_delay(config.delays.mail).observed(&journal, &faults);
        let s3 = S3::new().observed(&journal);
        stack.buckets.iter().for_each(|name| s3.create_bucket(name));
        let control = Control::new(&faults, &journal);
        let config = CloudConfig { logs: control.observe(config.logs.clone()), ..config };
        let scheduler = Scheduler::new(sqs.clone()).observed(&journal);
        let gateway = Gateway::new().with_slow_delay(config.delays.charge).observed(&journal, &faults);

        let mut servers = Servers::default();
        servers.start(|stop| dynamodb.clone().serve(listeners.dynamodb, stop));
        servers.start(|stop| sqs.clone().serve(listeners.sqs, stop));
        servers.start(|stop| mailbox.clone().serve(listeners.ses, stop));
        servers.start(|stop| scheduler.clone().serve(listeners.scheduler, stop));
        servers.start(|stop| gateway.clone().serve(listeners.gateway, stop));
        servers.start(|stop| control.clone().serve(listeners.control, stop));
        if let Some(listener) = listeners.s3 {
            servers.start(|stop| s3.clone().serve(listener, stop));
        }

        // Functions have a line to DynamoDB of their own, so that faults of it meet no one else.
        let (line, line_url) = bind("DynamoDB", "--dynamodb-port", 0).await?;
        let observed = (journal.clone(), faults.clone());
        servers.start(|stop| dynamodb.clone().serve_observed(line, observed, stop));

        let mut functions = Vec::new();
        let theirs = Endpoints { dynamodb: config.dynamodb_url.clone().unwrap_or(line_url), ..endpoints.clone() };
        for (spec, places) in chosen {
            functions.push(RunningFunction {
                function: new_function(&spec, places, &config, &theirs, &journal)?,
                spec,
                mappings: Vec::new(),
            });
        }
        // From here on nothing can fail, and messages can move.
        for running in &mut functions {
            let start = |mapping: &_| Mapping::start(Clone::clone(mapping), sqs.clone(), running.function.clone());
            running.mappings = running.spec.mappings.iter().map(start).collect();
        }
        faults.set_functions(functions.iter().map(|running| running.function.clone()).collect());
        scheduler.set_mappings(functions.iter().flat_map(switches).collect());
        control.set_functions(functions.iter().map(|running| managed(running, &endpoints)).collect());
        let mut watching = JoinSet::new();
        if config.binaries.watch {
            let all = functions.iter().map(|running| running.function.clone()).collect();
            watching.spawn(builds::watch(all, config.template.clone(), config.logs));
        }
        let services = Services { journal, faults, sqs, dynamodb, mailbox, gateway, s3, scheduler };
        let parameters = config.parameters;
        let cloud = Cloud { stack, parameters, endpoints, services, control, functions, waiting, watching, servers };
        cloud.control.set_description(cloud.described(&config.template));
        Ok(cloud)
    }
}

/// What switches its mappings on and off, in their order.
fn switches(running: &RunningFunction) -> Vec<MappingSwitch> {
    running.mappings.iter().map(|mapping| mapping.switch().clone()).collect()
}

/// A function as Lambda's API shows it.
fn managed(running: &RunningFunction, endpoints: &Endpoints) -> Managed {
    Managed {
        variables: environment::shown(&running.spec, endpoints),
        switches: switches(running),
        spec: running.spec.clone(),
    }
}

/// A listener for each endpoint.
struct Listeners {
    dynamodb: TcpListener,
    sqs: TcpListener,
    ses: TcpListener,
    scheduler: TcpListener,
    gateway: TcpListener,
    s3: Option<TcpListener>,
    control: TcpListener,
}

impl Listeners {
    async fn bind(ports: Ports, stack: &Stack) -> Result<(Self, Endpoints), Error> {
        let (dynamodb, dynamodb_url) = bind("DynamoDB", "--dynamodb-port", ports.dynamodb).await?;
        let (sqs, sqs_url) = bind("SQS", "--sqs-port", ports.sqs).await?;
        let (ses, ses_url) = bind("SES", "--ses-port", ports.ses).await?;
        let (scheduler, scheduler_url) = bind("EventBridge Scheduler", "--scheduler-port", ports.scheduler).await?;
        let (gateway, gateway_url) = bind("the payment gateway", "--gateway-port", ports.gateway).await?;
        let (s3, s3_url) =
            if stack.buckets.is_empty() { None } else { Some(bind("S3", "--s3-port", ports.s3).await?) }.unzip();
        let (control, control_url) = bind("the control endpoint", "--control-port", ports.control).await?;
        let endpoints = Endpoints {
            dynamodb: dynamodb_url,
            sqs: sqs_url,
            ses: ses_url,
            scheduler: scheduler_url,
            gateway: gateway_url,
            s3: s3_url,
            control: control_url,
        };
        Ok((Self { dynamodb, sqs, ses, scheduler, gateway, s3, control }, endpoints))
    }
}

/// What is known before anything is opened.
struct Prepared {
    stack: Stack,
    /// The functions to run, each with the places of its program.
    chosen: Vec<(FunctionSpec, Places)>,
    /// A line for each function without a program.
    waiting: Vec<String>,
}

impl Prepared {
    /// Reads the template and looks for the programs. Blocks.
    fn new(config: &CloudConfig) -> Result<Self, Error> {
        let mut stack = Stack::load(&config.template, &config.parameters)?;
        (config.adjust)(&mut stack);
        let mut programs = Programs::new(&config.template, &config.binaries);
        let places: Vec<_> = stack.functions.iter_mut().map(|spec| programs.places(spec)).collect();
        let chosen = choose(&stack, places, config)?;
        let waiting = waiting(&chosen, &programs, config)?;
        Ok(Self { stack, chosen, waiting })
    }
}

/// The functions of the template, or those of them that were asked for, each with the places of its program.
fn choose(stack: &Stack, places: Vec<Places>, config: &CloudConfig) -> Result<Vec<(FunctionSpec, Places)>, Error> {
    let CloudConfig { only, template, .. } = config;
    for name in only {
        if let Some(left_out) = stack.left_out.iter().find(|f| f.logical_id == *name || f.binary.as_ref() == Some(name))
        {
            return Err(Error::new(left_out.to_string()));
        }
        if let Some(not_run) = stack.not_run.iter().find(|found| found.what == *name) {
            return Err(Error::new(format!("{name} is not run here: {}", not_run.why)));
        }
        if !stack.functions.iter().any(|spec| spec.is_called(name)) {
            let known: Vec<_> = stack.functions.iter().map(|spec| spec.name.as_str()).collect();
            return Err(Error::new(format!(
                "there is no function {name} in {}: it has {}",
                template.display(),
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        }
    }
    let wanted = |spec: &FunctionSpec| only.is_empty() || only.iter().any(|name| spec.is_called(name));
    let functions = stack.functions.iter().cloned().zip(places);
    Ok(functions.filter(|(spec, _)| wanted(spec)).collect())
}

/// A line for each function without a program that this machine can run. An error where it must not wait for one: if so
/// configured, and if the function was asked for by its name.
fn waiting(
    chosen: &[(FunctionSpec, Places)],
    programs: &Programs<'_>,
    config: &CloudConfig,
) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for (spec, places) in chosen {
        if places.have_program() {
            continue;
        }
        let line = missing::line(spec, places, programs, &config.template);
        if !config.binaries.wait || !config.only.is_empty() {
            let or = if spec.code.is_asset { "" } else { ", or give its directory with --binaries" };
            return Err(Error::new(format!("{line}{or}")));
        }
        lines.push(format!("{line}; it starts as soon as the binary is there, and its messages wait"));
    }
    Ok(lines)
}

/// A listener on 127.0.0.1, and the address to reach it.
async fn bind(service: &str, option: &str, port: u16) -> Result<(TcpListener, String), Error> {
    let fault = |e: std::io::Error| Error::new(cannot_listen(service, option, port, e.kind())).caused_by(e);
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let listener = listener.await.map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    Ok((listener, format!("http://{address}")))
}

fn new_function(
    spec: &FunctionSpec,
    places: Places,
    config: &CloudConfig,
    endpoints: &Endpoints,
    journal: &Journal,
) -> Result<Function, Error> {
    let make = if config.binaries.wait { Function::awaited } else { Function::new };
    let own = |name: &str| std::env::var(name).ok();
    let mut environment = environment::of_function(&spec.environment, spec.log_level.as_deref(), endpoints, own);
    let logs = if environment::asks_for_lines(&mut environment) {
        without_lines_of_messages(&config.logs)
    } else {
        config.logs.clone()
    };
    make(FunctionConfig {
        name: spec.name.clone(),
        program: places,
        timeout: spec.timeout,
        memory_mb: spec.memory_mb,
        environment,
        concurrency: concurrency(&spec.mappings),
        logs,
        journal: journal.clone(),
    })
}

/// How many processes a function with these mappings has: as Lambda does, each mapping's maximum counts for itself. Each mapping has
/// one to poll with, however many there are.
fn concurrency(mappings: &[MappingSpec]) -> usize {
    let of = |mapping: &MappingSpec| match mapping.maximum_concurrency {
        Some(most) => usize::try_from(most).unwrap_or(CONCURRENCY_MAX),
        None => CONCURRENCY_DEFAULT,
    };
    let sum = mappings.iter().map(of).fold(0, usize::saturating_add);
    sum.clamp(CONCURRENCY_DEFAULT, CONCURRENCY_MAX.max(mappings.len()))
}

/// Lines that were asked for only to be kept in the journal are shown to no one.
fn without_lines_of_messages(sink: &LogSink) -> LogSink {
    let sink = LogSink::clone(sink);
    Arc::new(move |function, line| {
        if !lines::is_of_message(line) {
            sink(function, line);
        }
    })
}
