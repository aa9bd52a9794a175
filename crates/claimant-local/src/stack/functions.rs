//! Functions of a template and their SQS events.

use std::collections::BTreeMap;
use std::time::Duration;

use super::resolve::queue_name;
use super::resources::physical_name;
use super::template::{Section, Template};
use super::{FunctionSpec, MappingSpec};

const TIMEOUT_DEFAULT_S: u64 = 3;
const MEMORY_DEFAULT_MB: u64 = 128;
const BATCH_SIZE_DEFAULT: u64 = 10;

pub(super) fn functions(template: &Template<'_>) -> Vec<FunctionSpec> {
    let read = template.resources(&["AWS::Serverless::Function"]);
    read.filter_map(|(id, function)| function_spec(template, id, &function)).collect()
}

fn function_spec(template: &Template<'_>, id: &str, function: &Section<'_>) -> Option<FunctionSpec> {
    let name = physical_name(template, id, function);
    let properties = function.section("Properties");
    let globals = template.function_globals();
    let number = |key, range: std::ops::RangeInclusive<u64>, default| {
        let own = properties.section(key);
        let place = if own.is_given() { own } else { globals.section(key) };
        place.integer(range).unwrap_or(default)
    };
    let timeout_s = number("Timeout", 1..=900, TIMEOUT_DEFAULT_S);
    let memory_mb = number("MemorySize", 128..=10_240, MEMORY_DEFAULT_MB);
    let mut environment = variables(&globals);
    environment.extend(variables(&properties));
    let mappings = properties.section("Events").entries().into_iter();
    let mappings = mappings.filter_map(|(event_id, event)| mapping(id, &event_id, &event)).collect();
    // Read before any early return, so that one run reports all faults.
    let binary = binary(function);
    Some(FunctionSpec {
        logical_id: id.to_owned(),
        name: name?,
        binary: binary?,
        timeout: Duration::from_secs(timeout_s),
        memory_mb: u32::try_from(memory_mb).expect("checked to be 10240 or less"),
        environment,
        mappings,
    })
}

fn binary(function: &Section<'_>) -> Option<String> {
    let metadata = function.section("Metadata");
    let method = metadata.section("BuildMethod");
    let built_by = method.required_text("set `BuildMethod: rust-cargolambda`")?;
    if built_by != "rust-cargolambda" {
        method.fault(format!("must be rust-cargolambda to run locally, not `{built_by}`"));
        return None;
    }
    let binary = metadata.section("BuildProperties").section("Binary");
    binary.required_text("name the cargo binary of this function")
}

fn variables(place: &Section<'_>) -> BTreeMap<String, String> {
    let variables = place.section("Environment").section("Variables").entries();
    variables.into_iter().filter_map(|(name, value)| Some((name, value.text()?))).collect()
}

fn mapping(function_id: &str, event_id: &str, event: &Section<'_>) -> Option<MappingSpec> {
    if event.section("Type").text()? != "SQS" {
        return None;
    }
    let properties = event.section("Properties");
    let queue = properties.section("Queue");
    let arn = queue.required_text("give the queue's ARN, such as !GetAtt Orders.Arn");
    let integer = |key, range| properties.section(key).integer(range);
    let batch_size = integer("BatchSize", 1..=10_000).unwrap_or(BATCH_SIZE_DEFAULT);
    let window_s = integer("MaximumBatchingWindowInSeconds", 0..=300).unwrap_or(0);
    let concurrency = properties.section("ScalingConfig").section("MaximumConcurrency").integer(2..=1_000);
    let report_batch_item_failures = reports_failures(&properties.section("FunctionResponseTypes"));
    let enabled = properties.section("Enabled").boolean().unwrap_or(true);
    let arn = arn?;
    let Some(name) = queue_name(&arn) else {
        queue.fault(format!("must be the ARN of a queue in this template, not `{arn}`: write !GetAtt Orders.Arn"));
        return None;
    };
    Some(MappingSpec {
        logical_id: format!("{function_id}{event_id}"),
        queue: name.to_owned(),
        batch_size: usize::try_from(batch_size).expect("checked to be 10000 or less"),
        window: Duration::from_secs(window_s),
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
