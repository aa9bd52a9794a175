//! `ListEventSourceMappings`, the one request that claimant makes to Lambda's own API.
//!
//! Signed and sent with the parts that the other SDK clients bring along, so no crate is added. The SDK for Lambda would
//! be one, four times as large as that for SQS and twenty seconds of every clean build, for one GET with two parameters.

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
use claimant_core::Error;
use serde::Deserialize;

use crate::event::domain;

/// How long the request may take; an invocation waits for it only if it has failures to report.
const TIMEOUT_MS: u64 = 5_000;

/// A page of event source mappings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Page {
    #[serde(default)]
    pub(crate) event_source_mappings: Vec<Mapping>,
    pub(crate) next_marker: Option<String>,
}

/// The fields of an event source mapping that are checked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Mapping {
    pub(crate) state: Option<String>,
    pub(crate) function_response_types: Option<Vec<String>>,
}

/// Why the mappings could not be listed.
#[derive(Debug)]
pub(crate) enum ListError {
    /// The function's role lacks the permission.
    Denied,
    /// No usable response; a later request may get one.
    Failed(Error),
}

/// Returns the endpoint that is set for Lambda's API, if any: `AWS_ENDPOINT_URL_LAMBDA` or its equivalent in a profile, else
/// `AWS_ENDPOINT_URL`.
pub(crate) fn set_endpoint(config: &SdkConfig) -> Option<String> {
    let key = ServiceConfigKey::builder().service_id("Lambda").env("AWS_ENDPOINT_URL").profile("endpoint_url").build();
    let own = key.ok().and_then(|key| config.service_config()?.load_config(key));
    own.or_else(|| config.endpoint_url().map(str::to_owned))
}

/// Lists the mappings of this function and this event source, by their ARNs.
pub(crate) async fn list_mappings(config: &SdkConfig, function_arn: &str, source_arn: &str) -> Result<Page, ListError> {
    let failed = |what: &str| ListError::Failed(Error::new(what.to_owned()));
    let mut parts = function_arn.split(':').skip(1);
    let (partition, region) = (parts.next().unwrap_or("aws"), parts.nth(1).unwrap_or_default());
    let region = config.region().map_or(region, AsRef::as_ref);
    let endpoint = set_endpoint(config).unwrap_or_else(|| format!("https://lambda.{region}.{}", domain(partition)));
    let endpoint = endpoint.trim_end_matches('/');
    let path = format!(
        "/2015-03-31/event-source-mappings?EventSourceArn={}&FunctionName={}",
        encoded(source_arn),
        encoded(function_arn)
    );
    let provider = config.credentials_provider().ok_or_else(|| failed("there are no credentials"))?;
    let credentials = provider.provide_credentials().await.map_err(|e| caused("there are no credentials", e))?;
    let headers = signature(&format!("{endpoint}{path}"), &credentials.into(), region, config);
    send(config, endpoint, path, headers.map_err(|e| caused("cannot sign", e))?).await
}

fn caused(what: &str, cause: impl Into<BoxError>) -> ListError {
    ListError::Failed(Error::new(what.to_owned()).caused_by(cause))
}

type Headers = Vec<(String, String)>;

/// Returns the headers that sign a GET of this URL.
fn signature(url: &str, identity: &Identity, region: &str, config: &SdkConfig) -> Result<Headers, BoxError> {
    let time = config.time_source().ok_or("the AWS configuration has no clock")?.now();
    let params = v4::SigningParams::builder()
        .identity(identity)
        .region(region)
        .name("lambda")
        .time(time)
        .settings(SigningSettings::default())
        .build()?
        .into();
    let request = SignableRequest::new("GET", url, std::iter::empty(), SignableBody::Bytes(&[]))?;
    let (instructions, _) = sign(request, &params)?.into_parts();
    Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

async fn send(config: &SdkConfig, endpoint: &str, path: String, headers: Headers) -> Result<Page, ListError> {
    let http_client = config.http_client().ok_or_else(|| caused("there is no HTTP client", "none configured"))?;
    let mut operation = Operation::builder()
        .service_name("Lambda")
        .operation_name("ListEventSourceMappings")
        .http_client(http_client)
        .endpoint_url(endpoint)
        .no_auth()
        .no_retry()
        .timeout_config(TimeoutConfig::builder().operation_timeout(Duration::from_millis(TIMEOUT_MS)).build());
    if let Some(sleep) = config.sleep_impl() {
        operation = operation.sleep_impl(sleep);
    }
    if let Some(time) = config.time_source() {
        operation = operation.time_source(time);
    }
    let operation = operation
        .serializer(move |()| {
            let mut request = HttpRequest::new(SdkBody::empty());
            // The endpoint is put before it, as it was when this was signed.
            request.set_uri(path.clone())?;
            for (name, value) in &headers {
                request.headers_mut().try_insert(name.clone(), value.clone())?;
            }
            Ok(request)
        })
        .deserializer(|response: &HttpResponse| -> Result<Answer, OrchestratorError<Error>> { Ok(answer(response)) })
        .build();
    let answer = operation.invoke(()).await.map_err(|e| caused("Lambda's API gave no answer", e))?;
    answer.0
}

#[derive(Debug)]
struct Answer(Result<Page, ListError>);

fn answer(response: &HttpResponse) -> Answer {
    let status = response.status().as_u16();
    Answer(match status {
        200 => serde_json::from_slice(response.body().bytes().unwrap_or_default())
            .map_err(|e| caused("Lambda's API sent a malformed response", e)),
        401 | 403 => Err(ListError::Denied),
        _ => Err(ListError::Failed(Error::new(format!("Lambda's API answered with status {status}")))),
    })
}

/// Percent-encodes a query value as the signature requires.
fn encoded(text: &str) -> String {
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if unreserved(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_values_are_encoded_as_signatures_want_them() {
        assert_eq!(encoded("arn:aws:sqs:eu-west-1:1:a_b.fifo"), "arn%3Aaws%3Asqs%3Aeu-west-1%3A1%3Aa_b.fifo");
        assert_eq!(encoded("f:$LATEST \u{e9}"), "f%3A%24LATEST%20%C3%A9");
    }
}
