//! The queues that a dead-letter queue serves, by their URLs.

use crate::aws::{account_of, name_of_arn, queue_path};
use crate::target::{Place, sibling};

/// Where letters may have come from, and whether that is a guess: functions name their queues without an account.
pub(super) struct Source {
    pub(super) url: String,
    pub(super) is_guessed: bool,
}

/// Returns the queues of the functions that copy to the dead-letter queue at this URL, which SQS does not know: all that have the name. One that
/// the place does not show, or could not ask about, is guessed to be in the dead-letter queue's account.
pub(super) fn of_functions(place: &Place, dead: &str) -> Vec<Source> {
    let copying = place.functions.iter().filter(|function| function.copies_to(dead));
    let mut found = Vec::new();
    for name in copying.flat_map(|function| &function.queues) {
        let known: Vec<_> = place.queues.iter().filter(|queue| queue.name == *name).collect();
        if known.is_empty() {
            found.push(Source { url: sibling(dead, name), is_guessed: true });
        }
        found.extend(known.iter().map(|queue| Source { url: queue.url.clone(), is_guessed: false }));
    }
    found
}

/// Returns the one of these URLs whose queue has this ARN. Another account can have a queue of the same name.
pub(super) fn with_arn<'a>(urls: &'a [String], arn: &str) -> Option<&'a String> {
    let (account, name) = (account_of(arn)?, name_of_arn(arn));
    urls.iter().find(|url| queue_path(url) == Some(&*format!("{account}/{name}")))
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
