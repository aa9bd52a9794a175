//! Dead letters of one cause, counted. Pure.

use std::collections::BTreeMap;

use claimant_core::Timestamp;
use serde_json::{Value, json};

use super::fingerprint::Fingerprint;
use super::letter::DeadLetter;

/// Ids that are kept of each group, to look at one.
const EXAMPLES_MAX: usize = 3;

/// Dead letters of one cause.
#[derive(Debug, Clone)]
pub struct Group {
    /// What they have in common.
    pub fingerprint: Fingerprint,
    /// Their consumer; or the queue that SQS moved them from.
    pub consumer: Option<String>,
    /// Their outcome.
    pub outcome: Option<String>,
    /// What their errors have in common: [`Fingerprint::cause`].
    pub cause: String,
    /// How many there are.
    pub count: u64,
    /// How many of them were sent back before.
    pub redriven: u64,
    /// When the oldest and the newest were sent.
    pub sent: Option<(Timestamp, Timestamp)>,
    /// Ids of at most three of them.
    pub examples: Vec<String>,
}

impl Group {
    /// Returns it as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "group": self.fingerprint.as_str(),
            "consumer": self.consumer,
            "outcome": self.outcome,
            "cause": self.cause,
            "count": self.count,
            "redriven": self.redriven,
            "oldest": self.sent.map(|(oldest, _)| oldest.to_utc()),
            "newest": self.sent.map(|(_, newest)| newest.to_utc()),
            "oldest_ms": self.sent.map(|(oldest, _)| oldest.as_millis()),
            "newest_ms": self.sent.map(|(_, newest)| newest.as_millis()),
            "examples": self.examples,
        })
    }
}

/// Groups, as dead letters are added to them.
#[derive(Debug, Clone, Default)]
pub struct Groups(BTreeMap<Fingerprint, Group>);

impl Groups {
    /// Counts a dead letter.
    pub fn add(&mut self, letter: &DeadLetter) {
        let group = self.0.entry(letter.fingerprint.clone()).or_insert_with(|| Group {
            fingerprint: letter.fingerprint.clone(),
            consumer: letter.source().map(str::to_owned).or_else(|| letter.why.consumer.clone()),
            outcome: letter.why.outcome.clone(),
            cause: letter.cause(),
            count: 0,
            redriven: 0,
            sent: None,
            examples: Vec::new(),
        });
        group.count += 1;
        group.redriven += u64::from(letter.redrives > 0);
        if let Some(at) = letter.sent_at {
            let (oldest, newest) = group.sent.unwrap_or((at, at));
            group.sent = Some((oldest.min(at), newest.max(at)));
        }
        if group.examples.len() < EXAMPLES_MAX {
            group.examples.push(letter.message_id.clone());
        }
    }

    /// Returns the groups, the largest first.
    #[must_use]
    pub fn into_sorted(self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.0.into_values().collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.fingerprint.cmp(&b.fingerprint)));
        groups
    }
}
