//! The numbers of a batch: one line for each, a CloudWatch Embedded Metric Format record or a line of the log.

use std::io::Write as _;
use std::sync::Arc;

use claimant_core::panics::caught;
use claimant_core::report::{Entry, Report};
use claimant_core::{Outcome, Timestamp};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};

use crate::settings::Settings;

/// The CloudWatch namespace of the metrics.
const NAMESPACE: &str = "claimant";

/// What the line of a batch says, as a record and as a line of the log.
const MESSAGE: &str = "batch done";

/// The room that a metric record begins with: the record of a batch that is done is shorter, and a buffer that grew to it would be copied
/// three times.
const RECORD_BYTES: usize = 1_000;

/// Where metric records go, a line each.
pub(crate) type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// Standard output, which Lambda hands to CloudWatch line by line.
fn stdout() -> Sink {
    Arc::new(|line| {
        // A record that cannot be written is lost; the batch is not.
        let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
    })
}

/// Writes the line of each batch.
pub(crate) struct Observer {
    /// Where metric records go, if anywhere.
    pub(crate) sink: Option<Sink>,
    logs_messages: bool,
    function: String,
}

impl Observer {
    pub(crate) fn new(settings: &Settings) -> Self {
        let function = std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_else(|_| "local".to_owned());
        Self { sink: settings.metrics.then(stdout), logs_messages: settings.log_messages, function }
    }

    /// Writes the line of a batch: its metric record, which is a line of the log, too; without metrics, a line with the same numbers.
    pub(crate) fn show(&self, report: &Report, consumer: &str, now: Timestamp) {
        log_messages(report, consumer, self.logs_messages);
        let numbers = Numbers::of(report);
        // A record defines one metric at least.
        let sink = self.sink.as_ref().filter(|_| !report.entries().is_empty());
        let is_recorded = sink.is_some_and(|sink| {
            let record = numbers.record(now, consumer, &self.function);
            // A sink can be the function's own: what it does decides nothing over the batch.
            caught(|| sink(&record)).is_ok()
        });
        if !is_recorded {
            numbers.log(consumer);
        }
    }
}

/// The one table of metric names: messages by outcome (in the engine's words), other counts, measures with their CloudWatch
/// unit, and counts that are no metrics.
macro_rules! numbers {
    (
        outcomes { $($outcome:ident,)* }
        counts { $($count:ident = $of_counted:expr,)* }
        measures { $($measure:ident $unit:literal = $of_measured:expr,)* }
        fields { $($field:ident = $of_field:expr,)* }
    ) => {
        /// The outcomes with a metric.
        #[cfg(test)]
        const OUTCOMES: &[&str] = &[$(stringify!($outcome)),*];

        /// What happened to one batch.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct Numbers {
            $($outcome: usize,)*
            $($count: usize,)*
            $($measure: f64,)*
            $($field: usize,)*
        }

        impl Numbers {
            /// Returns the numbers of this report.
            pub(crate) fn of(report: &Report) -> Self {
                let counts = report.counts();
                Self {
                    $($outcome: counts.get(stringify!($outcome)).copied().unwrap_or_default(),)*
                    $($count: ($of_counted as fn(&Report) -> usize)(report),)*
                    $($measure: ($of_measured as fn(&Report) -> f64)(report),)*
                    $($field: ($of_field as fn(&Report) -> usize)(report),)*
                }
            }

            /// Logs one line, with what is not zero: most of a few dozen numbers are.
            pub(crate) fn log(&self, consumer: &str) {
                tracing::info!(
                    consumer,
                    $($count = some(self.$count),)*
                    $($field = some(self.$field),)*
                    $($outcome = some(self.$outcome),)*
                    $($measure = some(self.$measure),)*
                    "{MESSAGE}"
                );
            }

            /// Passes on what is not zero. A metric costs money in each hour in which it has a value, zero too.
            fn each<E>(&self, mut take: impl FnMut(Figure) -> Result<(), E>) -> Result<(), E> {
                let mut one = |name, unit, number| take(Figure { name, unit, number });
                $(if let Some(n) = some(self.$count) { one(stringify!($count), Some("Count"), Number::Whole(n))?; })*
                $(if let Some(n) = some(self.$outcome) { one(stringify!($outcome), Some("Count"), Number::Whole(n))?; })*
                $(if let Some(n) = some(self.$measure) { one(stringify!($measure), Some($unit), Number::Measured(n))?; })*
                $(if let Some(n) = some(self.$field) { one(stringify!($field), None, Number::Whole(n))?; })*
                Ok(())
            }
        }
    };
}

numbers! {
    outcomes {
        completed,
        duplicate,
        busy,
        retry,
        rejected,
        parked,
        conflict,
        cancelled,
        lease_lost,
        settle_unknown,
        stuck,
        not_started,
        breaker_open,
        rate_limited,
        blocked,
        store_failed,
        fetch_failed,
        scheduled,
        ignored,
        empty,
    }
    counts {
        received = |report| report.entries().len(),
        taken_over = |report| report.totals.taken_over,
        intake_paused = |report| report.totals.pauses,
    }
    measures {
        claim_ms "Milliseconds" = |report| millis(report.totals.latencies.claim),
        handle_ms "Milliseconds" = |report| millis(report.totals.latencies.handle),
        settle_ms "Milliseconds" = |report| millis(report.totals.latencies.settle),
        // OK because a batch makes far fewer than 2^52 requests.
        store_requests "Count" = |report| report.totals.usage.requests as f64,
        write_units "Count" = |report| report.totals.usage.write_units,
        read_units "Count" = |report| report.totals.usage.read_units,
    }
    fields {
        // OK because a message has 100 at most.
        events = |report| report.entries().iter().map(|entry| entry.details.events as usize).sum(),
        failed = |report| report.failures().len(),
        dead_lettered = |report| report.entries().iter().filter(|entry| is_dead_lettered(&entry.outcome)).count(),
    }
}

/// Logs one line for each message: at `INFO` if that is set, else at `DEBUG`. No key, and nothing of the body.
fn log_messages(report: &Report, consumer: &str, at_info: bool) {
    for Entry { message_id, outcome, details, .. } in report.entries() {
        let fence = details.fence.map(|fence| fence.get());
        let [claim_ms, handle_ms, settle_ms] = [details.claim, details.handle, details.settle].map(|d| d.map(millis));
        let (word, dead_lettered) = (outcome.word(), is_dead_lettered(outcome));
        let (attempt, receive_count, events) = (details.attempt, details.receive_count, details.events);
        let busy_until = if let Outcome::Busy { until } = outcome { Some(until.as_millis()) } else { None };
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    consumer, %message_id, outcome = word, dead_lettered, attempt, fence, receive_count, events, busy_until, claim_ms, handle_ms,
                    settle_ms,
                    "message done"
                )
            };
        }
        if at_info { line!(info) } else { line!(debug) }
    }
}

/// Returns the number, if it is more than zero.
fn some<N: Default + PartialOrd>(number: N) -> Option<N> {
    (number > N::default()).then_some(number)
}

/// Returns a duration in milliseconds, to the microsecond.
fn millis(duration: std::time::Duration) -> f64 {
    // OK because no batch takes 2^52 microseconds.
    duration.as_micros() as f64 / 1_000.0
}

fn is_dead_lettered(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Rejected { dead_lettered: true, .. } | Outcome::Parked { dead_lettered: true })
}

/// A number of a batch, under its name; a unit makes it a metric.
struct Figure {
    name: &'static str,
    unit: Option<&'static str>,
    number: Number,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    Whole(usize),
    Measured(f64),
}

impl Numbers {
    /// Returns the Embedded Metric Format record: one line of JSON, which CloudWatch turns into metrics.
    pub(crate) fn record(&self, now: Timestamp, consumer: &str, function: &str) -> String {
        let directive =
            Directive { namespace: NAMESPACE, dimensions: [["consumer", "function"]], metrics: Metrics(self) };
        let aws = Aws { timestamp: now.as_millis(), cloud_watch_metrics: [directive] };
        let mut record = Vec::with_capacity(RECORD_BYTES);
        let written = serde_json::to_writer(&mut record, &Record { aws, consumer, function, numbers: self });
        // OK because all of it is names and numbers, which JSON can hold.
        written.ok().and_then(|()| String::from_utf8(record).ok()).unwrap_or_default()
    }
}

/// A record as CloudWatch reads it: the definition of its metrics, their dimensions, and each number under its name.
struct Record<'a> {
    aws: Aws<'a>,
    consumer: &'a str,
    function: &'a str,
    numbers: &'a Numbers,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_map(None)?;
        record.serialize_entry("_aws", &self.aws)?;
        record.serialize_entry("message", MESSAGE)?;
        record.serialize_entry("consumer", self.consumer)?;
        record.serialize_entry("function", self.function)?;
        self.numbers.each(|Figure { name, number, .. }| record.serialize_entry(name, &number))?;
        record.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Aws<'a> {
    timestamp: u64,
    cloud_watch_metrics: [Directive<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Directive<'a> {
    namespace: &'static str,
    dimensions: [[&'static str; 2]; 1],
    metrics: Metrics<'a>,
}

/// The definitions of the metrics that have a value.
struct Metrics<'a>(&'a Numbers);

impl Serialize for Metrics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut metrics = serializer.serialize_seq(None)?;
        self.0.each(|Figure { name, unit, .. }| match unit {
            Some(unit) => metrics.serialize_element(&Metric { name, unit }),
            None => Ok(()),
        })?;
        metrics.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Metric {
    name: &'static str,
    unit: &'static str,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use claimant_core::MessageId;
    use claimant_core::report::OUTCOME_WORDS;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn no_outcome_is_uncounted() {
        let words: BTreeSet<_> = OUTCOMES.iter().copied().collect();
        assert_eq!(words, BTreeSet::from(OUTCOME_WORDS));
        assert_eq!(OUTCOMES.len(), OUTCOME_WORDS.len());
    }

    /// What a record defines as metrics, in its order.
    fn defined(record: &Value) -> Vec<&str> {
        let metrics = record["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap();
        metrics.iter().map(|metric| metric["Name"].as_str().unwrap()).collect()
    }

    #[test]
    fn a_record_is_one_line_that_defines_each_metric_in_it_and_has_no_zero() {
        let id = MessageId::new("m1").unwrap();
        let mut report = Report::new(vec![Entry::new(id, Outcome::Parked { dead_lettered: true })]);
        report.totals.latencies.claim = std::time::Duration::from_micros(1_500);
        report.totals.usage.write_units = 2.5;
        let line = Numbers::of(&report).record(Timestamp::from_millis(7), "orders", "f");
        assert!(!line.contains('\n'));
        let record: Value = serde_json::from_str(&line).unwrap();
        let directive = &record["_aws"]["CloudWatchMetrics"][0];
        assert_eq!((&record["_aws"]["Timestamp"], &directive["Namespace"]), (&json!(7), &json!("claimant")));
        assert_eq!((&record["consumer"], &record["function"]), (&json!("orders"), &json!("f")));
        // By which those who follow the logs know it.
        assert_eq!(record["message"], "batch done");
        assert_eq!(defined(&record), ["received", "parked", "claim_ms", "write_units"]);
        assert!(defined(&record).iter().all(|name| record[name].as_f64().is_some_and(|value| value > 0.0)), "{record}");
        assert_eq!((&record["claim_ms"], &record["write_units"]), (&json!(1.5), &json!(2.5)));
        // A field, and no metric; and what is zero is neither.
        assert_eq!((&record["dead_lettered"], record.get("completed")), (&json!(1), None));
    }

    #[test]
    fn a_batch_without_messages_has_no_record() {
        for (entries, records) in [(0, 0), (1, 1)] {
            let written = Arc::new(std::sync::Mutex::new(Vec::new()));
            let seen = Arc::clone(&written);
            let sink: Sink = Arc::new(move |line: &str| seen.lock().unwrap().push(line.to_owned()));
            let observer = Observer { sink: Some(sink), logs_messages: false, function: "f".to_owned() };
            let entry = || Entry::new(MessageId::new("m1").unwrap(), Outcome::NotStarted);
            let report = Report::new(std::iter::repeat_with(entry).take(entries).collect());
            observer.show(&report, "orders", Timestamp::from_millis(7));
            assert_eq!(written.lock().unwrap().len(), records);
        }
    }
}
