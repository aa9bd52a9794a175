//! The claim protocol and the batch engine of claimant, for any queue, store and runtime.
//!
//! | module | holds |
//! | --- | --- |
//! | [`key`], `claim`, [`clock`], [`fingerprint`], [`record`] | the values, checked at the edge |
//! | [`protocol`] | the pure decisions; nothing else decides |
//! | [`store`], `store_error`, [`records`], [`memory`] | the contract of a store, its errors, what operators ask of one, and the reference store |
//! | [`transaction`], `batch_transactions` | a transaction that a claim carries and its handler borrows; one for many claims |
//! | [`message`], `delivered`, [`attributes`], [`trace`], [`context`], [`handler`], [`batch`], [`failure`], [`duplicate`] | what a user's function sees, and what it returns |
//! | [`consumer`], `definition`, `rules`, `options`, `tuning` | a named handler, its rules and its options |
//! | [`envelope`], [`event`], `content`, [`decode`], `forms`, `reader`, `identity`, [`rejection`] | how a message is read: what it is wrapped in, its payload, its key and fingerprint; errors of invalid ones |
//! | `payload`, `json` | a payload, whatever its type; a JSON text for fingerprints, without a tree of it |
//! | [`own_attributes`] | the names of the attributes that claimant itself writes |
//! | [`payloads`] | payloads that are kept outside of their messages |
//! | `invocation_time`, [`engine`], [`report`] | a batch in, one outcome for each message out |
//! | [`routes`] | several consumers in one function, and which message goes to which |
//! | [`backoff`], `budget` | when failed calls and messages are tried again |
//! | [`mod@breaker`] | when messages are held back, since a system that their handlers call is away |
//! | [`limit`] | how many messages all processes start a second, or at once |
//! | `threads`, `panics` | the threads that handlers run on and can block; panics of code that is not claimant's own |
//! | `queue`, [`intake`], `meter` | what the engine asks of the queue, and of what lets its messages in; what it asked of the store |
//! | [`spans`] | what is reported to a tracing system of messages and their steps |
//! | [`settings`], `secret`, [`limits`], [`error`] | settings, their bounds and their errors |

pub mod attributes;
pub mod backoff;
pub mod batch;
mod batch_transactions;
pub mod breaker;
mod budget;
mod claim;
pub mod clock;
pub mod consumer;
mod content;
pub mod context;
pub mod decode;
mod definition;
mod delivered;
pub mod duplicate;
pub mod engine;
pub mod envelope;
pub mod error;
pub mod event;
pub mod failure;
pub mod fingerprint;
mod forms;
#[cfg(test)]
mod fuzz;
pub mod handler;
mod identity;
pub mod intake;
mod invocation_time;
mod json;
pub mod key;
pub mod limit;
pub mod limits;
pub mod memory;
pub mod message;
mod meter;
mod options;
pub mod own_attributes;
#[doc(hidden)]
pub mod panics;
mod payload;
pub mod payloads;
pub mod protocol;
mod queue;
mod reader;
pub mod record;
pub mod records;
pub mod rejection;
pub mod report;
pub mod routes;
mod rules;
mod secret;
pub mod settings;
pub mod spans;
pub mod store;
mod store_error;
mod threads;
pub mod trace;
pub mod transaction;
mod tuning;

pub use attributes::{AttributeValue, Attributes};
pub use batch::{BatchHandler, BatchResults, Item, Items, TransactionalBatchHandler};
pub use batch_transactions::BatchTransactional;
pub use breaker::Breaker;
pub use budget::Budget;
pub use claim::{Claim, Fence, OwnerToken};
pub use clock::{Clock, SystemClock, Timestamp};
pub use consumer::{Consumer, DecodedBy, decoded_by};
pub use context::Context;
pub use decode::Decoder;
pub use duplicate::Duplicate;
pub use engine::Engine;
pub use envelope::Envelope;
pub use error::{Error, ErrorKind};
pub use event::Event;
pub use failure::{Failure, FailureKind, HandlerError, Terminal};
pub use fingerprint::Fingerprint;
/// A future in a box: what the methods of stores, queues and their like return, so that any of them can be behind a `dyn`.
pub use futures_util::future::BoxFuture;
pub use handler::{Handler, TransactionalHandler};
pub use intake::{Intake, Paused};
pub use invocation_time::InvocationTime;
pub use key::{ConsumerName, InvalidValue, Key, MessageId, RecordId};
pub use limit::Limit;
pub use memory::MemoryStore;
pub use message::Message;
pub use meter::{Meter, Usage};
pub use options::Lease;
pub use payloads::{FetchError, PayloadSink, PayloadSource, Pointer, Room, Written};
pub use protocol::{Abandoned, Conflicts};
pub use queue::{Confirmation, HideAnswer, NoQueue, Queue, SendAgain};
pub use record::{Record, Status};
pub use records::{Cursor, Filter, Page, Records, Replaced, Size, State};
pub use rejection::{Fault, Rejection};
pub use report::{DeadLetter, DeadLetterReason, Details, Entry, HandlerResult, Latencies, Outcome, Report, Totals};
pub use routes::{Consumers, Router, RouterReport, Routes};
pub use secret::SecretUrl;
pub use settings::Variables;
pub use spans::{MessageSpan, SendSpan, SpanIdentity, Spans, Step, StepSpan};
pub use store::{BatchedClaim, Call, ClaimAnswer, Renewed, Settled, Store, StoreError, StoreErrorKind, Transactional};
pub use threads::HandlerThreads;
pub use transaction::{AnyTransaction, TransactionGuard, TransactionSlot};
