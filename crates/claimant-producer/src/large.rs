//! Large payloads: kept outside of their messages, which point to them.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::{ErrorKind, PayloadSink, Written};
use tokio::time::timeout;

use crate::check::BYTES_MAX;
use crate::error::{SendError, SendErrorKind};
use crate::outgoing::Outgoing;
use crate::plan::TryResult;

/// Which payloads are large, and where they are kept.
#[derive(Clone)]
pub(crate) struct LargePayloads {
    sink: Arc<dyn PayloadSink>,
    over_bytes: usize,
}

impl LargePayloads {
    pub(crate) fn new(sink: impl PayloadSink) -> Self {
        Self { sink: Arc::new(sink), over_bytes: BYTES_MAX }
    }

    /// Larger messages than SQS takes are large whatever is set.
    pub(crate) fn over(self, bytes: usize) -> Self {
        Self { over_bytes: bytes.min(BYTES_MAX), ..self }
    }

    /// Notes whether a message is large, with its attributes.
    pub(crate) fn mark(&self, message: Outgoing) -> Outgoing {
        Outgoing { outside: message.bytes() > self.over_bytes, ..message }
    }

    /// Writes a payload, for one try of its message. Each try has a payload of its own: after one without an answer there can be two
    /// messages, and the consumer of the first may remove its payload.
    pub(crate) async fn write(&self, message: &Outgoing, within: Duration) -> Result<Written, TryResult> {
        let failed = |kind, why: String| SendError::new(kind, format!("the payload was not written: {why}"));
        match timeout(within, self.sink.write(message.body.as_bytes())).await {
            Ok(Ok(written)) => Ok(written),
            Ok(Err(error)) if matches!(error.kind(), ErrorKind::Refused | ErrorKind::Invalid) => {
                Err(TryResult::Refused(failed(SendErrorKind::Refused, error.to_string())))
            }
            Ok(Err(error)) => Err(TryResult::Again(failed(SendErrorKind::Failed, error.to_string()))),
            Err(_) => Err(TryResult::Again(failed(SendErrorKind::Failed, "there was no answer in time".to_owned()))),
        }
    }
}
