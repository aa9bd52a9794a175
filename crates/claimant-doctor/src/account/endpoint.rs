//! Where AWS's own endpoints are, in each of its partitions.

use claimant_aws::signed::{partition_of, public_endpoint};

/// Where IAM is, which has one endpoint for all Regions of a partition: the partition, the host, and the Region for which requests to it
/// are signed.
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

/// In this partition most endpoints are of validated cryptography, under their plain names; this service has another one for it.
const US_GOV: (&str, &str) = ("aws-us-gov", "lambda");

/// Returns the endpoint of IAM for this Region, with validated cryptography or not, and the Region for which requests to it are signed.
pub(super) fn of_iam(region: &str, fips: bool) -> (String, &'static str) {
    let partition = partition_of(region);
    let [first, ..] = &IAM;
    let found = IAM.iter().find(|known| known.0 == partition).unwrap_or(first);
    let host = if fips && partition == "aws" { "iam-fips.amazonaws.com" } else { found.1 };
    (format!("https://{host}"), found.2)
}

/// Returns the endpoint of a service in this Region; with validated cryptography, with IPv6 too.
pub(super) fn of_service(name: &str, region: &str, fips: bool, dual_stack: bool) -> String {
    let partition = partition_of(region);
    let fips = fips && (partition != US_GOV.0 || name == US_GOV.1);
    public_endpoint(name, region, partition, (fips, dual_stack))
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
            let of_logs = of_service("logs", region, false, false);
            assert_eq!(of_logs, format!("https://{service}"), "{region}");
            assert_eq!(of_iam(region, false), (format!("https://{iam}"), signed_for), "{region}");
        }
    }

    /// As the rules of botocore 1.43 have them.
    #[test]
    fn endpoints_of_validated_cryptography_and_of_ipv6() {
        for (name, region, (fips, dual_stack), host) in [
            ("logs", "us-east-1", (true, false), "logs-fips.us-east-1.amazonaws.com"),
            ("logs", "us-gov-west-1", (true, false), "logs.us-gov-west-1.amazonaws.com"),
            ("lambda", "us-gov-west-1", (true, false), "lambda-fips.us-gov-west-1.amazonaws.com"),
            ("sqs", "eu-west-1", (false, true), "sqs.eu-west-1.api.aws"),
        ] {
            assert_eq!(of_service(name, region, fips, dual_stack), format!("https://{host}"));
        }
        assert_eq!(of_iam("us-east-1", true).0, "https://iam-fips.amazonaws.com");
        assert_eq!(of_iam("us-gov-west-1", true).0, "https://iam.us-gov.amazonaws.com");
    }
}
