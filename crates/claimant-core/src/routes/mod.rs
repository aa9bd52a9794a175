//! Several consumers in one function: each message goes to the one that is found for it.
//!
//! | module | holds |
//! | --- | --- |
//! | `consumers` | what a user says: values, and the consumers that they lead to |
//! | `select`, `field` | by what messages are routed |
//! | `table` | the destination of each event of a message |
//! | `plan` | what goes to its consumer at once, and what in order (pure) |
//! | `dispatch` | one invocation; what becomes of a message of several events says `engine::progress` |
//! | `router` | the engines of several consumers, as one |

mod consumers;
mod dispatch;
mod field;
mod plan;
mod router;
mod select;
mod table;

#[cfg(test)]
pub(crate) use field::{Unreadable, read as read_field};

pub use consumers::{Consumers, Routes, Values};
pub use router::{Router, RouterReport};
