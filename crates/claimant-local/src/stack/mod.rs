//! `template.yaml` (AWS SAM) read into what the local cloud starts: queues, tables, buckets, functions and mappings.
//!
//! The same file that deploys also runs locally, as SAM, CloudFormation, or what `cdk synth` writes. What AWS would refuse
//! is a fault, with its file and line, and all faults are reported together. What AWS would take and the local cloud does
//! not run is listed in [`Stack::not_run`]. A resource whose `Condition` is false is left out.
//!
//! | module | holds |
//! | --- | --- |
//! | `spec` | what a template comes to: [`Stack`] and all in it |
//! | `template` | the template and its parameters |
//! | `findings` | what is wrong with a template, and what of it is not run |
//! | `section` | a place in the template: values with functions evaluated, every fault recorded with its place |
//! | `evaluate` | CloudFormation's functions |
//! | `resolve` | what resources are called here: names, URLs and ARNs |
//! | `parameters` | what the values of parameters must be |
//! | `conditions` | `Conditions`, and which resources they leave out |
//! | `queues` | queues |
//! | `resources` | tables and buckets |
//! | `functions` | functions, and whether their code can run here |
//! | `events` | SQS events and event source mappings |
//! | `relations` | what must hold between resources |
//! | `not_run` | what is not run, and how it is listed |

mod conditions;
mod evaluate;
mod events;
mod findings;
mod functions;
mod not_run;
mod parameters;
mod queues;
mod read;
mod relations;
mod resolve;
mod resources;
mod section;
mod spec;
mod template;
#[cfg(test)]
mod tests;

use claimant_template as yaml;

pub use crate::arn::{ACCOUNT_ID, REGION};
pub use spec::{
    CodeSpec, FunctionSpec, GATEWAY_URL_PLACEHOLDER, KeyKind, KeySpec, LeftOut, MappingSpec, NotRun, QueueSpec,
    SQS_URL_PLACEHOLDER, Stack, TableSpec,
};
