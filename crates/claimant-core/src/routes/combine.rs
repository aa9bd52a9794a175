//! What becomes of a message of several events: pure.

use crate::report::{Entry, Outcome};

/// Returns what becomes of a message whose events had these outcomes, in their order. It is done when all of them are; until then it
/// stays for the one that needs it longest. One that was rejected decides what a message is that is done.
///
/// `entries` is not empty.
pub(crate) fn combine(entries: &[Entry]) -> Option<&Entry> {
    let longest = |entry: &&Entry| (entry.visible_after.is_none(), entry.visible_after);
    let failed = entries.iter().filter(|entry| !entry.outcome.is_success());
    // The first of equals.
    let longest = failed.rev().max_by_key(longest);
    longest.or_else(|| entries.iter().min_by_key(|entry| rank(&entry.outcome)))
}

fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Parked { .. } => 0,
        Outcome::Rejected { .. } => 1,
        Outcome::Completed => 2,
        Outcome::Duplicate => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Timestamp;
    use crate::key::MessageId;
    use crate::rejection::Rejection;

    #[test]
    fn a_message_is_done_when_all_of_its_events_are() {
        let rejected = |dead_lettered| Outcome::Rejected { rejection: Rejection::new("why"), dead_lettered };
        let busy = Outcome::Busy { until: Timestamp::from_millis(1) };
        type Case<'a> = (&'a [(Outcome, Option<u64>)], &'a str);
        let cases: &[Case<'_>] = &[
            (&[(Outcome::Completed, None)], "completed None"),
            (&[(Outcome::Duplicate, None), (Outcome::Completed, None)], "completed None"),
            (&[(Outcome::Ignored, None), (Outcome::Duplicate, None)], "duplicate None"),
            (&[(Outcome::Completed, None), (rejected(true), None)], "rejected None"),
            (&[(rejected(true), None), (Outcome::Retry, Some(5)), (Outcome::Completed, None)], "retry Some(5)"),
            (&[(Outcome::Retry, Some(5)), (busy.clone(), Some(9)), (rejected(false), Some(0))], "busy Some(9)"),
            (&[(Outcome::Retry, Some(5)), (Outcome::Cancelled, Some(5))], "retry Some(5)"),
            // The queue's own visibility timeout is longer than what a retry waits for.
            (&[(busy, Some(9)), (Outcome::StoreFailed, None)], "store_failed None"),
        ];
        for (outcomes, wanted) in cases {
            let entry = |(outcome, after): &(Outcome, Option<u64>)| Entry {
                visible_after: after.map(Duration::from_secs),
                ..Entry::new(MessageId::new("m").unwrap(), outcome.clone())
            };
            let entries: Vec<_> = outcomes.iter().map(entry).collect();
            let combined = combine(&entries).unwrap();
            let shown =
                format!("{} {:?}", combined.outcome.word(), combined.visible_after.map(|after| after.as_secs()));
            assert_eq!(shown, *wanted, "{outcomes:?}");
        }
        assert_eq!(combine(&[]), None);
    }
}
