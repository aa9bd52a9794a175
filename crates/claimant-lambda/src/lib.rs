//! claimant on AWS Lambda: SQS events in, partial batch responses out.
//!
//! | module | holds |
//! | --- | --- |
//! | `run` | [`run`]: handles invocations until the runtime ends the function |
//! | `settings` | [`Settings`]: read from the environment |
//! | `service` | [`Service`]: handles one invocation |
//! | `direct` | events without a queue: a payload in, its result out |
//! | `wire` | the event as JSON: the batch of a queue |
//! | `event` | records converted to messages, each validated on its own |
//! | `response` | [`Response`]: the report as a partial batch response |
//! | `queue` | extends visibility timeouts, and sends copies to the dead-letter queue |
//! | `letter` | where dead letters are copied to, and their attributes |
//! | `entries` | many entries, asked for in batch requests of SQS |
//! | `visibility` | when failed messages come back |
//! | `schedules` | sends messages again that come back later than SQS can hide them (feature `scheduler`) |
//! | `mapping` | checks whether the event source mapping reports failures |
//! | `observe` | the line of a batch, which is its metric record, and all metric names |
//! | `deadline` | when the invocation ends, also if the runtime does not say |
//! | `flush` | exports spans at the end of an invocation |
//! | `logging` | log level and format from Lambda's variables; panics logged without payload data |
//!
//! # Dead letters
//!
//! With `CLAIMANT_DEAD_LETTER_QUEUE_URL`, a rejected or parked message is copied to that queue at once, and is reported
//! done when the queue has confirmed the copy; else it is reported failed, and the redrive of its own queue moves it.
//! The copy has the body, the group, all of the message's own attributes, `claimant-error`, `claimant-outcome` and `claimant-message-id`, and as
//! far as SQS's limits of ten attributes and 1 MiB allow, `claimant-record`, `claimant-first-message-id` (after a redrive, or where it was
//! sent again) and `claimant-redrives` (after a redrive), then `claimant-consumer` (in the place of the record where there is none), and `claimant-attempt`. Where the first of
//! these are more than SQS takes, or one of the message's own has no value of its type, there is no copy. SQS does not know which queue such a copy came from, so a redrive needs an explicit destination. The queue has to be in the
//! function's Region. A copy can be sent twice, if SQS's response or the deletion is lost. Messages
//! of that queue itself are not copied: a function may read its own dead-letter queue, and what is rejected there goes by redrive.

#[cfg(test)]
mod child;
mod deadline;
mod direct;
mod entries;
mod event;
mod flush;
#[cfg(test)]
mod fuzz;
mod letter;
mod logging;
mod mapping;
mod observe;
mod queue;
mod response;
mod run;
mod schedules;
mod service;
mod settings;
mod visibility;
mod wire;

pub use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
pub use direct::NotDone;
pub use logging::init as init_logs;
pub use response::Response;
pub use run::{run, run_with_direct_events};
pub use service::Service;
pub use settings::Settings;
pub use wire::QueueBatch;
