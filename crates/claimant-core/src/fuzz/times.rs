//! No arithmetic overflows, and every bound is kept.

use std::time::Duration;

use claimant_testkit::fuzz::hold;
use proptest::prelude::*;
use tokio::time::Instant;

use crate::engine::admission::{fits, to_claim, to_settle};
use crate::engine::learned::Durations;
use crate::limits::{
    BACKOFF_BASE_MS, BACKOFF_MAX_MS, CLAIM_AHEAD_MAX, CONCURRENCY_MAX, LEASE_MARGIN_MS, LEASE_MAX_MS, LIMIT_LEASE_MS,
    LIMIT_PLAN_MS, SETTLE_RESERVE_MAX_MS, STORE_BATCH_MAX, TIME_MAX_MS,
};
use crate::protocol::plan::SeenPlan;
use crate::protocol::rate::{Allowed, Plan};
use crate::protocol::slots::{LimitSlots, Now, SlotAnswer};
use crate::protocol::{Abandoned, ClaimPolicy, ClaimRequest, Conflicts, Decision, Likely, decide, interruptions_in};
use crate::{ConsumerName, Fence, Fingerprint, InvocationTime, Key, MessageId, OwnerToken, Record, RecordId, Status};
use crate::{Timestamp, backoff};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn any_time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![any::<u64>(), 0..=TIME_MAX_MS, 1_700_000_000_000..1_700_001_000_000_u64, Just(0), Just(u64::MAX),]
        .prop_map(Timestamp::from_millis)
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![any::<Duration>(), (0..=2 * LEASE_MAX_MS).prop_map(MS), Just(Duration::MAX), Just(Duration::ZERO)]
}

#[test]
fn delays() {
    let id = any::<String>().prop_map(|id| MessageId::new(id.chars().take(20).collect::<String>()));
    hold("delays", file!(), (any::<u32>(), 0..12_u32, id), |(any, small, id)| {
        let Ok(id) = id else { return };
        for attempt in [any, small] {
            let delay = backoff::delay(attempt, &id);
            assert!((MS(BACKOFF_BASE_MS / 2)..=MS(BACKOFF_MAX_MS)).contains(&delay));
            // The next one's least is more than this one's most, until the ceiling is reached.
            let next = backoff::delay(attempt.saturating_add(1), &id);
            assert!(attempt == 0 || next > delay || next >= MS(BACKOFF_MAX_MS / 2));
            let (rejected, next) =
                (backoff::rejected_delay(attempt), backoff::rejected_delay(attempt.saturating_add(1)));
            assert!(rejected <= next && next <= MS(BACKOFF_MAX_MS));
        }
        assert!(backoff::jitter(&id) < MS(1_000));
    });
}

#[test]
fn invocation_time() {
    hold("invocation times", file!(), (any_time(), any_time(), any_duration()), |(now, deadline, margin)| {
        let time = InvocationTime::new(now, deadline, margin);
        assert!(time.started_at <= time.cancel_at && time.cancel_at <= time.return_by);
        let (left, usable) = (deadline.since(now), time.return_by - time.started_at);
        assert!(usable <= MS(LEASE_MAX_MS) && usable <= left.saturating_sub(margin).max(MS(1)).min(left));
        let reserve = time.return_by - time.cancel_at;
        assert!(reserve <= MS(SETTLE_RESERVE_MAX_MS) && reserve <= usable / 5);
        assert_eq!(time.total(), usable - reserve);
        assert_eq!(time.lease_end - time.started_at, left.min(MS(LEASE_MAX_MS)) + MS(LEASE_MARGIN_MS));
        let lease = time.lease_until(now);
        assert!(now <= lease && lease <= now.plus(MS(LEASE_MAX_MS + LEASE_MARGIN_MS)));
    });
}

#[test]
fn pace() {
    let batch = (0..=10_000_usize, 0..=2_000_usize, 1..=CONCURRENCY_MAX, 0..=CLAIM_AHEAD_MAX);
    let took = prop::collection::vec((0..=2 * LEASE_MAX_MS).prop_map(MS), 0..8);
    let time = (any_duration(), any_duration(), any_duration());
    hold("the pace", file!(), (batch, took, time), |((waiting, in_hand, concurrency, ahead), took, time)| {
        let claimed = to_claim(waiting, in_hand, (concurrency, ahead), false);
        assert!(claimed <= waiting && (claimed == 0 || in_hand + claimed <= concurrency + ahead));
        assert!(in_hand > 0 || waiting == 0 || claimed > 0 || (ahead > 0 && concurrency + ahead < STORE_BATCH_MAX));
        for (others, lingered) in [(false, false), (true, false), (false, true), (true, true)] {
            let written = to_settle(waiting, others, lingered);
            assert!(written <= waiting && (written == waiting || (others && !lingered)));
        }
        let durations = Durations::default();
        took.iter().for_each(|took| durations.learn(*took));
        let longest = took.iter().max().copied().unwrap_or_default();
        assert!(durations.expected() <= longest * 3 + MS(1));
        let ahead = durations.ahead(concurrency);
        assert!(ahead <= CLAIM_AHEAD_MAX && ahead.is_multiple_of(STORE_BATCH_MAX));
        let (left, total, expected) = time;
        assert!(!fits(Duration::ZERO, total, expected));
        assert!(left.is_zero() || fits(left, left, expected), "at the beginning anything may start");
    });
}

fn record() -> impl Strategy<Value = Record> {
    let status = prop::sample::select(Status::ALL.as_slice());
    let numbers = (any::<u64>(), any::<u32>(), prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)]);
    let times = (any_time(), any_time(), any_time());
    (status, "[ab]", numbers, times, "[mn]", 0..2_u8).prop_map(|(status, owner, numbers, times, message, payload)| {
        Record {
            status,
            owner: OwnerToken::from_stored(owner),
            fence: Fence::new(numbers.0),
            lease_until: times.0,
            attempts: numbers.1,
            message_id: MessageId::new(message).unwrap(),
            fingerprint: Fingerprint::of_bytes(&[payload]),
            created_at: times.1,
            updated_at: times.2,
            completed_at: None,
            expires_at_s: numbers.2,
            result: None,
            error: None,
            note: None,
        }
    })
}

/// Whatever a table holds, deciding on it never panics, and a record that is granted has its owner and the next fence.
#[test]
fn decisions() {
    let policy = (any::<bool>(), any::<bool>(), any_duration(), any_duration());
    let inputs = (record(), any_time(), any_time(), policy, 0..2_u8);
    hold("decisions", file!(), inputs, |(seen, now, lease_until, (parks, ignores, skew, window), payload)| {
        let request = ClaimRequest {
            id: RecordId::new(&ConsumerName::new("fuzz").unwrap(), &Key::new("k").unwrap()),
            owner: OwnerToken::from_stored("a"),
            message_id: MessageId::new("m").unwrap(),
            fingerprint: Fingerprint::of_bytes(&[payload]),
            now,
            lease_until,
            policy: ClaimPolicy {
                abandoned: if parks { Abandoned::Park } else { Abandoned::Rerun },
                conflicts: if ignores { Conflicts::Ignore } else { Conflicts::Reject },
                skew,
                window,
            },
            likely: Likely::New,
        };
        match decide(Some(&seen), &request) {
            Decision::Grant { next, interruptions } => {
                assert_eq!((next.status, &next.owner), (Status::InProgress, &request.owner));
                assert_eq!(next.fence, seen.fence.next());
                let said = interruptions_in(seen.error.as_deref());
                assert!(interruptions == 0 || seen.status == Status::InProgress || interruptions == said);
                let over = seen.expires_at_s.saturating_mul(1_000) < now.as_millis();
                assert!(over || !matches!(seen.status, Status::Parked | Status::Completed), "it was claimed");
                let live = seen.status == Status::InProgress && now <= seen.lease_until.plus(skew);
                assert!(!live, "a live claim was taken");
            }
            Decision::Park { next } => assert!(parks && next.fence == seen.fence && next.owner == seen.owner),
            Decision::Held => assert!(seen.status == Status::InProgress && seen.owner == request.owner),
            Decision::Refuse(_) => {}
        }
    });
}

/// Returns how many calls begin within this time, each as soon as it can.
fn begins(known: &LimitSlots, now: impl Fn(Instant) -> Now, (from, within): (Instant, Duration)) -> usize {
    let (mut known, mut at, mut count) = (known.clone(), from, 0);
    loop {
        count += std::iter::from_fn(|| known.begin(now(at))).count();
        match known.next_call_at(now(at)) {
            Some(next) if next <= from + within => at = next,
            _ => return count,
        }
    }
}

/// What is claimed for a limit's calls, after whatever pause: as many as begin then.
#[test]
fn limits() {
    let rate = (prop::option::of(1..300_u32), 1_000..10_000_u64, prop::option::of(1..50_u32), 1..12_u32);
    // Pauses, each with how many calls begin after it at most.
    let pauses = prop::collection::vec((prop_oneof![0..300_u64, 0..20_000_u64], 0..20_usize), 1..8);
    let inputs = (rate, any::<u64>(), pauses, 0..1_000_u64);
    hold("calls of a limit", file!(), inputs, |((calls, per_ms, at_once, slots), holds, pauses, within)| {
        let (start, allowed) = (Instant::now(), Allowed { calls, per_ms, at_once });
        let now = |mono: Instant| Now { wall: Timestamp::from_millis(1_000).plus(mono - start), mono };
        let plan = Plan { allowed, slots };
        let mut known = LimitSlots::new(plan, start);
        let goes_by = |known: &mut LimitSlots, asked: Now| {
            let seen = SeenPlan { plan, lease_until: asked.wall.plus(MS(LIMIT_PLAN_MS)), asked };
            known.looked(Some(seen), asked, MS(0));
        };
        goes_by(&mut known, now(start));
        let lease_until = |asked: Now| asked.wall.plus(MS(LIMIT_LEASE_MS));
        for number in (0..slots).filter(|number| holds >> number & 1 == 1) {
            let asked = now(start);
            known.claimed(number, SlotAnswer::Held { asked, lease_until: lease_until(asked) }, asked);
        }
        let mut at = start;
        for (pause, begin) in pauses {
            let end = at + MS(pause);
            while at < end {
                at = end.min(at + MS(LIMIT_LEASE_MS / 2));
                goes_by(&mut known, now(at));
                for number in 0..slots {
                    let _ = known.renewed(number, now(at), Ok(Some(lease_until(now(at)))));
                }
            }
            let _ = (0..begin).map_while(|_| known.begin(now(at))).count();
            if allowed.faults().is_empty() {
                for within in [0, within].map(MS) {
                    assert_eq!(known.soon(now(at), within), begins(&known, now, (at, within)), "{known:?}");
                }
            }
        }
    });
}
