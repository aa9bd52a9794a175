//! Dead-letter queues: whether there is one, what it keeps and for how long.

use claimant::limits::{QUEUE_RETENTION_MAX_S, RECEIVES_MAX_DEFAULT, WINDOW_DEFAULT_S};

use super::pair::Pair;
use super::{batches, redrive, rights, scaling};
use crate::environment::RECEIVES;
use crate::fact::Fact;
use crate::finding::{Answer, FINE, Level, Report, found, perhaps};
use crate::model::{Queue, Redrive, System};

/// Throttling, deaths and outages use up receives.
const RECEIVES_MIN: u64 = 5;

/// The counts that SQS takes.
const RECEIVES_TAKEN: std::ops::RangeInclusive<u64> = 1..=1_000;

/// The retention of a queue where none is set.
const RETENTION_DEFAULT_S: u64 = 4 * DAY_S;

const DAY_S: u64 = 86_400;

pub(super) fn check(system: &System, report: &mut Report) {
    for queue in &system.queues {
        let is_read = system.is_read(queue);
        let where_read = |answer| if is_read == Fact::Known(true) { answer } else { perhaps(answer) };
        if is_read != Fact::Known(false) {
            report.answer(5, &queue.place, where_read(has_one(system, queue)));
            report.answer(38, &queue.place, where_read(outlives_its_receives(queue)));
        }
        let redrive = match &queue.redrive {
            Fact::Known(None) => continue,
            Fact::Known(Some(redrive)) => Some(redrive),
            Fact::Unknown => None,
        };
        let of = |check: fn(&System, &Queue, &Redrive) -> Answer| check(system, queue, redrive?);
        if is_read != Fact::Known(false) {
            report.answer(4, &queue.place, where_read(of(receives)));
        }
        // What comes back is kept nowhere as a dead letter.
        if redrive::round(system, queue).is_none() {
            report.answer(6, &queue.place, of(retention));
        }
        report.answer(7, &queue.place, of(redrive::target));
        report.answer(8, &queue.place, of(redrive::admitted));
        report.answer(39, &queue.place, of(by_arn));
        if queue.fifo.known() == Some(&true) {
            report.answer(9, &queue.place, of(order));
        }
    }
}

fn has_one(system: &System, queue: &Queue) -> Answer {
    if queue.redrive.known()?.is_some() {
        return FINE;
    }
    let on_function = scaling::reader_of(system, queue)
        .into_iter()
        .find(|function| function.own_dead_letters.known() == Some(&true))
        .map(|function| format!("; the one of {} is for asynchronous invocations", function.place.id))
        .unwrap_or_default();
    found(
        Level::Warning,
        format!("it has no RedrivePolicy: what always fails comes back until it expires{on_function}"),
        "RedrivePolicy: {deadLetterTargetArn: !GetAtt DeadLetters.Arn, maxReceiveCount: 5}",
    )
}

fn receives(_: &System, _: &Queue, redrive: &Redrive) -> Answer {
    let receives = *redrive.receives.known()?;
    if !RECEIVES_TAKEN.contains(&receives) {
        return found(
            Level::Error,
            format!("maxReceiveCount is {receives}: SQS takes {} to {}", RECEIVES_TAKEN.start(), RECEIVES_TAKEN.end()),
            format!("maxReceiveCount: {}", receives.clamp(RECEIVES_MIN, *RECEIVES_TAKEN.end())),
        );
    }
    if receives >= RECEIVES_MIN {
        return FINE;
    }
    found(Level::Warning, format!("maxReceiveCount is {receives}"), format!("maxReceiveCount: {RECEIVES_MIN} or more"))
}

fn retention(system: &System, queue: &Queue, redrive: &Redrive) -> Answer {
    let target = system.queue(redrive.target.known()?)?;
    if *queue.fifo.known()? {
        return age_anew(queue, target, &queue.place.id);
    }
    let (source, kept) = (*queue.retention_s.known()?, *target.retention_s.known()?);
    if kept > source {
        return FINE;
    }
    // As long as SQS can; only those that waited for long expire early.
    let (level, fix) = if kept == QUEUE_RETENTION_MAX_S {
        (Level::Note, format!("a shorter MessageRetentionPeriod of {}, such as {RETENTION_DEFAULT_S}", queue.place.id))
    } else {
        (Level::Warning, format!("MessageRetentionPeriod: {QUEUE_RETENTION_MAX_S} on {}", target.place.id))
    };
    found(
        level,
        format!(
            "{} keeps dead letters for {}, {} keeps messages for {}, and both count from the first sending",
            target.place.id,
            days(kept),
            queue.place.id,
            days(source)
        ),
        fix,
    )
}

/// Dead letters whose age begins when they come there: they are kept too shortly only where that is short in itself.
fn age_anew(queue: &Queue, letters: &Queue, of: &str) -> Answer {
    let (source, kept) = (*queue.retention_s.known()?, *letters.retention_s.known()?);
    let enough = source.min(RETENTION_DEFAULT_S);
    if kept >= enough {
        return FINE;
    }
    let (letters, queue) = (&letters.place.id, &queue.place.id);
    let (kept, source) = (days(kept), days(source));
    found(
        Level::Warning,
        format!("{letters} keeps the dead letters of {of} for {kept}, and {queue} keeps messages for {source}"),
        format!("MessageRetentionPeriod: {enough} or more on {letters}"),
    )
}

/// Where claimant sends dead letters, if SQS moves none there.
pub(super) fn copies(pair: &Pair<'_>) -> Option<Answer> {
    let (function, letters) = (pair.function?, rights::dead_letter_queue(pair)?);
    let target = pair.queue.and_then(|queue| queue.redrive.known()?.as_ref()?.target.known());
    if letters.is_some_and(|letters| target.is_some_and(|target| target.is(&letters.place.id))) {
        return None;
    }
    let answer = || {
        function.is_consumer().known().filter(|is_one| **is_one)?;
        age_anew(pair.queue?, letters?, &function.place.id)
    };
    Some(answer())
}

/// Whether a message is kept for as long as all of its receives hide it: each can last the whole visibility timeout, and its age goes on.
fn outlives_its_receives(queue: &Queue) -> Answer {
    let (id, kept, hidden) = (&queue.place.id, *queue.retention_s.known()?, *queue.visibility_s.known()?);
    // The least whole days: with more, they can be as long as the dead-letter queue's.
    let such = |lasts: u64| match (lasts / DAY_S).saturating_add(1).saturating_mul(DAY_S).max(RETENTION_DEFAULT_S) {
        enough @ ..=QUEUE_RETENTION_MAX_S => format!("MessageRetentionPeriod: {enough} on {id}"),
        _ => format!("a shorter VisibilityTimeout of {id}, or a lower maxReceiveCount"),
    };
    if kept <= hidden {
        return found(
            Level::Error,
            format!(
                "messages are kept for {}, and hidden for {} when they are received: one that fails can be gone before its second try",
                days(kept),
                days(hidden)
            ),
            such(hidden),
        );
    }
    // Without a dead-letter queue they come back until they expire.
    let Some(redrive) = queue.redrive.known()? else { return FINE };
    let receives = *redrive.receives.known()?;
    let lasts = hidden.saturating_mul(receives);
    if kept > lasts {
        return FINE;
    }
    found(
        Level::Warning,
        format!(
            "messages are kept for {}, and {receives} receives of {} each can last for {}: one that always fails can be \
             gone before it is a dead letter",
            days(kept),
            days(hidden),
            days(lasts)
        ),
        such(lasts),
    )
}

fn by_arn(system: &System, queue: &Queue, redrive: &Redrive) -> Answer {
    batches::named_by_arn(system, redrive.target.known(), &redrive.by_arn, &queue.place)
}

/// Whether the function knows its queue's `maxReceiveCount`.
pub(super) fn told(pair: &Pair<'_>) -> Option<Answer> {
    let consumer = pair.consumer()?;
    let answer = || {
        let function = consumer?;
        let receives = *pair.queue?.redrive.known()?.as_ref()?.receives.known()?;
        let told = match function.environment.get(RECEIVES) {
            None => u64::from(RECEIVES_MAX_DEFAULT),
            Some(value) => value.known()?.text().parse().ok()?,
        };
        if told == receives {
            return FINE;
        }
        found(
            Level::Note,
            format!("it counts on {told} receives, and its queue gives {receives}"),
            format!("{RECEIVES}: \"{receives}\""),
        )
    };
    Some(answer())
}

/// A length of time as a person says it.
fn days(seconds: u64) -> String {
    match seconds {
        DAY_S => "a day".to_owned(),
        _ if seconds.is_multiple_of(DAY_S) => format!("{} days", seconds / DAY_S),
        _ if seconds.is_multiple_of(3_600) => format!("{} h", seconds / 3_600),
        _ => format!("{seconds} s"),
    }
}

fn order(_: &System, queue: &Queue, _: &Redrive) -> Answer {
    found(
        Level::Note,
        format!("when a message of {} is dead-lettered, those behind it in its group go on", queue.place.id),
        "see that the handler bears a gap; or do without a dead-letter queue, where the order matters more than that messages go on",
    )
}

pub(super) fn window(pair: &Pair<'_>) -> Option<Answer> {
    let consumer = pair.consumer()?;
    let answer = || {
        let (queue, _) = (pair.queue?, consumer?);
        let [source, kept, lives] = pair.system.message_lives_s(queue)?;
        if lives < WINDOW_DEFAULT_S {
            return FINE;
        }
        found(
            Level::Warning,
            format!(
                "a message can live for {}: {} in the queue, {} as a dead letter; a record for {}, unless set",
                days(lives),
                days(source),
                days(kept),
                days(WINDOW_DEFAULT_S)
            ),
            format!(
                ".window(Duration::from_secs({})) in the consumer, and accept this finding",
                lives.saturating_add(DAY_S)
            ),
        )
    };
    Some(answer())
}
