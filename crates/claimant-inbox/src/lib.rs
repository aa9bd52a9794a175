//! claimant's inbox.

mod attempt;
mod context;
mod handlers;
mod inbox;
mod intake;
pub mod limits;
mod link;
mod migrations;
mod offer;
mod operate;
mod rows;
mod run;
mod transaction;
mod trouble;
mod values;
mod worker;

pub use context::InboxContext;
pub use inbox::Inbox;
pub use operate::{Counts, Entry};
pub use run::{Limits, Summary};
pub use transaction::Transaction;
pub use worker::{AfterDeath, Worker};
