//! What SQS's answers mean for each message of a request.

use aws_sdk_sqs::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_sqs::operation::send_message_batch::{SendMessageBatchError, SendMessageBatchOutput};
use claimant_aws::endpoints::unread;
use claimant_aws::sqs::{Fate, fate_of, is_throttle};
use claimant_aws::{Unsent, unsent};
use claimant_core::error::Chain;

use crate::error::{SendError, SendErrorKind};
use crate::plan::TryResult;
use crate::sent::Sent;

/// What error codes have in them where the credentials are not accepted.
const NOT_ACCEPTED: [&str; 3] = ["Signature", "Token", "UnrecognizedClient"];

/// What is likely where a parameter is not accepted: most others were checked before it was sent, and this one is the queue's own.
const TOO_LARGE: &str = ": is it larger than the queue's MaximumMessageSize? Set that to 1048576, or give the producer a bucket for large \
                         payloads, and large_over_bytes";

/// Returns the result of each message; for one that the answer does not name, it is unknown.
pub(crate) fn outcomes(output: &SendMessageBatchOutput, count: usize) -> Vec<TryResult> {
    let unnamed = || TryResult::Again(unknown("SQS's answer does not name the message"));
    let mut outcomes: Vec<_> = (0..count).map(|_| unnamed()).collect();
    let index = |id: &str| id.parse::<usize>().ok().filter(|n| *n < count);
    for sent in output.successful().iter().filter(|sent| !sent.message_id().is_empty()) {
        if let Some(n) = index(sent.id()) {
            let sequence_number = sent.sequence_number().map(str::to_owned);
            outcomes[n] = TryResult::Sent(Sent { message_id: sent.message_id().to_owned(), sequence_number });
        }
    }
    for failed in output.failed() {
        if let Some(n) = index(failed.id()) {
            let code = failed.code();
            outcomes[n] = if failed.sender_fault() && !is_throttle(code) {
                let hint = if code.ends_with("InvalidParameterValue") { TOO_LARGE } else { "" };
                let why = format!("SQS refused the message: {code}{hint}");
                TryResult::Refused(SendError::new(SendErrorKind::Refused, why))
            } else {
                TryResult::Again(SendError::new(
                    SendErrorKind::Failed,
                    format!("SQS failed to take the message: {code}"),
                ))
            };
        }
    }
    outcomes
}

/// Returns the result of a request that failed as a whole.
pub(crate) fn refusal(error: &SdkError<SendMessageBatchError>) -> TryResult {
    let SdkError::ServiceError(service) = error else { return unanswered(error) };
    let (code, status) = (service.err().code().unwrap_or("no code"), service.raw().status());
    match fate_of(error) {
        Fate::Throttled => {
            return TryResult::Again(SendError::new(
                SendErrorKind::Failed,
                format!("SQS failed to take the message: {code}"),
            ));
        }
        Fate::Unknown if status.is_server_error() => {
            return TryResult::Again(unknown(&format!("SQS failed with a server error: {code}")));
        }
        Fate::Unknown if !status.is_client_error() => {
            return TryResult::Again(unknown(&unread("SQS", status.as_u16())));
        }
        Fate::Unknown => {
            return TryResult::Again(unknown(&format!("SQS did not get the whole request in time: {code}")));
        }
        Fate::Refused => {}
    }
    let refused = |hint| SendError::new(SendErrorKind::Refused, format!("SQS refused the request: {code}{hint}"));
    // Of these three it is known that they hold for each message: none is tried alone.
    if code.contains("NonExistentQueue") || code.contains("QueueDoesNotExist") {
        TryResult::Refused(refused(": there is no queue with this URL in the client's Region"))
    } else if code.contains("AccessDenied") {
        let hint = ": the role needs sqs:SendMessage for the queue, and kms:GenerateDataKey and kms:Decrypt where its key is \
                    your own";
        TryResult::Refused(refused(hint))
    } else if NOT_ACCEPTED.iter().any(|word| code.contains(word)) {
        TryResult::Refused(refused(": the credentials are not accepted: are they the right ones, and still valid?"))
    } else {
        TryResult::RequestRefused(refused(""))
    }
}

/// Returns the result of a request that has no answer of SQS.
fn unanswered(error: &SdkError<SendMessageBatchError>) -> TryResult {
    let why = Chain(error).to_string();
    match (error, unsent(error)) {
        (SdkError::ConstructionFailure(_), _) => TryResult::RequestRefused(SendError::new(SendErrorKind::Refused, why)),
        (_, Some(Unsent::Misconfigured)) => {
            let why = format!("no request was sent, since the settings of its client are wrong: {why}");
            TryResult::Refused(SendError::new(SendErrorKind::Refused, why))
        }
        (_, Some(Unsent::NoCredentials)) => {
            let hint =
                "is its profile signed in, has the process a role, and can it reach the service that it has them from?";
            let why = format!("no request was sent, since there are no credentials: {hint} ({why})");
            TryResult::Refused(SendError::new(SendErrorKind::Failed, why))
        }
        (_, Some(Unsent::ForNow)) => {
            TryResult::Again(SendError::new(SendErrorKind::Failed, format!("no request was sent: {why}")))
        }
        _ => TryResult::Again(unknown(&why)),
    }
}

/// Returns the error of a message that may be in the queue.
pub(crate) fn unknown(why: &str) -> SendError {
    SendError::new(
        SendErrorKind::Unknown,
        format!("{why}; the message may be in the queue: send it again with the same key"),
    )
}
