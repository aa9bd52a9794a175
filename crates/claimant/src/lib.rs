//! SQS consumers on AWS Lambda that do each message's work once.
//!
//! SQS delivers at least once: producers send twice, functions time out, processes die between the effect and the
//! acknowledgement. A claimant function claims each message's key in a lock table with a conditional write, runs the
//! handler, completes the claim, and reports what failed, so that what failed comes back and what succeeded does not.
//!
//! ```no_run
//! use claimant::{Consumer, Context, HandlerError, LockTable, Terminal};
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
//!     let table = LockTable::from_env().await?;
//!     let consumer = Consumer::new("order-confirmation", table, confirm).key(|o: &Order| &o.order_id);
//!     claimant::lambda::run(consumer).await
//! }
//! ```
//!
//! What is promised, and what is not, stands in `ARCHITECTURE.md`.

pub use claimant_core::*;

/// Returns a reader of the environment that has read every setting of claimant in this program: for a function's own
/// variables, so that one message names all that is wrong with any of them, unknown `CLAIMANT_` names included.
///
/// ```no_run
/// # async fn example() -> Result<(), claimant::Error> {
/// let mut variables = claimant::variables();
/// let sender = variables.text("SENDER_ADDRESS");
/// // Ends reading: `sender` may be used after it.
/// let table = claimant::LockTable::from_variables(variables).await?;
/// # Ok(())
/// # }
/// ```
pub fn variables() -> Variables {
    read_settings(Variables::from_env())
}

fn read_settings(mut variables: Variables) -> Variables {
    #[cfg(feature = "dynamodb")]
    claimant_dynamodb::Settings::read(&mut variables);
    #[cfg(feature = "lambda")]
    claimant_lambda::Settings::read(&mut variables);
    #[cfg(feature = "redis")]
    claimant_redis::Settings::read(&mut variables);
    #[cfg(feature = "inbox")]
    claimant_inbox::Settings::read(&mut variables);
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    claimant_sql::Settings::read(&mut variables);
    variables.refuse_unknown()
}

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
    use claimant_core::{Consumer, Error};
    pub use claimant_lambda::{Service, Settings};

    /// Runs a consumer as a Lambda function until the runtime ends it: the last call in `main`. Reads the function's
    /// [`Settings`] from the environment; the first call that does so lists every fault, unknown `CLAIMANT_` names included.
    ///
    /// # Errors
    /// When the settings of the environment or of the consumer are not usable, or there is no Lambda runtime to talk to.
    pub async fn run<T>(consumer: Consumer<T>) -> Result<(), Error>
    where
        T: for<'de> serde::Deserialize<'de> + Send + 'static,
    {
        claimant_lambda::run(crate::variables(), consumer).await
    }
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

#[cfg(all(test, feature = "dynamodb", feature = "lambda", feature = "postgres"))]
mod tests {
    use super::*;

    fn variables(vars: &[(&str, &str)]) -> Variables {
        read_settings(Variables::new(vars.iter().copied()))
    }

    #[test]
    fn faults_of_every_part_and_of_the_function_are_in_one_message() {
        let vars = [
            ("CLAIMANT_TABLE", " "),
            ("CLAIMANT_CONCURRENCY", "0"),
            ("CLAIMANT_MARGIN_MS", "soon"),
            ("CLAIMANT_VISIBILITY", "yes"),
            ("CLAIMANT_MAPPING_CHECK", "on"),
            ("CLAIMANT_DEAD_LETTER_QUEUE_URL", "dead"),
            ("CLAIMANT_DATABASE_CONNECTIONS", "1001"),
            ("CLAIMANT_TABEL", "locks"),
            ("CLAIMANT_NONSENSE", "x"),
        ];
        let mut reader = variables(&vars);
        reader.text("SENDER");
        let text = reader.finish().unwrap_err().to_string();
        let wanted = [
            "10 faults",
            "CLAIMANT_TABLE is set but empty",
            "CLAIMANT_CONCURRENCY is \"0\"",
            "from 1 to 1000",
            "CLAIMANT_MARGIN_MS",
            "`on` or `off`",
            "CLAIMANT_MAPPING_CHECK is \"on\"; `warn` or `refuse` or `off` is needed",
            "not its name or ARN",
            "CLAIMANT_DATABASE_CONNECTIONS is \"1001\"",
            "CLAIMANT_TABEL is no variable of claimant: did you mean CLAIMANT_TABLE?",
            "CLAIMANT_NONSENSE is no variable of claimant: there are CLAIMANT_BATCH, ",
            "SENDER is not set",
        ];
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }

    #[tokio::test]
    async fn a_store_needs_its_own_variables_and_takes_those_of_other_parts() {
        let mut reader = variables(&[("CLAIMANT_DATABASE_URL", "postgres://h/d"), ("CLAIMANT_TABEL", "locks")]);
        reader.text("SENDER");
        let text = LockTable::from_variables(reader).await.unwrap_err().to_string();
        for wanted in ["3 faults", "CLAIMANT_TABLE is not set", "SENDER is not set", "CLAIMANT_TABEL is no variable"] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
        let others = [("CLAIMANT_TABLE", "locks"), ("CLAIMANT_METRICS", "off"), ("CLAIMANT_BATCH", "on")];
        PostgresStore::from_variables(variables(
            &[&others[..], &[("CLAIMANT_DATABASE_URL", "postgres://h/d")]].concat(),
        ))
        .await
        .unwrap();
    }
}
