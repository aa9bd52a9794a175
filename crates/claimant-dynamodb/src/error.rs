//! Maps DynamoDB's errors to store errors.

use std::error::Error as StdError;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsOutput;
use aws_sdk_dynamodb::types::{BatchStatementErrorCodeEnum as Code, BatchStatementResponse, ConsumedCapacity};
use claimant_aws::endpoints::not_of;
use claimant_aws::said;
use claimant_core::error::Chain;
use claimant_core::{StoreError, StoreErrorKind};

/// The code of the error for what the caller may not do. Others, such as expired credentials, are temporary.
const DENIED: &str = "AccessDeniedException";

/// What a permission for single records depends on.
const OF_KEY: &str = "; a condition on dynamodb:LeadingKeys has to admit this record's key";

/// How to fix that the caller may not use the key of a table.
const KEY_NEEDED: &str = ". The role or user that asks needs kms:Decrypt on the table's KMS key";

/// How to fix that nobody can use it.
const KEY_DISABLED: &str = ". Is the table's KMS key there and enabled?";

/// Where the book says what to do about a table that is gone.
const LOST: &str = "docs/operating.md, \"A lost lock table\"";

/// How to do without requests for many.
const SINGLY: &str = " If it answers single requests, set CLAIMANT_BATCH=off";

/// How to fix what depends on the call and its tables.
struct Fixes {
    missing: String,
    denied: String,
}

/// Returns the store error of the call `operation` on `table`, with how to fix it.
pub(crate) fn store_error<E>(operation: &'static str, table: &str, error: &SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let fixes = Fixes { missing: missing(table), denied: denied(operation, table) };
    described(&format!("{operation} on table {table:?}"), &fixes, error)
}

fn missing(table: &str) -> String {
    format!(
        "Are the name {table:?} (CLAIMANT_TABLE of a function, --table of a command), the account and the Region right? If they are, and the \
         table was there before, stop the functions and restore it, from point-in-time recovery or a backup: with an empty one, work that is \
         done runs again ({LOST}). Only for a new system, create it"
    )
}

/// Returns the error of a call that was answered with a success which is not DynamoDB's, since it lacks this: what has no body reads as an
/// answer without anything in it. It is not known what became of the request.
pub(crate) fn no_success(operation: &'static str, table: &str, lacks: &str) -> StoreError {
    let why = not_dynamodb(operation, &format!("a success without {lacks}"));
    StoreError::new(StoreErrorKind::Unreachable, format!("{operation} on table {table:?} failed: {why}"))
}

/// Says that the answer to the call that `what` begins with is not DynamoDB's.
fn not_dynamodb(what: &str, came: &str) -> String {
    // An emulator may have no PartiQL, or not all of it.
    let singly = if what.starts_with("BatchExecuteStatement") { SINGLY } else { "" };
    format!("{}{singly}", not_of("DynamoDB", came))
}

/// Returns the units that a success names. Every request asks for them, and DynamoDB names them in each success.
pub(crate) fn consumed(
    operation: &'static str,
    table: &str,
    capacity: Option<&ConsumedCapacity>,
) -> Result<f64, StoreError> {
    let capacity = capacity.ok_or_else(|| no_success(operation, table, "ConsumedCapacity"))?;
    Ok(capacity.capacity_units().unwrap_or_default())
}

/// Returns the units that the success of a transaction names for all its tables.
pub(crate) fn consumed_by_all(table: &str, output: &TransactWriteItemsOutput) -> Result<f64, StoreError> {
    let capacity = output.consumed_capacity.as_ref();
    let capacity = capacity.ok_or_else(|| no_success("TransactWriteItems", table, "ConsumedCapacity"))?;
    Ok(capacity.iter().filter_map(ConsumedCapacity::capacity_units).sum())
}

/// Returns whether the caller may not send this request. One that may, and may not use the key of the table, is told the same code.
pub(crate) fn is_denied<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    error.code() == Some(DENIED) && !lacks_key(error.message())
}

/// Returns whether the message of a denial is about the KMS key of a table, which DynamoDB uses in the caller's name.
pub(crate) fn lacks_key(message: Option<&str>) -> bool {
    // The names of roles and tables, which are quoted, have neither spaces nor colons.
    message.is_some_and(|message| message.contains("KMS key") || message.contains("kms:"))
}

/// Returns whether an error's message is about the KMS key of a table. A request that is refused as invalid is right then: the key is
/// disabled, or gone.
pub(crate) fn is_about_key(message: Option<&str>) -> bool {
    // Such messages quote values, which are the handler's own, but do not begin with one.
    message.is_some_and(|message| message.starts_with("KMS "))
}

/// Returns whether a table that is not found may be another account's, which takes no request for many. That is named by its ARN; where a
/// name is wrong, no table is there.
pub(crate) fn may_be_elsewhere(table: &str) -> bool {
    table.contains("arn:")
}

/// Returns the error of a request for many on `table` of which every statement was refused for the table's sake or as invalid.
pub(crate) fn refused_all(table: &str, responses: &[BatchStatementResponse]) -> Option<StoreError> {
    let refused = |response: &BatchStatementResponse| {
        let error = response.error()?;
        let code = error.code()?.clone();
        let is_invalid = code == Code::ValidationError && !is_about_key(error.message());
        (is_invalid || (code == Code::ResourceNotFound && may_be_elsewhere(table))).then_some(code)
    };
    let code = responses.iter().map(refused).collect::<Option<Vec<_>>>()?.into_iter().next()?;
    // Of a single one it is not known whether others fare better.
    let why = format!("each statement of BatchExecuteStatement on table {table:?} failed: {code}");
    (responses.len() > 1).then(|| StoreError::new(StoreErrorKind::Misconfigured, why))
}

/// As [`store_error`], on a table of those [before](crate::LockTable::before).
pub(crate) fn error_before<E>(operation: &'static str, table: &str, error: &SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let fixes = Fixes { missing: missing_before(table), denied: denied(operation, table) };
    described(&format!("{operation} on table {table:?}"), &fixes, error)
}

/// Returns the store error of the transaction that moves a record from one table to another.
pub(crate) fn error_moving<E>((from, to): (&str, &str), error: &SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let missing = format!("{}. {}", missing(to), missing_before(from));
    let denied = format!("{}, and dynamodb:UpdateItem on {to:?}{OF_KEY}", needed("DeleteItem", from));
    described(&format!("moving a record from table {from:?} to {to:?}"), &Fixes { missing, denied }, error)
}

fn missing_before(table: &str) -> String {
    format!(
        "If there is no table {table:?} since CLAIMANT_TABLE_BEFORE names it wrongly, correct it: without its records, keys run again. If it was \
         deleted since all its records were over, deploy without the variable"
    )
}

fn denied(operation: &str, table: &str) -> String {
    let which = if operation.ends_with("Item") { OF_KEY } else { "" };
    format!("{}{which}", needed(operation, table))
}

fn needed(operation: &str, table: &str) -> String {
    format!("The role or user that asks needs dynamodb:{operation} on the table {table:?}")
}

/// Returns the store error of the call that `what` names.
///
/// Built from the service's code and what it [says](said), and from [`Chain`], which leaves out the request: an SDK error can show it.
fn described<E>(what: &str, fixes: &Fixes, error: &SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let (kind, why) = match error {
        SdkError::ServiceError(service) => {
            let (metadata, status) = (service.err().meta(), service.raw().status());
            let Some(code) = metadata.code() else {
                // A success that cannot be read may be the spoilt answer to a request that was carried out.
                let is_unknown = status.is_server_error() || status.is_success() || status.as_u16() == 429;
                let kind = if is_unknown { StoreErrorKind::Unreachable } else { StoreErrorKind::Other };
                let why = not_dynamodb(what, &format!("status {}, without an error code", status.as_u16()));
                return StoreError::new(kind, format!("{what} failed: {why}"));
            };
            let (kind, fix) = match classify(code, fixes) {
                (StoreErrorKind::Denied, _) if lacks_key(metadata.message()) => {
                    (StoreErrorKind::Denied, KEY_NEEDED.to_owned())
                }
                (StoreErrorKind::Misconfigured, _) if is_about_key(metadata.message()) => {
                    (StoreErrorKind::Misconfigured, KEY_DISABLED.to_owned())
                }
                (StoreErrorKind::Other, fix) if status.is_server_error() => (StoreErrorKind::Unreachable, fix),
                known => known,
            };
            let message = metadata.message().map_or("no message", said).trim_end_matches('.');
            (kind, format!("{code}: {message}{fix}"))
        }
        SdkError::TimeoutError(_) => (StoreErrorKind::Unreachable, "no answer in the time that was left".to_owned()),
        SdkError::DispatchFailure(_) => (
            StoreErrorKind::Unreachable,
            format!("{}. Are the region, the endpoint, the network and the credentials right?", Chain(error)),
        ),
        // The response broke off.
        SdkError::ResponseError(_) => (StoreErrorKind::Unreachable, Chain(error).to_string()),
        _ => (StoreErrorKind::Other, Chain(error).to_string()),
    };
    StoreError::new(kind, format!("{what} failed: {why}"))
}

fn classify(code: &str, fixes: &Fixes) -> (StoreErrorKind, String) {
    match code {
        // The last two are another transaction on the same item, and another Region's write of it.
        "ProvisionedThroughputExceededException"
        | "ThrottlingException"
        | "Throttling"
        | "RequestLimitExceeded"
        | "TransactionConflictException"
        | "ReplicatedWriteConflictException" => (StoreErrorKind::Throttled, String::new()),
        // The last is an earlier try of the same transaction, which is still in progress.
        "InternalServerError" | "ServiceUnavailable" | "TransactionInProgressException" => {
            (StoreErrorKind::Unreachable, String::new())
        }
        "ResourceNotFoundException" => (StoreErrorKind::Misconfigured, format!(". {}", fixes.missing)),
        "ValidationException" => (
            StoreErrorKind::Misconfigured,
            ". The lock table needs a partition key that is the string `id`, or the `id` of its AttributeNames, and no sort key"
                .to_owned(),
        ),
        DENIED => (StoreErrorKind::Denied, format!(". {}", fixes.denied)),
        // A request that was signed before its function was frozen, for example. Nothing was written.
        "ExpiredTokenException" | "InvalidSignatureException" => (
            StoreErrorKind::Throttled,
            ". The credentials have expired or are wrong, or this machine's clock is wrong".to_owned(),
        ),
        "UnrecognizedClientException" | "MissingAuthenticationTokenException" => {
            (StoreErrorKind::Denied, ". The credentials are not those of an account that has this table".to_owned())
        }
        _ => (StoreErrorKind::Other, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::http::HttpResponse;
    use aws_sdk_dynamodb::error::{ConnectorError, ErrorMetadata};
    use aws_sdk_dynamodb::operation::get_item::GetItemError;

    use super::*;

    fn refused(code: &str, message: &str) -> SdkError<GetItemError> {
        let meta = ErrorMetadata::builder().code(code).message(message).build();
        SdkError::service_error(GetItemError::generic(meta), HttpResponse::new(400.try_into().unwrap(), "{}".into()))
    }

    /// While a table's key is disabled, its error has the code of a request that is wrong.
    #[test]
    fn a_disabled_key_is_no_fault_of_the_table() {
        for (message, is_key) in [
            ("KMS key disabled error: x is disabled", true),
            ("The provided key element does not match the schema: KMS key", false),
        ] {
            let error = store_error("GetItem", "locks", &refused("ValidationException", message));
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
            let text = error.to_string();
            assert_eq!(text.contains("Is the table's KMS key there and enabled?"), is_key, "{text}");
            assert_eq!(text.contains("partition key"), !is_key, "{text}");
        }
    }

    /// DynamoDB uses a table's own key in the name of the caller, and its error has the code of a request that is not allowed.
    #[test]
    fn what_the_role_lacks_is_named() {
        let own = "needs dynamodb:GetItem on the table \"locks\"; a condition on dynamodb:LeadingKeys has to admit this record's key";
        for (message, wanted) in [
            ("User: arn:aws:sts::1:assumed-role/KMS-x is not authorized to perform: dynamodb:GetItem", own),
            ("KMS key access denied error: x", "needs kms:Decrypt on the table's KMS key"),
            ("x is not authorized to perform: kms:Decrypt", "needs kms:Decrypt on the table's KMS key"),
        ] {
            let refused = refused(DENIED, message);
            let error = store_error("GetItem", "locks", &refused);
            assert_eq!(error.kind(), StoreErrorKind::Denied);
            assert!(error.to_string().contains(wanted), "{error}");
            assert_eq!(error.to_string().contains("LeadingKeys"), wanted == own, "{error}");
            assert_eq!(is_denied(&refused), wanted == own, "{message}");
        }
    }

    #[test]
    fn only_a_table_that_is_named_by_its_arn_can_be_elsewhere() {
        let refused = |code| {
            let error = aws_sdk_dynamodb::types::BatchStatementError::builder().code(code).build();
            BatchStatementResponse::builder().error(error).build()
        };
        let arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/locks";
        for (table, code, is_refused) in [
            ("locks", Code::ResourceNotFound, false),
            (arn, Code::ResourceNotFound, true),
            ("locks", Code::ValidationError, true),
        ] {
            let responses = [refused(code.clone()), refused(code.clone())];
            assert_eq!(refused_all(table, &responses).is_some(), is_refused, "{table} {code}");
        }
    }

    /// An empty table in place of one that is gone lets done work run again.
    #[test]
    fn a_table_that_is_gone_is_restored_before_one_is_created() {
        let gone = refused("ResourceNotFoundException", "Requested resource not found");
        for error in [store_error("GetItem", "locks", &gone), error_moving(("old", "locks"), &gone)] {
            let text = error.to_string();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{text}");
            let [restore, runs_again, create] =
                ["restore it", "runs again", "create it"].map(|part| text.find(part).expect(part));
            assert!(restore < runs_again && runs_again < create, "{text}");
            assert!(text.contains("the name \"locks\""), "{text}");
        }
        let (page, section) = LOST.split_once(", ").unwrap();
        assert_eq!(page, "docs/operating.md");
        let section = format!("\n## {}\n", section.trim_matches('"'));
        assert!(include_str!("../../../docs/operating.md").contains(&section), "{section}");
    }

    #[test]
    fn what_was_not_answered_is_unreachable() {
        let timeout = SdkError::<GetItemError>::timeout_error("a try took too long");
        let error = store_error("GetItem", "locks", &timeout);
        assert_eq!(error.kind(), StoreErrorKind::Unreachable);
        assert_eq!(error.to_string(), "GetItem on table \"locks\" failed: no answer in the time that was left");
        let refused = SdkError::<GetItemError>::dispatch_failure(ConnectorError::io("connection refused".into()));
        let error = store_error("GetItem", "locks", &refused);
        assert_eq!(error.kind(), StoreErrorKind::Unreachable);
        assert!(error.to_string().contains("connection refused. Are the region, "), "{error}");
    }

    #[test]
    fn how_to_fix_it_is_a_sentence_of_its_own() {
        for message in [
            "The security token is invalid",
            "The security token is invalid.",
            "The security token is invalid.\n\nThe Canonical String is 'x-amz-security-token:secret'",
        ] {
            let error = store_error("GetItem", "locks", &refused("UnrecognizedClientException", message));
            assert!(error.to_string().contains("token is invalid. The credentials are not those of"), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    /// As a proxy answers, or a page that asks to be signed in at.
    #[test]
    fn what_has_no_error_code_is_said_not_to_be_dynamodbs() {
        for (status, kind) in [
            (503, StoreErrorKind::Unreachable),
            (429, StoreErrorKind::Unreachable),
            (200, StoreErrorKind::Unreachable),
            (302, StoreErrorKind::Other),
            (403, StoreErrorKind::Other),
        ] {
            let error = GetItemError::unhandled("unexpected token '<'");
            let answer = HttpResponse::new(status.try_into().unwrap(), "<html>".into());
            let error = store_error("GetItem", "locks", &SdkError::service_error(error, answer));
            assert_eq!(error.kind(), kind, "{error}");
            let wanted = format!("failed: what answered is not DynamoDB: status {status}, without an error code. Is ");
            assert!(error.to_string().contains(&wanted) && !error.to_string().contains('<'), "{error}");
        }
        for (operation, says) in [("BatchExecuteStatement", true), ("BatchGetItem", false)] {
            let error = no_success(operation, "locks", "ConsumedCapacity").to_string();
            assert_eq!(error.ends_with(SINGLY), says, "{error}");
        }
    }

    #[test]
    fn errors_of_the_service_have_their_kinds() {
        for (code, kind) in [
            ("ThrottlingException", StoreErrorKind::Throttled),
            ("ProvisionedThroughputExceededException", StoreErrorKind::Throttled),
            ("InternalServerError", StoreErrorKind::Unreachable),
            ("ResourceNotFoundException", StoreErrorKind::Misconfigured),
            ("ValidationException", StoreErrorKind::Misconfigured),
            ("AccessDeniedException", StoreErrorKind::Denied),
            ("UnrecognizedClientException", StoreErrorKind::Denied),
            ("ExpiredTokenException", StoreErrorKind::Throttled),
            ("TransactionConflictException", StoreErrorKind::Throttled),
            ("ReplicatedWriteConflictException", StoreErrorKind::Throttled),
            ("TransactionInProgressException", StoreErrorKind::Unreachable),
            ("ItemCollectionSizeLimitExceededException", StoreErrorKind::Other),
        ] {
            let fixes = Fixes { missing: "Create it".to_owned(), denied: "Allow it".to_owned() };
            assert_eq!(classify(code, &fixes).0, kind, "{code}");
        }
    }
}
