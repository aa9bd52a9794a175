//! Handlers of many messages in one call, with a result for each: for [`Consumer::batch`](crate::Consumer::batch).
//!
//! ```
//! use claimant::batch::Items;
//! use claimant::memory::MemoryStore;
//! use claimant::{Consumer, HandlerError};
//!
//! async fn pack(orders: Items<u64>) -> Result<Vec<Result<(), HandlerError>>, HandlerError> {
//!     let packed = |order: &u64| if *order == 0 { Err(HandlerError::terminal("there is no order 0")) } else { Ok(()) };
//!     Ok(orders.payloads().map(packed).collect())
//! }
//!
//! let consumer = Consumer::batch("packing", MemoryStore::new(), pack).key(|order| order).items_max(100);
//! ```

#[doc(inline)]
pub use claimant_core::batch::{BatchHandler, BatchResults, Item, Items, TransactionalBatchHandler};
