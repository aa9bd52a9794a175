//! What a template says of each function, with defaults in place of what it does not.

use claimant_doctor::fact::Fact;
use claimant_doctor::model::{Function, Link, Mapping, POLLERS_DEFAULT, System};

use crate::noting::Noting;
use crate::records::{Records, records};

const CONCURRENCY: &str = "CLAIMANT_CONCURRENCY";

/// As the runtime has it where nothing is set, and what it takes.
const AT_ONCE: u32 = 10;
const AT_ONCE_ALLOWED: std::ops::RangeInclusive<u32> = 1..=1_000;

/// Between a function that reads several queues and the event source mapping of one of them. No id has it.
pub(crate) const READS: char = '/';

/// A function with what invokes it and where its records are.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployed {
    /// Its logical id; of a function that reads several queues, with that of the mapping behind a slash.
    pub name: String,
    /// What the function is.
    pub function: Runs,
    /// Its timeout.
    pub timeout_s: f64,
    /// What invokes it.
    pub polled: Polled,
    /// Where its records are.
    pub records: Records,
    /// What of this the template does not say, and what is assumed.
    pub assumed: Vec<String>,
}

/// What a function is.
#[derive(Debug, Clone, PartialEq)]
pub struct Runs {
    /// Its memory.
    pub memory_mb: f64,
    /// Whether it runs on arm64.
    pub arm64: bool,
    /// Messages that a process works on at once.
    pub at_once: f64,
    /// Whether it writes a metric record for each batch.
    pub metrics: bool,
    /// Whether it logs lines for each message.
    pub message_lines: bool,
    /// Whether it changes the visibility of messages.
    pub hides: bool,
    /// `ReservedConcurrentExecutions`, if set.
    pub reserved: Option<f64>,
}

/// An event source mapping and its queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Polled {
    /// Whether the queue is FIFO.
    pub fifo: bool,
    /// Whether its throughput is by group.
    pub by_group: bool,
    /// The visibility timeout.
    pub visibility_s: f64,
    /// Messages of a batch at most.
    pub batch: f64,
    /// How long a batch is waited for.
    pub window_s: f64,
    /// `MaximumConcurrency`, if set.
    pub concurrency: Option<f64>,
    /// `MinimumPollers` and `MaximumPollers`, if it has provisioned ones.
    pub pollers: Option<(f64, f64)>,
    /// For how long a message can live, in the queue and as a dead letter, if that is known.
    pub lives_s: Option<f64>,
}

impl Deployed {
    /// Returns the function's logical id.
    pub fn function_id(&self) -> &str {
        self.name.split(READS).next().unwrap_or(&self.name)
    }

    /// Returns whether this name means it: the function's, or its own.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name || self.function_id() == name
    }
}

/// Returns the functions of a system that read a queue, one for each event source mapping.
pub fn deployed(system: &System) -> Vec<Deployed> {
    let of = |mapping: &Mapping| {
        let function = system.function(mapping.invokes.function.known()?)?;
        let is_one_of_several = system.mappings_of(function).filter(|one| is_there(one)).nth(1).is_some();
        Some(one(system, function, mapping, is_one_of_several))
    };
    system.mappings.iter().filter(|one| is_there(one)).filter_map(of).collect()
}

/// Returns the functions of which a mapping is disabled.
pub(crate) fn disabled(system: &System) -> Vec<String> {
    let disabled = system.mappings.iter().filter(|mapping| !may_be_there(mapping));
    let mut names: Vec<_> =
        disabled.map(|mapping| mapping.invokes.function.known().map_or(&*mapping.place.id, Link::text)).collect();
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}

/// Returns what may be there and is not among those: functions under a condition that is not known, and mappings whose function is
/// not known; of a function that has another mapping, this one.
pub(crate) fn left_out(system: &System) -> Vec<String> {
    let mut names = Vec::new();
    for mapping in system.mappings.iter().filter(|mapping| may_be_there(mapping)) {
        match mapping.invokes.function.known().and_then(|link| system.function(link)) {
            Some(_) if mapping.place.certain => {}
            Some(function) if system.mappings_of(function).any(is_there) => names.push(name_of_one(function, mapping)),
            Some(function) => names.push(function.place.id.to_string()),
            None => names.push(mapping.place.id.to_string()),
        }
    }
    names.dedup();
    names
}

fn may_be_there(mapping: &Mapping) -> bool {
    mapping.enabled.known() != Some(&false)
}

fn is_there(mapping: &Mapping) -> bool {
    mapping.place.certain && may_be_there(mapping)
}

/// The name of one of several mappings of a function. Of a nested stack, its part of the id is there once.
fn name_of_one(function: &Function, mapping: &Mapping) -> String {
    format!("{}{READS}{}", function.place.id, mapping.place.id.rsplit('>').next().unwrap_or_default())
}

fn one(system: &System, function: &Function, mapping: &Mapping, is_one_of_several: bool) -> Deployed {
    let mut noting = Noting(Vec::new());
    let reserved = noting.or_unset("ReservedConcurrentExecutions", &function.reserved);
    let mut name = function.place.id.to_string();
    if is_one_of_several {
        name = name_of_one(function, mapping);
        if let Some(reserved) = reserved {
            noting.note(format!("ReservedConcurrentExecutions: all {reserved} for this queue, though it has others"));
        }
    }
    let function_is = Runs {
        memory_mb: noting.or("MemorySize", &function.machine.memory_mb, 128) as f64,
        arm64: noting.or("arm64", &function.machine.arm64, false),
        at_once: at_once(function, &mut noting),
        metrics: noting.is_on(function, "CLAIMANT_METRICS", true) && function.is_consumer() != Fact::Known(false),
        message_lines: noting.is_on(function, "CLAIMANT_LOG_MESSAGES", false),
        hides: noting.is_on(function, "CLAIMANT_VISIBILITY", true),
        reserved: reserved.map(|reserved| reserved as f64),
    };
    let records = records(system, function, is_one_of_several, &mut noting);
    Deployed {
        name,
        function: function_is,
        timeout_s: noting.or("Timeout", &function.timeout_s, 3) as f64,
        polled: polled(system, mapping, &mut noting),
        records,
        assumed: noting.0,
    }
}

/// Messages at once; what the runtime refuses is not known either.
fn at_once(function: &Function, noting: &mut Noting) -> f64 {
    let Some(set) = function.environment.get(CONCURRENCY) else { return f64::from(AT_ONCE) };
    let set = set.known().and_then(|link| link.text().parse().ok()).filter(|set| AT_ONCE_ALLOWED.contains(set));
    noting.or(CONCURRENCY, &set.into(), AT_ONCE).into()
}

fn polled(system: &System, mapping: &Mapping, noting: &mut Noting) -> Polled {
    let queue = mapping.queue.known().and_then(|link| system.queue(link));
    let unknown = (Fact::Unknown, Fact::Unknown, Fact::Unknown);
    let (fifo, by_group, visibility) = queue.map_or(unknown, |queue| (queue.fifo, queue.by_group, queue.visibility_s));
    let pollers = noting.or_unset("ProvisionedPollerConfig", &mapping.scaling.pollers);
    let fifo = noting.or("FifoQueue", &fifo, false);
    if fifo && by_group == Fact::Unknown {
        noting.note("FifoThroughputLimit: perQueue");
    }
    Polled {
        fifo,
        by_group: by_group.known() == Some(&(true, true)),
        // OK, as below, because these are small numbers.
        visibility_s: noting.or("VisibilityTimeout", &visibility, 30) as f64,
        batch: noting.or("BatchSize", &mapping.batch.size, 10) as f64,
        window_s: noting.or("MaximumBatchingWindowInSeconds", &mapping.batch.window_s, 0) as f64,
        concurrency: noting.or_unset("MaximumConcurrency", &mapping.scaling.concurrency).map(|limit| limit as f64),
        pollers: pollers.map(|(least, most)| {
            let least = noting.or("MinimumPollers", &least, POLLERS_DEFAULT.0);
            (least as f64, noting.or("MaximumPollers", &most, POLLERS_DEFAULT.1) as f64)
        }),
        lives_s: queue.and_then(|queue| system.message_lives_s(queue)).map(|[_, _, lives]| lives as f64),
    }
}
