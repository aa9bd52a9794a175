//! The functions of a template.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::database;
use super::globals;
use super::part::Part;
use super::queues::QUEUE;
use super::resources::{Resource, Resources, reference};
use super::roles::{ROLE, Roles};
use super::tables::TABLE;
use crate::environment::{self, RESUME_ROLE, SCHEDULE_ROLE, TABLE_BEFORE, faults, is_own};
use crate::fact::Fact;
use crate::model::{Environment, Function, Link, Logs, Machine, Scheduler};

pub(super) const FUNCTION: &[&str] = &["AWS::Serverless::Function", "AWS::Lambda::Function"];

const TIMEOUT_S: u64 = 3;

const MEMORY_MB: u64 = 128;

/// What a function's log group is called, unless it says otherwise.
const LOG_GROUP: &str = "/aws/lambda/";

pub(super) fn functions(resources: &Resources<'_>, roles: &Roles<'_, '_>) -> Vec<Function> {
    resources.of(FUNCTION).map(|resource| function(resources, roles, resource)).collect()
}

fn function<'s>(resources: &Resources<'s>, roles: &Roles<'_, 's>, resource: &Resource<'s>) -> Function {
    let properties = globals::properties(resource);
    let letters = if resource.kind == FUNCTION[0] { "DeadLetterQueue" } else { "DeadLetterConfig" };
    let logging = properties.at("LoggingConfig");
    let own = variables(&resource.properties());
    Function {
        place: resource.place(),
        timeout_s: properties.at("Timeout").number_or(TIMEOUT_S),
        reserved: properties.at("ReservedConcurrentExecutions").number(),
        own_dead_letters: properties.at(letters).is_given(),
        rights: roles.of(resource, &properties),
        environment: Environment {
            is_inherited: !own.known().into_iter().flatten().any(|(name, _)| is_own(name)),
            database: database::server(resource, &properties.under(&VARIABLES)),
            schedulers: schedulers(roles, &properties.under(&VARIABLES)),
            ..environment(resources, &variables(&properties))
        },
        loops_allowed: properties.at("RecursiveLoop").text_is("Allow", "Terminate"),
        logs: Logs {
            json: logging.at("LogFormat").text_is("JSON", "Text"),
            retention: retention(resources, resource, &logging.at("LogGroup")),
        },
        machine: Machine {
            arm64: architecture(&properties.at("Architectures")),
            memory_mb: properties.at("MemorySize").number_or(MEMORY_MB),
        },
        is_assumable: roles.are_assumable(resource, &properties),
    }
}

fn schedulers<'s>(roles: &Roles<'_, 's>, variables: &Part<'s>) -> BTreeMap<&'static str, Scheduler> {
    let role = |variable| Some((variable, roles.scheduler(&variables.at(variable))?));
    [RESUME_ROLE, SCHEDULE_ROLE].into_iter().filter_map(role).collect()
}

fn architecture(part: &Part<'_>) -> Fact<bool> {
    match part.items().known().map(Vec::as_slice) {
        Some([]) => Fact::Known(false),
        Some([only]) => only.text_is("arm64", "x86_64"),
        // Lambda refuses two.
        _ => Fact::Unknown,
    }
}

/// Where a function's variables stand.
const VARIABLES: [&str; 2] = ["Environment", "Variables"];

type Variables<'s> = Fact<Vec<(Rc<str>, Part<'s>)>>;

fn variables<'s>(properties: &Part<'s>) -> Variables<'s> {
    let all = properties.under(&VARIABLES);
    // Of others than claimant's own, checks ask only whether they lead to a queue of the template.
    let read = |(name, part): (Rc<str>, Part<'s>)| {
        let part = if is_own(&name) { all.at(&name) } else { part };
        (name, part)
    };
    all.entries_aside().map(|entries| entries.into_iter().map(read).collect())
}

fn environment(resources: &Resources<'_>, variables: &Variables<'_>) -> Environment {
    let kinds: Vec<&str> = QUEUE.iter().chain(TABLE).copied().collect();
    let value = |name: &str, part: &Part<'_>| match (part.variable(), name) {
        (Fact::Known(Some(text)), environment::TABLE | TABLE_BEFORE) if text.contains(',') => {
            let links = text.split(',').map(|one| resources.led_to(one.trim(), &kinds).known().cloned());
            links.collect::<Option<_>>().map(|links| Link::Several { text: text.clone(), links }).into()
        }
        (Fact::Known(Some(text)), _) => resources.led_to(&text, &kinds),
        _ => Fact::Unknown,
    };
    let is_open = variables.known().is_none();
    // What is `AWS::NoValue` is not there.
    let is_there = |(_, part): &&(_, Part<'_>)| part.is_given() != Fact::Known(false);
    let there: Vec<_> = variables.known().into_iter().flatten().filter(is_there).collect();
    let own = there.iter().filter(|(name, _)| is_own(name));
    let own: Vec<_> = own.map(|(name, part)| (name.to_string(), as_given(resources, part))).collect();
    Environment {
        variables: there.iter().map(|(name, part)| (name.to_string(), value(name, part))).collect(),
        is_open,
        faults: faults(&own, is_open),
        ..Environment::default()
    }
}

/// The account of ARNs that stand for those of this template.
const ACCOUNT: &str = "000000000000";

/// The value as the function is given it; of a queue, a role or a table one of its kind: a URL, an ARN or a name.
fn as_given(resources: &Resources<'_>, part: &Part<'_>) -> Fact<String> {
    let Fact::Known(Some(text)) = part.variable() else { return Fact::Unknown };
    let Some((id, attribute)) = reference(&text) else {
        return if text.contains("${") { Fact::Unknown } else { Fact::Known(text) };
    };
    // Of a template that is read with others, it has the file's name in front.
    let named = id.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_', "-");
    let is = |kinds: &[&str]| resources.get(id).is_some_and(|resource| kinds.contains(&resource.kind.as_str()));
    match attribute {
        "" | "QueueUrl" if is(QUEUE) => Fact::Known(format!("https://sqs.…/{named}")),
        "Arn" if is(QUEUE) => Fact::Known(format!("arn:aws:sqs:us-east-1:{ACCOUNT}:{named}")),
        "Arn" if is(ROLE) => Fact::Known(format!("arn:aws:iam::{ACCOUNT}:role/{named}")),
        "" | "QueueName" if is(QUEUE) || is(ROLE) => Fact::Known(named),
        // As CloudFormation makes it of the stack's name: that of no other table.
        "" if is(TABLE) => Fact::Known(format!("stack-{named}")),
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
