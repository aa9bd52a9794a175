//! Requests that certainly never left the process.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::endpoint::error::ResolveEndpointError;

use crate::http::{cause, is_connect};

/// Why a request was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// The client's settings are wrong, those for its credentials or its endpoint: another try is of no use.
    Misconfigured,
    /// There are no credentials to sign it with: another try soon is of no use. Where the instance metadata service is away, the SDK says the same.
    NoCredentials,
    /// No credentials could be had for it just now, or no connection was made.
    ForNow,
}

/// Returns whether nothing of a request was sent: there were no credentials to sign it with or no endpoint to send it to, or no connection was
/// made for it, with TLS where that is asked for.
///
/// It is asked with the error of an SDK's client that has the [configuration](crate::config_without_retries) or the
/// [HTTP client](crate::http_client) of this crate, and sends each request once. Of a client that tries again, the last try's error says
/// nothing of those before.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod aws { pub use claimant_aws::*; } }
/// use claimant::HandlerError;
///
/// fn failed(error: impl std::error::Error + Send + Sync + 'static) -> HandlerError {
///     if claimant::aws::is_unsent(&error) { HandlerError::retry(error) } else { HandlerError::uncertain(error) }
/// }
/// ```
#[must_use]
pub fn is_unsent(error: &(dyn Error + 'static)) -> bool {
    unsent(error).is_some()
}

/// Returns why a request was not sent, where its error says so; `None` where it may have been sent. That holds of the last try: ask only where
/// the client has none before it.
#[must_use]
pub fn unsent(error: &(dyn Error + 'static)) -> Option<Unsent> {
    match cause::<CredentialsError>(error) {
        Some(CredentialsError::InvalidConfiguration(_)) => Some(Unsent::Misconfigured),
        Some(CredentialsError::CredentialsNotLoaded(_)) => Some(Unsent::NoCredentials),
        Some(_) => Some(Unsent::ForNow),
        None if cause::<ResolveEndpointError>(error).is_some() => Some(Unsent::Misconfigured),
        None => is_connect(error).then_some(Unsent::ForNow),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use aws_smithy_runtime::client::orchestrator::operation::Operation;
    use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
    use aws_smithy_runtime_api::client::result::{ConnectorError, SdkError};
    use aws_smithy_types::body::SdkBody;
    use claimant_core::error::Chain;

    use super::*;

    /// As the SDK wraps them. The connections are the HTTP client's test.
    #[test]
    fn what_cannot_be_signed_is_not_sent() {
        for (why, wanted) in [
            (CredentialsError::invalid_configuration("no"), Unsent::Misconfigured),
            (CredentialsError::not_loaded("no"), Unsent::NoCredentials),
            (CredentialsError::provider_error("no"), Unsent::ForNow),
            (CredentialsError::provider_timed_out(std::time::Duration::from_secs(1)), Unsent::ForNow),
            (CredentialsError::unhandled("no"), Unsent::ForNow),
        ] {
            let error = SdkError::<CredentialsError, ()>::dispatch_failure(ConnectorError::other(why.into(), None));
            assert_eq!((unsent(&error), is_unsent(&error)), (Some(wanted), true), "{error:?}");
        }
        let other = SdkError::<CredentialsError, ()>::dispatch_failure(ConnectorError::other("no".into(), None));
        assert!(!is_unsent(&other));
    }

    /// As of a client with an endpoint that its program sets. The SDK's own words quote the request.
    #[tokio::test]
    async fn what_has_no_endpoint_is_not_sent_nor_shown() {
        let request: Operation<(), (), Infallible> = Operation::builder()
            .service_name("test")
            .operation_name("test")
            .http_client(crate::http_client())
            .endpoint_url("localhost:4566")
            .no_auth()
            .no_retry()
            .serializer(|()| Ok(HttpRequest::new(SdkBody::from("secret"))))
            .deserializer(|_| Ok(()))
            .build();
        let error = request.invoke(()).await.unwrap_err();
        assert_eq!(unsent(&error), Some(Unsent::Misconfigured));
        let text = Chain(&error).to_string();
        assert!(text.contains("failed to apply endpoint `localhost:4566`: ") && !text.contains("secret"), "{text}");
    }
}
