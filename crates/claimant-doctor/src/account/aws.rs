//! AWS, asked with signed requests.
//!
//! Signed and sent with the parts that any SDK client brings along. The SDKs of the seven services would be minutes of every
//! clean build, for a dozen requests that only read.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::service_config::ServiceConfigKey;
use serde_json::Value;

use super::answers::{Account, Refused, Request};
use super::endpoint;
use super::wire::{self, Sent};

/// How long a request may take.
const TIMEOUT_MS: u64 = 30_000;

/// The account that the configuration's credentials are for, in its Region.
#[derive(Debug, Clone)]
pub struct Aws {
    config: SdkConfig,
}

impl Aws {
    /// Returns the account of this configuration, which has to have an HTTP client and a clock.
    pub fn new(config: &SdkConfig) -> Self {
        Self { config: config.clone() }
    }

    /// The endpoint that is set for a service, or else this host of AWS's.
    fn endpoint(&self, sent: &Sent, host: &str) -> String {
        let key =
            ServiceConfigKey::builder().service_id(sent.id).env("AWS_ENDPOINT_URL").profile("endpoint_url").build();
        let own = key.ok().and_then(|key| self.config.service_config()?.load_config(key));
        let set = own.or_else(|| self.config.endpoint_url().map(str::to_owned));
        set.unwrap_or_else(|| format!("https://{host}")).trim_end_matches('/').to_owned()
    }

    async fn send(&self, sent: &Sent) -> Result<(u16, Vec<u8>), BoxError> {
        let region = self.config.region().map(AsRef::as_ref).ok_or("no Region is set: give --region")?;
        let (host, region) = match sent.is_global {
            true => {
                let (host, region) = endpoint::of_iam(region);
                (host.to_owned(), region)
            }
            false => (endpoint::of_service(sent.host, region), region),
        };
        let endpoint = self.endpoint(sent, &host);
        let provider = self.config.credentials_provider().ok_or("there are no credentials")?;
        let identity = provider.provide_credentials().await?.into();
        let time = self.config.time_source().ok_or("the AWS configuration has no clock")?;
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(sent.host)
            .time(time.now())
            .settings(SigningSettings::default())
            .build()?
            .into();
        let url = format!("{endpoint}{}", sent.path);
        let headers = sent.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let signable = SignableRequest::new(sent.method, url, headers, SignableBody::Bytes(sent.body.as_bytes()))?;
        let (instructions, _) = sign(signable, &params)?.into_parts();
        let mut headers: Vec<_> =
            sent.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        headers.extend(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())));
        let mut operation = Operation::builder()
            .service_name(sent.id)
            .operation_name("read")
            .http_client(self.config.http_client().ok_or("there is no HTTP client")?)
            .endpoint_url(&endpoint)
            .no_auth()
            .no_retry()
            .timeout_config(TimeoutConfig::builder().operation_timeout(Duration::from_millis(TIMEOUT_MS)).build())
            .time_source(time);
        if let Some(sleep) = self.config.sleep_impl() {
            operation = operation.sleep_impl(sleep);
        }
        let (method, path, body) = (sent.method, sent.path.clone(), sent.body.clone());
        let operation = operation
            .serializer(move |()| {
                let mut request = HttpRequest::new(SdkBody::from(body.clone()));
                request.set_method(method)?;
                // The endpoint is put before it, as it was when this was signed.
                request.set_uri(path.clone())?;
                for (name, value) in &headers {
                    request.headers_mut().try_insert(name.clone(), value.clone())?;
                }
                Ok(request)
            })
            .deserializer(|response: &HttpResponse| -> Result<Received, OrchestratorError<Never>> {
                let body = response.body().bytes().unwrap_or_default().to_vec();
                Ok(Received { status: response.status().as_u16(), body })
            })
            .build();
        let Received { status, body } = operation.invoke(()).await?;
        Ok((status, body))
    }
}

impl Account for Aws {
    async fn ask(&self, request: Request) -> Result<Value, Refused> {
        let sent = wire::sent(&request);
        let refused = |code: String| Refused { operation: request.operation, about: wire::about(&request), code };
        let (status, body) = self.send(&sent).await.map_err(|e| refused(with_causes(&*e)))?;
        wire::received(request.service, status, &body).map_err(refused)
    }
}

/// The error and what caused it, on one line.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = format!("no answer: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[derive(Debug)]
struct Received {
    status: u16,
    body: Vec<u8>,
}

/// Reading an answer's body cannot fail: what it says is judged later.
#[derive(Debug)]
struct Never;

impl std::fmt::Display for Never {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("never")
    }
}

impl std::error::Error for Never {}
