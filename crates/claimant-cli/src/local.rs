//! `claimant local`: the local cloud, left up or with a workload.

use std::path::PathBuf;

use claimant_local::Error;
use claimant_local::cloud::{Cloud, CloudConfig, Ports};
use claimant_local::lambda::{FunctionCounters, LogSink};
use claimant_local::workload::{self, Report};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Local;
use crate::output::say;
use crate::{logs, output, progress};

/// Runs until stopped, or until the workload is over; `false` when that showed a fault.
pub(crate) async fn run(options: Local) -> Result<bool, Error> {
    let mut stop = StopSignals::listen()?;
    let (sink, log_file) = log_sink(&options)?;
    let config = CloudConfig {
        parameters: options.parameters.iter().cloned().collect(),
        data: options.data.clone(),
        ports: Ports {
            dynamodb: options.dynamodb_port,
            sqs: options.sqs_port,
            ses: options.ses_port,
            gateway: options.gateway_port,
        },
        only: options.functions.clone(),
        search: options.binaries.is_none(),
        wait_for_programs: options.binaries.is_none() && options.workload.is_none(),
        watch: options.workload.is_none(),
        logs: sink,
        ..CloudConfig::new(&options.template, binaries(&options)?)
    };
    let cloud = Cloud::start(config).await?;
    if let Some(file) = &log_file {
        // Only now: until the cloud has it, the data directory may be another's.
        file.empty();
    }
    let ended = match options.workload {
        Some(count) => {
            if let Some(file) = &log_file {
                say(format!("Function logs: {}", file.path.display()));
            }
            cloud.stack().left_out.iter().for_each(say);
            tokio::select! {
                report = run_workload(&cloud, &options, count) => report,
                () = stop.received() => {
                    say("\nStopped before the workload's end.");
                    Ok(false)
                }
            }
        }
        None => {
            describe(&cloud, &options);
            stop.received().await;
            say("\nStopping.");
            Ok(true)
        }
    };
    cloud.stop().await;
    let ended = ended?;
    // Whoever only looked at the endpoints may have gone since; a report is for someone.
    output::check(options.workload.is_none())?;
    Ok(ended)
}

async fn run_workload(cloud: &Cloud, options: &Local, count: u32) -> Result<bool, Error> {
    let settings = workload::Settings { count, seed: options.seed, timeout: options.timeout };
    let mut display = progress::Display::new(options.quiet, !options.logs);
    let report = workload::run(cloud, settings, |progress| display.show(progress)).await;
    display.end();
    let report = report?;
    print_report(cloud, options.seed, &report);
    Ok(!report.has_faults())
}

/// What the table's figures are.
const LEGEND: &str = "\
Work: pieces, each with one effect at most. Sent: with copies and broken bodies. Runs: of handlers, by the records.
Effects: at the mailbox, the gateway and the functions' tables. Duplicates: done without an effect. Retries: deliveries
left for another one. Dead-lettered: broken, refused and parked messages belong there. Lost: not done, not dead-lettered,
not queued.";

fn print_report(cloud: &Cloud, seed: u64, report: &Report) {
    let first = match report.first_done {
        Some(time) => format!("first message done after {:.1} s", time.as_secs_f64()),
        None => "no message done".to_owned(),
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
                "{}: {invocations} invocations, of which {errors} ended in an error, {timeouts} in a time-out, \
                 {crashes} in a crash; {cold_starts} processes started",
                summary.function
            ));
        }
    }
}

/// What a person needs to use the cloud.
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
    if options.workload.is_some() && !options.logs {
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
    let unknown =
        || Error::new("the directory of this command cannot be found: name that of the functions with --binaries");
    Ok(directory.ok_or_else(unknown)?.to_owned())
}

/// Ctrl-C and SIGTERM.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// From now on they no longer end the process by themselves.
    fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(|e| Error::new("stop signals cannot be listened for").caused_by(e));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
