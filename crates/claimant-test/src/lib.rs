//! Tests of consumers that are written with `claimant`.
//!
//! A handler's test is a table of everything that can happen to a message, and what must have come of it:
//!
//! ```
//! # use claimant_core as claimant;
//! use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
//! use claimant_test::{Effects, Scenario, TestMessage, TestQueue};
//!
//! #[derive(Clone, serde::Deserialize, serde::Serialize)]
//! struct Order { order_id: String }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! # /* the test begins here:
//! #[tokio::test(start_paused = true)]
//! async fn each_order_gets_one_mail() {
//! # */
//!     for scenario in Scenario::all() {
//!         let mails = Effects::new();
//!         let (orders, mail) = ([TestMessage::json(&Order { order_id: "ord-1".into() })], mails.clone());
//!         let confirm = move |_: Order, cx: Context| { let mail = mail.clone(); async move { mail.request(cx.key(), "a mail").await } };
//!         let queue = TestQueue::new(Consumer::new("mails", MemoryStore::new(), confirm).key(|order| &order.order_id));
//!         queue.play(&scenario, &orders).await.assert_done();
//!         assert_eq!(mails.once(), ["ord-1: a mail"], "{scenario}");
//!     }
//! }
//! ```
//!
//! [`Scenario::all`] is: as it comes, delivered twice, sent twice, in another order, to two processes at once, with lost answers of
//! the store, and with a process that dies, or stands still, at each of its steps. On Tokio's paused time all of it takes
//! milliseconds.
//!
//! | module | holds |
//! | --- | --- |
//! | [`message`], [`s3`], [`events`] | [`TestMessage`]: messages in the envelopes of SNS, EventBridge, S3 and `CloudEvents`, and events of functions with them |
//! | [`test_queue`], [`scenario`], [`played`] | [`TestQueue`]: a queue in memory with a consumer or routes behind it; what happens there; what came of it |
//! | `backlog`, `receiver`, `worker`, `life` | its messages; the queue as an invocation sees it; what works on them; processes that die or stand still |
//! | `probe`, `pass_on`, `records`, `envelopes` | what stands between a consumer and its store, and passes calls on; its records; what a body is wrapped in |
//! | [`effects`] | [`Effects`]: a system that has the handler's effects, and recognises a repeat by its key |
//! | [`transactions`] | [`MemoryTransactions`]: a transactional store in memory, with any type of transaction |
//! | [`payloads`] | [`MemoryPayloads`]: large payloads in memory, to which messages point |
//! | [`clock`] | [`MovableClock`]: a clock that is moved by hand |
//! | [`faulty`] | [`FaultyStore`]: a store that fails as scripted |
//! | [`scripted_queue`] | [`ScriptedQueue`]: a queue that answers as scripted, for tests of one batch |
//! | `cloud` (feature `cloud`) | the built function: alone, behind the Lambda runtime API, or in the local cloud with its queues |
//!
//! What fails panics, and says at which step of which scenario: this crate is for tests alone.

mod backlog;
pub mod clock;
#[cfg(feature = "cloud")]
pub mod cloud;
pub mod effects;
mod envelopes;
pub mod events;
pub mod faulty;
mod life;
pub mod message;
mod pass_on;
pub mod payloads;
pub mod played;
mod probe;
mod receiver;
mod records;
pub mod s3;
pub mod scenario;
pub mod scripted_queue;
pub mod test_queue;
pub mod transactions;
mod worker;

pub use clock::{MovableClock, TEST_EPOCH};
pub use effects::Effects;
pub use events::{event, event_from, message_ids};
pub use faulty::{Call, Fault, FaultyStore};
pub use message::TestMessage;
pub use payloads::MemoryPayloads;
pub use played::Played;
pub use s3::S3Object;
pub use scenario::Scenario;
pub use scripted_queue::{DeadLetterQueue, ScriptedQueue};
pub use test_queue::TestQueue;
pub use transactions::MemoryTransactions;
