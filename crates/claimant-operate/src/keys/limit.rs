//! Limits: what an operator has set, and who has their slots.

use std::time::Duration;

use claimant_core::limit::{Allowed, LIMIT_CONSUMER, LIMIT_PLAN, Plan, ends_too_late};
use claimant_core::limits::{LIMIT_LEASE_MS, LIMIT_PLAN_MS, LIMIT_SLOTS_MAX, WINDOW_MAX_S};
use claimant_core::protocol::{ClaimPolicy, ClaimRequest, Likely};
use claimant_core::{ConsumerName, Error, Fingerprint, Key, MessageId, OwnerToken, Record, RecordId, Replaced, State};
use claimant_core::{StoreError, StoreErrorKind, Timestamp};
use futures_util::future::try_join_all;

use super::access::Keys;
use super::act::{ROUNDS_MAX, WAIT_BASE_MS};

/// For how long the record of a limit is claimed that is written first.
const LEASE: Duration = Duration::from_secs(10);

/// What an operator has set of a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitState {
    /// What it allows; `None` where it is as the functions set it.
    pub set: Option<Allowed>,
    /// Who wrote the record last, when and why.
    pub note: Option<String>,
}

impl LimitState {
    fn of(own: Option<&Record>, now: Timestamp) -> Self {
        Self { set: Allowed::set_by(own, now), note: own.and_then(|record| record.note.clone()) }
    }
}

/// What came of setting a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitSet {
    /// It is as was asked for: set now, or so already.
    Done(LimitState),
    /// Another one has set it since this was decided on, to this.
    Changed(LimitState),
}

/// What processes make of a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitUse {
    /// What all of them go by, and until when unless it is renewed; `None` where no process uses the limit.
    pub plan: Option<(Plan, Timestamp)>,
    /// The slots that they hold, in their order.
    pub slots: Vec<SlotState>,
}

impl LimitUse {
    /// Returns whether a slot is held that the plan does not have: by a process that goes by another one, or by none. Those of the plan before it
    /// are, too, until their leases end; or, where that limited how many run at once, until what runs in them has ended, since they are
    /// renewed so long.
    #[must_use]
    pub fn is_beyond_plan(&self) -> bool {
        self.plan.is_some_and(|(plan, _)| self.slots.iter().any(|slot| slot.number >= plan.used()))
    }

    /// Returns the keys that are held for longer than any lease lasts: a clock is far off, that of who holds it or this one.
    #[must_use]
    pub fn held_too_long(&self, name: &str, clock: (Timestamp, Duration)) -> Vec<String> {
        let plan = self.plan.map(|(_, until)| (LIMIT_PLAN.to_owned(), until, LIMIT_PLAN_MS));
        let slots = self.slots.iter().map(|slot| (slot.number.to_string(), slot.until, LIMIT_LEASE_MS));
        let too_long =
            plan.into_iter().chain(slots).filter(|(_, until, lease_ms)| ends_too_late(*until, *lease_ms, clock));
        too_long.map(|(key, ..)| format!("{LIMIT_CONSUMER}#{name}/{key}")).collect()
    }
}

/// A slot that a process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotState {
    /// Its number, from 0.
    pub number: u32,
    /// The consumer whose process holds it.
    pub consumer: String,
    /// When its lease ends unless it is renewed.
    pub until: Timestamp,
}

/// What an operator sets.
#[derive(Debug, Clone)]
pub struct LimitOrder {
    /// The limit's name.
    pub name: String,
    /// What was set when this was decided on, as [`LimitState::set`] says.
    pub before: Option<Allowed>,
    /// What it allows from now on; `None` for what the functions set.
    pub allowed: Option<Allowed>,
    /// Who does it.
    pub by: String,
    /// Why.
    pub why: String,
}

fn record_id(key: String) -> Result<RecordId, Error> {
    Ok(RecordId::new(&ConsumerName::new(LIMIT_CONSUMER)?, &Key::new(key)?))
}

impl Keys {
    /// Returns the id of a limit's own record.
    ///
    /// # Errors
    /// When the name is none: letters, digits, `-` and `_`, 1 to 64 of them.
    pub fn limit_id(name: &str) -> Result<RecordId, Error> {
        let named = ConsumerName::new(name).map_err(|_| {
            Error::invalid(format!("the limit's name {name:?} is not 1 to 64 letters, digits, '-' or '_'"))
        })?;
        record_id(named.as_str().to_owned())
    }

    /// Returns what an operator has set of a limit: reads its record.
    ///
    /// # Errors
    /// When the name is none, or the store did not give an answer.
    pub async fn limit(&self, name: &str) -> Result<LimitState, Error> {
        let own = self.store().get(&Self::limit_id(name)?, self.call()).await?;
        Ok(LimitState::of(own.as_ref(), self.now().0))
    }

    /// Returns what processes make of a limit: reads the record of its plan, and those of all slots that it can have.
    ///
    /// # Errors
    /// When the store did not give an answer for one of them.
    pub async fn limit_use(&self, name: &str) -> Result<LimitUse, Error> {
        let plan = record_id(format!("{name}/{LIMIT_PLAN}"));
        let slots = (0..LIMIT_SLOTS_MAX).map(|number| record_id(format!("{name}/{number}")));
        let ids = std::iter::once(plan).chain(slots).collect::<Result<Vec<_>, _>>()?;
        let mut records = try_join_all(ids.iter().map(|id| self.store().get(id, self.call()))).await?.into_iter();
        let (now, skew) = self.now();
        let is_held = |record: &Record| State::of(record, now, skew) == State::Running;
        let plan = records.next().flatten().filter(is_held);
        let held = |(number, record): (u32, Option<Record>)| {
            let record = record.filter(is_held)?;
            Some(SlotState { number, consumer: record.message_id.as_str().to_owned(), until: record.lease_until })
        };
        Ok(LimitUse {
            plan: plan.and_then(|record| Some((Plan::held_by(&record)?, record.lease_until))),
            slots: (0..).zip(records).filter_map(held).collect(),
        })
    }

    /// Sets what a limit allows, for all processes: they go by it when their plan has ended, within half a minute.
    ///
    /// Cancel safe: when dropped, it is set or is not.
    ///
    /// # Errors
    /// When it is out of bounds, the store gave no answer, also after a few tries, or others write the record all the time. Where it is not
    /// known whether it was set, the error says so. Doing it again is safe.
    pub async fn set_limit(&self, order: &LimitOrder) -> Result<LimitSet, Error> {
        Error::unless_empty(
            "the limit cannot be set",
            &order.allowed.map(|allowed| allowed.faults()).unwrap_or_default(),
        )?;
        let id = Self::limit_id(&order.name)?;
        let (mut failed, mut is_lost) = (None, false);
        for round in 0..ROUNDS_MAX {
            if failed.is_some() {
                tokio::time::sleep(Duration::from_millis(WAIT_BASE_MS << round)).await;
            }
            let seen = match self.store().get(&id, self.call()).await {
                Ok(seen) => seen,
                Err(error) if error.kind().is_transient() => {
                    failed = Some(error);
                    continue;
                }
                Err(error) => return Err(unanswered(error, is_lost)),
            };
            let (now, _) = self.now();
            let state = LimitState::of(seen.as_ref(), now);
            // Also by this, where the answer was lost.
            if state.set == order.allowed && (state.set.is_none() || state.set != order.before) {
                return Ok(LimitSet::Done(state));
            }
            if state.set != order.before {
                return Ok(LimitSet::Changed(state));
            }
            let Some(seen) = seen else {
                // Refused, another one writes it; that is read next.
                match self.store().claim(&self.first_claim(&id)?, self.call()).await {
                    Ok(_) => failed = None,
                    Err(error) if error.kind().is_transient() => failed = Some(error),
                    Err(error) => return Err(unanswered(error, is_lost)),
                }
                continue;
            };
            let next = Allowed::record(&id, (&seen, order.allowed), OwnerToken::draw()?, (now, &order.by, &order.why));
            match self.store().replace(&id, &seen, &next, self.call()).await {
                Ok(Replaced::Done) => return Ok(LimitSet::Done(LimitState::of(Some(&next), now))),
                Ok(Replaced::Changed) => failed = None,
                Err(error) if error.kind().is_transient() => {
                    is_lost |= error.kind() == StoreErrorKind::Unreachable;
                    failed = Some(error);
                }
                Err(error) => return Err(unanswered(error, is_lost)),
            }
        }
        Err(match failed {
            Some(error) => unanswered(error, is_lost),
            None => Error::new(format!(
                "the limit's record changed {ROUNDS_MAX} times while it was to be written: try again"
            )),
        })
    }

    /// Returns what writes a first record, which the next write replaces.
    fn first_claim(&self, id: &RecordId) -> Result<ClaimRequest, Error> {
        let (now, skew) = self.now();
        Ok(ClaimRequest {
            id: id.clone(),
            owner: OwnerToken::draw()?,
            message_id: MessageId::new("claimant limit")?,
            fingerprint: Fingerprint::of_bytes(&[]),
            now,
            lease_until: now.plus(LEASE),
            policy: ClaimPolicy { skew, window: Duration::from_secs(WINDOW_MAX_S), ..ClaimPolicy::default() },
            // It is rare, and takes no permission that acts do not take.
            likely: Likely::Known,
        })
    }
}

/// Returns the error where the store gave no answer; `is_lost` says that there was none to a write either.
fn unanswered(error: StoreError, is_lost: bool) -> Error {
    if is_lost { Error::new("it is not known whether the limit was set").caused_by(error) } else { error.into() }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use claimant_core::MemoryStore;

    use super::super::list::Query;
    use super::*;

    fn order(before: Option<Allowed>, allowed: Option<Allowed>) -> LimitOrder {
        LimitOrder { name: "ses".into(), before, allowed, by: "ada".into(), why: "half\nthe quota".into() }
    }

    #[tokio::test]
    async fn a_limit_is_set_changed_and_taken_back() {
        let keys = Keys::new(Arc::new(MemoryStore::new()));
        assert_eq!(keys.set_limit(&order(None, None)).await.unwrap(), LimitSet::Done(LimitState::default()));
        assert_eq!(keys.limit("ses").await.unwrap(), LimitState::default());
        assert_eq!(keys.limit_use("ses").await.unwrap(), LimitUse::default());
        let twenty = Allowed { calls: Some(20), ..Allowed::default() };
        let three = Allowed { at_once: Some(3), ..twenty };
        for (before, allowed) in [(None, twenty), (Some(twenty), three)] {
            let done = keys.set_limit(&order(before, Some(allowed))).await.unwrap();
            let state = keys.limit("ses").await.unwrap();
            assert_eq!((&done, state.set), (&LimitSet::Done(state.clone()), Some(allowed)));
            assert!(state.note.unwrap().ends_with("ada limit: half the quota"));
        }
        // Decided on before the other was set.
        for before in [None, Some(twenty)] {
            for allowed in [None, Some(Allowed { at_once: Some(5), ..twenty })] {
                let came = keys.set_limit(&order(before, allowed)).await.unwrap();
                assert_eq!(came, LimitSet::Changed(keys.limit("ses").await.unwrap()));
            }
            let already = keys.set_limit(&order(before, Some(three))).await.unwrap();
            assert!(matches!(already, LimitSet::Done(state) if state.set == Some(three)));
        }
        assert_eq!(keys.limit("ses").await.unwrap().set, Some(three));
        for before in [Some(three), None] {
            let done = keys.set_limit(&order(before, None)).await.unwrap();
            assert!(matches!(done, LimitSet::Done(state) if state.set.is_none()));
            assert!(keys.limit("ses").await.unwrap().set.is_none());
        }
        let none = keys.set_limit(&order(None, Some(Allowed { calls: Some(0), ..twenty }))).await.unwrap_err();
        assert!(none.to_string().contains("allows 0 calls"), "{none}");
        assert!(keys.limit("s/0").await.unwrap_err().to_string().contains("letters, digits"));
    }

    /// Claims a slot or the plan, with this in place of a message, and returns when its lease ends.
    async fn hold(keys: &Keys, key: &str, by: &str) -> Timestamp {
        let (now, _) = keys.now();
        let request = ClaimRequest {
            id: record_id(format!("ses/{key}")).unwrap(),
            owner: OwnerToken::draw().unwrap(),
            message_id: MessageId::new(by).unwrap(),
            fingerprint: Fingerprint::of_bytes(&[]),
            now,
            lease_until: now.plus(LEASE),
            policy: ClaimPolicy::default(),
            likely: Likely::New,
        };
        keys.store().claim(&request, keys.call()).await.unwrap();
        request.lease_until
    }

    #[tokio::test]
    async fn who_has_a_slot_is_seen_and_what_all_go_by() {
        let keys = Keys::new(Arc::new(MemoryStore::new()));
        let until = hold(&keys, "3", "confirmation").await;
        let slots = vec![SlotState { number: 3, consumer: "confirmation".into(), until }];
        assert_eq!(keys.limit_use("ses").await.unwrap(), LimitUse { plan: None, slots: slots.clone() });
        let until = hold(&keys, LIMIT_PLAN, r#"{"allowed":{"calls":5,"per_ms":1000},"slots":4}"#).await;
        let plan = Plan { allowed: Allowed { calls: Some(5), ..Allowed::default() }, slots: 4 };
        let used = keys.limit_use("ses").await.unwrap();
        assert_eq!(used, LimitUse { plan: Some((plan, until)), slots });
        // Of these leases, that of the slot is too long for a clock that is 20 s behind, and both for one that is far behind.
        let skew = Duration::from_secs(1);
        for (behind_s, wanted) in [
            (0, &[][..]),
            (20, &["claimant-rate#ses/3"][..]),
            (60, &["claimant-rate#ses/plan", "claimant-rate#ses/3"][..]),
        ] {
            let now = Timestamp::from_millis(until.as_millis() - 10_000 - behind_s * 1_000);
            assert_eq!(used.held_too_long("ses", (now, skew)), wanted, "{behind_s}");
        }
    }

    #[tokio::test]
    async fn a_list_has_what_was_set_and_no_slots_unless_they_are_asked_for() {
        let keys = Keys::new(Arc::new(MemoryStore::new()));
        let twenty = Allowed { calls: Some(20), ..Allowed::default() };
        keys.set_limit(&order(None, Some(twenty))).await.unwrap();
        hold(&keys, "3", "confirmation").await;
        let all = Query { states: Vec::new(), consumer: None, older_than: None, text: None, limit: 10 };
        let of_limits = Query { consumer: Some(ConsumerName::new(LIMIT_CONSUMER).unwrap()), ..all.clone() };
        let both = ["claimant-rate#ses", "claimant-rate#ses/3"];
        for is_set in [true, false] {
            for (query, wanted) in [(&all, &both[..usize::from(is_set)]), (&of_limits, &both)] {
                let listed = keys.list(query, |_| ControlFlow::Continue(())).await.unwrap();
                let mut ids: Vec<_> = listed.found.iter().map(|found| found.id.as_str().to_owned()).collect();
                ids.sort_unstable();
                assert_eq!(ids, wanted);
            }
            keys.set_limit(&order(Some(twenty), None)).await.unwrap();
        }
    }
}
