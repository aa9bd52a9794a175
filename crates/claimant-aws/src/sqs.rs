//! What SQS takes of a message; and what answers that are no plain success say of their request, SQS's and those of other services.

use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// The most bytes of a message, bodies and attributes, and of the messages of one request together ("SendMessageBatch" in the SQS API
/// reference, since August 2025). A queue may be set to fewer for a message.
pub const MESSAGE_MAX_BYTES: usize = 1 << 20;

/// The most attributes of a message.
pub const ATTRIBUTES_MAX: usize = 10;

/// Returns whether SQS takes this character in a body or an attribute: one that XML 1.0 has.
#[must_use]
pub const fn takes(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// What error codes have in them where a service, or what is in front of it, takes no more for now.
const THROTTLED: [&str; 6] =
    ["Throttl", "OverLimit", "TooManyRequests", "LimitExceeded", "SlowDown", "PriorRequestNotComplete"];

/// Returns whether an error of this code says that its service takes no more for now, and took nothing of the request: SQS, S3 or another.
#[must_use]
pub fn is_throttle(code: &str) -> bool {
    THROTTLED.iter().any(|word| code.contains(word))
}

/// What an answer that is no success, or one that cannot be read, says of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The service takes no more for now, and took nothing of it.
    Throttled,
    /// It may have been done, whole or in part.
    Unknown,
    /// It was refused, and would be again.
    Refused,
}

/// Returns what an answer with this error code and HTTP status says of its request. A status below 400 is that of a success that cannot be
/// read, or of something that stands before the service.
#[must_use]
pub fn fate(code: &str, status: u16) -> Fate {
    match status {
        _ if is_throttle(code) => Fate::Throttled,
        429 => Fate::Throttled,
        ..400 | 408 | 500.. => Fate::Unknown,
        _ if code.contains("RequestTimeout") => Fate::Unknown,
        _ => Fate::Refused,
    }
}

/// Returns the ARN of the queue with this URL, if it is one; what the URL does not say, such as that of an endpoint of one's own, is as in the
/// ARN `near` of something in an account and a Region.
#[must_use]
pub fn queue_arn(url: &str, near: &str) -> Option<String> {
    if url.starts_with("arn:") {
        return Some(url.to_owned());
    }
    let mut near = near.split(':').skip(1);
    let (partition, region, account) = (near.next()?, near.nth(1)?, near.next()?);
    let mut parts = url.rsplit('/');
    let name = parts.next()?;
    let is_account = |part: &&str| part.len() == 12 && part.bytes().all(|b| b.is_ascii_digit());
    let account = match parts.next().filter(is_account) {
        Some(account) => account,
        None if url.contains(".amazonaws.com") => return None,
        None => account,
    };
    let region = parts.next().and_then(region_in).unwrap_or(region);
    Some(format!("arn:{partition}:sqs:{region}:{account}:{name}"))
}

/// The Region that a host names: `sqs.eu-west-1.amazonaws.com`, `eu-west-1.queue.amazonaws.com`, or an endpoint of a VPC.
fn region_in(host: &str) -> Option<&str> {
    // Of hosts of one's own, `ip-10-0-0-1` and `shop-localstack-1` look almost like one.
    let is_region = |label: &&str| {
        let mut parts = label.rsplitn(3, '-');
        let [number, direction, place] = [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default);
        number.parse::<u8>().is_ok()
            && ["north", "east", "south", "west", "central"].iter().any(|one| direction.starts_with(one))
            && place.starts_with(|first: char| first.is_ascii_lowercase())
    };
    host.split(':').next()?.split('.').find(is_region)
}

/// Returns a delay in SQS's whole seconds, at most `max_s`; rounded up, so that a message never comes too early.
#[must_use]
pub fn whole_seconds(delay: Duration, max_s: u64) -> i32 {
    let seconds = delay.as_secs().saturating_add(u64::from(delay.subsec_nanos() > 0));
    i32::try_from(seconds.min(max_s)).unwrap_or(i32::MAX)
}

/// Returns what the error of a request says of it. Of a client that tries again, it says nothing of the tries before the last.
pub fn fate_of<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Fate {
    match error {
        SdkError::ConstructionFailure(_) => Fate::Refused,
        SdkError::ServiceError(answer) => fate(answer.err().code().unwrap_or_default(), answer.raw().status().as_u16()),
        _ => Fate::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_whole_rounded_up_and_bounded() {
        for (ms, s) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (u64::MAX, 42_300)] {
            assert_eq!(whole_seconds(Duration::from_millis(ms), 42_300), s, "{ms} ms");
        }
    }

    #[test]
    fn the_hosts_of_a_queue_are_of_one_arn() {
        let near = "arn:aws:lambda:eu-west-1:123456789012:function:worker";
        for (url, wanted) in [
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/orders", Some("eu-west-1:123456789012:orders")),
            ("https://eu-west-1.queue.amazonaws.com/123456789012/orders", Some("eu-west-1:123456789012:orders")),
            ("https://sqs.eu-west-1.api.aws/123456789012/orders", Some("eu-west-1:123456789012:orders")),
            (
                "https://vpce-0a-1.sqs.eu-west-1.vpce.amazonaws.com/123456789012/orders",
                Some("eu-west-1:123456789012:orders"),
            ),
            ("https://sqs-fips.us-east-1.amazonaws.com/123456789012/orders", Some("us-east-1:123456789012:orders")),
            ("https://sqs.eu-west-1.amazonaws.com/210987654321/orders", Some("eu-west-1:210987654321:orders")),
            ("https://sqs.us-gov-east-1.amazonaws.com/123456789012/orders", Some("us-gov-east-1:123456789012:orders")),
            (
                "https://sqs.ap-northeast-2.amazonaws.com/123456789012/orders",
                Some("ap-northeast-2:123456789012:orders"),
            ),
            ("https://sqs.il-central-1.amazonaws.com/123456789012/orders", Some("il-central-1:123456789012:orders")),
            ("http://ip-10-0-0-1.ec2.internal:4566/123456789012/orders", Some("eu-west-1:123456789012:orders")),
            ("http://shop-localstack-1:4566/123456789012/orders", Some("eu-west-1:123456789012:orders")),
            ("http://127.0.0.1:9324/000000000000/orders", Some("eu-west-1:000000000000:orders")),
            ("http://localhost:4566/queue/us-east-1/000000000000/orders", Some("us-east-1:000000000000:orders")),
            ("http://localhost:9324/queue/orders", Some("eu-west-1:123456789012:orders")),
            ("arn:aws:sqs:eu-west-1:123456789012:orders", Some("eu-west-1:123456789012:orders")),
            ("https://sqs.eu-west-1.amazonaws.com/orders", None),
        ] {
            let wanted = wanted.map(|rest| format!("arn:aws:sqs:{rest}"));
            assert_eq!(queue_arn(url, near), wanted, "{url}");
        }
    }

    #[test]
    fn an_error_says_what_became_of_its_request() {
        for (code, status, wanted) in [
            ("RequestThrottled", 403, Fate::Throttled),
            ("SlowDown", 503, Fate::Throttled),
            ("", 429, Fate::Throttled),
            ("RequestTimeout", 400, Fate::Unknown),
            ("", 408, Fate::Unknown),
            ("ServiceUnavailable", 503, Fate::Unknown),
            ("", 200, Fate::Unknown),
            ("", 302, Fate::Unknown),
            ("AccessDenied", 403, Fate::Refused),
            ("", 400, Fate::Refused),
        ] {
            assert_eq!(fate(code, status), wanted, "{code} {status}");
        }
    }
}
