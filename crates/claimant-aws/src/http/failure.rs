//! What the SDK's retries are told of a request without an answer.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::retry::ErrorKind;
use claimant_core::error::Chain;
use hyper::http::uri::Authority;
use hyper_util::client::legacy;

use crate::endpoints::server_of;

/// No connection was made within this time.
#[derive(Debug)]
pub(super) struct NotConnected(pub(super) Duration);

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no connection within {:?}", self.0)
    }
}

impl Error for NotConnected {}

/// No answer began within this time.
#[derive(Debug)]
struct NoAnswer(Duration);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer within {:?}", self.0)
    }
}

impl Error for NoAnswer {}

/// A request to this address failed. It shows the host and the port alone: an address can have a password.
#[derive(Debug)]
struct Failed {
    to: String,
    why: BoxError,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a request to {} failed", self.to)
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.why)
    }
}

fn failed(to: Option<&Authority>, why: impl Into<BoxError>) -> BoxError {
    Box::new(Failed { to: to.map(server_of).unwrap_or_default(), why: why.into() })
}

pub(super) fn no_answer(to: Option<&Authority>, limit: Duration) -> ConnectorError {
    ConnectorError::timeout(failed(to, NoAnswer(limit)))
}

/// Returns what the error means for a retry: all but a wrong request are tried again, and what is not known here is not.
pub(super) fn of(to: Option<&Authority>, error: legacy::Error) -> ConnectorError {
    let hyper = cause::<hyper::Error>(&error);
    let is = |what: fn(&hyper::Error) -> bool| hyper.is_some_and(what);
    let retried: fn(BoxError) -> ConnectorError =
        if cause::<NotConnected>(&error).is_some() || is(hyper::Error::is_timeout) {
            ConnectorError::timeout
        } else if is(hyper::Error::is_user) {
            ConnectorError::user
        } else if error.is_connect()
            || is(hyper::Error::is_closed)
            || is(hyper::Error::is_canceled)
            || cause::<io::Error>(&error).is_some()
        {
            ConnectorError::io
        } else if is(hyper::Error::is_incomplete_message) {
            |error| ConnectorError::other(error, Some(ErrorKind::TransientError))
        } else {
            tracing::warn!(error = %Chain(&error), "a request failed in an unknown way, and is not tried again");
            |error| ConnectorError::other(error, None)
        };
    retried(failed(to, error))
}

/// Returns whether a request failed because no connection was made for it, with TLS where that is asked for.
pub(crate) fn is_connect(error: &(dyn Error + 'static)) -> bool {
    cause::<legacy::Error>(error).is_some_and(legacy::Error::is_connect)
}

/// Returns the first error of this type: this one, or a cause of it.
pub(crate) fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|error| error.downcast_ref())
}
