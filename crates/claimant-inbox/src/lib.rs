//! claimant's inbox: messages are stored in PostgreSQL first, then processed in transactions, with an attempt count of
//! its own.
//!
//! | module | holds |
//! | --- | --- |
//! | `inbox`, `operate`, `status` | [`Inbox`]: opens it; what operators do with it |
//! | `intake`, `pending`, `offer` | a consumer whose store is the inbox; what is stored of a message; the statement that stores it |
//! | `worker`, `run`, `summary` | [`Worker`]: its settings; when it polls for messages, and how many it takes; what it did |
//! | `downstream` | the breaker and the limit of what handlers call |
//! | `attempt`, `dead` | one attempt, from its transaction to its end; rows that are tried no more |
//! | `handlers`, `context` | handlers by event type; their context |
//! | `rows` | every statement of the worker, and how the order is kept |
//! | `transaction`, `link` | [`Transaction`]; one statement within its time |
//! | `connections` | how many connections handlers may have; the one beside the pool |
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
//!     insert.bind(order.order_id).bind(cx.message_id()).execute(&mut *tx).await?;
//!     Ok(())
//! }
//!
//! # async fn example() -> Result<(), Error> {
//! let inbox = Inbox::connect("postgres://user:password@host/database?sslmode=verify-full", 10).await?;
//! // One function stores: pass this to `claimant::lambda::run`.
//! let intake = inbox.intake("orders", |event: &Event| &event.kind).key(|event| &event.id);
//! // Another one processes, on a schedule or continuously.
//! let worker = inbox.worker("orders").on("order.placed", placed);
//! worker.run_once(Limits::within(std::time::Duration::from_secs(60))).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Storing
//!
//! The intake is an ordinary consumer whose store is the inbox (`Consumer::storing`): its
//! claims write nothing, and the completion of a claim stores the message. The alternative, an intake beside the engine,
//! would have to repeat the engine's deadlines, lanes of FIFO groups, conflicts, dead letters and reports.
//!
//! The statement that stores has two seconds, and a second more for each 4 MiB of bodies, however long the invocation is. What a slower line does
//! not bring in that time stays in its queue, up to its redrive; a smaller `.payload_max_bytes(…)` rejects it at once.
//!
//! A message is successful once its row, or an earlier one with the same fingerprint, was seen committed. (With
//! `synchronous_commit = off`, a commit can be lost in a crash: connections that an inbox opens itself have it on.)
//!
//! # Processing
//!
//! Each attempt is counted, in a statement of its own, before its handler runs; the same statement says when the message is due
//! again if the end of the attempt is never written: after the longest that an attempt takes, which is the handler's timeout
//! and 14 s (16 s with a limit), or its backoff if that is longer. Until then no other worker takes it, as with SQS's
//! visibility timeout. So the death of a worker need not be detected, and a message that kills its worker each time is dead
//! when its attempts are exhausted. The next attempt after such an end runs alone in its worker: messages that were in flight
//! beside it are tried again without it.
//!
//! Each attempt reads its body as it locks its row: it has five seconds, and the handler's time, of which it takes what it needs beyond them. One
//! that does not come, over a slow line or from a damaged table, is a failure like any other; the server then ends the transaction that still
//! sends it, as below. While it is read, it keeps its turn of a limit: another one might not come in its time.
//!
//! The handler's transaction holds the row's lock from before the handler runs until the row's end is committed with the handler's
//! work. A handler's failure, panic or timeout rolls it back. Where a statement is then in flight and does not end within 2 s, or the handler
//! returned and kept the transaction, the server ends it together with its connection: that takes one connection beside the pool, one at a time.
//!
//! An event type without a handler is a failure like any other: retried, since a worker that knows the type may be deployed soon,
//! and dead in the end. A message whose body does not decode as its handler's type is dead at once, and so is one whose row another program
//! has changed to what no worker can read; what is taken beside it runs all the same.
//!
//! # Order
//!
//! Messages of FIFO queues keep the order of their group: none is begun before all earlier ones of its group are done or discarded.
//! A dead one blocks its group until an operator decides, unless the worker says otherwise ([`AfterDeath`]). Other
//! messages are taken oldest first, and end in any order.
//!
//! A dead one that is retried is an earlier one again: what was taken of its group and has not begun is given back. To know of each other, the
//! retry takes an advisory lock of the group, which attempts share from their `BEGIN` on, in the same message to the server.
//!
//! # Time
//!
//! All times come from the caller, as everywhere in claimant. If clocks differ, messages are begun that much
//! later or earlier; locks, not clocks, keep two workers from processing one message.
//!
//! # Requests
//!
//! | step | statements |
//! | --- | --- |
//! | storing | 1 for up to 25 messages of a batch; in a FIFO queue, 1 for each position within its groups |
//! | processing | 4 for each message, with `BEGIN` and `COMMIT`, and 1 for all that are taken together: up to the concurrency |
//! | a failed attempt | 4, and its share of the 1 for all that are taken together; 7 if the message is then dead |
//! | an idle worker, or one that waits for its limit | 1 for each poll |
//!
//! Connections that return to the pool are also cleared of what a handler left in their session, and tested, by 2 requests that no caller
//! waits for. Workers poll for messages and do not use `LISTEN`: it takes a connection for itself, does not work through poolers, and a
//! scheduled function is not running all the time.
//!
//! # Cleaning up
//!
//! [`Inbox::delete_finished`], in portions. Dropping partitions instead is not possible: PostgreSQL has no unique index
//! over all partitions, which deduplication needs.
//!
//! # Permissions
//!
//! `SELECT`, `INSERT` and `UPDATE` on the table `claimant_inbox`; for `delete_finished` `SELECT`, `UPDATE` (it locks what it deletes) and
//! `DELETE`; for `migrate` the rights to create tables, `CREATE` on the first schema of the `search_path`, and to own what is there.

mod attempt;
mod connections;
mod context;
mod dead;
mod downstream;
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
mod summary;
mod transaction;
mod values;
mod worker;

pub use claimant_sql::Settings;
pub use context::InboxContext;
pub use inbox::Inbox;
pub use operate::{Counts, Entry, EntryTimes, FinishedCounts};
pub use status::{EntryStatus, StateChange};
pub use summary::{Limits, Summary};
pub use transaction::Transaction;
pub use worker::{AfterDeath, Worker};
