//! SQS events of functions, queues between topics and functions, and event source mappings that are resources of their own.

use std::time::Duration;

use claimant_template::Filter;
use serde_json::{Value, json};

use super::section::Section;
use super::spec::{FunctionSpec, MappingSpec};
use super::template::Template;
use crate::arn;

const BATCH_SIZE_DEFAULT: u64 = 10;

/// Filters of one mapping at most, with a raised quota.
const FILTERS_MAX: usize = 10;

/// Everything that a mapping to SQS is made of; what else stands there is said to be left out.
const PROPERTIES: [&str; 9] = [
    "Queue",
    "EventSourceArn",
    "FunctionName",
    "BatchSize",
    "MaximumBatchingWindowInSeconds",
    "FilterCriteria",
    "FunctionResponseTypes",
    "ScalingConfig",
    "Enabled",
];

/// Properties without anything to see of them here.
const SILENT: [&str; 3] = ["KmsKeyArn", "MetricsConfig", "Tags"];

/// What SAM takes of a topic's queue.
const OF_TOPIC: [&str; 4] = ["QueueArn", "QueueUrl", "QueuePolicyLogicalId", "BatchSize"];

/// What follows where only AWS knows the queue.
const NOT_READ: &str = "no messages of it are read";

/// What follows where only AWS knows the function.
const READS_NOTHING: &str = "the messages of its queue are not read";

/// What follows where only AWS knows a filter's pattern.
const ALL_FIT: &str = "all messages fit it";

const MAPPING: &str = "AWS::Lambda::EventSourceMapping";

/// An event of a SAM function; `None`, and said so, if it is none that runs here.
pub(super) fn sqs_event(function_id: &str, event_id: &str, event: &Section<'_>) -> Option<MappingSpec> {
    if event_id.starts_with("Fn::") {
        event.not_run("macro", "the events that it would add are not known here");
        return None;
    }
    // `AWS::NoValue` takes it away; a name alone is refused.
    if !event.is_given() && !event.is_blank() {
        return None;
    }
    let kind = event.section("Type").required_text("say what it is, such as SQS")?;
    let properties = event.section("Properties");
    if kind == "SQS" {
        let queue = properties.section("Queue");
        return mapping(&format!("{function_id}{event_id}"), event.line(), &queue, &properties);
    }
    let subscription = properties.section("SqsSubscription");
    let is_made = subscription.plain_text().map(|text| text.eq_ignore_ascii_case("true"));
    match is_made {
        None if kind == "SNS" && subscription.is_given() => {
            event.not_run("SNS event", "no messages come from its topic; its queue is read");
            subscription.note_others(&[&OF_TOPIC]);
            let (queue, size) = (subscription.section("QueueArn"), subscription.only("BatchSize"));
            mapping(&format!("{function_id}{event_id}EventSourceMapping"), event.line(), &queue, &size)
        }
        Some(true) if kind == "SNS" => {
            event.not_run(
                "SNS event",
                "neither its topic nor the queue that SAM makes is run; a queue of the template is",
            );
            None
        }
        _ => {
            let what = "only SQS events are run, and SNS events with the SqsSubscription of a queue";
            event.not_run(&format!("{kind} event"), what);
            None
        }
    }
}

/// The names of the queues that a function's SQS events read.
pub(super) fn queues_read(function: &Section<'_>) -> Vec<String> {
    let events = function.section("Events").entries().into_iter();
    let arns = events.flat_map(|(_, event)| {
        let properties = event.section("Properties");
        [properties.section("Queue"), properties.section("SqsSubscription").section("QueueArn")]
    });
    let arns = arns.filter_map(|queue| queue.text());
    arns.filter_map(|arn| arn::local_queue_name(&arn).map(str::to_owned)).collect()
}

/// Adds to each function the mappings that are resources of their own.
pub(super) fn add_event_source_mappings(template: &Template<'_>, functions: &mut [FunctionSpec]) {
    for (id, resource) in template.resources(&[MAPPING]) {
        let properties = resource.section("Properties");
        let called = properties.section("FunctionName");
        let called = called.required_text_or("name the function, such as !Ref Confirm", READS_NOTHING);
        let source = properties.section("EventSourceArn");
        let arn = source.text_or(NOT_READ);
        if arn.as_ref().is_none_or(|arn| arn.split(':').nth(2) != Some("sqs")) {
            resource.not_run(MAPPING, "only SQS queues that are known here are read");
            continue;
        }
        let Some(called) = called else { continue };
        let Some(function) = functions.iter_mut().find(|function| function.name == arn::function_name(&called)) else {
            let queue = arn.as_deref().and_then(arn::local_queue_name).unwrap_or("its queue");
            resource.not_run(MAPPING, format!("its function is not run; messages stay in {queue}"));
            continue;
        };
        function.mappings.extend(mapping(id, resource.line(), &source, &properties));
    }
}

fn mapping(logical_id: &str, line: usize, queue: &Section<'_>, properties: &Section<'_>) -> Option<MappingSpec> {
    let arn = queue.required_text_or("give the queue's ARN, such as !GetAtt Orders.Arn", NOT_READ);
    let integer = |key, range| properties.section(key).integer(range);
    let batch_size = integer("BatchSize", 1..=10_000).unwrap_or(BATCH_SIZE_DEFAULT);
    let window_s = integer("MaximumBatchingWindowInSeconds", 0..=300).unwrap_or(0);
    let concurrency = properties.section("ScalingConfig").section("MaximumConcurrency").integer(2..=1_000);
    let report_batch_item_failures = reports_failures(&properties.section("FunctionResponseTypes"));
    let enabled = properties.section("Enabled").boolean().unwrap_or(true);
    let filters = filters(&properties.section("FilterCriteria").section("Filters"));
    properties.note_others(&[&PROPERTIES, &SILENT]);
    let arn = arn?;
    let Some(name) = arn::queue_here(&arn) else {
        queue.fault(format!("must be the ARN of a queue in this template, not `{arn}`: write !GetAtt Orders.Arn"));
        return None;
    };
    Some(MappingSpec {
        logical_id: logical_id.to_owned(),
        line,
        queue: name.to_owned(),
        batch_size: usize::try_from(batch_size).expect("checked to be 10000 or less"),
        window: Duration::from_secs(window_s),
        filters,
        report_batch_item_failures,
        maximum_concurrency: concurrency.map(|n| u32::try_from(n).expect("checked to be 1000 or less")),
        enabled,
    })
}

fn reports_failures(types: &Section<'_>) -> bool {
    let mut reports = false;
    for item in types.items() {
        match item.text().as_deref() {
            Some("ReportBatchItemFailures") => reports = true,
            Some(other) => item.fault(format!("must be ReportBatchItemFailures, not `{other}`")),
            None => {}
        }
    }
    reports
}

fn filters(list: &Section<'_>) -> Vec<Filter> {
    let items = list.items();
    if items.len() > FILTERS_MAX {
        list.fault(format!("has {} filters: Lambda allows {FILTERS_MAX} at most", items.len()));
    }
    let filter = |item: &Section<'_>| {
        let pattern = item.section("Pattern");
        if pattern.is_missing() {
            item.fault("has no Pattern: give it one, such as '{\"body\": {\"kind\": [\"order\"]}}'");
        }
        let read = match pattern.plain_json(ALL_FIT) {
            // One that only AWS knows fits everything: without it, Lambda's filters would delete what fits it alone.
            None | Some(Value::Null) => Filter::new(&json!({})),
            Some(Value::String(text)) => Filter::read(&text),
            Some(value) => Filter::new(&value),
        };
        read.map_err(|why| pattern.fault(why.to_string())).ok()
    };
    items.iter().filter_map(filter).collect()
}
