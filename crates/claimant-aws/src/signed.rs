//! Requests to the few operations of Lambda and EventBridge Scheduler that claimant needs, and to those that the doctor and operators
//! read an account with, signed here.
//!
//! Signed and sent with the parts that the other SDK clients bring along, so no crate is added. The SDK for Lambda would be one, four
//! times as large as that for SQS and twenty seconds of every clean build, for a handful of requests with two parameters; those of the
//! services that the doctor asks would be minutes.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::timeout::TimeoutConfig;
use claimant_core::{Error, ErrorKind, Timestamp};
use serde_json::Value;

use crate::endpoints::{self, ENDPOINT_VARIABLE, endpoint_key, partition_of};
use crate::http::Collected;
use crate::said;
use crate::sqs::{Fate, fate};

/// How long a request with JSON may take.
const TIMEOUT_MS: u64 = 5_000;

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// Its id, by which its endpoint is set.
    pub id: &'static str,
    /// The first part of its host, which is also its name in signatures.
    pub host: &'static str,
}

impl Service {
    /// AWS Lambda.
    pub const LAMBDA: Self = Self { id: "Lambda", host: "lambda" };
    /// Amazon EventBridge Scheduler.
    pub const SCHEDULER: Self = Self { id: "Scheduler", host: "scheduler" };

    /// Amazon SQS.
    pub const SQS: Self = Self { id: "SQS", host: "sqs" };

    /// Amazon DynamoDB.
    pub const DYNAMODB: Self = Self { id: "DynamoDB", host: "dynamodb" };

    /// AWS CloudFormation.
    pub const CLOUDFORMATION: Self = Self { id: "CloudFormation", host: "cloudformation" };

    /// Returns the endpoint that is set for it, if any: `AWS_ENDPOINT_URL_` and its id, or the equivalent in a profile, else
    /// `AWS_ENDPOINT_URL`.
    #[must_use]
    pub fn set_endpoint(self, config: &SdkConfig) -> Option<String> {
        let own = endpoint_key(self.id, ENDPOINT_VARIABLE).and_then(|key| config.service_config()?.load_config(key));
        own.or_else(|| config.endpoint_url().map(str::to_owned))
    }
}

/// A request, before it is signed.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Of which service.
    pub service: Service,
    /// An ARN of the partition, and of the Region where the configuration has none; empty for the partition of the Region that it has.
    pub near: &'a str,
    /// `GET`, `POST` and so on.
    pub method: &'static str,
    /// The path, with the query.
    pub path: String,
    /// Headers, which are signed.
    pub headers: Vec<(&'static str, String)>,
    /// The body, or nothing.
    pub body: String,
    /// How long it may take.
    pub within: Duration,
}

impl<'a> Request<'a> {
    /// Returns a request with this JSON, or with nothing, which may take 5 s.
    #[must_use]
    pub fn json(service: Service, near: &'a str, (method, path, body): (&'static str, String, String)) -> Self {
        let headers = match body.is_empty() {
            true => Vec::new(),
            false => vec![("content-type", "application/json".to_owned())],
        };
        Self { service, near, method, path, headers, body, within: Duration::from_millis(TIMEOUT_MS) }
    }
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// What the error is called, where it is one.
    pub code: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the answer of this status and body; some services name an error in the header `x-amzn-errortype` alone.
    #[must_use]
    pub fn new(status: u16, error_type: Option<&str>, body: Vec<u8>) -> Self {
        let code = match status {
            200..=299 => None,
            _ => error_type.map(str::to_owned).or_else(|| text(&body, &["code", "__type"])),
        };
        Self { status, code: code_name(&code.unwrap_or_default()).to_owned(), body }
    }

    /// Returns whether the request was carried out.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// Returns what an error [says](said) for people; empty where it says nothing.
    #[must_use]
    pub fn message(&self) -> String {
        text(&self.body, &["message", "Message", "errorMessage"])
            .map(|message| said(&message).to_owned())
            .unwrap_or_default()
    }

    /// Returns the error of this answer: what could not be done, why, and which permission that needs. What is refused because too many ask,
    /// or of which it is not known, as where the service fails, is [`ErrorKind::Unavailable`].
    #[must_use]
    pub fn error(&self, what: &str, permission: &str) -> Error {
        let code = if self.code.is_empty() { self.status.to_string() } else { self.code.clone() };
        match (fate(&self.code, self.status), self.status) {
            (Fate::Throttled | Fate::Unknown, _) => {
                Error::new(format!("{what}: {code}")).of_kind(ErrorKind::Unavailable)
            }
            (Fate::Refused, 401 | 403) => Error::new(format!("{what}: AWS refuses it ({code}). It needs {permission}"))
                .of_kind(ErrorKind::Refused),
            (Fate::Refused, _) => Error::new(format!("{what}: {code}")),
        }
    }
}

/// Has the credentials of a configuration at hand. Without them, or without a Region, nothing can be sent, and another try helps nothing.
///
/// # Errors
/// When there is no Region, or nothing to ask for credentials: [`ErrorKind::Invalid`]. When they cannot be had:
/// [`ErrorKind::Unavailable`].
pub async fn ready(config: &SdkConfig) -> Result<(), Error> {
    if config.region().is_none() {
        return Err(Error::invalid("no Region is set: give --region, or set AWS_REGION"));
    }
    credentials(config).await.map(|_| ())
}

async fn credentials(config: &SdkConfig) -> Result<Credentials, Error> {
    let provider = config.credentials_provider().ok_or_else(|| Error::invalid("there are no credentials"))?;
    provider.provide_credentials().await.map_err(|e| unavailable("there are no credentials", e))
}

/// Sends a request once. Its connection is made as fast as those of the configuration's clients have to be. The time that it bears is that of
/// `now`, asked right before it is signed; an error of that is returned, and nothing sent. The service refuses a request five minutes after
/// the time that it bears.
///
/// # Errors
/// When there is nothing to ask for credentials: [`ErrorKind::Invalid`]. When they cannot be had, or no answer comes:
/// [`ErrorKind::Unavailable`]. The request may have been carried out then.
pub async fn send(
    config: &SdkConfig,
    request: Request<'_>,
    now: impl FnOnce() -> Result<Timestamp, Error> + Send,
) -> Result<Answer, Error> {
    let mut parts = request.near.split(':').skip(1);
    let (partition, region) = (parts.next(), parts.nth(1).unwrap_or_default());
    let region = config.region().map_or(region, AsRef::as_ref);
    let partition = partition.unwrap_or_else(|| partition_of(region));
    let kind = (config.use_fips() == Some(true), config.use_dual_stack() == Some(true));
    let (public, region) = endpoints::public(request.service.host, region, partition, kind);
    let endpoint = request.service.set_endpoint(config).unwrap_or(public);
    let identity = credentials(config).await?.into();
    let sent = Sent { region, endpoint: endpoint.trim_end_matches('/'), request };
    let signature = sent.signature(&identity, now()?).map_err(|e| unavailable("cannot sign", e))?;
    sent.send(config, signature).await
}

/// Percent-encodes a value of a query as the signature requires.
#[must_use]
pub fn encoded(text: &str) -> String {
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if unreserved(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn unavailable(what: &str, cause: impl Into<BoxError>) -> Error {
    Error::new(what.to_owned()).of_kind(ErrorKind::Unavailable).caused_by(cause)
}

type Headers = Vec<(String, String)>;

struct Sent<'a> {
    region: &'a str,
    endpoint: &'a str,
    request: Request<'a>,
}

impl Sent<'_> {
    /// Returns the headers that sign it.
    fn signature(&self, identity: &Identity, now: Timestamp) -> Result<Headers, BoxError> {
        let Request { service, method, path, headers, body, .. } = &self.request;
        let params = v4::SigningParams::builder()
            .identity(identity)
            .region(self.region)
            .name(service.host)
            .time(std::time::UNIX_EPOCH + Duration::from_millis(now.as_millis()))
            .settings(SigningSettings::default())
            .build()?
            .into();
        let url = format!("{}{path}", self.endpoint);
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let request = SignableRequest::new(method, &url, headers, SignableBody::Bytes(body.as_bytes()))?;
        let (instructions, _) = sign(request, &params)?.into_parts();
        Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    async fn send(self, config: &SdkConfig, signature: Headers) -> Result<Answer, Error> {
        let http_client =
            config.http_client().ok_or_else(|| unavailable("there is no HTTP client", "none configured"))?;
        let Request { service, method, path, headers, body, within, .. } = self.request;
        let mut operation = Operation::builder()
            .service_name(service.id)
            .operation_name(method)
            .http_client(http_client)
            .endpoint_url(self.endpoint)
            .no_auth()
            .no_retry()
            .timeout_config(timeouts(config, within));
        if let Some(sleep) = config.sleep_impl() {
            operation = operation.sleep_impl(sleep);
        }
        if let Some(time) = config.time_source() {
            operation = operation.time_source(time);
        }
        let operation = operation
            .serializer(move |()| {
                let mut request = HttpRequest::new(SdkBody::from(body.clone()));
                request.add_extension(Collected);
                request.set_method(method)?;
                // The endpoint is put before it, as it was when this was signed.
                request.set_uri(path.clone())?;
                for (name, value) in &headers {
                    request.headers_mut().try_insert(*name, value.clone())?;
                }
                for (name, value) in &signature {
                    request.headers_mut().try_insert(name.clone(), value.clone())?;
                }
                Ok(request)
            })
            .deserializer(|response: &HttpResponse| -> Result<Answer, OrchestratorError<Error>> {
                let body = response.body().bytes().unwrap_or_default().to_vec();
                Ok(Answer::new(response.status().as_u16(), response.headers().get("x-amzn-errortype"), body))
            })
            .build();
        operation.invoke(()).await.map_err(|e| unavailable(&format!("{} gave no answer", service.id), e))
    }
}

fn timeouts(config: &SdkConfig, within: Duration) -> TimeoutConfig {
    let timeouts = TimeoutConfig::builder().operation_timeout(within);
    match config.timeout_config().and_then(TimeoutConfig::connect_timeout) {
        Some(connect) => timeouts.connect_timeout(connect).build(),
        None => timeouts.build(),
    }
}

/// Returns the first of these fields of a JSON object that is a text.
fn text(body: &[u8], names: &[&str]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    names.iter().find_map(|name| body[*name].as_str().map(str::to_owned))
}

/// Returns the name in `namespace#Name:http://…`, as some services write it.
fn code_name(code: &str) -> &str {
    let code = code.split(':').next().unwrap_or_default();
    code.rsplit('#').next().unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_values_are_encoded_as_signatures_want_them() {
        assert_eq!(encoded("arn:aws:sqs:eu-west-1:1:a_b.fifo"), "arn%3Aaws%3Asqs%3Aeu-west-1%3A1%3Aa_b.fifo");
        assert_eq!(encoded("f:$LATEST \u{e9}"), "f%3A%24LATEST%20%C3%A9");
    }

    #[test]
    fn the_headers_that_a_request_brings_along_are_signed() {
        let request = Request::json(Service::LAMBDA, "", ("PUT", "/x".to_owned(), "{}".to_owned()));
        let sent = Sent { region: "eu-west-1", endpoint: "https://x", request };
        let identity = Credentials::new("AKIDEXAMPLE", "secret", None, None, "test").into();
        let signature = sent.signature(&identity, Timestamp::from_millis(1_800_000_000_000)).unwrap();
        let header = signature.iter().find(|(name, _)| name == "authorization").unwrap();
        assert!(header.1.contains("/eu-west-1/lambda/aws4_request"), "{header:?}");
        assert!(header.1.contains("SignedHeaders=content-type;host;x-amz-date"), "{header:?}");
    }

    #[test]
    fn errors_are_named_in_the_header_or_in_the_body() {
        let answer = |status: u16, header: Option<&str>, body: &str| {
            let answer = Answer::new(status, header, body.as_bytes().to_vec());
            (answer.code.clone(), answer.message())
        };
        let named = |code: &str, message: &str| (code.to_owned(), message.to_owned());
        let body = r#"{"Type": "User", "Message": "slow down"}"#;
        assert_eq!(answer(429, Some("TooMany:http://x/"), body), named("TooMany", "slow down"));
        let body = r#"{"__type": "com.amazon#AccessDeniedException", "message": "not you"}"#;
        assert_eq!(answer(403, None, body), named("AccessDeniedException", "not you"));
        assert_eq!(answer(502, None, "<html>"), named("", ""));
        assert_eq!(answer(200, None, r#"{"code": "x"}"#), named("", ""));
    }
}
