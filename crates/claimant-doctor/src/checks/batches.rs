//! What a mapping does with batches: timeouts, partial responses, windows, filters, other readers.

use claimant_template::Fault;

use super::fix;
use super::pair::Pair;
use super::scaling;
use crate::fact::{Fact, all};
use crate::finding::{Answer, FINE, Level, found, together};
use crate::model::{Function, Link, Mapping, Place, System};

/// As AWS advises.
const TIMES: u64 = 6;

/// The largest batch without a window, and the largest of a FIFO queue.
const BATCH_PLAIN_MAX: u64 = 10;

pub(super) fn visibility(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || {
        let (queue, function) = (pair.queue?, pair.function?);
        let (visibility, timeout) = (*queue.visibility_s.known()?, *function.timeout_s.known()?);
        if visibility >= timeout {
            return FINE;
        }
        found(
            Level::Error,
            format!(
                "messages of {} are hidden for {visibility} s, less than the {timeout} s that {} may run",
                queue.place.id, function.place.id
            ),
            format!(
                "VisibilityTimeout: {} on {}",
                TIMES.saturating_mul(timeout).saturating_add(window_s(pair)),
                queue.place.id
            ),
        )
    };
    Some(answer())
}

/// The batching window, as far as it is known.
fn window_s(pair: &Pair<'_>) -> u64 {
    pair.mapping.batch.window_s.known().copied().unwrap_or_default()
}

pub(super) fn six_times(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || {
        let (queue, function) = (pair.queue?, pair.function?);
        let (visibility, timeout) = (*queue.visibility_s.known()?, *function.timeout_s.known()?);
        let advised = TIMES.saturating_mul(timeout).saturating_add(window_s(pair));
        // What is less than the timeout is the first check's.
        if visibility < timeout {
            return FINE;
        }
        let window_is_known = pair.mapping.batch.window_s.known().is_some();
        if visibility >= advised {
            return window_is_known.then_some(None);
        }
        let more = if window_is_known { "" } else { " or more" };
        // No throttling, so nothing for which the time would be needed.
        if is_limited(pair, function)? {
            return FINE;
        }
        found(
            Level::Warning,
            format!(
                "messages of {} are hidden for {visibility} s: {} runs for up to {timeout} s, and AWS advises {advised} s{more}",
                queue.place.id, function.place.id
            ),
            format!(
                "VisibilityTimeout: {advised}{more} on {}, or ScalingConfig: {{MaximumConcurrency: 10}} on the mapping",
                queue.place.id
            ),
        )
    };
    Some(answer())
}

/// Whether the mapping has a limit by which it is not throttled: one that fits into what is reserved for the function.
fn is_limited(pair: &Pair<'_>, function: &Function) -> Option<bool> {
    let scaling = &pair.mapping.scaling;
    if scaling.concurrency.known()?.is_none() && scaling.pollers.known()?.is_none() {
        return Some(false);
    }
    let Some(reserved) = *function.reserved.known()? else { return Some(true) };
    Some(scaling::at_once(pair.mapping)?.is_some_and(|limit| limit <= reserved))
}

pub(super) fn reports(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || {
        if *pair.mapping.batch.reports.known()? {
            return FINE;
        }
        let is_consumer = pair.function.map_or(Fact::Unknown, Function::is_consumer);
        if is_consumer == Fact::Known(true) {
            return found(
                Level::Error,
                "no ReportBatchItemFailures: claimant answers with the messages that failed, and Lambda deletes them",
                fix::report(pair.mapping),
            );
        }
        match *pair.mapping.batch.size.known()? {
            // One that throws has its message back; a consumer of claimant, which it may be, loses it.
            1 if is_consumer == Fact::Known(false) => FINE,
            1 => None,
            batch => found(
                Level::Warning,
                format!(
                    "batches of up to {batch} messages, and no ReportBatchItemFailures: one message that fails brings back, or \
                     takes with it, all of its batch"
                ),
                format!("{}, once the function answers with batchItemFailures", fix::report(pair.mapping)),
            ),
        }
    };
    Some(answer())
}

pub(super) fn window(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || {
        let batch = pair.mapping.batch.size.known().copied();
        let is_over = batch.map(|batch| batch > BATCH_PLAIN_MAX);
        let waits = pair.mapping.batch.window_s.known().map(|window| *window > 0);
        if (is_over, waits) == (Some(false), Some(false)) {
            return FINE;
        }
        let fifo = match pair.queue {
            Some(queue) => *queue.fifo.known()?,
            None => pair.mapping.queue.known()?.text().ends_with(".fifo"),
        };
        match (fifo, is_over, waits) {
            (true, Some(true), _) => found(
                Level::Error,
                format!("BatchSize is {}, and a FIFO queue gives {BATCH_PLAIN_MAX} at most", batch?),
                format!("BatchSize: {BATCH_PLAIN_MAX}"),
            ),
            (true, _, Some(true)) => found(
                Level::Error,
                "MaximumBatchingWindowInSeconds is not for FIFO queues",
                "remove MaximumBatchingWindowInSeconds",
            ),
            (false, Some(true), Some(false)) => found(
                Level::Error,
                format!("BatchSize is {}, and over {BATCH_PLAIN_MAX} needs a window", batch?),
                "MaximumBatchingWindowInSeconds: 1",
            ),
            (false, Some(false), _) | (false, _, Some(true)) => FINE,
            _ => None,
        }
    };
    Some(answer())
}

pub(super) fn filters(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || {
        let filters = &pair.mapping.filters;
        let faults = |is_certain: bool| {
            let such = filters.faults.iter().filter(|fault| matches!(fault, Fault::Refused(_)) == is_certain);
            let such: Vec<_> = such.map(Fault::to_string).collect();
            (!such.is_empty()).then(|| format!("the pattern of a filter {}", such.join("; that of another ")))
        };
        if let Some(what) = faults(true) {
            let fix = "Pattern: '{\"body\": {\"kind\": [\"order\"]}}', with the fields of your own messages";
            return found(Level::Error, what, fix);
        }
        if let Some(what) = faults(false) {
            let fix = "a pattern of what that documentation has, or a deployment that shows that AWS takes it; then accept this finding";
            return found(Level::Warning, what, fix);
        }
        if !*filters.any.known()? {
            return FINE;
        }
        found(
            Level::Note,
            "the mapping has filters: messages that match none are deleted, and leave no trace",
            "see that all senders know; to keep them, filter in front of the queue (an SNS subscription or an EventBridge rule)",
        )
    };
    Some(answer())
}

pub(super) fn one_reader(pair: &Pair<'_>) -> Option<Answer> {
    Some(together([second(pair), alone(pair)]))
}

/// Whether Lambda takes the mapping: of a queue and a function it takes one, enabled or not.
fn second(pair: &Pair<'_>) -> Answer {
    let mapping = pair.mapping;
    let queue = mapping.queue.known()?;
    let is_second = |other: &&Mapping| is_second(mapping, other);
    let Some(other) = pair.system.readers(queue).find(|other| is_second(other) == Some(true)) else {
        return pair.system.readers(queue).all(|other| is_second(&other).is_some()).then_some(None);
    };
    found(
        Level::Error,
        format!(
            "{} has the same queue and function, {} and {}: Lambda refuses the second mapping",
            other.place.id,
            queue.text(),
            mapping.invokes.text()
        ),
        ONE_MAPPING,
    )
}

/// What is done about two mappings of one queue and function.
const ONE_MAPPING: &str =
    "remove one of the two mappings, and give the other one the filters of both, or none if one has none";

/// Whether the other one is there with the mapping, and invokes what it does; nothing where either cannot be known.
fn is_second(mapping: &Mapping, other: &Mapping) -> Option<bool> {
    let invokes_same = mapping.invokes.is(&other.invokes).known().copied();
    let are_there = are_together(mapping, other).then_some(true);
    all([Some(other.place.id != mapping.place.id), invokes_same, are_there])
}

fn are_together(one: &Mapping, other: &Mapping) -> bool {
    other.place.is_there_with(&one.place) && one.place.is_there_with(&other.place)
}

/// Whether the mapping is enabled, and no other one takes messages of its queue.
fn alone(pair: &Pair<'_>) -> Answer {
    let mapping = pair.mapping;
    let queue = mapping.queue.known();
    if !*mapping.enabled.known()? {
        return found(
            Level::Warning,
            format!("the mapping is disabled: messages of {} wait", queue.map_or("its queue", Link::text)),
            fix::enable(mapping),
        );
    }
    let queue = queue?;
    let elsewhere = pair.system.mappings_elsewhere.iter();
    let elsewhere = elsewhere.filter(|other| other.queue.known().is_some_and(|link| link.text() == queue.text()));
    let others = pair.system.readers(queue).chain(elsewhere);
    // One that is disabled takes nothing, whether it is there or not.
    let others = others.filter(|other| other.place.id != mapping.place.id && other.enabled.known() != Some(&false));
    let others: Vec<_> = others.filter(|other| is_second(mapping, other) != Some(true)).collect();
    let takes = |other: &&&Mapping| are_together(mapping, other) && other.enabled.known().is_some();
    let enabled: Vec<_> = others.iter().filter(takes).collect();
    if enabled.is_empty() {
        return others.is_empty().then_some(None);
    }
    let function = mapping.invokes.function.known();
    let is_same = |other: &Mapping| function.is_some() && other.invokes.function.known() == function;
    // Two queues behind a topic would give each message to the function twice.
    let fix = if enabled.iter().all(|other| is_same(other)) {
        ONE_MAPPING
    } else {
        "one queue for each consumer, behind an SNS topic or an EventBridge rule"
    };
    let named = |other: &&Mapping| match is_same(other) {
        true => format!("{} by {}", other.invokes.text(), other.place.id),
        false => other.invokes.text(),
    };
    let named: Vec<_> = enabled.into_iter().map(named).collect();
    found(
        Level::Warning,
        format!("messages of {} also go to {}: each message to one of them", queue.text(), named.join(", ")),
        fix,
    )
}

pub(super) fn by_arn(pair: &Pair<'_>) -> Option<Answer> {
    let mapping = pair.mapping;
    Some(named_by_arn(pair.system, mapping.queue.known(), &mapping.by_arn, &mapping.place))
}

/// Whether a queue is named by its ARN in this place.
pub(super) fn named_by_arn(system: &System, link: Option<&Link>, by_arn: &Fact<bool>, at: &Place) -> Answer {
    if *by_arn.known()? {
        return FINE;
    }
    let link = link?;
    let arn = system.queue(link).map_or_else(|| "its ARN".to_owned(), |queue| fix::arn(&queue.place, at));
    found(Level::Error, format!("what names {} is not its ARN: a !Ref of a queue is its URL", link.text()), arn)
}

pub(super) fn region(pair: &Pair<'_>) -> Option<Answer> {
    let Some(queue) = pair.mapping.queue.known() else { return Some(None) };
    let Link::Elsewhere(arn) = queue else { return Some(FINE) };
    let of_queue = arn.split(':').nth(3).filter(|region| !region.is_empty() && !region.contains("${"))?;
    let answer = || {
        let own = pair.system.home.region.known()?;
        if own == of_queue {
            return FINE;
        }
        found(
            Level::Error,
            format!("the queue {arn} is in {of_queue}, the function in {own}"),
            format!("a queue in {own}, or the function in {of_queue}"),
        )
    };
    Some(answer())
}
