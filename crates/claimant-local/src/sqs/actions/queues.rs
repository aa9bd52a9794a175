//! Actions on queues.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::super::account::arn;
use super::super::attributes::{Attributes, check_readable, name_in_arn};
use super::super::fault::{Code, Fault};
use super::super::queue::Queue;
use super::super::service::Sqs;
use super::super::wire::{
    AttributesAnswer, ListRequest, MoveRequest, NameRequest, Nothing, QueueRequest, SourcesAnswer, TagsAnswer,
    TaskAnswer, UrlAnswer, UrlsAnswer,
};
use super::{bounded, queue_name};

const PAGE_MAX: u64 = 1_000;
const TAGS_MAX: usize = 50;

pub(super) fn create(sqs: &Sqs, request: NameRequest) -> Result<UrlAnswer, Fault> {
    let name = request.queue_name.as_str();
    if name.is_empty() {
        return Err(Fault::missing("QueueName"));
    }
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    if account.exists(name) {
        // Only what the request names is compared: a bare CreateQueue finds a queue however it is set.
        let existing = &account.queue(name)?.attributes;
        let wanted = existing.with(name, &request.attributes)?;
        if let Some(attribute) = first_difference(existing, &wanted) {
            return Err(Fault::new(
                Code::QueueNameExists,
                format!("A queue already exists with the same name and a different value for attribute {attribute}"),
            ));
        }
    } else {
        let attributes = Attributes::create(name, &request.attributes)?;
        account.create(now_ms, name, attributes)?.tags = request.tags;
    }
    Ok(UrlAnswer { queue_url: account.url(name) })
}

fn first_difference(a: &Attributes, b: &Attributes) -> Option<String> {
    let (a, b) = (a.list(), b.list());
    a.keys().chain(b.keys()).find(|name| a.get(*name) != b.get(*name)).cloned()
}

pub(super) fn delete(sqs: &Sqs, request: QueueRequest) -> Result<Nothing, Fault> {
    sqs.account().remove(queue_name(&request.queue_url)?)?;
    Ok(Nothing {})
}

pub(super) fn get_url(sqs: &Sqs, request: NameRequest) -> Result<UrlAnswer, Fault> {
    let name = request.queue_name.as_str();
    if name.is_empty() {
        return Err(Fault::missing("QueueName"));
    }
    let mut account = sqs.account();
    account.queue(name)?;
    Ok(UrlAnswer { queue_url: account.url(name) })
}

pub(super) fn list(sqs: &Sqs, request: ListRequest) -> Result<UrlsAnswer, Fault> {
    let account = sqs.account();
    let names = account.names().filter(|name| name.starts_with(&request.queue_name_prefix));
    let (names, next_token) = page(names, &request)?;
    Ok(UrlsAnswer { queue_urls: names.into_iter().map(|name| account.url(name)).collect(), next_token })
}

pub(super) fn list_sources(sqs: &Sqs, request: ListRequest) -> Result<SourcesAnswer, Fault> {
    let name = queue_name(&request.queue_url)?;
    let mut account = sqs.account();
    account.queue(name)?;
    let (names, next_token) = page(account.sources(name).into_iter(), &request)?;
    Ok(SourcesAnswer { queue_urls: names.into_iter().map(|name| account.url(name)).collect(), next_token })
}

/// One page of names, which come in order; the token is the last name given.
fn page<'a>(
    names: impl Iterator<Item = &'a str>,
    request: &ListRequest,
) -> Result<(Vec<&'a str>, Option<String>), Fault> {
    let limit = bounded("MaxResults", request.max_results, 1..=PAGE_MAX)?;
    let size = usize::try_from(limit.unwrap_or(PAGE_MAX)).expect("a page has at most 1,000 names");
    let after = request.next_token.as_deref().unwrap_or_default();
    let mut names = names.filter(|name| *name > after).peekable();
    let page: Vec<&str> = names.by_ref().take(size).collect();
    // SQS pages only where the request says how.
    let more = limit.is_some() && names.peek().is_some();
    let next_token = page.last().filter(|_| more).map(|last| (*last).to_owned());
    Ok((page, next_token))
}

pub(super) fn get_attributes(sqs: &Sqs, request: QueueRequest) -> Result<AttributesAnswer, Fault> {
    let name = queue_name(&request.queue_url)?;
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    let queue = account.queue(name)?;
    let wanted = &request.attribute_names;
    wanted.iter().try_for_each(|attribute| check_readable(attribute))?;
    let mut attributes = all_attributes(name, queue, now_ms);
    if !wanted.iter().any(|attribute| attribute == "All") {
        attributes.retain(|attribute, _| wanted.contains(attribute));
    }
    Ok(AttributesAnswer { attributes })
}

fn all_attributes(name: &str, queue: &mut Queue, now_ms: u64) -> BTreeMap<String, String> {
    let depth = queue.depth(now_ms);
    let mut attributes = queue.attributes.list();
    attributes.extend(
        [
            ("ApproximateNumberOfMessages", depth.visible.to_string()),
            ("ApproximateNumberOfMessagesDelayed", depth.delayed.to_string()),
            ("ApproximateNumberOfMessagesNotVisible", depth.in_flight.to_string()),
            ("CreatedTimestamp", (queue.created_ms / 1_000).to_string()),
            ("LastModifiedTimestamp", (queue.modified_ms / 1_000).to_string()),
            ("QueueArn", arn(name)),
        ]
        .map(|(attribute, value)| (attribute.to_owned(), value)),
    );
    attributes
}

pub(super) fn set_attributes(sqs: &Sqs, request: QueueRequest) -> Result<Nothing, Fault> {
    let name = queue_name(&request.queue_url)?;
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    account.set_attributes(now_ms, name, &request.attributes)?;
    Ok(Nothing {})
}

pub(super) fn purge(sqs: &Sqs, request: QueueRequest) -> Result<Nothing, Fault> {
    sqs.account().queue(queue_name(&request.queue_url)?)?.purge();
    Ok(Nothing {})
}

pub(super) fn tag(sqs: &Sqs, request: QueueRequest) -> Result<Nothing, Fault> {
    let mut account = sqs.account();
    let tags = &mut account.queue(queue_name(&request.queue_url)?)?.tags;
    let mut tagged = tags.clone();
    tagged.extend(request.tags);
    if tagged.len() > TAGS_MAX {
        return Err(Fault::invalid_parameter("Tags", format!("Too many tags: a queue has at most {TAGS_MAX}.")));
    }
    *tags = tagged;
    Ok(Nothing {})
}

pub(super) fn untag(sqs: &Sqs, request: QueueRequest) -> Result<Nothing, Fault> {
    let mut account = sqs.account();
    let tags = &mut account.queue(queue_name(&request.queue_url)?)?.tags;
    tags.retain(|key, _| !request.tag_keys.contains(key));
    Ok(Nothing {})
}

pub(super) fn list_tags(sqs: &Sqs, request: QueueRequest) -> Result<TagsAnswer, Fault> {
    let mut account = sqs.account();
    let tags = account.queue(queue_name(&request.queue_url)?)?.tags.clone();
    Ok(TagsAnswer { tags })
}

/// Moves at once what real SQS moves bit by bit, so that there is never a task to list or to cancel.
pub(super) fn start_move(sqs: &Sqs, request: MoveRequest) -> Result<TaskAnswer, Fault> {
    bounded("MaxNumberOfMessagesPerSecond", request.max_number_of_messages_per_second, 1..=500)?;
    if request.source_arn.is_empty() {
        return Err(Fault::missing("SourceArn"));
    }
    let source = name_of("SourceArn", &request.source_arn)?;
    let destination = request.destination_arn.as_deref();
    let destination = destination.map(|arn| name_of("DestinationArn", arn)).transpose()?;
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    account.redrive(now_ms, source, destination)?;
    Ok(TaskAnswer { task_handle: Uuid::new_v4().to_string() })
}

fn name_of<'a>(parameter: &str, arn: &'a str) -> Result<&'a str, Fault> {
    name_in_arn(arn).ok_or_else(|| {
        Fault::invalid_parameter(parameter, "You must use this format: arn:aws:sqs:<region>:<account_id>:<queue_name>.")
    })
}
