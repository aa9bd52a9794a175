//! In which stack, account and Region something is, for who is asked before an act: the same names are in staging and production.

use claimant_aws::sqs::queue_arn;

use crate::open::OpenStore;
use crate::place::{Origin, Place, StoreAddress};
use crate::queue::ANYWHERE;

/// Returns, for a question, in which stack, account and Region of AWS what has this URL, ARN or name is, as far as that is known: a name is in
/// the Region that is given, and so is a URL of AWS that names none. Nothing where neither says more, as of an endpoint of one's own.
#[must_use]
pub fn whereabouts(stack: Option<&str>, address: &str, region: Option<&str>) -> Option<String> {
    let arn = queue_arn(address, ANYWHERE).unwrap_or_default();
    let parts: Vec<_> = arn.split(':').collect();
    let of_address = parts.get(3).copied().filter(|region| !region.is_empty());
    let is_in_aws = of_address.is_some() || is_host_of_aws(address);
    let account = parts.get(4).filter(|_| is_in_aws).map(|account| format!("account {account}"));
    let region = region.filter(|_| is_in_aws || !address.contains("://"));
    let stack = stack.map(|stack| format!("the stack {stack}"));
    let all: Vec<_> = [stack, account, of_address.or(region).map(str::to_owned)].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Returns whether it is a URL whose host is one of AWS, such as `queue.amazonaws.com`.
fn is_host_of_aws(address: &str) -> bool {
    let host = address.split_once("://").and_then(|(_, rest)| rest.split(['/', ':']).next());
    host.is_some_and(|host| [".amazonaws.com", ".amazonaws.com.cn"].iter().any(|end| host.ends_with(end)))
}

impl Place {
    /// Returns [where](whereabouts) a queue or a function with this URL or ARN is; nothing of a local cloud.
    #[must_use]
    pub fn whereabouts(&self, address: &str) -> Option<String> {
        whereabouts(self.stack(), address, self.region()).filter(|_| !self.is_local())
    }

    /// Returns [where](whereabouts) a store of it is, if that is a table; nothing of a local cloud.
    #[must_use]
    pub fn whereabouts_of(&self, store: &OpenStore) -> Option<String> {
        self.whereabouts_of_table(&store.name).filter(|_| store.is_table && !self.is_local())
    }

    /// Returns [where](whereabouts) all of it is, each account and Region once; nothing of a local cloud, nor of databases.
    #[must_use]
    pub fn all_whereabouts(&self) -> Vec<String> {
        if self.is_local() {
            return Vec::new();
        }
        if let Origin::Stack { account, .. } = &self.origin {
            let account = account.as_ref().map(|account| format!("account {account}"));
            let stack = Some(self.name.clone());
            let all: Vec<_> = [stack, account, self.region().map(str::to_owned)].into_iter().flatten().collect();
            return vec![all.join(", ")];
        }
        let tables = self.stores.iter().filter_map(|store| match store {
            StoreAddress::Table(table) => self.whereabouts_of_table(table),
            StoreAddress::Url { .. } => None,
        });
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
        whereabouts(self.stack(), table, self.region())
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
    use crate::queue::Queue;

    /// The URL of a queue in the form that SQS gave at first.
    const LEGACY: &str = "https://queue.amazonaws.com/123456789012/orders";

    /// What was named may be in several places; a stack is in one, of which the functions know the account.
    #[test]
    fn a_place_says_where_all_of_it_is() {
        let here = |queue: &str| Queue::at(format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{queue}"));
        let region = Some(aws_config::Region::from_static("eu-west-1"));
        let mut place = Place::of("what was named".to_owned(), aws_config::SdkConfig::builder().region(region).build());
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
            assert_eq!(whereabouts(stack, address, region).as_deref(), expected, "{address}");
        }
    }
}
