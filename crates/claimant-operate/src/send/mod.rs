//! Messages for trying things out: sent once, twice, out of order, in bulk, in whatever envelope they would come in.
//!
//! | module | holds |
//! | --- | --- |
//! | `envelope` | [`Envelope`]: what SNS, EventBridge, S3 and CloudEvents put around a body |
//! | `sample` | [`Sample`]s: messages that a project keeps in files |
//! | `plan` | [`Batch`]: what is asked for, and the messages that it comes to. Pure |
//! | `again` | [`SentBefore`]: a message of a local cloud, as it was sent |
//! | `sender` | [`Sender`]: sends them, and says what SQS confirmed |

mod again;
mod envelope;
mod plan;
mod sample;
mod sender;

pub use again::SentBefore;
pub use envelope::{Envelope, Wrapping};
pub use plan::{Batch, MESSAGES_MAX, NUMBER, Planned, fresh_number};
pub use sample::{SAMPLES_MAX, Sample, Samples};
pub use sender::{SHOWN_MAX, Sender, SentReport};
