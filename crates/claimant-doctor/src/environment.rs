//! A function's environment.

use std::collections::BTreeMap;

use crate::fact::Fact;
use crate::link::Link;
use crate::place::Place;
use crate::rights::Rights;

/// A function's environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Those whose names are known, with their values.
    pub variables: BTreeMap<String, Fact<Link>>,
    /// The server of the database, if there is one; not looked at in an account.
    pub database: Option<Server>,
    /// By variable: the roles in whose name schedules act; not looked at in an account.
    pub schedulers: BTreeMap<&'static str, Scheduler>,
    /// Whether there can be others.
    pub is_open: bool,
    /// Whether claimant's variables in it are SAM's globals, and none is the function's own.
    pub is_inherited: bool,
    /// What claimant has against its own variables, and does not start with.
    pub faults: Fact<Vec<String>>,
}

/// A role in whose name `EventBridge` Scheduler acts.
#[derive(Debug, Clone)]
pub struct Scheduler {
    /// Where it stands.
    pub place: Place,
    /// Whether `EventBridge` Scheduler may assume it.
    pub is_trusting: Fact<bool>,
    /// What it may do.
    pub rights: Rights,
}

/// Where a database's URL leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its host and port, with holes for what resources have; nothing if they cannot be known.
    pub address: Option<String>,
    /// The whole value as its template has it, which is the same for the same text.
    pub written: String,
}

/// Names the lock table, or several; and those that had its records before.
pub(crate) const TABLE: &str = "CLAIMANT_TABLE";
pub(crate) const TABLE_BEFORE: &str = "CLAIMANT_TABLE_BEFORE";

/// Where claimant sends dead letters.
pub(crate) const DEAD_LETTER_QUEUE: &str = "CLAIMANT_DEAD_LETTER_QUEUE_URL";

/// Where a consumer is told its queue's `maxReceiveCount`.
pub(crate) const RECEIVES: &str = "CLAIMANT_MAX_RECEIVE_COUNT";

/// Whether a function hides what failed, and whether it writes claims together: on unless they are `off`.
pub(crate) const VISIBILITY: &str = "CLAIMANT_VISIBILITY";
pub(crate) const BATCH: &str = "CLAIMANT_BATCH";

/// How long before its end a function returns.
pub(crate) const MARGIN: &str = "CLAIMANT_MARGIN_MS";

/// Set where claimant's records are in a database; and how many connections of it each process opens.
pub(crate) const DATABASE: &str = "CLAIMANT_DATABASE_URL";
pub(crate) const CONNECTIONS: &str = "CLAIMANT_DATABASE_CONNECTIONS";

/// Says whether a function checks that its mapping reports failures, and what follows where it cannot.
pub(crate) const MAPPING_CHECK: &str = "CLAIMANT_MAPPING_CHECK";

/// Set where an open breaker pauses the event source mapping.
pub(crate) const RESUME_ROLE: &str = "CLAIMANT_RESUME_ROLE_ARN";

/// Set where what waits for long is sent again by schedules.
pub(crate) const SCHEDULE_ROLE: &str = "CLAIMANT_SCHEDULE_ROLE_ARN";
pub(crate) const SCHEDULE_LETTERS: &str = "CLAIMANT_SCHEDULE_DEAD_LETTER_ARN";

/// What stands for a value that is not known.
const UNKNOWN_VALUE: &str = "${?}";

/// Returns what claimant's own reader has against these variables; unknown where nothing is found, and something is not known.
pub(crate) fn faults(variables: &[(String, Fact<String>)], is_open: bool) -> Fact<Vec<String>> {
    let value = |value: &Fact<String>| value.known().cloned().unwrap_or_else(|| UNKNOWN_VALUE.to_owned());
    let read = claimant::variables_of(variables.iter().map(|(name, fact)| (name.clone(), value(fact))));
    let mut faults = read.into_faults();
    let cannot_be_known = |fault: &str| fault.contains(UNKNOWN_VALUE) || is_open && fault.contains("is not set");
    faults.retain(|fault| !cannot_be_known(fault));
    if faults.is_empty() && (is_open || variables.iter().any(|(_, value)| *value == Fact::Unknown)) {
        return Fact::Unknown;
    }
    Fact::Known(faults)
}

/// Returns whether a variable is one of claimant's own.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with("CLAIMANT_")
}

impl Server {
    /// Returns whether this is the other one.
    pub fn is(&self, other: &Self) -> Fact<bool> {
        let Some((own, of_other)) = self.address.as_ref().zip(other.address.as_ref()) else {
            return if self.written == other.written { Fact::Known(true) } else { Fact::Unknown };
        };
        match own == of_other {
            true => Fact::Known(true),
            // Two resources can have one address, as a cluster and the instance that writes have.
            false if own.contains("${") || of_other.contains("${") => Fact::Unknown,
            false => Fact::Known(false),
        }
    }
}

impl Environment {
    /// Returns the value of a variable; nothing if it is certain not to be set.
    pub fn get(&self, variable: &str) -> Option<&Fact<Link>> {
        const UNKNOWN: &Fact<Link> = &Fact::Unknown;
        self.variables.get(variable).or(self.is_open.then_some(UNKNOWN))
    }

    /// Returns whether a variable is set.
    pub fn has(&self, variable: &str) -> Fact<bool> {
        self.has_any(|name| name == variable)
    }

    /// Returns whether a variable is set whose name is such a one.
    pub(crate) fn has_any(&self, is_one: impl Fn(&str) -> bool) -> Fact<bool> {
        match self.variables.keys().any(|name| is_one(name)) {
            false if self.is_open => Fact::Unknown,
            found => Fact::Known(found),
        }
    }
}
