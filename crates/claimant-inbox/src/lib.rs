//! claimant's inbox: messages are stored in PostgreSQL first, then worked off in transactions, with a count of attempts of
//! its own.
//!
//! | module | holds |
//! | --- | --- |
//! | `inbox`, `operate`, `status` | [`Inbox`]: opening it, and what people do with it |
//! | `intake`, `pending`, `offer` | a consumer whose store is the inbox; what is stored of a message; the statement that stores it |
//! | `worker`, `run` | [`Worker`]: its settings; when it looks for messages, and how many it takes |
//! | `attempt`, `handlers`, `context` | one attempt, from its transaction to its end; handlers by event type; what they see |
//! | `rows` | every statement of the worker, and what keeps the order |
//! | `transaction`, `link` | [`Transaction`]; one statement within its time |
//! | `values`, `error`, `migrations`, `limits` | columns, errors, the table (also as plain SQL in `migrations/`), bounds |
//!
//! ```no_run
//! # mod claimant { pub use claimant_core::*; pub mod inbox { pub use claimant_inbox::*; } }
//! use claimant::inbox::{Inbox, InboxContext, Limits, Transaction};
//! use claimant::{Error, HandlerError, TransactionGuard};
//!
//! #[derive(serde::Deserialize)]
//! struct Event { id: String, #[serde(rename = "type")] kind: String }
//!
//! #[derive(serde::Deserialize)]
//! struct Placed { order_id: String }
//!
//! async fn placed(order: Placed, mut tx: TransactionGuard<Transaction>, cx: InboxContext) -> Result<(), HandlerError> {
//!     let insert = sqlx::query("INSERT INTO orders (id, message) VALUES ($1, $2)");
//!     insert.bind(order.order_id).bind(cx.message_id()).execute(&mut **tx).await?;
//!     Ok(())
//! }
//!
//! # async fn example() -> Result<(), Error> {
//! let inbox = Inbox::connect("postgres://user:password@host/database?sslmode=verify-full", 10).await?;
//! // One function takes in: give this to `claimant::lambda::run`.
//! let intake = inbox.intake("orders", |event: &Event| &event.kind).key(|event| &event.id);
//! // Another one works off, on a schedule or for ever.
//! let worker = inbox.worker("orders").on("order.placed", placed);
//! worker.run_once(Limits::within(std::time::Duration::from_secs(60))).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Taking in
//!
//! The intake is an ordinary consumer whose store is the inbox (`Consumer::storing`): its
//! claims write nothing, and the completion of a claim stores the message. The other way, an intake beside the engine, was
//! sketched too: it would have had to repeat deadlines, lanes of FIFO groups, conflicts, dead letters and reports, which
//! here are the engine's.
//!
//! A message is a success once its row, or an earlier one with the same fingerprint, was seen committed. (With
//! `synchronous_commit = off`, that says less than it should: leave it on.)
//!
//! # Working off
//!
//! Each attempt is counted, in a statement of its own, before its handler runs; the same statement says when the message is due
//! again if the end of the attempt is never written. So nothing need be noticed when a worker dies, and a message that
//! kills its worker each time is dead when its attempts are used up. The next attempt after such an end runs alone in
//! its worker: those that were under way beside it are tried again without it.
//!
//! The handler's transaction holds the row's lock from before the handler runs until the row's end is committed with the handler's
//! work. A handler's failure, panic or timeout rolls it back.
//!
//! An event type without a handler is a failure like any other: tried again, since a worker that knows it may be on its way,
//! and dead in the end. A body that is not of its handler's shape is dead at once.
//!
//! # Order
//!
//! Messages of FIFO queues keep the order of their group: none is begun before all earlier ones of it are done or discarded.
//! A dead one holds up its group until a person decides, unless the worker says otherwise ([`AfterDeath`]). Other
//! messages are taken oldest first, and end in any order.
//!
//! # Time
//!
//! Every time that is compared is the caller's, as everywhere in claimant. Where clocks differ, messages are begun that much
//! later or earlier; locks, not clocks, keep two from working on one message.
//!
//! # Requests
//!
//! | step | statements |
//! | --- | --- |
//! | taking in | 1 for up to 25 messages of a batch; in a FIFO queue, 1 for each place in its groups |
//! | working off | 4 for each message, with `BEGIN` and `COMMIT`, and 1 for all that are taken together: up to the concurrency |
//! | a failed attempt | 4, and 1 in its place among those taken together; 7 where the message is then dead |
//! | an idle worker | 1 for each look |
//!
//! Connections that come back to the pool are tried out besides, by 2 empty queries that no caller waits for. Workers look for
//! messages; they do not listen for them: `LISTEN` takes a connection for itself, does not go through poolers, and a
//! scheduled function is not there to hear.
//!
//! # Cleaning up
//!
//! [`Inbox::delete_finished`], in portions. There is no variant with partitions to be dropped: a unique index over all of
//! them, which is what keeps duplicates out, does not exist in PostgreSQL.
//!
//! # Permissions
//!
//! `SELECT`, `INSERT` and `UPDATE` on the table `claimant_inbox`; `DELETE` for `delete_finished`; for `migrate` what it takes to
//! create tables.

mod attempt;
mod context;
mod error;
mod handlers;
mod inbox;
mod intake;
pub mod limits;
mod link;
mod migrations;
mod offer;
mod operate;
mod pending;
mod rows;
mod run;
mod status;
mod transaction;
mod values;
mod worker;

pub use claimant_sql::Settings;
pub use context::InboxContext;
pub use inbox::Inbox;
pub use operate::{Counts, Entry, EntryTimes};
pub use run::{Limits, Summary};
pub use status::{EntryStatus, StateChange};
pub use transaction::Transaction;
pub use worker::{AfterDeath, Worker};
