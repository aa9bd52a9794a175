//! The parts of this crate that the inbox uses, beside the store in PostgreSQL.
//!
//! Public for `claimant-inbox` alone, and no promise to anybody else: it changes without notice.

pub use crate::error::Table;
pub use crate::migrations::Migrations;
#[cfg(feature = "postgres")]
pub use crate::postgres::{CLEAR, SESSION, explain, migrate};
pub use crate::reasons::fix_of_unread;
pub use crate::record::{bigint, time};
#[cfg(feature = "postgres")]
pub use crate::transaction::of_inbox;
