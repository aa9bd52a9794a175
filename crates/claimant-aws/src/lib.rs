//! The AWS configuration that all of a function's clients share: the lock table's, the queue's and the handler's own; and
//! queue URLs from the environment.
//!
//! One HTTP client, one connection pool on each runtime and one TLS stack (rustls with ring) for all of them. The SDK's own defaults
//! would compile two stacks, one of them with start-up costs on small functions. Clients [without retries](config_without_retries) keep no
//! connections.
//!
//! | module | holds |
//! | --- | --- |
//! | [`asked()`] | requests that can be repeated, tried again: for operators and the doctor |
//! | `configured` | endpoints that are set, refused where they cannot be used |
//! | `credentials` | credentials that take too long to be had, and the failure that all who wait for them share |
//! | `http` | the SDK's HTTP client, which trusts the machine's certificates, read beside the first wait for work |
//! | `later` | clients that are made at their first use, or while the function waits for its first message |
//! | `people` | with the feature of that name: the configuration of a command that a person gives |
//! | [`intake`] | event source mappings: paused only where their return is planned, and resumed |
//! | [`mapping`] | event source mappings, as Lambda's API has them |
//! | `said` | what services say for people, without the requests that they can quote |
//! | [`signed`] | the requests for that, signed here; also those of the doctor and of operators |
//! | [`endpoints`] | where services are |
//! | [`sqs`] | what SQS takes of a message, and what answers say of their requests |
//! | `unsent` | requests that certainly never left the process |

mod asked;
mod configured;
mod credentials;
pub mod endpoints;
mod http;
pub mod intake;
mod later;
pub mod mapping;
#[cfg(feature = "people")]
mod people;
mod said;
pub mod signed;
pub mod sqs;
mod unsent;

use std::thread;
use std::time::Duration;

pub use asked::asked;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_credential_types::provider::ProvideCredentials as _;
use claimant_core::{Error, Variables};
use configured::Whose;
pub use http::http_client;
pub use later::Later;
#[cfg(feature = "people")]
pub use people::{config_at, config_of, sign_in};
pub use said::said;
use tokio::sync::OnceCell;
pub use unsent::{Unsent, is_unsent, unsent};

/// Tries of one request, the first included.
const ATTEMPTS_MAX: u32 = 3;

/// The first wait between tries: DynamoDB answers in milliseconds, so the SDK's default of a second is long.
const BACKOFF_BASE_MS: u64 = 50;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT_MS: u64 = 2_000;

static CONFIG: OnceCell<SdkConfig> = OnceCell::const_new();
static WITHOUT_RETRIES: OnceCell<SdkConfig> = OnceCell::const_new();

/// Returns the configuration, loaded from the environment at the first call and shared from then on.
///
/// Honours the SDK's own variables: `AWS_REGION`, `AWS_ENDPOINT_URL` and `AWS_ENDPOINT_URL_<SERVICE>`, credentials, profiles.
/// An endpoint that is empty counts as unset. Does no request unless credentials have to be fetched. How long an answer may be, [`http_client`]
/// says.
///
/// Its clients send a request up to three times, also one whose answer was lost, which may have been served. That is for requests that
/// may be repeated; the others are [without retries](config_without_retries).
///
/// ```no_run
/// # mod claimant { pub use claimant_core::*; pub mod aws { pub use claimant_aws::*; } }
/// # async fn example() -> Result<(), claimant::Error> {
/// let config = claimant::aws::config().await?;
/// // aws_sdk_dynamodb::Client::new(config)
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When an endpoint that is set is no URL with a host, or has a query, or is empty where the SDK asks STS for credentials: it names the variable.
pub async fn config() -> Result<&'static SdkConfig, Error> {
    CONFIG.get_or_try_init(load).await
}

/// Returns the [configuration](config) for clients that send each request once: for effects that the service cannot recognise when they
/// are repeated, such as a mail by SES or a message to an SNS topic.
///
/// A retry beneath the handler would repeat the effect within one run, which then returns `Ok`: no record, no metric and no log shows it,
/// and `HandlerError::uncertain` never has its turn.
///
/// Each request has a connection of its own: one that was kept may have died while the function was frozen, and what is sent on it fails
/// without anybody knowing whether it arrived. That costs a handshake, of a TLS session that goes on where the service lets it. Where no
/// connection could be made, or there were no credentials, nothing was sent: [`is_unsent`] says so of an error.
///
/// ```no_run
/// # mod claimant { pub use claimant_core::*; pub mod aws { pub use claimant_aws::*; } }
/// # async fn example() -> Result<(), claimant::Error> {
/// let config = claimant::aws::config_without_retries().await?;
/// // aws_sdk_sesv2::Client::new(config)
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As of [`config`].
pub async fn config_without_retries() -> Result<&'static SdkConfig, Error> {
    let config = || async {
        let config = config().await?.clone().into_builder().retry_config(RetryConfig::disabled());
        Ok(config.http_client(http::http_client_without_idle()).build())
    };
    WITHOUT_RETRIES.get_or_try_init(config).await
}

/// Begins what the first request would have to wait for, if the [configuration](config) is in use: reads the machine's certificates, and
/// makes the clients that are to be made [later](Later). For programs that have set themselves up and wait for work. Returns at once.
pub fn prepare() {
    if CONFIG.initialized() {
        // OK to have no thread: the first request does it.
        let _ = thread::Builder::new().name("prepare".to_owned()).spawn(|| {
            http::read_certificates();
            later::make_all();
        });
    }
}

async fn load() -> Result<SdkConfig, Error> {
    loaded(aws_config::defaults(BehaviorVersion::latest()), Whose::Function).await.map(credentials::in_time)
}

/// Returns what the loader finds in the environment.
async fn loaded(mut loader: ConfigLoader, whose: Whose<'_>) -> Result<SdkConfig, Error> {
    // The first of the default chain. With them none of the others is asked; to make those takes as long as a client of STS.
    let environment = EnvironmentVariableCredentialsProvider::new();
    let has_keys = environment.provide_credentials().await.is_ok();
    if has_keys {
        loader = loader.credentials_provider(environment);
    }
    configured::with_endpoints(with_limits(loader).load().await, whose, has_keys)
}

/// Returns the loader with the client, the retries and the time limits that all of claimant's requests have.
fn with_limits(loader: ConfigLoader) -> ConfigLoader {
    loader
        .http_client(http_client())
        .retry_config(
            RetryConfig::standard()
                .with_max_attempts(ATTEMPTS_MAX)
                .with_initial_backoff(Duration::from_millis(BACKOFF_BASE_MS)),
        )
        .timeout_config(TimeoutConfig::builder().connect_timeout(Duration::from_millis(CONNECT_TIMEOUT_MS)).build())
}

/// Returns the queue URL in a variable, if it is set. Anything else in it is noted as a fault, such as the queue's name or ARN,
/// which have no scheme.
pub fn optional_queue_url(variables: &mut Variables, name: &str) -> Option<String> {
    let url = variables.optional_text(name)?;
    if is_queue_url(&url) {
        return Some(url);
    }
    variables.fault(format!(
        "{name} is {url:?}; a queue's URL is needed, such as https://sqs.eu-west-1.amazonaws.com/123456789012/name, not its name or ARN"
    ));
    None
}

/// Returns the ARN of a role in a variable, if it is set. Anything else in it is noted as a fault, such as the role's name.
pub fn optional_role_arn(variables: &mut Variables, name: &str) -> Option<String> {
    let arn = variables.optional_text(name)?;
    if named_by(&arn, "iam").and_then(|named| named.strip_prefix("role/")).is_some_and(|name| !name.is_empty()) {
        return Some(arn);
    }
    variables.fault(format!("{name} is {arn:?}; a role's ARN is needed, such as arn:aws:iam::123456789012:role/name"));
    None
}

/// Returns whether this is the ARN of a standard queue, by its form.
#[must_use]
pub fn is_standard_queue_arn(arn: &str) -> bool {
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    named_by(arn, "sqs").is_some_and(|name| !name.is_empty() && is_name(name))
}

/// Returns what the ARN of something of this service has after its account.
fn named_by<'a>(arn: &'a str, service: &str) -> Option<&'a str> {
    let parts: Vec<_> = arn.splitn(6, ':').collect();
    let ["arn", _, of, _, account, named] = parts[..] else { return None };
    let is_account = account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit());
    (of == service && is_account).then_some(named)
}

fn is_queue_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host_and_path = rest.and_then(|rest| rest.split_once('/'));
    host_and_path.is_some_and(|(host, path)| !host.is_empty() && !path.is_empty())
        && !url.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_named_by_its_url() {
        for (value, good) in [
            ("http://127.0.0.1:9324/000000000000/dead", true),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/dead", true),
            ("arn:aws:sqs:eu-west-1:123456789012:dead", false),
            ("dead", false),
            ("https://", false),
            ("https://sqs.eu-west-1.amazonaws.com/", false),
            ("https://sqs.eu-west-1.amazonaws.com/1/a b", false),
        ] {
            let mut variables = Variables::new([("QUEUE_URL", value)]);
            let url = optional_queue_url(&mut variables, "QUEUE_URL");
            assert_eq!(url.as_deref(), good.then_some(value));
            let fault = variables.finish().err().map(|error| error.to_string());
            assert_eq!(fault.is_none(), good, "{value}");
            assert!(fault.is_none_or(|fault| fault.contains("not its name or ARN")), "{value}");
        }
        assert_eq!(optional_queue_url(&mut Variables::new([("A", "b")]), "QUEUE_URL"), None);
    }
}
