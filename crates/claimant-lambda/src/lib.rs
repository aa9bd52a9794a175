//! claimant on AWS Lambda: SQS events in, partial batch responses out.
//!
//! | module | holds |
//! | --- | --- |
//! | `run` | [`run`]: the function's whole life; [`Service`]: one invocation after the other |
//! | `event` | records as messages, each checked on its own |
//! | `response` | the report as a partial batch response |
//! | `deadline` | when the invocation ends, also where the runtime does not say |
//! | `visibility` | when failed messages come back |
//! | `logging` | logs by Lambda's variables; panics without their data |

mod deadline;
mod event;
mod logging;
mod response;
mod run;
mod visibility;

pub use run::{Service, run};
