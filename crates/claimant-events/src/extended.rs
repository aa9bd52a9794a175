//! The message that points to an object of S3, as the SQS Extended Client writes it: pure.

use claimant_core::{Message, Pointer, Rejection};
use serde_json::{Value, json};

/// The attribute that says how many bytes the payload has: a number.
pub const SIZE_ATTRIBUTE: &str = "ExtendedPayloadSize";

/// The same attribute, also as the first versions of the Java client name it, and its later ones unless told otherwise.
const SIZE_ATTRIBUTES: [&str; 2] = [SIZE_ATTRIBUTE, "SQSLargePayloadSize"];

const CLASS: &str = "software.amazon.payloadoffloading.PayloadS3Pointer";

/// The class that a pointer begins with, also in the first versions of the Java client, and in the Python one if it is told so.
const CLASSES: [&str; 2] = [CLASS, "com.amazon.sqs.javamessaging.MessageS3Pointer"];

/// The most bytes of a body that is read as a pointer: a bucket, and an object's key of which each byte is escaped.
const POINTER_MAX_BYTES: usize = 8 * 1024;

/// The longest name or alias of a bucket, or ARN of an access point. Only one that the consumer names is read.
const BUCKET_MAX_BYTES: usize = 1024;

/// The longest key of an object.
const KEY_MAX_BYTES: usize = 1024;

/// Returns the body of a message that points to an object. It goes with [`SIZE_ATTRIBUTE`].
#[must_use]
pub fn message_body(bucket: &str, key: &str) -> String {
    json!([CLASS, { "s3BucketName": bucket, "s3Key": key }]).to_string()
}

/// Returns where a message's payload is; `None` where it has its payload itself.
///
/// # Errors
/// When the pointer has no bucket or no key, when the message says that its payload is elsewhere and has no pointer, and when it says
/// that its payload is larger than `max_bytes`.
pub fn of_message(message: &Message, max_bytes: usize) -> Result<Option<Pointer>, Rejection> {
    let size = SIZE_ATTRIBUTES.into_iter().find_map(|name| Some((name, message.attribute(name)?)));
    let Some(pointer) = parse(message.content())? else {
        return match size {
            None => Ok(None),
            Some((name, _)) => {
                Err(message.rejection(format!("is no pointer to a payload, and the message has the attribute {name}")))
            }
        };
    };
    if let Some((name, size)) = size {
        let not_a_number = || Rejection::new(format!("the attribute {name} is no number of bytes"));
        let bytes = size.as_number::<u64>().ok_or_else(not_a_number)?;
        if usize::try_from(bytes).map_or(true, |bytes| bytes > max_bytes) {
            return Err(too_large(bytes, max_bytes));
        }
    }
    Ok(Some(pointer))
}

/// Returns the rejection of a payload that has more bytes than are fetched.
#[must_use]
pub fn too_large(bytes: u64, max_bytes: usize) -> Rejection {
    Rejection::new(format!(
        "the payload has {bytes} bytes, and at most {max_bytes} are fetched: raise payload_max_bytes, if the function's memory allows it"
    ))
}

/// Returns where content points to, if it is a pointer.
fn parse(content: &[u8]) -> Result<Option<Pointer>, Rejection> {
    if content.len() > POINTER_MAX_BYTES || content.trim_ascii_start().first() != Some(&b'[') {
        return Ok(None);
    }
    let Ok(Value::Array(parts)) = serde_json::from_slice(content) else { return Ok(None) };
    if !parts.first().and_then(Value::as_str).is_some_and(|class| CLASSES.contains(&class)) {
        return Ok(None);
    }
    let [_, Value::Object(fields)] = &parts[..] else {
        return Err(Rejection::new("the pointer to the payload is not a class and an object"));
    };
    let text = |name: &str, max: usize| {
        let text = fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty() && text.len() <= max);
        let wrong =
            || Rejection::new(format!("{name} of the pointer to the payload is not a text of 1 to {max} bytes"));
        text.map(str::to_owned).ok_or_else(wrong)
    };
    Ok(Some(Pointer { container: text("s3BucketName", BUCKET_MAX_BYTES)?, name: text("s3Key", KEY_MAX_BYTES)? }))
}
