//! The functions of a template.

use super::part::Part;
use super::queues::QUEUE;
use super::resources::{Resource, Resources};
use super::roles::Roles;
use super::tables::TABLE;
use crate::fact::Fact;
use crate::model::{Environment, Function, Link, Logs};

pub(super) const FUNCTION: &[&str] = &["AWS::Serverless::Function", "AWS::Lambda::Function"];

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
    let mut environment = environment(resources, &globals);
    let own_variables = self::environment(resources, &own);
    environment.variables.extend(own_variables.variables);
    environment.is_open |= own_variables.is_open;
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

fn environment(resources: &Resources<'_>, place: &Part<'_>) -> Environment {
    let entries = place.under(&["Environment", "Variables"]).entries();
    let kinds: Vec<&str> = QUEUE.iter().chain(TABLE).copied().collect();
    let value = |name: &str, part: &Part<'_>| match (part.text(), name) {
        (Fact::Known(Some(text)), "CLAIMANT_TABLE") if text.contains(',') => {
            let links = text.split(',').map(|one| resources.led_to(one.trim(), &kinds).known().cloned());
            links.collect::<Option<_>>().map(|links| Link::Several { text: text.clone(), links }).into()
        }
        (Fact::Known(Some(text)), _) => resources.led_to(&text, &kinds),
        _ => Fact::Unknown,
    };
    // What is `AWS::NoValue` is not there.
    let is_there = |(_, part): &&(_, Part<'_>)| part.is_given() != Fact::Known(false);
    let known = entries.known().into_iter().flatten().filter(is_there);
    Environment {
        variables: known.map(|(name, part)| (name.to_string(), value(name, part))).collect(),
        is_open: entries.known().is_none(),
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
