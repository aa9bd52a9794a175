//! The plan and the report: every message once.

use std::collections::HashSet;
use std::time::Duration;

use claimant_testkit::fuzz::hold;
use proptest::prelude::*;
use proptest::sample::select;

use crate::decode::decode_json;
use crate::engine::lanes::{LaneKey, planned};
use crate::report::{Entry, OUTCOME_WORDS, Outcome, Report};
use crate::{MessageId, Rejection, Timestamp};

#[test]
fn plan() {
    let message = prop_oneof![
        select(["", "a", "b"].as_slice()).prop_map(LaneKey::Group),
        (0..4_u8).prop_map(LaneKey::Work),
        any::<u8>().prop_map(LaneKey::Work),
    ];
    hold("the plan", file!(), prop::collection::vec(message, 0..40), |messages: Vec<LaneKey<'_, u8>>| {
        let planned = planned(messages.iter().cloned());
        let mut indexes: Vec<usize> = planned.iter().flat_map(|lane| lane.indexes.clone()).collect();
        indexes.sort_unstable();
        assert!(indexes.into_iter().eq(0..messages.len()), "every index once");
        assert!(planned.iter().map(|lane| lane.indexes[0]).is_sorted(), "lanes by their first message");
        let mut seen = HashSet::new();
        for lane in &planned {
            let key = &messages[lane.indexes[0]];
            assert!(seen.insert(key), "one lane for a group or a key");
            assert!(lane.indexes.iter().all(|index| messages[*index] == *key), "and nothing else in it");
            assert!(lane.indexes.is_sorted(), "in order");
            assert_eq!(lane.ordered, matches!(key, LaneKey::Group(_)));
        }
    });
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let rejections = [decode_json::<()>("x").unwrap_err(), Rejection::conflict()];
    prop_oneof![
        select(vec![
            Outcome::Completed,
            Outcome::Duplicate,
            Outcome::Retry,
            Outcome::Scheduled,
            Outcome::Cancelled,
            Outcome::Stuck,
            Outcome::NotStarted,
            Outcome::BreakerOpen,
            Outcome::RateLimited,
            Outcome::Blocked,
            Outcome::LeaseLost,
            Outcome::SettleUnknown,
            Outcome::StoreFailed,
            Outcome::FetchFailed,
            Outcome::Empty,
            Outcome::Ignored,
        ]),
        any::<u64>().prop_map(|ms| Outcome::Busy { until: Timestamp::from_millis(ms) }),
        (select(rejections.to_vec()), any::<bool>())
            .prop_map(|(rejection, dead_lettered)| Outcome::Rejected { rejection, dead_lettered }),
        any::<bool>().prop_map(|dead_lettered| Outcome::Parked { dead_lettered }),
    ]
}

/// S7: what is reported failed is of this batch, each once; and S4: nothing else is left out but what succeeded.
#[test]
fn report() {
    let entry = ("[a-e]", outcomes(), prop::option::of(any::<Duration>()));
    hold("the report", file!(), prop::collection::vec(entry, 0..20), |entries| {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(id, outcome, visible_after)| Entry {
                visible_after,
                ..Entry::new(MessageId::new(id).unwrap(), outcome)
            })
            .collect();
        let report = Report::new(entries.clone());
        let failures = report.failures();
        let distinct: HashSet<_> = failures.iter().copied().collect();
        assert_eq!(distinct.len(), failures.len(), "each once");
        for Entry { message_id, outcome, .. } in &entries {
            let copies = entries.iter().filter(|e| e.message_id == *message_id);
            assert_eq!(distinct.contains(message_id), !copies.clone().all(|e| e.outcome.is_success()));
            let deletes = match outcome {
                Outcome::Completed | Outcome::Duplicate | Outcome::Scheduled | Outcome::Empty | Outcome::Ignored => {
                    true
                }
                Outcome::Rejected { dead_lettered, .. } | Outcome::Parked { dead_lettered } => *dead_lettered,
                _ => false,
            };
            assert!(deletes || distinct.contains(message_id), "a failure that is not reported");
        }
        assert!(failures.iter().all(|id| entries.iter().any(|e| e.message_id == **id)), "of this batch");
        assert_eq!(report.counts().values().sum::<usize>(), entries.len());
        assert!(report.counts().keys().all(|word| OUTCOME_WORDS.contains(word)));
    });
}
