//! The event source mappings of a template, from queues.

use std::sync::Arc;

use super::functions::FUNCTION;
use super::part::Part;
use super::queues::QUEUE;
use super::resources::{Resource, Resources};
use crate::fact::Fact;
use crate::model::{Link, Mapping, Place};

const BATCH_SIZE: u64 = 10;

/// Pollers at most of a mapping with provisioned ones, unless set.
const POLLERS: u64 = 200;

const ALIASES: &[&str] = &["AWS::Lambda::Alias", "AWS::Lambda::Version"];

pub(super) fn mappings(resources: &Resources<'_>) -> Vec<Mapping> {
    let mut found = Vec::new();
    for function in resources.of(FUNCTION) {
        let events = function.properties().at("Events").entries();
        for (name, event) in events.known().into_iter().flatten() {
            if event.at("Type").literal() == Fact::Known(Some("SQS".to_owned())) {
                let properties = event.at("Properties");
                let place = Place { id: format!("{}{name}", function.id).into(), ..function.place_at(event.line()) };
                let queue = resources.link(&properties.at("Queue"), QUEUE);
                found.push(mapping(place, queue, Fact::Known(Link::Here(function.id.to_string())), &properties));
            }
        }
    }
    for resource in resources.of(&["AWS::Lambda::EventSourceMapping"]) {
        let properties = resource.properties();
        let source = properties.at("EventSourceArn");
        // Of another service, or not known to be a queue.
        let is_queue = source.text().known().cloned().flatten().is_some_and(|arn| arn.split(':').nth(2) == Some("sqs"));
        let queue = resources.link(&source, QUEUE);
        if is_queue || matches!(queue, Fact::Known(Some(Link::Here(_)))) {
            found.push(mapping(
                resource.place(),
                queue,
                function_of(resources, &properties.at("FunctionName")),
                &properties,
            ));
        }
    }
    found
}

/// The function that a name, an ARN, an alias or a version leads to.
fn function_of(resources: &Resources<'_>, part: &Part<'_>) -> Fact<Link> {
    let kinds: Vec<&str> = FUNCTION.iter().chain(ALIASES).copied().collect();
    let Fact::Known(Some(link)) = resources.link(part, &kinds) else { return Fact::Unknown };
    let alias = resources.get(link.text()).filter(|resource: &&Resource<'_>| ALIASES.contains(&resource.kind.as_str()));
    match alias {
        None => Fact::Known(link),
        Some(alias) => match resources.link(&alias.properties().at("FunctionName"), FUNCTION) {
            Fact::Known(Some(link)) => Fact::Known(link),
            _ => Fact::Unknown,
        },
    }
}

fn mapping(place: Place, queue: Fact<Option<Link>>, function: Fact<Link>, properties: &Part<'_>) -> Mapping {
    let pollers = properties.at("ProvisionedPollerConfig");
    let reports = properties.at("FunctionResponseTypes").items();
    let reports = reports.known().and_then(|types| {
        let types: Option<Vec<_>> = types.iter().map(|one| one.literal().known().cloned().flatten()).collect();
        Some(types?.iter().any(|one| one == "ReportBatchItemFailures"))
    });
    let has = |part: Part<'_>| part.items().map(|items| !items.is_empty());
    Mapping {
        place: Place { id: Arc::clone(&place.id), ..place },
        queue: match queue {
            Fact::Known(Some(link)) => Fact::Known(link),
            _ => Fact::Unknown,
        },
        function,
        batch: (
            properties.at("BatchSize").number_or(BATCH_SIZE),
            properties.at("MaximumBatchingWindowInSeconds").number_or(0),
        ),
        reports: reports.into(),
        concurrency: properties.under(&["ScalingConfig", "MaximumConcurrency"]).number(),
        pollers: match pollers.is_given() {
            Fact::Known(true) => pollers.at("MaximumPollers").number_or(POLLERS).map(Some),
            Fact::Known(false) => Fact::Known(None),
            Fact::Unknown => Fact::Unknown,
        },
        filters: has(properties.under(&["FilterCriteria", "Filters"])),
        enabled: properties.at("Enabled").boolean_or(true),
        metrics: has(properties.under(&["MetricsConfig", "Metrics"])),
    }
}
