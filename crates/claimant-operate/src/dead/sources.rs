//! The queues that a dead-letter queue serves, by their URLs.

use crate::aws::name_of_arn;
use crate::target::{Place, sibling};

/// Returns the queues of the functions that copy to the dead-letter queue at this URL, which SQS does not know. Those that the place does
/// not show are among them.
pub(super) fn of_functions(place: &Place, dead: &str) -> Vec<String> {
    let copying =
        place.functions.iter().filter(|function| function.dead_letter_queue.as_deref() == Some(name_of_arn(dead)));
    let url = |name: &String| place.queue(name).map_or_else(|| sibling(dead, name), |queue| queue.url.clone());
    copying.flat_map(|function| function.queues.iter().map(url)).collect()
}

/// Returns whether two URLs are of one queue: SQS has several hosts for it.
pub(super) fn is_same(a: &str, b: &str) -> bool {
    path(a) == path(b)
}

/// Returns the one of these URLs whose queue has this ARN. Another account can have a queue of the same name.
pub(super) fn with_arn<'a>(urls: &'a [String], arn: &str) -> Option<&'a String> {
    let (account, name) = (account_of(arn)?, name_of_arn(arn));
    urls.iter().find(|url| path(url) == Some(&*format!("{account}/{name}")))
}

/// Returns the account in a queue's ARN.
pub(super) fn account_of(arn: &str) -> Option<&str> {
    arn.rsplit(':').nth(1)
}

/// Returns the account and the name in a queue's URL.
fn path(url: &str) -> Option<&str> {
    url.splitn(4, '/').nth(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_another_account_with_the_same_name_is_another_one() {
        let urls = ["1", "9"].map(|account| format!("https://sqs.eu-west-1.amazonaws.com/{account}/orders"));
        for (account, found) in [("1", Some(&urls[0])), ("9", Some(&urls[1])), ("5", None)] {
            assert_eq!(with_arn(&urls, &format!("arn:aws:sqs:eu-west-1:{account}:orders")), found);
        }
    }
}
