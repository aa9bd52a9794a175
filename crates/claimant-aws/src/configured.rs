//! The endpoints that the environment and a profile set. The SDK takes them as they are: it panics at an empty one, and its error at one that is
//! no URL quotes the whole request.

use std::collections::BTreeSet;
use std::env;

use aws_config::SdkConfig;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};
use claimant_core::Error;
use hyper::Uri;

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

/// The variable of a web identity, which STS is asked to take.
const TOKEN_VARIABLE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";

/// What sets an endpoint that no variable sets.
const OF_PROFILE: &str = "endpoint_url of the profile";

/// Whose configuration it is.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    /// A function's, whose own clients can be of any service.
    Function,
    /// A command's, of the profile that is named, if one is.
    #[cfg_attr(not(feature = "people"), expect(dead_code, reason = "only people give commands"))]
    Command(Option<&'a str>),
}

/// Returns the configuration with the endpoints that are set, of which an empty one counts as unset; `has_keys` where the environment has
/// credentials.
///
/// # Errors
/// When one of them cannot be used; or is empty, and STS is asked for credentials, by the SDK alone.
pub(crate) fn with_endpoints(config: SdkConfig, whose: Whose<'_>, has_keys: bool) -> Result<SdkConfig, Error> {
    let set = Set(config.clone());
    let mut unusable = BTreeSet::new();
    if set.asks_sts(whose, has_keys)
        && let Some((set_by, url)) = set.of_sts()
    {
        if url.is_empty() {
            return Err(Error::invalid(format!(
                "{set_by} is empty: leave it out where a profile has role_arn, or {TOKEN_VARIABLE} is set, since the SDK itself asks STS then"
            )));
        }
        unusable.extend((!is_endpoint(&url)).then_some(set_by));
    }
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let of_variables =
        names.filter_map(|name| Some(name.strip_prefix(ENDPOINT_VARIABLE)?.strip_prefix('_')?.to_owned()));
    let others = of_variables.filter(|_| matches!(whose, Whose::Function));
    let services = others.chain(SERVICES.map(str::to_owned));
    unusable.extend(services.filter(|id| set.of(id).is_some_and(|url| !is_endpoint(&url))).map(|id| where_set(&id)));
    if !unusable.is_empty() {
        // Not its value: it can have a password.
        let names = unusable.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Error::invalid(format!(
            "what {names} sets is no endpoint: it has to be a URL with a host, such as http://127.0.0.1:4566, without a query, blanks or line \
             breaks, or empty"
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

    /// Returns the endpoint that the SDK's own requests for credentials take, and what sets it. They take it as it is, also where the others
    /// ignore what is set.
    fn of_sts(&self) -> Option<(String, String)> {
        let names = [format!("{ENDPOINT_VARIABLE}_STS"), ENDPOINT_VARIABLE.to_owned()];
        let of_profile = || self.0.service_config()?.load_config(endpoint_key("STS", NO_VARIABLE)?);
        let of_variables = names.into_iter().find_map(|name| env::var(&name).ok().map(|url| (name, url)));
        of_variables.or_else(|| Some((OF_PROFILE.to_owned(), of_profile()?)))
    }

    /// Returns whether STS is asked for credentials.
    fn asks_sts(&self, whose: Whose<'_>, has_keys: bool) -> bool {
        let of_profile = || {
            let key = ServiceConfigKey::builder().service_id("").env(NO_VARIABLE).profile("role_arn").build();
            self.0.service_config()?.load_config(key.ok()?)
        };
        match whose {
            // They are its own, whatever the environment has.
            Whose::Command(Some(_)) => of_profile().is_some(),
            _ => !has_keys && variable(TOKEN_VARIABLE).or_else(of_profile).is_some(),
        }
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
    names.into_iter().find(|name| variable(name).is_some()).unwrap_or_else(|| OF_PROFILE.to_owned())
}

/// Returns whether the SDK can send a request to this endpoint: asked is what it does itself, which is content with no host, and with a port
/// that is no number: the request then goes to the port of the scheme. A query it leaves out, and logs it with each request.
fn is_endpoint(url: &str) -> bool {
    let is_http = ["http://", "https://"].iter().any(|scheme| {
        let begin = url.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    });
    let mut request = HttpRequest::new(SdkBody::empty());
    is_http
        && request.uri_mut().set_endpoint(url).is_ok()
        && request.uri().parse().is_ok_and(|uri| leads_to_host(&uri))
        && !url.contains('?')
}

fn leads_to_host(uri: &Uri) -> bool {
    uri.authority().is_some_and(|authority| {
        let (_, host_and_port) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
        let (host, port) = (authority.host(), authority.port_u16());
        !host.is_empty() && (host == host_and_port || port.is_some_and(|port| port > 0))
    })
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
            ("http://u:p@[::1]/x", true),
            ("http://127.0.0.1:4566/?token=t", false),
            ("http://127.0.0.1:4566?", false),
            ("http://:4566", false),
            ("http://localhost:", false),
            ("http://localhost:$PORT", false),
            ("http://localhost:99999", false),
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
