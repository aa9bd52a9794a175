//! What errors of the AWS SDKs mean to the person who asked.

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use claimant_core::error::Chain;
use claimant_core::{Error, ErrorKind};

/// Error codes where a permission is missing or the credentials are not accepted.
const REFUSED: [&str; 8] = [
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// Error codes where what is asked for is not there.
const ABSENT: [&str; 4] =
    ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "ResourceNotFoundException", "InvalidAddress"];

/// Returns an error that says what could not be done, why, and how to fix it. `permission` is the action that the request needs.
pub(crate) fn failed<E, R>(what: &str, permission: &str, error: &SdkError<E, R>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug + 'static,
{
    let code = error.code();
    let message = error.message().unwrap_or_default();
    match (error, code) {
        (_, Some(code)) if REFUSED.contains(&code) => Error::new(format!(
            "{what}: AWS refuses it ({code}). Do these credentials have {permission}, and are they the right ones? {message}"
        ))
        .of_kind(ErrorKind::Refused),
        (_, Some(code)) if ABSENT.contains(&code) => Error::invalid(format!(
            "{what}: it is not there ({code}). Are the name, the account and the Region right? {message}"
        )),
        (_, Some(code)) => Error::new(format!("{what}: {code}: {message}")),
        (SdkError::ConstructionFailure(_), None) => {
            Error::invalid(format!("{what}: the request cannot be made: {}", Chain(error)))
        }
        (_, None) => Error::new(format!(
            "{what}: no answer came. Is the endpoint right, and are there credentials? {}",
            Chain(error)
        ))
        .of_kind(ErrorKind::Unavailable),
    }
}
