//! Every error SQS answers with, as the SDKs expect to read it.

use crate::Error;

/// Why SQS refused a request or a batch entry: what the client reads in `__type`, in `x-amzn-query-error` and in
/// the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: Code,
    pub(super) message: String,
}

/// The errors of SQS, by the name of their shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    BatchEntryIdsNotDistinct,
    BatchRequestTooLong,
    EmptyBatchRequest,
    InvalidAddress,
    InvalidAttributeName,
    InvalidAttributeValue,
    InvalidBatchEntryId,
    InvalidMessageContents,
    InvalidParameterValue,
    MissingParameter,
    OverLimit,
    PurgeQueueInProgress,
    QueueDeletedRecently,
    QueueDoesNotExist,
    QueueNameExists,
    ReceiptHandleIsInvalid,
    ResourceNotFound,
    Serialization,
    TooManyEntriesInBatchRequest,
    UnsupportedOperation,
}

impl Code {
    /// The value of `__type`.
    pub(super) fn shape(self) -> &'static str {
        match self {
            Self::BatchEntryIdsNotDistinct => "com.amazonaws.sqs#BatchEntryIdsNotDistinct",
            Self::BatchRequestTooLong => "com.amazonaws.sqs#BatchRequestTooLong",
            Self::EmptyBatchRequest => "com.amazonaws.sqs#EmptyBatchRequest",
            Self::InvalidAddress => "com.amazonaws.sqs#InvalidAddress",
            Self::InvalidAttributeName => "com.amazonaws.sqs#InvalidAttributeName",
            Self::InvalidAttributeValue => "com.amazonaws.sqs#InvalidAttributeValue",
            Self::InvalidBatchEntryId => "com.amazonaws.sqs#InvalidBatchEntryId",
            Self::InvalidMessageContents => "com.amazonaws.sqs#InvalidMessageContents",
            Self::InvalidParameterValue => "com.amazon.coral.service#InvalidParameterValueException",
            Self::MissingParameter => "com.amazon.coral.service#MissingRequiredParameterException",
            Self::OverLimit => "com.amazonaws.sqs#OverLimit",
            Self::PurgeQueueInProgress => "com.amazonaws.sqs#PurgeQueueInProgress",
            Self::QueueDeletedRecently => "com.amazonaws.sqs#QueueDeletedRecently",
            Self::QueueDoesNotExist => "com.amazonaws.sqs#QueueDoesNotExist",
            Self::QueueNameExists => "com.amazonaws.sqs#QueueNameExists",
            Self::ReceiptHandleIsInvalid => "com.amazonaws.sqs#ReceiptHandleIsInvalid",
            Self::ResourceNotFound => "com.amazonaws.sqs#ResourceNotFoundException",
            Self::Serialization => "com.amazon.coral.service#SerializationException",
            Self::TooManyEntriesInBatchRequest => "com.amazonaws.sqs#TooManyEntriesInBatchRequest",
            Self::UnsupportedOperation => "com.amazonaws.sqs#UnsupportedOperation",
        }
    }

    /// The code of the older query protocol, which the SDKs prefer and which batch entries carry.
    pub(super) fn query_code(self) -> &'static str {
        match self {
            Self::BatchEntryIdsNotDistinct => "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
            Self::BatchRequestTooLong => "AWS.SimpleQueueService.BatchRequestTooLong",
            Self::EmptyBatchRequest => "AWS.SimpleQueueService.EmptyBatchRequest",
            Self::InvalidAddress => "InvalidAddress",
            Self::InvalidAttributeName => "InvalidAttributeName",
            Self::InvalidAttributeValue => "InvalidAttributeValue",
            Self::InvalidBatchEntryId => "AWS.SimpleQueueService.InvalidBatchEntryId",
            Self::InvalidMessageContents => "InvalidMessageContents",
            Self::InvalidParameterValue => "InvalidParameterValue",
            Self::MissingParameter => "MissingParameter",
            Self::OverLimit => "OverLimit",
            Self::PurgeQueueInProgress => "AWS.SimpleQueueService.PurgeQueueInProgress",
            Self::QueueDeletedRecently => "AWS.SimpleQueueService.QueueDeletedRecently",
            Self::QueueDoesNotExist => "AWS.SimpleQueueService.NonExistentQueue",
            Self::QueueNameExists => "QueueAlreadyExists",
            Self::ReceiptHandleIsInvalid => "ReceiptHandleIsInvalid",
            Self::ResourceNotFound => "ResourceNotFoundException",
            Self::Serialization => "SerializationException",
            Self::TooManyEntriesInBatchRequest => "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
            Self::UnsupportedOperation => "AWS.SimpleQueueService.UnsupportedOperation",
        }
    }

    /// The HTTP status.
    pub(super) fn status(self) -> u16 {
        match self {
            Self::PurgeQueueInProgress => 403,
            Self::ResourceNotFound => 404,
            _ => 400,
        }
    }
}

impl Fault {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn no_such_queue(name: &str) -> Self {
        Self::new(Code::QueueDoesNotExist, format!("The specified queue does not exist: {name}"))
    }

    pub(super) fn over_limit(in_flight: usize) -> Self {
        let message = format!("{in_flight} messages are in flight: delete messages before receiving more.");
        Self::new(Code::OverLimit, message)
    }

    pub(super) fn missing(parameter: &str) -> Self {
        Self::new(Code::MissingParameter, format!("The request must contain the parameter {parameter}."))
    }

    pub(super) fn invalid_parameter(parameter: &str, reason: impl AsRef<str>) -> Self {
        Self::new(
            Code::InvalidParameterValue,
            format!("Value for parameter {parameter} is invalid. Reason: {}", reason.as_ref()),
        )
    }

    pub(super) fn invalid_attribute(attribute: &str, reason: impl AsRef<str>) -> Self {
        Self::new(
            Code::InvalidAttributeValue,
            format!("Invalid value for the parameter {attribute}. {}", reason.as_ref()),
        )
    }

    /// What the local SQS does not do, by its name.
    pub(super) fn not_imitated(what: &str) -> Self {
        Self::new(
            Code::UnsupportedOperation,
            format!("The local SQS does not imitate {what} (claimant_local::sqs lists what it leaves out)."),
        )
    }

    pub(super) fn fifo_only(attribute: &str) -> Self {
        Self::new(
            Code::InvalidAttributeName,
            format!("You can specify the {attribute} only when FifoQueue is set to true."),
        )
    }

    pub(super) fn not_found(parameter: &str) -> Self {
        Self::new(
            Code::ResourceNotFound,
            format!("The resource that you specified for the {parameter} parameter doesn't exist."),
        )
    }

    pub(super) fn unknown_attribute(attribute: &str, reason: &str) -> Self {
        Self::new(Code::InvalidAttributeName, format!("Unknown Attribute {attribute}: {reason}."))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::new(format!("SQS: {}", fault.message))
    }
}
