//! What a limit across all processes allows, and how that is split.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::operating::note;
use crate::claim::OwnerToken;
use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;
use crate::key::{InvalidValue, MessageId, RecordId};
use crate::limits::{LIMIT_CALLS_MAX, LIMIT_PER_MAX_MS, LIMIT_PER_MIN_MS, LIMIT_SLOTS_MAX, WINDOW_MAX_S};
use crate::record::{Record, Status};

/// What a limit allows all processes together: so many calls in a time, so many at once, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// How many calls are begun in the time of `per_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// The time that `calls` is for, in milliseconds.
    pub per_ms: u64,
    /// How many calls run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
}

impl Default for Allowed {
    /// Returns what allows everything, which no limit does.
    fn default() -> Self {
        Self { calls: None, per_ms: 1_000, at_once: None }
    }
}

impl Allowed {
    /// Returns what is out of bounds, in words; nothing where all is well.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let of = |what: &str, value: Option<u32>| {
            let value = value.filter(|value| !(1..=LIMIT_CALLS_MAX).contains(value))?;
            Some(format!("the limit allows {value} {what}; 1 to {LIMIT_CALLS_MAX} are allowed"))
        };
        let per = (!(LIMIT_PER_MIN_MS..=LIMIT_PER_MAX_MS).contains(&self.per_ms)).then(|| {
            format!("the rate is for {} ms; {LIMIT_PER_MIN_MS} to {LIMIT_PER_MAX_MS} are allowed", self.per_ms)
        });
        let all = (self.calls.is_none() && self.at_once.is_none())
            .then(|| "the limit allows everything: set a rate, or how many at once".to_owned());
        [of("calls", self.calls), of("calls at once", self.at_once), per, all].into_iter().flatten().collect()
    }

    /// Returns what an operator has set by the limit's own record, if that is so: the result of a completed key.
    #[must_use]
    pub fn set_by(record: Option<&Record>, now: Timestamp) -> Option<Self> {
        let set = |record: &&Record| {
            record.status == Status::Completed && record.expires_at_s.saturating_mul(1_000) >= now.as_millis()
        };
        let allowed: Self = serde_json::from_str(record.filter(set)?.result.as_deref()?).ok()?;
        allowed.faults().is_empty().then_some(allowed)
    }

    /// Returns the limit's own record that sets this, or takes back what was set, in place of the one seen; for ten years.
    #[must_use]
    pub fn record(
        id: &RecordId,
        (seen, set): (&Record, Option<Self>),
        owner: OwnerToken,
        (now, by, why): (Timestamp, &str, &str),
    ) -> Record {
        Record {
            status: if set.is_some() { Status::Completed } else { Status::Failed },
            owner,
            fence: seen.fence.next(),
            updated_at: now,
            completed_at: set.map(|_| now),
            expires_at_s: now.plus(Duration::from_secs(WINDOW_MAX_S)).as_secs_rounded_up(),
            result: set.map(|set| serde_json::json!(set).to_string()),
            error: None,
            note: Some(note(id, now, (by, "limit", why))),
            ..seen.clone()
        }
    }

    /// Returns what holds where an operator has set this: what is not set stays as the consumer sets it.
    #[must_use]
    pub fn over(self, own: Self) -> Self {
        let (calls, per_ms) = if self.calls.is_some() { (self.calls, self.per_ms) } else { (own.calls, own.per_ms) };
        Self { calls, per_ms, at_once: self.at_once.or(own.at_once) }
    }
}

/// What all processes of a limit go by: what it allows, and into how many slots that is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What it allows all of them together.
    pub allowed: Allowed,
    /// How many slots there are.
    pub slots: u32,
}

impl Plan {
    /// Returns the plan that this record holds, whether or not its lease is over: its text is in place of the id of a message.
    /// `None` where it is of no plan, or of one that is out of bounds.
    #[must_use]
    pub fn held_by(record: &Record) -> Option<Self> {
        let plan: Self = serde_json::from_str(record.message_id.as_str()).ok()?;
        let is_whole = record.status == Status::InProgress && (1..=LIMIT_SLOTS_MAX).contains(&plan.slots);
        (is_whole && plan.allowed.faults().is_empty()).then_some(plan)
    }

    /// Returns what tells the settings of one version of a function from those of another.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_bytes(serde_json::json!(self).to_string().as_bytes())
    }

    /// Returns its text, as a record holds it.
    pub(crate) fn text(&self) -> Result<MessageId, InvalidValue> {
        MessageId::new(serde_json::json!(self).to_string())
    }

    /// Returns how many of its slots are used: no more than calls in a second, or at once, so that none of them is too slow.
    #[must_use]
    pub fn used(&self) -> u32 {
        let Self { allowed: Allowed { calls, per_ms, at_once }, slots } = *self;
        let each_second = calls.map_or(u64::from(slots), |calls| u64::from(calls) * 1_000 / per_ms.max(1));
        // OK because it is no more than the slots.
        each_second.min(at_once.unwrap_or(slots).into()).clamp(1, u64::from(slots.max(1))) as u32
    }

    /// Returns the time between two calls in a slot.
    pub(crate) fn interval(&self) -> Duration {
        let all = u64::from(self.used()) * self.allowed.per_ms * 1_000_000;
        let nanos = |calls: u32| Duration::from_nanos(all.div_ceil(u64::from(calls.max(1))));
        self.allowed.calls.map_or(Duration::ZERO, nanos)
    }

    /// Returns how many calls may run at once in the slot of this number.
    pub(crate) fn at_once_in(&self, number: u32) -> u32 {
        let used = self.used();
        self.allowed.at_once.map_or(u32::MAX, |all| all / used + u32::from(number < all % used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Fence;

    fn allowed(calls: u32, per_s: u64, at_once: u32) -> Allowed {
        let some = |n| if n == 0 { None } else { Some(n) };
        Allowed { calls: some(calls), per_ms: per_s * 1_000, at_once: some(at_once) }
    }

    #[test]
    fn a_limit_is_split_so_that_no_slot_is_too_slow_and_all_of_them_together_allow_it_exactly() {
        // calls, per s, at once, slots, used, interval in ms, at once in each
        let rows = [
            ((50, 1, 0, 10), (10, 200), &[][..]),
            ((1_000, 1, 0, 10), (10, 10), &[][..]),
            ((3, 1, 0, 10), (3, 1_000), &[][..]),
            ((1, 1, 0, 10), (1, 1_000), &[][..]),
            ((6, 60, 0, 10), (1, 10_000), &[][..]),
            ((90, 60, 0, 10), (1, 667), &[][..]),
            ((0, 1, 23, 10), (10, 0), &[3, 3, 3, 2, 2, 2, 2, 2, 2, 2][..]),
            ((0, 1, 2, 10), (2, 0), &[1, 1][..]),
            ((50, 1, 5, 10), (5, 100), &[1, 1, 1, 1, 1][..]),
        ];
        for ((calls, per_s, at_once, slots), (used, interval), each) in rows {
            let limit = allowed(calls, per_s, at_once);
            assert!(limit.faults().is_empty(), "{limit:?}");
            let plan = Plan { allowed: limit, slots };
            assert_eq!(plan.used(), used, "{limit:?}");
            assert_eq!(plan.interval().as_nanos().div_ceil(1_000_000), interval, "{limit:?}");
            let at_once: Vec<_> = (0..used).map(|number| plan.at_once_in(number)).collect();
            assert!(each.is_empty() || at_once == each, "{at_once:?}");
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_said() {
        for (limit, wanted) in [
            (allowed(0, 1, 0), "allows everything"),
            (Allowed { calls: Some(0), ..allowed(0, 1, 5) }, "allows 0 calls;"),
            (Allowed { at_once: Some(0), ..allowed(5, 1, 0) }, "allows 0 calls at once;"),
            (allowed(100_001, 1, 0), "1 to 100000"),
            (allowed(5, 0, 0), "is for 0 ms"),
            (allowed(5, 61, 0), "is for 61000 ms; 1000 to 60000"),
        ] {
            let faults = limit.faults();
            assert!(faults.len() == 1 && faults[0].contains(wanted), "{faults:?}");
        }
    }

    /// A record with a result, completed at this time.
    fn completed(now: Timestamp) -> Record {
        Record {
            status: Status::Completed,
            owner: OwnerToken::from_stored("a"),
            fence: Fence::FIRST,
            lease_until: now,
            attempts: 1,
            message_id: MessageId::new("ada").unwrap(),
            fingerprint: Fingerprint::of_bytes(&[]),
            created_at: now,
            updated_at: now,
            completed_at: Some(now),
            expires_at_s: 200,
            result: Some(r#"{"calls":20,"per_ms":1000}"#.into()),
            error: None,
            note: None,
        }
    }

    #[test]
    fn a_plan_is_the_text_of_a_record_that_is_held() {
        let held = |text: &str| Record {
            status: Status::InProgress,
            message_id: MessageId::new(text).unwrap(),
            ..completed(Timestamp::from_millis(1))
        };
        for plan in [
            Plan { allowed: allowed(50, 1, 20), slots: 10 },
            Plan { allowed: allowed(0, 1, 1), slots: 1 },
            Plan { allowed: allowed(LIMIT_CALLS_MAX, 60, LIMIT_CALLS_MAX), slots: LIMIT_SLOTS_MAX },
        ] {
            let record = held(plan.text().unwrap().as_str());
            assert_eq!(Plan::held_by(&record), Some(plan));
            assert_eq!(Plan::held_by(&Record { status: Status::Failed, ..record }), None);
        }
        for other in [
            "confirmation",
            r#"{"allowed":{"calls":5,"per_ms":1000},"slots":0}"#,
            r#"{"allowed":{"calls":5,"per_ms":1000},"slots":101}"#,
            r#"{"allowed":{"per_ms":1000},"slots":1}"#,
            r#"{"allowed":{"calls":5,"per_ms":1000},"slots":1,"by":"x"}"#,
        ] {
            assert_eq!(Plan::held_by(&held(other)), None, "{other}");
        }
    }

    #[test]
    fn an_operator_sets_it_by_the_result_of_a_completed_key() {
        let now = Timestamp::from_millis(100_000);
        let record = completed(now);
        assert_eq!(Allowed::set_by(Some(&record), now), Some(allowed(20, 1, 0)));
        assert_eq!(Allowed::set_by(None, now), None);
        assert_eq!(Allowed::set_by(Some(&record), Timestamp::from_millis(200_001)), None, "its window is over");
        let id = RecordId::new(&crate::ConsumerName::new("claimant-rate").unwrap(), &crate::Key::new("ses").unwrap());
        let set = |set| Allowed::record(&id, (&record, set), OwnerToken::from_stored("b"), (now, "ada", "why"));
        let wanted = allowed(0, 1, 7);
        let written = set(Some(wanted));
        assert_eq!((Allowed::set_by(Some(&written), now), written.fence), (Some(wanted), Fence::new(2)));
        assert!(written.note.unwrap().ends_with("ada limit: why"));
        assert_eq!((set(None).status, Allowed::set_by(Some(&set(None)), now)), (Status::Failed, None));
        assert_eq!(wanted.over(allowed(50, 2, 3)), allowed(50, 2, 7));
        assert_eq!(allowed(6, 60, 0).over(allowed(50, 1, 3)), allowed(6, 60, 3));
        let others = [Status::InProgress, Status::Failed, Status::Rejected, Status::Parked];
        for status in others {
            assert_eq!(Allowed::set_by(Some(&Record { status, ..record.clone() }), now), None);
        }
        for result in [None, Some("1"), Some(r#"{"calls":0,"per_ms":1000}"#), Some(r#"{"per_ms":1000}"#)] {
            let record = Record { result: result.map(str::to_owned), ..record.clone() };
            assert_eq!(Allowed::set_by(Some(&record), now), None, "{result:?}");
        }
    }
}
