//! The SDK's HTTP client, which trusts the machine's certificates, read beside the first wait for work.
//!
//! To read and parse them takes one to three milliseconds, up to half of what a function takes to start. The SDK does that when a client is made,
//! and parses them again for each further client; none of it is kept for requests.

use std::thread;

use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

const RING: Provider = Provider::Rustls(CryptoMode::Ring);

/// Returns the client. Its first request reads the certificates, unless that was done before.
pub(crate) fn client() -> SharedHttpClient {
    SharedHttpClient::new(Unprimed(Builder::new().tls_provider(RING).build_https()))
}

/// Begins to read the certificates, on a thread of its own; requests wait for it. The SDK keeps them for the whole process.
pub(crate) fn read_certificates() {
    // OK to have no thread: the first request reads them.
    let _ = thread::Builder::new().name("certificates".to_owned()).spawn(|| {
        drop(Connector::builder().tls_provider(RING).build());
    });
}

/// An HTTP client that does nothing when a service's client is made with it.
#[derive(Debug)]
struct Unprimed(SharedHttpClient);

impl HttpClient for Unprimed {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.0.connector_metadata()
    }
}
