//! The SDK's configuration over a simulated wire.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::{SharedAsyncSleep, TokioSleep};
use aws_smithy_async::time::{SharedTimeSource, StaticTimeSource};
use aws_smithy_runtime_api::client::http::HttpClient;

/// Returns the configuration that functions have (`claimant-aws`), over this wire.
#[must_use]
pub fn config(wire: impl HttpClient + 'static) -> SdkConfig {
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("sim", "sim", None, None, "sim")))
        .http_client(wire)
        .retry_config(RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(50)))
        .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
        .time_source(SharedTimeSource::new(StaticTimeSource::from_secs(1_800_000_000)))
        // It measures throughput, which bodies in memory do not have.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build()
}
