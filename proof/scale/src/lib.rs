//! DynamoDB's partitions at 20,000 messages a second, on virtual time: the real engine and the real lock table in many processes, and a
//! model of the table's capacity.
//!
//! | module | holds |
//! | --- | --- |
//! | `case`, `cases` | the load, the function and the tables of a run; those of the book |
//! | `bucket`, `partition`, [`capacity`] | units that come back by the second; what takes them; a table's partitions, and how they grow |
//! | `wire` | between the SDK's clients and the simulated DynamoDB |
//! | `world` | who sends, the event source mapping, the processes |
//! | `seen` | what is measured, and what must not happen |
//! | `table` | what was measured, for the book |

mod bucket;
pub mod capacity;
mod case;
mod cases;
mod partition;
mod seen;
mod table;
mod wire;
mod world;

pub use case::{Case, TableSpec};
pub use cases::{cases, staying};
pub use seen::{Sample, Seen};
pub use table::{minutes, table};
pub use world::run;
