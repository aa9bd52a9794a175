//! What messages come wrapped in: SNS, EventBridge, S3 notifications and CloudEvents, named, or found out by [`detect()`].
//!
//! Key, fingerprint, trace and time come from what is inside, so that a producer's second copy is a duplicate, whatever way it came.
//! What an envelope says besides is [`Message::event`](crate::Message::event). For envelopes of one's own there is the trait
//! [`Envelope`](crate::Envelope).
//!
//! ```
//! use claimant::{Consumer, Context, HandlerError, envelope, memory::MemoryStore};
//!
//! #[derive(serde::Deserialize)]
//! struct Order { order_id: String }
//!
//! async fn confirm(order: Order, cx: Context) -> Result<(), HandlerError> {
//!     let source = cx.message().event().and_then(|event| event.source.as_deref());
//!     println!("{} from {}", order.order_id, source.unwrap_or("the queue itself"));
//!     Ok(())
//! }
//!
//! // Directly, through SNS, through EventBridge, or through both:
//! let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm)
//!     .envelope(envelope::detect())
//!     .key(|order| &order.order_id);
//! // Or those that are named, from the outside to the inside, and nothing else:
//! let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm)
//!     .envelope(envelope::Sns)
//!     .envelope(envelope::EventBridge)
//!     .key(|order| &order.order_id);
//! ```

#[doc(inline)]
pub use claimant_events::{
    ATTRIBUTES_MAX, CloudEvents, Detect, EventBridge, NESTING_MAX, RECORDS_MAX, S3, S3Record, Sns, detect,
};

/// The examples of the chapter compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/envelopes.md")]
mod chapter {}
