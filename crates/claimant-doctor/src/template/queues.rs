//! The queues of a template.

use super::part::Part;
use super::resources::{Resource, Resources};
use super::{keys, policies};
use crate::fact::Fact;
use crate::model::{Queue, Redrive, RedriveAllow};
use crate::rights::QueuePolicy;

pub(super) const QUEUE: &[&str] = &["AWS::SQS::Queue"];

const POLICIES: &[&str] = &["AWS::SQS::QueuePolicy", "AWS::SQS::QueueInlinePolicy"];

/// As SQS has them where nothing is set.
const VISIBILITY_S: u64 = 30;
const RETENTION_S: u64 = 345_600;

pub(super) fn queues(resources: &Resources<'_>) -> Vec<Queue> {
    resources.of(QUEUE).map(|resource| queue(resources, resource)).collect()
}

fn queue(resources: &Resources<'_>, resource: &Resource<'_>) -> Queue {
    let properties = resource.properties();
    let by_group = (
        properties.at("DeduplicationScope").text_is("messageGroup", "queue"),
        properties.at("FifoThroughputLimit").text_is("perMessageGroupId", "perQueue"),
    );
    Queue {
        place: resource.place(),
        name: flat(properties.at("QueueName").literal()),
        fifo: properties.at("FifoQueue").boolean_or(false),
        visibility_s: properties.at("VisibilityTimeout").number_or(VISIBILITY_S),
        retention_s: properties.at("MessageRetentionPeriod").number_or(RETENTION_S),
        redrive: redrive(resources, &properties.at("RedrivePolicy").unpacked()),
        allows: allows(resources, &properties.at("RedriveAllowPolicy").unpacked()),
        key: keys::key(resources, &properties.at("KmsMasterKeyId"), "alias/aws/sqs"),
        policy: policy(resources, &resource.id),
        by_group: by_group.0.known().and_then(|scope| Some((*scope, *by_group.1.known()?))).into(),
    }
}

fn redrive(resources: &Resources<'_>, policy: &Part<'_>) -> Fact<Option<Redrive>> {
    policy.is_given().map(|is_given| {
        let target = policy.at("deadLetterTargetArn");
        is_given.then(|| Redrive {
            target: flat(resources.link(&target, QUEUE)),
            by_arn: resources.is_arn(&target, QUEUE),
            receives: flat(policy.at("maxReceiveCount").number()),
        })
    })
}

/// What is not there is not known.
fn flat<T>(fact: Fact<Option<T>>) -> Fact<T> {
    match fact {
        Fact::Known(value) => value.into(),
        Fact::Unknown => Fact::Unknown,
    }
}

fn allows(resources: &Resources<'_>, policy: &Part<'_>) -> Fact<RedriveAllow> {
    let permission = policy.at("redrivePermission").literal();
    let Fact::Known(permission) = permission else { return Fact::Unknown };
    match permission.as_deref() {
        None | Some("allowAll") => Fact::Known(RedriveAllow::All),
        Some("denyAll") => Fact::Known(RedriveAllow::None),
        Some("byQueue") => {
            let queues = policy.at("sourceQueueArns").items();
            let links = queues.known().and_then(|queues| {
                queues.iter().map(|queue| flat(resources.link(queue, QUEUE)).known().cloned()).collect()
            });
            Fact::from(links).map(RedriveAllow::Only)
        }
        Some(_) => Fact::Unknown,
    }
}

/// What all policies say of a queue. One that may be about it, or cannot be read, counts as one that lets others in.
fn policy(resources: &Resources<'_>, id: &str) -> QueuePolicy {
    let mut all = QueuePolicy::default();
    for resource in resources.of(POLICIES) {
        let properties = resource.properties();
        let queues = match resource.kind.as_str() {
            "AWS::SQS::QueuePolicy" => properties.at("Queues").items(),
            _ => Fact::Known(vec![properties.at("Queue")]),
        };
        let is_about = |part: &Part<'_>| flat(resources.link(part, QUEUE)).known().is_none_or(|link| link.is(id));
        if queues.known().is_none_or(|queues| queues.iter().any(is_about)) {
            let one = policies::of_queue(&properties.at("PolicyDocument").unpacked());
            all.admits_principals |= one.admits_principals;
            all.receivers.extend(one.receivers);
        }
    }
    all
}
