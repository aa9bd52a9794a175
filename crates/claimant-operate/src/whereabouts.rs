//! In which stack, account and Region something is, for who is asked before an act: the same names are in staging and production.

use aws_config::SdkConfig;
use claimant_aws::signed::Service;
use claimant_aws::sqs::queue_arn;

use crate::open::OpenStore;
use crate::place::{Origin, Place};
use crate::queue::ANYWHERE;
use crate::server::{elsewhere, is_of_account};

/// Returns, for a question, in which stack, account and Region of AWS what has this URL, ARN or name is, as far as that is known: a name is in
/// the Region that is given, and so is a URL of AWS that names none. Nothing where neither says more. Where another endpoint is asked, it says
/// that one instead.
fn whereabouts(stack: Option<&str>, address: &str, region: Option<&str>, aws: &SdkConfig) -> Option<String> {
    let arn = queue_arn(address, ANYWHERE).unwrap_or_default();
    let parts: Vec<_> = arn.split(':').collect();
    let of_address = parts.get(3).copied().filter(|region| !region.is_empty());
    let is_in_aws = of_address.is_some() || is_of_account(address);
    let account = parts.get(4).copied().filter(|_| is_in_aws);
    let region = of_address.or(region.filter(|_| is_in_aws || !address.contains("://")));
    let stack = stack.map(|stack| format!("the stack {stack}"));
    let service = match parts.get(2) {
        Some(&"lambda") => Service::LAMBDA,
        Some(&"sqs") => Service::SQS,
        _ => Service::DYNAMODB,
    };
    let endpoint = elsewhere(service, aws).filter(|_| account.or(region).is_some());
    joined(stack, endpoint, (account, region))
}

/// Joins what is known, with the endpoint in the place of account and Region.
fn joined(
    stack: Option<String>,
    endpoint: Option<String>,
    (account, region): (Option<&str>, Option<&str>),
) -> Option<String> {
    let known = match endpoint {
        endpoint @ Some(_) => [stack, endpoint, None],
        None => [stack, account.map(|account| format!("account {account}")), region.map(str::to_owned)],
    };
    let all: Vec<_> = known.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

impl Place {
    /// Returns, for a question, in which stack, account and Region of AWS a queue or a function with this URL or ARN is, as far as that is known;
    /// or the endpoint that is asked for it. Nothing of a local cloud, nor where the URL says it.
    #[must_use]
    pub fn whereabouts(&self, address: &str) -> Option<String> {
        whereabouts(self.stack(), address, self.region(), &self.aws).filter(|_| !self.is_local())
    }

    /// Returns [where](Self::whereabouts) a store of it is, if that is a table; nothing of a local cloud.
    #[must_use]
    pub fn whereabouts_of(&self, store: &OpenStore) -> Option<String> {
        self.whereabouts_of_table(&store.name).filter(|_| store.is_table && !self.is_local())
    }

    /// Returns [where](Self::whereabouts) all of it is, each account and Region once; nothing of a local cloud, nor of databases.
    #[must_use]
    pub fn all_whereabouts(&self) -> Vec<String> {
        if self.is_local() {
            return Vec::new();
        }
        if let Origin::Stack { account, .. } = &self.origin {
            let asked = [Service::CLOUDFORMATION, Service::SQS, Service::DYNAMODB];
            let endpoint = asked.into_iter().find_map(|service| elsewhere(service, &self.aws));
            let all = joined(Some(self.name.clone()), endpoint, (account.as_deref(), self.region()));
            return all.into_iter().collect();
        }
        let tables = self.lock_table_stores().filter_map(|table| self.whereabouts_of_table(table));
        let queues = self.queues.iter().filter_map(|queue| self.whereabouts(&queue.url));
        let mut all: Vec<String> = Vec::new();
        for one in tables.chain(queues) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }

    /// Returns what it is, for people, with [where](Self::all_whereabouts) it is.
    #[must_use]
    pub fn name_and_whereabouts(&self) -> String {
        match (self.all_whereabouts().join("; "), self.stack()) {
            (none, _) if none.is_empty() => self.name.clone(),
            (stack, Some(_)) => stack,
            (all, None) => format!("{} ({all})", self.name),
        }
    }

    fn whereabouts_of_table(&self, table: &str) -> Option<String> {
        whereabouts(self.stack(), table, self.region(), &self.aws)
    }

    fn region(&self) -> Option<&str> {
        self.aws.region().map(AsRef::as_ref)
    }

    fn stack(&self) -> Option<&str> {
        if let Origin::Stack { name, .. } = &self.origin { Some(name) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::SecretUrl;

    use super::*;
    use crate::place::StoreAddress;
    use crate::queue::Queue;

    /// The URL of a queue in the form that SQS gave at first.
    const LEGACY: &str = "https://queue.amazonaws.com/123456789012/orders";

    /// What was named may be in several places; a stack is in one, of which the functions know the account.
    #[test]
    fn a_place_says_where_all_of_it_is() {
        let here = |queue: &str| Queue::at(format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{queue}"));
        let region = Some(aws_config::Region::from_static("eu-west-1"));
        let aws = SdkConfig::builder().region(region.clone()).build();
        let mut place = Place::of("what was named".to_owned(), aws);
        place.stores =
            vec![StoreAddress::Url { url: SecretUrl::new("postgres://u:s3cret@h/d".to_owned()), prefix: None }];
        assert_eq!((place.all_whereabouts(), &*place.name_and_whereabouts()), (Vec::new(), "what was named"));
        place.queues = vec![here("a"), here("b")];
        assert_eq!(place.all_whereabouts(), ["account 123456789012, eu-west-1"]);
        place.queues.push(Queue::at(LEGACY.to_owned()));
        assert_eq!(place.all_whereabouts(), ["account 123456789012, eu-west-1"]);
        place.stores = vec![StoreAddress::Table("locks".to_owned())];
        let named = "what was named (eu-west-1; account 123456789012, eu-west-1)";
        assert_eq!(place.name_and_whereabouts(), named);
        place.name = "the stack shop".to_owned();
        let account = Some("123456789012".to_owned());
        place.origin = Origin::Stack { name: "shop".to_owned(), account };
        let stack = "the stack shop, account 123456789012, eu-west-1";
        assert_eq!((place.all_whereabouts(), &*place.name_and_whereabouts()), (vec![stack.to_owned()], stack));
        // What the names and URLs say of it is not where it is.
        let endpoint = |url: &str| SdkConfig::builder().endpoint_url(url).region(region.clone()).build();
        let place_at =
            |url: &str, origin: &Origin| Place { aws: endpoint(url), origin: origin.clone(), ..place.clone() };
        let emulator = "http://u:s3cret@127.0.0.1:4566/x";
        assert_eq!(
            place_at(emulator, &place.origin).all_whereabouts(),
            ["the stack shop, the endpoint 127.0.0.1:4566"]
        );
        assert_eq!(place_at(emulator, &Origin::Named).all_whereabouts(), ["the endpoint 127.0.0.1:4566"]);
        let own = "https://vpce-0a-1.dynamodb.eu-west-1.vpce.amazonaws.com";
        assert_eq!(place_at(own, &place.origin).all_whereabouts(), [stack]);
        // Nothing of it is in an account.
        place.control = Some("http://127.0.0.1:1".to_owned());
        assert_eq!(place.all_whereabouts(), [""; 0]);
    }

    /// The same names are in staging and production.
    #[test]
    fn a_question_says_where_it_is() {
        let here = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders";
        for (stack, address, region, expected) in [
            (None, here, None, Some("account 123456789012, eu-west-1")),
            (Some("shop"), here, None, Some("the stack shop, account 123456789012, eu-west-1")),
            (
                None,
                "arn:aws:dynamodb:eu-west-1:123456789012:table/locks",
                Some("us-east-1"),
                Some("account 123456789012, eu-west-1"),
            ),
            (Some("shop"), "locks", Some("us-east-1"), Some("the stack shop, us-east-1")),
            (None, "locks", Some("us-east-1"), Some("us-east-1")),
            (None, "http://127.0.0.1:9324/000000000000/orders", None, None),
            (None, "http://127.0.0.1:9324/000000000000/orders", Some("us-east-1"), None),
            (None, LEGACY, Some("us-east-1"), Some("account 123456789012, us-east-1")),
            (None, LEGACY, None, Some("account 123456789012")),
        ] {
            let aws = SdkConfig::builder().build();
            assert_eq!(whereabouts(stack, address, region, &aws).as_deref(), expected, "{address}");
            let aws = SdkConfig::builder().endpoint_url("http://u:s3cret@127.0.0.1:9324").build();
            let of_stack = stack.map(|stack| format!("the stack {stack}, ")).unwrap_or_default();
            let elsewhere = expected.map(|_| format!("{of_stack}the endpoint 127.0.0.1:9324"));
            assert_eq!(whereabouts(stack, address, region, &aws), elsewhere, "{address}");
        }
    }
}
