//! How full batches are, how long they take, and how often the queue is asked. Estimates: only `duration_ms` is held to measurements.

use crate::deployed::{Deployed, Polled, Runs};
use crate::load::Load;
use crate::plan::Guarantee;

/// Batches that Lambda works on at once before it adds more, each with a poller.
const POLLERS: f64 = 5.0;

/// Seconds that an empty queue holds a poller's request.
const LONG_POLL_S: f64 = 20.0;

/// Messages in one receive, and entries in one request that deletes or hides messages.
const ENTRIES_MAX: f64 = 10.0;

/// Memory of a function that has a whole core.
const CORE_MB: f64 = 1_769.0;

/// Milliseconds of a whole core for a batch and for each of its messages: `docs/performance.md`.
const BATCH_CPU_MS: f64 = 0.8;
const MESSAGE_CPU_MS: f64 = 0.1;

/// Bytes of an invocation's event, and what a message has there beside its body.
const EVENT_BYTES_MAX: f64 = 6.0 * 1_048_576.0;
const ENVELOPE_BYTES: f64 = 1_024.0;

/// Bytes of one request that SQS charges for; a longer one counts as several.
const CHUNK_BYTES: f64 = 65_536.0;

/// The batches of a function under a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batches {
    /// Messages of one.
    pub fill: f64,
    /// Milliseconds of one.
    pub duration_ms: f64,
    /// Invocations a second.
    pub a_second: f64,
    /// Requests to SQS a second.
    pub requests: Requests,
}

/// Requests to SQS a second, as they are charged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Requests {
    /// Receives that return messages.
    pub receives: f64,
    /// Receives of a queue that stayed empty.
    pub empty: f64,
    /// Deletes of what did not fail, by ten.
    pub deletes: f64,
    /// Changes of visibility: of failed messages by ten; of each renewal, and one more where the run ends.
    pub visibility: f64,
    /// Sends, if they are counted.
    pub sends: f64,
}

impl Batches {
    /// Returns the batches of a function at its load times `factor`.
    pub fn of(deployed: &Deployed, load: &Load, guarantee: Guarantee, factor: f64) -> Self {
        let deliveries = load.traffic.deliveries() * factor;
        let polled = &deployed.polled;
        let most = most(polled, load);
        let usual = polled.concurrency.map_or(POLLERS, |limit| limit.min(POLLERS));
        let pollers = polled.pollers.map_or(usual, |(least, _)| least);
        let duration = |fill: f64| duration_of(deployed, load, guarantee, fill);
        // What gathers while each poller's last batch is worked on, or within the window.
        let gathered = |fill: f64| deliveries / pollers * (duration(fill) / 1_000.0).max(polled.window_s);
        let mut fill = 1.0_f64;
        for _ in 0..1_000 {
            let next = gathered(fill).clamp(1.0, most);
            let is_still = (next - fill).abs() < 1e-6;
            fill = next;
            if is_still {
                break;
            }
        }
        let fill = load.filled.map_or(fill, |filled| filled.clamp(1.0, most));
        let duration_ms = duration(fill).ceil();
        let a_second = deliveries / fill;
        // A window fills batches, not receives: each returns as soon as the queue has something.
        let waiting = deliveries / pollers * duration_ms / 1_000.0;
        let received = if load.filled.is_some() && polled.window_s == 0.0 { fill } else { waiting.max(1.0).min(fill) }
            .min(ENTRIES_MAX);
        let mut requests = requests(load, factor, Pace { fill, received, a_second, pollers });
        if !deployed.function.hides {
            requests.visibility = 0.0;
        }
        Self { fill, duration_ms, a_second, requests }
    }

    /// Returns how many invocations have to run at once on the mean, with batches as full as they can be: so many are enough.
    pub(crate) fn full_at_once(deployed: &Deployed, load: &Load, guarantee: Guarantee) -> f64 {
        let most = most(&deployed.polled, load);
        load.traffic.deliveries() / most * duration_of(deployed, load, guarantee, most) / 1_000.0
    }

    /// Returns how many invocations run at once.
    pub fn at_once(&self) -> f64 {
        self.a_second * self.duration_ms / 1_000.0
    }
}

/// How many messages a batch has at most.
pub(crate) fn most(polled: &Polled, load: &Load) -> f64 {
    polled.batch.min(EVENT_BYTES_MAX / (load.work.body_bytes + ENVELOPE_BYTES)).max(1.0)
}

impl Requests {
    /// Returns all of them.
    pub fn all(&self) -> f64 {
        self.receives + self.empty + self.deletes + self.visibility + self.sends
    }
}

/// How fast messages are taken.
struct Pace {
    fill: f64,
    received: f64,
    a_second: f64,
    pollers: f64,
}

fn requests(load: &Load, factor: f64, pace: Pace) -> Requests {
    let Pace { fill, received, a_second, pollers } = pace;
    let chunks = |messages: f64| (messages * load.work.body_bytes / CHUNK_BYTES).ceil().max(1.0);
    let deliveries = load.traffic.deliveries() * factor;
    let each = deliveries / pollers;
    // Of a poller whose messages come by chance, the polls within which none comes.
    let missed = (-each * LONG_POLL_S).exp();
    let empty = if each > 0.0 { each * missed / -(-each * LONG_POLL_S).exp_m1() } else { 1.0 / LONG_POLL_S };
    let failing = load.traffic.retries / (1.0 + load.traffic.retries);
    let some_fail = 1.0 - (1.0 - failing).powf(fill);
    let some_do_not = 1.0 - failing.powf(fill);
    let runs = load.traffic.per_second * factor * (1.0 - load.traffic.duplicates + load.traffic.retries);
    let renewals = load.work.renewals();
    let hidden = if renewals > 0.0 { renewals + 1.0 } else { 0.0 };
    Requests {
        receives: deliveries / received * chunks(received),
        empty: pollers * empty,
        deletes: a_second * some_do_not * (fill * (1.0 - failing) / ENTRIES_MAX).ceil(),
        visibility: a_second * some_fail.max(fill * failing / ENTRIES_MAX) + runs * hidden,
        sends: load.traffic.sent_in.map_or(0.0, |each| load.traffic.per_second * factor / each * chunks(each)),
    }
}

fn duration_of(deployed: &Deployed, load: &Load, guarantee: Guarantee, fill: f64) -> f64 {
    let per_group = if deployed.polled.fifo { load.traffic.per_group } else { 1.0 };
    duration_ms(&deployed.function, load, guarantee, fill, per_group)
}

/// Milliseconds of an invocation: the handlers, in as many turns as there is no room for at once, or as a FIFO group has messages;
/// two answers of the store; and the runtime's own time at the memory's share of a core.
pub fn duration_ms(function: &Runs, load: &Load, guarantee: Guarantee, fill: f64, per_group: f64) -> f64 {
    let work = &load.work;
    let turns = (fill / function.at_once).max(per_group.min(fill)).max(1.0);
    let answers = match guarantee {
        Guarantee::AtLeastOnce | Guarantee::AtMostOnce => 2.0,
        // Each message has a transaction of its own.
        Guarantee::Transactional => 1.0 + turns,
        Guarantee::Optimistic => turns,
    };
    let share = (function.memory_mb / CORE_MB).min(1.0);
    turns * work.handler_ms + answers * work.store_ms + (BATCH_CPU_MS + MESSAGE_CPU_MS * fill) / share
}
