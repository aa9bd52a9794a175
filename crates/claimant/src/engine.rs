//! One batch at a time, by hand: for tests of whole consumers, and for running them outside Lambda. There, the program sets up its logs: by
//! `claimant::lambda::init_logs`, or a `tracing` subscriber and a panic hook of its own; `docs/your-own-consumer.md` has a worker that receives by itself. Build it with `panic = "unwind"`, as `claimant::lambda::run`
//! demands: otherwise a handler that panics ends the work on all other messages.
//!
//! ```
//! use std::time::Duration;
//!
//! use claimant::engine::{Engine, InvocationTime, Message, NoQueue};
//! use claimant::memory::MemoryStore;
//! use claimant::{Consumer, Context, HandlerError};
//!
//! async fn pack(order: u64, _: Context) -> Result<(), HandlerError> {
//!     if order == 0 { Err(HandlerError::terminal("there is no order 0")) } else { Ok(()) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), claimant::Error> {
//! let engine = Engine::with_defaults(Consumer::new("packing", MemoryStore::new(), pack).key(|order| order))?;
//! let batch = [Message::new("m-1", "7")?, Message::new("m-2", "7")?, Message::new("m-3", "0")?];
//! let time = InvocationTime::new(engine.now(), engine.now().plus(Duration::from_secs(30)), Duration::from_millis(500));
//! let report = engine.process(&batch, time, &NoQueue).await;
//! let outcomes: Vec<_> = report.entries().iter().map(|entry| entry.outcome.word()).collect();
//! assert_eq!(outcomes, ["completed", "duplicate", "rejected"]);
//! # Ok(())
//! # }
//! ```

#[doc(inline)]
pub use claimant_core::intake::{Intake, is_early_enough};
#[doc(inline)]
pub use claimant_core::own_attributes::SENT_AGAIN_OF;
#[doc(inline)]
pub use claimant_core::{
    Confirmation, DeadLetter, DeadLetterReason, Details, Engine, Entry, HandlerResult, HandlerThreads, HideAnswer,
    InvocationTime, Latencies, Message, MessageId, NoQueue, Outcome, Queue, Rejection, Report, Router, RouterReport,
    SendAgain, Totals,
};
