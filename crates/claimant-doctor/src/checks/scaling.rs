//! Concurrency: limits, what is reserved, what is in flight, FIFO groups.

use super::pair::Pair;
use crate::fact::Fact;
use crate::finding::{Answer, FINE, Level, Report, found};
use crate::model::{Function, Link, Mapping, Queue, System};

/// `MaximumConcurrency`, as Lambda takes it.
const CONCURRENCY: std::ops::RangeInclusive<u64> = 2..=1_000;

/// Pollers that Lambda begins with.
const RESERVED_MIN: u64 = 5;

/// Messages of a queue in flight at most.
const IN_FLIGHT_MAX: u64 = 120_000;

/// Executions at once of a mapping without a limit, at most.
const AT_ONCE_MAX: u64 = 1_250;

/// Concurrency that a provisioned poller serves, at most.
const PER_POLLER: u64 = 10;

/// The least `MaximumPollers` of a queue's mapping.
const POLLERS_MIN: u64 = 2;

/// Near the limit is as bad: from then on the queue may stand still at any moment.
const NEAR: f64 = 0.8;

pub(super) fn own_limit(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || match *pair.mapping.scaling.concurrency.known()? {
        Some(limit) if !CONCURRENCY.contains(&limit) => found(
            Level::Error,
            format!("MaximumConcurrency is {limit}: Lambda takes {} to {}", CONCURRENCY.start(), CONCURRENCY.end()),
            format!("ScalingConfig: {{MaximumConcurrency: {}}}", limit.clamp(*CONCURRENCY.start(), *CONCURRENCY.end())),
        ),
        _ => FINE,
    };
    Some(answer())
}

pub(super) fn pollers(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || match (pair.mapping.scaling.pollers.known()?, pair.mapping.scaling.concurrency.known()?) {
        (Some(_), Some(limit)) => found(
            Level::Error,
            format!("the mapping has ProvisionedPollerConfig and MaximumConcurrency ({limit})"),
            "remove ScalingConfig: MaximumPollers times 10 is the limit then",
        ),
        _ => FINE,
    };
    Some(answer())
}

/// The executions at once that a mapping has at most: `None` if that is not known, `Some(None)` if it has no limit.
pub(super) fn at_once(mapping: &Mapping) -> Option<Option<u64>> {
    if let Some(limit) = *mapping.scaling.concurrency.known()? {
        return Some(Some(limit));
    }
    let Some((_, pollers)) = mapping.scaling.pollers.known()? else { return Some(None) };
    Some(Some(pollers.known()?.saturating_mul(PER_POLLER)))
}

pub(super) fn in_flight(pair: &Pair<'_>) -> Option<Answer> {
    let seen = pair.mapping.queue.known().and_then(|queue| pair.system.history.as_ref()?.queues.get(queue.text()));
    let answer = || {
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        if let Some(seen) = seen.filter(|seen| seen.in_flight_max >= NEAR * IN_FLIGHT_MAX as f64) {
            return found(
                Level::Error,
                format!(
                    "{:.0} messages were in flight at once within the last day, of {IN_FLIGHT_MAX}",
                    seen.in_flight_max
                ),
                "a shorter visibility timeout or backoff, or a second queue",
            );
        }
        let batch = *pair.mapping.batch.size.known()?;
        let at_once = match at_once(pair.mapping)? {
            Some(limit) => limit,
            None => match *pair.function?.reserved.known()? {
                Some(reserved) => reserved,
                // The account's limit is not known, but no mapping goes beyond Lambda's own.
                None if batch.saturating_mul(AT_ONCE_MAX) < IN_FLIGHT_MAX => return FINE,
                None => return None,
            },
        };
        let most = at_once.saturating_mul(batch);
        if most < IN_FLIGHT_MAX {
            return FINE;
        }
        found(
            Level::Warning,
            format!("{at_once} batches of {batch} are {most} messages in flight: SQS stops at {IN_FLIGHT_MAX}"),
            format!("BatchSize or MaximumConcurrency so that their product is under {IN_FLIGHT_MAX}"),
        )
    };
    Some(answer())
}

pub(super) fn groups(pair: &Pair<'_>) -> Option<Answer> {
    let queue = pair.queue.filter(|queue| queue.fifo.known() == Some(&true))?;
    let seen = pair.system.history.as_ref()?.queues.get(&*queue.place.id)?;
    let answer = || {
        let (own, reserved) = (at_once(pair.mapping)?, *pair.function?.reserved.known()?);
        let limit = own.into_iter().chain(reserved).min().unwrap_or(*CONCURRENCY.end());
        #[allow(clippy::cast_precision_loss, reason = "concurrency is far below 2^52")]
        let is_capped = seen.groups_max > 0.0 && seen.groups_max < limit as f64;
        #[allow(clippy::cast_precision_loss, reason = "seconds of days")]
        let grows = seen.oldest_s_max > *queue.visibility_s.known()? as f64;
        if !(is_capped && grows) {
            return FINE;
        }
        // How much of what is reserved the function's other mappings left is not known.
        if reserved == Some(limit) && pair.system.mappings_of(pair.function?).nth(1).is_some() {
            return None;
        }
        found(
            Level::Warning,
            format!(
                "{:.0} groups at once at most, with room for {limit}, while the oldest message waited {:.0} s",
                seen.groups_max, seen.oldest_s_max
            ),
            "a finer MessageGroupId, such as one for each customer or order",
        )
    };
    Some(answer())
}

pub(super) fn check(system: &System, report: &mut Report) {
    for function in &system.functions {
        let all: Vec<_> = system.mappings_of(function).collect();
        if all.is_empty() {
            continue;
        }
        report.answer(11, &function.place, agreed(&all, |mappings| sum_fits(function, mappings)));
        report.answer(12, &function.place, agreed(&all, |mappings| reserved(system, function, mappings)));
    }
    for queue in system.queues.iter().filter(|queue| queue.fifo.known() == Some(&true)) {
        report.answer(22, &queue.place, throughput(queue));
    }
}

/// The answer for the fewest mappings that can be there, if it is the same for all of them: for those that are certain, or for any one alone
/// where none is.
pub(super) fn agreed(all: &[&Mapping], answer: impl Fn(&[&Mapping]) -> Answer) -> Answer {
    let certain: Vec<_> = all.iter().copied().filter(|mapping| mapping.place.certain).collect();
    let is_found = |answer: &Answer| answer.as_ref().map(Option::is_some);
    let of_all = is_found(&answer(all));
    let agrees = |answer: &Answer| is_found(answer) == of_all;
    if !certain.is_empty() {
        return Some(answer(&certain)).filter(agrees).flatten();
    }
    let mut each = all.iter().map(|one| answer(&[*one]));
    let first = each.next().filter(agrees)?;
    if each.all(|answer| agrees(&answer)) { first } else { None }
}

/// The sum of limits: `None` if one is not known, `Some(None)` if there is none of one.
pub(super) fn sum_of(limits: impl IntoIterator<Item = Option<Option<u64>>>) -> Option<Option<u64>> {
    limits
        .into_iter()
        .try_fold(Some(0_u64), |sum, limit| Some(sum.zip(limit?).map(|(sum, limit)| sum.saturating_add(limit))))
}

/// The pollers that Lambda begins with, as far as they may run at once: the least ones where they are provisioned.
fn begun(mapping: &Mapping) -> Option<u64> {
    match (&mapping.scaling.concurrency, &mapping.scaling.pollers) {
        (Fact::Known(Some(limit)), _) => Some(RESERVED_MIN.min(*limit)),
        (_, Fact::Known(Some(_))) => least_pollers(mapping),
        (Fact::Known(None), Fact::Known(None)) => Some(RESERVED_MIN),
        _ => None,
    }
}

/// The `MinimumPollers` of a mapping that has provisioned pollers.
fn least_pollers(mapping: &Mapping) -> Option<u64> {
    mapping.scaling.pollers.known()?.as_ref()?.0.known().copied()
}

/// How to reserve so many, or to have limits that fit into what is reserved: Lambda takes none under two.
fn reserve(many: u64, mappings: &[&Mapping], reserved: u64) -> String {
    let least = CONCURRENCY.start().saturating_mul(mappings.len() as u64);
    // Lambda refuses both.
    let have_pollers = mappings.iter().any(|mapping| mapping.scaling.pollers != Fact::Known(None));
    let or = match mappings {
        [only] if have_pollers && reserved >= PER_POLLER.saturating_mul(POLLERS_MIN) && many > reserved => {
            let most = reserved / PER_POLLER;
            // Lambda takes no more pollers at least than at most.
            let with = if least_pollers(only).is_some_and(|least| least <= most) {
                String::new()
            } else {
                format!(" with MinimumPollers: {most} or less")
            };
            format!(", or MaximumPollers: {most}{with}")
        }
        _ if many <= least || have_pollers => String::new(),
        _ if reserved < least => {
            format!(", or {least} with MaximumConcurrency: {} on each of its mappings", CONCURRENCY.start())
        }
        [_] => format!(", or MaximumConcurrency: {reserved}"),
        _ => format!(", or MaximumConcurrency on each of its mappings, {reserved} in all"),
    };
    format!("ReservedConcurrentExecutions: {many}{or}")
}

fn sum_fits(function: &Function, mappings: &[&Mapping]) -> Answer {
    let limits: Vec<_> = mappings.iter().map(|mapping| at_once(mapping)).collect();
    let Some(reserved) = function.reserved.known()?.filter(|reserved| *reserved > 0) else { return FINE };
    // Those that are certain may be too many, whatever the others are.
    let least = limits.iter().flatten().flatten().fold(0_u64, |sum, limit| sum.saturating_add(*limit));
    if least <= reserved {
        return if limits.contains(&None) { None } else { FINE };
    }
    let sum = sum_of(limits).flatten().map_or_else(|| format!("{least} or more"), |sum| sum.to_string());
    found(
        Level::Warning,
        format!("its mappings may run {sum} at once, and {reserved} are reserved: the rest is throttled"),
        reserve(least, mappings, reserved),
    )
}

fn reserved(system: &System, function: &Function, mappings: &[&Mapping]) -> Answer {
    let throttled = system.history.as_ref().and_then(|history| history.functions.get(&*function.place.id));
    let throttled = throttled.map_or(0.0, |seen| seen.throttles);
    let begun: Vec<_> = mappings.iter().map(|mapping| begun(mapping)).collect();
    let pollers = begun.iter().flatten().fold(0_u64, |sum, pollers| sum.saturating_add(*pollers));
    match *function.reserved.known()? {
        Some(0) => found(
            Level::Warning,
            "no concurrency is reserved for it (0): it does not run, and its messages use up receives",
            "remove ReservedConcurrentExecutions, and disable the mapping for a pause",
        ),
        // Those that are known may be enough.
        Some(few) if few < RESERVED_MIN && few < pollers => found(
            Level::Warning,
            format!("{few} are reserved, and Lambda begins with {pollers} pollers"),
            reserve(pollers.max(RESERVED_MIN), mappings, few),
        ),
        Some(few) if few < RESERVED_MIN && begun.contains(&None) => None,
        _ if throttled > 0.0 => found(
            Level::Warning,
            format!("{throttled:.0} invocations were throttled within the last day: each used up receives"),
            "MaximumConcurrency (of provisioned pollers MaximumPollers, times 10) on its mappings, at most what is reserved or free in the account",
        ),
        _ => FINE,
    }
}

fn throughput(queue: &Queue) -> Answer {
    match *queue.by_group.known()? {
        (false, true) => found(
            Level::Error,
            "FifoThroughputLimit is perMessageGroupId, and DeduplicationScope is not messageGroup",
            "DeduplicationScope: messageGroup",
        ),
        (true, false) => found(
            Level::Note,
            "DeduplicationScope is messageGroup, and FifoThroughputLimit is perQueue: 300 requests a second, as before",
            "FifoThroughputLimit: perMessageGroupId",
        ),
        _ => FINE,
    }
}

/// Returns the functions that read a queue.
pub(super) fn reader_of<'a>(system: &'a System, queue: &Queue) -> Vec<&'a Function> {
    let link = Link::Here(queue.place.id.to_string());
    let mappings = system.mappings.iter().filter(|mapping| mapping.queue.known() == Some(&link));
    mappings.filter_map(|mapping| system.function(mapping.invokes.function.known()?)).collect()
}
