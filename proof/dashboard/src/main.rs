//! `make dashboard`: draws the dashboard of a function, `infra/dashboard.yaml`, from the metric records of a run in the local cloud.
//!
//! The records are those that the function writes for CloudWatch; the queues are looked at while it runs. What CloudWatch gets from
//! nobody but Lambda and SQS themselves has no data here, and its legend says so.

mod body;
mod draw;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use body::Body;
use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::workload::{self, Settings};
use serde_json::Value;

const PICTURE: &str = "docs/dashboard.svg";

const CONSUMER: &str = "order-confirmation";
const FUNCTION: &str = "OrderConfirmationFunction";
const QUEUES: [(&str, &str); 2] = [("QueueName", "OrderQueue"), ("DeadLetterQueueName", "OrderDeadLetterQueue")];

/// Values in the order in which they came, each with its time in milliseconds.
pub(crate) type Points = Vec<(u64, f64)>;

/// Points by namespace, metric and the values of its dimensions.
#[derive(Debug, Default)]
pub(crate) struct Metrics(BTreeMap<Vec<String>, Points>);

impl Metrics {
    fn add(&mut self, name: &[&str], at_ms: u64, value: f64) {
        self.0.entry(name.iter().map(|part| (*part).to_owned()).collect()).or_default().push((at_ms, value));
    }

    pub(crate) fn points(&self, name: &[String]) -> &[(u64, f64)] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// From the first to the last point of all.
    pub(crate) fn span_ms(&self) -> (u64, u64) {
        let times = || self.0.values().flatten().map(|(at, _)| *at);
        (times().min().unwrap_or_default(), times().max().unwrap_or_default())
    }

    /// Adds a line of a function's log, if it is a record in the Embedded Metric Format.
    fn add_line(&mut self, line: &str) {
        let Some(record) = serde_json::from_str::<Value>(line).ok().filter(|record| record["_aws"].is_object()) else {
            return;
        };
        let at = record["_aws"]["Timestamp"].as_u64().unwrap_or_default();
        let [consumer, function] = ["consumer", "function"].map(|name| record[name].as_str().unwrap_or_default());
        for metric in record["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().into_iter().flatten() {
            let name = metric["Name"].as_str().unwrap_or_default();
            if let Some(value) = record[name].as_f64() {
                self.add(&["claimant", name, consumer, function], at, value);
            }
        }
    }
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = std::env::current_exe()?;
    let (metrics, report) = run(&root, program.parent().unwrap_or(&program)).await?;
    let words = [("Consumer", CONSUMER), ("FunctionName", FUNCTION), ("AWS::Region", "local")];
    let body = Body::read(&root.join("infra/dashboard.yaml"), words.into_iter().chain(QUEUES))?;
    let note = format!("{CONSUMER} in the local cloud: {report}; a point is 1 s here, and a minute in CloudWatch");
    std::fs::write(root.join(PICTURE), draw::svg(&body, &metrics, &note)?)?;
    println!("{PICTURE}: {note}");
    Ok(())
}

/// Runs the function, which is built beside this program, on its sample workload, and returns what was measured meanwhile, and how much it was.
async fn run(root: &Path, binaries: &Path) -> Result<(Metrics, String), Box<dyn Error>> {
    let metrics = Arc::new(Mutex::new(Metrics::default()));
    let seen = Arc::clone(&metrics);
    let mut config = CloudConfig::new(root.join("template.yaml"), binaries);
    config.only = vec![FUNCTION.to_owned()];
    config.logs = Arc::new(move |_, line| seen.lock().unwrap_or_else(PoisonError::into_inner).add_line(line));
    config.adjust = Arc::new(|stack| {
        for function in &mut stack.functions {
            function.environment.insert("CLAIMANT_METRICS".to_owned(), "on".to_owned());
        }
    });
    let cloud = Cloud::start(config).await?;
    let settings = Settings { count: 600, seed: 7, timeout: Duration::from_secs(120) };
    let report = workload::run(&cloud, settings, |_| {
        // OK because a test's clock is the machine's: the records have its time, too.
        let at = now_ms();
        let mut metrics = metrics.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, queue) in QUEUES {
            let Ok(depth) = cloud.sqs().depth(queue) else { continue };
            for (metric, value) in [
                ("ApproximateNumberOfMessagesVisible", depth.visible),
                ("ApproximateNumberOfMessagesNotVisible", depth.in_flight),
            ] {
                metrics.add(&["AWS/SQS", metric, queue], at, value as f64);
            }
        }
    })
    .await?;
    let sent = report.summaries.iter().map(|summary| summary.figures.sent).sum::<u64>();
    let said = format!("{sent} messages in {} s", report.elapsed.as_secs());
    cloud.stop().await;
    let metrics = std::mem::take(&mut *metrics.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((metrics, said))
}

/// Returns the machine's time.
#[expect(
    clippy::disallowed_methods,
    reason = "metric records have the machine's time, and go into one picture with these points"
)]
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
