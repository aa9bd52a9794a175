//! Where services are: AWS's own endpoints in each of its partitions, and such as are set.

use std::collections::BTreeMap;

use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};
use hyper::http::uri::Authority;

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

/// IAM, which has one endpoint for all Regions of a partition: the partition, the host, and the Region for which requests to it are signed.
const IAM: [(&str, &str, &str); 8] = [
    ("aws", "iam.amazonaws.com", "us-east-1"),
    ("aws-cn", "iam.cn-north-1.amazonaws.com.cn", "cn-north-1"),
    ("aws-us-gov", "iam.us-gov.amazonaws.com", "us-gov-west-1"),
    ("aws-eusc", "iam.eusc-de-east-1.amazonaws.eu", "eusc-de-east-1"),
    ("aws-iso", "iam.us-iso-east-1.c2s.ic.gov", "us-iso-east-1"),
    ("aws-iso-b", "iam.us-isob-east-1.sc2s.sgov.gov", "us-isob-east-1"),
    ("aws-iso-e", "iam.eu-isoe-west-1.cloud.adc-e.uk", "eu-isoe-west-1"),
    ("aws-iso-f", "iam.us-isof-south-1.csp.hci.ic.gov", "us-isof-south-1"),
];

/// In this partition most endpoints are of validated cryptography, under their plain names; these services have others for it. Of the
/// endpoints that have IPv6 too, only the one of [`US_GOV_BOTH`] is.
const US_GOV: (&str, [&str; 2]) = ("aws-us-gov", ["lambda", "scheduler"]);
const US_GOV_BOTH: &str = "monitoring";

/// Says that what answered is not this service, by what came, and what is to be looked at.
#[must_use]
pub fn not_of(service: &str, came: &str) -> String {
    format!("what answered is not {service}: {came}. Is the endpoint right, or is there a proxy in front of it?")
}

/// Says that an answer with this HTTP status, of a success or of something else that is no error, cannot be read.
#[must_use]
pub fn unread(service: &str, status: u16) -> String {
    format!("what answered is not {service}, or its answer broke off: status {status}, without an error code")
}

/// Returns the DNS suffix of a partition's endpoints.
#[must_use]
pub fn domain(partition: &str) -> &'static str {
    PARTITIONS.iter().find(|known| known.0 == partition).map_or("amazonaws.com", |known| known.2)
}

/// Returns whether a host is one of AWS's own, in whichever partition.
#[must_use]
pub fn is_of_aws(host: &str) -> bool {
    let is_below = |domain| host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    PARTITIONS.iter().any(|(_, _, ipv4, both)| is_below(ipv4) || is_below(both))
}

/// Returns the host and the port of an address, without what signs in there, which can be a password.
#[must_use]
pub fn server_of(address: &Authority) -> String {
    let port = address.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", address.host())
}

/// Returns the partition of a Region, by its name.
pub(crate) fn partition_of(region: &str) -> &'static str {
    PARTITIONS.iter().find(|known| region.starts_with(known.1)).map_or("aws", |known| known.0)
}

/// Returns the endpoint that a service has where none is set, as the SDKs have it, by the first part of its host; and the Region for
/// which requests to it are signed. With validated cryptography, with IPv6 too; IAM has IPv4 alone here, though AWS has more.
pub(crate) fn public<'r>(
    host: &str,
    region: &'r str,
    partition: &str,
    (fips, dual_stack): (bool, bool),
) -> (String, &'r str) {
    if host == "iam" {
        return of_iam(partition, fips);
    }
    let is_plain = partition == US_GOV.0 && !US_GOV.1.contains(&host) && (!dual_stack || host == US_GOV_BOTH);
    let fips = if fips && !is_plain { "-fips" } else { "" };
    let both = || PARTITIONS.iter().find(|known| known.0 == partition).map_or("api.aws", |known| known.3);
    let domain = if dual_stack { both() } else { domain(partition) };
    (format!("https://{host}{fips}.{region}.{domain}"), region)
}

fn of_iam(partition: &str, fips: bool) -> (String, &'static str) {
    let [first, ..] = &IAM;
    let found = IAM.iter().find(|known| known.0 == partition).unwrap_or(first);
    let host = if fips && partition == "aws" { "iam-fips.amazonaws.com" } else { found.1 };
    (format!("https://{host}"), found.2)
}

/// Endpoints that are set for services, each by its service's name in the SDK's variables: `SQS` of `AWS_ENDPOINT_URL_SQS`. As the
/// `service_config` of a configuration they count for all clients that are made of it, and for [signed](crate::signed) requests; a
/// service that is not among them has the endpoint that the configuration has for all, or AWS's own.
#[derive(Debug, Clone, Default)]
pub struct Endpoints(pub BTreeMap<String, String>);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let is_asked = key.env() == ENDPOINT_VARIABLE;
        is_asked.then(|| self.0.get(&key.service_id().to_uppercase().replace(' ', "_")).cloned()).flatten()
    }
}

/// The variable of the endpoint of all services, and the beginning of those of each.
pub(crate) const ENDPOINT_VARIABLE: &str = "AWS_ENDPOINT_URL";

/// Returns what the endpoint of a service is asked for with: its id, the variable, and the setting of a profile.
pub(crate) fn endpoint_key<'a>(service_id: &'a str, variable: &'a str) -> Option<ServiceConfigKey<'a>> {
    ServiceConfigKey::builder().service_id(service_id).env(variable).profile("endpoint_url").build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_those_of_the_partition() {
        for (region, service, iam, signed_for) in [
            ("eu-west-1", "logs.eu-west-1.amazonaws.com", "iam.amazonaws.com", "us-east-1"),
            ("cn-northwest-1", "logs.cn-northwest-1.amazonaws.com.cn", "iam.cn-north-1.amazonaws.com.cn", "cn-north-1"),
            ("us-gov-east-1", "logs.us-gov-east-1.amazonaws.com", "iam.us-gov.amazonaws.com", "us-gov-west-1"),
            ("eusc-de-east-1", "logs.eusc-de-east-1.amazonaws.eu", "iam.eusc-de-east-1.amazonaws.eu", "eusc-de-east-1"),
            ("us-iso-west-1", "logs.us-iso-west-1.c2s.ic.gov", "iam.us-iso-east-1.c2s.ic.gov", "us-iso-east-1"),
            (
                "us-isob-east-1",
                "logs.us-isob-east-1.sc2s.sgov.gov",
                "iam.us-isob-east-1.sc2s.sgov.gov",
                "us-isob-east-1",
            ),
            (
                "eu-isoe-west-1",
                "logs.eu-isoe-west-1.cloud.adc-e.uk",
                "iam.eu-isoe-west-1.cloud.adc-e.uk",
                "eu-isoe-west-1",
            ),
            (
                "us-isof-east-1",
                "logs.us-isof-east-1.csp.hci.ic.gov",
                "iam.us-isof-south-1.csp.hci.ic.gov",
                "us-isof-south-1",
            ),
        ] {
            let of = |host: &str| public(host, region, partition_of(region), (false, false));
            assert_eq!(of("logs"), (format!("https://{service}"), region));
            assert_eq!(of("iam"), (format!("https://{iam}"), signed_for), "{region}");
        }
    }

    #[test]
    fn hosts_of_aws_are_below_its_domains() {
        for (host, is_its_own) in [
            ("sqs.eu-west-1.amazonaws.com", true),
            ("vpce-0a-1.sqs.eu-west-1.vpce.amazonaws.com", true),
            ("sqs.cn-north-1.amazonaws.com.cn", true),
            ("sqs.eu-west-1.api.aws", true),
            ("sqs.eusc-de-east-1.amazonaws.eu", true),
            ("amazonaws.com.example", false),
            ("sqs-amazonaws.com", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(is_of_aws(host), is_its_own, "{host}");
        }
    }

    /// As the rules of botocore 1.43 have them.
    #[test]
    fn endpoints_of_validated_cryptography_and_of_ipv6() {
        for (name, region, (fips, dual_stack), host) in [
            ("logs", "us-east-1", (true, false), "logs-fips.us-east-1.amazonaws.com"),
            ("logs", "us-gov-west-1", (true, false), "logs.us-gov-west-1.amazonaws.com"),
            ("lambda", "us-gov-west-1", (true, false), "lambda-fips.us-gov-west-1.amazonaws.com"),
            ("scheduler", "us-gov-west-1", (true, false), "scheduler-fips.us-gov-west-1.amazonaws.com"),
            ("sqs", "eu-west-1", (false, true), "sqs.eu-west-1.api.aws"),
            ("sqs", "us-gov-west-1", (true, true), "sqs-fips.us-gov-west-1.api.aws"),
            ("monitoring", "us-gov-west-1", (true, true), "monitoring.us-gov-west-1.api.aws"),
            ("sqs", "eu-west-1", (true, true), "sqs-fips.eu-west-1.api.aws"),
            ("iam", "us-east-1", (true, false), "iam-fips.amazonaws.com"),
            ("iam", "us-gov-west-1", (true, false), "iam.us-gov.amazonaws.com"),
        ] {
            let (endpoint, _) = public(name, region, partition_of(region), (fips, dual_stack));
            assert_eq!(endpoint, format!("https://{host}"));
        }
    }

    #[test]
    fn only_endpoints_are_set_and_only_of_the_services_that_are_named() {
        let set = Endpoints([("CLOUDWATCH_LOGS".to_owned(), "http://l".to_owned())].into());
        let of = |service_id: &str, env: &str| set.load_config(endpoint_key(service_id, env).unwrap());
        assert_eq!(of("CloudWatch Logs", ENDPOINT_VARIABLE).as_deref(), Some("http://l"));
        assert_eq!(of("CloudWatch Logs", "AWS_OTHER"), None);
        assert_eq!(of("SQS", ENDPOINT_VARIABLE), None);
    }
}
