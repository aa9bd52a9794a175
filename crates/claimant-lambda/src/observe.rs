//! The numbers of a batch: one log line and one CloudWatch Embedded Metric Format record for each batch.

use std::io::Write as _;
use std::sync::Arc;

use claimant_core::report::{Entry, Report};
use claimant_core::{Outcome, Timestamp};
use serde_json::{Map, Value, json};

use crate::settings::Settings;

/// The CloudWatch namespace of the metrics.
const NAMESPACE: &str = "claimant";

/// Where metric records go, a line each.
pub(crate) type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// Standard output, which Lambda hands to CloudWatch line by line.
fn stdout() -> Sink {
    Arc::new(|line| {
        // A record that cannot be written is lost; the batch is not.
        let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
    })
}

/// Logs each batch and writes its metric record.
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

    /// Logs a batch, and writes its metric record.
    pub(crate) fn show(&self, report: &Report, consumer: &str, now: Timestamp) {
        log_messages(report, consumer, self.logs_messages);
        let numbers = Numbers::of(report);
        numbers.log(consumer);
        if let Some(sink) = &self.sink {
            sink(&numbers.record(now, consumer, &self.function));
        }
    }
}

/// The one table of metric names: messages by outcome (in the engine's words), other counts, measures with their CloudWatch
/// unit, counts that are metrics only where they are not zero, and counts that are logged only.
macro_rules! numbers {
    (
        outcomes { $($outcome:ident = $word:literal,)* }
        counts { $($count:ident = $of_counted:expr,)* }
        measures { $($measure:ident $unit:literal = $of_measured:expr,)* }
        rare { $($rare:ident = $of_rare:expr,)* }
        log_only { $($log_only:ident = $of_log_only:expr,)* }
    ) => {
        /// The metric of each outcome: the engine's word and ours.
        #[cfg(test)]
        const OUTCOMES: &[(&str, &str)] = &[$(($word, stringify!($outcome))),*];

        /// What happened to one batch.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct Numbers {
            $($outcome: usize,)*
            $($count: usize,)*
            $($measure: f64,)*
            $($rare: usize,)*
            $($log_only: usize,)*
        }

        impl Numbers {
            /// Returns the numbers of this report.
            pub(crate) fn of(report: &Report) -> Self {
                let counts = report.counts();
                Self {
                    $($outcome: counts.get($word).copied().unwrap_or_default(),)*
                    $($count: ($of_counted as fn(&Report) -> usize)(report),)*
                    $($measure: ($of_measured as fn(&Report) -> f64)(report),)*
                    $($rare: ($of_rare as fn(&Report) -> usize)(report),)*
                    $($log_only: ($of_log_only as fn(&Report) -> usize)(report),)*
                }
            }

            /// Logs one line for each batch.
            pub(crate) fn log(&self, consumer: &str) {
                tracing::info!(
                    consumer,
                    $($count = self.$count,)*
                    $($rare = self.$rare,)*
                    $($log_only = self.$log_only,)*
                    $($outcome = self.$outcome,)*
                    $($measure = self.$measure,)*
                    "batch done"
                );
            }

            /// Returns name, unit and value of each metric. A step that no message reached has no duration.
            fn metrics(&self) -> Vec<(&'static str, &'static str, Value)> {
                let mut metrics = vec![
                    $((stringify!($count), "Count", json!(self.$count)),)*
                    $((stringify!($outcome), "Count", json!(self.$outcome)),)*
                ];
                $(if $unit != "Milliseconds" || self.$measure > 0.0 {
                    metrics.push((stringify!($measure), $unit, json!(self.$measure)));
                })*
                $(if self.$rare > 0 {
                    metrics.push((stringify!($rare), "Count", json!(self.$rare)));
                })*
                metrics
            }

            /// Returns the numbers that are fields of the record and no metrics: a metric costs money, a field does not.
            fn log_only(&self) -> Vec<(&'static str, Value)> {
                vec![$((stringify!($log_only), json!(self.$log_only)),)*]
            }
        }
    };
}

numbers! {
    outcomes {
        completed = "completed",
        duplicate = "duplicate",
        busy = "busy",
        retry = "retry",
        rejected = "rejected",
        parked = "parked",
        conflict = "conflict",
        cancelled = "cancelled",
        lease_lost = "lease_lost",
        settle_unknown = "settle_unknown",
        stuck = "stuck",
        not_started = "not_started",
        breaker_open = "breaker_open",
        rate_limited = "rate_limited",
        blocked = "blocked",
        store_failed = "store_failed",
        fetch_failed = "fetch_failed",
        scheduled = "scheduled",
        ignored = "ignored",
        empty = "empty",
    }
    counts {
        received = |report| report.entries().len(),
        taken_over = |report| report.taken_over,
    }
    measures {
        claim_ms "Milliseconds" = |report| millis(report.latencies.claim),
        handle_ms "Milliseconds" = |report| millis(report.latencies.handle),
        settle_ms "Milliseconds" = |report| millis(report.latencies.settle),
        // OK because a batch makes far fewer than 2^52 requests.
        store_requests "Count" = |report| report.usage.requests as f64,
        write_units "Count" = |report| report.usage.write_units,
        read_units "Count" = |report| report.usage.read_units,
    }
    rare {
        intake_paused = |report| report.pauses,
    }
    log_only {
        // OK because a message has 100 at most.
        events = |report| report.entries().iter().map(|entry| entry.details.events as usize).sum(),
        failed = |report| report.failures().len(),
        dead_lettered = |report| report.entries().iter().filter(|entry| is_dead_lettered(&entry.outcome)).count(),
    }
}

/// Logs one line for each message: at `INFO` if that is set, else at `DEBUG`. No key, and nothing of the body.
fn log_messages(report: &Report, consumer: &str, at_info: bool) {
    for Entry { message_id, outcome: entry, details, .. } in report.entries() {
        let fence = details.fence.map(|fence| fence.get());
        let [claim_ms, handle_ms, settle_ms] = [details.claim, details.handle, details.settle].map(|d| d.map(millis));
        let (outcome, dead_lettered) = (entry.word(), is_dead_lettered(entry));
        let (attempt, receive_count, events) = (details.attempt, details.receive_count, details.events);
        let busy_until = if let Outcome::Busy { until } = entry { Some(until.as_millis()) } else { None };
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    consumer, %message_id, outcome, dead_lettered, attempt, fence, receive_count, events, busy_until, claim_ms, handle_ms,
                    settle_ms,
                    "message done"
                )
            };
        }
        if at_info { line!(info) } else { line!(debug) }
    }
}

/// Returns a duration in milliseconds, to the microsecond.
fn millis(duration: std::time::Duration) -> f64 {
    // OK because no batch takes 2^52 microseconds.
    duration.as_micros() as f64 / 1_000.0
}

fn is_dead_lettered(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Rejected { dead_lettered: true, .. } | Outcome::Parked { dead_lettered: true })
}

impl Numbers {
    /// Returns the Embedded Metric Format record: one line of JSON, which CloudWatch turns into metrics.
    pub(crate) fn record(&self, now: Timestamp, consumer: &str, function: &str) -> String {
        let metrics = self.metrics();
        let names: Vec<Value> = metrics.iter().map(|(name, unit, _)| json!({ "Name": name, "Unit": unit })).collect();
        let mut record = Map::new();
        let directive = json!({
            "Namespace": NAMESPACE,
            "Dimensions": [["consumer", "function"]],
            "Metrics": names,
        });
        record.insert("_aws".into(), json!({ "Timestamp": now.as_millis(), "CloudWatchMetrics": [directive] }));
        record.insert("consumer".into(), json!(consumer));
        record.insert("function".into(), json!(function));
        let values = metrics.into_iter().map(|(name, _, value)| (name, value)).chain(self.log_only());
        record.extend(values.map(|(name, value)| (name.to_owned(), value)));
        Value::Object(record).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use claimant_core::report::OUTCOME_WORDS;

    use super::*;

    #[test]
    fn no_outcome_is_uncounted() {
        let words: BTreeSet<_> = OUTCOMES.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, BTreeSet::from(OUTCOME_WORDS));
        assert_eq!(OUTCOMES.len(), OUTCOME_WORDS.len());
    }

    #[test]
    fn a_record_is_one_line_that_defines_each_number_in_it() {
        let mut report = Report::default();
        report.latencies.claim = std::time::Duration::from_micros(1_500);
        report.usage.write_units = 2.5;
        let line = Numbers::of(&report).record(Timestamp::from_millis(7), "orders", "f");
        assert!(!line.contains('\n'));
        let record: Value = serde_json::from_str(&line).unwrap();
        let directive = &record["_aws"]["CloudWatchMetrics"][0];
        assert_eq!((&record["_aws"]["Timestamp"], &directive["Namespace"]), (&json!(7), &json!("claimant")));
        assert_eq!((&record["consumer"], &record["function"]), (&json!("orders"), &json!("f")));
        let metrics = directive["Metrics"].as_array().unwrap();
        // CloudWatch takes at most 100 metrics from one record; two steps were not taken.
        assert_eq!(metrics.len(), OUTCOMES.len() + 2 + 4);
        for metric in metrics {
            assert!(record[metric["Name"].as_str().unwrap()].is_number(), "{metric}");
        }
        assert_eq!((&record["claim_ms"], &record["write_units"]), (&json!(1.5), &json!(2.5)));
        assert_eq!((record.get("handle_ms"), &record["failed"]), (None, &json!(0)));
    }
}
