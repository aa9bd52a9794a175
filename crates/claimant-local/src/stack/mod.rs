//! `template.yaml` (AWS SAM) read into what the local cloud starts: queues, tables, functions and mappings.
//!
//! The same file that deploys also runs locally, as SAM, CloudFormation, or what `cdk synth` writes. What AWS would refuse
//! is a fault, with its file and line, and all faults are reported together. What AWS would take and the local cloud does
//! not run is named in [`Stack::not_run`], nothing in silence. A resource whose `Condition` is false is left out.
//!
//! | module | holds |
//! | --- | --- |
//! | `yaml` | YAML and JSON as a tree whose values know their line |
//! | `template` | the template, its parameters, and a cursor that records what it finds with its place |
//! | `loops` | `Fn::ForEach` |
//! | `evaluate` | CloudFormation's functions |
//! | `resolve` | what resources are called here: names, URLs and ARNs |
//! | `parameters` | what the values of parameters must be |
//! | `conditions` | `Conditions`, and which resources they leave out |
//! | `resources` | queues and tables |
//! | `functions` | functions, and whether their code can run here |
//! | `events` | SQS events and event source mappings |
//! | `relations` | what must hold between resources |
//! | `not_run` | what is not run, and how it is told |

mod conditions;
mod evaluate;
mod events;
mod functions;
mod loops;
mod not_run;
mod parameters;
mod relations;
mod resolve;
mod resources;
mod template;
#[cfg(test)]
mod tests;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use crate::Error;
use crate::mapping::Filter;
use crate::sqs::QueueSettings;

pub use not_run::NotRun;
pub(crate) use resolve::function_arn;
use template::{Findings, Template};

/// What a queue's URL starts with until the cloud knows its port: replace it in every environment value.
pub const SQS_URL_PLACEHOLDER: &str = "http://sqs.local";

/// What stands for the local payment gateway: an environment value that is this URL, or a path under it, gets the gateway's
/// address instead. It is a template's sample value, so that the same template runs locally without a parameter.
pub const GATEWAY_URL_PLACEHOLDER: &str = "https://gateway.example";

/// The Region of everything local.
pub const REGION: &str = "us-east-1";

/// The longest template, in bytes: CloudFormation takes none that is longer.
const TEXT_MAX: usize = 1_048_576;

/// The account of everything local.
pub const ACCOUNT_ID: &str = "000000000000";

/// Everything in a template that runs locally.
#[derive(Debug, Clone)]
pub struct Stack {
    /// The queues, in the template's order.
    pub queues: Vec<QueueSpec>,
    /// The DynamoDB tables, in the template's order.
    pub tables: Vec<TableSpec>,
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
    /// Its SQS events.
    pub mappings: Vec<MappingSpec>,
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

impl Stack {
    /// Reads the template at `path`; `parameters` override the template's defaults.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is neither YAML nor JSON (the message has the line), or has faults (the message has all,
    /// each with its line).
    pub fn load(path: &Path, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        let place = path.display().to_string();
        let mut yaml = String::new();
        // One byte more tells a template that is too long; a device that never ends is one, too.
        let read = File::open(path).and_then(|file| file.take(TEXT_MAX as u64 + 1).read_to_string(&mut yaml));
        read.map_err(|e| {
            Error::new(format!(
                "cannot read the template {place}: check that the path exists and may be read, or name another one"
            ))
            .caused_by(e)
        })?;
        Self::read(&place, &yaml, parameters)
    }

    /// Reads a template from its text; `parameters` override the template's defaults.
    ///
    /// # Errors
    ///
    /// The text is neither YAML nor JSON (the message has the line), or has faults (the message has all of them, each with
    /// its line).
    pub fn parse(yaml: &str, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        Self::read("the template", yaml, parameters)
    }

    fn read(place: &str, yaml: &str, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        if yaml.len() > TEXT_MAX {
            return Err(Error::new(format!(
                "{place} has more than {TEXT_MAX} bytes, which CloudFormation refuses: split it into several templates"
            )));
        }
        let root = yaml::parse(yaml)
            .map_err(|e| Error::new(format!("{place}:{}: this is not valid YAML: {}", e.line, e.what)))?;
        if !root.get("Resources").is_some_and(yaml::Node::is_map) {
            return Err(Error::new(format!(
                "{place} has no `Resources`: give the path of an AWS SAM or CloudFormation template"
            )));
        }
        let findings = Findings::default();
        let template = Template::new(&root, parameters, &findings);
        parameters::check(&template);
        let mut stack = Self {
            queues: resources::queues(&template),
            tables: resources::tables(&template),
            functions: functions::functions(&template),
            left_out: conditions::left_out(&template),
            not_run: Vec::new(),
        };
        not_run::note_other_resources(&template);
        relations::leave_out_foreign_queues(&mut stack, &template);
        relations::check(&stack, &template);
        drop(template);
        findings.into_result(place).map(|not_run| Self { not_run, ..stack })
    }
}
