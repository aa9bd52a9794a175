//! Event source mappings.

use claimant_template::{Fault, Filter};

use crate::fact::Fact;
use crate::link::{Invoked, Link};
use crate::place::Place;

/// Pollers at least and at most of a mapping with provisioned ones, unless set.
pub const POLLERS_DEFAULT: (u64, u64) = (2, 200);

/// An event source mapping from a queue.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    /// Where it stands.
    pub place: Place,
    /// What Lambda calls it; empty in a template.
    pub uuid: String,
    /// The queue that it reads.
    pub queue: Fact<Link>,
    /// Whether that is named by its ARN.
    pub by_arn: Fact<bool>,
    /// What it invokes.
    pub invokes: Invoked,
    /// Its batches.
    pub batch: Batch,
    /// How far it scales.
    pub scaling: Scaling,
    /// Its filters.
    pub filters: Filters,
    /// Whether it is enabled.
    pub enabled: Fact<bool>,
    /// Whether its own metrics are on.
    pub metrics: Fact<bool>,
}

/// A mapping's filters.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// Whether there are any.
    pub any: Fact<bool>,
    /// What is wrong with their patterns, as far as these are known.
    pub faults: Vec<Fault>,
}

/// A mapping's batches.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Messages at most.
    pub size: Fact<u64>,
    /// Seconds that one is waited for.
    pub window_s: Fact<u64>,
    /// Whether those that failed are reported: `ReportBatchItemFailures`.
    pub reports: Fact<bool>,
    /// Whether the mapping is one that SAM makes of a topic's event, of which only the size can be set.
    pub of_topic: bool,
}

/// How far a mapping scales.
#[derive(Debug, Clone, Default)]
pub struct Scaling {
    /// `MaximumConcurrency`, if set.
    pub concurrency: Fact<Option<u64>>,
    /// `MinimumPollers` and `MaximumPollers` of provisioned pollers, if there are any.
    pub pollers: Fact<Option<(Fact<u64>, Fact<u64>)>>,
}

impl Filters {
    /// Returns those of a mapping with these patterns, as far as they are known.
    pub(crate) fn new(any: Fact<bool>, patterns: impl Iterator<Item: AsRef<str>>) -> Self {
        let faults = patterns.filter_map(|pattern| Filter::read(pattern.as_ref()).err()).collect();
        Self { any, faults }
    }
}
