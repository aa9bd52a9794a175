//! SQS consumers on AWS Lambda that do each message's work once.
//!
//! SQS delivers at least once: producers send twice, functions time out, processes die between the effect and the
//! acknowledgement. A claimant function claims each message's key in a lock table with a conditional write, runs the
//! handler, completes the claim, and reports what failed, so that what failed comes back and what succeeded does not.
//!
//! ```no_run
//! use claimant::{Consumer, Context, HandlerError, LockTable, Settings, Terminal};
//!
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     order_id: String,
//!     customer_email: String,
//! }
//!
//! async fn confirm(order: Order, cx: Context) -> Result<(), HandlerError> {
//!     let address = parse(&order.customer_email).terminal()?; // permanent: not tried again
//!     send(address, cx.key()).await?;                         // anything else: retried with backoff
//!     Ok(())
//! }
//! # fn parse(text: &str) -> Result<&str, std::fmt::Error> { Ok(text) }
//! # async fn send(_to: &str, _key: &str) -> Result<(), std::fmt::Error> { Ok(()) }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), claimant::Error> {
//!     let settings = Settings::from_env(&["CLAIMANT_TABLE"])?;
//!     let table = LockTable::from_settings(&settings).await?;
//!     let consumer = Consumer::new("order-confirmation", table, confirm).key(|o: &Order| &o.order_id);
//!     claimant::lambda::run(&settings, consumer).await
//! }
//! ```
//!
//! What is promised, and what is not, stands in `ARCHITECTURE.md`.

pub use claimant_core::*;

/// The AWS configuration that all of a function's clients share.
pub mod aws {
    pub use claimant_aws::config;
}

#[cfg(feature = "dynamodb")]
pub use claimant_dynamodb::{AttributeNames, LockTable, OptimisticTransactions, TableTransactions, Transaction};
#[cfg(feature = "redis")]
pub use claimant_redis::RedisStore;

#[cfg(feature = "mysql")]
pub use claimant_sql::{MySqlStore, MySqlTransaction, MySqlTransactions};
#[cfg(feature = "postgres")]
pub use claimant_sql::{PgTransaction, PostgresStore, PostgresTransactions};

/// The inbox: messages are stored in PostgreSQL first, then worked off in transactions.
#[cfg(feature = "inbox")]
pub mod inbox {
    pub use claimant_inbox::{
        AfterDeath, Counts, Entry, Inbox, InboxContext, Limits, Summary, Transaction, Worker, limits,
    };
}

/// AWS Lambda: SQS events in, partial batch responses out.
#[cfg(feature = "lambda")]
pub mod lambda {
    pub use claimant_lambda::{Service, run};
}

/// Sending messages to SQS so that sending again makes no second piece of work.
#[cfg(feature = "producer")]
pub mod producer {
    pub use claimant_producer::{Outgoing, Producer, SendError, SendErrorKind, Sent};
}

/// The examples of the documents compile.
#[cfg(all(doctest, feature = "dynamodb", feature = "lambda", feature = "producer"))]
mod documents {
    #[doc = include_str!("../../../docs/guarantees.md")]
    struct Guarantees;

    #[doc = include_str!("../../../docs/idempotency.md")]
    struct Idempotency;
}
