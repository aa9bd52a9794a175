//! The event source mappings of a template, from queues.

use super::events::source;
use super::functions::FUNCTION;
use super::globals;
use super::part::Part;
use super::queues::QUEUE;
use super::resources::{Resource, Resources, hole, last_part, reference};
use super::scope::HOLE;
use crate::fact::Fact;
use crate::model::{Batch, Filters, Invoked, Link, Mapping, POLLERS_DEFAULT, Place, Scaling};

const BATCH_SIZE: u64 = 10;

/// How SAM goes on in the id of a topic's mapping.
const OF_TOPIC: &str = "EventSourceMapping";

pub(super) const ALIASES: &[&str] = &["AWS::Lambda::Alias", "AWS::Lambda::Version"];

/// The alias that SAM makes of a function, and has its events invoke.
const PUBLISHED: &str = "AutoPublishAlias";

/// Properties of mappings that queues do not have.
const OF_OTHERS: [&str; 6] = [
    "StartingPosition",
    "Topics",
    "Queues",
    "SelfManagedEventSource",
    "AmazonManagedKafkaEventSourceConfig",
    "DocumentDBEventSourceConfig",
];

/// What can have the ARN of a queue that is not described here.
const OPAQUE: [&str; 3] =
    ["AWS::CloudFormation::Stack", "AWS::Serverless::Application", "AWS::CloudFormation::CustomResource"];

pub(super) fn mappings(resources: &Resources<'_>) -> Vec<Mapping> {
    let mut found = Vec::new();
    for function in resources.of(FUNCTION) {
        let events = function.properties().at("Events").entries();
        for (name, event) in events.known().into_iter().flatten() {
            let Fact::Known(Some(source)) = source(event) else { continue };
            let id = format!("{}{name}{}", function.id, if source.of_topic { OF_TOPIC } else { "" });
            let place = Place { id: id.into(), ..function.place_at(event.line()) };
            let queue = named(resources, &source.queue);
            let invokes = Invoked {
                function: Fact::Known(Link::Here(function.id.to_string())),
                qualifier: globals::properties(function).at(PUBLISHED).literal(),
            };
            let of_event = mapping(place, queue, invokes, &source.properties);
            let batch = Batch { of_topic: source.of_topic, ..of_event.batch };
            found.push(Mapping { batch, ..of_event });
        }
    }
    for resource in resources.of(&["AWS::Lambda::EventSourceMapping"]) {
        let properties = resource.properties();
        let source = properties.at("EventSourceArn");
        if is_of_another_service(resources, &source, &properties) {
            continue;
        }
        let queue = named(resources, &source);
        let named = properties.at("FunctionName");
        let invokes = Invoked { function: function_of(resources, &named), qualifier: qualifier_of(resources, &named) };
        found.push(mapping(resource.place(), queue, invokes, &properties));
    }
    found
}

/// Queues of functions that are not described here, and events that can be queues, and cannot be read.
pub(super) fn unread(resources: &Resources<'_>) -> Vec<String> {
    let mut unread = Vec::new();
    for function in resources.of(FUNCTION) {
        let mut note = |what: String| {
            unread.push(format!("{}:{}: {what}, not known here", function.scope.file, function.node.line));
        };
        match function.properties().at("Events").entries() {
            Fact::Unknown => note(format!("the Events of {}", function.id)),
            Fact::Known(events) => {
                for (name, event) in &events {
                    match source(event) {
                        Fact::Unknown => note(format!("the event {name} of {}", function.id)),
                        Fact::Known(Some(source))
                            if source.of_topic && source.queue.is_given() == Fact::Known(false) =>
                        {
                            note(format!("the queue that SAM makes for the event {name} of {}", function.id));
                        }
                        Fact::Known(_) => {}
                    }
                }
            }
        }
    }
    unread
}

/// Whether the source of a mapping is known to be no queue.
fn is_of_another_service(resources: &Resources<'_>, source: &Part<'_>, properties: &Part<'_>) -> bool {
    // These are for streams and brokers, and most of those need one.
    if OF_OTHERS.iter().any(|property| properties.at(property).is_given() == Fact::Known(true)) {
        return true;
    }
    let Fact::Known(source) = source.text() else { return false };
    let Some(arn) = source else { return true };
    if let Some(of) = hole(&arn).and_then(|id| resources.get(id)) {
        let can_be_a_queue = QUEUE.contains(&&*of.kind) || OPAQUE.contains(&&*of.kind) || !of.kind.starts_with("AWS::");
        return !can_be_a_queue;
    }
    arn.starts_with("arn:") && arn.split(':').nth(2).is_some_and(|service| service != "sqs" && !service.contains("${"))
}

/// The function that a name, an ARN, an alias or a version leads to.
fn function_of(resources: &Resources<'_>, part: &Part<'_>) -> Fact<Link> {
    let kinds: Vec<&str> = FUNCTION.iter().chain(ALIASES).copied().collect();
    let Fact::Known(Some(text)) = part.text() else { return Fact::Unknown };
    let Fact::Known(link) = resources.led_to(unqualified(&text), &kinds) else { return Fact::Unknown };
    let alias = resources.get(link.text()).filter(|resource: &&Resource<'_>| ALIASES.contains(&resource.kind.as_str()));
    match alias {
        None => Fact::Known(link),
        Some(alias) => match resources.link(&alias.properties().at("FunctionName"), FUNCTION) {
            Fact::Known(Some(link)) => Fact::Known(link),
            _ => Fact::Unknown,
        },
    }
}

/// The alias or version that a name, an ARN, or a reference has; what SAM or the template makes of a version is not known.
fn qualifier_of(resources: &Resources<'_>, part: &Part<'_>) -> Fact<Option<String>> {
    let Fact::Known(Some(text)) = part.text() else { return Fact::Unknown };
    let function = unqualified(&text);
    let qualifier = text[function.len()..].strip_prefix(':');
    if qualifier.is_some_and(|qualifier| !qualifier.contains("${")) {
        return Fact::Known(qualifier.map(str::to_owned));
    }
    let last = last_part(function);
    let referred = reference(last);
    // What is not known may bring one with it, and so may what is referred to.
    if qualifier.is_none() && referred.is_none() && !last.contains(HOLE) {
        return Fact::Known(None);
    }
    let Some((resource, attribute)) = referred.and_then(|(id, of)| Some((resources.get(id)?, of))) else {
        return Fact::Unknown;
    };
    let is_function = FUNCTION.contains(&&*resource.kind);
    let named = |properties: &Part<'_>, key| properties.at(key).literal().known().cloned().flatten();
    match attribute {
        _ if qualifier.is_some() => Fact::Unknown,
        "" | "Arn" if is_function => Fact::Known(None),
        "Alias" if is_function => Fact::from(named(&globals::properties(resource), PUBLISHED)).map(Some),
        "" | "AliasArn" if resource.kind == ALIASES[0] => Fact::from(named(&resource.properties(), "Name")).map(Some),
        _ => Fact::Unknown,
    }
}

/// A function's name or ARN without the alias or version behind it.
fn unqualified(text: &str) -> &str {
    let colons = if text.starts_with("arn:") {
        6
    } else if text.contains(":function:") {
        2
    } else {
        0
    };
    text.match_indices(':').nth(colons).map_or(text, |(end, _)| &text[..end])
}

/// The queue that a mapping names, and whether by its ARN.
fn named(resources: &Resources<'_>, queue: &Part<'_>) -> (Fact<Link>, Fact<bool>) {
    let link = match resources.link(queue, QUEUE) {
        Fact::Known(Some(link)) => Fact::Known(link),
        _ => Fact::Unknown,
    };
    (link, resources.is_arn(queue, QUEUE))
}

fn mapping(
    place: Place,
    (queue, by_arn): (Fact<Link>, Fact<bool>),
    invokes: Invoked,
    properties: &Part<'_>,
) -> Mapping {
    let pollers = properties.at("ProvisionedPollerConfig");
    let reports = properties.at("FunctionResponseTypes").items();
    let reports = reports.known().and_then(|types| {
        let types: Option<Vec<_>> = types.iter().map(|one| one.literal().known().cloned().flatten()).collect();
        Some(types?.iter().any(|one| one == "ReportBatchItemFailures"))
    });
    Mapping {
        place,
        uuid: String::new(),
        queue,
        by_arn,
        invokes,
        batch: Batch {
            size: properties.at("BatchSize").number_or(BATCH_SIZE),
            window_s: properties.at("MaximumBatchingWindowInSeconds").number_or(0),
            reports: reports.into(),
            of_topic: false,
        },
        scaling: Scaling {
            concurrency: properties.under(&["ScalingConfig", "MaximumConcurrency"]).number(),
            pollers: pollers.is_given().map(|is_given| {
                let of = |name, default| pollers.at(name).number_or(default);
                is_given.then(|| (of("MinimumPollers", POLLERS_DEFAULT.0), of("MaximumPollers", POLLERS_DEFAULT.1)))
            }),
        },
        filters: filters(&properties.under(&["FilterCriteria", "Filters"])),
        enabled: properties.at("Enabled").boolean_or(true),
        metrics: properties.under(&["MetricsConfig", "Metrics"]).has_items(1),
    }
}

fn filters(list: &Part<'_>) -> Filters {
    let items = list.items();
    let patterns =
        items.known().into_iter().flatten().filter_map(|one| one.at("Pattern").literal().known().cloned()?);
    Filters::new(list.has_items(1), patterns)
}
