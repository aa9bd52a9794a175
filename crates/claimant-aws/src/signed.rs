//! Requests to the few operations of Lambda and EventBridge Scheduler that claimant needs, signed here.
//!
//! Signed and sent with the parts that the other SDK clients bring along, so no crate is added. The SDK for Lambda would be one, four
//! times as large as that for SQS and twenty seconds of every clean build, for a handful of requests with two parameters.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::service_config::ServiceConfigKey;
use claimant_core::{Error, ErrorKind, Timestamp};
use serde_json::Value;

/// How long one request may take.
const TIMEOUT_MS: u64 = 5_000;

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// AWS Lambda.
    Lambda,
    /// Amazon EventBridge Scheduler.
    Scheduler,
}

impl Service {
    /// Returns its id, by which its endpoint is set, and the first part of its host, which is also its name in signatures.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Lambda => ("Lambda", "lambda"),
            Self::Scheduler => ("Scheduler", "scheduler"),
        }
    }

    /// Returns the endpoint that is set for it, if any: `AWS_ENDPOINT_URL_` and its id, or the equivalent in a profile, else
    /// `AWS_ENDPOINT_URL`.
    #[must_use]
    pub fn set_endpoint(self, config: &SdkConfig) -> Option<String> {
        let id = self.names().0;
        let key = ServiceConfigKey::builder().service_id(id).env("AWS_ENDPOINT_URL").profile("endpoint_url").build();
        let own = key.ok().and_then(|key| config.service_config()?.load_config(key));
        own.or_else(|| config.endpoint_url().map(str::to_owned))
    }
}

/// A request, before it is signed.
#[derive(Debug)]
pub struct Request<'a> {
    /// Of which service.
    pub service: Service,
    /// Its endpoint, where the configuration is not to be asked for it.
    pub endpoint: Option<&'a str>,
    /// An ARN of the partition, and of the Region where the configuration has none.
    pub near: &'a str,
    /// `GET`, `POST` and so on.
    pub method: &'static str,
    /// The path, with the query.
    pub path: String,
    /// The body: JSON, or nothing.
    pub body: String,
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
    /// Returns whether the request was carried out.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// Returns what an error says for people; empty where it says nothing.
    #[must_use]
    pub fn message(&self) -> String {
        text(&self.body, &["message", "Message", "errorMessage"]).unwrap_or_default()
    }

    /// Returns the error of this answer: what could not be done, why, and which permission that needs. What is refused because too many ask,
    /// or because the service fails, is [`ErrorKind::Unavailable`].
    #[must_use]
    pub fn error(&self, what: &str, permission: &str) -> Error {
        let code = if self.code.is_empty() { self.status.to_string() } else { self.code.clone() };
        match self.status {
            401 | 403 => Error::new(format!("{what}: AWS refuses it ({code}). It needs {permission}"))
                .of_kind(ErrorKind::Refused),
            429 | 500.. => Error::new(format!("{what}: {code}")).of_kind(ErrorKind::Unavailable),
            _ => Error::new(format!("{what}: {code}")),
        }
    }
}

/// Sends a request once, within 5 s. The time that it bears is that of `now`, asked right before it is signed; an error of that is
/// returned, and nothing sent. The service refuses a request five minutes after the time that it bears.
///
/// # Errors
/// When there are no credentials, or no answer comes: [`ErrorKind::Unavailable`]. The request may have been carried out then.
pub async fn send(
    config: &SdkConfig,
    request: Request<'_>,
    now: impl FnOnce() -> Result<Timestamp, Error> + Send,
) -> Result<Answer, Error> {
    let mut parts = request.near.split(':').skip(1);
    let (partition, region) = (parts.next(), parts.nth(1).unwrap_or_default());
    let region = config.region().map_or(region, AsRef::as_ref);
    let (name, host) = request.service.names();
    let endpoint = request.endpoint.map(str::to_owned).or_else(|| request.service.set_endpoint(config));
    let endpoint = endpoint.unwrap_or_else(|| {
        let partition = partition.unwrap_or_else(|| partition_of(region));
        let is_set = |setting: Option<bool>| setting == Some(true);
        public_endpoint(host, region, partition, (is_set(config.use_fips()), is_set(config.use_dual_stack())))
    });
    let provider =
        config.credentials_provider().ok_or_else(|| unavailable("there are no credentials", "none configured"))?;
    let credentials = provider.provide_credentials().await.map_err(|e| unavailable("there are no credentials", e))?;
    let sent = Sent { name, host, region, endpoint: endpoint.trim_end_matches('/'), request };
    let headers = sent.signature(&credentials.into(), now()?).map_err(|e| unavailable("cannot sign", e))?;
    sent.send(config, headers).await
}

/// Each partition, how the names of its Regions begin, and the DNS suffixes of its endpoints: of IPv4 and of both.
const PARTITIONS: [(&str, &str, &str, &str); 8] = [
    ("aws-cn", "cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    ("aws-us-gov", "us-gov-", "amazonaws.com", "api.aws"),
    ("aws-eusc", "eusc-", "amazonaws.eu", "api.amazonwebservices.eu"),
    ("aws-iso", "us-iso-", "c2s.ic.gov", "api.aws.ic.gov"),
    ("aws-iso-b", "us-isob-", "sc2s.sgov.gov", "api.aws.scloud"),
    ("aws-iso-e", "eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    ("aws-iso-f", "us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
    // The last one, for all others.
    ("aws", "", "amazonaws.com", "api.aws"),
];

/// Returns the DNS suffix of a partition's endpoints.
#[must_use]
pub fn domain(partition: &str) -> &'static str {
    PARTITIONS.iter().find(|known| known.0 == partition).map_or("amazonaws.com", |known| known.2)
}

/// Returns the partition of a Region, by its name.
#[must_use]
pub fn partition_of(region: &str) -> &'static str {
    PARTITIONS.iter().find(|known| region.starts_with(known.1)).map_or("aws", |known| known.0)
}

/// Returns the endpoint of a service where none is set, as the SDKs have it; with validated cryptography, with IPv6 too.
#[must_use]
pub fn public_endpoint(host: &str, region: &str, partition: &str, (fips, dual_stack): (bool, bool)) -> String {
    let fips = if fips { "-fips" } else { "" };
    let both = || PARTITIONS.iter().find(|known| known.0 == partition).map_or("api.aws", |known| known.3);
    let domain = if dual_stack { both() } else { domain(partition) };
    format!("https://{host}{fips}.{region}.{domain}")
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
    name: &'static str,
    host: &'static str,
    region: &'a str,
    endpoint: &'a str,
    request: Request<'a>,
}

impl Sent<'_> {
    /// Returns the headers that sign it.
    fn signature(&self, identity: &Identity, now: Timestamp) -> Result<Headers, BoxError> {
        let params = v4::SigningParams::builder()
            .identity(identity)
            .region(self.region)
            .name(self.host)
            .time(std::time::UNIX_EPOCH + Duration::from_millis(now.as_millis()))
            .settings(SigningSettings::default())
            .build()?
            .into();
        let url = format!("{}{}", self.endpoint, self.request.path);
        let body = SignableBody::Bytes(self.request.body.as_bytes());
        let request = SignableRequest::new(self.request.method, &url, std::iter::empty(), body)?;
        let (instructions, _) = sign(request, &params)?.into_parts();
        Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    async fn send(self, config: &SdkConfig, headers: Headers) -> Result<Answer, Error> {
        let http_client =
            config.http_client().ok_or_else(|| unavailable("there is no HTTP client", "none configured"))?;
        let mut operation = Operation::builder()
            .service_name(self.name)
            .operation_name(self.request.method)
            .http_client(http_client)
            .endpoint_url(self.endpoint)
            .no_auth()
            .no_retry()
            .timeout_config(TimeoutConfig::builder().operation_timeout(Duration::from_millis(TIMEOUT_MS)).build());
        if let Some(sleep) = config.sleep_impl() {
            operation = operation.sleep_impl(sleep);
        }
        if let Some(time) = config.time_source() {
            operation = operation.time_source(time);
        }
        let Request { method, path, body, .. } = self.request;
        let operation = operation
            .serializer(move |()| {
                let mut request = HttpRequest::new(SdkBody::from(body.clone()));
                request.set_method(method)?;
                // The endpoint is put before it, as it was when this was signed.
                request.set_uri(path.clone())?;
                if !body.is_empty() {
                    request.headers_mut().try_insert("content-type", "application/json")?;
                }
                for (name, value) in &headers {
                    request.headers_mut().try_insert(name.clone(), value.clone())?;
                }
                Ok(request)
            })
            .deserializer(|response: &HttpResponse| -> Result<Answer, OrchestratorError<Error>> {
                Ok(answer(response))
            })
            .build();
        operation.invoke(()).await.map_err(|e| unavailable(&format!("{} gave no answer", self.name), e))
    }
}

fn answer(response: &HttpResponse) -> Answer {
    let (status, body) = (response.status().as_u16(), response.body().bytes().unwrap_or_default().to_vec());
    let in_header = response.headers().get("x-amzn-errortype").map(str::to_owned);
    let code = match status {
        200..=299 => None,
        _ => in_header.or_else(|| text(&body, &["code", "__type"])),
    };
    Answer { status, code: code_name(&code.unwrap_or_default()).to_owned(), body }
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
    fn endpoints_are_those_of_the_partition() {
        for (region, (fips, dual_stack), endpoint) in [
            ("eu-west-1", (false, false), "https://lambda.eu-west-1.amazonaws.com"),
            ("eu-west-1", (false, true), "https://lambda.eu-west-1.api.aws"),
            ("us-gov-west-1", (true, false), "https://lambda-fips.us-gov-west-1.amazonaws.com"),
            ("cn-north-1", (false, false), "https://lambda.cn-north-1.amazonaws.com.cn"),
            ("us-iso-east-1", (false, false), "https://lambda.us-iso-east-1.c2s.ic.gov"),
            ("us-isof-south-1", (false, false), "https://lambda.us-isof-south-1.csp.hci.ic.gov"),
        ] {
            assert_eq!(public_endpoint("lambda", region, partition_of(region), (fips, dual_stack)), endpoint);
        }
    }

    #[test]
    fn errors_are_named_in_the_header_or_in_the_body() {
        let answer = |status: u16, header: Option<&'static str>, body: &'static str| {
            let mut response = HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body));
            if let Some(code) = header {
                response.headers_mut().insert("x-amzn-errortype", code);
            }
            let answer = super::answer(&response);
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
