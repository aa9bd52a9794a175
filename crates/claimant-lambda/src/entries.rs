//! Many entries, asked for in batch requests of SQS.

use std::future::ready;

use aws_sdk_sqs::types::BatchResultErrorEntry;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};

/// Entries in one SQS batch request.
const ENTRIES_MAX: usize = 10;

/// Requests in flight at once: a batch of 10,000 messages takes 1,000 requests.
const REQUESTS_MAX: usize = 32;

/// Entries that failed, and SQS's code for the first of them that has one.
#[derive(Default)]
pub(crate) struct Failed {
    pub(crate) entries: usize,
    pub(crate) code: Option<String>,
}

impl Failed {
    /// Returns how many of `asked` entries an answer does not name as done, where it names `done` of them: what it does not name at all
    /// counts as failed.
    pub(crate) fn of(asked: usize, done: usize, failed: &[BatchResultErrorEntry]) -> Self {
        Self { entries: asked.saturating_sub(done), code: failed.first().map(|entry| entry.code().to_owned()) }
    }

    /// Returns the same in two parts: what failed by a fault of its own, or is not named, and what else did.
    pub(crate) fn by_fault(asked: usize, done: usize, failed: &[BatchResultErrorEntry]) -> (Self, Self) {
        let (wrong, rest): (Vec<_>, Vec<_>) = failed.iter().cloned().partition(BatchResultErrorEntry::sender_fault);
        (Self::of(asked.saturating_sub(rest.len()), done, &wrong), Self::of(rest.len(), 0, &rest))
    }

    /// Asks for these entries, ten in a request and the requests concurrently; returns what of all failed.
    pub(crate) async fn of_all<'a, E>(entries: &'a [E], request: impl Fn(&'a [E]) -> BoxFuture<'a, Self>) -> Self {
        let requests = stream::iter(entries.chunks(ENTRIES_MAX).map(request)).buffer_unordered(REQUESTS_MAX);
        requests.fold(Self::default(), |all, failed| ready(all.and(failed))).await
    }

    /// Adds others: the code of the first ones comes first.
    pub(crate) fn and(self, more: Self) -> Self {
        Self { entries: self.entries + more.entries, code: self.code.or(more.code) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_again_has_its_own_count_and_code() {
        let entry = |id: &str, code: &str, sender_fault: bool| {
            let entry = BatchResultErrorEntry::builder().id(id).code(code).sender_fault(sender_fault);
            entry.build().unwrap()
        };
        let failed = [entry("1", "ThrottlingException", false), entry("2", "ReceiptHandleIsInvalid", true)];
        // Of ten, one is not named at all.
        let (wrong, rest) = Failed::by_fault(10, 7, &failed);
        assert_eq!((wrong.entries, wrong.code.as_deref()), (2, Some("ReceiptHandleIsInvalid")));
        assert_eq!((rest.entries, rest.code.as_deref()), (1, Some("ThrottlingException")));
        let all = wrong.and(rest);
        assert_eq!((all.entries, all.code.as_deref()), (3, Some("ReceiptHandleIsInvalid")));
    }
}
