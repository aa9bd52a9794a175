//! The SDK's HTTP client: HTTP/1.1 over rustls with ring. It trusts the machine's certificates, read beside the first wait for work.
//!
//! To read and parse them takes one to three milliseconds, up to half of what a function takes to start. The SDK's own client does that
//! when a service's client is made, and again for each further one. And it speaks HTTP/2, which none of the services that claimant
//! calls does: that is half a megabyte of each function.
//!
//! | module | holds |
//! | --- | --- |
//! | `bounded` | how much of an answer is read |
//! | `dialer` | makes connections, with TLS where the address wants it |
//! | `failure` | what the SDK's retries are told of a request without an answer |

mod bounded;
mod dialer;
mod failure;

use std::borrow::Cow;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
pub(crate) use bounded::Collected;
use bounded::{Bounded, Bounds};
use dialer::{Dialer, TLS};
pub(crate) use failure::{cause, is_connect};
use hyper::Response;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, HttpInfo, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::runtime::{self, Handle};
use tokio::time::timeout;

/// Returns a client as that of [`config`](crate::config) is, with connections of its own: for a configuration that is not loaded from
/// the environment.
///
/// It speaks HTTP/1.1 and trusts the machine's certificates. Its first request over TLS reads those, unless that was done before.
///
/// An answer that is longer than AWS's are, where nothing is streamed, is `SdkError::ResponseError`, whatever its status: clients with
/// retries send its request again. That is an error of more than 1 MiB, or of 256 MiB to a request of `application/x-amz-json-*` or
/// `application/cbor`, and a success of more than 256 MiB
///
/// - to a request of `application/x-amz-json-*` or `application/cbor`, as DynamoDB's and SQS's, and to `PUT` and `DELETE`: unless it is an
///   event stream,
/// - to a request of `application/json`, as SES's and EventBridge Scheduler's: where its content type is that, `text/html`, `text/plain` or none.
///
/// Any other success has no bound, as an object of S3: who reads it has to stop.
#[must_use]
pub fn http_client() -> SharedHttpClient {
    SharedHttpClient::new(Http::keeping(usize::MAX))
}

/// Returns a client that sends each request on a connection of its own: for requests that are sent once. A connection that was kept can
/// be dead after its process was frozen. A request on it fails, and it is not known whether that arrived.
///
/// What makes a connection cheap is shared with all others: the certificates, and the sessions of TLS to go on with.
pub(crate) fn http_client_without_idle() -> SharedHttpClient {
    SharedHttpClient::new(Http::keeping(0))
}

/// Reads the certificates, for the whole process. Requests meanwhile wait for it.
pub(crate) fn read_certificates() {
    LazyLock::force(&TLS);
}

/// The timeouts of a connector: to connect, and to wait for the head of an answer.
type Timeouts = (Option<Duration>, Option<Duration>);

/// So many connectors are kept: more than handlers can have runtimes, with the engine's own, at one pair of timeouts.
const CONNECTORS_MAX: usize = 32;

/// Whose a connector is: the runtime on which its requests are made, and their timeouts.
type Of = (Option<runtime::Id>, Timeouts);

/// The connectors of all clients, each with connections of its own: those with the same timeouts share one, on each runtime. The runtime
/// that has made a connection drives it: when handlers block all threads of theirs, the engine's requests must not wait for those.
#[derive(Debug)]
struct Http {
    connectors: Mutex<Vec<(Of, SharedHttpConnector)>>,
    idle_max: usize,
}

impl Http {
    /// Returns a client whose connectors keep so many connections to one host while nobody uses them.
    fn keeping(idle_max: usize) -> Self {
        Self { connectors: Mutex::default(), idle_max }
    }

    fn connector(&self, timeouts: Timeouts) -> SharedHttpConnector {
        let wanted = (Handle::try_current().ok().map(|runtime| runtime.id()), timeouts);
        let mut connectors = self.connectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, connector)) = connectors.iter().find(|(of, _)| *of == wanted) {
            return connector.clone();
        }
        if connectors.len() >= CONNECTORS_MAX {
            connectors.remove(0);
        }
        let connector = SharedHttpConnector::new(Connector::new(timeouts, self.idle_max));
        connectors.push((wanted, connector.clone()));
        connector
    }
}

impl HttpClient for Http {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        self.connector((settings.connect_timeout(), settings.read_timeout()))
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        Some(ConnectorMetadata::new("hyper", Some(Cow::Borrowed("1.x"))))
    }
}

/// A pool of connections.
struct Connector {
    pool: Client<Dialer, SdkBody>,
    read_timeout: Option<Duration>,
}

impl Connector {
    fn new((connect_timeout, read_timeout): Timeouts, idle_max: usize) -> Self {
        let mut pool = Client::builder(TokioExecutor::new());
        // Without a timer, connections that nobody uses would stay.
        pool.pool_timer(TokioTimer::new()).pool_max_idle_per_host(idle_max);
        Self { pool: pool.build(Dialer::new(connect_timeout)), read_timeout }
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into()))),
        };
        let connection = capture_connection(&mut request);
        // By it the SDK's retries give up a connection whose request has failed.
        if let Some(capture) = request.extensions().get::<CaptureSmithyConnection>() {
            capture.set_connection_retriever(move || metadata(&connection));
        }
        let bounds = Bounds::of(&request);
        let (to, within) = (request.uri().authority().cloned(), self.read_timeout);
        let answer = self.pool.request(request);
        HttpConnectorFuture::new(async move {
            let answer = match within {
                None => answer.await,
                Some(limit) => timeout(limit, answer).await.map_err(|_| failure::no_answer(to.as_ref(), limit))?,
            };
            let (head, body) = answer.map_err(|error| failure::of(to.as_ref(), error))?.into_parts();
            let body = SdkBody::from_body_1_x(Bounded::new(&head, &bounds, body));
            HttpResponse::try_from(Response::from_parts(head, body))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("read_timeout", &self.read_timeout).finish_non_exhaustive()
    }
}

/// Returns what is known of the connection that a request was sent on, and how to use it no more.
fn metadata(connection: &CaptureConnection) -> Option<ConnectionMetadata> {
    let mut extensions = hyper::http::Extensions::new();
    connection.connection_metadata().as_ref()?.get_extras(&mut extensions);
    let info = extensions.get::<HttpInfo>();
    let connection = connection.clone();
    let mut metadata = ConnectionMetadata::builder().proxied(false).poison_fn(move || {
        if let Some(connected) = connection.connection_metadata().as_ref() {
            connected.poison();
        }
    });
    metadata.set_local_addr(info.map(HttpInfo::local_addr)).set_remote_addr(info.map(HttpInfo::remote_addr));
    Some(metadata.build())
}

#[cfg(test)]
mod tests;
