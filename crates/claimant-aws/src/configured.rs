//! The endpoints that the environment and a profile set. The SDK takes them as they are: it panics at an empty one, and its error at one that is
//! no URL quotes the whole request.

use std::collections::BTreeSet;
use std::env;

use aws_config::SdkConfig;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};
use claimant_core::Error;

use crate::endpoints::{ENDPOINT_VARIABLE, endpoint_key};

/// Services whose endpoints are looked at wherever they are set: those of a profile cannot be listed. The first one is none, with the
/// endpoint of all.
const SERVICES: [&str; 12] = [
    "",
    "CloudFormation",
    "CloudWatch",
    "CloudWatch Logs",
    "DynamoDB",
    "IAM",
    "Lambda",
    "S3",
    "SESv2",
    "SQS",
    "STS",
    "Scheduler",
];

/// A name that no variable has.
const NO_VARIABLE: &str = "=";

/// Returns the configuration with the endpoints that are set, of which an empty one counts as unset; `has_keys` where its credentials are
/// variables.
///
/// # Errors
/// When one of them is no URL; or is empty, and STS is asked for credentials, by the SDK alone.
pub(crate) fn with_endpoints(config: SdkConfig, has_keys: bool) -> Result<SdkConfig, Error> {
    let set = Set(config.clone());
    if !has_keys && set.is_of_role() && set.raw("STS").is_some_and(|url| url.is_empty()) {
        return Err(Error::invalid(format!(
            "{ENDPOINT_VARIABLE} or {ENDPOINT_VARIABLE}_STS is empty: leave it out where the credentials are those of a role, since the SDK cannot \
             ask for them then"
        )));
    }
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let of_variables =
        names.filter_map(|name| Some(name.strip_prefix(ENDPOINT_VARIABLE)?.strip_prefix('_')?.to_owned()));
    let services = of_variables.chain(SERVICES.map(str::to_owned));
    let unusable: BTreeSet<_> =
        services.filter(|id| set.of(id).is_some_and(|url| !is_endpoint(&url))).map(|id| where_set(&id)).collect();
    if !unusable.is_empty() {
        // Not its value: it can have a password.
        let names = unusable.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Error::invalid(format!(
            "what {names} sets is no endpoint: it has to be a URL with a host, such as http://127.0.0.1:4566, without blanks or line breaks, \
             or empty"
        )));
    }
    let mut builder = config.into_builder();
    builder.set_endpoint_url(set.of(""));
    Ok(builder.service_config(set).build())
}

/// Endpoints as a configuration sets them, without those that are empty.
#[derive(Debug)]
struct Set(SdkConfig);

impl Set {
    fn of(&self, service_id: &str) -> Option<String> {
        self.load_config(endpoint_key(service_id, ENDPOINT_VARIABLE)?)
    }

    /// Returns the endpoint that the SDK's own requests for credentials take.
    fn raw(&self, service_id: &str) -> Option<String> {
        self.0.service_config()?.load_config(endpoint_key(service_id, ENDPOINT_VARIABLE)?)
    }

    /// Returns whether credentials are those of a role, which STS is asked for.
    fn is_of_role(&self) -> bool {
        let of_profile = || {
            let key = ServiceConfigKey::builder().service_id("").env(NO_VARIABLE).profile("role_arn").build();
            self.0.service_config()?.load_config(key.ok()?)
        };
        variable("AWS_WEB_IDENTITY_TOKEN_FILE").or_else(of_profile).is_some()
    }
}

impl LoadServiceConfig for Set {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let set = self.0.service_config()?;
        let (id, is_endpoint) = (key.service_id(), key.env() == ENDPOINT_VARIABLE);
        let found = set.load_config(key)?;
        if !is_endpoint || !found.is_empty() {
            return Some(found);
        }
        // What it hides: the variable for all services, and the profile.
        let of_all = variable(ENDPOINT_VARIABLE);
        of_all.or_else(|| set.load_config(endpoint_key(id, NO_VARIABLE)?)).filter(|url| !url.is_empty())
    }
}

/// Returns the value of a variable that is set, and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Says where the endpoint of a service is set.
fn where_set(id: &str) -> String {
    let own = format!("{ENDPOINT_VARIABLE}_{}", id.to_uppercase().replace(' ', "_"));
    let names = [own, ENDPOINT_VARIABLE.to_owned()];
    names.into_iter().find(|name| variable(name).is_some()).unwrap_or_else(|| "endpoint_url of the profile".to_owned())
}

/// Returns whether the SDK can send a request to this endpoint: asked is what it does itself.
fn is_endpoint(url: &str) -> bool {
    let is_http = ["http://", "https://"].iter().any(|scheme| {
        let begin = url.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    });
    is_http && HttpRequest::new(SdkBody::empty()).uri_mut().set_endpoint(url).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_with_a_host() {
        for (url, good) in [
            ("http://127.0.0.1:4566", true),
            ("https://sqs.eu-west-1.amazonaws.com/", true),
            ("HTTP://localhost", true),
            ("http://[::1]:8000/x", true),
            ("http://127.0.0.1:1 ", false),
            ("http://127.0.0.1:1\n", false),
            ("http://local host", false),
            ("http://[::1", false),
            ("http://", false),
            ("http:/x", false),
            ("localhost", false),
            ("localhost:4566", false),
            ("127.0.0.1:9", false),
            ("/x", false),
            ("ftp://x", false),
        ] {
            assert_eq!(is_endpoint(url), good, "{url:?}");
        }
    }
}
