//! What the last day's metrics say.

use serde_json::{Value, json};

use super::answers::{Account, Asker, Service, text, texts};
use super::names::name_of;
use crate::fact::Fact;
use crate::model::{FunctionHistory, History, QueueHistory, System, Table, TableHistory};

const DAY_S: u64 = 86_400;
const MINUTE_S: u64 = 60;

/// Metrics of one request at most.
const QUERIES_MAX: usize = 500;

/// Outcomes after which Lambda deletes the message. Rejected, conflicting and parked ones only once their copy is confirmed: counting
/// all of them, the doctor errs to the side of silence.
const DONE: [&str; 8] = ["completed", "duplicate", "scheduled", "empty", "ignored", "rejected", "conflict", "parked"];

/// Where a value goes.
type Put = Box<dyn Fn(&mut History, f64)>;

/// A metric that is asked for.
struct Query {
    namespace: &'static str,
    metric: &'static str,
    dimensions: Vec<(&'static str, String)>,
    /// The statistic of each minute; the values of the day are added up for `Sum`, else the greatest counts.
    stat: &'static str,
    /// Whether the day's busiest minute counts, and not its sum.
    busiest: bool,
    put: Put,
}

/// Asks for the day that ends at this time.
pub(super) async fn read<A: Account>(asker: &Asker<'_, A>, system: &System, until_s: u64) -> History {
    let mut history = History::default();
    let mut queries = Vec::new();
    of_queues(system, &mut queries);
    of_functions(system, &mut queries);
    of_mappings(system, &mut queries);
    of_tables(system, &mut queries);
    of_consumers(asker, system, &mut queries).await;
    for some in queries.chunks(QUERIES_MAX) {
        let input = json!({
            "StartTime": until_s.saturating_sub(DAY_S),
            "EndTime": until_s,
            "MetricDataQueries": some.iter().enumerate().map(|(index, query)| query.json(index)).collect::<Vec<_>>(),
        });
        match asker.pages(Service::CloudWatch, "GetMetricData", input, "NextToken").await {
            Ok(pages) => take(&pages, some, &mut history),
            Err(refused) => {
                history.is_refused = true;
                asker.note(refused.to_string());
            }
        }
    }
    history
}

impl Query {
    fn json(&self, index: usize) -> Value {
        let dimensions: Vec<_> =
            self.dimensions.iter().map(|(name, value)| json!({"Name": name, "Value": value})).collect();
        let metric = json!({"Namespace": self.namespace, "MetricName": self.metric, "Dimensions": dimensions});
        json!({"Id": format!("m{index}"), "MetricStat": {"Metric": metric, "Period": MINUTE_S, "Stat": self.stat}})
    }
}

/// Puts the values of all pages where they belong. A metric without values had nothing to count.
fn take(pages: &[Value], queries: &[Query], history: &mut History) {
    let results = texts(pages, "MetricDataResults");
    for (index, query) in queries.iter().enumerate() {
        let id = format!("m{index}");
        let of = results.iter().filter(|result| text(result, "Id") == Some(&id));
        let values: Vec<f64> =
            of.filter_map(|result| result["Values"].as_array()).flatten().filter_map(Value::as_f64).collect();
        if values.is_empty() {
            continue;
        }
        let adds_up = query.stat == "Sum" && !query.busiest;
        let value = if adds_up { values.iter().sum() } else { values.iter().copied().fold(0.0, f64::max) };
        (query.put)(history, value);
    }
}

fn of_queues(system: &System, queries: &mut Vec<Query>) {
    type Set = fn(&mut QueueHistory, f64);
    let metrics: [(&str, &str, bool, Set); 4] = [
        ("ApproximateNumberOfMessagesNotVisible", "Maximum", false, |seen, value| seen.in_flight_max = value),
        ("NumberOfMessagesSent", "Sum", true, |seen, value| seen.sent_per_minute_max = value),
        ("ApproximateAgeOfOldestMessage", "Maximum", false, |seen, value| seen.oldest_s_max = value),
        ("ApproximateNumberOfGroupsWithInflightMessages", "Maximum", false, |seen, value| seen.groups_max = value),
    ];
    for queue in &system.queues {
        for (metric, stat, busiest, set) in metrics {
            let id = queue.place.id.to_string();
            let dimensions = vec![("QueueName", name_of(&id).to_owned())];
            let put: Put = Box::new(move |history, value| set(history.queues.entry(id.clone()).or_default(), value));
            queries.push(Query { namespace: "AWS/SQS", metric, dimensions, stat, busiest, put });
        }
    }
}

fn of_functions(system: &System, queries: &mut Vec<Query>) {
    type Set = fn(&mut FunctionHistory, f64);
    let metrics: [(&str, &str, Set); 4] = [
        ("Throttles", "Sum", |seen, value| seen.throttles = value),
        ("Duration", "Maximum", |seen, value| seen.duration_ms_max = value),
        ("RecursiveInvocationsDropped", "Sum", |seen, value| seen.loops_stopped = value),
        ("ConcurrentExecutions", "Maximum", |seen, value| seen.concurrent_max = value),
    ];
    for function in &system.functions {
        let id = function.place.id.to_string();
        for (metric, stat, set) in metrics {
            let (name, own) = (id.clone(), id.clone());
            let put: Put =
                Box::new(move |history, value| set(history.functions.entry(own.clone()).or_default(), value));
            let dimensions = vec![("FunctionName", name)];
            queries.push(Query { namespace: "AWS/Lambda", metric, dimensions, stat, busiest: false, put });
        }
    }
}

/// Lambda's own count of what it deleted. What filters drop is deleted, too, and may be counted among it: without that, the doctor errs to
/// the side of silence.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of events")]
fn of_mappings(system: &System, queries: &mut Vec<Query>) {
    type Set = fn(&mut u64, f64);
    let metrics: [(&str, Set); 2] = [
        ("DeletedEventCount", |deleted, value| *deleted = value as u64),
        ("FilteredOutEventCount", |deleted, value| *deleted = deleted.saturating_sub(value as u64)),
    ];
    for mapping in system.mappings.iter().filter(|mapping| mapping.metrics.known() == Some(&true)) {
        let many = if mapping.filters.any == Fact::Known(false) { 1 } else { metrics.len() };
        for (metric, set) in &metrics[..many] {
            let (id, set) = (mapping.place.id.to_string(), *set);
            let dimensions = vec![("EventSourceMappingUUID", mapping.uuid.clone())];
            let put: Put = Box::new(move |history, value| set(history.deleted.entry(id.clone()).or_default(), value));
            queries.push(Query { namespace: "AWS/Lambda", metric, dimensions, stat: "Sum", busiest: false, put });
        }
    }
}

fn of_tables(system: &System, queries: &mut Vec<Query>) {
    type Set = fn(&mut TableHistory, f64);
    let metrics: [(&str, bool, Set); 2] = [
        ("WriteThrottleEvents", false, |seen, value| seen.throttled = value),
        ("ConsumedWriteCapacityUnits", true, |seen, value| seen.write_units_per_minute_max = value),
    ];
    let is_lock_table = |table: &&Table| system.consumers_of(table).next().is_some();
    // Another account's table, known by its ARN, has its metrics there.
    for table in system.tables.iter().filter(is_lock_table).filter(|table| !table.place.id.starts_with("arn:")) {
        for (metric, busiest, set) in metrics {
            let id = table.place.id.to_string();
            let dimensions = vec![("TableName", id.clone())];
            let put: Put = Box::new(move |history, value| set(history.tables.entry(id.clone()).or_default(), value));
            queries.push(Query { namespace: "AWS/DynamoDB", metric, dimensions, stat: "Sum", busiest, put });
        }
    }
}

/// What the functions reported: as many metrics as they have consumers and outcomes.
async fn of_consumers<A: Account>(asker: &Asker<'_, A>, system: &System, queries: &mut Vec<Query>) {
    for function in system.functions.iter().filter(|function| function.is_consumer() == Fact::Known(true)) {
        let id = function.place.id.to_string();
        let input = json!({"Namespace": "claimant", "Dimensions": [{"Name": "function", "Value": id}]});
        let pages = match asker.pages(Service::CloudWatch, "ListMetrics", input, "NextToken").await {
            Ok(pages) => pages,
            Err(refused) => {
                asker.note(refused.to_string());
                continue;
            }
        };
        for found in texts(&pages, "Metrics") {
            let Some(metric) = DONE.into_iter().find(|done| text(&found, "MetricName") == Some(done)) else { continue };
            let dimensions = found["Dimensions"].as_array().into_iter().flatten();
            let consumer = dimensions.clone().find(|one| text(one, "Name") == Some("consumer"));
            let Some(consumer) = consumer.and_then(|one| text(one, "Value")) else { continue };
            let dimensions = vec![("consumer", consumer.to_owned()), ("function", id.clone())];
            let id = id.clone();
            let put: Put = Box::new(move |history, value| {
                let seen = history.functions.entry(id.clone()).or_default();
                seen.done = Some(seen.done.unwrap_or_default() + value);
            });
            queries.push(Query { namespace: "claimant", metric, dimensions, stat: "Sum", busiest: false, put });
        }
    }
}
