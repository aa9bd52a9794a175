//! A sample workload for `order-confirmation`, and what became of it as seen from outside.
//!
//! Orders, a third of them sent two or three times, with some broken bodies and some addresses whose first mail is
//! refused. The figures come from the queues, the lock table and the mailbox, never from the function's own word.

mod run;
mod sample;
mod summary;

pub use run::{FUNCTION, Progress, Report, Settings, run};
pub use sample::{ORDERS_MAX, Order, Planned, Workload};
pub use summary::{Observed, Summary};
