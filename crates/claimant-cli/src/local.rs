//! `claimant local`: the local cloud, left up, with a workload, or beside a command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use claimant_local::Error;
use claimant_local::cloud::{Binaries, Cloud, CloudConfig, Ports};
use claimant_local::lambda::{FunctionCounters, LogSink};
use claimant_local::workload::{self, Report};
use claimant_operate::text::typed;

use crate::args::Local;
use crate::exit::Ended;
use crate::output::{Reader, note, say};
use crate::stop::StopSignals;
use crate::{command, console, files, logs, output, progress, running};

/// Runs until stopped, or until the workload or the command is over.
pub(crate) async fn run(options: Local) -> Result<Ended, Error> {
    let mut stop = StopSignals::listen()?;
    output::on_threads()?;
    let files = files::raise_limit();
    files.map(files::too_low).iter().for_each(note);
    let parameters = options.parameters.values().map_err(Error::new)?;
    let (sink, log_file) = log_sink(&options)?;
    let cloud = tokio::select! {
        started = Cloud::start(config(&options, parameters, sink)) => started?,
        () = stop.received() => {
            say("\nStopped before the cloud was ready.");
            let nothing_to_do = options.work.workload.is_none() && options.command.is_empty();
            return Ok(if nothing_to_do { Ended::Well } else { Ended::WithFaults });
        }
    };
    workload::show_effects(&cloud);
    if let Some(file) = &log_file {
        // Only now: until the cloud has it, another process may be using the data directory.
        file.empty();
    }
    let console = console::start(&cloud, &options.ports.console).await?;
    // A reader of the endpoints' addresses may leave; a report must be read whole.
    let mut reader = Reader::MayLeave;
    let ended = match options.work.workload {
        Some(count) => {
            console.lines().iter().for_each(say);
            if let Some(file) = &log_file {
                say(format!("Function logs: {}", typed(&file.path.display().to_string())));
            }
            cloud.stack().left_out.iter().for_each(say);
            tokio::select! {
                ended = run_workload(&cloud, &options, count, files) => {
                    reader = Reader::MustStay;
                    ended
                }
                () = stop.received() => {
                    say("\nStopped before the end of the workload.");
                    Ok(Ended::WithFaults)
                }
            }
        }
        None if !options.command.is_empty() => {
            if !options.quiet {
                console.lines().iter().for_each(note);
            }
            run_command(&cloud, &options, &mut stop).await
        }
        None => {
            let control = &cloud.endpoints().control;
            let announced = running::announce(control);
            console.lines().iter().for_each(say);
            description(&cloud, &options).iter().for_each(say);
            if let Err(e) = &announced {
                say(format!("\nCommands find this cloud with --local={control} only: it could not be announced: {e}"));
            }
            say("\nReady. Ctrl-C stops everything.\n");
            stop.received().await;
            say("\nStopping.");
            Ok(Ended::Well)
        }
    };
    console.stop(&mut stop).await;
    cloud.stop().await;
    let ended = ended?;
    output::all_read(reader, stop.received()).await;
    output::check(reader)?;
    Ok(ended)
}

fn config(options: &Local, parameters: BTreeMap<String, String>, logs: LogSink) -> CloudConfig {
    let (searched, stays_up) = (options.binaries.is_none(), options.work.workload.is_none());
    CloudConfig {
        binaries: Binaries {
            search: searched,
            wait: searched && stays_up,
            watch: stays_up,
            directory: options.binaries.clone().or_else(|| own_directory(&options.template)),
        },
        parameters,
        data: options.data.clone(),
        ports: Ports {
            dynamodb: options.ports.dynamodb_port,
            sqs: options.ports.sqs_port,
            ses: options.ports.ses_port,
            scheduler: options.ports.scheduler_port,
            gateway: options.ports.gateway_port,
            s3: options.ports.s3_port,
            control: options.ports.control_port,
        },
        only: options.functions.clone(),
        logs,
        ..CloudConfig::new(&options.template, "")
    }
}

/// `files` is the limit of open files where it is low.
async fn run_workload(cloud: &Cloud, options: &Local, count: u32, files: Option<u64>) -> Result<Ended, Error> {
    let settings = workload::Settings { count, seed: options.work.seed, timeout: options.work.timeout };
    let mut display = progress::Display::new(options.quiet, !options.work.logs);
    let report = workload::run(cloud, settings, |progress| display.show(progress)).await;
    display.end();
    let report = report?;
    // On a terminal, the report comes after the progress.
    output::notes_read().await;
    print_report(cloud, options.work.seed, &report);
    if let Some(limit) = files.filter(|_| report.has_faults()) {
        say(format!("\nWhat went wrong can come of the limit of open files. {}", files::too_low(limit)));
    }
    Ok(if report.has_faults() { Ended::WithFaults } else { Ended::Well })
}

/// Runs the command with the variables of the cloud, which standard output is not for.
async fn run_command(cloud: &Cloud, options: &Local, stop: &mut StopSignals) -> Result<Ended, Error> {
    if !options.quiet {
        description(cloud, options).iter().for_each(note);
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let mut variables = cloud.function_variables();
    variables.retain(|(name, _)| options.function_variables && !is_set(name));
    // Those of the cloud itself last: they win.
    variables.extend(cloud.variables());
    // Other clouds may run here.
    variables.push((running::VARIABLE.to_owned(), cloud.endpoints().control.clone()));
    let _announced = running::announce(&cloud.endpoints().control);
    // What the command prints comes after that.
    output::notes_read().await;
    command::run(&options.command, variables, stop.received()).await
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

/// What a person needs to use the cloud, line by line.
fn description(cloud: &Cloud, options: &Local) -> Vec<String> {
    let endpoints = cloud.endpoints();
    let mut lines = vec![
        format!("DynamoDB  {}", endpoints.dynamodb),
        format!("SQS       {}", endpoints.sqs),
        format!("SES       {}   (mails: {}/_claimant/mails)", endpoints.ses, endpoints.ses),
        format!("scheduler {}", endpoints.scheduler),
        format!("gateway   {}   (charges: {}/_claimant/charges)", endpoints.gateway, endpoints.gateway),
    ];
    let stack = cloud.stack();
    lines.push(format!("control   {}   (for claimant list, inspect, dead, …)", endpoints.control));
    lines.extend(endpoints.s3.iter().map(|url| format!("S3        {url}")));
    lines.extend(stack.buckets.iter().map(|name| format!("bucket    {name}")));
    lines.extend(stack.queues.iter().map(|queue| format!("queue     {}", cloud.sqs().queue_url(&queue.name))));
    lines.extend(stack.tables.iter().map(|table| format!("table     {}", table.name)));
    let run = stack.functions.iter().filter_map(|spec| Some((spec, cloud.function(&spec.name)?)));
    for (spec, function) in run {
        let mappings = spec.mappings.iter().filter(|mapping| mapping.enabled);
        let queues: Vec<_> = mappings.map(|mapping| mapping.queue.as_str()).collect();
        let reads = if queues.is_empty() { "no queue".to_owned() } else { queues.join(", ") };
        let program = function.program().map_or_else(String::new, |path| format!("   {}", path.display()));
        lines.push(format!("function  {}   (reads {reads}){program}", spec.name));
    }
    lines.extend(stack.left_out.iter().map(|left_out| format!("function  {left_out}")));
    if options.function_variables {
        lines.extend(cloud.shown_function_variables().iter().map(|(name, value)| format!("variable  {name}={value}")));
    }
    lines.extend(cloud.waiting().iter().map(|waiting| format!("waiting   {waiting}")));
    let not_run = stack.not_run_lines(&options.template.display().to_string());
    if !not_run.is_empty() {
        lines.push(String::new());
        lines.extend(not_run);
    }
    let for_v1 = "AWS CLI v1 needs --endpoint-url \"$AWS_ENDPOINT_URL_SQS\" as well, for SQS";
    lines.push(format!("\nTo point an AWS CLI or SDK here ({for_v1}):\n"));
    lines.push(format!("unset {}", command::OTHER_CREDENTIALS.join(" ")));
    lines.extend(cloud.variables().iter().map(|(name, value)| format!("export {name}={value}")));
    lines
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

/// The directory of this command, if it was built in the workspace of the template: then so were its functions. Elsewhere a program
/// beside it that is called like a function is another one.
fn own_directory(template: &Path) -> Option<PathBuf> {
    let (own, template) = (std::env::current_exe().ok()?, template.canonicalize().ok()?);
    (workspace(&own)? == workspace(&template)?).then_some(())?;
    own.parent().map(Path::to_owned)
}

/// The root of the workspace that a file is in, or of its package where that is in no workspace: as cargo looks for it, upward.
fn workspace(file: &Path) -> Option<&Path> {
    let manifest = |directory: &Path| std::fs::read_to_string(directory.join("Cargo.toml")).ok();
    let of = |directory| Some((directory, manifest(directory)?));
    let packages: Vec<_> = file.ancestors().skip(1).filter_map(of).collect();
    let root =
        packages.iter().find(|(_, manifest)| manifest.lines().any(|line| line.trim_start().starts_with("[workspace")));
    root.or(packages.first()).map(|(directory, _)| *directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project within another one has programs of its own, whatever is called alike beside this command.
    #[test]
    fn a_directory_is_the_commands_own_only_in_its_workspace() {
        let own = std::env::current_exe().unwrap();
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let inner = tempfile::tempdir_in(own.parent().unwrap()).unwrap();
        let (outer, directory) = (tempfile::tempdir().unwrap(), own.parent().map(Path::to_owned));
        let template = |directory: &Path| {
            let template = directory.join("template.yaml");
            std::fs::write(&template, "").unwrap();
            own_directory(&template)
        };
        assert_eq!(template(outer.path()), None);
        // As a target directory is that cargo puts elsewhere.
        if own.starts_with(repository) {
            assert_eq!(own_directory(&repository.join("template.yaml")), directory);
            assert_eq!(template(inner.path()), directory);
        }
        std::fs::write(inner.path().join("Cargo.toml"), "[workspace]\nmembers = []\n").unwrap();
        assert_eq!(template(inner.path()), None);
    }
}
