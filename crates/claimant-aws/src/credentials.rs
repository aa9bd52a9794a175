//! Credentials that take too long to be had, and the failure that all who wait for them share.

use std::error::Error as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::identity::IdentityCache;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, Result, SharedCredentialsProvider, future};
use claimant_core::error::Chain;
use tokio::time::{Instant, timeout};

/// How long credentials may take: a try of an endpoint that hangs for its 5 s, and another one.
const CREDENTIALS_MAX: Duration = Duration::from_secs(10);

/// For how long they are not asked for again after a failure. The SDK has the requests that wait for credentials ask for them one after the
/// other: so they fail together.
const FAILED_FOR: Duration = Duration::from_secs(1);

/// How long the SDK lets a request wait for credentials, also while another one asks for them: never less than they may take. By itself it
/// gives them up after 6.2 s for a client without retries, with an error that says of no request that it was not sent.
const SDK_MAX: Duration = CREDENTIALS_MAX.saturating_mul(2);

/// Returns the configuration with credentials that take [`CREDENTIALS_MAX`] at most, whatever retries its clients have, and then fail as those
/// that cannot be had.
pub(crate) fn in_time(config: SdkConfig) -> SdkConfig {
    let Some(credentials) = config.credentials_provider() else { return config };
    let config = config.into_builder().identity_cache(IdentityCache::lazy().load_timeout(SDK_MAX).build());
    let in_time = InTime { credentials, failed: Mutex::default() };
    config.credentials_provider(SharedCredentialsProvider::new(in_time)).build()
}

/// Why there were no credentials, and when.
#[derive(Debug)]
pub(crate) struct Failure {
    at: Instant,
    kind: fn(String) -> CredentialsError,
    why: String,
}

impl Failure {
    pub(crate) fn of(error: &CredentialsError) -> Self {
        let kind = match error {
            CredentialsError::InvalidConfiguration(_) => CredentialsError::invalid_configuration,
            CredentialsError::CredentialsNotLoaded(_) => CredentialsError::not_loaded,
            _ => CredentialsError::provider_error,
        };
        let why = error.source().map_or_else(|| error.to_string(), |source| Chain(source).to_string());
        Self { at: Instant::now(), kind, why }
    }

    /// Returns the error once more, for so long after the failure.
    pub(crate) fn within(&self, time: Duration) -> Option<CredentialsError> {
        (self.at.elapsed() < time).then(|| (self.kind)(self.why.clone()))
    }
}

/// Credentials that are to be had in time.
#[derive(Debug)]
struct InTime {
    credentials: SharedCredentialsProvider,
    failed: Mutex<Option<Failure>>,
}

impl InTime {
    async fn found(&self) -> Result {
        let failed = self.failed().as_ref().and_then(|failure| failure.within(FAILED_FOR));
        if let Some(error) = failed {
            return Err(error);
        }
        let found = timeout(CREDENTIALS_MAX, self.credentials.provide_credentials()).await;
        let found = found.unwrap_or_else(|_| Err(CredentialsError::provider_timed_out(CREDENTIALS_MAX)));
        found.inspect_err(|error| *self.failed() = Some(Failure::of(error)))
    }

    fn failed(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProvideCredentials for InTime {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        // The instance's last ones, where there are no others.
        let last = || self.credentials.as_ref().fallback_on_interrupt();
        future::ProvideCredentials::new(async move { self.found().await.or_else(|error| last().ok_or(error)) })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use aws_credential_types::Credentials;
    use aws_smithy_runtime::client::auth::no_auth::NO_AUTH_SCHEME_ID;
    use aws_smithy_runtime::client::orchestrator::operation::Operation;
    use aws_smithy_runtime_api::client::identity::SharedIdentityResolver;
    use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
    use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
    use aws_smithy_runtime_api::client::runtime_plugin::StaticRuntimePlugin;
    use aws_smithy_types::body::SdkBody;
    use aws_smithy_types::timeout::TimeoutConfig;
    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;
    use crate::{Unsent, is_unsent, unsent};

    type Kind = fn(&'static str) -> CredentialsError;

    /// Fails so, or hangs; gives these at last.
    #[derive(Debug, Clone, Default)]
    struct Broken {
        fails: Option<Kind>,
        last: Option<Credentials>,
        asked: Arc<AtomicUsize>,
    }

    impl ProvideCredentials for Broken {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            self.asked.fetch_add(1, Ordering::SeqCst);
            match self.fails {
                Some(kind) => future::ProvideCredentials::ready(Err(kind("no"))),
                None => future::ProvideCredentials::new(std::future::pending()),
            }
        }

        fn fallback_on_interrupt(&self) -> Option<Credentials> {
            self.last.clone()
        }
    }

    fn with(broken: Broken) -> SdkConfig {
        in_time(SdkConfig::builder().credentials_provider(SharedCredentialsProvider::new(broken)).build())
    }

    /// Returns a request that takes its credentials from the SDK's cache, as those of all clients do.
    fn request(config: &SdkConfig) -> Operation<(), (), Infallible> {
        let credentials = SharedIdentityResolver::new(config.credentials_provider().unwrap());
        let components = RuntimeComponentsBuilder::new("test")
            .with_identity_cache(config.identity_cache())
            .with_identity_resolver(NO_AUTH_SCHEME_ID, credentials);
        Operation::builder()
            .service_name("test")
            .operation_name("test")
            .http_client(crate::http_client())
            .endpoint_url("http://localhost")
            .no_auth()
            .no_retry()
            .timeout_config(TimeoutConfig::disabled())
            .runtime_plugin(StaticRuntimePlugin::new().with_runtime_components(components))
            .serializer(|()| Ok(HttpRequest::new(SdkBody::empty())))
            .deserializer(|_| Ok(()))
            .build()
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_is_sent_that_waits_for_credentials_that_hang() {
        let (began, request) = (Instant::now(), request(&with(Broken::default())));
        let mut requests = JoinSet::new();
        for _ in 0..30 {
            let request = request.clone();
            requests.spawn(async move { request.invoke(()).await });
        }
        for answer in requests.join_all().await {
            let error = answer.unwrap_err();
            assert!(is_unsent(&error), "{error:?}");
        }
        assert_eq!(began.elapsed(), CREDENTIALS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_right_after_a_failure_has_the_same() {
        let last = Credentials::new("id", "secret", None, None, "test");
        for (fails, last, expected) in [
            (Some(CredentialsError::invalid_configuration as Kind), None, Some(Unsent::Misconfigured)),
            (Some(CredentialsError::not_loaded), None, Some(Unsent::NoCredentials)),
            (Some(CredentialsError::unhandled), None, Some(Unsent::ForNow)),
            (None, None, Some(Unsent::ForNow)),
            (None, Some(last), None),
        ] {
            let broken = Broken { fails, last, ..Broken::default() };
            let credentials = with(broken.clone()).credentials_provider().unwrap();
            for (after, asked) in [(Duration::ZERO, 1), (Duration::ZERO, 1), (FAILED_FOR, 2)] {
                sleep(after).await;
                let found = timeout(SDK_MAX, credentials.provide_credentials()).await.unwrap();
                let seen = (found.err().and_then(|error| unsent(&error)), broken.asked.load(Ordering::SeqCst));
                assert_eq!(seen, (expected, asked), "{broken:?}");
            }
        }
    }

    /// Which configurations wait for them so, only their cache can be asked.
    #[tokio::test]
    async fn the_sdk_waits_for_them_with_retries_or_without() {
        for config in [crate::config().await.unwrap(), crate::config_without_retries().await.unwrap()] {
            let cache = format!("{:?}", config.identity_cache());
            assert!(cache.contains("load_timeout: Some(20s)"), "{cache}");
        }
    }
}
