//! Actions on queues.

use std::collections::BTreeMap;

use super::super::attributes::{Attributes, check_readable};
use super::super::fault::{Code, Fault};
use super::super::queue::Queue;
use super::super::service::Sqs;
use super::super::wire::{
    AttributesAnswer, ListRequest, NameRequest, Nothing, QueueRequest, SourcesAnswer, TagsAnswer, UrlAnswer, UrlsAnswer,
};
use super::parameters::{bounded, queue_name};
use crate::arn::{self, ACCOUNT_ID};

const PAGE_MAX: u64 = 1_000;
const TAGS_MAX: usize = 50;
const TAG_KEY_MAX: usize = 128;
const TAG_VALUE_MAX: usize = 256;
const TAG_PREFIX_RESERVED: &str = "aws:";

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
        check_tags(&request.tags)?;
        account.check_deleted(now_ms, name)?;
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
    sqs.account().remove(sqs.now_ms(), queue_name(&request.queue_url)?)?;
    Ok(Nothing {})
}

pub(super) fn get_url(sqs: &Sqs, request: NameRequest) -> Result<UrlAnswer, Fault> {
    let name = request.queue_name.as_str();
    if name.is_empty() {
        return Err(Fault::missing("QueueName"));
    }
    let owner = request.queue_owner_aws_account_id.as_deref();
    if owner.is_some_and(|owner| owner != ACCOUNT_ID) {
        return Err(Fault::no_such_queue(name));
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
            ("CreatedTimestamp", (queue.times.created_ms / 1_000).to_string()),
            ("LastModifiedTimestamp", (queue.times.modified_ms / 1_000).to_string()),
            ("QueueArn", arn::of_queue(name)),
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
    let name = queue_name(&request.queue_url)?;
    sqs.account().queue(name)?.purge(sqs.now_ms(), name)?;
    Ok(Nothing {})
}

pub(super) fn tag(sqs: &Sqs, request: QueueRequest) -> Result<Nothing, Fault> {
    let mut account = sqs.account();
    let tags = &mut account.queue(queue_name(&request.queue_url)?)?.tags;
    let mut tagged = tags.clone();
    tagged.extend(request.tags.ok_or_else(|| Fault::missing("Tags"))?);
    check_tags(&tagged)?;
    *tags = tagged;
    Ok(Nothing {})
}

/// Checks all tags of a queue: SQS's developer guide, "Quotas related to queues".
fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), Fault> {
    if tags.len() > TAGS_MAX {
        return Err(Fault::invalid_parameter("Tags", format!("Too many tags: a queue has at most {TAGS_MAX}.")));
    }
    let fits = |(key, value): (&String, &String)| {
        let lengths = (1..=TAG_KEY_MAX).contains(&key.chars().count()) && value.chars().count() <= TAG_VALUE_MAX;
        lengths && ![key, value].into_iter().any(|text| text.starts_with(TAG_PREFIX_RESERVED))
    };
    if tags.iter().all(fits) {
        return Ok(());
    }
    let reason = format!(
        "A key has 1 to {TAG_KEY_MAX} characters, a value {TAG_VALUE_MAX} at most, and neither begins with {TAG_PREFIX_RESERVED}"
    );
    Err(Fault::invalid_parameter("Tags", reason))
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
