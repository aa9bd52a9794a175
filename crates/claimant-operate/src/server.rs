//! Whether requests about a queue go to the server that its URL names. A client sends them to its endpoint, and emulators, unlike SQS, take the
//! account and the name out of a URL, and no more of it.

use aws_config::SdkConfig;
use claimant_aws::endpoints::{is_of_aws, server_of};
use claimant_aws::signed::Service;
use claimant_core::Error;
use hyper::Uri;

use crate::aws::name_of_arn;
use crate::text::typed;

/// Checks that a client of this configuration asks the server that the URL names.
///
/// # Errors
/// When it asks another one.
pub(crate) fn check_endpoint(url: &str, aws: &SdkConfig) -> Result<(), Error> {
    let endpoint = Service::SQS.set_endpoint(aws).and_then(|endpoint| url_of(&endpoint));
    let Some(other) = at_another_server(url, endpoint.as_ref()) else { return Ok(()) };
    let asked = endpoint.as_ref().map_or_else(|| "the endpoint of AWS".to_owned(), server);
    // An emulator in a container has another name there, by which it calls its queues or not.
    let there = endpoint.as_ref().map_or_else(String::new, |endpoint| {
        let (scheme, path) = (scheme(endpoint), typed(other.path()));
        format!(", or give the URL as {scheme}://{asked}{path}, where that is the same server")
    });
    let (name, scheme, other) = (typed(name_of_arn(url)), scheme(&other), server(&other));
    Err(Error::invalid(format!(
        "the URL of the queue {name} is of {other}, and SQS is asked at {asked}: set AWS_ENDPOINT_URL_SQS={scheme}://{other}{there}. A queue of a \
         local cloud takes --local, without --store"
    )))
}

/// Checks that a queue is on the server where the letters are that are sent to it.
///
/// # Errors
/// When it is on another one.
pub(crate) fn check_same_server(to: &str, letters: &str) -> Result<(), Error> {
    let (Some(other), Some(here)) = (url_of(to), url_of(letters)) else { return Ok(()) };
    // One client asks for both, and AWS answers no client of another server.
    if known_as(&other) == known_as(&here) || (is_at_aws(&other) && is_at_aws(&here)) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the destination {} is on {}, and the letters are on {}: they are sent to queues there alone",
        typed(name_of_arn(to)),
        server(&other),
        server(&here)
    )))
}

/// Returns, for people, the endpoint that is set for a service, where that is none of AWS's own: what its URLs and ARNs say is then not where
/// it is.
pub(crate) fn elsewhere(service: Service, aws: &SdkConfig) -> Option<String> {
    let endpoint = url_of(&service.set_endpoint(aws)?).filter(|endpoint| !is_at_aws(endpoint))?;
    Some(format!("the endpoint {}", server(&endpoint)))
}

/// Returns whether this is the URL of a queue of an AWS account, or an ARN.
#[must_use]
pub fn is_of_account(address: &str) -> bool {
    url_of(address).map_or_else(|| address.starts_with("arn:"), |url| is_at_aws(&url))
}

/// Returns a queue's URL, where its server is neither AWS nor the endpoint.
fn at_another_server(url: &str, endpoint: Option<&Uri>) -> Option<Uri> {
    let url = url_of(url)?;
    let is_asked = endpoint.is_some_and(|endpoint| known_as(endpoint) == known_as(&url));
    (!is_asked && !is_at_aws(&url)).then_some(url)
}

/// Reads a URL; nothing of a name or an ARN.
fn url_of(text: &str) -> Option<Uri> {
    text.parse().ok().filter(|url: &Uri| url.scheme().is_some())
}

fn is_at_aws(url: &Uri) -> bool {
    url.host().is_some_and(|host| is_of_aws(&host.to_ascii_lowercase()))
}

fn scheme(url: &Uri) -> &str {
    url.scheme_str().unwrap_or_default()
}

fn server(url: &Uri) -> String {
    url.authority().map(server_of).unwrap_or_default()
}

/// Returns the host and the port of a URL in one spelling: this machine has several names, and emulators give queues another one than they are
/// asked by.
fn known_as(url: &Uri) -> (String, u16) {
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    let port = url.port_u16().unwrap_or(if scheme(url) == "https" { 443 } else { 80 });
    let is_here = ["localhost", "127.0.0.1", "[::1]"].contains(&&*host) || host.ends_with("localhost.localstack.cloud");
    (if is_here { "localhost".to_owned() } else { host }, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_another_server_is_not_asked_for() {
        let local = Some("http://u:secret@127.0.0.1:4566/");
        for (url, endpoint, other) in [
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/orders", None, None),
            ("https://SQS.eu-west-1.amazonaws.com:443/123456789012/orders", local, None),
            ("https://vpce-0a-1.sqs.eu-west-1.vpce.amazonaws.com/123456789012/orders", None, None),
            ("http://127.0.0.1:4566/000000000000/orders", local, None),
            ("http://localhost:4566/000000000000/orders", local, None),
            ("http://[::1]:4566/000000000000/orders", local, None),
            ("http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/orders", local, None),
            ("https://sqs.internal.example/1/orders", Some("https://sqs.internal.example"), None),
            ("https://sqs.internal.example:443/1/orders", Some("https://sqs.internal.example"), None),
            ("http://sqs.internal.example/1/orders", Some("HTTP://sqs.internal.example:80/"), None),
            (
                "https://sqs.internal.example/1/orders",
                Some("http://sqs.internal.example"),
                Some("sqs.internal.example"),
            ),
            // As in a container, where an emulator has another name.
            ("http://localstack:4566/000000000000/orders", Some("http://localstack:4566"), None),
            ("http://localhost:4566/000000000000/orders", Some("http://localstack:4566"), Some("localhost:4566")),
            ("orders", local, None),
            ("arn:aws:sqs:eu-west-1:123456789012:orders", local, None),
            ("http://127.0.0.1:9324/000000000000/orders", local, Some("127.0.0.1:9324")),
            ("http://127.0.0.1:9324/000000000000/orders", None, Some("127.0.0.1:9324")),
            ("http://u:secret@elasticmq/000000000000/orders", local, Some("elasticmq")),
            ("https://amazonaws.com.example/000000000000/orders", None, Some("amazonaws.com.example")),
        ] {
            let found = at_another_server(url, endpoint.and_then(url_of).as_ref());
            assert_eq!(found.as_ref().map(server).as_deref(), other, "{url}");
        }
    }

    #[test]
    fn both_servers_are_named_and_no_password() {
        let url = "http://u:secret@elasticmq:9324/000000000000/orders";
        let there = ", or give the URL as http://127.0.0.1:4566/000000000000/orders, where that is the same server";
        for (endpoint, asked, there) in
            [(Some("http://u:secret@127.0.0.1:4566/"), "127.0.0.1:4566", there), (None, "the endpoint of AWS", "")]
        {
            let mut aws = SdkConfig::builder();
            aws.set_endpoint_url(endpoint.map(str::to_owned));
            let said = check_endpoint(url, &aws.build()).unwrap_err().to_string();
            let wanted = format!(
                "the URL of the queue orders is of elasticmq:9324, and SQS is asked at {asked}: set AWS_ENDPOINT_URL_SQS=http://elasticmq:9324{there}. A"
            );
            assert!(said.starts_with(&wanted) && !said.contains("secret"), "{said}");
        }
        let letters = "http://127.0.0.1:4566/000000000000/dead";
        let said = check_same_server(url, letters).unwrap_err().to_string();
        assert!(
            said.contains("elasticmq:9324") && said.contains("127.0.0.1:4566") && !said.contains("secret"),
            "{said}"
        );
        let of_aws = "https://sqs.eu-west-1.amazonaws.com/000000000000/orders";
        for (to, letters, is_there) in [
            ("http://localhost:4566/000000000000/orders", letters, true),
            (of_aws, letters, false),
            (of_aws, "https://eu-west-1.queue.amazonaws.com/000000000000/dead", true),
            (letters, of_aws, false),
        ] {
            assert_eq!(check_same_server(to, letters).is_ok(), is_there, "{to}, {letters}");
        }
    }
}
