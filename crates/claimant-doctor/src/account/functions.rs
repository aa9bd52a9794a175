//! Functions, their mappings, and what their roles may do.

use std::collections::{BTreeMap, BTreeSet};

use claimant_aws::sqs::queue_arn;
use claimant_template::Fault;
use serde_json::{Value, json};

use super::answers::{Account, Asker, Refused, Service, text, texts};
use super::names::{function_of, here, mapping_id, name_of, partition_of, place, qualifier_of, table_id};
use super::watching;
use crate::environment::{
    BATCH, CONNECTIONS, DEAD_LETTER_QUEUE, MAPPING_CHECK, MARGIN, RECEIVES, RESUME_ROLE, TABLE, TABLE_BEFORE,
    VISIBILITY, faults, is_own,
};
use crate::fact::Fact;
use crate::model::{
    Batch, Environment, Filters, Function, Invoked, Link, Logs, Machine, Mapping, POLLERS_DEFAULT, Scaling, System,
};
use crate::rights::{EVERYTHING, LEADING_KEYS, LIST_MAPPINGS, ON_MOVED, ON_TABLES, Rights};

const ON_QUEUES: [&str; 5] = [
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ChangeMessageVisibility",
    "sqs:SendMessage",
];

/// What is asked for later of a function that was read.
pub(super) struct Read {
    /// Its role, by its ARN.
    pub(super) role: Option<String>,
    /// The partition that it is in.
    pub(super) partition: String,
}

/// Asks for all event source mappings: Lambda counts those of a function's versions and aliases (`AutoPublishAlias`) as those of other
/// functions.
pub(super) async fn mappings<A: Account>(asker: &Asker<'_, A>) -> Result<Vec<Value>, Refused> {
    Ok(texts(
        &asker.pages(Service::Lambda, "ListEventSourceMappings", json!({}), "Marker").await?,
        "EventSourceMappings",
    ))
}

/// Adds a function, and those of these mappings that are its.
pub(super) async fn read<A: Account>(
    asker: &Asker<'_, A>,
    name: &str,
    mappings: &[Value],
    system: &mut System,
) -> Result<Read, Refused> {
    let input = json!({"FunctionName": name});
    let answer = asker.ask(Service::Lambda, "GetFunction", input).await?;
    let found = &answer["Configuration"];
    let arn = text(found, "FunctionArn").unwrap_or_default();
    let mut parts = arn.split(':').skip(3);
    if let (Some(region), Some(account)) = (parts.next(), parts.next()) {
        system.home.region = Fact::Known(region.to_owned());
        system.home.account = Fact::Known(account.to_owned());
    }
    let logging = &found["LoggingConfig"];
    // Without the version or alias that it was asked for by.
    let name = function_of(arn).unwrap_or_else(|| name_of(name));
    system.functions.push(Function {
        place: place(name),
        timeout_s: found["Timeout"].as_u64().into(),
        reserved: Fact::Known(answer["Concurrency"]["ReservedConcurrentExecutions"].as_u64()),
        own_dead_letters: Fact::Known(found["DeadLetterConfig"]["TargetArn"].is_string()),
        rights: Rights::Unknown,
        environment: environment(asker, name, found),
        // Not asked for: check 21 goes by metrics here.
        loops_allowed: Fact::Unknown,
        logs: Logs {
            json: Fact::Known(text(logging, "LogFormat") == Some("JSON")),
            // Filled in by what is known of the group.
            retention: Fact::Unknown,
        },
        machine: Machine {
            arm64: Fact::Known(found["Architectures"][0] == "arm64"),
            memory_mb: found["MemorySize"].as_u64().into(),
        },
        // Lambda refuses a function whose role it may not assume.
        is_assumable: Fact::Known(true),
    });
    let group = text(logging, "LogGroup").map_or_else(|| format!("/aws/lambda/{name}"), str::to_owned);
    let retention = watching::expires(asker, &group).await;
    if let Some(function) = system.functions.last_mut() {
        function.logs.retention = retention;
    }
    for found in mappings.iter().filter(|found| is_of(found, arn)) {
        let Some(mapping) = mapping(found, name) else { continue };
        if mapping.filters.any == Fact::Unknown {
            asker.note(format!(
                "the filters of {}: they are encrypted, and not in Lambda's lists (check 15)",
                mapping.place.id
            ));
        }
        system.mappings.push(mapping);
    }
    Ok(Read { role: text(found, "Role").map(str::to_owned), partition: partition_of(arn).to_owned() })
}

/// Adds those of these mappings that lead elsewhere from the queues of the functions that were read: to other functions, or to other versions
/// and aliases of the same where one was asked for.
pub(super) fn elsewhere(mappings: &[Value], system: &mut System) {
    for found in mappings {
        let Some(name) = text(found, "FunctionArn").and_then(function_of) else { continue };
        let Some(mapping) = mapping(found, name) else { continue };
        let is_of = |queue: &Fact<Link>| system.mappings.iter().any(|one| one.queue == *queue);
        if system.mappings.iter().all(|one| one.uuid != mapping.uuid) && is_of(&mapping.queue) {
            system.mappings_elsewhere.push(mapping);
        }
    }
}

/// Whether a mapping is of the function with this ARN, or of a version or an alias of it.
fn is_of(mapping: &Value, arn: &str) -> bool {
    let of = text(mapping, "FunctionArn").and_then(|of| of.strip_prefix(arn));
    of.is_some_and(|qualifier| qualifier.is_empty() || qualifier.starts_with(':'))
}

/// The variables that checks look at; the values of the others are of no concern, and stay behind.
fn environment<A>(asker: &Asker<'_, A>, name: &str, found: &Value) -> Environment {
    let (variables, error) = (&found["Environment"]["Variables"], &found["Environment"]["Error"]);
    // Those whose key these credentials may not use, or that is disabled, are left out.
    let is_open = error.is_object();
    if is_open {
        let code = text(error, "ErrorCode").unwrap_or("no code");
        let why = match code.contains("AccessDenied") {
            true => "they are encrypted with a key that these credentials may not use (kms:Decrypt)",
            false => text(error, "Message").unwrap_or("Lambda leaves them out"),
        };
        asker.note(format!("the variables of {name}: {code}: {why}"));
    }
    let arn = text(found, "FunctionArn").unwrap_or_default();
    let of = |(name, value): (&String, &Value)| {
        let value = value.as_str()?;
        let link = match name.as_str() {
            TABLE | TABLE_BEFORE => Fact::Known(match value.split(',').collect::<Vec<_>>().as_slice() {
                [one] => here(table_id(one, arn)),
                many => {
                    let links = many.iter().map(|one| here(table_id(one.trim(), arn))).collect();
                    Link::Several { text: value.to_owned(), links }
                }
            }),
            DEAD_LETTER_QUEUE => queue_arn(value, arn).map(|queue| here(&queue)).into(),
            BATCH | VISIBILITY | MAPPING_CHECK | MARGIN | CONNECTIONS | RECEIVES => {
                Fact::Known(Link::Elsewhere(value.to_owned()))
            }
            name if is_own(name) => Fact::Unknown,
            _ => return None,
        };
        Some((name.clone(), link))
    };
    let all = || variables.as_object().into_iter().flatten();
    let own = all().filter(|(name, _)| is_own(name));
    let own: Vec<_> =
        own.filter_map(|(name, value)| Some((name.clone(), Fact::Known(value.as_str()?.to_owned())))).collect();
    Environment {
        variables: all().filter_map(of).collect(),
        is_open,
        faults: faults(&own, is_open),
        ..Environment::default()
    }
}

/// A mapping from a queue; nothing for other sources.
fn mapping(found: &Value, function: &str) -> Option<Mapping> {
    let qualifier = text(found, "FunctionArn").and_then(qualifier_of);
    let source = text(found, "EventSourceArn").filter(|arn| arn.split(':').nth(2) == Some("sqs"))?;
    let has = |value: &Value| Fact::Known(value.as_array().is_some_and(|items| !items.is_empty()));
    let pollers = &found["ProvisionedPollerConfig"];
    let reports = &found["FunctionResponseTypes"];
    let reports = reports.as_array().is_some_and(|types| types.iter().any(|one| one == "ReportBatchItemFailures"));
    let uuid = text(found, "UUID").unwrap_or(source);
    Some(Mapping {
        place: place(&mapping_id(function, source, uuid)),
        uuid: uuid.to_owned(),
        queue: Fact::Known(here(source)),
        by_arn: Fact::Known(true),
        invokes: Invoked {
            function: Fact::Known(here(function)),
            qualifier: Fact::Known(qualifier.map(str::to_owned)),
        },
        batch: Batch {
            size: found["BatchSize"].as_u64().into(),
            window_s: Fact::Known(found["MaximumBatchingWindowInSeconds"].as_u64().unwrap_or(0)),
            reports: Fact::Known(reports),
            of_topic: false,
        },
        scaling: Scaling {
            concurrency: Fact::Known(found["ScalingConfig"]["MaximumConcurrency"].as_u64()),
            pollers: Fact::Known(pollers.is_object().then(|| {
                let of = |name: &str, default| Fact::Known(pollers[name].as_u64().unwrap_or(default));
                (of("MinimumPollers", POLLERS_DEFAULT.0), of("MaximumPollers", POLLERS_DEFAULT.1))
            })),
        },
        filters: filters(found),
        enabled: Fact::Known(!matches!(text(found, "State"), Some("Disabled" | "Disabling"))),
        metrics: has(&found["MetricsConfig"]["Metrics"]),
    })
}

fn filters(found: &Value) -> Filters {
    // A list has none that are encrypted.
    if found["KMSKeyArn"].is_string() && found["FilterCriteria"].is_null() {
        return Filters::default();
    }
    let all = found["FilterCriteria"]["Filters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let patterns = all.iter().filter_map(|filter| filter["Pattern"].as_str());
    let mut filters = Filters::new(Fact::Known(!all.is_empty()), patterns);
    // AWS has taken what is deployed.
    filters.faults.retain(|fault| matches!(fault, Fault::Refused(_)));
    filters
}

/// Asks IAM what a function's role may do with its queues and its tables; of keys their own policies decide.
pub(super) async fn simulate<A: Account>(asker: &Asker<'_, A>, read: &Read, index: usize, system: &mut System) {
    let Some(role) = &read.role else { return };
    let function = system.functions[index].place.id.clone();
    if system.functions[index].environment.has(RESUME_ROLE) == Fact::Known(true) {
        asker
            .note(format!("whether the role of {function} may pause its intake: of a template it is known (check 36)"));
    }
    let mut answers = BTreeMap::new();
    for (actions, resources) in wanted(system, index, &read.partition) {
        for (arn, id) in resources {
            let has_policy = system.tables.iter().any(|table| *table.place.id == *id && table.access.has_policy);
            let input = json!({"PolicySourceArn": role, "ActionNames": actions, "ResourceArns": [arn]});
            let Some(answer) = asker.get(Service::Iam, "SimulatePrincipalPolicy", input).await else { continue };
            for result in texts(std::slice::from_ref(&answer), "EvaluationResults") {
                if let (Some(action), Some(decision)) = (text(&result, "EvalActionName"), text(&result, "EvalDecision"))
                {
                    let mut open = open(&result, action);
                    if has_policy && decision == "implicitDeny" {
                        open.insert("the table's own policy");
                    }
                    if decision == "allowed" || open.is_empty() {
                        answers.insert((action.to_owned(), id.clone()), decision == "allowed");
                    } else {
                        asker.note(not_decided(&id, &open));
                    }
                }
            }
        }
    }
    if let Some(found) = system.functions.iter_mut().find(|found| found.place.id == function) {
        found.rights = Rights::Simulated(answers);
    }
}

/// What a denial depends on that only a request has, or that IAM does not evaluate here. IAM names the keys of all statements of the role,
/// whatever action they are about: a key of another service is none of this one's requests. Those of Lambda are, of any that a function makes
/// (`lambda:SourceFunctionArn`).
fn open<'r>(result: &'r Value, action: &str) -> BTreeSet<&'r str> {
    let service = action.split(':').next().unwrap_or_default();
    let matters = |key: &&str| {
        let of = key.split(':').next().unwrap_or_default();
        of == *key || ["aws", "lambda", service].iter().any(|one| of.eq_ignore_ascii_case(one))
    };
    let by_resource = result["ResourceSpecificResults"].as_array().into_iter().flatten();
    let results: Vec<_> = std::iter::once(result).chain(by_resource).collect();
    let missing = results.iter().filter_map(|one| one["MissingContextValues"].as_array());
    let mut open: BTreeSet<_> = missing.flatten().filter_map(Value::as_str).filter(matters).collect();
    // Conditions of these are evaluated without the keys that they ask for, and those are not named.
    let is_refused = |one: &Value| one["PermissionsBoundaryDecisionDetail"]["AllowedByPermissionsBoundary"] == "false";
    if results.iter().any(|one| is_refused(one)) {
        open.insert("the permissions boundary");
    }
    if text(&result["OrganizationsDecisionDetail"], "AllowedByOrganizations") == Some("false") {
        open.insert("the organization's policies");
    }
    open
}

fn not_decided(id: &str, open: &BTreeSet<&str>) -> String {
    let on = open.iter().copied().collect::<Vec<_>>().join(", ");
    let checks = if id == EVERYTHING || id.split(':').nth(2) == Some("sqs") { "check 18" } else { "checks 18 and 28" };
    let of_template = if open.contains(LEADING_KEYS) { " (of a template it is known)" } else { "" };
    format!("what roles may do with {id}, as far as it depends on {on}: {checks}{of_template}")
}

type Wanted = Vec<(&'static [&'static str], Vec<(String, String)>)>;

/// What to ask for a function: actions, and the ARNs and ids of what they are on.
fn wanted(system: &System, index: usize, partition: &str) -> Wanted {
    let function = &system.functions[index];
    let mut queues: Vec<_> =
        system.mappings_of(function).filter_map(|mapping| system.queue(mapping.queue.known()?)).collect();
    let letters = function.environment.get(DEAD_LETTER_QUEUE).and_then(Fact::known);
    queues.extend(letters.and_then(|letters| system.queue(letters)));
    let of_queues = queues.iter().map(|queue| (queue.place.id.to_string(), queue.place.id.to_string())).collect();
    let (region, account) = (system.home.region.known().cloned(), system.home.account.known().cloned());
    let arn = |name: &str| {
        if name.starts_with("arn:") {
            return Some(name.to_owned());
        }
        let (region, account) = (region.as_deref()?, account.as_deref()?);
        Some(format!("arn:{partition}:dynamodb:{region}:{account}:table/{name}"))
    };
    let tables = |variable: &str| {
        let named = function.environment.get(variable).and_then(Fact::known);
        let all = system.tables.iter().filter(|table| named.is_some_and(|link| link.is(&table.place.id)));
        all.filter_map(|table| Some((arn(&table.place.id)?, table.place.id.to_string()))).collect()
    };
    let checks = function.is_consumer() == Fact::Known(true) && !function.is_set(MAPPING_CHECK, "off");
    let everything = checks.then(|| (EVERYTHING.to_owned(), EVERYTHING.to_owned()));
    vec![
        (&ON_QUEUES, of_queues),
        (&ON_TABLES, tables(TABLE)),
        (&ON_MOVED, tables(TABLE_BEFORE)),
        (&[LIST_MAPPINGS], everything.into_iter().collect()),
    ]
}
