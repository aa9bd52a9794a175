//! A sample workload for each function, and what became of it as seen from outside.
//!
//! Pieces of work, a third of them sent two or three times, with broken bodies and with faults at the systems that have the
//! effects. The figures come from the queues, the tables, the mailbox and the gateway, never from a function's own
//! word.
//!
//! | module | holds |
//! | --- | --- |
//! | `sample` | what a sample says: what is sent, and what is seen of it |
//! | `plan` | what is sent, and what must become of it; the same for every function |
//! | `orders`, `payments`, `gift_cards`, `loyalty`, `audit`, `inventory` | one function's `Sample` each: what is sent to it, and where its effects are seen |
//! | `effects` | what the functions have done, and how often, for the control endpoint |
//! | `records` | the records' word, in the lock table or in PostgreSQL |
//! | `route` | where the messages of a function go |
//! | `run` | sending, waiting, looking |
//! | `summary`, `report` | the arithmetic, and what is wrong with it; the table |
//!
//! A function more is a module more with its `Sample`, and a line in `run::SAMPLES`.

mod audit;
mod effects;
mod gift_cards;
mod inventory;
mod loyalty;
mod orders;
mod payments;
mod plan;
mod records;
mod report;
mod route;
mod run;
mod sample;
mod summary;

pub use effects::show_effects;
pub use plan::{COUNT_MAX, Fate, Piece, Plan, Planned, Random};
pub use report::Report;
pub use route::Route;
pub use run::{Progress, Settings, run};
pub use summary::{Figures, Summary};
