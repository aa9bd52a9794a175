//! How cost grows, and the whole way on one machine: `make growth` and `make throughput`.
//!
//! | module | holds |
//! | --- | --- |
//! | `dimensions`, `side_by_side` | what there is more and more of: records, messages, keys, groups; processes |
//! | `lab` | the store in this process, and workers on it |
//! | [`worker`] | a process that is measured |
//! | `table` | what was measured, each row with a verdict |
//! | [`throughput`] | producer, queue, mapping, function and table at the highest rate that keeps the queue empty |
//! | `process` | what Linux tells of a process |

mod dimensions;
mod lab;
mod process;
mod side_by_side;
mod table;
pub mod throughput;
pub mod worker;

pub use dimensions::{Extent, run};
pub use table::{Row, Table, bounds};
