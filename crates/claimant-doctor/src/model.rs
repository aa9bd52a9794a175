//! What the checks look at: queues, mappings, functions, tables, alarms, whether a template or an account describes them.

pub use crate::access::{Access, Key};
pub use crate::alarm::{Alarm, Watching};
use crate::environment::{DATABASE, TABLE};
pub use crate::environment::{Environment, Scheduler, Server};
use crate::fact::Fact;
pub use crate::history::{FunctionHistory, History, QueueHistory, TableHistory};
pub use crate::link::{Invoked, Link};
pub use crate::mapping::{Batch, Filters, Mapping, POLLERS_DEFAULT, Scaling};
pub use crate::place::Place;
pub(crate) use crate::place::WITHIN;
use crate::rights::{ON_TABLES, QueuePolicy, Rights};

/// All that belongs together: one template with those that it includes, or one stack of an account.
#[derive(Debug, Default)]
pub struct System {
    /// By their ids.
    pub queues: Vec<Queue>,
    /// By their ids.
    pub functions: Vec<Function>,
    /// From queues to functions; of other sources none.
    pub mappings: Vec<Mapping>,
    /// Of the queues that these read, those to functions, versions and aliases that are not described here; none in a template.
    pub mappings_elsewhere: Vec<Mapping>,
    /// The lock tables, and all other tables.
    pub tables: Vec<Table>,
    /// All alarms, or unknown if there can be others that cannot be seen.
    pub alarms: Fact<Vec<Alarm>>,
    /// Where the stack is.
    pub home: Home,
    /// The least `max_connections` of a database that it describes.
    pub database_connections: Fact<Option<u64>>,
    /// What the last day's metrics say; nothing without an account.
    pub history: Option<History>,
    /// What watches it, counted for its price; nothing in an account.
    pub watching: Watching,
}

/// The Region and the account of a stack, and what it lacks there.
#[derive(Debug, Clone, Default)]
pub struct Home {
    /// Its Region.
    pub region: Fact<String>,
    /// Its account.
    pub account: Fact<String>,
    /// What is named and is not there; nothing in a template.
    pub gone: Gone,
}

/// What is not in the Region and the account in which it is named.
#[derive(Debug, Clone, Default)]
pub struct Gone {
    /// Tables that functions have their records in.
    pub tables: Vec<Place>,
    /// Queues and dead-letter queues, each with whether these credentials may only not see it.
    pub queues: Vec<(Place, bool)>,
    /// What stacks have, beside the tables and queues that something names.
    pub of_stack: Vec<Deleted>,
}

/// What was deleted by other means than its stack.
#[derive(Debug, Clone, Default)]
pub struct Deleted {
    /// Where it stood.
    pub place: Place,
    /// What it was: a function, an event source mapping, a queue or a table.
    pub what: &'static str,
    /// The name of its stack.
    pub stack: String,
    /// Its name in the template.
    pub logical_id: String,
}

impl Home {
    /// Returns whether an ARN is of this Region and account; another account may only not show what it has.
    pub(crate) fn has(&self, arn: &str) -> bool {
        let part = |index| arn.split(':').nth(index).map(str::to_owned);
        part(3).as_ref() == self.region.known() && part(4).as_ref() == self.account.known()
    }
}

/// A queue.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    /// Where it stands.
    pub place: Place,
    /// What it is called.
    pub name: Fact<String>,
    /// Whether it is FIFO.
    pub fifo: Fact<bool>,
    /// Seconds.
    pub visibility_s: Fact<u64>,
    /// Seconds.
    pub retention_s: Fact<u64>,
    /// Its dead-letter queue, if it has one.
    pub redrive: Fact<Option<Redrive>>,
    /// Whose dead-letter queue it may be.
    pub allows: Fact<RedriveAllow>,
    /// Its key, if it is encrypted with one of KMS.
    pub key: Fact<Option<Key>>,
    /// What its policy says.
    pub policy: QueuePolicy,
    /// Of FIFO: (whether deduplication is by group, whether throughput is by group).
    pub by_group: Fact<(bool, bool)>,
}

/// Where a queue's messages go that were received too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    /// The dead-letter queue.
    pub target: Fact<Link>,
    /// Whether that is named by its ARN.
    pub by_arn: Fact<bool>,
    /// After how many receives.
    pub receives: Fact<u64>,
}

/// Which queues may have this one as their dead-letter queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RedriveAllow {
    /// Any of the account and Region.
    #[default]
    All,
    /// None.
    None,
    /// These.
    Only(Vec<Link>),
}

/// A function.
#[derive(Debug, Clone, Default)]
pub struct Function {
    /// Where it stands.
    pub place: Place,
    /// Seconds.
    pub timeout_s: Fact<u64>,
    /// Reserved concurrency, if set.
    pub reserved: Fact<Option<u64>>,
    /// Whether it has a dead-letter queue of its own, which is for asynchronous invocations.
    pub own_dead_letters: Fact<bool>,
    /// What its role may do.
    pub rights: Rights,
    /// Its environment.
    pub environment: Environment,
    /// Whether loops through it are allowed.
    pub loops_allowed: Fact<bool>,
    /// How it logs.
    pub logs: Logs,
    /// What it runs on.
    pub machine: Machine,
    /// Whether Lambda may assume its role.
    pub is_assumable: Fact<bool>,
}

/// What a function runs on.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Whether it is arm64.
    pub arm64: Fact<bool>,
    /// Its memory, in MB.
    pub memory_mb: Fact<u64>,
}

/// A function's logs.
#[derive(Debug, Clone, Default)]
pub struct Logs {
    /// Whether the log format is JSON.
    pub json: Fact<bool>,
    /// Whether its log group has a retention.
    pub retention: Fact<bool>,
}

/// A table of DynamoDB.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Where it stands.
    pub place: Place,
    /// The attributes of its key with their types, such as `id S`.
    pub key: Fact<Vec<String>>,
    /// The attribute of its time to live, if on.
    pub ttl: Fact<Option<String>>,
    /// Whether it has point-in-time recovery.
    pub recovery: Fact<bool>,
    /// Whether it outlives its stack and each update of it: deletion protection, or policies to retain it.
    pub protected: Fact<bool>,
    /// What else decides who may use it.
    pub access: Access,
    /// What it can take.
    pub capacity: Capacity,
    /// Whether it has replicas in other Regions with eventual consistency.
    pub eventual_replicas: Fact<bool>,
    /// In how many Regions it is; not looked at in an account.
    pub replicas: Fact<u64>,
    /// Whether it is of the class for infrequent access; not looked at in an account.
    pub infrequent: Fact<bool>,
}

/// What a table can take.
#[derive(Debug, Clone, Default)]
pub struct Capacity {
    /// Whether it is provisioned, scaling by itself or not.
    pub provisioned: Fact<bool>,
    /// Whether it is provisioned, and for writes does not scale by itself.
    pub fixed: Fact<bool>,
    /// Read and write units a second that it is given where it is provisioned; not looked at in an account.
    pub units: Fact<(u64, u64)>,
    /// Write units a second that it takes at most where it is on demand, if it has such a maximum.
    pub most_write_units: Fact<Option<u64>>,
    /// Write units a second that it is warm for, if known.
    pub warm_write_units: Fact<u64>,
    /// Whether Contributor Insights are on.
    pub insights: Fact<bool>,
}

impl System {
    /// Returns the queue that a link leads to.
    pub fn queue(&self, link: &Link) -> Option<&Queue> {
        self.queues.iter().find(|queue| link.is(&queue.place.id))
    }

    /// Returns for how many seconds a message can live: in the queue, as a dead letter, and in all.
    pub fn message_lives_s(&self, queue: &Queue) -> Option<[u64; 3]> {
        let source = *queue.retention_s.known()?;
        let kept = match queue.redrive.known()? {
            None => 0,
            Some(redrive) => *self.queue(redrive.target.known()?)?.retention_s.known()?,
        };
        // A standard queue's dead letters keep their age.
        let lives = if *queue.fifo.known()? { source.saturating_add(kept) } else { source.max(kept) };
        Some([source, kept, lives])
    }

    /// Returns the function that a link leads to.
    pub fn function(&self, link: &Link) -> Option<&Function> {
        self.functions.iter().find(|function| link.is(&function.place.id))
    }

    /// Returns the mappings that have this function read their queues, certain to be there or not.
    pub fn mappings_of<'a>(&'a self, function: &'a Function) -> impl Iterator<Item = &'a Mapping> {
        self.mappings
            .iter()
            .filter(|mapping| mapping.invokes.function.known().is_some_and(|link| link.is(&function.place.id)))
    }

    /// Returns the mappings of a queue, certain to be there or not.
    pub fn readers<'a>(&'a self, queue: &'a Link) -> impl Iterator<Item = &'a Mapping> {
        self.mappings.iter().filter(move |mapping| mapping.queue.known() == Some(queue))
    }

    /// Returns whether a mapping reads the queue, unknown where it is not certain to be there with the queue.
    pub fn is_read(&self, queue: &Queue) -> Fact<bool> {
        let link = Link::Here(queue.place.id.to_string());
        let mut is_read = Fact::Known(false);
        for mapping in self.readers(&link) {
            if mapping.place.is_there_with(&queue.place) {
                return Fact::Known(true);
            }
            is_read = Fact::Unknown;
        }
        is_read
    }

    /// Returns the functions that use the table as their lock table.
    pub fn consumers_of<'a>(&'a self, table: &'a Table) -> impl Iterator<Item = &'a Function> {
        let uses = |function: &&Function| {
            let named = function.environment.get(TABLE).and_then(Fact::known);
            // SAM's globals name the table for those functions, too, whose records are elsewhere.
            named.is_some_and(|link| link.is(&table.place.id)) && !function.has_records_elsewhere()
        };
        self.functions.iter().filter(uses)
    }
}

impl Function {
    /// Returns whether claimant runs in it, as far as its environment and its rights show: what SAM's globals give to each function says
    /// nothing of one that may do nothing with its tables, unless its records are in another store.
    pub fn is_consumer(&self) -> Fact<bool> {
        let tables = self.environment.get(TABLE).and_then(Fact::known);
        let may_have_none = |tables: &Link| tables.each().all(|table| self.may_have_none(table.text()));
        if !self.has_records_elsewhere() && tables.is_some_and(may_have_none) {
            return Fact::Unknown;
        }
        self.environment.has_any(crate::environment::is_own)
    }

    /// Returns whether it may have no records in a table: SAM's globals name it for each function, and its role may do nothing with it.
    pub(crate) fn may_have_none(&self, table: &str) -> bool {
        self.environment.is_inherited && self.may_do_nothing_with(table)
    }

    /// Returns whether its role may do nothing with a table that claimant does.
    pub(crate) fn may_do_nothing_with(&self, table: &str) -> bool {
        ON_TABLES.iter().all(|action| self.rights.allow(action, table) == Fact::Known(false))
    }

    /// Returns whether its records are known to be in another store than DynamoDB.
    pub fn has_records_elsewhere(&self) -> bool {
        let elsewhere = [DATABASE, "CLAIMANT_REDIS_URL"];
        elsewhere.iter().any(|variable| self.environment.has(variable) == Fact::Known(true))
    }

    /// Returns whether a variable has this value, if that is known.
    pub fn has_value(&self, variable: &str, value: &str) -> Fact<bool> {
        let found = self.environment.get(variable).map(|found| found.clone().map(|link| link.text() == value));
        found.unwrap_or(Fact::Known(false))
    }

    /// Returns whether a variable is known to have this value.
    pub fn is_set(&self, variable: &str, value: &str) -> bool {
        self.has_value(variable, value) == Fact::Known(true)
    }
}
