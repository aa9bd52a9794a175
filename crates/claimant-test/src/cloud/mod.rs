//! The built function: alone, or with its queues.
//!
//! | type | has |
//! | --- | --- |
//! | [`Stage`] | one function's binary behind the Lambda runtime API, an embedded DynamoDB, a dead-letter queue; the test delivers, and kills the process at a request |
//! | [`TestCloud`] | one function of a template with its queues, tables and mapping, in the local cloud; the test sends |
//!
//! Both are on 127.0.0.1, in memory, in real time, and end with their test. `claimant-local` is the local cloud itself.

mod test_cloud;

pub use claimant_local::Error;
pub use claimant_local::cloud::Cloud;
pub use claimant_local::dynamodb::Item;
pub use claimant_local::gateway::Gateway;
pub use claimant_local::lambda::{Function, Invocation};
pub use claimant_local::mailbox::Mailbox;
pub use claimant_local::stage::{Gate, Hold, LOCK_TABLE, Stage, StageConfig};
pub use test_cloud::{PATIENCE, TestCloud, TestCloudConfig};
