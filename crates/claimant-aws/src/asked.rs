//! [Signed](crate::signed) requests that can be repeated, tried again: those of operators and of the doctor.

use std::hash::{DefaultHasher, Hasher as _};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use claimant_core::{Clock as _, Error, SystemClock};
use tokio::time::sleep;

use crate::signed::{Answer, Request, ready, send};
use crate::sqs::is_throttle;

/// The first pause: services count requests by the second, of a whole account, and a connection that is away for a moment fails at once.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// How many times as long as the one before each further pause is.
const GROWTH: u32 = 4;

/// Returns the answer to a request that can be repeated; a refusal is one. Signs and sends it again, as often as the clients of this
/// configuration do, where no answer comes, the service fails, or too many ask.
///
/// # Errors
/// When there is no Region, or nothing to ask for credentials: [`Invalid`](claimant_core::ErrorKind::Invalid). When credentials cannot be had,
/// or no answer comes: [`Unavailable`](claimant_core::ErrorKind::Unavailable). Without credentials nothing is sent, and nothing tried again.
pub async fn asked(config: &SdkConfig, request: &Request<'_>) -> Result<Answer, Error> {
    ready(config).await?;
    let tries_max = config.retry_config().map_or(1, RetryConfig::max_attempts);
    for tried in 1..tries_max {
        match send(config, request.clone(), || Ok(SystemClock.now())).await {
            Ok(answer) if answer.status < 500 && !is_throttled(&answer) => return Ok(answer),
            Ok(_) | Err(_) => sleep(spread(FIRST_PAUSE * GROWTH.saturating_pow(tried - 1), request)).await,
        }
    }
    send(config, request.clone(), || Ok(SystemClock.now())).await
}

/// Returns whether too many ask: by the status, or by the code, which services that answer in XML have in the body alone.
fn is_throttled(answer: &Answer) -> bool {
    let code_in_xml = || {
        let body = str::from_utf8(&answer.body).ok()?;
        Some(body.split_once("<Code>")?.1.split_once("</Code>")?.0)
    };
    let is_code = || is_throttle(&answer.code) || code_in_xml().is_some_and(is_throttle);
    answer.status == 429 || !answer.is_good() && is_code()
}

/// Returns a pause of the upper half of this one, so that requests that failed together do not come back together.
fn spread(pause: Duration, request: &Request<'_>) -> Duration {
    let mut hasher = DefaultHasher::new();
    hasher.write(request.path.as_bytes());
    hasher.write(request.body.as_bytes());
    // OK because a remainder of 1,000 fits.
    pause / 2 + pause / 2 * (hasher.finish() % 1_000) as u32 / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::Service;

    #[test]
    fn too_many_is_said_by_the_status_or_the_code() {
        let xml = |code: &str| format!("<E><Error><Code>{code}</Code><Message>Throttling</Message></Error></E>");
        for (status, error_type, body, throttled) in [
            (429, None, String::new(), true),
            (400, Some("ThrottlingException:http://x/"), String::new(), true),
            (400, None, r#"{"__type": "com.amazonaws.sqs#RequestThrottled"}"#.to_owned(), true),
            (400, None, xml("Throttling"), true),
            (503, None, xml("RequestLimitExceeded"), true),
            (403, None, xml("AccessDenied"), false),
            (503, None, String::new(), false),
            (200, None, xml("Throttling"), false),
        ] {
            let answer = Answer::new(status, error_type, body.clone().into_bytes());
            assert_eq!(is_throttled(&answer), throttled, "{status} {error_type:?} {body}");
        }
    }

    #[test]
    fn pauses_are_spread_over_their_upper_half() {
        let pause = Duration::from_millis(100);
        for (path, body) in [("/tags/", ""), ("/", "Action=")] {
            let paused = |n: u32| {
                let of = |part: &str| if part.len() > 1 { format!("{part}{n}") } else { part.to_owned() };
                spread(pause, &Request::json(Service::LAMBDA, "", ("POST", of(path), of(body))))
            };
            let paused: Vec<_> = (0..100).map(paused).collect();
            assert!(paused.iter().all(|paused| (pause / 2..pause).contains(paused)), "{paused:?}");
            assert!(paused.iter().any(|other| *other != paused[0]), "{path}{body}");
        }
    }
}
