//! claimant on AWS Lambda: SQS events in, partial batch responses out.
//!
//! | module | holds |
//! | --- | --- |
//! | `run` | [`run`]: the function's whole life |
//! | `settings` | [`Settings`]: what the environment sets |
//! | `service` | [`Service`]: one invocation |
//! | `event`, `trace` | records as messages, each checked on its own; the producer's trace |
//! | `response` | the report as a partial batch response |
//! | `queue` | messages hidden longer, and copies in the dead-letter queue |
//! | `visibility` | when failed messages come back |
//! | `mapping`, `list_mappings` | whether the event source mapping reports failures; the request that asks |
//! | `observe` | the numbers of a batch: log line and metric record, and all their names |
//! | `deadline` | when the invocation ends, also where the runtime does not say |
//! | `logging` | logs by Lambda's variables; panics without their data |
//!
//! # Dead letters
//!
//! With `CLAIMANT_DEAD_LETTER_QUEUE_URL`, a rejected or parked message is copied to that queue at once, and is reported
//! done when the queue has confirmed the copy; else it is reported failed, and the redrive of its own queue moves it.
//! The copy has the body, `claimant-error`, `claimant-outcome`, `claimant-consumer`, `claimant-record`, `claimant-message-id`,
//! `claimant-attempt`, after a redrive `claimant-first-message-id` and `claimant-redrives`, and as many of its own
//! attributes, by name, as SQS's limit of ten allows. SQS knows no source queue for such a copy: to
//! redrive it, name the destination. The queue is one of the function's own Region; a copy that is larger than SQS
//! allows, or has no body, it does not take. A copy can be there twice, where SQS's answer or the deletion was lost.

mod deadline;
mod event;
#[cfg(test)]
mod fuzz;
mod list_mappings;
mod logging;
mod mapping;
mod observe;
mod queue;
mod response;
mod run;
mod service;
mod settings;
mod trace;
mod visibility;

pub use run::run;
pub use service::Service;
pub use settings::Settings;
