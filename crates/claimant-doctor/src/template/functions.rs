//! The functions of a template.

use std::collections::BTreeMap;

use super::part::Part;
use super::queues::QUEUE;
use super::resources::{Resource, Resources, reference};
use super::roles::Roles;
use super::tables::TABLE;
use crate::environment::{faults, is_own};
use crate::fact::Fact;
use crate::model::{Environment, Function, Link, Logs};

pub(super) const FUNCTION: &[&str] = &["AWS::Serverless::Function", "AWS::Lambda::Function"];

const ROLE: &[&str] = &["AWS::IAM::Role"];

const TIMEOUT_S: u64 = 3;

const MEMORY_MB: u64 = 128;

/// What a function's log group is called, unless it says otherwise.
const LOG_GROUP: &str = "/aws/lambda/";

pub(super) fn functions(resources: &Resources<'_>, roles: &Roles<'_, '_>) -> Vec<Function> {
    resources.of(FUNCTION).map(|resource| function(resources, roles, resource)).collect()
}

fn function<'s>(resources: &Resources<'s>, roles: &Roles<'_, 's>, resource: &Resource<'s>) -> Function {
    let own = resource.properties();
    let is_sam = resource.kind == FUNCTION[0];
    let globals = if is_sam {
        Part::new(resource.scope, &resource.scope.root).under(&["Globals", "Function"])
    } else {
        Part::nothing(resource.scope)
    };
    let property = |key: &str| own.at(key).or(globals.at(key));
    let letters = if is_sam { "DeadLetterQueue" } else { "DeadLetterConfig" };
    let logging = |key: &str| own.at("LoggingConfig").at(key).or(globals.at("LoggingConfig").at(key));
    let environment = environment(resources, [&globals, &own]);
    Function {
        place: resource.place(),
        timeout_s: property("Timeout").number_or(TIMEOUT_S),
        reserved: property("ReservedConcurrentExecutions").number(),
        own_dead_letters: property(letters).is_given(),
        rights: roles.of(resource, property),
        environment,
        loops_allowed: property("RecursiveLoop").text_is("Allow", "Terminate"),
        logs: Logs {
            json: logging("LogFormat").text_is("JSON", "Text"),
            retention: retention(resources, resource, &logging("LogGroup")),
        },
        arm64: architecture(&property("Architectures")),
        memory_mb: property("MemorySize").number_or(MEMORY_MB),
    }
}

fn architecture(part: &Part<'_>) -> Fact<bool> {
    let Fact::Known(items) = part.items() else { return Fact::Unknown };
    items.first().map_or(Fact::Known(false), |item| item.text_is("arm64", "x86_64"))
}

/// The variables of these places, of which a later one goes before an earlier one.
fn environment(resources: &Resources<'_>, places: [&Part<'_>; 2]) -> Environment {
    let kinds: Vec<&str> = QUEUE.iter().chain(TABLE).copied().collect();
    let value = |name: &str, part: &Part<'_>| match (part.text(), name) {
        (Fact::Known(Some(text)), "CLAIMANT_TABLE") if text.contains(',') => {
            let links = text.split(',').map(|one| resources.led_to(one.trim(), &kinds).known().cloned());
            links.collect::<Option<_>>().map(|links| Link::Several { text: text.clone(), links }).into()
        }
        (Fact::Known(Some(text)), _) => resources.led_to(&text, &kinds),
        _ => Fact::Unknown,
    };
    let mut environment = Environment::default();
    let mut own = BTreeMap::new();
    for place in places {
        let entries = place.under(&["Environment", "Variables"]).entries();
        environment.is_open |= entries.known().is_none();
        // The function's own are the last.
        environment.is_inherited = !entries.known().into_iter().flatten().any(|(name, _)| is_own(name));
        // What is `AWS::NoValue` is not there.
        let is_there = |(_, part): &&(_, Part<'_>)| part.is_given() != Fact::Known(false);
        for (name, part) in entries.known().into_iter().flatten().filter(is_there) {
            environment.variables.insert(name.to_string(), value(name, part));
            if is_own(name) {
                own.insert(name.to_string(), as_given(resources, part));
            }
        }
    }
    environment.faults = faults(&own.into_iter().collect::<Vec<_>>(), environment.is_open);
    environment
}

/// The value as the function is given it; of a queue, a role or a table one of its kind: a URL, an ARN or a name.
fn as_given(resources: &Resources<'_>, part: &Part<'_>) -> Fact<String> {
    let Fact::Known(Some(text)) = part.text() else { return Fact::Unknown };
    let Some((id, attribute)) = reference(&text) else {
        return if text.contains("${") { Fact::Unknown } else { Fact::Known(text) };
    };
    let is = |kinds: &[&str]| resources.get(id).is_some_and(|resource| kinds.contains(&resource.kind.as_str()));
    match attribute {
        "" | "QueueUrl" if is(QUEUE) => Fact::Known(format!("https://sqs.…/{id}")),
        "Arn" if is(QUEUE) => Fact::Known(format!("arn:aws:sqs:…:{id}")),
        "Arn" if is(ROLE) => Fact::Known(format!("arn:aws:iam::…:role/{id}")),
        "" | "QueueName" if is(QUEUE) || is(ROLE) || is(TABLE) => Fact::Known(id.to_owned()),
        _ => Fact::Unknown,
    }
}

/// Whether the logs of a function expire; not known where its log group can be elsewhere.
fn retention(resources: &Resources<'_>, function: &Resource<'_>, group: &Part<'_>) -> Fact<bool> {
    let expires = |group: &Resource<'_>| group.properties().at("RetentionInDays").is_given();
    const GROUP: &[&str] = &["AWS::Logs::LogGroup"];
    match resources.link(group, GROUP) {
        Fact::Known(Some(link)) => return resources.get(link.text()).map_or(Fact::Unknown, expires),
        Fact::Unknown => return Fact::Unknown,
        Fact::Known(None) => {}
    }
    // By the function's name: `/aws/lambda/${Function}`, or the name itself.
    let name = function.properties().at("FunctionName").text();
    let by_name = name.known().cloned().flatten().map(|name| format!("{LOG_GROUP}{name}"));
    let by_id = format!("{LOG_GROUP}${{{}}}", function.id);
    for other in resources.of(&["AWS::Logs::LogGroup", "Custom::LogRetention"]) {
        let named = other.properties().at("LogGroupName").text();
        let Fact::Known(Some(named)) = named else { continue };
        if named == by_id || by_name.as_ref() == Some(&named) {
            return expires(other);
        }
        if named.contains("${?}") {
            return Fact::Unknown;
        }
    }
    Fact::Known(false)
}
