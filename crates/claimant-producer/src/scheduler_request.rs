//! One request to EventBridge Scheduler: its tries, and what their answers mean.

use std::time::Duration;

use aws_sdk_scheduler::error::{ProvideErrorMetadata, SdkError};
use claimant_aws::endpoints::unread;
use claimant_aws::sqs::{Fate, fate_of};
use claimant_aws::{Unsent, unsent};
use claimant_core::error::Chain;
use tokio::time::{Instant, sleep, timeout_at};

use crate::backoff::backoff;
use crate::error::{SendError, SendErrorKind};

/// How long one request may take, all of its tries included.
const REQUEST_MAX_MS: u64 = 20_000;

/// How often a request is tried.
const TRIES_MAX: u32 = 3;

/// Why a request failed.
pub(crate) enum Fault {
    /// The name is taken.
    Conflict,
    NotThere,
    Error(SendError),
}

impl Fault {
    /// Returns the error; for what is not there, one with this text.
    pub(crate) fn error(self, not_there: &str) -> SendError {
        match self {
            Self::Error(error) => error,
            Self::NotThere => SendError::new(SendErrorKind::Refused, not_there),
            Self::Conflict => SendError::new(
                SendErrorKind::Failed,
                "EventBridge Scheduler is changing the schedule of this key: try again in a moment",
            ),
        }
    }
}

/// Makes a request until it has an answer that another try would not change, for as long as it may take; `id` spreads the waits.
///
/// What may have been carried out is not said not to be, whatever a later try came to.
pub(crate) async fn request<T, E, F>(id: &str, send: impl Fn() -> F) -> Result<T, Fault>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    F: Future<Output = Result<T, SdkError<E>>>,
{
    let by = Instant::now() + Duration::from_millis(REQUEST_MAX_MS);
    let (mut tried, mut may_be_done) = (0, None);
    loop {
        let fault = match timeout_at(by, send()).await {
            Ok(Ok(output)) => return Ok(output),
            Ok(Err(error)) => fault(&error),
            Err(_) => {
                let why = format!("EventBridge Scheduler gave no answer within {REQUEST_MAX_MS} ms");
                Fault::Error(unknown(&why))
            }
        };
        let error = match fault {
            Fault::Error(error) => error,
            // An earlier try may have deleted it.
            Fault::NotThere => return Err(may_be_done.map_or(Fault::NotThere, Fault::Error)),
            Fault::Conflict => return Err(fault),
        };
        tried += 1;
        let again = error.kind() != SendErrorKind::Refused && tried < TRIES_MAX && Instant::now() < by;
        let error = match may_be_done.take() {
            Some(earlier) if error.kind() != SendErrorKind::Unknown => earlier,
            _ => error,
        };
        if !again {
            return Err(Fault::Error(error));
        }
        may_be_done = (error.kind() == SendErrorKind::Unknown).then_some(error);
        sleep(backoff(tried, id)).await;
    }
}

/// Returns what the error of one try means.
fn fault<E: ProvideErrorMetadata + std::error::Error + 'static>(error: &SdkError<E>) -> Fault {
    let SdkError::ServiceError(service) = error else {
        return match error {
            SdkError::ConstructionFailure(_) => refused(error),
            _ if unsent(error) == Some(Unsent::Misconfigured) => refused(error),
            _ => Fault::Error(unknown(&Chain(error).to_string())),
        };
    };
    // The code alone: texts of the service quote what it was given.
    let (code, status) = (service.err().code().unwrap_or("no code"), service.raw().status());
    let (kind, hint) = match code {
        "ConflictException" => return Fault::Conflict,
        "ResourceNotFoundException" => return Fault::NotThere,
        "ServiceQuotaExceededException" => {
            (SendErrorKind::Failed, ": the account has as many schedules as its quota allows, or asks too often")
        }
        "AccessDeniedException" => (
            SendErrorKind::Refused,
            ": the caller needs scheduler:CreateSchedule, scheduler:GetSchedule, scheduler:DeleteSchedule as far as it \
             cancels, on schedule/GROUP/claimant-*, and iam:PassRole for the role in whose name messages are sent",
        ),
        "ValidationException" => {
            (SendErrorKind::Refused, ": may scheduler.amazonaws.com assume the role, and is each ARN right?")
        }
        _ => match fate_of(error) {
            Fate::Throttled => (SendErrorKind::Failed, ": too many requests"),
            Fate::Refused => (SendErrorKind::Refused, ""),
            Fate::Unknown if status.as_u16() < 400 => {
                return Fault::Error(unknown(&unread("EventBridge Scheduler", status.as_u16())));
            }
            Fate::Unknown => {
                return Fault::Error(unknown(&format!(
                    "EventBridge Scheduler failed, or did not get the whole request: {code}"
                )));
            }
        },
    };
    Fault::Error(SendError::new(kind, format!("EventBridge Scheduler refused the request: {code}{hint}")))
}

fn refused(error: &(dyn std::error::Error + 'static)) -> Fault {
    Fault::Error(SendError::new(SendErrorKind::Refused, Chain(error).to_string()))
}

fn unknown(why: &str) -> SendError {
    let text = format!("{why}; the request may have been carried out: make it again with the same key");
    SendError::new(SendErrorKind::Unknown, text)
}
