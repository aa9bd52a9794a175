//! What SQS consumers on AWS Lambda cost a month: computed from a template, a rate and a table of prices.
//!
//! How many units a message takes is held to the engine by a test; how full batches are is an estimate, unless given.
//!
//! | module | holds |
//! | --- | --- |
//! | `deployed`, `records` | what a template says of each function, and of where its records are |
//! | `noting` | what is assumed where it does not say |
//! | `load` | what it does not say: how many messages come, and what they are like |
//! | `plan` | guarantees and stores |
//! | `prices` | the table of prices, `prices.yaml`, and one's own |
//! | `batches` | how full batches are, how long they take, how often the queue is asked |
//! | `units` | what a message asks of the lock table |
//! | `bill` | the lines of a bill |
//! | `limits` | which limit is met first |
//! | `advice` | which settings lower the bill |
//! | `report` | all of it for one deployment |
//! | `chart` | a picture of a bill against the rate |
//! | `output` | a report as text and as JSON |

mod advice;
mod batches;
mod bill;
mod chart;
mod deployed;
mod limits;
mod load;
mod noting;
mod output;
mod plan;
mod prices;
mod records;
mod report;
mod units;

pub use advice::Advice;
pub use batches::{Batches, Requests, duration_ms};
pub use bill::{FunctionBill, LINE_LOG_BYTES, Line, METRICS, RECORD_LOG_BYTES, stored_gb};
pub use chart::chart;
pub use deployed::{Deployed, Polled, Runs, deployed};
pub use limits::{Limit, SharedLimit};
pub use load::{Load, MONTH_DAYS, Traffic, Work};
pub use output::{json, text};
pub use plan::{Guarantee, Store};
pub use prices::{Price, Prices};
pub use records::{Records, Tables};
pub use report::{Choice, Detail, Report, report};
pub use units::{RECORD_BYTES, Units};
