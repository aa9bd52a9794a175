//! Where AWS's own endpoints are, in each of its partitions.

use claimant_aws::signed::{domain, partition_of};

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

/// Returns the host of IAM for this Region, and the Region for which requests to it are signed.
pub(super) fn of_iam(region: &str) -> (&'static str, &'static str) {
    let partition = partition_of(region);
    let [first, ..] = &IAM;
    let found = IAM.iter().find(|known| known.0 == partition).unwrap_or(first);
    (found.1, found.2)
}

/// Returns the host of a service in this Region.
pub(super) fn of_service(name: &str, region: &str) -> String {
    format!("{name}.{region}.{}", domain(partition_of(region)))
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
            assert_eq!((of_service("logs", region).as_str(), of_iam(region)), (service, (iam, signed_for)), "{region}");
        }
    }
}
