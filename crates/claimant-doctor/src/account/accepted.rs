//! Findings that the resources of a deployed stack accept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::answers::{Account, Asker, Service, text};
use super::stacks::{FUNCTION, MAPPING, QUEUE, Resource, TABLES, name};
use crate::catalog::Check;
use crate::model::{Deleted, Place, System};
use crate::place::{METADATA, counts_for_nothing};

/// Adds what the resources accept that something is found of: a request for each of those, until one may not be asked about.
pub(super) async fn read<A: Account>(asker: &Asker<'_, A>, resources: &[Resource], system: &mut System) {
    let found: BTreeSet<_> = crate::run(system).findings.into_iter().map(|finding| finding.place.id).collect();
    for resource in resources {
        let of_it = |(kind, place): &(Kind<'_>, &mut Place)| is_of(resource, resources, *kind, &place.id);
        if !places(system).filter(of_it).any(|(_, place)| found.contains(&place.id)) {
            continue;
        }
        let input = json!({"StackName": resource.stack, "LogicalResourceId": resource.logical_id});
        let answer = match asker.ask(Service::CloudFormation, "DescribeStackResource", input).await {
            Ok(answer) => answer,
            Err(refused) if refused.is_denied() => {
                asker.note(format!("what resources of the stack accept, so all findings are shown: {refused}"));
                return;
            }
            Err(refused) => {
                asker.note(refused.to_string());
                continue;
            }
        };
        let (reasons, given) = reasons(&answer["StackResourceDetail"]);
        if reasons.len() < given {
            let name = &resource.logical_id;
            asker.note(format!("{name} of {}: {}", resource.stack, counts_for_nothing()));
        }
        for (_, place) in places(system).filter(of_it) {
            Arc::make_mut(&mut place.accepted).extend(reasons.clone());
        }
    }
}

/// What a place is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind<'s> {
    Function,
    Mapping,
    Queue,
    Table,
    /// One that is not there any more, by the name of its stack and its own in the template.
    Deleted(&'s str, &'s str),
}

/// Whether what is of this kind and has this id is the resource, or a mapping that SAM made of an event of the resource, a function: it gives
/// that nothing of the function's Metadata, and a logical id that begins with the function's.
fn is_of(resource: &Resource, all: &[Resource], kind: Kind<'_>, id: &str) -> bool {
    let own = &*resource.id;
    match kind {
        Kind::Function => resource.kind == FUNCTION && id == own,
        Kind::Table => TABLES.contains(&&*resource.kind) && id == own,
        Kind::Queue => {
            let mut parts = id.rsplit(':');
            let (name, account) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            resource.kind == QUEUE && own.ends_with(&format!("/{account}/{name}"))
        }
        Kind::Mapping if resource.kind == FUNCTION => {
            let is_made = |mapping: &Resource| {
                let is_its = mapping.kind == MAPPING && mapping.stack == resource.stack && is_mapping(mapping, id);
                is_its && mapping.logical_id.starts_with(&resource.logical_id)
            };
            id.strip_prefix(own).is_some_and(|rest| rest.starts_with(" (")) && all.iter().any(is_made)
        }
        Kind::Mapping => resource.kind == MAPPING && is_mapping(resource, id),
        Kind::Deleted(stack, logical_id) => name(&resource.stack) == stack && resource.logical_id == logical_id,
    }
}

fn is_mapping(resource: &Resource, id: &str) -> bool {
    id.ends_with(&format!(", {})", resource.id))
}

/// The checks that a resource accepts, by their names, and why; and how many entries there are, of which some can count for nothing.
fn reasons(resource: &Value) -> (BTreeMap<String, String>, usize) {
    let metadata = text(resource, "Metadata").and_then(|text| serde_json::from_str::<Value>(text).ok());
    let given = metadata.as_ref().map_or(&Value::Null, |metadata| &metadata[METADATA]);
    let reason = |reason: &Value| reason.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    let entries = given.as_object().into_iter().flatten();
    let reasons = entries.filter_map(|(name, text)| Some((Check::named(name)?.name.to_owned(), reason(text)?)));
    (reasons.collect(), given.as_object().map_or(usize::from(!given.is_null()), serde_json::Map::len))
}

fn places(system: &mut System) -> impl Iterator<Item = (Kind<'_>, &mut Place)> {
    let functions = system.functions.iter_mut().map(|function| (Kind::Function, &mut function.place));
    let mappings = system.mappings.iter_mut().chain(&mut system.mappings_elsewhere);
    let mappings = mappings.map(|mapping| (Kind::Mapping, &mut mapping.place));
    let queues = system.queues.iter_mut().map(|queue| (Kind::Queue, &mut queue.place));
    let tables = system.tables.iter_mut().map(|table| (Kind::Table, &mut table.place));
    let deleted = system.home.gone.of_stack.iter_mut();
    let deleted = deleted
        .map(|Deleted { place, stack, logical_id, .. }| (Kind::Deleted(stack.as_str(), logical_id.as_str()), place));
    functions.chain(mappings).chain(queues).chain(tables).chain(deleted)
}
