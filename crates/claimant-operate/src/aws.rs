//! What errors of the AWS SDKs mean to the person who asked.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use claimant_aws::{endpoints, said};
use claimant_core::error::Chain;
use claimant_core::{Error, ErrorKind};

/// Error codes where a permission is missing or the credentials are not accepted.
const REFUSED: [&str; 11] = [
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// Error codes where what is asked for is not there.
const ABSENT: [&str; 4] =
    ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "ResourceNotFoundException", "InvalidAddress"];

/// Returns the last part of an ARN or of a queue's URL: its name.
pub(crate) fn name_of_arn(arn: &str) -> &str {
    arn.rsplit([':', '/']).next().unwrap_or(arn)
}

/// Returns the account in a queue's ARN.
pub(crate) fn account_of(arn: &str) -> Option<&str> {
    arn.rsplit(':').nth(1)
}

/// Returns the account and the name in a queue's URL.
pub(crate) fn queue_path(url: &str) -> Option<&str> {
    url.splitn(4, '/').nth(3)
}

/// Returns whether two URLs are of one queue: SQS has several hosts for it.
#[must_use]
pub fn is_same_queue(a: &str, b: &str) -> bool {
    a == b || queue_path(a).is_some_and(|path| queue_path(b) == Some(path))
}

/// Asks SQS for the URL of the queue with this ARN.
///
/// # Errors
/// When there is none, the permission `sqs:GetQueueUrl` is missing, or no answer comes.
pub(crate) async fn queue_url(sqs: &Client, arn: &str) -> Result<String, Error> {
    let name = name_of_arn(arn);
    let account = account_of(arn).map(str::to_owned);
    let request = sqs.get_queue_url().queue_name(name).set_queue_owner_aws_account_id(account);
    let what = format!("the queue {name} cannot be found");
    let answer = request.send().await.map_err(|error| failed(&what, "sqs:GetQueueUrl", &error))?;
    answer.queue_url.ok_or_else(|| Error::new(format!("the queue {name} has no URL")))
}

/// Returns whether a request was refused, as every other one of its kind would be: it is not that SQS was throttled or away.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Refused | ErrorKind::Invalid)
}

/// Returns an error that says what could not be done, why, and how to fix it. `permission` is the action that the request needs.
pub(crate) fn failed<E>(what: &str, permission: &str, error: &SdkError<E>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    match (error, error.code()) {
        (_, Some(code)) => answered(what, permission, code, error.message().map(said).unwrap_or_default()),
        (SdkError::ConstructionFailure(_), None) => not_made(what, &Chain(error).to_string()),
        (SdkError::ServiceError(answer), None) => not_of(what, "SQS", answer.raw().status().as_u16()),
        (_, None) => no_answer(what, error),
    }
}

/// Returns the error where the answer has this code and message.
pub(crate) fn answered(what: &str, permission: &str, code: &str, message: &str) -> Error {
    match code {
        _ if REFUSED.contains(&code) => refused(what, permission, code, message),
        _ if ABSENT.contains(&code) => Error::invalid(format!(
            "{what}: it is not there ({code}). Are the name, the account and the Region right? {message}"
        )),
        _ => Error::new(format!("{what}: {code}: {message}")),
    }
}

/// Returns the error where a permission is missing or the credentials are not accepted.
pub(crate) fn refused(what: &str, permission: &str, code: &str, message: &str) -> Error {
    Error::new(format!(
        "{what}: AWS refuses it ({code}). Do these credentials have {permission}, and are they the right ones? {message}"
    ))
    .of_kind(ErrorKind::Refused)
}

/// Returns the error where there is nothing to be sent.
pub(crate) fn not_made(what: &str, why: &str) -> Error {
    Error::invalid(format!("{what}: the request cannot be made: {why}"))
}

/// Returns the error where the answer, with this HTTP status, has no error code, as all errors of this service have: of a success, it cannot
/// be read.
pub(crate) fn not_of(what: &str, service: &str, status: u16) -> Error {
    let why = match status {
        ..400 => endpoints::unread(service, status),
        _ => endpoints::not_of(service, &format!("status {status}, without an error code")),
    };
    Error::new(format!("{what}: {why}")).of_kind(ErrorKind::Unavailable)
}

/// Returns the error where no answer came, or none that can be read.
pub(crate) fn no_answer(what: &str, error: &(dyn std::error::Error + 'static)) -> Error {
    Error::new(format!("{what}: no answer came. Is the endpoint right, and are there credentials? {}", Chain(error)))
        .of_kind(ErrorKind::Unavailable)
}
