//! Requests that certainly never left the process.

use std::error::Error;

use crate::http::{cause, is_connect};
use aws_credential_types::provider::error::CredentialsError;

/// Why a request was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// The settings for credentials are wrong: another try is of no use.
    Misconfigured,
    /// There are no credentials to sign it with: another try soon is of no use. Where the instance metadata service is away, the SDK says the same.
    NoCredentials,
    /// No credentials could be had for it just now, or no connection was made.
    ForNow,
}

/// Returns why a request was not sent, where its error says so; `None` where it may have been sent. That holds of the last try: ask only where
/// the client has none before it.
#[must_use]
pub fn unsent(error: &(dyn Error + 'static)) -> Option<Unsent> {
    match cause::<CredentialsError>(error) {
        Some(CredentialsError::InvalidConfiguration(_)) => Some(Unsent::Misconfigured),
        Some(CredentialsError::CredentialsNotLoaded(_)) => Some(Unsent::NoCredentials),
        Some(_) => Some(Unsent::ForNow),
        None => is_connect(error).then_some(Unsent::ForNow),
    }
}
