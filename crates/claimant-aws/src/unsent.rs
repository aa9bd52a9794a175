//! Requests that certainly never left the process.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use hyper_util::client::legacy;

use crate::http::cause;

/// Why a request was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// There are no credentials to sign it with: another try is of no use.
    NoCredentials,
    /// No credentials could be had for it just now, or no connection was made.
    ForNow,
}

/// Returns why a request was not sent, where its error says so; `None` where it may have been sent. That holds of the last try: ask only where
/// the client has none before it.
#[must_use]
pub fn unsent(error: &(dyn Error + 'static)) -> Option<Unsent> {
    match cause::<CredentialsError>(error) {
        Some(CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_)) => {
            Some(Unsent::NoCredentials)
        }
        Some(_) => Some(Unsent::ForNow),
        None => cause::<legacy::Error>(error).filter(|error| error.is_connect()).map(|_| Unsent::ForNow),
    }
}
