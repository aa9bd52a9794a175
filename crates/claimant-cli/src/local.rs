//! `claimant local`: the local cloud, left up or with a workload.

use std::path::PathBuf;

use claimant_local::Error;
use claimant_local::cloud::{Binaries, Cloud, CloudConfig, Ports};
use claimant_local::lambda::{FunctionCounters, LogSink};
use claimant_local::workload::{self, Report};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Local;
use crate::exit::Ended;
use crate::output::{Reader, say};
use crate::{logs, output, progress};

/// Runs until stopped, or until the workload is over.
pub(crate) async fn run(options: Local) -> Result<Ended, Error> {
    let mut stop = StopSignals::listen()?;
    let (sink, log_file) = log_sink(&options)?;
    let cloud = tokio::select! {
        started = Cloud::start(config(&options, sink)?) => started?,
        () = stop.received() => {
            say("\nStopped before the cloud was ready.");
            return Ok(if options.work.workload.is_some() { Ended::WithFaults } else { Ended::Well });
        }
    };
    if let Some(file) = &log_file {
        // Only now: until the cloud has it, another process may be using the data directory.
        file.empty();
    }
    let ended = match options.work.workload {
        Some(count) => {
            if let Some(file) = &log_file {
                say(format!("Function logs: {}", file.path.display()));
            }
            cloud.stack().left_out.iter().for_each(say);
            tokio::select! {
                report = run_workload(&cloud, &options, count) => report,
                () = stop.received() => {
                    say("\nStopped before the end of the workload.");
                    Ok(Ended::WithFaults)
                }
            }
        }
        None => {
            describe(&cloud, &options);
            stop.received().await;
            say("\nStopping.");
            Ok(Ended::Well)
        }
    };
    cloud.stop().await;
    let ended = ended?;
    // A reader of the endpoints' addresses may have left since; a report must be read whole.
    output::check(if options.work.workload.is_none() { Reader::MayLeave } else { Reader::MustStay })?;
    Ok(ended)
}

fn config(options: &Local, logs: LogSink) -> Result<CloudConfig, Error> {
    let (searched, stays_up) = (options.binaries.is_none(), options.work.workload.is_none());
    let directory = binaries(options)?;
    Ok(CloudConfig {
        binaries: Binaries {
            search: searched,
            wait: searched && stays_up,
            watch: stays_up,
            directory: directory.clone(),
        },
        parameters: options.parameters.iter().cloned().collect(),
        data: options.data.clone(),
        ports: Ports {
            dynamodb: options.ports.dynamodb_port,
            sqs: options.ports.sqs_port,
            ses: options.ports.ses_port,
            gateway: options.ports.gateway_port,
        },
        only: options.functions.clone(),
        logs,
        ..CloudConfig::new(&options.template, directory)
    })
}

async fn run_workload(cloud: &Cloud, options: &Local, count: u32) -> Result<Ended, Error> {
    let settings = workload::Settings { count, seed: options.work.seed, timeout: options.work.timeout };
    let mut display = progress::Display::new(options.quiet, !options.work.logs);
    let report = workload::run(cloud, settings, |progress| display.show(progress)).await;
    display.end();
    let report = report?;
    print_report(cloud, options.work.seed, &report);
    Ok(if report.has_faults() { Ended::WithFaults } else { Ended::Well })
}

/// What the table's columns count.
const LEGEND: &str = "\
Work: pieces of work, each with at most one effect.
Sent: messages, with copies and malformed bodies.
Runs: of handlers, as the records count them.
Effects: as the mailbox, the gateway and the functions' tables show them.
Duplicates: messages skipped because their work was already done.
Retries: deliveries that failed and were left for a redelivery.
Dead-lettered: where malformed, rejected and parked messages belong.
Lost: neither done, nor dead-lettered, nor queued.";

fn print_report(cloud: &Cloud, seed: u64, report: &Report) {
    let first = match report.first_done {
        Some(time) => format!("the first message was done after {:.1} s", time.as_secs_f64()),
        None => "no message was done".to_owned(),
    };
    say(format!("\nWorkload with seed {seed}: {:.1} s, {first}\n", report.elapsed.as_secs_f64()));
    say(format!("{report}\n\n{LEGEND}\n"));
    for fault in &report.faults {
        say(format!("FAULT: {fault}"));
    }
    for summary in &report.summaries {
        if summary.faults.is_empty() {
            say(summary.all_well);
            continue;
        }
        for fault in &summary.faults {
            say(format!("FAULT: {}: {fault}", summary.function));
        }
        if let Some(function) = cloud.function(summary.function) {
            let FunctionCounters { invocations, errors, timeouts, crashes, cold_starts } = function.counters();
            say(format!(
                "{}: {invocations} invocations, of which {errors} ended in an error, {timeouts} in a timeout and \
                 {crashes} in a crash; {cold_starts} processes started",
                summary.function
            ));
        }
    }
}

/// Prints what a person needs to use the cloud.
fn describe(cloud: &Cloud, options: &Local) {
    let endpoints = cloud.endpoints();
    say(format!("DynamoDB  {}", endpoints.dynamodb));
    say(format!("SQS       {}", endpoints.sqs));
    say(format!("SES       {}   (mails: {}/_claimant/mails)", endpoints.ses, endpoints.ses));
    say(format!("gateway   {}   (charges: {}/_claimant/charges)", endpoints.gateway, endpoints.gateway));
    let stack = cloud.stack();
    for queue in &stack.queues {
        say(format!("queue     {}", cloud.sqs().queue_url(&queue.name)));
    }
    for table in &stack.tables {
        say(format!("table     {}", table.name));
    }
    for spec in stack.functions.iter().filter(|spec| cloud.function(&spec.name).is_some()) {
        let mappings = spec.mappings.iter().filter(|mapping| mapping.enabled);
        let queues: Vec<_> = mappings.map(|mapping| mapping.queue.as_str()).collect();
        let reads = if queues.is_empty() { "no queue".to_owned() } else { queues.join(", ") };
        say(format!("function  {}   (reads {reads})", spec.name));
    }
    for left_out in &stack.left_out {
        say(format!("function  {left_out}"));
    }
    for (name, value) in cloud.function_variables().iter().filter(|_| options.function_variables) {
        say(format!("variable  {name}={value}"));
    }
    for waiting in cloud.waiting() {
        say(format!("waiting   {waiting}"));
    }
    let lines = stack.not_run_lines(&options.template.display().to_string());
    if !lines.is_empty() {
        say("");
        lines.iter().for_each(say);
    }
    say("\nTo point an AWS CLI or SDK here:\n");
    for (name, value) in cloud.variables() {
        say(format!("export {name}={value}"));
    }
    say("\nReady. Ctrl-C stops everything.\n");
}

/// Where the logs go, and the file if it is one.
fn log_sink(options: &Local) -> Result<(LogSink, Option<logs::LogFile>), Error> {
    if options.work.workload.is_some() && !options.work.logs {
        let (sink, file) = logs::to_file(options.data.as_deref())?;
        return Ok((sink, Some(file)));
    }
    let sink = if options.quiet { logs::dropped() } else { logs::shown() };
    Ok((sink, None))
}

fn binaries(options: &Local) -> Result<PathBuf, Error> {
    if let Some(directory) = &options.binaries {
        return Ok(directory.clone());
    }
    let own = std::env::current_exe().ok();
    let directory = own.as_ref().and_then(|path| path.parent());
    let unknown = || {
        Error::new(
            "the directory of this command cannot be found: give the directory of the functions' binaries with --binaries",
        )
    };
    Ok(directory.ok_or_else(unknown)?.to_owned())
}

/// Ctrl-C and SIGTERM.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// From here on the signals no longer end the process by themselves.
    fn listen() -> Result<Self, Error> {
        let listen = |kind| {
            signal(kind).map_err(|e| Error::new("the signals that stop the command cannot be handled").caused_by(e))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
