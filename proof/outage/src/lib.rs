//! A queue whose consumer's downstream is away for half an hour, on virtual time: the real engine, many processes of it, and a model of
//! what is around it.
//!
//! | module | holds |
//! | --- | --- |
//! | `setting` | how much of everything, and which means against the outage are there |
//! | `clock` | the wall clock on virtual time |
//! | [`queue`] | SQS: visibility, receives, what may be in flight, the dead-letter queue |
//! | `mapping` | the event source mapping, and the schedule that switches it on again |
//! | `store` | the lock table, which takes its time, and counts what breakers and rates ask of it |
//! | `world` | what is called, who sends, the processes |
//! | `seen` | what is measured, each second and at the end |
//! | `table`, `plot` | what was measured, for the book |
//! | `book` | what any measurement writes into the book |

mod book;
mod clock;
mod mapping;
mod plot;
pub mod queue;
mod seen;
mod setting;
mod store;
mod table;
mod world;

pub use book::{divisor, markdown, write_into};
pub use clock::VirtualClock;
pub use plot::plot;
pub use seen::{Sample, Seen};
pub use setting::{Means, Setting};
pub use table::{number, table, time};
pub use world::run;
