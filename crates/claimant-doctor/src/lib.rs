//! Checks of SQS consumers on AWS Lambda, whatever language and library they are written in.
//!
//! What cannot be known is [`Fact::Unknown`](fact::Fact::Unknown), and no check says anything that depends on it.
//!
//! | module | holds |
//! | --- | --- |
//! | `catalog` | the checks: what each is about, why, when a finding is fine, where AWS says so |
//! | `fact` | what is known, and what is not |
//! | `model` | what the checks look at, whether a template or an account describes it |
//! | `link` | what a value leads to |
//! | `mapping` | event source mappings |
//! | `place` | where something stands |
//! | `access` | keys and policies of queues and tables |
//! | `alarm` | alarms on queues |
//! | `environment` | a function's variables |
//! | `history` | what the last day's metrics say |
//! | `rights` | what a role may do |
//! | `checks` | the checks: pure functions from the model to answers |
//! | `finding` | findings and the report |
//! | `template` | the model of a template |
//! | `account` | the model of what is deployed, and its last day |
//! | `output` | a report as text, JSON and SARIF |

mod access;
pub mod account;
mod alarm;
mod catalog;
mod checks;
mod environment;
pub mod fact;
mod finding;
mod history;
mod link;
mod mapping;
pub mod model;
mod output;
mod place;
pub mod rights;
mod template;

pub use catalog::{CATALOG, CHECKS, Check};
pub use checks::run;
pub use finding::{Accepted, Finding, Level, Report, Tally};
pub use output::{json, sarif, text};
pub use template::{Error, Options, examine_all, read, read_all, read_as_one};
