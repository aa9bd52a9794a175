//! What S3's refusals mean for a message.

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use claimant_aws::endpoints::not_of;
use claimant_aws::sqs::{Fate, fate};
use claimant_aws::{Unsent, unsent};
use claimant_core::error::Chain;
use claimant_core::{Error, ErrorKind, FetchError, Rejection};

/// What S3 says, beside what [`fate`] knows, of a request that may be taken when it is sent again: what happens within S3, and where the line
/// has spoilt the request.
const PASSING: [&str; 4] = ["BadDigest", "IncompleteBody", "OperationAborted", "XAmzContentSHA256Mismatch"];

/// Says what an answer is that has no ETag of an object: S3 says one of each that it takes and gives.
pub(crate) fn no_etag() -> String {
    not_of("S3", "a success without an ETag")
}

/// Says what an answer is that has a part of an object: none is asked for.
pub(crate) fn a_part() -> String {
    not_of("S3", "a part of the payload, where all of it was asked for")
}

/// Returns why an object was not fetched. Only one that S3 says is not there is gone for good: a wrong permission, a wrong
/// Region and a wrong bucket of one's own settings are put right while the messages wait.
pub(crate) fn not_fetched(error: &SdkError<GetObjectError>) -> FetchError {
    match error {
        SdkError::ServiceError(service) => match service.err().code() {
            Some("NoSuchKey") => FetchError::Rejected(Rejection::new(
                "the payload is not in its bucket: it was removed after another copy of the message was done, or it has expired",
            )),
            code => FetchError::Unavailable(refused(
                "get the payload",
                "s3:GetObject, and s3:ListBucket to tell what is not there from what is forbidden",
                (code.unwrap_or_default(), service.raw().status().as_u16()),
            )),
        },
        // Its chain names the connection and the endpoint, never the object: it leaves out the request.
        other => FetchError::Unavailable(format!("S3 gave no answer: {}", Chain(other))),
    }
}

/// Returns why a request to S3 was not done.
pub(crate) fn not_done<E>(what: &str, permission: &str, error: &SdkError<E>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    match error {
        SdkError::ServiceError(service) => {
            let answer @ (code, status) = (service.err().code().unwrap_or_default(), service.raw().status().as_u16());
            // An error that is a success says nothing for certain.
            let passes = status < 300 || PASSING.contains(&code) || fate(code, status) != Fate::Refused;
            let kind = if passes { ErrorKind::Unavailable } else { ErrorKind::Refused };
            Error::new(refused(what, permission, answer)).of_kind(kind)
        }
        // Earlier tries do not matter: what they may have written has no pointer to it.
        other if unsent(other) == Some(Unsent::Misconfigured) => Error::invalid(format!(
            "no request was sent to S3, since the settings of its client are wrong: {}",
            Chain(other)
        )),
        other => Error::new(format!("S3 gave no answer: {}", Chain(other))).of_kind(ErrorKind::Unavailable),
    }
}

/// Says what S3 refused, by the code alone: its texts can name the object.
fn refused(what: &str, permission: &str, (code, status): (&str, u16)) -> String {
    let hint = match code {
        "" => return not_of("S3", &format!("status {status}, without an error code")),
        "AccessDenied" => format!(
            ": the function's role needs {permission}, and of the bucket's own key in KMS kms:Decrypt and kms:GenerateDataKey; \
             where `owned_by` names an account, the bucket has to be that one's"
        ),
        "NoSuchBucket" => ": there is no such bucket".to_owned(),
        "PermanentRedirect" | "AuthorizationHeaderMalformed" => {
            ": the bucket is in another Region than the client".to_owned()
        }
        _ => String::new(),
    };
    format!("S3 refused to {what}: {code}{hint}")
}
