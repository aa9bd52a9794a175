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

use super::answers::{Account, NO_ANSWER, Refused, Request};
use super::endpoint;
use super::wire::{self, Sent};

/// How long a request may take, and a connection to be made.
const TIMEOUT_MS: u64 = 20_000;
const CONNECT_TIMEOUT_MS: u64 = 5_000;

/// Pauses before a request is sent once more: where no answer came, the service fails, or too many ask it.
const PAUSES_MS: [u64; 2] = [500, 2_000];

/// What codes have in them where too many ask.
const THROTTLED: [&str; 3] = ["Throttl", "TooManyRequests", "RequestLimitExceeded"];

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

    /// The endpoint that is set for a service, or else this one of AWS's.
    fn endpoint(&self, sent: &Sent, public: String) -> String {
        let key =
            ServiceConfigKey::builder().service_id(sent.id).env("AWS_ENDPOINT_URL").profile("endpoint_url").build();
        let own = key.ok().and_then(|key| self.config.service_config()?.load_config(key));
        let set = own.or_else(|| self.config.endpoint_url().map(str::to_owned));
        set.unwrap_or(public).trim_end_matches('/').to_owned()
    }

    /// Signs a request.
    async fn signed(&self, sent: &Sent) -> Result<Operation<(), Received, Never>, BoxError> {
        let region = self.config.region().map(AsRef::as_ref).ok_or("no Region is set: give --region")?;
        let is_set = |setting: Option<bool>| setting == Some(true);
        let (fips, dual_stack) = (is_set(self.config.use_fips()), is_set(self.config.use_dual_stack()));
        let (public, region) = match sent.is_global {
            true => endpoint::of_iam(region, fips),
            false => (endpoint::of_service(sent.host, region, fips, dual_stack), region),
        };
        let endpoint = self.endpoint(sent, public);
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
            .timeout_config(timeouts())
            .time_source(time);
        if let Some(sleep) = self.config.sleep_impl() {
            operation = operation.sleep_impl(sleep);
        }
        let (method, path, body) = (sent.method, sent.path.clone(), sent.body.clone());
        Ok(operation
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
                let error_type = response.headers().get("x-amzn-errortype").unwrap_or_default().to_owned();
                Ok(Received { status: response.status().as_u16(), error_type, body })
            })
            .build())
    }
}

fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .operation_timeout(Duration::from_millis(TIMEOUT_MS))
        .connect_timeout(Duration::from_millis(CONNECT_TIMEOUT_MS))
        .build()
}

/// Whether another try may be answered otherwise.
fn is_transient(status: Option<u16>, code: &str) -> bool {
    status.is_none_or(|status| status == 429 || status >= 500) || THROTTLED.iter().any(|one| code.contains(one))
}

impl Account for Aws {
    async fn ask(&self, request: Request) -> Result<Value, Refused> {
        let sent = wire::sent(&request);
        let refused = |code: String| Refused { operation: request.operation, about: request.about(), code };
        let operation = self.signed(&sent).await.map_err(|e| refused(with_causes(&*e)))?;
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let (status, answer) = match operation.invoke(()).await {
                Ok(got) => {
                    let answer = wire::received(request.service, got.status, &got.error_type, &got.body);
                    (Some(got.status), answer)
                }
                Err(e) => (None, Err(with_causes(&e))),
            };
            match (answer, pauses.next()) {
                (Err(code), Some(pause_ms)) if is_transient(status, &code) => {
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                }
                (answer, _) => return answer.map_err(refused),
            }
        }
    }
}

/// The error and what caused it, on one line.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = format!("{NO_ANSWER}: {error}");
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
    error_type: String,
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
