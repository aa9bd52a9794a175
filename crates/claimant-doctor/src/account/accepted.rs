//! Findings that the resources of a deployed stack accept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::answers::{Account, Asker, Service, text};
use super::stacks::Resource;
use crate::catalog::Check;
use crate::model::{Place, System};
use crate::place::METADATA;

/// Adds what the resources accept that something is found of: a request for each of those.
pub(super) async fn read<A: Account>(asker: &Asker<'_, A>, resources: &[Resource], system: &mut System) {
    let found: BTreeSet<_> = crate::run(system).findings.into_iter().map(|finding| finding.place.id).collect();
    for resource in resources.iter().filter(|resource| found.iter().any(|id| is_of(resource, id))) {
        let input = json!({"StackName": resource.stack, "LogicalResourceId": resource.logical_id});
        let Some(answer) = asker.get(Service::CloudFormation, "DescribeStackResource", input).await else { continue };
        let reasons = reasons(&answer["StackResourceDetail"]);
        for place in places(system).filter(|place| is_of(resource, &place.id)) {
            Arc::make_mut(&mut place.accepted).extend(reasons.clone());
        }
    }
}

/// Whether what has this id is the resource, or a mapping of it: SAM gives a mapping that it makes nothing of its function's Metadata.
fn is_of(resource: &Resource, id: &str) -> bool {
    let own = &*resource.id;
    let is_queue = |arn: &str| {
        let mut parts = arn.rsplit(':');
        let (name, account) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        own.ends_with(&format!("/{account}/{name}"))
    };
    let is_mapping =
        || id.strip_prefix(own).is_some_and(|rest| rest.starts_with(" (")) || id.ends_with(&format!(", {own})"));
    id == own || is_mapping() || id.starts_with("arn:") && is_queue(id)
}

/// The checks that a resource accepts, by their names, and why.
fn reasons(resource: &Value) -> BTreeMap<String, String> {
    let metadata = text(resource, "Metadata").and_then(|text| serde_json::from_str::<Value>(text).ok());
    let entries = metadata.as_ref().and_then(|metadata| metadata[METADATA].as_object()).into_iter().flatten();
    let reason = |reason: &Value| reason.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    entries.filter_map(|(name, text)| Some((Check::named(name)?.name.to_owned(), reason(text)?))).collect()
}

fn places(system: &mut System) -> impl Iterator<Item = &mut Place> {
    let functions = system.functions.iter_mut().map(|function| &mut function.place);
    let mappings = system.mappings.iter_mut().chain(&mut system.mappings_elsewhere).map(|mapping| &mut mapping.place);
    let queues = system.queues.iter_mut().map(|queue| &mut queue.place);
    functions.chain(mappings).chain(queues).chain(system.tables.iter_mut().map(|table| &mut table.place))
}
