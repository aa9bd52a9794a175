//! What tells of trouble: alarms, and Lambda's own count of what it deleted.

use super::fix;
use super::pair::{Pair, home};
use crate::alarm::{DEAD_LETTERS, WAITING};
use crate::environment::DEAD_LETTER_QUEUE;
use crate::fact::Fact;
use crate::finding::{Answer, FINE, Level, Report, found, perhaps};
use crate::model::{Alarm, Function, History, Link, Queue, System};

const SENT: &str = "NumberOfMessagesSent";

/// Deleted and reported are counted in minutes: what is in flight at both ends of the day differs.
const AUDIT_TOLERANCE: f64 = 0.01;

pub(super) fn check(system: &System, report: &mut Report) {
    for queue in &system.queues {
        // A template sees its own alarms only.
        let level = if queue.place.file.is_none() { Level::Warning } else { Level::Note };
        let link = Link::Here(queue.place.id.to_string());
        match system.is_read(queue) {
            Fact::Known(true) => report.answer(30, &queue.place, has_alarm(system, queue, &WAITING, level)),
            Fact::Known(false) => {}
            Fact::Unknown => report.answer(30, &queue.place, perhaps(has_alarm(system, queue, &WAITING, level))),
        }
        let is_target = system.queues.iter().any(|other| {
            let redrive = other.redrive.known().and_then(Option::as_ref);
            redrive.is_some_and(|redrive| redrive.target.known() == Some(&link))
        });
        // Without a redrive policy, dead letters are what claimant itself sends there.
        let sends_there = |function: &Function| {
            let letters = function.environment.get(DEAD_LETTER_QUEUE).and_then(Fact::known);
            letters.is_some_and(|letters| letters.is(&queue.place.id))
        };
        if is_target || system.functions.iter().any(sends_there) {
            report.answer(30, &queue.place, has_alarm(system, queue, &DEAD_LETTERS, level));
        }
    }
    let Some(history) = &system.history else { return };
    for function in system.functions.iter().filter(|function| function.is_consumer() == Fact::Known(true)) {
        if system.mappings_of(function).any(|mapping| mapping.metrics.known() == Some(&true)) {
            report.answer(31, &function.place, audit(system, history, function));
        }
    }
}

fn has_alarm(system: &System, queue: &Queue, metrics: &[&str], level: Level) -> Answer {
    // An account lists its own alarms only.
    if home(system, queue).1 != system.home.account.known().map(String::as_str) {
        return None;
    }
    let of_queue = |alarm: &&Alarm| alarm.of.iter().any(|link| link.is(&queue.place.id));
    let alarms = || system.alarms.known().into_iter().flatten().filter(of_queue);
    system.alarms.known()?;
    let watches = |alarm: &&Alarm| metrics.contains(&alarm.metric.as_str());
    if alarms().filter(watches).any(|alarm| alarm.certain && alarm.place.is_there_with(&queue.place)) {
        return FINE;
    }
    if alarms().any(|alarm| watches(&alarm)) {
        return None;
    }
    let instead = if alarms().any(|alarm| alarm.metric == SENT) {
        format!("; {SENT} does not count what SQS moves there")
    } else {
        String::new()
    };
    found(
        level,
        format!("no alarm is on {} of {}{instead}", metrics[0], queue.place.id),
        format!(
            "AWS::CloudWatch::Alarm: Namespace: AWS/SQS, MetricName: {}, QueueName: {}",
            metrics[0],
            fix::queue_name(&queue.place)
        ),
    )
}

pub(super) fn mapping_metrics(pair: &Pair<'_>) -> Option<Answer> {
    let consumer = pair.consumer()?;
    let answer = || {
        consumer?;
        if *pair.mapping.metrics.known()? {
            return FINE;
        }
        found(
            Level::Note,
            "its own metrics are off: nothing from outside says how many messages Lambda deleted",
            "MetricsConfig: {Metrics: [EventCount]}",
        )
    };
    Some(answer())
}

/// Compares what all mappings of a function deleted with what it reported, which is not by mapping.
fn audit(system: &System, history: &History, function: &Function) -> Answer {
    // Both sides are sums, and a part of either can be what was refused.
    if history.is_refused {
        return None;
    }
    let done = history.functions.get(&*function.place.id)?.done?;
    let deleted = system.mappings_of(function).filter_map(|mapping| history.deleted.get(&*mapping.place.id));
    #[allow(clippy::cast_precision_loss, reason = "a day's messages are far below 2^52")]
    let deleted = deleted.copied().reduce(u64::saturating_add)? as f64;
    if deleted <= done * (1.0 + AUDIT_TOLERANCE) + 1.0 {
        // Where the metrics of one are off, it may have deleted more.
        let all_known = system.mappings_of(function).all(|mapping| mapping.metrics.known() == Some(&true));
        return all_known.then_some(None);
    }
    found(
        Level::Error,
        format!(
            "Lambda deleted {deleted:.0} messages within the last day, and {} reported {done:.0} as done",
            function.place.id
        ),
        "see the function's logs for invocations that ended without a report, and whether its mappings have \
         ReportBatchItemFailures",
    )
}
