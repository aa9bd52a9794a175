//! Queues of a template.

use std::time::Duration;

use crate::sqs::settings::{
    DELAY_MAX_S, MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN, RECEIVE_COUNT_MAX, RETENTION_MAX_S, RETENTION_MIN_S,
    SOURCES_MAX, VISIBILITY_MAX_S, WAIT_MAX_S, check_name,
};
use crate::sqs::{Deduplication, DeduplicationScope, QueueSettings, Redrive, RedriveAllow, ThroughputLimit};

use super::section::{Section, physical_name};
use super::spec::QueueSpec;
use super::template::Template;
use crate::arn;

/// The properties of a queue that are read, and after them those of which there is nothing to see here.
const QUEUE_PROPERTIES: [&str; 16] = [
    "QueueName",
    "FifoQueue",
    "ContentBasedDeduplication",
    "VisibilityTimeout",
    "MessageRetentionPeriod",
    "DelaySeconds",
    "ReceiveMessageWaitTimeSeconds",
    "RedrivePolicy",
    "RedriveAllowPolicy",
    "DeduplicationScope",
    "FifoThroughputLimit",
    "MaximumMessageSize",
    "SqsManagedSseEnabled",
    "KmsMasterKeyId",
    "KmsDataKeyReusePeriodSeconds",
    "Tags",
];

/// What follows where a queue's dead-letter queue is none of the template's, or its `maxReceiveCount` is not known.
const STAYS: &str = "messages stay in the queue";

/// Queues, each after the dead-letter queue it names, so that they can be created in this order.
pub(super) fn queues(template: &Template<'_>) -> Vec<QueueSpec> {
    let read = template.resources(&["AWS::SQS::Queue"]);
    let queues: Vec<_> = read.filter_map(|(id, queue)| queue_spec(template, id, &queue)).collect();
    let mut ordered = queues.clone();
    ordered.sort_by_key(|queue| redrive_hops(&queues, queue));
    ordered
}

fn redrive_hops(queues: &[QueueSpec], queue: &QueueSpec) -> usize {
    let next = |queue: &QueueSpec| {
        let redrive = queue.settings.redrive.as_ref()?;
        queues.iter().find(|other| other.name == redrive.dead_letter_queue)
    };
    // A circle of dead-letter queues has no order; bounding the walk keeps it finite.
    std::iter::successors(Some(queue), |queue| next(queue)).take(queues.len()).count()
}

fn queue_spec(template: &Template<'_>, id: &str, queue: &Section<'_>) -> Option<QueueSpec> {
    let name = physical_name(template, id, queue, "QueueName")?;
    let properties = queue.section("Properties");
    let flag = |key| properties.section(key).boolean().unwrap_or(false);
    let seconds = |key, range, default| {
        let given = properties.section(key).integer(range);
        given.map_or(default, Duration::from_secs)
    };
    let default = QueueSettings::default();
    let settings = QueueSettings {
        fifo: flag("FifoQueue"),
        deduplication: Deduplication {
            content_based: flag("ContentBasedDeduplication"),
            scope: one_of(
                &properties.section("DeduplicationScope"),
                DeduplicationScope::parse,
                "queue or messageGroup",
            ),
        },
        visibility_timeout: seconds("VisibilityTimeout", 0..=VISIBILITY_MAX_S, default.visibility_timeout),
        retention: seconds("MessageRetentionPeriod", RETENTION_MIN_S..=RETENTION_MAX_S, default.retention),
        delay: seconds("DelaySeconds", 0..=DELAY_MAX_S, default.delay),
        receive_wait: seconds("ReceiveMessageWaitTimeSeconds", 0..=WAIT_MAX_S, default.receive_wait),
        max_message_bytes: message_bytes(&properties.section("MaximumMessageSize"))
            .unwrap_or(default.max_message_bytes),
        throughput_limit: one_of(
            &properties.section("FifoThroughputLimit"),
            ThroughputLimit::parse,
            "perQueue or perMessageGroupId",
        ),
        redrive_allow: redrive_allow(&properties.section("RedriveAllowPolicy").unpacked()),
        redrive: redrive(&properties.section("RedrivePolicy").unpacked()),
    };
    if let Err(why) = check_name(&name, settings.fifo) {
        queue.fault(format!("its name is `{name}`: {why}"));
    }
    let high_throughput = settings.throughput_limit == ThroughputLimit::PerMessageGroup;
    if high_throughput && settings.deduplication.scope != DeduplicationScope::MessageGroup {
        let property = properties.section("FifoThroughputLimit");
        property.fault("is perMessageGroupId, which needs `DeduplicationScope: messageGroup`");
    }
    let given =
        ["DeduplicationScope", "FifoThroughputLimit"].into_iter().filter(|key| properties.section(key).is_given());
    let content_based = settings.deduplication.content_based.then_some("ContentBasedDeduplication");
    for key in given.chain(content_based).filter(|_| !settings.fifo) {
        properties.section(key).fault("is for FIFO queues only: remove it, or set `FifoQueue: true`");
    }
    properties.note_others(&[&QUEUE_PROPERTIES]);
    Some(QueueSpec { logical_id: id.to_owned(), name, settings })
}

fn message_bytes(section: &Section<'_>) -> Option<usize> {
    let bytes = section.integer(MESSAGE_BYTES_MIN as u64..=MESSAGE_BYTES_MAX as u64)?;
    Some(usize::try_from(bytes).expect("checked to be 1 MiB or less"))
}

/// One of a property's few values; its default where it is absent or wrong, which is a fault.
fn one_of<T: Default>(section: &Section<'_>, parse: impl Fn(&str) -> Option<T>, known: &str) -> T {
    let Some(text) = section.text() else { return T::default() };
    parse(&text).unwrap_or_else(|| {
        section.fault(format!("must be {known}, not `{text}`"));
        T::default()
    })
}

fn redrive_allow(policy: &Section<'_>) -> RedriveAllow {
    if !policy.is_given() {
        return RedriveAllow::All;
    }
    let (permission, sources) = (policy.section("redrivePermission"), policy.section("sourceQueueArns"));
    let allow = match permission.required_text("give allowAll, denyAll or byQueue").as_deref() {
        Some("byQueue") => return sources_allowed(&sources),
        Some("denyAll") => RedriveAllow::None,
        Some("allowAll") => RedriveAllow::All,
        Some(other) => {
            permission.fault(format!("must be allowAll, denyAll or byQueue, not `{other}`"));
            return RedriveAllow::All;
        }
        None => return RedriveAllow::All,
    };
    if !sources.is_missing() {
        sources.fault("is for `redrivePermission: byQueue` only: remove it");
    }
    allow
}

/// The queues of a list; all where only AWS knows one, which may be any.
fn sources_allowed(sources: &Section<'_>) -> RedriveAllow {
    let Some(list) = sources.plain_json("all may") else { return RedriveAllow::All };
    let arns = list.as_array().into_iter().flatten().filter(|arn| !arn.is_null());
    match arns.map(|arn| arn.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>() {
        Some(arns) if (1..=SOURCES_MAX).contains(&arns.len()) => return RedriveAllow::Queues(arns),
        _ => sources.fault(format!("must be a list of 1 to {SOURCES_MAX} ARNs, since redrivePermission is byQueue")),
    }
    RedriveAllow::All
}

fn redrive(policy: &Section<'_>) -> Option<Redrive> {
    if !policy.is_given() {
        return None;
    }
    let target = policy.section("deadLetterTargetArn");
    let arn = target.required_text_or("give the dead-letter queue, such as !GetAtt Failed.Arn", STAYS);
    let count = policy.section("maxReceiveCount");
    let max_receive_count = count.required_text_or("give 1 to 1000; with Lambda at least 5", STAYS);
    let max_receive_count = max_receive_count.and_then(|_| count.integer(1..=RECEIVE_COUNT_MAX.into()));
    let arn = arn?;
    let Some(name) = arn::queue_here(&arn) else {
        target.fault(format!("must be the ARN of a queue in this template, not `{arn}`: write !GetAtt Failed.Arn"));
        return None;
    };
    Some(Redrive {
        dead_letter_queue: name.to_owned(),
        max_receive_count: u32::try_from(max_receive_count?).expect("checked to be 1000 or less"),
    })
}
