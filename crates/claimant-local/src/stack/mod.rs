//! `template.yaml` (AWS SAM) read into what the local cloud starts: queues, tables, functions and mappings.
//!
//! The same file that deploys also runs locally. Only what the local cloud needs is read; other resource types and
//! outputs are passed over, and a resource whose `Condition` is false is left out. What is needed but wrong is a fault, and all faults are reported together.
//!
//! | module | holds |
//! | --- | --- |
//! | `template` | the YAML, its parameters, and a cursor that records faults with their place |
//! | `resolve` | `!Ref`, `!GetAtt`, `!Sub` and `!Join`, with the local account, Region and names |
//! | `conditions` | `Conditions`, and which resources they leave out |
//! | `resources` | queues and tables |
//! | `functions` | functions and their SQS events |
//! | `relations` | what must hold between resources |

mod conditions;
mod functions;
mod relations;
mod resolve;
mod resources;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::Error;
use crate::sqs::QueueSettings;

pub(crate) use resolve::function_arn;
use template::{Faults, Template};

/// What a queue's URL starts with until the cloud knows its port: replace it in every environment value.
pub const SQS_URL_PLACEHOLDER: &str = "http://sqs.local";

/// What stands for the local payment gateway: an environment value that is this URL, or a path under it, gets the gateway's
/// address instead. It is a template's sample value, so that the same template runs locally without a parameter.
pub const GATEWAY_URL_PLACEHOLDER: &str = "https://gateway.example";

/// The Region of everything local.
pub const REGION: &str = "us-east-1";

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
    /// The name of the binary that cargo builds for it.
    pub binary: String,
    /// How long one invocation may take.
    pub timeout: Duration,
    /// Configured memory in MB; reported to the function, not enforced.
    pub memory_mb: u32,
    /// `Environment.Variables` of the function over those of `Globals`; queue URLs start with [`SQS_URL_PLACEHOLDER`].
    pub environment: BTreeMap<String, String>,
    /// Its SQS events.
    pub mappings: Vec<MappingSpec>,
}

/// An SQS event source mapping of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingSpec {
    /// The function's logical id followed by the event's, as SAM names the mapping.
    pub logical_id: String,
    /// The name of the queue it reads.
    pub queue: String,
    /// Messages per invocation at most.
    pub batch_size: usize,
    /// How long to gather messages before an invocation.
    pub window: Duration,
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
    /// The file cannot be read, is not YAML (the message has line and column), or has faults (the message has all).
    pub fn load(path: &Path, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        let place = path.display().to_string();
        let yaml = std::fs::read_to_string(path).map_err(|e| {
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
    /// The text is not YAML (the message has line and column), or has faults (the message has all of them).
    pub fn parse(yaml: &str, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        Self::read("the template", yaml, parameters)
    }

    fn read(place: &str, yaml: &str, parameters: &BTreeMap<String, String>) -> Result<Self, Error> {
        let root: serde_yaml_ng::Value =
            serde_yaml_ng::from_str(yaml).map_err(|e| Error::new(format!("{place} is not valid YAML: {e}")))?;
        if !root.get("Resources").is_some_and(serde_yaml_ng::Value::is_mapping) {
            return Err(Error::new(format!("{place} has no `Resources`: give the path of an AWS SAM template")));
        }
        let faults = Faults::default();
        let template = Template::new(&root, parameters, &faults);
        let stack = Self {
            queues: resources::queues(&template),
            tables: resources::tables(&template),
            functions: functions::functions(&template),
            left_out: conditions::left_out(&template),
        };
        relations::check(&stack, &faults);
        faults.into_result(place).map(|()| stack)
    }
}
