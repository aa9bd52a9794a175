//! What a template comes to: everything that runs locally, and what does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use claimant_template::Filter;

use crate::sqs::QueueSettings;

/// What a queue's URL starts with until the cloud knows its port: replace it in every environment value.
pub const SQS_URL_PLACEHOLDER: &str = "http://sqs.local";

/// What stands for the local payment gateway: an environment value that is this URL, or a path under it, gets the gateway's
/// address instead. It is a template's sample value, so that the same template runs locally without a parameter.
pub const GATEWAY_URL_PLACEHOLDER: &str = "https://gateway.example";

/// Everything in a template that runs locally.
#[derive(Debug, Clone)]
pub struct Stack {
    /// The queues, each after the dead-letter queue that it names, so that they can be created in this order.
    pub queues: Vec<QueueSpec>,
    /// The DynamoDB tables, in the template's order.
    pub tables: Vec<TableSpec>,
    /// The names of the S3 buckets, in the template's order: `BucketName`, or else the logical id in small letters.
    pub buckets: Vec<String>,
    /// The functions, in the template's order.
    pub functions: Vec<FunctionSpec>,
    /// The functions whose condition is false, in the template's order.
    pub left_out: Vec<LeftOut>,
    /// What AWS would run and the local cloud does not, in the template's order.
    pub not_run: Vec<NotRun>,
}

/// A function of the template whose condition is false.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its key under `Resources`.
    pub logical_id: String,
    /// The name of the binary that cargo builds for it, where it has one.
    pub binary: Option<String>,
    /// Which condition is false and of which parameters, and how to include the function. Holds no parameter's value.
    pub why: String,
}

impl fmt::Display for LeftOut {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is left out: {}", self.logical_id, self.why)
    }
}

/// A queue of the template.
#[derive(Debug, Clone)]
pub struct QueueSpec {
    /// Its key under `Resources`.
    pub logical_id: String,
    /// `QueueName`, or else the logical id.
    pub name: String,
    /// Its attributes, with SQS's defaults for those not given.
    pub settings: QueueSettings,
}

/// A DynamoDB table of the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    /// Its key under `Resources`.
    pub logical_id: String,
    /// `TableName`, or else the logical id.
    pub name: String,
    /// The partition (HASH) key.
    pub partition_key: KeySpec,
    /// The sort (RANGE) key, if there is one.
    pub sort_key: Option<KeySpec>,
    /// The attribute that holds the expiry time, when time to live is on.
    pub ttl_attribute: Option<String>,
}

/// One attribute of a table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpec {
    /// The attribute's name.
    pub name: String,
    /// The attribute's type.
    pub kind: KeyKind,
}

/// The type of a key attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A string.
    S,
    /// A number.
    N,
    /// Bytes.
    B,
}

/// A function of the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionSpec {
    /// Its key under `Resources`.
    pub logical_id: String,
    /// `FunctionName`, or else the logical id.
    pub name: String,
    /// The name of the binary that cargo builds for it: `Binary` of its metadata, or else, once the cloud has started, the
    /// one that cargo knows in its directory, or else the logical id.
    pub binary: String,
    /// Where its code is.
    pub code: CodeSpec,
    /// How long one invocation may take.
    pub timeout: Duration,
    /// Configured memory in MB; reported to the function, not enforced.
    pub memory_mb: u32,
    /// `Environment.Variables` of the function over those of `Globals`; queue URLs start with [`SQS_URL_PLACEHOLDER`].
    pub environment: BTreeMap<String, String>,
    /// The variables of it that have the value of a parameter with `NoEcho`, which is shown to no one.
    pub secrets: BTreeSet<String>,
    /// `ApplicationLogLevel` of `LoggingConfig`, if it is given.
    pub log_level: Option<String>,
    /// Its SQS events.
    pub mappings: Vec<MappingSpec>,
}

impl FunctionSpec {
    /// Whether this is the function's name, binary or logical id.
    pub fn is_called(&self, name: &str) -> bool {
        [&self.name, &self.binary, &self.logical_id].into_iter().any(|known| known == name)
    }
}

/// Where a function's code is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeSpec {
    /// `CodeUri`, `Code` or CDK's asset, relative to the template; `None` where the code is in a bucket or inline.
    pub directory: Option<String>,
    /// Whether the template says that cargo builds it.
    pub cargo: bool,
    /// Whether the template names the binary.
    pub binary_is_named: bool,
    /// Whether it is an asset of CDK's, which `cdk synth` bundles.
    pub is_asset: bool,
}

/// An SQS event source mapping of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingSpec {
    /// The function's logical id followed by the event's, as SAM names the mapping, or the mapping's own.
    pub logical_id: String,
    /// Where it stands in the template.
    pub line: usize,
    /// The name of the queue it reads.
    pub queue: String,
    /// Messages per invocation at most.
    pub batch_size: usize,
    /// How long to gather messages before an invocation.
    pub window: Duration,
    /// What a message must match one of to reach the function, if there are any; others are deleted.
    pub filters: Vec<Filter>,
    /// Whether `FunctionResponseTypes` has `ReportBatchItemFailures`.
    pub report_batch_item_failures: bool,
    /// Invocations at the same time at most, when set.
    pub maximum_concurrency: Option<u32>,
    /// Whether it polls at all.
    pub enabled: bool,
}

impl MappingSpec {
    /// Returns a mapping of this name from a queue, with Lambda's defaults, but for that it reports the messages that failed.
    #[must_use]
    pub fn new(logical_id: &str, queue: &str) -> Self {
        Self {
            logical_id: logical_id.to_owned(),
            line: 1,
            queue: queue.to_owned(),
            batch_size: 10,
            window: Duration::ZERO,
            filters: Vec::new(),
            report_batch_item_failures: true,
            maximum_concurrency: None,
            enabled: true,
        }
    }
}

/// Something in a template that AWS would run, or know, and the local cloud does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRun {
    /// The logical id, or the path under `Resources` of what is meant.
    pub what: String,
    /// The type of a resource, or what it is otherwise, such as `Schedule event`.
    pub kind: String,
    /// Where it stands in the template, from 1.
    pub line: usize,
    /// Why it is not run, or what happens instead. Holds no value of a parameter with `NoEcho`.
    pub why: String,
}
