//! In which stack, account and Region something is, for who is asked before an act: the same names are in staging and production.

use claimant_aws::sqs::queue_arn;

use crate::open::OpenStore;
use crate::place::{Origin, Place};
use crate::queue::ANYWHERE;

/// Returns, for a question, in which stack, account and Region of AWS what has this URL, ARN or name is, as far as that is known: a name is in
/// the Region that is given. Nothing where neither says more, as of an endpoint of one's own.
#[must_use]
pub fn whereabouts(stack: Option<&str>, address: &str, region: Option<&str>) -> Option<String> {
    let arn = queue_arn(address, ANYWHERE).unwrap_or_default();
    let parts: Vec<_> = arn.split(':').collect();
    let of_address = parts.get(3).copied().filter(|region| !region.is_empty());
    let account = of_address.and(parts.get(4)).map(|account| format!("account {account}"));
    let stack = stack.map(|stack| format!("the stack {stack}"));
    let all: Vec<_> = [stack, account, of_address.or(region).map(str::to_owned)].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

impl Place {
    /// Returns [where](whereabouts) a queue or a function with this URL or ARN is; nothing of a local cloud.
    #[must_use]
    pub fn whereabouts(&self, address: &str) -> Option<String> {
        whereabouts(self.stack(), address, None).filter(|_| !self.is_local())
    }

    /// Returns [where](whereabouts) a store of it is, if that is a table; nothing of a local cloud.
    #[must_use]
    pub fn whereabouts_of(&self, store: &OpenStore) -> Option<String> {
        let region = self.aws.region().map(AsRef::as_ref);
        let is_there = store.is_table && !self.is_local();
        whereabouts(self.stack(), &store.name, region).filter(|_| is_there)
    }

    fn stack(&self) -> Option<&str> {
        if let Origin::Stack(stack) = &self.origin { Some(stack) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(whereabouts(stack, address, region).as_deref(), expected, "{address}");
        }
    }
}
