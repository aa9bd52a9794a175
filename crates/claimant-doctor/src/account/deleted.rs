//! What a stack has and is not there any more: it was deleted by other means than the stack.

use std::collections::BTreeSet;

use serde_json::Value;

use super::answers::{Account, Asker, text};
use super::names::{name_of, place};
use super::stacks::{FUNCTION, MAPPING, QUEUE, Resource, TABLES, name};
use super::{queues, tables};
use crate::model::{Deleted, System};

/// Adds the mappings of the stacks that are none of the account's, and the queues and tables that are not there: a request for each of those
/// that was not asked for already.
pub(super) async fn read<A: Account>(
    asker: &Asker<'_, A>,
    (resources, mappings): (&[Resource], &[Value]),
    asked: &BTreeSet<String>,
    system: &mut System,
) {
    let there: BTreeSet<_> = mappings.iter().filter_map(|mapping| text(mapping, "UUID")).collect();
    for resource in resources {
        let id = &*resource.id;
        let is_gone = match &*resource.kind {
            MAPPING => !there.contains(id),
            QUEUE => {
                let account = id.rsplit('/').nth(1).unwrap_or_default();
                let is_it = |arn: &String| arn.ends_with(&format!(":{account}:{}", name_of(id)));
                !asked.iter().any(is_it) && is_no_queue(asker, id, account).await
            }
            kind if TABLES.contains(&kind) => !asked.contains(id) && tables::described(asker, id).await.is_err(),
            _ => false,
        };
        if is_gone {
            note(resource, system);
        }
    }
}

/// Adds one that is not there.
pub(super) fn note(resource: &Resource, system: &mut System) {
    let (id, what) = match &*resource.kind {
        FUNCTION => (&*resource.id, "function"),
        MAPPING => (&*resource.id, "event source mapping"),
        QUEUE => (name_of(&resource.id), "queue"),
        _ => (&*resource.id, "table"),
    };
    let (stack, logical_id) = (name(&resource.stack).to_owned(), resource.logical_id.clone());
    system.home.gone.of_stack.push(Deleted { place: place(id), what, stack, logical_id });
}

/// Whether a queue is not there that nothing names; one that may only not be seen is unknown.
async fn is_no_queue<A: Account>(asker: &Asker<'_, A>, url: &str, account: &str) -> bool {
    match queues::url_of(asker, name_of(url), account).await {
        Ok(_) => false,
        Err(refused) if refused.may_be_hidden() => {
            asker.note(refused.to_string());
            false
        }
        Err(_) => true,
    }
}
