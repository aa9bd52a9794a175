//! The AWS configuration that all of a function's clients share: the lock table's, the queue's and the handler's own.
//!
//! One HTTP client, one connection pool and one TLS stack (rustls with ring) for all of them. The SDK's own defaults
//! would compile two stacks, one of them with start-up costs on small functions.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_smithy_http_client::tls;
use tokio::sync::OnceCell;

/// Tries of one request, the first included.
const ATTEMPTS_MAX: u32 = 3;

/// The first wait between tries: DynamoDB answers in milliseconds, so the SDK's default of a second is long.
const BACKOFF_BASE_MS: u64 = 50;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT_MS: u64 = 2_000;

/// The configuration, loaded from the environment at the first call and shared from then on.
///
/// Honours the SDK's own variables: `AWS_REGION`, `AWS_ENDPOINT_URL` and `AWS_ENDPOINT_URL_<SERVICE>`, credentials, profiles.
/// Does no request unless credentials have to be fetched.
///
/// ```no_run
/// # async fn example() {
/// let config = claimant_aws::config().await;
/// // aws_sdk_sesv2::Client::new(config)
/// # }
/// ```
pub async fn config() -> &'static SdkConfig {
    static CONFIG: OnceCell<SdkConfig> = OnceCell::const_new();
    CONFIG.get_or_init(load).await
}

async fn load() -> SdkConfig {
    let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(aws_smithy_http_client::Builder::new().tls_provider(ring).build_https())
        .retry_config(
            RetryConfig::standard()
                .with_max_attempts(ATTEMPTS_MAX)
                .with_initial_backoff(Duration::from_millis(BACKOFF_BASE_MS)),
        )
        .timeout_config(TimeoutConfig::builder().connect_timeout(Duration::from_millis(CONNECT_TIMEOUT_MS)).build())
        .load()
        .await
}
