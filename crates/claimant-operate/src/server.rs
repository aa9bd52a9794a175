//! Whether requests about a queue go to the server that its URL names. A client sends them to its endpoint, and emulators, unlike SQS, take the
//! account and the name out of a URL, and no more of it.

use aws_config::SdkConfig;
use claimant_aws::endpoints::is_of_aws;
use claimant_aws::signed::Service;
use claimant_core::Error;

use crate::aws::name_of_arn;
use crate::text::typed;

/// Checks that a client of this configuration asks the server that the URL names.
///
/// # Errors
/// When it asks another one.
pub(crate) fn check_endpoint(url: &str, aws: &SdkConfig) -> Result<(), Error> {
    let endpoint = Service::SQS.set_endpoint(aws);
    let Some(other) = other_server(url, endpoint.as_deref()) else { return Ok(()) };
    let asked = endpoint.as_deref().and_then(authority).unwrap_or("the endpoint of AWS");
    let scheme = url.split("://").next().unwrap_or_default();
    let [name, scheme, other] = [name_of_arn(url), scheme, other].map(typed);
    Err(Error::invalid(format!(
        "the URL of the queue {name} is of {other}, and SQS is asked at {asked}: set AWS_ENDPOINT_URL_SQS={scheme}://{other}, or add --local where \
         it is a local cloud's"
    )))
}

/// Checks that a queue is on the server where the letters are that are sent to it.
///
/// # Errors
/// When it is on another one.
pub(crate) fn check_destination(to: &str, letters: &str) -> Result<(), Error> {
    let (Some(other), Some(here)) = (other_server(to, Some(letters)), authority(letters)) else { return Ok(()) };
    Err(Error::invalid(format!(
        "the destination {} is on {}, and the letters are on {}: they are sent to queues there alone",
        typed(name_of_arn(to)),
        typed(other),
        typed(here)
    )))
}

/// Returns the host and the port of a queue's URL, where that is neither of AWS nor the endpoint.
fn other_server<'a>(url: &'a str, endpoint: Option<&str>) -> Option<&'a str> {
    let server = authority(url)?;
    let is_asked = endpoint.and_then(authority).is_some_and(|asked| known_as(asked) == known_as(server));
    (!is_asked && !is_of_aws(&split(server).0.to_ascii_lowercase())).then_some(server)
}

/// Returns the host and the port of a URL, without what signs in there.
fn authority(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    let all = rest.split(['/', '?', '#']).next()?;
    Some(all.rsplit_once('@').map_or(all, |(_, server)| server))
}

fn split(server: &str) -> (&str, &str) {
    match server.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (server, ""),
    }
}

/// Returns a host and a port in one spelling: this machine has several names, and emulators give queues another one than they are asked by.
fn known_as(server: &str) -> (String, &str) {
    let (host, port) = split(server);
    let host = host.to_ascii_lowercase();
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
            ("orders", local, None),
            ("arn:aws:sqs:eu-west-1:123456789012:orders", local, None),
            ("http://127.0.0.1:9324/000000000000/orders", local, Some("127.0.0.1:9324")),
            ("http://127.0.0.1:9324/000000000000/orders", None, Some("127.0.0.1:9324")),
            ("http://u:secret@elasticmq/000000000000/orders", local, Some("elasticmq")),
            ("https://amazonaws.com.example/000000000000/orders", None, Some("amazonaws.com.example")),
        ] {
            assert_eq!(other_server(url, endpoint), other, "{url}");
        }
    }

    #[test]
    fn both_servers_are_named_and_no_password() {
        let url = "http://u:secret@elasticmq:9324/000000000000/orders";
        for (endpoint, asked) in
            [(Some("http://u:secret@127.0.0.1:4566"), "127.0.0.1:4566"), (None, "the endpoint of AWS")]
        {
            let mut aws = SdkConfig::builder();
            aws.set_endpoint_url(endpoint.map(str::to_owned));
            let said = check_endpoint(url, &aws.build()).unwrap_err().to_string();
            let wanted = format!(
                "the URL of the queue orders is of elasticmq:9324, and SQS is asked at {asked}: set AWS_ENDPOINT_URL_SQS=http://elasticmq:9324, or"
            );
            assert!(said.starts_with(&wanted), "{said}");
        }
        let letters = "http://127.0.0.1:4566/000000000000/dead";
        let said = check_destination(url, letters).unwrap_err().to_string();
        assert!(
            said.contains("elasticmq:9324") && said.contains("127.0.0.1:4566") && !said.contains("secret"),
            "{said}"
        );
        assert!(check_destination("http://127.0.0.1:4566/000000000000/orders", letters).is_ok());
    }
}
