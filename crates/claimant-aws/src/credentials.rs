//! Credentials that take too long to be had.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::identity::IdentityCache;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use tokio::time::timeout;

/// How long credentials may take: a try of an endpoint that hangs for its 5 s, and another one.
const CREDENTIALS_MAX: Duration = Duration::from_secs(10);

/// When the SDK gives credentials up: never before that. By itself it does so after 6.2 s for a client without retries, with an error that says
/// of no request that it was not sent.
const SDK_MAX: Duration = CREDENTIALS_MAX.saturating_mul(2);

/// Returns the configuration with credentials that take as long at most whatever its clients' retries, and then fail as those that cannot be
/// had.
pub(crate) fn in_time(config: SdkConfig) -> SdkConfig {
    let Some(credentials) = config.credentials_provider() else { return config };
    let config = config.into_builder().identity_cache(IdentityCache::lazy().load_timeout(SDK_MAX).build());
    config.credentials_provider(SharedCredentialsProvider::new(InTime(credentials))).build()
}

/// Credentials that are to be had in time.
#[derive(Debug)]
struct InTime(SharedCredentialsProvider);

impl ProvideCredentials for InTime {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async {
            let found = timeout(CREDENTIALS_MAX, self.0.provide_credentials()).await;
            // The instance's last ones, if it is those that hang.
            let late = || self.0.as_ref().fallback_on_interrupt();
            found.unwrap_or_else(|_| late().ok_or_else(|| CredentialsError::provider_timed_out(CREDENTIALS_MAX)))
        })
    }
}

#[cfg(test)]
mod tests {
    use aws_credential_types::Credentials;
    use tokio::time::Instant;

    use super::*;
    use crate::is_unsent;

    /// Never gives any, but these at last.
    #[derive(Debug)]
    struct Hangs(Option<Credentials>);

    impl ProvideCredentials for Hangs {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            future::ProvideCredentials::new(std::future::pending())
        }

        fn fallback_on_interrupt(&self) -> Option<Credentials> {
            self.0.clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_that_hang_are_such_as_cannot_be_had() {
        let (began, last) = (Instant::now(), Credentials::new("id", "secret", None, None, "test"));
        for (hangs, there) in [(Hangs(None), false), (Hangs(Some(last)), true)] {
            let config = SdkConfig::builder().credentials_provider(SharedCredentialsProvider::new(hangs)).build();
            let found = in_time(config).credentials_provider().unwrap().provide_credentials().await;
            assert_eq!(found.is_ok(), there);
            assert!(found.err().is_none_or(|error| is_unsent(&error)));
        }
        assert_eq!(began.elapsed(), CREDENTIALS_MAX * 2);
    }

    /// The SDK gives up no sooner, which only its cache can be asked.
    #[tokio::test]
    async fn the_sdk_waits_for_them_with_retries_or_without() {
        for config in [crate::config().await, crate::config_without_retries().await] {
            let cache = format!("{:?}", config.identity_cache());
            assert!(cache.contains("load_timeout: Some(20s)"), "{cache}");
        }
    }
}
