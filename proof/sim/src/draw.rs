//! A scenario from a seed.

mod delays;
mod handlers;
mod limits;
mod outages;
mod patterns;

use fastrand::Rng;

use crate::scenario::{
    ConsumerSpec, Fate, Fault, FunctionSpec, Guarantee, MessageSpec, QueueSpec, Scenario, Shape, Work,
};

/// Of so many seeds one has a batch of thousands, all of which fail.
const LARGE_EVERY: u64 = 2_048;

/// The messages of such a batch.
const LARGE_COUNT: usize = 10_000;

/// A good handler's time where it has a limit of its own; it always suffices.
const LONG_MS: u64 = 900;

/// The scenario of this seed.
#[must_use]
pub fn draw(seed: u64) -> Scenario {
    let mut rng = Rng::with_seed(seed);
    let rng = &mut rng;
    let consumer = consumer(rng);
    let function = function(rng);
    let mut queue = queue(rng, &function);
    // Now and then more than one request holds.
    let keys = if rarely(rng, 24) { rng.usize(12..=28) } else { rng.usize(1..=5) };
    let keys: Vec<_> = (0..keys).map(|_| key(rng, &consumer, &function)).collect();
    let mut messages = messages(rng, &consumer, keys.len());
    if rng.bool() {
        // All at once, so that they come in one batch.
        messages.iter_mut().filter(|message| message.at_ms < 2_000).for_each(|message| message.at_ms = 0);
    }
    if seed % LARGE_EVERY == 7 {
        let large = MessageSpec { shape: Shape::NotJson, count: LARGE_COUNT, ..MessageSpec::good(0, 0) };
        (queue.fifo_groups, queue.batch_max, queue.max_receives) = (None, LARGE_COUNT, 1);
        queue.letters = false;
        messages.insert(0, large);
    }
    let mut scenario = Scenario { seed, consumer, queue, function, keys, messages, faults: Vec::new() };
    several_events(&mut scenario);
    scenario.faults = faults(rng, &scenario);
    patterns::apply(rng, &mut scenario);
    // By generators of their own, so that the scenarios of all seeds stay what they were but for this.
    let mut rng = Stream::Handlers.of(seed);
    scenario.consumer.busy_wait_ms = rarely(&mut rng, 4).then(|| one(&mut rng, &[100, 1_000, 4_000]));
    handlers::apply(&mut rng, &mut scenario);
    outages::apply(&mut Stream::Outages.of(seed), &mut scenario);
    delays::apply(&mut Stream::Delays.of(seed), &mut scenario);
    limits::apply(&mut Stream::Limits.of(seed), &mut scenario);
    delays::tell_receives(&mut Stream::Receives.of(seed), &mut scenario);
    let mut rng = Stream::Tenants.of(seed);
    scenario.consumer.tenants = rarely(&mut rng, 4).then(|| rng.u32(1..=3));
    redriven(&mut Stream::Redrives.of(seed), &mut scenario);
    let mut rng = Stream::Reads.of(seed);
    if rng.bool() {
        scenario.faults.extend((0..2).map(|nth| Fault::Read { nth, unread: rng.u32(1..) }));
    }
    scenario
}

/// Random numbers of one seed that are drawn apart from those of the others: by how many bits it is rotated, and from 64 on its complement.
/// What is new gets a stream of its own, so that all else of a seed stays as it was; the compiler refuses a number that is used.
#[derive(Clone, Copy)]
enum Stream {
    Tenants = 8,
    Delays = 16,
    Reads = 24,
    Outages = 32,
    Redrives = 40,
    Limits = 48,
    Receives = 56,
    /// What handlers do, and which messages have several events.
    Handlers = 64,
}

impl Stream {
    fn of(self, seed: u64) -> Rng {
        let bits = self as u32;
        Rng::with_seed(if bits < u64::BITS { seed } else { !seed }.rotate_left(bits))
    }
}

/// An operator who moves dead letters back while everything else goes on.
fn redriven(rng: &mut Rng, scenario: &mut Scenario) {
    if rarely(rng, 4) {
        for _ in 0..rng.u32(1..=3) {
            let within_ms = one(rng, &[3_000, 30_000, 150_000]);
            scenario.faults.push(Fault::Redrive { at_ms: rng.u64(..within_ms) });
        }
    }
}

fn one<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

/// True in one of `n` cases.
fn rarely(rng: &mut Rng, n: u32) -> bool {
    rng.u32(..n) == 0
}

fn consumer(rng: &mut Rng) -> ConsumerSpec {
    use Guarantee::{AtMostOnce, Leased, Optimistic, Renewed, Transactional};
    let guarantee = match rng.u32(..10) {
        0..=2 => Leased,
        3 | 4 => Renewed(one(rng, &[3_000, 5_000])),
        5 | 6 => AtMostOnce,
        7 | 8 => Transactional,
        _ => Optimistic,
    };
    ConsumerSpec {
        guarantee,
        attempts_max: rarely(rng, 6).then(|| rng.u32(2..=6)),
        concurrency: one(rng, &[1, 2, 10]),
        timeout_ms: rarely(rng, 6).then(|| rng.u64(LONG_MS..3_000)),
        batched: !rarely(rng, 4),
        ignores_conflicts: rarely(rng, 4),
        // A window that ends within the run makes the same work be done again, which at most once does not allow.
        window_s: (guarantee != AtMostOnce && rarely(rng, 5)).then_some(60),
        // At most once needs a key that outlives a redrive.
        by_message_id: guarantee != AtMostOnce && rarely(rng, 10),
        items: None,
        routes: None,
        busy_wait_ms: None,
        breaker: None,
        limit: None,
        tenants: None,
    }
}

fn function(rng: &mut Rng) -> FunctionSpec {
    let clocks = rng.usize(1..=3);
    let half = Scenario::SKEW_MS / 2;
    let within = |rng: &mut Rng| rng.i64(-half..=half);
    let beyond = |rng: &mut Rng| one(rng, &[-3_600_000, -20_000, 0, 20_000, 3_600_000]);
    let far = rarely(rng, 8);
    FunctionSpec {
        timeout_ms: one(rng, &[3_000, 6_000, 15_000]),
        clocks_ms: (0..clocks).map(|_| if far { beyond(rng) } else { within(rng) }).collect(),
        per_process: if rarely(rng, 4) { rng.usize(2..=4) } else { 1 },
        mapping_reports: rarely(rng, 12).then(|| rng.bool()),
        threads: false,
        pauses: false,
    }
}

fn queue(rng: &mut Rng, function: &FunctionSpec) -> QueueSpec {
    let fifo_groups = rarely(rng, 3).then(|| rng.u32(1..=2));
    QueueSpec {
        fifo_groups,
        // As AWS demands, at least the function's timeout; the mapping does not look again when either is changed.
        visibility_s: if rarely(rng, 6) { 2 } else { function.timeout_ms / 1_000 * one(rng, &[1, 2, 6]) },
        max_receives: if rarely(rng, 6) { rng.u32(4..=7) } else { 5 },
        batch_max: if fifo_groups.is_some() { one(rng, &[1, 3, 10]) } else { one(rng, &[1, 3, 10, 30]) },
        letters: rng.bool(),
        changes_visibility: !rarely(rng, 5),
        schedules: false,
        tells_receives: false,
    }
}

/// What the handler does for one key: at most two runs that fail, then good ones.
fn key(rng: &mut Rng, consumer: &ConsumerSpec, function: &FunctionSpec) -> Vec<Work> {
    let mut runs: Vec<Work> = (0..rng.usize(0..=2)).map(|_| bad_work(rng)).collect();
    // Leases are renewed only under long ones.
    let renewed = matches!(consumer.guarantee, Guarantee::Renewed(_));
    let long = rarely(rng, if renewed { 2 } else { 6 });
    let most = if consumer.timeout_ms.is_some() { LONG_MS } else { function.timeout_ms / 2 };
    let ms = |rng: &mut Rng| if long { rng.u64(..most / 2) } else { rng.u64(..200) };
    runs.push(Work::Good { before_ms: ms(rng), after_ms: ms(rng) });
    runs
}

fn bad_work(rng: &mut Rng) -> Work {
    let ms = rng.u64(..500);
    match rng.u32(..10) {
        0..=3 => Work::Fail(ms),
        4 => Work::FailFor(rng.u64(..30)),
        5 | 6 => Work::Panic(ms),
        7 => Work::Permanent,
        8 => Work::Hang,
        _ => Work::Large,
    }
}

fn messages(rng: &mut Rng, consumer: &ConsumerSpec, keys: usize) -> Vec<MessageSpec> {
    let mut messages = Vec::new();
    for key in 0..keys {
        let copies = if rarely(rng, 2) { rng.usize(2..=3) } else { 1 };
        let together = rng.bool();
        let start = rng.u64(..2_000);
        for copy in 0..copies {
            let later = if together { 0 } else { rng.u64(..20_000) };
            // After a window of a minute, too.
            let later = if rarely(rng, 12) { 90_000 } else { later };
            let variant = u32::from(copy > 0 && rarely(rng, 6));
            messages.push(MessageSpec { variant, ..MessageSpec::good(start + later, key) });
        }
    }
    if rarely(rng, 4) {
        let shape = one(rng, &[Shape::NotJson, Shape::WrongShape, Shape::NoKey, Shape::Deep]);
        // A consumer without a key rule misses none.
        let shape = if consumer.by_message_id && shape == Shape::NoKey { Shape::NotJson } else { shape };
        messages.push(MessageSpec { shape, ..MessageSpec::good(rng.u64(..2_000), 0) });
    }
    messages.sort_by_key(|message| message.at_ms);
    messages
}

/// Puts several events into some of the messages, by chance of its own: everything else of a seed stays as it is without them.
fn several_events(scenario: &mut Scenario) {
    let rng = &mut Stream::Handlers.of(scenario.seed);
    // Without a key rule, events have the message's id and a number. Those that do not fit into one invocation are done over several
    // deliveries, and by then a window of a minute has forgotten the first.
    let several = !scenario.consumer.by_message_id && scenario.consumer.window_s.is_none();
    if !several || !rarely(rng, 3) {
        return;
    }
    let (keys, groups) = (scenario.keys.len(), scenario.queue.fifo_groups.map_or(1, |groups| groups as usize));
    for message in scenario.messages.iter_mut().filter(|message| message.shape == Shape::Good) {
        if rng.bool() {
            // What is in one message is in one group.
            let mut others: Vec<_> =
                (0..keys).filter(|key| *key != message.key && key % groups == message.key % groups).collect();
            rng.shuffle(&mut others);
            message.more = others.into_iter().take(rng.usize(1..=3)).collect();
        }
    }
}

fn faults(rng: &mut Rng, scenario: &Scenario) -> Vec<Fault> {
    if rarely(rng, 16) {
        return Vec::new();
    }
    let most = if rarely(rng, 8) { 24 } else { 6 };
    let mut faults: Vec<Fault> = (0..rng.u32(1..=most)).map(|_| fault(rng, scenario)).collect();
    match scenario.consumer.guarantee {
        // Renewals are few among all requests.
        Guarantee::Renewed(_) => {
            let late = |rng: &mut Rng| Fate::Late(one(rng, &[1_200, 2_500, 4_000]));
            faults.extend((0..3).map(|_| Fault::Store { nth: rng.u32(1..8), fate: late(rng) }));
        }
        // And so are requests for many.
        Guarantee::Optimistic => {}
        _ if scenario.consumer.batched && rng.bool() => {
            faults.push(Fault::Store { nth: rng.u32(..3), fate: Fate::PartlyThrottled(rng.u32(1..)) });
        }
        _ => {}
    }
    if scenario.consumer.window_s.is_some() {
        faults.push(Fault::Expire { at_ms: rng.u64(60_000..300_000) });
    }
    faults
}

fn fault(rng: &mut Rng, scenario: &Scenario) -> Fault {
    let invocation = rng.u32(..6);
    let process = rng.usize(..scenario.function.clocks_ms.len());
    let poll = rng.u32(..12);
    match rng.u32(..32) {
        0..=8 => Fault::Store { nth: rng.u32(..30), fate: fate(rng) },
        9..=11 => Fault::Queue { nth: rng.u32(..6), fate: fate(rng) },
        12 | 13 => Fault::Outage {
            from_ms: rng.u64(..5_000),
            for_ms: one(rng, &[500, 5_000, 40_000]),
            fate: one(rng, &[Fate::Lost, Fate::Silence, Fate::AnswerLost, Fate::AnswerSilence, Fate::Throttled]),
        },
        14..=17 => Fault::Kill { invocation, poll },
        18 => Fault::KillAfter { invocation, after_ms: rng.u64(..scenario.function.timeout_ms) },
        19..=21 => Fault::Freeze { invocation, poll, for_ms: one(rng, &[500, 5_000, 20_000, 60_000]) },
        22 => Fault::FreezeIdle { invocation },
        23 => Fault::Block { invocation, for_ms: rng.u64(..40_000) },
        24 => Fault::LoseReport { invocation },
        25 => Fault::Nameless { invocation },
        26 => Fault::LoseDelete { nth: rng.u32(..10) },
        27 => Fault::ShowAgain { nth: rng.u32(..10) },
        28 => Fault::TwiceInBatch { nth: rng.u32(..10) },
        29 => {
            Fault::Jump { at_ms: rng.u64(..10_000), process, by_ms: one(rng, &[-3_600_000, -5_000, 5_000, 3_600_000]) }
        }
        30 => Fault::Terminate { at_ms: rng.u64(..10_000), process },
        _ => Fault::Queue { nth: rng.u32(..3), fate: Fate::Lost },
    }
}

fn fate(rng: &mut Rng) -> Fate {
    match rng.u32(..12) {
        0 => Fate::Lost,
        1 => Fate::Silence,
        2 | 3 => Fate::AnswerLost,
        4 => Fate::AnswerSilence,
        5..=7 => Fate::Late(one(rng, &[300, 2_500, 6_000, 20_000])),
        8 => Fate::Slow(one(rng, &[500, 3_000])),
        9 => Fate::Throttled,
        10 => Fate::PartlyThrottled(rng.u32(1..)),
        _ => Fate::Error,
    }
}
