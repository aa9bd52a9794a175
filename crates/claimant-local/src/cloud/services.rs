//! What is behind the endpoints.

use crate::dynamodb::DynamoDb;
use crate::faults::Faults;
use crate::gateway::Gateway;
use crate::journal::Journal;
use crate::mailbox::Mailbox;
use crate::s3::S3;
use crate::scheduler::Scheduler;
use crate::sqs::Sqs;

/// What is behind the endpoints. Clones share it.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) journal: Journal,
    pub(crate) faults: Faults,
    pub(crate) sqs: Sqs,
    pub(crate) dynamodb: DynamoDb,
    pub(crate) mailbox: Mailbox,
    pub(crate) gateway: Gateway,
    pub(crate) s3: S3,
    pub(crate) scheduler: Scheduler,
}
