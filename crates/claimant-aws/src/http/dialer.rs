//! Makes connections: within a time limit, and with TLS where the address wants it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use aws_smithy_runtime_api::box_error::BoxError;
use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use super::failure::NotConnected;

/// What all connections have: the machine's certificates, and tickets for sessions to go on with.
pub(super) static TLS: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| Arc::new(tls()));

fn tls() -> ClientConfig {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            // OK because ring has what TLS 1.2 and 1.3 need.
            .expect("ring does TLS 1.2 and 1.3")
    };
    let trusting = builder().with_native_roots().unwrap_or_else(|error| {
        // An endpoint without TLS can be used all the same.
        tracing::warn!(%error, "this machine has no certificates to trust: requests over TLS fail");
        builder().with_root_certificates(RootCertStore::empty())
    });
    let mut config = trusting.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

type Connection = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Makes connections within a time limit. Certificates are read with the first one over TLS.
#[derive(Debug, Clone)]
pub(super) struct Dialer {
    http: HttpConnector,
    within: Option<Duration>,
}

impl Dialer {
    pub(super) fn new(within: Option<Duration>) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        // A request is written in pieces: each would wait until the one before it is acknowledged.
        http.set_nodelay(true);
        Self { http, within }
    }
}

impl Service<Uri> for Dialer {
    type Response = Connection;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Connection, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(cx).map_err(BoxError::from)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (mut http, within) = (self.http.clone(), self.within);
        let dialled = async move {
            if to.scheme() == Some(&Scheme::HTTP) {
                return Ok(MaybeHttpsStream::Http(http.call(to).await?));
            }
            HttpsConnector::from((http, Arc::clone(&TLS))).call(to).await
        };
        Box::pin(async move {
            match within {
                None => dialled.await,
                Some(limit) => timeout(limit, dialled).await.map_err(|_| NotConnected(limit))?,
            }
        })
    }
}
