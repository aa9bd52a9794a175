//! SQS consumers on AWS Lambda that do each message's work once.
//!
//! SQS delivers at least once: producers send twice, functions time out, processes die between the effect and the
//! acknowledgement. A claimant function claims each message's idempotency key in a lock table with a conditional write, runs
//! the handler, completes the claim, and reports what failed, so that what failed comes back and what succeeded does not.
//!
//! ```no_run
//! use claimant::{Consumer, Context, HandlerError, Terminal, dynamodb::LockTable};
//!
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     order_id: String,
//!     customer_email: String,
//! }
//!
//! async fn confirm(order: Order, cx: Context) -> Result<(), HandlerError> {
//!     let address = parse(&order.customer_email).terminal()?; // permanent: straight to the dead-letter queue
//!     send(address, cx.key()).await?;                         // anything else: retried with backoff
//!     Ok(())
//! }
//! # fn parse(text: &str) -> Result<&str, std::fmt::Error> { Ok(text) }
//! # async fn send(_to: &str, _key: &str) -> Result<(), std::fmt::Error> { Ok(()) }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), claimant::Error> {
//!     let table = LockTable::from_env().await?;
//!     claimant::lambda::run(Consumer::new("order-confirmation", table, confirm).key(|order| &order.order_id)).await
//! }
//! ```
//!
//! A handler is an `async fn`, a closure, or a type with state that implements [`Handler`]. One that is to commit its writes
//! together with the completion of the message is a [`TransactionalHandler`].
//!
//! # Modules and features
//!
//! | module | holds | feature |
//! | --- | --- | --- |
//! | the root | the consumer, what its handler sees and returns, and [`variables`] for settings of your own | |
//! | `lambda` | AWS Lambda: SQS events in, partial batch responses out | `lambda`, on by default |
//! | `dynamodb` | the lock table, and handlers' writes in its transactions | `dynamodb`, on by default |
//! | `redis` | the store in Redis, Valkey or MemoryDB | `redis` |
//! | `postgres`, `mysql` | the stores in PostgreSQL, MySQL and MariaDB, and handlers' writes in their transactions | `postgres`, `mysql` |
//! | `inbox` | messages are stored in PostgreSQL first, then worked off in transactions | `inbox`, which brings `postgres` |
//! | `producer` | sends messages so that sending again makes no second piece of work; by `Scheduler`, at a time of their own | `producer`; `scheduler` |
//! | `s3` | payloads that messages only point to, in S3 | `s3` |
//! | `otel` | spans of messages in OpenTelemetry | `otel` |
//! | – | a release logs at `info` and above only, in all of its crates: it is half a megabyte smaller, and no setting lets it print bodies | `release_max_level_info`, for programs, not for libraries |
//! | [`payloads`] | where payloads are kept outside of their messages, for those who write such a place | |
//! | [`envelope`] | what messages come wrapped in: SNS, EventBridge, S3, CloudEvents | |
//! | [`batch`] | handlers of many messages in one call | |
//! | [`decode`] | text, bytes and Base64; Protobuf, Avro and gzip | `protobuf`, `avro`, `gzip` |
//! | [`memory`] | the store in memory, for tests | |
//! | [`engine`] | one batch at a time, by hand: in tests, or outside Lambda | |
//! | `aws` | the AWS configuration that all of a function's clients share | with `lambda`, `dynamodb`, `producer` or `s3` |
//! | [`limits`] | bounds and defaults | |
//! | [`store`] | the contract of a store, for those who write one | |
//! | [`spans`] | what is reported to a tracing system, for those who write one | |
//!
//! # What is stable
//!
//! All that this crate shows, by [semantic versioning](https://semver.org). For a store of one's own, a new clause of the contract that it does not keep is a
//! break; a new method of [`store::Store`] with a default is none. Types of other crates that appear here, such as the AWS SDK's clients and
//! `sqlx`'s pools, are part of it. The crates beneath this one (`claimant-core`, `claimant-dynamodb` and so on) are internal: depend on `claimant` alone,
//! and in tests on `claimant-test`. Enums and
//! structs that can grow are `#[non_exhaustive]`. Nothing here panics, whatever it is given, on a Tokio runtime with its timers
//! (`enable_time`): what is wrong with a consumer is said in one error when it starts.

#[doc(inline)]
pub use claimant_core::attributes::{AttributeValue, Attributes};
#[doc(inline)]
pub use claimant_core::clock::{Clock, SystemClock, Timestamp};
#[doc(inline)]
pub use claimant_core::consumer::Consumer;
#[doc(inline)]
pub use claimant_core::context::Context;
#[doc(inline)]
pub use claimant_core::duplicate::Duplicate;
#[doc(inline)]
pub use claimant_core::envelope::Envelope;
#[doc(inline)]
pub use claimant_core::error::{Error, ErrorKind};
#[doc(inline)]
pub use claimant_core::event::Event;
#[doc(inline)]
pub use claimant_core::failure::{FailureKind, HandlerError, Terminal};
#[doc(inline)]
pub use claimant_core::fingerprint::Fingerprint;
#[doc(inline)]
pub use claimant_core::handler::{Handler, TransactionalHandler};
#[doc(inline)]
pub use claimant_core::key::{InvalidValue, Key};
#[doc(inline)]
pub use claimant_core::message::Message;
#[doc(inline)]
pub use claimant_core::rejection::{Fault, Rejection};
#[doc(inline)]
pub use claimant_core::routes::{Consumers, Routes, Values};
#[doc(inline)]
pub use claimant_core::settings::Variables;
#[doc(inline)]
pub use claimant_core::transaction::{TransactionGuard, TransactionSlot};
#[doc(inline)]
pub use claimant_core::{BoxFuture, Breaker, Conflicts, DecodedBy, Fence, Lease, Limit, decoded_by};
pub use settings::{variables, variables_of};

pub mod envelope;
mod settings;

/// The AWS configuration that all of a function's clients share: one HTTP client, one set of credentials.
///
/// ```no_run
/// # async fn example() -> Result<(), claimant::Error> {
/// let dynamodb = aws_sdk_dynamodb::Client::new(claimant::aws::config().await?);
/// # Ok(())
/// # }
/// ```
#[cfg(any(feature = "dynamodb", feature = "lambda", feature = "producer", feature = "s3"))]
pub mod aws {
    #[doc(inline)]
    pub use claimant_aws::{Later, config, config_without_retries, http_client, is_unsent};
}

/// The lock table in DynamoDB, and handlers' writes in its transactions.
///
/// ```no_run
/// use aws_sdk_dynamodb::types::Put;
/// use claimant::dynamodb::{LockTable, Transaction};
/// use claimant::{Consumer, Context, HandlerError, TransactionGuard};
///
/// async fn pack(order: u64, mut tx: TransactionGuard<Transaction>, cx: Context) -> Result<(), HandlerError> {
///     let item = Put::builder().table_name("packed").condition_expression("attribute_not_exists(id)");
///     # let item = item.item("id", aws_sdk_dynamodb::types::AttributeValue::S(cx.key().to_owned()));
///     tx.put(item.build()?).or_terminal("it is packed already"); // written together with the completion, or not at all
///     Ok(())
/// }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), claimant::Error> {
///     let table = LockTable::from_env().await?.transactions();
///     claimant::lambda::run(Consumer::transactional("packing", table, pack).key(|order| order)).await
/// }
/// ```
#[cfg(feature = "dynamodb")]
pub mod dynamodb {
    #[doc(inline)]
    pub use claimant_dynamodb::{
        AttributeNames, Condition, LockTable, OptimisticTransactions, Settings, TABLES_MAX, TRANSACTION_MAX_BYTES,
        TRANSACTION_WRITES_MAX, TableTransactions, Tables, Transaction,
    };
}

/// The store in Redis, Valkey or MemoryDB.
///
/// ```no_run
/// use claimant::redis::RedisStore;
/// # use claimant::{Consumer, Context, HandlerError};
/// # async fn confirm(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
///
/// # async fn example() -> Result<(), claimant::Error> {
/// let consumer = Consumer::new("order-confirmation", RedisStore::from_env()?, confirm).key(|order| order);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "redis")]
pub mod redis {
    #[doc(inline)]
    pub use claimant_redis::{RedisStore, Settings};
}

/// The store in PostgreSQL, and handlers' writes in its transactions.
///
/// ```no_run
/// use claimant::postgres::{PgTransaction, PostgresStore, PostgresTransactions};
/// use claimant::{Consumer, Context, HandlerError, TransactionGuard};
///
/// async fn pack(order: i64, mut tx: TransactionGuard<PgTransaction>, _: Context) -> Result<(), HandlerError> {
///     sqlx::query("INSERT INTO packed (id) VALUES ($1)").bind(order).execute(&mut *tx).await?;
///     Ok(())
/// }
///
/// # async fn example() -> Result<(), claimant::Error> {
/// let store = PostgresTransactions::new(PostgresStore::from_env().await?);
/// let consumer = Consumer::transactional("packing", store, pack).key(|order| order);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "postgres")]
pub mod postgres {
    #[doc(inline)]
    pub use claimant_sql::{
        CONNECTIONS_DEFAULT, PgTransaction, PostgresStore, PostgresTransactions, Settings, SqlTransaction,
    };
}

/// The store in MySQL and MariaDB, and handlers' writes in its transactions: as the module `postgres`.
#[cfg(feature = "mysql")]
pub mod mysql {
    #[doc(inline)]
    pub use claimant_sql::{
        CONNECTIONS_DEFAULT, MySqlStore, MySqlTransaction, MySqlTransactions, Settings, SqlTransaction,
    };
}

/// The inbox: messages are stored in PostgreSQL first, then worked off in transactions, with a count of attempts of its own.
///
/// One function takes messages in ([`Inbox::intake`](inbox::Inbox::intake)): a message is a success once its row was seen
/// committed. Another one works them off ([`Worker`](inbox::Worker)), on a schedule or for ever: a handler for each event type,
/// whose writes commit together with the end of the message. Messages of a FIFO queue keep the order of their group.
#[cfg(feature = "inbox")]
pub mod inbox {
    #[doc(inline)]
    pub use claimant_inbox::{
        AfterDeath, Counts, Entry, EntryStatus, EntryTimes, FinishedCounts, Inbox, InboxContext, Limits, Settings,
        StateChange, Summary, Transaction, Worker, limits,
    };
}

/// AWS Lambda: SQS events in, partial batch responses out.
///
/// [`run`](lambda::run) is the last call in a function's `main`: see the [first example](crate). What the environment sets is in
/// [`Settings`](lambda::Settings). [`Service`](lambda::Service) is for functions that call the runtime themselves, and for tests.
#[cfg(feature = "lambda")]
pub mod lambda;

/// Sends messages to SQS so that sending again makes no second piece of work.
///
/// ```no_run
/// use claimant::Key;
/// use claimant::producer::{Outgoing, Producer};
///
/// # async fn example() -> Result<(), claimant::Error> {
/// let producer = Producer::from_env("ORDERS_QUEUE_URL").await?;
/// producer.send(Outgoing::new(Key::new("ord-1")?, r#"{"order_id": "ord-1"}"#)).await?;
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "producer")]
pub mod producer {
    #[cfg(feature = "scheduler")]
    #[doc(inline)]
    pub use claimant_producer::{Cancelled, Scheduled, Scheduler};
    #[doc(inline)]
    pub use claimant_producer::{Outgoing, Producer, SendError, SendErrorKind, Sent};
}

#[cfg(feature = "otel")]
pub mod otel;

#[cfg(feature = "s3")]
pub mod s3;

/// Payloads that are kept outside of their messages, for those who write a place for them.
pub mod payloads {
    #[doc(inline)]
    pub use claimant_core::payloads::{FetchError, PayloadSink, PayloadSource, Pointer, Room, Written};
}

pub mod batch;

pub mod decode;

/// The store in memory: for tests, and for trying things out. It forgets all when its process ends.
pub mod memory {
    #[doc(inline)]
    pub use claimant_core::memory::MemoryStore;
}

pub mod engine;

/// Bounds and defaults of what can be set.
pub mod limits {
    #[doc(inline)]
    pub use claimant_core::key::{
        CONSUMER_NAME_MAX_BYTES, KEY_MAX_BYTES, MESSAGE_ID_MAX_BYTES, RECORD_ID_PLAIN_MAX_BYTES,
    };
    #[doc(inline)]
    pub use claimant_core::limits::{
        BACKOFF_BASE_MS, BACKOFF_FACTOR, BACKOFF_MAX_MS, BREAKER_CALLS_MAX, BREAKER_OPEN_MAX_MS, BREAKER_OPEN_MIN_MS,
        BUSY_WAIT_MAX_MS, CONCURRENCY_DEFAULT, CONCURRENCY_MAX, DEAD_LETTERS_BATCH_MAX, ITEMS_DEFAULT, ITEMS_MAX,
        LEASE_MAX_MS, LEASE_MIN_MS, LIMIT_CALLS_MAX, LIMIT_SLOTS_DEFAULT, LIMIT_SLOTS_MAX, MARGIN_DEFAULT_MS,
        MARGIN_MAX_MS, QUEUE_RETENTION_MAX_S, RECEIVES_MAX, RECEIVES_MAX_DEFAULT, SKEW_DEFAULT_MS, SKEW_MAX_MS,
        UNPACKED_BATCH_MAX_BYTES, VISIBILITY_MAX_S, WINDOW_DEFAULT_S, WINDOW_MAX_S, WINDOW_MIN_S,
    };
    #[doc(inline)]
    pub use claimant_core::record::{ERROR_MAX_BYTES, RESULT_MAX_BYTES};
}

/// What is reported to a tracing system of messages and their steps, for those who write one: [`Consumers::spans`] takes it.
pub mod spans {
    #[doc(inline)]
    pub use claimant_core::spans::{MessageSpan, SendSpan, SpanIdentity, Spans, Step, StepSpan};
}

/// The contract of a store, for those who write one.
///
/// The enums of the protocol are exhaustive on purpose: a store has to handle every decision, also one that a later version
/// adds.
pub mod store {
    #[doc(inline)]
    pub use claimant_core::store::{
        BatchedClaim, Call, ClaimAnswer, Renewed, Settled, Store, StoreError, StoreErrorKind,
    };
    #[doc(inline)]
    pub use claimant_core::{
        Abandoned, AnyTransaction, BatchTransactional, Claim, ConsumerName, Failure, Meter, OwnerToken, Record,
        RecordId, Status, Transactional, Usage, protocol,
    };
}

/// The examples of the chapter on decoders compile.
#[cfg(all(doctest, feature = "avro", feature = "gzip", feature = "protobuf"))]
#[doc = include_str!("../../../docs/decoders.md")]
mod decoders {}

/// The examples of the documents compile.
#[cfg(all(doctest, feature = "dynamodb", feature = "lambda", feature = "producer"))]
mod documents {
    #[doc = include_str!("../../../docs/breaker.md")]
    #[doc = include_str!("../../../docs/rate.md")]
    struct Breakers;

    #[doc = include_str!("../../../docs/guarantees.md")]
    struct Guarantees;

    #[doc = include_str!("../../../docs/idempotency.md")]
    struct Idempotency;

    #[doc = include_str!("../../../docs/keys.md")]
    struct Keys;

    #[doc = include_str!("../../../docs/outcomes.md")]
    struct Outcomes;

    #[cfg(feature = "otel")]
    #[doc = include_str!("../../../docs/telemetry.md")]
    struct Telemetry;

    #[cfg(feature = "s3")]
    #[doc = include_str!("../../../docs/large-payloads.md")]
    struct LargePayloads;

    #[cfg(feature = "scheduler")]
    #[doc = include_str!("../../../docs/producer.md")]
    struct Producer;
}
