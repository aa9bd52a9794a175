//! Sends messages to SQS so that sending them again makes no second piece of work.
//!
//! What makes two messages the same work is their business key, on the producer's side as on the consumer's. On a FIFO queue
//! it gives the deduplication id and, by default, the message group. It never comes from a clock or a random number: a
//! producer that crashes and starts over sends the same ids.
//!
//! ```no_run
//! # mod claimant { pub use claimant_core::*; pub mod producer { pub use claimant_producer::*; } }
//! use claimant::Key;
//! use claimant::producer::{Outgoing, Producer};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let producer = Producer::from_env("ORDERS_QUEUE_URL").await?;
//! let mut orders = Vec::new();
//! for (order_id, customer) in [("o-1001", "ada"), ("o-1002", "ada"), ("o-1003", "grace")] {
//!     let body = format!(r#"{{"order_id":"{order_id}"}}"#);
//!     // One customer's orders stay in their order, on a FIFO queue.
//!     orders.push(Outgoing::new(Key::new(order_id)?, body).group(customer));
//! }
//! for (index, sent) in producer.send_all(orders).await.into_iter().enumerate() {
//!     if let Err(error) = sent {
//!         eprintln!("send order {index} again: {error}");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What happens to a second copy
//!
//! | queue | the second copy |
//! | --- | --- |
//! | FIFO, within five minutes of the first | SQS drops it |
//! | FIFO, later | is delivered; the consumer's key absorbs it |
//! | standard | is delivered; the consumer's key absorbs it |
//!
//! So the consumer's key is what counts, and SQS's window a saving: see `docs/idempotency.md`.
//!
//! | module | holds |
//! | --- | --- |
//! | `outgoing` | [`Outgoing`]: a message to send |
//! | `check` | what SQS would refuse of it |
//! | `id` | ids made from keys |
//! | `large` | payloads that are kept outside of their messages |
//! | `plan` | pure: which messages are sent next, and in which batch |
//! | `producer` | [`Producer`]: the requests |
//! | `answer` | what their answers mean |
//! | `backoff` | how long to wait before the next try |
//! | `schedule` | pure: what a schedule is made of, and whether one that is there is the same (feature `scheduler`) |
//! | `scheduler` | `Scheduler`: messages that are sent at a time of their own (feature `scheduler`) |
//! | `scheduler_request` | its requests, and what their answers mean (feature `scheduler`) |
//! | `sent`, `error` | [`Sent`], [`SendError`] |

mod answer;
mod backoff;
mod check;
mod error;
mod id;
mod large;
mod outgoing;
mod plan;
mod producer;
#[cfg(feature = "scheduler")]
mod schedule;
#[cfg(feature = "scheduler")]
mod scheduler;
#[cfg(feature = "scheduler")]
mod scheduler_request;
mod sent;

pub use error::{SendError, SendErrorKind};
pub use outgoing::Outgoing;
pub use producer::Producer;
#[cfg(feature = "scheduler")]
pub use scheduler::{Cancelled, Scheduled, Scheduler};
pub use sent::Sent;
