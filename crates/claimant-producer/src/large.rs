//! Large payloads: kept outside of their messages, which point to them.

use std::time::Duration;

use claimant_core::{ErrorKind, PayloadSink, Written};
use tokio::time::timeout;

use crate::error::{SendError, SendErrorKind};
use crate::outgoing::Outgoing;
use crate::plan::TryResult;

/// Writes a payload, for one try of its message. Each try has a payload of its own: after one without an answer there can be two
/// messages, and the consumer of the first may remove its payload.
pub(crate) async fn write(sink: &dyn PayloadSink, message: &Outgoing, within: Duration) -> Result<Written, TryResult> {
    let failed = |kind, why: &str| SendError::new(kind, format!("the payload was not written: {why}"));
    match timeout(within, sink.write(message.body.as_bytes())).await {
        Ok(Ok(written)) => Ok(written),
        Ok(Err(error)) if matches!(error.kind(), ErrorKind::Refused | ErrorKind::Invalid) => {
            Err(TryResult::Refused(failed(SendErrorKind::Refused, &error.to_string())))
        }
        Ok(Err(error)) => Err(TryResult::Again(failed(SendErrorKind::Failed, &error.to_string()))),
        Err(_) => {
            let why =
                format!("there was no answer within {} ms, the longest that one try may take", within.as_millis());
            Err(TryResult::Again(failed(SendErrorKind::Failed, &why)))
        }
    }
}
